/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GOCORE_H
#define PODPROF_GOHEAP_GOCORE_H

/* The Go runtimes in a core, with the files that were mapped: what goheap.h reads of a process can
 * be read of it, too. */

#include <stddef.h>
#include <stdint.h>

#include "goheap/corefile.h"
#include "goheap/goruntimes.h"

struct frame;
struct gocore;
struct root;

/* What became of a mapped file. */
enum gocore_file_state {
	GOCORE_FILE_OK,
	GOCORE_FILE_MISSING, /* no regular file, or not to be opened */
	GOCORE_FILE_OTHER,   /* it begins with other bytes than the one that was mapped */
};

/* Files with code that are opened; a browser has 300. What is above has no names. Reached: what is
 * in the others has no names. */
#define GOCORE_FILES_MAX 1024

/**
 * struct gocore_opts
 * @fd:         the core; stays the caller's
 * @sysroot:    below which the mapped files are looked for; borrowed
 * @executable: a file that is tried, too, where one is missing or another one; NULL: none
 */
struct gocore_opts {
	int fd;
	const struct root *sysroot;
	const char *executable;
};

/* 0, an outcome of corefile_open(), -errno. */
int gocore_open(const struct gocore_opts *opts, struct gocore **ret);
void gocore_free(struct gocore *core);

const struct corefile *gocore_corefile(const struct gocore *core);
struct memory *gocore_memory(struct gocore *core);

/* The @i-th mapped file with code, by address: its path, borrowed, NULL at the end, and state. */
const char *gocore_file(const struct gocore *core, size_t i, enum gocore_file_state *ret_state);

/* As goruntimes_find(). */
int gocore_runtimes(struct gocore *core, struct goruntimes *ret);

/* A stacksnap_resolve_fn. */
int gocore_resolve(void *gocore, uint64_t pc, struct frame *ret);

#endif
