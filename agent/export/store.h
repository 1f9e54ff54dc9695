/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_STORE_H
#define PODPROF_EXPORT_STORE_H

/*
 * Profiles on disk for the node's own user: one folder for each label set, one file for each
 * profile, which any pprof tool opens:
 *
 *	DIR/shop_checkout_checkout-5d7c_app-1a2b3c4d/labels.json
 *	DIR/shop_checkout_checkout-5d7c_app-1a2b3c4d/20261121T113400.000Z_60s_cpu.pb.gz
 *
 * It is read again when the agent starts. Only files named like this are ever touched.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/labels.h"
#include "export/profile.h"

struct buf;
struct metric_sink;
struct store;

/* Files kept whatever --store-bytes says: 100 bytes of memory each. The oldest go first, counted as
 * "count". 256 MiB of profiles of usual size (10 to 40 KB) are at most 26,000. Reached:
 * `podprof_store_removed_total{reason="count"}`. */
#define STORE_PROFILES_MAX     65536
/* Label sets. One more is refused, counted as "too_many_folders", until an older one has no
 * profiles. Reached: `podprof_store_profiles_total{outcome="too_many_folders"}`. */
#define STORE_FOLDERS_MAX      4096
/* One profile, in a file. Reached: `podprof_store_profiles_total{outcome="too_large"}`. */
#define STORE_PROFILE_SIZE_MAX (64u << 20)

enum store_outcome {
	STORE_OK = 0,
	STORE_DISK_FULL, /* ENOSPC, EDQUOT */
	STORE_READ_ONLY, /* EROFS, EACCES, EPERM */
	STORE_TOO_LARGE, /* larger than the whole store may be, or than STORE_PROFILE_SIZE_MAX */
	STORE_FOLDERS,	 /* STORE_FOLDERS_MAX label sets are there */
	STORE_FAILED,	 /* any other error of the file system, or no memory */
	STORE_GONE,	 /* reading: no such profile, or its file was taken away */
	STORE_BUSY,	 /* opening: another podprof has this store */
	STORE_OUTCOME_MAX,
};

struct store_opts {
	const char *dir; /* made if it is not there, with its parents */
	uint64_t max_bytes;
	uint64_t max_age_ns;
};

/* One label set, while it has profiles. */
struct store_folder {
	const char *name; /* in the store's directory: letters, digits, '.', '_', '-' only */
	struct labels labels;
	size_t n_profiles;
};

struct store_profile {
	uint64_t id; /* never 0; stays the same when the agent starts again */
	const struct store_folder *folder;
	enum profile_kind kind;
	uint64_t start_ns; /* wall clock */
	uint64_t duration_ns;
	uint64_t bytes; /* of disk: the size, rounded up to whole blocks */
};

/* 0; STORE_READ_ONLY, STORE_DISK_FULL or STORE_FAILED if the directory cannot be made or read, and
 * then errno says why; STORE_BUSY; -ENOMEM. A directory that can be read but not written opens; its
 * puts fail. */
int store_open(const struct store_opts *opts, struct store **ret);
void store_free(struct store *s);

/* Remove what is too old or too much, then write profile->pprof. Borrows @profile. The outcome is
 * counted here. 0, an outcome, -ENOMEM. */
int store_put(struct store *s, const struct profile *profile);
/* Remove what is older than max_age at @now_ns (wall clock), and above max_bytes: for a timer, so
 * that old profiles go when no new ones come. */
void store_trim(struct store *s, uint64_t now_ns);

/* Oldest first. What is returned is borrowed until the next call that is not const. */
size_t store_n_profiles(const struct store *s);
const struct store_profile *store_at(const struct store *s, size_t i);
/* NULL if there is none. */
const struct store_profile *store_find(const struct store *s, uint64_t id);
/* Append the file's bytes. 0, STORE_GONE, STORE_FAILED, STORE_TOO_LARGE (of @ret), -ENOMEM. */
int store_read(const struct store *s, uint64_t id, struct buf *ret);

/* A metric_collect_fn: podprof_store_bytes, podprof_store_files, podprof_store_profiles_total by
 * outcome, podprof_store_removed_total by reason. */
void store_collect(void *store, struct metric_sink *sink);

const char *store_outcome_name(int outcome);

#endif
