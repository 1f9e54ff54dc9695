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

/* @store_dir, @spool_dir: borrowed until export_free() */
struct export_opts {
	struct loop *loop;
	const char *const *destinations; /* "pyroscope=URL[,key=value...]", see destination.h */
	size_t n_destinations;
	const struct destination_kind *const *kinds; /* the kinds; NULL: destination_kinds */
	const char *store_dir;			     /* NULL: no store */
	uint64_t store_bytes;
	uint64_t store_age_ns;
	const char *spool_dir; /* NULL: no spool */
	uint64_t spool_bytes;
	uint64_t disk_blocked_ns; /* time without an answer of a disk; 0: WATCHDOG_BLOCKED_NS */
	uint64_t open_wait_ns;	  /* of the store and the spool; 0: DISK_THREAD_WAIT_NS */
	uint64_t queue_bytes;	  /* ceiling of all outboxes together */
	uint64_t file_blocked_ns; /* the same of a program file; 0: WATCHDOG_BLOCKED_NS */
	uint64_t window_ns;	  /* many profiles are spread over a window; 0: never */
	/* The directories whose lock another process has, for people; "" if there are none. Called
	 * for each change, also inside of export_new(). May be NULL. */
	void (*busy)(void *ctx, const char *text);
	void *ctx;
};

/* Bytes of the text about busy directories, with its NUL. */
#define EXPORT_BUSY_BYTES 256

/* With a result of 1 (a wrong destination, an unusable store), *@ret_error is a sentence for the
 * user; the caller frees the sentence. */
int export_new(const struct export_opts *opts, struct export **ret, char **ret_error);
/* Sends nothing more; waiting profiles that are not in the spool are dropped and counted. */
void export_free(struct export *e);
/* The smallest limits of the store and all destinations for one profile. */
struct profile_limits export_limits(const struct export *e);
/* False: profiles go to the store alone. */
bool export_has_destinations(const struct export *e);
/* Takes @profile (from malloc, with everything below), on every path. A destination whose kind has
 * no name for the profile's kind is skipped. */
void export_submit(struct export *e, struct profile *profile);
/* A destination takes the files of programs with frames without a name. */
bool export_wants_files(const struct export *e);
/* Such a file, or its debug file: for all these destinations. @owner has a share of the ceilings
 * (uploads.h). Duplicates @fd unless they know the build id, in hexadecimal digits. Any thread;
 * does not block. */
void export_offer_file(struct export *e, uint64_t owner, const char *build_id, int fd);
/* From now on profiles leave as fast as possible. For the end of the run. */
void export_hurry(struct export *e);
/* Write or send the remaining profiles, for at most @timeout_ns, then call @done. For the end of
 * the run. Profiles in the spool stay there if they cannot be sent. */
void export_flush(struct export *e, uint64_t timeout_ns, void (*done)(void *ctx), void *ctx);
/* The store, for reading; NULL if there is none. Borrowed. */
struct store *export_store(struct export *e);
/* A metric_collect_fn; @ctx is the struct export. Includes the store's metrics. */
void export_collect(void *ctx, struct metric_sink *sink);

#endif
