/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GOIMAGES_H
#define PODPROF_GOHEAP_GOIMAGES_H

/*
 * What each mapped file says of Go, remembered, so that a file is looked at once for all processes
 * that map it. Most are not Go, and of these no more is kept than that. For one thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "goheap/goruntime.h"

struct goimages;

/**
 * struct goimage - one file
 * @state:   what goruntime_file_read() says; GORUNTIME_NO_RUNTIME for what is no ELF file
 * @file:    NULL unless the state is GORUNTIME_OK or _UNKNOWN_LAYOUT
 * @is_bare: it is an ELF file without section headers, and not Go as it is: it may be packed
 * @machine: EM_* of an ELF file
 */
struct goimage {
	struct goruntime_id id;
	enum goruntime_state state;
	const struct goruntime_file *file;
	bool is_bare;
	uint16_t machine;
};

/* Rounds that what nobody asks for is kept: longer than it takes until a process's mappings are
 * looked at again (heapreaders.c). */
#define GOIMAGES_KEEP_ROUNDS 80

/* 0 or -ENOMEM. */
int goimages_new(struct goimages **ret);
void goimages_free(struct goimages *images);
DEFINE_CLEANUP(struct goimages *, goimages_freep, goimages_free);

/**
 * goimages_get() - what a file says of Go
 * @path_fd: names the file (O_PATH is enough); stays the caller's
 * @ret:     borrowed until the next call
 *
 * Return: 0; GORUNTIME_NO_RUNTIME for what cannot be read now; -ENOMEM.
 */
int goimages_get(struct goimages *images, int path_fd, const struct goimage **ret);

/* The end of a round. */
void goimages_sweep(struct goimages *images);
/* Memory held. */
size_t goimages_bytes(const struct goimages *images);
/* Files that were looked at, since the beginning. */
uint64_t goimages_looks(const struct goimages *images);

#endif
