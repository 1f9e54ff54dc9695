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

struct elffile;
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

/* Units of work on the files of one container in a round: ninety of the largest programs seen. A
 * file that is begun within them is read to its end (GORUNTIME_WORK). Beyond: GORUNTIME_TOO_LARGE,
 * and the next round reads further files. */
#define GOIMAGES_WORK ((uint64_t)1 << 30)

/* Files looked at in the processes of one container in a round, remembered ones too: each is
 * opened, which takes 20 microseconds, and a container can have 1,024 new processes with 1,024
 * files each in every round. Files of a process with the mappings of before are not looked at.
 * Reached: the container's other processes are read in the next round,
 * `podprof_go_heap_reads_total{outcome="processes_over_limit"}`. */
#define GOIMAGES_FILES_MAX 65536

/* 0 or -ENOMEM. */
int goimages_new(struct goimages **ret);
void goimages_free(struct goimages *images);
DEFINE_CLEANUP(struct goimages *, goimages_freep, goimages_free);

/* Files are read for another container from now on: GOIMAGES_WORK and GOIMAGES_FILES_MAX begin
 * anew, as in a new cache. */
void goimages_begin(struct goimages *images);
/* Counts a file, before it is opened. */
void goimages_count(struct goimages *images);
/* Whether GOIMAGES_FILES_MAX are counted. */
bool goimages_full(const struct goimages *images);

/**
 * goimages_get() - get the Go information of a file
 * @path_fd: names the file (O_PATH is enough); stays the caller's
 * @ret:     borrowed until the next call
 *
 * Return: 0; GORUNTIME_NO_RUNTIME for a file that cannot be read now; GORUNTIME_TOO_LARGE without a
 * unit of GOIMAGES_WORK left; -ENOMEM.
 */
int goimages_get(struct goimages *images, int path_fd, const struct goimage **ret);
/* goruntime_file_read() of a file that is not remembered, within GOIMAGES_WORK. */
int goimages_read(struct goimages *images, const struct elffile *ef, struct goruntime_file *ret);

/* End a round. */
void goimages_sweep(struct goimages *images);
/* Memory held. */
size_t goimages_bytes(const struct goimages *images);
/* Files that were read, since the beginning. */
uint64_t goimages_looks(const struct goimages *images);

#endif
