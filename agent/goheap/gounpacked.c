// SPDX-License-Identifier: Apache-2.0
/*
 * A packed executable is a small program and the compressed real program behind. The small
 * program unpacks the real one into anonymous memory, at its own addresses, and jumps there. The
 * file on disk is useless here, but the memory has everything that the runtime, and so podprof,
 * needs: line table, moduledata, code. The search is the same as in a file without section headers
 * (gofile/gomodule.h), with the pointers as relocated by the program itself.
 *
 * Only executables without section headers are searched, because packers omit section headers.
 * Other programs with anonymous code, such as interpreters with a JIT compiler, have section
 * headers.
 *
 * The search covers the mappings around the process's largest piece of anonymous code, because the
 * segments of a program are adjacent. A Go program's heap is far away.
 */
#include "goheap/gounpacked.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "elf/elffile.h"
#include "goheap/goruntime.h"
#include "procmap/image.h"
#include "procmap/maps.h"
#include "procmap/memory.h"

/* Minimum bytes of the code of a Go runtime. */
#define CODE_BYTES_MIN	    (256u << 10)
/* Bytes between two segments of a program: linkers align them to 2 MiB at most. */
#define GAP_BYTES	    (2u << 20)
/* Mappings of a program; loaders make six. Reached: the others are not searched. */
#define GOUNPACKED_MAPS_MAX 32

static bool is_memory(const struct maps_entry *e)
{
	return e->kind == MAPS_ANON && !(e->prot & MAPS_SHARED) && e->path[0] != '[';
}

/* The largest piece of code; n if there is none. */
static size_t find_code(const struct maps *maps)
{
	size_t found = maps->n;
	uint64_t bytes = CODE_BYTES_MIN - 1;

	for (size_t i = 0; i < maps->n; i++) {
		const struct maps_entry *e = &maps->items[i];

		if (!is_memory(e) || !(e->prot & MAPS_X) || e->limit - e->start <= bytes)
			continue;
		found = i;
		bytes = e->limit - e->start;
	}
	return found;
}

static bool are_near(const struct maps_entry *below, const struct maps_entry *above)
{
	return is_memory(below) && is_memory(above) && above->start - below->limit <= GAP_BYTES;
}

/* Collect the mappings around @code. Returns their number. */
static size_t gather(const struct maps *maps, size_t code,
		     struct elffile_segment ret[GOUNPACKED_MAPS_MAX])
{
	size_t first = code, n = 0;

	while (first > 0 && code - first < GOUNPACKED_MAPS_MAX / 2 &&
	       are_near(&maps->items[first - 1], &maps->items[first]))
		first--;
	for (size_t i = first; i < maps->n && n < GOUNPACKED_MAPS_MAX; i++) {
		const struct maps_entry *e = &maps->items[i];

		if (i > code && !are_near(e - 1, e))
			break;
		ret[n++] = (struct elffile_segment){
			.vaddr = e->start,
			.memsz = e->limit - e->start,
			.off = e->start,
			.filesz = e->limit - e->start,
			.flags = (e->prot & MAPS_R ? PF_R : 0u) | (e->prot & MAPS_W ? PF_W : 0u) |
				 (e->prot & MAPS_X ? PF_X : 0u),
		};
	}
	return n;
}

static int state_of_errno(int err)
{
	switch (root_outcome(err)) {
	case ROOT_GONE:
		return GORUNTIME_GONE;
	case ROOT_DENIED:
		return GORUNTIME_DENIED;
	default:
		return -err;
	}
}

/* Opens the memory before the mappings are read, so the memory belongs to the mappings or is
 * empty. */
int gounpacked_open(const struct root *proc, const struct pid_id *id, uint16_t machine,
		    struct elffile **ret)
{
	struct elffile_segment segments[GOUNPACKED_MAPS_MAX];
	_cleanup_(maps_deinit) struct maps maps = {0};
	_cleanup_(close_fdp) int fd = -1;
	size_t code;
	int r = process_memory_file(proc, id, O_RDONLY, &fd);

	if (r)
		return state_of_errno(-r);
	r = gostate_of_maps(maps_read(proc, id, &maps));
	if (r)
		return r;
	code = find_code(&maps);
	if (code == maps.n)
		return GORUNTIME_NO_RUNTIME;
	r = elffile_open_process(fd, machine, segments, gather(&maps, code, segments), ret);
	if (r)
		return r < 0 ? r : GORUNTIME_TOO_LARGE;
	fd = -1; /* taken */
	return GORUNTIME_OK;
}

int gounpacked_image(const struct root *proc, const struct pid_id *id, const struct goruntime *rt,
		     struct image **ret)
{
	struct image *image;
	int r = image_new(IMAGE_FILE, rt->name, &image);

	if (r)
		return r;
	r = gounpacked_open(proc, id, rt->file.machine, &image->file);
	if (r)
		image_unref(image);
	else
		*ret = image;
	return r;
}
