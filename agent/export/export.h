/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_EXPORT_H
#define PODPROF_EXPORT_EXPORT_H

/* Finished profiles on their way out: to each destination's outbox and to the store. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/profile.h"

struct destination_kind;
struct loop;
struct metric_sink;
struct store;
struct export;

struct export_opts {
	struct loop *loop;
	const char *const *destinations; /* "pyroscope=URL[,key=value...]", see destination.h */
	size_t n_destinations;
	const struct destination_kind *const *kinds; /* of them; NULL: destination_kinds */
	const char *store_dir;			     /* NULL: no store */
	uint64_t store_bytes;
	uint64_t store_age_ns;
	uint64_t queue_bytes; /* ceiling of all outboxes together */
};

/* *@ret_error is a sentence for the user when 1 (a wrong destination, a store that cannot be used)
 * is returned; the caller frees it. */
int export_new(const struct export_opts *opts, struct export **ret, char **ret_error);
/* Sends nothing more; what waits is dropped and counted. */
void export_free(struct export *e);
/* What one profile may have, so that the store and each destination take it. */
struct profile_limits export_limits(const struct export *e);
/* Takes @profile (from malloc, with all it points to), whatever happens. Destinations whose
 * kind has no name for the profile's kind do not get it. */
void export_submit(struct export *e, struct profile *profile);
/* Write or send what is left, until done or @timeout_ns; then calls @done. For the end of the run.
 */
void export_flush(struct export *e, uint64_t timeout_ns, void (*done)(void *ctx), void *ctx);
/* The store, for reading; NULL if there is none. Borrowed. */
struct store *export_store(struct export *e);
/* A metric_collect_fn; @ctx is the struct export. The store's metrics are among them. */
void export_collect(void *ctx, struct metric_sink *sink);

#endif
