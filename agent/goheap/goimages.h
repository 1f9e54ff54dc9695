/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GOIMAGES_H
#define PODPROF_GOHEAP_GOIMAGES_H

/*
 * A cache of Go information by mapped file, so that each file is read once for all processes with
 * the file. Most files are not Go; the cache stores nothing else for these files. For one thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/file_id.h"
#include "goheap/goruntime.h"

struct goimages;

/**
 * struct goimage - a file
 * @state:   result of goruntime_file_read(); GORUNTIME_NO_RUNTIME for a file that is not ELF
 * @file:    NULL unless the state is GORUNTIME_OK or _UNKNOWN_LAYOUT
 * @is_bare: an ELF file without section headers and without Go in it: it may be packed
 * @machine: EM_* of an ELF file
 */
struct goimage {
	struct file_id id;
	enum goruntime_state state;
	const struct goruntime_file *file;
	bool is_bare;
	uint16_t machine;
};

/* Rounds for which an unused entry is kept: longer than the time between two looks at a
 * process's mappings (goprofile/process.c). */
#define GOIMAGES_KEEP_ROUNDS 80

/* 0 or -ENOMEM. */
int goimages_new(struct goimages **ret);
void goimages_free(struct goimages *images);
DEFINE_CLEANUP(struct goimages *, goimages_freep, goimages_free);

/**
 * goimages_get() - get the Go information of a file
 * @path_fd: names the file (O_PATH is enough); stays the caller's
 * @ret:     borrowed until the next call
 *
 * Return: 0; GORUNTIME_NO_RUNTIME for a file that cannot be read now; -ENOMEM.
 */
int goimages_get(struct goimages *images, int path_fd, const struct goimage **ret);

/* End a round. */
void goimages_sweep(struct goimages *images);
/* Memory held. */
size_t goimages_bytes(const struct goimages *images);
/* Files that were read, since the beginning. */
uint64_t goimages_looks(const struct goimages *images);

#endif
