/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROCMAP_ADDRESS_SPACE_H
#define PODPROF_PROCMAP_ADDRESS_SPACE_H

/*
 * The address space of one target: its executable mappings, each with its image, and the step from
 * a run-time pc to (image, vaddr). address_space_cache keeps them for the targets that were
 * sampled.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "discovery/pid.h"
#include "procmap/image.h"

struct address_space;
struct address_space_cache;
struct metric_sink;
struct process_event;
struct root;

/* @proc is borrowed and must outlive the cache. */
int address_space_cache_new(const struct root *proc, struct address_space_cache **ret);
void address_space_cache_free(struct address_space_cache *cache);

/* Where nobody tells which of its programs a process was running. */
#define ADDRESS_SPACE_EXEC_ANY UINT64_MAX

/**
 * struct address_space_who - whose address space
 * @pid:      the process
 * @start_ns: its start, boot clock; 0 if only the ticks in @pid are known
 * @exec_id:  which of its programs (shared/sample.h): another number is another address space.
 *            ADDRESS_SPACE_EXEC_ANY is the one that it runs now
 * @pc:       for ADDRESS_SPACE_EXEC_ANY, one that it ran at, by which the programs of one that has
 *            gone are told apart; 0 if there is none
 */
struct address_space_who {
	struct pid_id pid;
	uint64_t start_ns;
	uint64_t exec_id;
	uint64_t pc;
};

/**
 * struct address_space_mapping - one executable mapping
 * @device, @inode: as /proc/PID/maps shows them
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
 * address_space_cache_get() - the address space of a process, as far as it is known
 * @ret: borrowed until the next call for another process, sweep or invalidation
 *
 * The first call for a target reads its mappings, or puts them together from what the kernel told
 * if it has gone. Later ones look again where there is reason to doubt them.
 *
 * Return: 0 or -ENOMEM.
 */
int address_space_cache_get(struct address_space_cache *cache, const struct address_space_who *who,
			    struct address_space **ret);

/**
 * address_space_resolve() - what a space has at @pc
 * @ret: always set on 0; owns a reference to the image
 *
 * A pc outside all known mappings makes it read them again, after a delay that grows with each time
 * that this has found nothing. Whatever cannot be found is the shared IMAGE_UNKNOWN image with @pc
 * as vaddr: that is an outcome, counted, and not an error.
 *
 * Return: 0 or -ENOMEM.
 */
int address_space_resolve(struct address_space_cache *cache, struct address_space *space,
			  uint64_t pc, struct frame *ret);

/* Its mappings, ascending; borrowed until they change. */
const struct address_space_mapping *address_space_mappings(const struct address_space *space,
							   size_t *ret_n);
/* Another number when they have changed. Never 0 once they were read. */
uint64_t address_space_version(const struct address_space *space);

/* Whether the process has gone, or has left this program. */
bool address_space_gone(const struct address_space *space);
/* Whether the kernel has told that its leader has ended; threads of it may go on. */
bool address_space_ended(const struct address_space *space);

/* Both in one, for a process that is not followed by events. */
int address_space_cache_resolve(struct address_space_cache *cache, const struct pid_id *id,
				uint64_t pc, struct frame *ret);
/* The kernel's image with @pc as vaddr; owns a reference. */
void address_space_cache_kernel(struct address_space_cache *cache, uint64_t pc, struct frame *ret);
/* Borrowed. */
struct image *address_space_cache_vdso(const struct address_space_cache *cache);

/* What the kernel tells of any process (procmap/process_history.h). */
void address_space_cache_event(struct address_space_cache *cache,
			       const struct process_event *event);
/* Some of it, of after @since_ns (boot clock), was lost. */
void address_space_cache_lost(struct address_space_cache *cache, uint64_t since_ns);
/* @fn is to tell all that has happened before it is called. Without it a process that executes
 * something, or ends and has its pid taken, while its mappings are being read, gets the wrong
 * ones. */
typedef void (*address_space_catch_up_fn)(void *ctx);
void address_space_cache_follow(struct address_space_cache *cache, address_space_catch_up_fn fn,
				void *ctx);
/* The samples that come now were taken after that time (boot clock). */
void address_space_cache_since(struct address_space_cache *cache, uint64_t since_ns);
/* The one that comes now was taken then. */
void address_space_cache_at(struct address_space_cache *cache, uint64_t time_ns);
/* Forget a target's mappings. */
void address_space_cache_invalidate(struct address_space_cache *cache, const struct pid_id *id);
/* Once a window: drop targets that were not asked for since two calls ago, and images that nobody
 * refers to. */
void address_space_cache_sweep(struct address_space_cache *cache);
/* A metric_collect_fn: podprof_images by state, podprof_resolved_pcs by outcome,
 * podprof_address_space*. */
void address_space_cache_collect(void *cache, struct metric_sink *sink);
/* Memory held, for podprof_cache_bytes. */
size_t address_space_cache_bytes(const struct address_space_cache *cache);

#endif
