/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_CLOSE_FILES_H
#define PODPROF_BASE_CLOSE_FILES_H

#include <stdint.h>

/* File systems without an answer to a close. Reached: the other files stay open. */
#define CLOSE_FILES_BLOCKED_MAX 32

/**
 * close_files() - close all descriptors of the process, before its end
 * @stuck_ns: time without progress after which a file system is taken for silent
 *
 * For a process with a thread that cannot end: its files would stay open with it. A close waits for
 * the answer of the file system (FUSE_FLUSH), so threads of their own close the files, and the
 * other files of a silent file system stay open.
 */
void close_files(uint64_t stuck_ns);

#endif
