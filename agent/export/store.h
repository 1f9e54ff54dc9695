/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_STORE_H
#define PODPROF_EXPORT_STORE_H

/*
 * Profiles on disk for the node's own user: one folder for each label set, one file for each
 * profile, readable by any pprof tool:
 *
 *	DIR/shop_checkout_checkout-5d7c_app-1a2b3c4d/labels.json
 *	DIR/shop_checkout_checkout-5d7c_app-1a2b3c4d/20261121T113400.000Z_60s_cpu.pb.gz
 *
 * The store reads the directory again at the start of the agent, and touches only files with such
 * names. A thread of its own does all that waits for the disk (docs/design/store.md).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/labels.h"
#include "export/profile.h"
#include "export/store_name.h"

struct buf;
struct loop;
struct metric_sink;
struct queued_profile;
struct root;
struct store;

/* Files, regardless of --store-bytes: 100 bytes of memory each. The oldest are removed first,
 * counted as "count". 256 MiB of profiles of usual size (10 to 40 KB) are at most 26,000 files.
 * Reached: `podprof_store_removed_total{reason="count"}`. */
#define STORE_PROFILES_MAX     65536
/* Label sets. Further sets are refused until an older set has no profiles. Reached:
 * `podprof_store_profiles_total{outcome="too_many_folders"}`. */
#define STORE_FOLDERS_MAX      4096
/* Bytes of one file. Reached: `podprof_store_profiles_total{outcome="too_large"}`. */
#define STORE_PROFILE_SIZE_MAX (64u << 20)

enum store_outcome {
	STORE_OK = 0,
	STORE_DISK_FULL, /* ENOSPC, EDQUOT */
	STORE_READ_ONLY, /* EROFS, EACCES, EPERM */
	STORE_TOO_LARGE, /* larger than the whole store may be, or than STORE_PROFILE_SIZE_MAX */
	STORE_FOLDERS,	 /* STORE_FOLDERS_MAX label sets are there */
	STORE_FAILED,	 /* any other error of the file system, or no memory */
	STORE_BLOCKED,	 /* the disk does not answer, or too much waits for it */
	STORE_GONE,	 /* for reading: no such profile, or its file was removed */
	STORE_BUSY,	 /* opening: another process has the lock of this store */
	STORE_OUTCOME_MAX,
};

/**
 * struct store_opts - everything is borrowed and must outlive the store
 * @dir:           created if missing, with its parents
 * @waiting_bytes: memory of profiles that wait for the disk. Above: STORE_BLOCKED
 * @blocked_ns:    time without an answer of the disk, and from a busy lock to the next attempt;
 *                 0: WATCHDOG_BLOCKED_NS
 * @open_wait_ns:  how long store_open() waits for the disk; 0: DISK_THREAD_WAIT_NS
 * @ended:         a profile has its outcome (or -ENOMEM)
 * @changed:       the outcome differs from the one before; for the log. @holder: for STORE_BUSY:
 *                 the process with the lock; 0: unknown
 * @idle:          store_is_idle() may be true from now on
 *
 * The callbacks run on the loop's thread, @ended and @changed also inside of store_open() and
 * store_put(). Each may be NULL.
 */
struct store_opts {
	struct loop *loop;
	const char *dir;
	uint64_t max_bytes;
	uint64_t max_age_ns;
	uint64_t waiting_bytes;
	uint64_t blocked_ns;
	uint64_t open_wait_ns;
	void (*ended)(void *ctx, const struct profile *profile, int r);
	void (*changed)(void *ctx, enum store_outcome outcome, pid_t holder);
	void (*idle)(void *ctx);
	void *ctx;
};

/* A label set with profiles. */
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

/* 0; STORE_READ_ONLY, STORE_DISK_FULL or STORE_FAILED if the directory cannot be made or read;
 * -ENOMEM; -errno of a thread. A directory without write permission opens, but every profile fails.
 * Without an answer of the disk within @open_wait_ns, and while another process has the lock, the
 * result is 0: the store is empty until then, and profiles wait. */
int store_open(const struct store_opts *opts, struct store **ret);
/* Profiles that still wait are lost. Leaves the thread behind if the disk does not answer. */
void store_free(struct store *s);

/* Keeps a reference of @p until @ended. Before the write, expired and excess profiles are removed.
 * Each outcome is counted. */
void store_put(struct store *s, struct queued_profile *p);
/* A profile that is lost before store_put(), for want of memory: counted, and @ended. */
void store_lose(struct store *s, const struct profile *profile);
/* Remove profiles older than max_age at @now_ns (wall clock), and above max_bytes. Called by a
 * timer, so old profiles also expire without new profiles. */
void store_trim(struct store *s, uint64_t now_ns);
/* No profile is on the way to the disk, the disk does not answer, or the store is another
 * process's. */
bool store_is_idle(const struct store *s);
/* Profiles without an outcome: lost by store_free(). */
size_t store_n_waiting(const struct store *s);

/* The folder of this name, with profiles; NULL: there is none. Borrowed as below. */
const struct store_folder *store_find_folder(const struct store *s, const char *name);
/* Iterates over all folders, some without profiles: NULL to start, and at the end. */
const struct store_folder *store_next_folder(const struct store *s,
					     const struct store_folder *folder);
/* Oldest first. The result is borrowed until the next call without const. */
size_t store_n_profiles(const struct store *s);
const struct store_profile *store_at(const struct store *s, size_t i);
/* NULL if there is none. */
const struct store_profile *store_find(const struct store *s, uint64_t id);

/* The file of a profile, as a value: for reading on another thread, while the store changes. */
struct store_file {
	char folder[STORE_NAME_MAX];
	char name[STORE_NAME_MAX];
};

void store_file_of(const struct store_profile *profile, struct store_file *ret);
/* The directory, for store_read_file() on a thread that may outlive the store. 0; -ENOENT before
 * the disk has answered; -errno. */
int store_dup_dir(const struct store *s, struct root *ret);
/* Append the file's bytes, on any thread. May block as long as the disk does. 0, STORE_GONE,
 * STORE_FAILED, STORE_TOO_LARGE (of @ret), -ENOMEM. */
int store_read_file(const struct root *dir, const struct store_file *file, struct buf *ret);

/* A metric_collect_fn: podprof_store_bytes, podprof_store_files, podprof_store_busy,
 * podprof_store_profiles_total by outcome, podprof_store_removed_total by reason. */
void store_collect(void *store, struct metric_sink *sink);

const char *store_outcome_name(int outcome);

#endif
