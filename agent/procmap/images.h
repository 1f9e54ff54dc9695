/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROCMAP_IMAGES_H
#define PODPROF_PROCMAP_IMAGES_H

/* All images of the node. Only this module makes images, so equal files share an image. Each
 * function is thread-safe. The table's lock is never held during I/O. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "discovery/pid.h"
#include "procmap/image.h"
#include "procmap/maps.h"

struct metric_sink;
struct root;
struct images;

/* Duplicates the descriptor of @proc. The caller owns one reference. */
int images_new(const struct root *proc, struct images **ret);
struct images *images_ref(struct images *table);
/* Frees the table with the last reference. NULL is fine. */
void images_unref(struct images *table);
/* As long as the table lives. Borrowed. */
const struct root *images_proc(const struct images *table);
/* The agent exits: from now on no file is closed (image_leave_open()). */
void images_leave_open(struct images *table);

/* Processes tried for a file of an ended process: four ancestors, the agent, the process itself.
 * Reached: -. */
#define IMAGES_LIKELY_MAX 6

/**
 * struct images_way - how to reach a process's files
 * @via_pid: number of the directory in /proc: the process, or a living thread of it (struct maps,
 *           via_pid); 0: the process has ended
 * @pid:     identity of the process, checked again after a file was found; {0}: unchecked
 * @exec_id: number of the program (address_space_who): the memory of each has an image of its own
 * @began_ns: boot clock; when the program began, by its exec; 0: with the process, or not known
 * @inode:   of its directory in /proc at an earlier check (pid_check_inode()), or 0
 * @parent:  a process with the same mappings: the parent, if it is older than all events; 0: none
 * @likely:  processes that probably have the same root directory, if they live; 0: no process
 * @owner:   the owner of the process, for the share of images (base/share.h); 0: no share
 */
struct images_way {
	uint64_t via_pid;
	struct pid_id pid;
	uint64_t exec_id;
	uint64_t began_ns;
	uint64_t inode;
	uint64_t parent;
	uint64_t likely[IMAGES_LIKELY_MAX];
	uint64_t owner;
};

/* Whether the image of a mapping requires a file. */
bool images_needs_file(const struct maps_entry *entry);

/**
 * images_of_entry() - the image behind a mapping of a living process
 * @ret: owns a reference; set if the result is 0, also for a file that could not be opened
 *
 * Return: 0 or -errno.
 */
int images_of_entry(struct images *table, const struct images_way *way,
		    const struct maps_entry *entry, struct image **ret);

/**
 * images_of_record() - the image behind a mapping of a process that may have ended
 * @entry: from the kernel's event about the mapping
 *
 * A file with a known device and inode needs no process. Any other file is opened by its path below
 * the root of a likely process.
 */
int images_of_record(struct images *table, const struct images_way *way,
		     const struct maps_entry *entry, struct image **ret);

/* The image of a mapping without a file (images_needs_file()): the vDSO, or the memory of the
 * program of way->pid under the mapping's name. Without a known process, all processes share the
 * image. Returns a reference. */
struct image *images_of_memory(struct images *table, const struct images_way *way,
			       const struct maps_entry *entry);
/* The same for any MAPS_ANON mapping of a living process. Opens the process's perf map, which may
 * block. @ret: a reference. */
void images_open_memory(struct images *table, const struct images_way *way,
			const struct maps_entry *entry, struct image **ret);
/* Opens the jitdump of the process, a file of its list @maps, for @n images of its memory. May
 * block. */
void images_open_jitdump(struct images *table, const struct images_way *way,
			 const struct maps *maps, struct image *const *memory, size_t n);

/* As images_of_entry(). If the process has ended, as images_of_record(). */
int images_find(struct images *table, const struct images_way *way, const struct maps_entry *entry,
		struct image **ret);

/* The image with the device and inode of @entry, without a look at the file. The file may have
 * changed since, or may be another file with these numbers (btrfs). Returns a reference, or NULL.
 */
struct image *images_guess(struct images *table, const struct maps_entry *entry);

/* The shared images of their kinds. Borrowed. */
struct image *images_kernel(const struct images *table);
struct image *images_unknown(const struct images *table);
/* Stands for every file above the limit of images; of kind IMAGE_UNKNOWN. */
struct image *images_full(const struct images *table);

/* Whether the ceiling and the share of @owner (0: no one's) allow one more image. Images that only
 * the table holds count until the next sweep. */
bool images_have_room(struct images *table, uint64_t owner);

/* Drops images that only the table holds, and closes their files. */
void images_sweep(struct images *table);
/* The same in two steps: images_evict_unused() evicts the images. images_take_unused() gives the
 * table's reference to one evicted image to the caller, who then closes the file. Skips files on
 * the @n file systems @devices; NULL: no image is left. */
void images_evict_unused(struct images *table);
struct image *images_take_unused(struct images *table, const uint64_t *devices, size_t n);
/* podprof_images by state: @n_opening and @n_slow are files that are not in the table. */
void images_collect(struct images *table, uint64_t n_opening, uint64_t n_slow,
		    struct metric_sink *sink);
size_t images_bytes(struct images *table);

#endif
