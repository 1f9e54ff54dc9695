/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DOCTOR_SOURCES_H
#define PODPROF_DOCTOR_SOURCES_H

/* The sources of names for pods and containers, each asked as the agent asks. */

#include <stdbool.h>
#include <stddef.h>

#include "metadata/metadata.h"

struct discovery;
struct findings;
struct loop;
struct probe_results;

/* Bytes of a source's name, last message and address with their NUL. Reached: cut. */
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
 * @n_containers: containers looked up
 * @n_named:      containers with a name; others may get a name later
 */
struct sources {
	int result;
	struct source items[METADATA_SOURCES_MAX];
	size_t n;
	size_t n_containers;
	size_t n_named;
};

/* The running probe, on a loop. Arguments are borrowed. */
struct sources_trial;
/* @metadata: this function sets loop, callback and context. 0 or -ENOMEM; any other failure becomes
 *            a finding. */
int sources_begin(struct loop *loop, const struct metadata_opts *metadata,
		  struct discovery *discovery, struct sources_trial **ret);
/* Call repeatedly until the result is false, or until the time is over. */
bool sources_pending(struct sources_trial *trial);
/* With a NULL @trial all results are unknown. */
void sources_end(struct sources_trial *trial, struct sources *ret);

void sources_check(const struct probe_results *results, struct findings *ret);

#endif
