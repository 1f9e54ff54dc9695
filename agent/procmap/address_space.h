/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROCMAP_ADDRESS_SPACE_H
#define PODPROF_PROCMAP_ADDRESS_SPACE_H

/*
 * The executable mappings of one program of a target, each with an image, and the step from a
 * run-time pc to (image, vaddr). address_space_cache keeps the address spaces of sampled targets.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "discovery/pid.h"
#include "procmap/image.h"

struct address_space;
struct address_space_cache;
struct loop;
struct maps_entry;
struct metric_sink;
struct process_event;
struct root;

/* @proc is borrowed and must outlive the cache. */
int address_space_cache_new(const struct root *proc, struct address_space_cache **ret);
void address_space_cache_free(struct address_space_cache *cache);

/**
 * struct address_space_files - files are opened, and mapping lists read, on threads
 * (procmap/opener.h)
 * @opened: called on the loop after each batch for @pid: files are open or the list is read, or the
 *          attempt has failed. The address spaces of @pid may have changed
 * @stuck_ns, @hook, @hook_ctx: as in opener_opts
 */
struct address_space_files {
	struct loop *loop;
	void (*opened)(void *ctx, uint64_t pid);
	void *ctx;
	uint64_t stuck_ns;
	void (*hook)(void *hook_ctx, uint64_t pid, const struct maps_entry *entry);
	void *hook_ctx;
};

/* Before the first request. Then a thread reads the mappings of an address space
 * (address_space_reading()), and a mapping's image is an image_opening until another thread has
 * opened the file. Without this call all this is done at once, on the caller's thread. 0 or -errno.
 */
int address_space_cache_open_behind(struct address_space_cache *cache,
				    const struct address_space_files *files);
/* Mapping lists that are not read, and files that are wanted and not opened, of all processes. */
size_t address_space_cache_opening(const struct address_space_cache *cache);
/* Waits at most @timeout_ns for some of them. For the end of a program, after its loop. */
void address_space_cache_wait(struct address_space_cache *cache, uint64_t timeout_ns);

/* For callers without an exec id. */
#define ADDRESS_SPACE_EXEC_ANY UINT64_MAX

/**
 * struct address_space_who - selects an address space
 * @pid:      the process
 * @start_ns: its start, boot clock; 0 if only the ticks in @pid are known
 * @exec_id:  number of the program within the process (shared/sample.h). Each number has its own
 *            address space. ADDRESS_SPACE_EXEC_ANY selects the current program
 * @pc:       for ADDRESS_SPACE_EXEC_ANY, a sampled pc. It selects among the programs of an ended
 *            process; 0 if there is none
 * @owner:    the process's container or unit, for its share of the ceilings (base/share.h); 0:
 * no one's. It selects nothing
 */
struct address_space_who {
	struct pid_id pid;
	uint64_t start_ns;
	uint64_t exec_id;
	uint64_t pc;
	uint64_t owner;
};

/**
 * struct address_space_mapping - one executable mapping
 * @device, @inode: as in /proc/PID/maps
 * @image:          owned by the space
 */
struct address_space_mapping {
	uint64_t start;
	uint64_t limit;
	uint64_t offset;
	uint64_t device;
	uint64_t inode;
	struct image *image;
};

/**
 * address_space_cache_get() - the known part of a process's address space
 * @ret: borrowed until the next call for another process, sweep or invalidation
 *
 * The first call for a target reads its mappings from /proc. For an ended process the process
 * history supplies them. Later calls read again if there is reason to doubt the mappings.
 *
 * Return: 0 or -ENOMEM.
 */
int address_space_cache_get(struct address_space_cache *cache, const struct address_space_who *who,
			    struct address_space **ret);

/**
 * struct address_space_slow - what does not answer in a process
 * @owner:   as in struct address_space_who
 * @n_files: mapped files on silent file systems
 * @path:    one of these files, borrowed; NULL: none
 * @list:    its mapping list does not answer, and no mappings are known
 */
struct address_space_slow {
	uint64_t owner;
	uint64_t pid;
	size_t n_files;
	const char *path;
	bool list;
};

typedef void (*address_space_slow_fn)(void *ctx, const struct address_space_slow *slow);
/* Calls @fn for each process in which something does not answer. */
void address_space_cache_slow(const struct address_space_cache *cache, address_space_slow_fn fn,
			      void *ctx);

/**
 * address_space_resolve() - the image and vaddr at @pc
 * @ret: always set on 0; owns a reference to the image
 *
 * A pc in a file that is not opened yet wants that file. @ret then has an image with
 * image_opening, and frame_settle() gives the image later.
 *
 * A pc outside all known mappings causes a new read. The delay between such reads doubles after
 * each read without a result. An unresolved pc gives the shared IMAGE_UNKNOWN image with @pc as
 * vaddr, and so does a pc whose mapping changed within the possible time of the sample. This is a
 * counted outcome, not an error.
 *
 * Return: 0 or -ENOMEM.
 */
int address_space_resolve(struct address_space_cache *cache, struct address_space *space,
			  uint64_t pc, struct frame *ret);

/* The mappings, ascending; borrowed until the next change. */
const struct address_space_mapping *address_space_mappings(const struct address_space *space,
							   size_t *ret_n);
/* Changes with the mappings. Never 0 after the first read. */
uint64_t address_space_version(const struct address_space *space);

/* As in struct address_space_who, of the first request. */
uint64_t address_space_owner(const struct address_space *space);
/* Whether the process has gone, or has left this program. */
bool address_space_gone(const struct address_space *space);
/* Whether the process history has the leader's exit; other threads may still run. */
bool address_space_ended(const struct address_space *space);

/* Whether a thread reads the mapping list, and the present mappings must not be used: there are
 * none, or they are in doubt. Samples then wait for address_space_files.opened(). */
bool address_space_reading(const struct address_space *space);
/* Whether @pc is outside all mappings, and the list is being read again. May begin the read. */
bool address_space_seek(struct address_space_cache *cache, struct address_space *space,
			uint64_t pc);
/* For a stack without its outer part, because a caller was in no mapping. Reads the list again if
 * events tell of memory that no mapping has. True if a thread reads it. */
bool address_space_seek_memory(struct address_space_cache *cache, struct address_space *space);
/* address_space_reading(), or files are about to be opened, and nothing is known of some of them
 * (image_to_unwind()). */
bool address_space_opening(const struct address_space *space);
/* Wants the file around @pc, or address_space_seek(). True if the file will be opened and has no
 * guess (struct image_opening). */
bool address_space_want(struct address_space_cache *cache, struct address_space *space,
			uint64_t pc);

/* Get and resolve in a single call, for a process without events. */
int address_space_cache_resolve(struct address_space_cache *cache, const struct pid_id *id,
				uint64_t pc, struct frame *ret);
/* The process may have executed a program: the next such call reads its mappings again. */
void address_space_cache_doubt(struct address_space_cache *cache, const struct pid_id *id);
/* The kernel's image with @pc as vaddr; owns a reference. */
void address_space_cache_kernel(struct address_space_cache *cache, uint64_t pc, struct frame *ret);

/* Adds an event of any process (procmap/process_history.h). */
void address_space_cache_event(struct address_space_cache *cache,
			       const struct process_event *event);
/* The caller has made @child by fork(), and the child has executed nothing yet: as if the event of
 * its birth had come, which may have been before the first event. Only with events. */
void address_space_cache_child(struct address_space_cache *cache, const struct pid_id *child);
/* Some events after @since_ns (boot clock) were lost. */
void address_space_cache_lost(struct address_space_cache *cache, uint64_t since_ns);
/* @fn must deliver all pending events before it returns. Without @fn, an address space gets wrong
 * mappings if, during the read, the process executes a program, or ends and another process takes
 * the pid. */
typedef void (*address_space_catch_up_fn)(void *ctx);
void address_space_cache_follow(struct address_space_cache *cache, address_space_catch_up_fn fn,
				void *ctx);
/* The following samples were taken after @since_ns and not after @until_ns (boot clock). */
void address_space_cache_between(struct address_space_cache *cache, uint64_t since_ns,
				 uint64_t until_ns);
/* Every few seconds: drops processes without a request for 100 s (20 s if the leader has ended, 10
 * s if there is no list to read any more), and events that samples after @since_ns (boot clock) do
 * not need. */
void address_space_cache_expire(struct address_space_cache *cache, uint64_t since_ns);
/* Once a window: the same, drops images without references, and looks for mapping lists to read
 * again. */
void address_space_cache_sweep(struct address_space_cache *cache, uint64_t since_ns);
/* A metric_collect_fn: podprof_images by state, podprof_resolved_pcs by outcome,
 * podprof_address_space*. */
void address_space_cache_collect(void *cache, struct metric_sink *sink);
/* Memory held, for podprof_cache_bytes. */
size_t address_space_cache_bytes(const struct address_space_cache *cache);

#endif
