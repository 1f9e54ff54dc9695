// SPDX-License-Identifier: Apache-2.0
/*
 * Arrays that can be mapped (Linux 5.5) are written like memory. A table of a million rows reaches
 * the kernel with one copy; a system call for each row takes a second. Slabs are mapped only during
 * writing, or they would count as the agent's memory as well.
 *
 * A slab must match the inner map of the outer map's creation: the kernel compares type, sizes and
 * flags (bpf_map_meta_equal() and array_map_meta_equal()).
 */
#include "unwindtable/tablemaps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { EXES, USES, RULES, RULE_RUNS, N_ARRAYS };

static const size_t array_bytes[N_ARRAYS] = {
	[EXES] = sizeof(struct table_exe) * TABLE_EXES,
	[USES] = sizeof(struct table_use) * TABLE_EXES,
	[RULES] = sizeof(struct unwind_rule) * TABLE_RULES,
	[RULE_RUNS] = sizeof(struct table_rule_run) * TABLE_RULE_RUNS,
};

#define SLAB_BYTES ((size_t)TABLE_SLAB_PAGES * TABLE_PAGE_BYTES)

struct tablemaps {
	int outer;
	int slabs[TABLE_SLABS]; /* descriptor + 1, 0: none */
	void *arrays[N_ARRAYS];
};

DEFINE_CLEANUP(struct tablemaps *, tablemaps_freep, tablemaps_free);

static int make_slab(void *ctx, uint32_t number)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	struct tablemaps *maps = ctx;
	_cleanup_(close_fdp) int fd =
		bpf_map_create(BPF_MAP_TYPE_ARRAY, "table_slab", sizeof(uint32_t),
			       sizeof(struct table_page), TABLE_SLAB_PAGES, &opts);
	int r;

	if (fd < 0)
		return fd;
	r = bpf_map_update_elem(maps->outer, &number, &fd, BPF_ANY);
	if (r < 0)
		return r;
	maps->slabs[number] = take_fd(fd) + 1;
	return 0;
}

static struct table_page *map_pages(void *ctx, uint32_t number, uint32_t first, uint32_t n)
{
	struct tablemaps *maps = ctx;
	void *mem = mmap(NULL, (size_t)n * TABLE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			 maps->slabs[number] - 1, (off_t)first * TABLE_PAGE_BYTES);

	return mem == MAP_FAILED ? NULL : mem;
}

static void unmap_pages(void *ctx, struct table_page *mem, uint32_t n)
{
	(void)ctx;
	munmap(mem, (size_t)n * TABLE_PAGE_BYTES);
}

int tablemaps_new(const struct tablemaps_fds *fds, struct tablemaps **ret)
{
	const int arrays[N_ARRAYS] = {
		[EXES] = fds->exes,
		[USES] = fds->uses,
		[RULES] = fds->rules,
		[RULE_RUNS] = fds->rule_runs,
	};
	_cleanup_(tablemaps_freep) struct tablemaps *maps = calloc(1, sizeof(*maps));

	if (!maps)
		return -ENOMEM;
	maps->outer = fds->slabs;
	for (size_t i = 0; i < N_ARRAYS; i++) {
		void *mem = mmap(NULL, array_bytes[i], PROT_READ | PROT_WRITE, MAP_SHARED,
				 arrays[i], 0);

		if (mem == MAP_FAILED)
			return -errno;
		maps->arrays[i] = mem;
	}
	*ret = take_ptr(maps);
	return 0;
}

void tablemaps_free(struct tablemaps *maps)
{
	if (!maps)
		return;
	for (size_t i = 0; i < N_ARRAYS; i++)
		if (maps->arrays[i])
			munmap(maps->arrays[i], array_bytes[i]);
	for (size_t i = 0; i < TABLE_SLABS; i++)
		if (maps->slabs[i])
			close(maps->slabs[i] - 1);
	free(maps);
}

struct tables_memory tablemaps_memory(struct tablemaps *maps)
{
	return (struct tables_memory){
		.exes = maps->arrays[EXES],
		.uses = maps->arrays[USES],
		.rules = maps->arrays[RULES],
		.rule_runs = maps->arrays[RULE_RUNS],
		.slabs = {.ctx = maps, .make = make_slab, .map = map_pages, .unmap = unmap_pages},
	};
}

size_t tablemaps_fixed_bytes(void)
{
	size_t bytes = TABLE_SLABS * sizeof(void *);

	for (size_t i = 0; i < N_ARRAYS; i++)
		bytes += array_bytes[i];
	return bytes;
}
