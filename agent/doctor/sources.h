/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DOCTOR_SOURCES_H
#define PODPROF_DOCTOR_SOURCES_H

/* Who tells what pods and containers are called: each source is asked as the agent asks it. */

#include <stdbool.h>
#include <stddef.h>

#include "metadata/metadata.h"

struct discovery;
struct findings;
struct loop;
struct probe_results;

/* Bytes of a source's name, last word and address with their NUL; longer ones are cut. Reached:
 * cut. */
#define SOURCE_TEXT_MAX 200

struct source {
	enum metadata_state state;
	char name[32];
	char word[SOURCE_TEXT_MAX];
	char url[SOURCE_TEXT_MAX];
};

/**
 * struct sources
 * @result:       of metadata_new()
 * @n_containers: of which names were asked for
 * @n_named:      that have a name; others may get theirs later
 */
struct sources {
	int result;
	struct source items[METADATA_SOURCES_MAX];
	size_t n;
	size_t n_containers;
	size_t n_named;
};

/* Asking, on a loop. What is given is borrowed. */
struct sources_trial;
/* @metadata: its loop, callback and context are set here. 0 or -ENOMEM: what else can go wrong is a
 * finding. */
int sources_begin(struct loop *loop, const struct metadata_opts *metadata,
		  struct discovery *discovery, struct sources_trial **ret);
/* To be called again and again until it is false, or nobody wants to wait any more. */
bool sources_pending(struct sources_trial *trial);
/* NULL is fine for @trial, and then nothing is known. */
void sources_end(struct sources_trial *trial, struct sources *ret);

void sources_check(const struct probe_results *results, struct findings *ret);

#endif
