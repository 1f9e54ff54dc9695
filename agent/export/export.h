/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_EXPORT_H
#define PODPROF_EXPORT_EXPORT_H

/* Finished profiles on their way out: to each destination's outbox and to the store. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/labels.h"

struct loop;
struct metric_sink;
struct store;
struct export;

enum profile_kind {
	PROFILE_CPU,
	PROFILE_OFF_CPU,
	PROFILE_GO_HEAP,
	PROFILE_GO_MUTEX,
	PROFILE_GO_BLOCK,
	PROFILE_KIND_MAX,
};

/**
 * struct profile - one series and window, encoded
 * @labels:      without __name__ or anything that is one backend's own
 * @start_ns:    wall clock
 * @pprof:       gzip; cumulative where the kind is (what files and pulls show)
 * @pprof_delta: the same window with alloc values as differences, for destinations that want that;
 *               NULL where there is no difference
 */
struct profile {
	enum profile_kind kind;
	struct labels labels;
	uint64_t start_ns;
	uint64_t duration_ns;
	char *pprof;
	size_t pprof_len;
	char *pprof_delta;
	size_t pprof_delta_len;
};

void profile_free(struct profile *profile);
const char *profile_kind_name(enum profile_kind kind); /* "cpu", "go_heap" */
/* Whether each profile of the kind has everything since its processes began. */
bool profile_kind_is_cumulative(enum profile_kind kind);

struct export_opts {
	struct loop *loop;
	const char *const *destinations; /* "pyroscope=URL[,key=value...]", see destination.h */
	size_t n_destinations;
	const char *store_dir; /* NULL: no store */
	uint64_t store_bytes;
	uint64_t store_age_ns;
	uint64_t queue_bytes; /* ceiling of all outboxes together */
};

/* *@ret_error is a sentence for the user when 1 (a wrong destination, a store that cannot be used)
 * is returned; the caller frees it. */
int export_new(const struct export_opts *opts, struct export **ret, char **ret_error);
/* Sends nothing more; what waits is dropped and counted. */
void export_free(struct export *e);
/* Takes @profile (from malloc, with all it points to), whatever happens. */
void export_submit(struct export *e, struct profile *profile);
/* Write or send what is left, until done or @timeout_ns; then calls @done. For the end of the run.
 */
void export_flush(struct export *e, uint64_t timeout_ns, void (*done)(void *ctx), void *ctx);
/* The store, for reading; NULL if there is none. Borrowed. */
struct store *export_store(struct export *e);
/* A metric_collect_fn; @ctx is the struct export. The store's metrics are among them. */
void export_collect(void *ctx, struct metric_sink *sink);

#endif
