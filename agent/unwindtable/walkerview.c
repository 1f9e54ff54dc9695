// SPDX-License-Identifier: Apache-2.0
/*
 * The maps of a walker have these names and belong to the programs that share the walker's slabs.
 * The arrays and the slabs are mapped read-only, slabs in succession. So the walker's own lookups
 * (bpf/lib/mapping.bpf.h, table.bpf.h) run over them unchanged. The running podprof may change them
 * meanwhile; the lookups stay within these maps for any content (table.bpf.h).
 */
#include "unwindtable/walkerview.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "lib/mapping.bpf.h"
#include "lib/table_host.h"

/* Maps of one program that are searched; podprof's have 17. */
#define PROGRAM_MAPS 64
/* Running walkers that are searched: agents and recordings. */
#define WALKERS	     16
#define SLAB_BYTES   ((size_t)TABLE_SLAB_PAGES * TABLE_PAGE_BYTES)

enum part { RECORDS, SLABS, EXES, USES, RULES, RULE_RUNS, N_PARTS };

static const struct {
	const char *name; /* the kernel keeps 15 characters */
	uint32_t value_size;
	uint32_t entries;
} parts[N_PARTS] = {
	[RECORDS] = {"process_records", sizeof(struct process), 0},
	[SLABS] = {"table_slabs", sizeof(uint32_t), TABLE_SLABS},
	[EXES] = {"table_exes", sizeof(struct table_exe), TABLE_EXES},
	[USES] = {"table_uses", sizeof(struct table_use), TABLE_EXES},
	[RULES] = {"table_rules", sizeof(struct unwind_rule), TABLE_RULES},
	[RULE_RUNS] = {"table_rule_runs", sizeof(struct table_rule_run), TABLE_RULE_RUNS},
};

struct walkerview {
	int fds[N_PARTS];
	void *arrays[N_PARTS]; /* EXES and the following parts */
	uint8_t *slabs;	       /* room for all slabs */
	uint32_t n_slabs;
	struct process process;
	struct table_space space;
};

DEFINE_CLEANUP(struct walkerview *, walkerview_freep, walkerview_free);

static size_t part_bytes(enum part part)
{
	return (size_t)parts[part].value_size * parts[part].entries;
}

void walkerview_free(struct walkerview *v)
{
	if (!v)
		return;
	if (v->slabs)
		munmap(v->slabs, SLAB_BYTES * TABLE_SLABS);
	for (size_t i = 0; i < N_PARTS; i++) {
		if (v->arrays[i])
			munmap(v->arrays[i], part_bytes((enum part)i));
		close_fdp(&v->fds[i]);
	}
	free(v);
}

/* ---------------------------------------------------------------- finding */

/* The maps of one walker, by the kernel's ids; 0 is none. */
struct walker {
	uint32_t ids[N_PARTS];
};

struct walkers {
	struct walker items[WALKERS];
	size_t n;
	bool odd; /* a map has another form */
};

/* The part of map @id: N_PARTS if none; -errno. */
static int part_of_map(uint32_t id, bool *odd)
{
	_cleanup_(close_fdp) int fd = bpf_map_get_fd_by_id(id);
	struct bpf_map_info info = {0};
	uint32_t n = sizeof(info);

	if (fd < 0)
		return fd == -ENOENT ? N_PARTS : fd;
	if (bpf_obj_get_info_by_fd(fd, &info, &n))
		return -errno;
	for (int i = 0; i < N_PARTS; i++) {
		if (strcmp(info.name, parts[i].name) != 0)
			continue;
		if (info.value_size == parts[i].value_size &&
		    (!parts[i].entries || info.max_entries == parts[i].entries))
			return i;
		*odd = true;
	}
	return N_PARTS;
}

/* Programs with the same slabs belong to one walker. */
static void merge(struct walkers *all, const struct walker *part)
{
	struct walker *w = all->items;

	if (!part->ids[SLABS])
		return;
	while (w < all->items + all->n && w->ids[SLABS] != part->ids[SLABS])
		w++;
	if (w == all->items + WALKERS)
		return;
	all->n += w == all->items + all->n;
	for (size_t i = 0; i < N_PARTS; i++)
		if (part->ids[i])
			w->ids[i] = part->ids[i];
}

static int add_program(struct walkers *all, uint32_t id)
{
	_cleanup_(close_fdp) int fd = bpf_prog_get_fd_by_id(id);
	uint32_t maps[PROGRAM_MAPS], n = sizeof(struct bpf_prog_info);
	struct bpf_prog_info info = {.nr_map_ids = PROGRAM_MAPS,
				     .map_ids = (uint64_t)(uintptr_t)maps};
	struct walker w = {{0}};

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (bpf_obj_get_info_by_fd(fd, &info, &n))
		return -errno;
	for (uint32_t i = 0; i < info.nr_map_ids && i < PROGRAM_MAPS; i++) {
		int part = part_of_map(maps[i], &all->odd);

		if (part < 0)
			return part;
		if (part < N_PARTS)
			w.ids[part] = maps[i];
	}
	merge(all, &w);
	return 0;
}

/* WALKERVIEW_NONE for a walker that is ending or starting. */
static int view_of_walker(const struct walker *w, uint32_t tgid, struct walkerview **ret)
{
	_cleanup_(walkerview_freep) struct walkerview *v = calloc(1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < N_PARTS; i++)
		v->fds[i] = -1;
	for (size_t i = 0; i < N_PARTS; i++) {
		v->fds[i] = w->ids[i] ? bpf_map_get_fd_by_id(w->ids[i]) : -ENOENT;
		if (v->fds[i] < 0)
			return v->fds[i] == -ENOENT ? WALKERVIEW_NONE : v->fds[i];
	}
	if (bpf_map_lookup_elem(v->fds[RECORDS], &tgid, &v->process))
		return WALKERVIEW_UNKNOWN;
	*ret = take_ptr(v);
	return 0;
}

static int find(uint32_t tgid, struct walkerview **ret)
{
	struct walkers all = {.n = 0};
	uint32_t id = 0;
	int r = 0, found;

	while (!r && !bpf_prog_get_next_id(id, &id))
		r = add_program(&all, id);
	if (!r && errno != ENOENT)
		r = -errno;
	if (r)
		return r;
	found = all.odd ? WALKERVIEW_ODD : WALKERVIEW_NONE;
	for (size_t i = all.n; i-- > 0;) {
		r = view_of_walker(&all.items[i], tgid, ret);
		if (r <= 0)
			return r;
		found = r == WALKERVIEW_UNKNOWN ? r : found;
	}
	return found;
}

/* ---------------------------------------------------------------- mapping */

static int map_arrays(struct walkerview *v)
{
	for (size_t i = EXES; i < N_PARTS; i++) {
		void *mem =
			mmap(NULL, part_bytes((enum part)i), PROT_READ, MAP_SHARED, v->fds[i], 0);

		if (mem == MAP_FAILED)
			return -errno;
		v->arrays[i] = mem;
	}
	return 0;
}

/* The next slab, behind the others. WALKERVIEW_NONE if there is none. */
static int map_slab(struct walkerview *v)
{
	_cleanup_(close_fdp) int fd = -1;
	struct bpf_map_info info = {0};
	uint32_t id, n = sizeof(info);
	uint8_t *at = v->slabs + SLAB_BYTES * v->n_slabs;

	if (bpf_map_lookup_elem(v->fds[SLABS], &v->n_slabs, &id))
		return WALKERVIEW_NONE;
	fd = bpf_map_get_fd_by_id(id);
	if (fd < 0)
		return fd;
	if (bpf_obj_get_info_by_fd(fd, &info, &n))
		return -errno;
	if (info.value_size != TABLE_PAGE_BYTES || info.max_entries != TABLE_SLAB_PAGES)
		return WALKERVIEW_ODD;
	if (mmap(at, SLAB_BYTES, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		return -errno;
	v->n_slabs++;
	return 0;
}

static int map_slabs(struct walkerview *v)
{
	void *room = mmap(NULL, SLAB_BYTES * TABLE_SLABS, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int r = 0;

	if (room == MAP_FAILED)
		return -errno;
	v->slabs = room;
	while (!r && v->n_slabs < TABLE_SLABS)
		r = map_slab(v);
	return r == WALKERVIEW_NONE ? 0 : r;
}

int walkerview_open(uint32_t tgid, struct walkerview **ret)
{
	_cleanup_(walkerview_freep) struct walkerview *v = NULL;
	int r = find(tgid, &v);

	if (!r)
		r = map_arrays(v);
	if (!r)
		r = map_slabs(v);
	if (r)
		return r;
	v->space = (struct table_space){
		.table_pages = (const struct table_page *)(void *)v->slabs,
		.rules = v->arrays[RULES],
		.rule_runs = v->arrays[RULE_RUNS],
		.n_table_pages = (uint64_t)v->n_slabs * TABLE_SLAB_PAGES,
		.n_rules = TABLE_RULES,
		.n_rule_runs = TABLE_RULE_RUNS,
	};
	*ret = take_ptr(v);
	return 0;
}

/* ---------------------------------------------------------------- looking */

const struct process *walkerview_process(const struct walkerview *v)
{
	return &v->process;
}

struct process_mapping walkerview_mapping(const struct walkerview *v, uint32_t i)
{
	uint64_t number = (uint64_t)v->process.first + i;
	const struct table_page *e = table_page(&v->space, number / PROCESS_MAPPINGS_PER_PAGE);
	struct process_mapping ret = {0};

	if (e)
		memcpy(&ret, &e->bytes[number % PROCESS_MAPPINGS_PER_PAGE * sizeof(ret)],
		       sizeof(ret));
	return ret;
}

const struct table_exe *walkerview_exe(const struct walkerview *v, uint16_t number)
{
	const struct table_exe *exes = v->arrays[EXES];

	return number < TABLE_EXES ? &exes[number] : NULL;
}

uint64_t walkerview_frames(const struct walkerview *v, uint16_t number)
{
	const struct table_use *uses = v->arrays[USES];

	return number < TABLE_EXES ? uses[number].frames : 0;
}

int walkerview_lookup(const struct walkerview *v, uint64_t pc, struct walkerview_row *ret)
{
	struct mapping m = {0};
	const struct table_exe *exe;

	if (mapping_find(&v->space, v->process.first, v->process.n_mappings, pc, &m))
		return WALKERVIEW_UNKNOWN;
	*ret = (struct walkerview_row){
		.vaddr = pc - m.bias, .exe = (uint16_t)m.exe, .found = TABLE_OUTSIDE};
	exe = m.exe ? walkerview_exe(v, (uint16_t)m.exe) : NULL;
	if (exe)
		ret->found = table_find(&v->space, exe, ret->vaddr, &ret->rule);
	return 0;
}
