/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_STATEFILE_H
#define PODPROF_METADATA_STATEFILE_H

/* Other programs' state on the host: files of JSON, of which a few members are wanted. */

#include <jansson.h>
#include <sys/types.h>

#include "base/root.h"

/* Bytes of a state file. Real ones have 10 to 100 KB; containerd itself takes larger ones. Reached:
 * `podprof_metadata_state_reads_total{outcome="invalid"}`. */
#define STATEFILE_BYTES_MAX (16u << 20)
/* Bytes of one wanted member of it, or element of an array. Reached:
 * `podprof_metadata_state_reads_total{outcome="invalid"}`. */
#define STATEFILE_VALUE_MAX (1u << 20)

/**
 * struct statefiles - the host's file system
 * @root:  its root
 * @owner: whose files are believed: whoever owns the root
 */
struct statefiles {
	struct root root;
	uid_t owner;
};

#define STATEFILES_INIT           \
	{                         \
		.root = ROOT_INIT \
	}

enum statefile_outcome {
	STATEFILE_OK = 0,
	STATEFILE_GONE,	  /* there is none */
	STATEFILE_DENIED, /* it may not be read */
	STATEFILE_ODD,	  /* no file, somebody else's, too large, or not JSON of that shape */
	STATEFILE_OUTCOME_MAX,
};

/* @path: of the host's root directory as it is seen from here: "/proc/1/root". 0, an outcome. */
int statefiles_open(const char *path, struct statefiles *ret);
void statefiles_deinit(struct statefiles *s);

/* One member; one element where the member is an array. 0, or whatever ends the reading. */
typedef int (*statefile_fn)(void *ctx, const char *key, const json_t *value);

/**
 * statefile_read() - the wanted members of a JSON object in a file
 * @path:   below the root, without a slash in front
 * @wanted: their names, NULL behind the last
 *
 * Nothing else of the file is kept, not even for a moment: it may hold secrets.
 *
 * Return: 0, an outcome, what @fn returned, -ENOMEM.
 */
int statefile_read(const struct statefiles *s, const char *path, const char *const *wanted,
		   statefile_fn fn, void *ctx);
/* The same for a file that is an array: @fn gets its elements, with "" for a key. */
int statefile_read_array(const struct statefiles *s, const char *path, statefile_fn fn, void *ctx);

/* Open a file that is believed. 0, an outcome, -errno. */
int statefile_open(const struct statefiles *s, const char *path, int *ret_fd);

const char *statefile_outcome_name(int outcome);

#endif
