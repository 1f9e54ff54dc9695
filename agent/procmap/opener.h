/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROCMAP_OPENER_H
#define PODPROF_PROCMAP_OPENER_H

/*
 * An opener has a thread. The thread opens the files of sampled processes, in batches, and closes
 * the files of unused images; or, in a second opener, reads the mapping lists of processes. A file
 * system without an answer (FUSE, NFS), or a process that does not release the lock of its address
 * space, can block the thread forever. Then the thread is abandoned, and another continues without
 * that file system or process.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nsec.h"
#include "base/worker.h"
#include "procmap/images.h"
#include "procmap/maps.h"

struct blocked;
struct loop;
struct metric_sink;
struct opener;

/* Files of one batch. The owners take turns, one batch each. Reached: the next batch has the other
 * files. */
#define OPENER_BATCH_MAX	64
/* Nanoseconds of one batch, checked between two files. Reached: a later batch has the other files.
 */
#define OPENER_BATCH_NS		(50 * NSEC_PER_MSEC)
/* Batches of files that the thread has, shared by owner: one runs, the others wait, so the thread
 * does not wait for the loop. Reached: further batches wait in the queues of the owners. */
#define OPENER_QUEUE_MAX	8
/* Files in these batches before another batch is added. Reached: as above. */
#define OPENER_FILES_MAX	64
/* The same for mapping lists, shared by owner: a list takes 100 us, and a turn of the loop 20 ms.
 * Reached: further lists wait in the queues of the owners. */
#define OPENER_LISTS_MAX	32
/* Mapping names of a process's anonymous code, each with an image. A process has one or two.
 * Reached: functions in code with a further name have no names if the process ends before the
 * profile is made. */
#define OPENER_MEMORY_MAX	8
/* Nanoseconds without progress before the thread is abandoned. A local file takes 20 us, the first
 * block of a file on a busy disk 100 ms, and a thread among 40 runnable ones gets the CPU within
 * 200 ms. */
#define OPENER_STUCK_NS		(2 * NSEC_PER_SEC)
/* Blocked threads of one opener. Each keeps a kernel stack and 8 MiB of address space. Reached: all
 * files wait until a thread returns, `podprof_file_opens_total{outcome="threads_full"}`; or all
 * lists, `podprof_mapping_list_reads_total{outcome="threads_full"}`. */
#define OPENER_BLOCKED_MAX	16
/* Threads blocked by one file system or process, and by one owner, so up to eight hostile owners
 * cannot stop the others. Reached: files of the file system or owner are slow,
 * `podprof_file_opens_total{outcome="device"}` and `{outcome="owner"}`; or lists of the process or
 * owner, `podprof_mapping_list_reads_total{outcome="process"}`. */
#define OPENER_BLOCKED_EACH_MAX 2
/* Nanoseconds without another attempt on a file system or process after a block; doubled with each
 * block. The first cooldown ends when the blocked thread returns. The others bind the blocked
 * owner, or all owners once two were blocked. An owner's cooldowns begin with the second block. */
#define OPENER_COOLDOWN_NS	(30 * NSEC_PER_SEC)
#define OPENER_COOLDOWN_LONG_NS (600 * NSEC_PER_SEC)
/* File systems, processes and owners with a cooldown. Reached: the oldest is forgotten. */
#define OPENER_CULPRITS_MAX	256

enum opener_outcome {
	OPENER_OK,
	OPENER_UNREADABLE, /* not ELF, gone or without rights */
	OPENER_HUNG,	   /* the thread was blocked by this file or list */
	OPENER_ORIGIN,	   /* the file system or the process has a cooldown */
	OPENER_OWNER,	   /* the owner has blocked too many threads */
	OPENER_THREADS,	   /* too many threads are blocked */
	OPENER_FULL,	   /* no room for the image; not for lists */
	OPENER_OUTCOME_MAX,
};

/**
 * struct open_request - one file
 * @image:   with an image_opening and the entry's path; a reference
 * @entry:   the mapping
 * @opened:  NULL if not done; else the result, a reference
 * @slow:    the file blocked the thread
 */
struct open_request {
	struct image *image;
	struct maps_entry entry;
	struct image *opened;
	bool slow;
};

/**
 * struct open_list - the mapping list of one process
 * @is_wanted: read it, instead of files
 * @of:        the process
 * @exec_id, @began_ns: as in images_way
 * @maps:      the result, owned. maps.only_prot and maps.inode are set by the caller
 * @memory:    @n_memory images of the process's anonymous code, with its perf map; references
 * @outcome:   of maps_read()
 * @done:      the list was read
 * @slow:      the list blocked the thread
 */
struct open_list {
	bool is_wanted;
	struct pid_id of;
	uint64_t exec_id;
	uint64_t began_ns;
	struct maps maps;
	struct image *memory[OPENER_MEMORY_MAX];
	size_t n_memory;
	int outcome;
	bool done;
	bool slow;
};

/**
 * struct open_batch - files of one process, or one list
 * @way: how to reach the process's files; for a list only the owner
 * @tag: the caller's
 * @n:   requests
 * @took_ns: set for done()
 * other members belong to the opener
 */
struct open_batch {
	struct images_way way;
	uint64_t tag[4];
	uint64_t took_ns;
	size_t n;
	struct open_request items[OPENER_BATCH_MAX];
	struct open_list list;
	bool is_sweep;
	struct work work;
	struct opener *opener;
	struct images *images; /* a reference */
	void (*hook)(void *hook_ctx, uint64_t pid, const struct maps_entry *entry);
	void *hook_ctx;
	struct open_batch *next;
	struct blocked *blocked;
	size_t slot;
	pthread_mutex_t lock; /* guards the members below, and the results of the requests */
	bool abandoned;
	uint64_t skip[OPENER_BLOCKED_MAX]; /* file systems that block a thread: no file is closed */
	size_t n_skip;
	size_t n_known;	 /* of @skip at the submission; from the later ones no file is opened */
	size_t at;	 /* the request in progress; n: none, a file is being closed */
	uint64_t origin; /* the file system in use, or the process */
};

/* NULL without memory. */
struct open_batch *open_batch_new(void);
/* Also releases the images of the requests. NULL is fine. */
void open_batch_free(struct open_batch *batch);

/**
 * struct opener_opts - borrowed pointers must outlive the opener
 * @lists:    for mapping lists, not files
 * @images:   the opener and its threads have references
 * @stuck_ns: 0: OPENER_STUCK_NS
 * @done:     called on the loop with a batch; the caller frees it. Some requests may be undone
 * @hook:     for tests: called on the thread before each file, and before a list of @pid, without
 *            an entry
 */
struct opener_opts {
	struct loop *loop;
	bool lists;
	struct images *images;
	uint64_t stuck_ns;
	void (*done)(void *ctx, struct open_batch *batch);
	void (*hook)(void *hook_ctx, uint64_t pid, const struct maps_entry *entry);
	void *hook_ctx;
	void *ctx;
};

/* 0 or -errno. */
int opener_new(const struct opener_opts *opts, struct opener **ret);
/* Waits a short time for the running batch. done() gets the other batches without results. */
void opener_free(struct opener *opener);

/* Whether another batch has room. */
bool opener_has_room(const struct opener *opener);
/* Takes @batch if the result is 0. 0 or WORKER_FULL. */
int opener_submit(struct opener *opener, struct open_batch *batch);
/* Whether a file of @owner on the file system @origin, or the list of the process @origin, must
 * wait. Returns OPENER_OK, or the reason and in @ret_until_ns the end of the wait (monotonic).
 * Counts a refusal.
 */
enum opener_outcome opener_refuses(struct opener *opener, uint64_t owner, uint64_t origin,
				   uint64_t *ret_until_ns);
/* Drops and closes the unused images. */
void opener_sweep(struct opener *opener);
/* Waits at most @timeout_ns for a batch and calls its done(). For the end of a program. */
void opener_wait(struct opener *opener, uint64_t timeout_ns);
/* Number of batches that the thread has. */
size_t opener_pending(const struct opener *opener);
/* Threads blocked by a file system or a process. */
unsigned int opener_n_blocked(const struct opener *opener);
/* podprof_file_opens by outcome and podprof_file_threads_blocked; or podprof_mapping_list_reads and
 * podprof_mapping_list_threads_blocked. */
void opener_collect(const struct opener *opener, struct metric_sink *sink);

#endif
