/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GOCORE_H
#define PODPROF_GOHEAP_GOCORE_H

/* The Go runtimes in a core, together with the mapped files. goheap.h reads a core like a
 * process. */

#include <stddef.h>
#include <stdint.h>

#include "goheap/corefile.h"
#include "goheap/goruntimes.h"

struct frame;
struct gocore;
struct root;

/* The state of a mapped file. */
enum gocore_file_state {
	GOCORE_FILE_OK,
	GOCORE_FILE_MISSING, /* not a regular file, or open failed */
	GOCORE_FILE_OTHER,   /* its first bytes differ from the mapped file's */
};

/* Opened files with code; a browser has 300. Reached: addresses in the other files have no
 * names. */
#define GOCORE_FILES_MAX 1024

/**
 * struct gocore_opts
 * @fd:         the core; stays the caller's
 * @sysroot:    directory in which the mapped files are opened; borrowed
 * @executable: another file to try for each missing or different file; NULL: none
 */
struct gocore_opts {
	int fd;
	const struct root *sysroot;
	const char *executable;
};

/* 0, an outcome of corefile_open(), -errno. */
int gocore_open(const struct gocore_opts *opts, struct gocore **ret);
void gocore_free(struct gocore *core);

struct memory *gocore_memory(struct gocore *core);

/* The @i-th mapped file with code, by address: its path, borrowed, NULL at the end, and state. */
const char *gocore_file(const struct gocore *core, size_t i, enum gocore_file_state *ret_state);

/* As goruntimes_find(). */
int gocore_runtimes(struct gocore *core, struct goruntimes *ret);

/* A stacksnap_resolve_fn. */
int gocore_resolve(void *gocore, uint64_t pc, struct frame *ret);

#endif
