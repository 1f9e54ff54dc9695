/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_MEMORY_H
#define PODPROF_GOHEAP_MEMORY_H

/*
 * The memory of another process, read with bounds and without stopping it. A reader takes a struct
 * memory and does not know whether it is a live process or a recorded image.
 */

#include <stddef.h>
#include <stdint.h>

#include "discovery/pid.h"

struct root;

enum memory_outcome {
	MEMORY_OK = 0,
	MEMORY_GONE, /* the process has left, or runs another program now */
	MEMORY_DENIED,
	MEMORY_UNMAPPED, /* nothing is mapped at some of the bytes, or it may not be read */
	MEMORY_OUTCOME_MAX,
};

/* @n bytes at @addr of the target belong to @to. */
struct memory_range {
	uint64_t addr;
	void *to;
	size_t n;
};

/* Ranges of one call: the kernel's limit for remote iovecs (UIO_MAXIOV). Reached: the next call. */
#define MEMORY_RANGES_MAX 1024

/* The smallest page size there is; a hole starts and ends at a multiple of it. */
#define MEMORY_PAGE_BYTES 4096u
/* Bytes that the copy of a large piece should be further into its page than the piece itself is
 * into its own: see memory_windows.c. */
#define MEMORY_SKEW_BYTES 64u

/**
 * struct memory - what a reader reads from
 * @read:    fill the ranges in order up to the first byte that is not there; *@ret is the number of
 *           bytes filled, of all ranges together. At most MEMORY_RANGES_MAX ranges. 0, an outcome
 *           other than MEMORY_UNMAPPED, -errno.
 * @check:   whether all that was read since the beginning belongs to the process that was meant:
 *           0, MEMORY_GONE, -errno
 * @n_calls: of @read, which are system calls where the process is a live one
 * @n_bytes: filled by them
 */
struct memory {
	int (*read)(struct memory *m, const struct memory_range *ranges, size_t n_ranges,
		    size_t *ret);
	int (*check)(struct memory *m);
	uint64_t n_calls;
	uint64_t n_bytes;
};

/* All of @n bytes. 0, MEMORY_*, -errno. */
int memory_read(struct memory *m, uint64_t addr, void *ret, size_t n);
/* What there is of @n bytes, from @addr on without a gap: at least one, or MEMORY_UNMAPPED. */
int memory_read_some(struct memory *m, uint64_t addr, void *ret, size_t n, size_t *ret_n);
/* All bytes of any number of ranges, MEMORY_RANGES_MAX a call. */
int memory_read_ranges(struct memory *m, const struct memory_range *ranges, size_t n);
int memory_check(struct memory *m);

/**
 * struct process_memory - a live process
 * @fd: its /proc/PID/mem, which stays with the address space it was opened on: after an exec or
 * exit reads through it end at once. That is how the same pid running another program is noticed.
 *
 * Needs what ptrace needs (CAP_SYS_PTRACE, or the same user and a permissive Yama), but does not
 * stop or mark the process. Where @proc is of another PID namespace than ours, no system call takes
 * the number that it shows, and all is read through @fd, one range at a time.
 */
struct process_memory {
	struct memory memory;
	const struct root *proc;
	struct pid_id id;
	int fd;
};

/* @proc is borrowed. 0, MEMORY_GONE, MEMORY_DENIED, -errno. */
int process_memory_init(struct process_memory *pm, const struct root *proc,
			const struct pid_id *id);
/* {.fd = -1} is fine. */
void process_memory_deinit(struct process_memory *pm);

const char *memory_outcome_name(int outcome);

#endif
