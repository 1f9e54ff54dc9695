/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROCMAP_MEMORY_H
#define PODPROF_PROCMAP_MEMORY_H

/*
 * Bounded reads of another process's memory without stopping the process. Readers take a struct
 * memory, for a live process and a recorded image alike.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "discovery/pid.h"

struct root;

enum memory_outcome {
	MEMORY_OK = 0,
	MEMORY_GONE, /* the process has ended or runs another program */
	MEMORY_DENIED,
	MEMORY_UNMAPPED, /* some bytes are not mapped or not readable */
	MEMORY_OUTCOME_MAX,
};

/* @n bytes at @addr of the target, copied to @to. */
struct memory_range {
	uint64_t addr;
	void *to;
	size_t n;
};

/* Ranges of a call: the kernel's limit for remote iovecs (UIO_MAXIOV). Reached: another call. */
#define MEMORY_RANGES_MAX 1024

/* The smallest page size of any machine. Holes start and end at multiples of it. */
#define MEMORY_PAGE_BYTES 4096u
/* Bytes. A copy of a large piece should start this much further into its page than the original:
 * see memory_windows.c. */
#define MEMORY_SKEW_BYTES 64u

/**
 * struct memory - a source of reads
 * @read:    fill the ranges in order up to the first missing byte; *@ret is the total number of
 *           filled bytes. At most MEMORY_RANGES_MAX ranges. 0, an outcome other than
 *           MEMORY_UNMAPPED, -errno.
 * @check:   whether everything read so far belongs to the intended process: 0, MEMORY_GONE, -errno
 * @forget:  of a cache: the next reads are of the memory of then; NULL: there is no cache
 * @beneath: of a cache: the other memory; NULL: there is no cache
 * @n_calls: calls of @read; for a live process these are system calls
 * @end_calls: of @n_calls, from which on nothing is readable; 0: there is no such number
 * @n_bytes: filled by @read
 */
struct memory {
	int (*read)(struct memory *m, const struct memory_range *ranges, size_t n_ranges,
		    size_t *ret);
	int (*check)(struct memory *m);
	void (*forget)(struct memory *m);
	struct memory *beneath;
	uint64_t n_calls;
	uint64_t end_calls;
	uint64_t n_bytes;
};

/* All of @n bytes. 0, MEMORY_*, -errno. */
int memory_read(struct memory *m, uint64_t addr, void *ret, size_t n);
/* The available part of @n bytes from @addr on, without a gap: at least 1 byte, or
 * MEMORY_UNMAPPED. */
int memory_read_some(struct memory *m, uint64_t addr, void *ret, size_t n, size_t *ret_n);
/* All bytes of any number of ranges, MEMORY_RANGES_MAX a call. */
int memory_read_ranges(struct memory *m, const struct memory_range *ranges, size_t n);
int memory_check(struct memory *m);
/* Of a cache (memory_cache.h): the next reads are of the memory of then. Nothing for another
 * memory. */
void memory_forget(struct memory *m);
/* The memory beneath a cache; another memory itself. */
struct memory *memory_beneath(struct memory *m);

/**
 * struct process_memory - a live process
 * @fd: its /proc/PID/mem, bound to the address space at the time of opening: after an exec or exit,
 *      reads return end of file at once. This is how a change of program under the same pid is
 *      detected.
 *
 * Needs the rights of ptrace (CAP_SYS_PTRACE, or the same user and a permissive Yama), but does not
 * stop or mark the process. If @proc belongs to another PID namespace than podprof's, no system
 * call accepts its pids. Then all reads go through @fd, one range at a time.
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
/* The same without a check of the process, for a caller that checks at the end anyway
 * (memory_check()): until then the reads may be of another process. @is_ours: pid_is_ours(@proc),
 * which is for a caller with many processes to keep. */
int process_memory_open(struct process_memory *pm, const struct root *proc, const struct pid_id *id,
			bool is_ours);
/* The descriptor alone, owned by the caller. @access: O_RDONLY or O_RDWR. 0 or -errno of openat(2),
 * for root_outcome(). */
int process_memory_file(const struct root *proc, const struct pid_id *id, int access, int *ret_fd);
/* {.fd = -1} is valid. */
void process_memory_deinit(struct process_memory *pm);

#endif
