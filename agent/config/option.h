/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CONFIG_OPTION_H
#define PODPROF_CONFIG_OPTION_H

/* One setting as data: its place in struct config and its parser. */

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

enum option_kind {
	OPTION_STRING,
	OPTION_UINT,
	OPTION_SHARE,	 /* "0.02", from 0 to 1, into a double */
	OPTION_DURATION, /* "60s" into nanoseconds */
	OPTION_BYTES,	 /* "96MiB" */
	OPTION_BOOL,
	OPTION_CHOICE, /* an index of @choices */
	OPTION_LIST,   /* repeatable; a JSON array in the file */
};

struct option_desc {
	const char *name; /* kebab-case, without the dashes */
	enum option_kind kind;
	size_t offset;		  /* in struct config */
	const char *value_name;	  /* for the help */
	const char *default_text; /* parsed like any other value; NULL: unchanged */
	const char *help;
	const char *const *choices; /* OPTION_CHOICE, ends with NULL */
	const char *group;	    /* heading before this option; or NULL */
	size_t list_max;	    /* OPTION_LIST: ceiling of its items; 0: CONFIG_LIST_MAX */
	bool live;		    /* may change while the agent runs */
};

extern const struct option_desc options[];
extern const size_t n_options;

/*
 * Parse @text into the setting. @source is the origin of the text for the error ("--cpu-rate",
 * "PODPROF_CPU_RATE", "\"cpu-rate\" in FILE"). A list gets an additional item.
 * 0, CONFIG_BAD, -ENOMEM.
 */
int option_set(const struct option_desc *option, struct config *c, const char *text,
	       const char *source, struct config_error *ret_error);
/* Empty a list before a source of higher precedence fills the list; does nothing for other kinds.
 */
void option_reset(const struct option_desc *option, struct config *c);
const struct option_desc *option_find(const char *name);

void config_error_set(struct config_error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
