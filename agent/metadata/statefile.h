/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_STATEFILE_H
#define PODPROF_METADATA_STATEFILE_H

/* Other programs' JSON files on the host: reads a few members. */

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/nsec.h"
#include "base/root.h"

/* Bytes of a state file. Real files have 10 to 100 KB; containerd itself accepts larger ones.
 * Reached: `podprof_metadata_state_reads_total{outcome="invalid"}`. */
#define STATEFILE_BYTES_MAX (16u << 20)
/* Bytes of one wanted member, or of an element of an array. Reached:
 * `podprof_metadata_state_reads_total{outcome="invalid"}`. */
#define STATEFILE_VALUE_MAX (1u << 20)

/* Folders that are known to be missing. All sources together have 15. Reached: the file system is
 * asked for each further folder each time. */
#define STATEFILES_MISSING_MAX 16
/* Nanoseconds until a missing folder is looked for again: a runtime that has just been installed.
 */
#define STATEFILES_MISSING_NS  NSEC_PER_SEC

struct missing_folder;

/**
 * struct statefiles - the host's file system
 * @root:    the host's root directory
 * @owner:   the owner of the root, whose files are trusted
 * @missing: statefiles_miss()
 */
struct statefiles {
	struct root root;
	uid_t owner;
	struct missing_folder *missing;
};

#define STATEFILES_INIT           \
	{                         \
		.root = ROOT_INIT \
	}

enum statefile_outcome {
	STATEFILE_OK = 0,
	STATEFILE_GONE,	  /* no such file */
	STATEFILE_DENIED, /* not readable */
	STATEFILE_ODD, /* no regular file, another owner's, too large, or not the expected JSON */
	STATEFILE_OUTCOME_MAX,
};

/* @path: path of the host's root directory: "/proc/1/root". Call statefiles_deinit() after success.
 *        0, an outcome, -errno. */
int statefiles_open(const char *path, struct statefiles *ret);
void statefiles_deinit(struct statefiles *s);

/* Whether @folder, a constant, was missing within the last second. A node has one or two of the
 * runtimes whose files are looked for, and thousands of questions for containers that no runtime
 * knows. */
bool statefiles_miss(const struct statefiles *s, const char *folder);

/* Receives one member, or one element of an array member. 0 continues; any other result ends the
 * reading. */
typedef int (*statefile_fn)(void *ctx, const char *key, const json_t *value);

/**
 * statefile_read() - read the wanted members of a JSON object in a file
 * @path:   below the root, without a leading slash
 * @wanted: names, with NULL at the end
 *
 * No other part of the file is kept, not even for a moment, because the file may hold secrets.
 *
 * Return: 0, an outcome, the result of @fn, -ENOMEM.
 */
int statefile_read(const struct statefiles *s, const char *path, const char *const *wanted,
		   statefile_fn fn, void *ctx);
/* The same for a file with an array: @fn gets the elements, with the key "". */
int statefile_read_array(const struct statefiles *s, const char *path, statefile_fn fn, void *ctx);

/* Opens a trusted file. *@ret_fd: owned. 0, an outcome, -errno. */
int statefile_open(const struct statefiles *s, const char *path, int *ret_fd);

const char *statefile_outcome_name(int outcome);

#endif
