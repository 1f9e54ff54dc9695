// SPDX-License-Identifier: Apache-2.0
/*
 * Arrays that can be mapped (Linux 5.5) are written like memory. A table of a million rows reaches
 * the kernel with one copy; a system call for each row takes a second. Slabs are mapped only during
 * writing, or they would count as the agent's memory as well.
 *
 * An update of the map of maps shows a slab to the walkers at once. The call returns only after a
 * grace period of RCU (maybe_wait_bpf_programs() in kernel/bpf/syscall.c), 8 to 20 ms on an idle
 * node and up to 1.6 s on a busy one. Nobody uses the old value, which is none, so a thread waits
 * for the call, and the slab is made as soon as a look finds it in the map.
 *
 * A slab must match the inner map of the outer map's creation: the kernel compares type, sizes and
 * flags (bpf_map_meta_equal() and array_map_meta_equal()).
 */
#include "unwindtable/tablemaps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/thread.h"

/* Updates that wait for a grace period. Reached: the next slab waits for the oldest. */
#define UPDATES_MAX 8
/* Time between two looks for a slab. */
#define LOOK_NS	    (NSEC_PER_MSEC / 2)

/* One call, on a thread. */
struct update {
	bool joinable;
	pthread_t thread;
	int outer;
	int slab;
	uint32_t number;
	_Atomic int result;
	atomic_bool is_done;
};

enum { EXES, USES, RULES, RULE_RUNS, N_ARRAYS };

static const size_t array_bytes[N_ARRAYS] = {
	[EXES] = sizeof(struct table_exe) * TABLE_EXES,
	[USES] = sizeof(struct table_use) * TABLE_EXES,
	[RULES] = sizeof(struct unwind_rule) * TABLE_RULES,
	[RULE_RUNS] = sizeof(struct table_rule_run) * TABLE_RULE_RUNS,
};

struct tablemaps {
	int outer;
	int slabs[TABLE_SLABS]; /* descriptor + 1, 0: none */
	struct update updates[UPDATES_MAX];
	size_t n_updates; /* so far: the next one is this modulo UPDATES_MAX */
	void *arrays[N_ARRAYS];
};

DEFINE_CLEANUP(struct tablemaps *, tablemaps_freep, tablemaps_free);

static void *update_main(void *arg)
{
	struct update *u = arg;

	atomic_store(&u->result, bpf_map_update_elem(u->outer, &u->number, &u->slab, BPF_ANY));
	atomic_store(&u->is_done, true);
	return NULL;
}

static void update_join(struct update *u)
{
	if (u->joinable)
		pthread_join(u->thread, NULL);
	u->joinable = false;
}

static int update_start(struct update *u, int outer, uint32_t number, int slab)
{
	int r;

	update_join(u);
	*u = (struct update){.outer = outer, .slab = slab, .number = number};
	r = thread_start(NULL, update_main, u, &u->thread);
	u->joinable = !r;
	return r;
}

/* Waits until the walkers see the slab. */
static int show_slab(struct tablemaps *maps, uint32_t number, int slab)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	struct update *u = &maps->updates[maps->n_updates++ % UPDATES_MAX];
	int r = update_start(u, maps->outer, number, slab);
	uint32_t id;

	while (!r && !atomic_load(&u->is_done) && bpf_map_lookup_elem(maps->outer, &number, &id))
		nanosleep(&pause, NULL);
	return !r && atomic_load(&u->is_done) ? atomic_load(&u->result) : r;
}

/* On the thread of slabmaker.h. */
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
	r = show_slab(maps, number, fd);
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
	for (size_t i = 0; i < UPDATES_MAX; i++)
		update_join(&maps->updates[i]);
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
