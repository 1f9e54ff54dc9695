/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROCMAP_SPACE_H
#define PODPROF_PROCMAP_SPACE_H

/*
 * The address space of one target: its executable mappings, each with its image, and the step from
 * a run-time pc to (image, vaddr). space_cache keeps them for the targets that were sampled.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "discovery/pid.h"
#include "procmap/image.h"

struct lives_event;
struct metric_sink;
struct root;
struct space;
struct space_cache;

/* @proc is borrowed and must outlive the cache. */
int space_cache_new(const struct root *proc, struct space_cache **ret);
void space_cache_free(struct space_cache *cache);

/* Where nobody tells which of its programs a process was running. */
#define SPACE_EXEC_ANY UINT64_MAX

/**
 * struct space_who - whose address space
 * @pid:      the process
 * @start_ns: its start, boot clock; 0 if only the ticks in @pid are known
 * @exec_id:  which of its programs (shared/sample.h): another number is another address space.
 *            SPACE_EXEC_ANY is the one that it runs now
 * @pc:       for SPACE_EXEC_ANY, one that it ran at, by which the programs of one that has gone are
 *            told apart; 0 if there is none
 */
struct space_who {
	struct pid_id pid;
	uint64_t start_ns;
	uint64_t exec_id;
	uint64_t pc;
};

/**
 * struct space_mapping - one executable mapping
 * @device, @inode: as /proc/PID/maps shows them
 * @image:          owned by the space
 */
struct space_mapping {
	uint64_t start;
	uint64_t limit;
	uint64_t offset;
	uint64_t device;
	uint64_t inode;
	struct image *image;
};

/**
 * space_cache_get() - the address space of a process, as far as it is known
 * @ret: borrowed until the next call for another process, sweep or invalidation
 *
 * The first call for a target reads its mappings, or puts them together from what the kernel told
 * if it has gone. Later ones look again where there is reason to doubt them.
 *
 * Return: 0 or -ENOMEM.
 */
int space_cache_get(struct space_cache *cache, const struct space_who *who, struct space **ret);

/**
 * space_resolve() - what a space has at @pc
 * @ret: always set on 0; owns a reference to the image
 *
 * A pc outside all known mappings makes it read them again, after a delay that grows with each time
 * that this has found nothing. Whatever cannot be found is the shared IMAGE_UNKNOWN image with @pc
 * as vaddr: that is an outcome, counted, and not an error.
 *
 * Return: 0 or -ENOMEM.
 */
int space_resolve(struct space_cache *cache, struct space *space, uint64_t pc, struct frame *ret);

/* Its mappings, ascending; borrowed until they change. */
const struct space_mapping *space_mappings(const struct space *space, size_t *ret_n);
/* Another number when they have changed. Never 0 once they were read. */
uint64_t space_version(const struct space *space);

/* Whether the process has gone, or has left this program. */
bool space_gone(const struct space *space);
/* Whether the kernel has told that its leader has ended; threads of it may go on. */
bool space_ended(const struct space *space);

/* Both in one, for a process that is not followed by events. */
int space_cache_resolve(struct space_cache *cache, const struct pid_id *id, uint64_t pc,
			struct frame *ret);
/* The kernel's image with @pc as vaddr; owns a reference. */
void space_cache_kernel(struct space_cache *cache, uint64_t pc, struct frame *ret);
/* Borrowed. */
struct image *space_cache_vdso(const struct space_cache *cache);

/* What the kernel tells of any process (procmap/lives.h). */
void space_cache_tell(struct space_cache *cache, const struct lives_event *event);
/* Some of it, of after @since_ns (boot clock), was lost. */
void space_cache_lost(struct space_cache *cache, uint64_t since_ns);
/* @fn is to tell all that has happened before it is called. Without it a process that executes
 * something, or ends and has its pid taken, while its mappings are being read, gets the wrong ones.
 */
typedef void (*space_catch_up_fn)(void *ctx);
void space_cache_follow(struct space_cache *cache, space_catch_up_fn fn, void *ctx);
/* The samples that come now were taken after that time (boot clock). */
void space_cache_since(struct space_cache *cache, uint64_t since_ns);
/* The one that comes now was taken then. */
void space_cache_at(struct space_cache *cache, uint64_t time_ns);
/* Forget a target's mappings. */
void space_cache_invalidate(struct space_cache *cache, const struct pid_id *id);
/* Once a window: drop targets that were not asked for since two calls ago, and images that nobody
 * refers to. */
void space_cache_sweep(struct space_cache *cache);
/* A metric_collect_fn: podprof_images by state, podprof_resolved_pcs by outcome, podprof_space_*.
 */
void space_cache_collect(void *cache, struct metric_sink *sink);
/* Memory held, for podprof_cache_bytes. */
size_t space_cache_bytes(const struct space_cache *cache);

#endif
