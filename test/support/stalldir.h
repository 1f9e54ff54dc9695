/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_STALLDIR_H
#define PODPROF_TEST_SUPPORT_STALLDIR_H

/*
 * A writable file system in memory whose server stops answering: a child process with /dev/fuse.
 * The mount is in a mount namespace of the test process. The end of the test, in any way, ends the
 * server and all requests.
 */

#include <stdint.h>

struct stalldir;

/* Mounts on the directory @path. Call before the first thread. */
struct stalldir *stalldir_new(const char *path);
/* Unmounts; nothing may be open there. */
void stalldir_free(struct stalldir *d);

/* From now on requests of this kind get no answer: "mkdir", "rename", ... */
void stalldir_stall(struct stalldir *d, const char *operation);
/* From now on each request of this kind is answered after @ms. */
void stalldir_delay(struct stalldir *d, const char *operation, unsigned int ms);
/* Answers them. With @error (an errno) the stalled ones fail. */
void stalldir_answer(struct stalldir *d, int error);
/* Requests without an answer at present. */
unsigned int stalldir_n_held(const struct stalldir *d);

#endif
