/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_SANDBOX_H
#define PODPROF_BASE_SANDBOX_H

/*
 * A process without rights, for a parser that a foreign file may take over. The process keeps its
 * open descriptors: it may read and map them, use memory, and end. It cannot open a file, make a
 * socket, a process or a thread, send a signal, or get executable memory.
 */

#include <stdint.h>

/**
 * struct sandbox_opts - resources; a process above one is killed, or has no more memory
 * @data_bytes:    private memory
 * @address_bytes: address space, with the mapped files
 * @cpu_s:         CPU time of the whole process
 * @open:          answers each attempt of a library to open a file, with a descriptor or -errno,
 *                 from a signal handler; NULL: -EPERM
 */
struct sandbox_opts {
	uint64_t data_bytes;
	uint64_t address_bytes;
	uint64_t cpu_s;
	int (*open)(void);
};

/**
 * sandbox_enter() - give up the rights of this process, for ever
 *
 * For a process with one thread, after its libraries are loaded. The kernel kills this process
 * first when memory is short. A refused system call fails with EPERM.
 *
 * Return: 0 or -errno; the process must end then.
 */
int sandbox_enter(const struct sandbox_opts *opts);

#endif
