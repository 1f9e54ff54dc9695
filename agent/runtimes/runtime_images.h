/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_RUNTIME_IMAGES_H
#define PODPROF_RUNTIMES_RUNTIME_IMAGES_H

/* The files with a runtime that processes were seen with. For excerpts. */

#include <stdint.h>

struct address_space;
struct file_id;
struct runtime_image;
struct runtime_reader_kind;

struct runtime_images {
	const struct runtime_reader_kind *kind;
	struct runtime_image *items;
};

/* Forgets all files. */
void runtime_images_deinit(struct runtime_images *m);

/* Keeps a file; takes @probed, the probe's result of it. @target: of a process with it, or NULL. */
void runtime_images_add(struct runtime_images *m, const struct file_id *id, void *probed,
			const void *target);
/* The first mapped file of @space that is known, and its bias. NULL: there is none. */
const struct runtime_image *runtime_images_mapped(const struct runtime_images *m,
						  const struct address_space *space,
						  uint64_t *ret_bias);

/* The probe's result; borrowed. */
const void *runtime_image_probed(const struct runtime_image *image);
/* The walker's value for programs with the file; borrowed. NULL: not enough is known. */
const void *runtime_image_exe(const struct runtime_image *image);

#endif
