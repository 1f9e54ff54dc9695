// SPDX-License-Identifier: Apache-2.0
/*
 * The programs of bpf/ are compiled into a skeleton. The skeleton contains the ELF object, so
 * podprof reads no file. Libbpf adapts the object to the running kernel by BTF. After the load
 * libbpf still has all instructions and types, 1.5 MB that nothing needs: struct bpfobj keeps
 * descriptors of its own, and libbpf's object is closed.
 *
 * Locked memory: kernels before 5.11 charge maps to RLIMIT_MEMLOCK, later kernels to the memory
 * cgroup. Libbpf 1.x tests for this and raises the limit only on the old kernels. A refusal (no
 * CAP_SYS_RESOURCE) is not an error there, because the maps may still fit.
 */
#include "profile/bpfobj.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/root.h"
#include "base/strview.h"
#include "profile/kernel.h"
#include "profile/verifier.h"
#include "shared/stack_dump.h"
#include "shared/offcpu.h"
#include "shared/sample.h"
#include "shared/cgroup_sampling.h"
#include "shared/pid_filter.h"
#include "podprof.skel.h"

/* Programs that somebody attaches. The arrays of programs keep all others. */
enum bpfobj_program {
	BPFOBJ_ONCPU_SAMPLE,
	BPFOBJ_OFFCPU_SWITCH,
	BPFOBJ_FORK,
	BPFOBJ_EXIT,
	BPFOBJ_CGROUP_MADE,
	BPFOBJ_PROGRAMS,
};

/* The parts as the object's users get them. Borrows the descriptors and mapped memory. */
struct bpfobj_parts {
	struct bpfobj_oncpu oncpu;
	struct bpfobj_offcpu offcpu;
	struct bpfobj_pid_filter pid_filter;
	struct bpfobj_cgroup_sampling cgroup_sampling;
	struct bpfobj_cgroup_events cgroup_events;
	struct bpfobj_stack_dumps stack_dumps;
	struct bpfobj_unwind unwind;
	int oncpu_programs; /* arrays of programs */
	int offcpu_programs;
};

struct bpfobj {
	atomic_uint refs;
	int *maps; /* descriptors in the object's order; -1: not made */
	size_t n_maps;
	int programs[BPFOBJ_PROGRAMS];
	struct podprof_bpf__bss *bss; /* mapped */
	size_t bss_bytes;
	struct bpfobj_parts parts;
	struct verifier verifier;
	uint64_t load_ns;
	uint32_t n_cpus; /* possible */
	bool has_loop;	 /* the walk is bpf_loop()'s */
	bool has_offcpu;
	bool has_dumps;
	bool lacks_dumps;
	int runtime_maps[FRAME_RUNTIME_MAX]; /* bpfobj_unwind() */
	int exes_maps[FRAME_RUNTIME_MAX];
	struct kernel_version version;
};

DEFINE_CLEANUP(struct bpfobj *, bpfobj_unrefp, bpfobj_unref);

/* ---------------------------------------------------------------- loading */

/* A map and its size; 0: the map is not made. */
struct map_size {
	struct bpf_map *map;
	uint32_t entries;
};

static int set_sizes_of(const struct map_size *sizes, size_t n)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < n; i++) {
		r = bpf_map__set_autocreate(sizes[i].map, sizes[i].entries);
		if (r >= 0 && sizes[i].entries)
			r = bpf_map__set_max_entries(sizes[i].map, sizes[i].entries);
	}
	return r;
}

static int set_sizes(struct podprof_bpf *skel, const struct bpfobj_opts *opts)
{
	const struct bpfobj_sizes *off = &opts->offcpu;
	const uint32_t off_one = off->small ? 1 : 0;
	const struct map_size sizes[] = {
		{skel->maps.oncpu_small_0, opts->oncpu.small},
		{skel->maps.oncpu_small_1, opts->oncpu.small},
		{skel->maps.oncpu_large_0, opts->oncpu.large},
		{skel->maps.oncpu_large_1, opts->oncpu.large},
		{skel->maps.cgroup_sampling,
		 opts->settings.scope == SETTINGS_SCOPE_PROCESSES ? 1 : CGROUP_SAMPLING_ENTRIES},
		{skel->maps.pid_filter_ids,
		 opts->settings.scope == SETTINGS_SCOPE_PROCESSES ? PID_FILTER_ENTRIES : 1},
		{skel->maps.oncpu_deep_0, opts->oncpu.deep},
		{skel->maps.oncpu_deep_1, opts->oncpu.deep},
		{skel->maps.oncpu_rooms, opts->n_cpus},
		{skel->maps.oncpu_objects, 0}, /* with the walks that have_objects() */
		{skel->maps.offcpu_objects, 0},
		/* as many names as there may be stacks; the verifier removes the unused code */
		{skel->maps.sample_names,
		 (opts->settings.thread_names + opts->settings.task_names) *
			 (opts->oncpu.small + off->small)},
		/* kernels want whole pages */
		{skel->maps.stack_dumps,
		 opts->stack_dump_bytes ? opts->stack_dump_bytes : (uint32_t)sysconf(_SC_PAGESIZE)},
		{skel->maps.stack_dump_processes,
		 opts->stack_dump_bytes ? STACK_DUMP_PROCESS_SLOTS : 1},
		{skel->maps.offcpu_small_0, off->small},
		{skel->maps.offcpu_small_1, off->small},
		{skel->maps.offcpu_large_0, off->large},
		{skel->maps.offcpu_large_1, off->large},
		{skel->maps.offcpu_deep_0, off->deep},
		{skel->maps.offcpu_deep_1, off->deep},
		{skel->maps.offcpu_lost_0, off_one * SAMPLE_LOST_MAX},
		{skel->maps.offcpu_lost_1, off_one * SAMPLE_LOST_MAX},
		{skel->maps.off_cpu_small, off->small},
		{skel->maps.off_cpu_large, off->large},
		{skel->maps.off_cpu_deep, off_one * OFF_CPU_DEEP},
		{skel->maps.off_cpu_counts, off_one * OFF_CPU_SLOTS},
		{skel->maps.offcpu_rooms, off_one * opts->n_cpus},
		{skel->maps.offcpu_stats, off_one},
		{skel->maps.offcpu_scratch, off_one},
		{skel->maps.offcpu_samplers, off_one},
		{skel->maps.offcpu_programs, off_one * SETTINGS_PROGRAMS},
		{skel->maps.offcpu_dump_scratch, opts->stack_dump_bytes ? off_one : 0},
	};

	return set_sizes_of(sizes, array_size(sizes));
}

/* The map of a runtime's processes, python_processes and so on. NULL: the runtime has none. */
static struct bpf_map *runtime_map(const struct podprof_bpf *skel, uint32_t runtime)
{
#define MAP_NAME(NAME, name) [FRAME_RUNTIME_##NAME] = #name "_processes",
	static const char *const names[FRAME_RUNTIME_MAX] = {FRAME_RUNTIMES(MAP_NAME)};

	return names[runtime] ? bpf_object__find_map_by_name(skel->obj, names[runtime]) : NULL;
}

/* The map of the programs with a runtime, python_exes and so on; likewise. Without a runtime:
 * exe_dumps. */
static struct bpf_map *exes_map(const struct podprof_bpf *skel, uint32_t runtime)
{
#define EXES_NAME(NAME, name) [FRAME_RUNTIME_##NAME] = #name "_exes",
	static const char *const names[FRAME_RUNTIME_MAX] = {[FRAME_RUNTIME_NONE] = "exe_dumps",
							     FRAME_RUNTIMES(EXES_NAME)};

	return names[runtime] ? bpf_object__find_map_by_name(skel->obj, names[runtime]) : NULL;
}

/* Since 6.1 (ee53cbfb1ebf) programs of interrupts may read a hash with memory on demand. */
static int set_on_demand(const struct podprof_bpf *skel, const struct kernel_version *v)
{
	int r = 0;

	if (!v->major || kernel_is_before(v, 6, 1))
		return 0;
	for (uint32_t i = 0; r >= 0 && i < FRAME_RUNTIME_MAX; i++) {
		struct bpf_map *map = runtime_map(skel, i), *exes = exes_map(skel, i);

		if (map)
			r = bpf_map__set_map_flags(map, BPF_F_NO_PREALLOC);
		if (r >= 0 && exes)
			r = bpf_map__set_map_flags(exes, BPF_F_NO_PREALLOC);
	}
	return r;
}

/* A program of a language runtime: a walk with its step, or a stack dump with its excerpt. */
struct runtime_walk {
	uint32_t runtime;
	struct bpf_program *program; /* NULL: end of the list */
	bool looped;		     /* by bpf_loop() */
	bool offcpu;
	uint32_t dump; /* slot of the dump; 0: a walk */
};

struct runtime_walks {
	struct runtime_walk items[4 * FRAME_RUNTIME_MAX + 2];
};

/* In the order in which they start to run: frames of a walk without excerpts may never get names,
 * and a busy node can take long between two updates of the array. */
static struct runtime_walks runtime_walks(const struct podprof_bpf *skel)
{
#define WALKS_OF(NAME, name)                                                            \
	{FRAME_RUNTIME_##NAME, skel->progs.oncpu_walk_##name, true, false, 0},          \
		{FRAME_RUNTIME_##NAME, skel->progs.oncpu_part_##name, false, false, 0}, \
		{FRAME_RUNTIME_##NAME, skel->progs.offcpu_walk_##name, true, true, 0},  \
		{FRAME_RUNTIME_##NAME, skel->progs.offcpu_part_##name, false, true, 0},
	return (struct runtime_walks){{{FRAME_RUNTIME_PYTHON, skel->progs.oncpu_dump_python, false,
					false, SETTINGS_DUMP_PYTHON},
				       {FRAME_RUNTIME_PYTHON, skel->progs.offcpu_dump_python, false,
					true, SETTINGS_DUMP_PYTHON},
				       FRAME_RUNTIMES(WALKS_OF){0}}};
}

/* Unused programs are not loaded, including those for the other kind of kernel. */
static int set_programs(const struct podprof_bpf *skel, const struct bpfobj_opts *opts,
			bool has_loop)
{
	const bool follow = opts->settings.scope == SETTINGS_SCOPE_PROCESSES;
	const bool offcpu = opts->offcpu.small;
	const struct {
		struct bpf_program *program;
		bool load;
	} programs[] = {
		{skel->progs.oncpu_walk, has_loop},
		{skel->progs.oncpu_walk_part, !has_loop},
		{skel->progs.oncpu_dump, opts->stack_dump_bytes},
		{skel->progs.offcpu_switch, offcpu},
		{skel->progs.offcpu_dump, offcpu && opts->stack_dump_bytes},
		{skel->progs.offcpu_walk, offcpu && has_loop},
		{skel->progs.offcpu_walk_part, offcpu && !has_loop},
		{skel->progs.pid_filter_fork, follow},
		{skel->progs.pid_filter_exit, follow},
		{skel->progs.cgroup_made, !follow},
	};
	const struct runtime_walks walks = runtime_walks(skel);
	int r = 0;

	for (size_t i = 0; !r && i < array_size(programs); i++)
		r = bpf_program__set_autoload(programs[i].program, programs[i].load);
	for (const struct runtime_walk *walk = walks.items; !r && walk->program; walk++)
		r = bpf_program__set_autoload(walk->program, false);
	return r;
}

/* The kernel waits for running programs after each call, some 10 ms: one call for all CPUs, where
 * the kernel has it for arrays of maps. */
static int put_rooms(const struct bpf_map *rooms, const uint32_t *keys, const int *fds, uint32_t n)
{
	uint32_t n_done = n;
	int r = 0;

	if (bpf_map_update_batch(bpf_map__fd(rooms), keys, fds, &n_done, NULL) == 0)
		return 0;
	for (uint32_t i = 0; !r && i < n; i++)
		r = bpf_map_update_elem(bpf_map__fd(rooms), &keys[i], &fds[i], BPF_ANY);
	return r;
}

/* Give each CPU its room of @bytes for walks. @rooms, the array of arrays, keeps references. */
static int make_rooms(const struct bpf_map *rooms, uint32_t n_cpus, uint32_t bytes)
{
	_cleanup_(freep) uint32_t *keys = calloc(n_cpus, sizeof(*keys));
	_cleanup_(freep) int *fds = calloc(n_cpus, sizeof(*fds));
	uint32_t n = 0;
	int r = keys && fds ? 0 : -ENOMEM;

	for (; !r && n < n_cpus; n++) {
		keys[n] = n;
		fds[n] = bpf_map_create(BPF_MAP_TYPE_ARRAY, NULL, sizeof(uint32_t), bytes, 1, NULL);
		if (fds[n] < 0) {
			r = fds[n];
			break;
		}
	}
	if (!r)
		r = put_rooms(rooms, keys, fds, n);
	for (uint32_t i = 0; i < n; i++)
		close(fds[i]);
	return r;
}

/* A target of tail calls. */
static int chain(int programs, uint32_t slot, const struct bpf_program *to)
{
	const int fd = bpf_program__fd(to);

	return bpf_map_update_elem(programs, &slot, &fd, BPF_ANY);
}

/* Fill the program arrays with the walks and dumps for this kernel. */
static int chain_all(const struct podprof_bpf *skel, const struct bpfobj_opts *opts, bool has_loop)
{
	int r = chain(bpf_map__fd(skel->maps.oncpu_programs), SETTINGS_WALK,
		      has_loop ? skel->progs.oncpu_walk : skel->progs.oncpu_walk_part);

	if (r >= 0 && opts->stack_dump_bytes)
		r = chain(bpf_map__fd(skel->maps.oncpu_programs), SETTINGS_DUMP,
			  skel->progs.oncpu_dump);
	if (r < 0 || !opts->offcpu.small)
		return r;
	if (opts->stack_dump_bytes)
		r = chain(bpf_map__fd(skel->maps.offcpu_programs), SETTINGS_DUMP,
			  skel->progs.offcpu_dump);
	if (r < 0)
		return r;
	return chain(bpf_map__fd(skel->maps.offcpu_programs), SETTINGS_WALK,
		     has_loop ? skel->progs.offcpu_walk : skel->progs.offcpu_walk_part);
}

/* ---------------------------------------------------------------- what stays after the load */

/* -1: the map is not made. From 1.4 on, libbpf has a descriptor for such a map too, of no map. */
static int map_fd(const struct bpf_map *map)
{
	return bpf_map__autocreate(map) ? bpf_map__fd(map) : -1;
}

/* A descriptor of our own; -1 stays -1. -errno. */
static int keep_fd(int fd, int *ret)
{
	*ret = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return fd >= 0 && *ret < 0 ? -errno : 0;
}

static int keep_maps(struct bpfobj *obj, const struct podprof_bpf *skel)
{
	struct bpf_map *map;
	size_t n = 0;
	int r = 0;

	bpf_object__for_each_map(map, skel->obj) n++;
	obj->maps = n ? calloc(n, sizeof(*obj->maps)) : NULL;
	if (!obj->maps)
		return -ENOMEM;
	bpf_object__for_each_map(map, skel->obj)
	{
		if (!r)
			r = keep_fd(map_fd(map), &obj->maps[obj->n_maps++]);
	}
	return r;
}

static int keep_programs(struct bpfobj *obj, const struct podprof_bpf *skel)
{
	const struct bpf_program *const programs[BPFOBJ_PROGRAMS] = {
		[BPFOBJ_ONCPU_SAMPLE] = skel->progs.oncpu_sample,
		[BPFOBJ_OFFCPU_SWITCH] = skel->progs.offcpu_switch,
		[BPFOBJ_FORK] = skel->progs.pid_filter_fork,
		[BPFOBJ_EXIT] = skel->progs.pid_filter_exit,
		[BPFOBJ_CGROUP_MADE] = skel->progs.cgroup_made,
	};
	int r = 0;

	for (size_t i = 0; !r && i < BPFOBJ_PROGRAMS; i++)
		r = keep_fd(bpf_program__fd(programs[i]), &obj->programs[i]);
	return r;
}

static int keep_bss(struct bpfobj *obj, const struct podprof_bpf *skel)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *bss;

	obj->bss_bytes = (bpf_map__value_size(skel->maps.bss) + page - 1) / page * page;
	bss = mmap(NULL, obj->bss_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		   bpf_map__fd(skel->maps.bss), 0);
	if (bss == MAP_FAILED)
		return -errno;
	obj->bss = bss;
	return 0;
}

/* Our descriptor of a map. The descriptor is -1 also for a map that the object lacks. */
static int kept_map(const struct bpfobj *obj, const struct podprof_bpf *skel,
		    const struct bpf_map *wanted)
{
	const struct bpf_map *map;
	size_t i = 0;

	bpf_object__for_each_map(map, skel->obj)
	{
		if (map == wanted)
			return obj->maps[i];
		i++;
	}
	return -1;
}

/* The maps of one kind of samples: @KIND is oncpu or offcpu. */
#define STACKS_OF(obj, skel, KIND)                                           \
	(struct bpfobj_stacks)                                               \
	{                                                                    \
		.stats = kept_map(obj, skel, (skel)->maps.KIND##_stats),     \
		.names = kept_map(obj, skel, (skel)->maps.sample_names),     \
		.small = {kept_map(obj, skel, (skel)->maps.KIND##_small_0),  \
			  kept_map(obj, skel, (skel)->maps.KIND##_small_1)}, \
		.large = {kept_map(obj, skel, (skel)->maps.KIND##_large_0),  \
			  kept_map(obj, skel, (skel)->maps.KIND##_large_1)}, \
		.deep = {kept_map(obj, skel, (skel)->maps.KIND##_deep_0),    \
			 kept_map(obj, skel, (skel)->maps.KIND##_deep_1)},   \
		.lost = {kept_map(obj, skel, (skel)->maps.KIND##_lost_0),    \
			 kept_map(obj, skel, (skel)->maps.KIND##_lost_1)},   \
		.generation = &(obj)->bss->KIND##_generation,                \
	}

static void note_parts(struct bpfobj *obj, const struct podprof_bpf *skel)
{
	struct bpfobj_parts *p = &obj->parts;

	for (uint32_t i = 0; i < FRAME_RUNTIME_MAX; i++) {
		obj->runtime_maps[i] = kept_map(obj, skel, runtime_map(skel, i));
		obj->exes_maps[i] = kept_map(obj, skel, exes_map(skel, i));
	}
	p->oncpu_programs = kept_map(obj, skel, skel->maps.oncpu_programs);
	p->offcpu_programs = kept_map(obj, skel, skel->maps.offcpu_programs);
	p->oncpu = (struct bpfobj_oncpu){
		.program = obj->programs[BPFOBJ_ONCPU_SAMPLE],
		.stacks = STACKS_OF(obj, skel, oncpu),
	};
	p->offcpu = (struct bpfobj_offcpu){
		.program = obj->programs[BPFOBJ_OFFCPU_SWITCH],
		.stacks = STACKS_OF(obj, skel, offcpu),
		.plan = (volatile struct offcpu_plan *)&obj->bss->offcpu_plan,
	};
	p->pid_filter = (struct bpfobj_pid_filter){
		.ids = kept_map(obj, skel, skel->maps.pid_filter_ids),
		.fork_program = obj->programs[BPFOBJ_FORK],
		.exit_program = obj->programs[BPFOBJ_EXIT],
		.refused = &obj->bss->pid_filter_refused,
	};
	p->cgroup_sampling = (struct bpfobj_cgroup_sampling){
		.cgroup_sampling = kept_map(obj, skel, skel->maps.cgroup_sampling),
		.in_use = &obj->bss->cgroup_sampling_in_use,
		.inner = &obj->bss->cgroup_sampling_inner,
		.newest = (volatile uint64_t *)&obj->bss->cgroup_sampling_newest,
	};
	p->cgroup_events = (struct bpfobj_cgroup_events){
		.ring = kept_map(obj, skel, skel->maps.cgroup_events),
		.program = obj->programs[BPFOBJ_CGROUP_MADE],
		.n = (const volatile uint64_t *)&obj->bss->cgroup_event_n,
	};
	p->stack_dumps = (struct bpfobj_stack_dumps){
		.ring = kept_map(obj, skel, skel->maps.stack_dumps),
		.stats = kept_map(obj, skel, skel->maps.stack_dump_stats),
	};
	p->unwind = (struct bpfobj_unwind){
		.records = kept_map(obj, skel, skel->maps.process_records),
		.runtimes = obj->runtime_maps,
		.runtime_exes = obj->exes_maps,
		.n_runtimes = FRAME_RUNTIME_MAX,
		.slabs = kept_map(obj, skel, skel->maps.table_slabs),
		.exes = kept_map(obj, skel, skel->maps.table_exes),
		.uses = kept_map(obj, skel, skel->maps.table_uses),
		.rules = kept_map(obj, skel, skel->maps.table_rules),
		.rule_runs = kept_map(obj, skel, skel->maps.table_rule_runs),
	};
}

/* The object's text is needed again only for the walks of a language runtime. */
static void drop_image(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t n;
	const uintptr_t begin = (uintptr_t)podprof_bpf__elf_bytes(&n);
	const uintptr_t from = (begin + page - 1) / page * page, to = (begin + n) / page * page;

	if (from < to)
		(void)madvise((void *)from, to - from, MADV_DONTNEED);
}

static int keep(struct bpfobj *obj, const struct podprof_bpf *skel)
{
	int r = keep_maps(obj, skel);

	if (!r)
		r = keep_programs(obj, skel);
	if (!r)
		r = keep_bss(obj, skel);
	if (!r)
		note_parts(obj, skel);
	return r;
}

static int load_skeleton(struct bpfobj *obj, struct podprof_bpf *skel,
			 const struct bpfobj_opts *opts, bool has_loop)
{
	int r;

	skel->rodata->cfg = opts->settings;
	r = set_sizes(skel, opts);
	if (!r)
		r = set_on_demand(skel, &obj->version);
	if (!r)
		r = set_programs(skel, opts, has_loop);
	if (r < 0)
		return r;
	r = verifier_init(&obj->verifier, skel->obj);
	if (r < 0)
		return r;
	obj->load_ns = nsec_monotonic();
	r = podprof_bpf__load(skel);
	if (r < 0)
		return r;
	obj->load_ns = nsec_monotonic() - obj->load_ns;
	obj->has_loop = has_loop;
	obj->n_cpus = opts->n_cpus;
	obj->has_offcpu = opts->offcpu.small;
	obj->has_dumps = opts->stack_dump_bytes;
	verifier_done(&obj->verifier);
	r = make_rooms(skel->maps.oncpu_rooms, opts->n_cpus, SETTINGS_ROOM_BYTES);
	if (r >= 0 && opts->offcpu.small)
		r = make_rooms(skel->maps.offcpu_rooms, opts->n_cpus, SETTINGS_ROOM_BYTES);
	if (r >= 0)
		r = chain_all(skel, opts, has_loop);
	return r < 0 ? r : keep(obj, skel);
}

static int load_with(struct bpfobj *obj, const struct bpfobj_opts *opts, bool has_loop)
{
	struct podprof_bpf *skel;
	int r;

	/* Discard libbpf's warnings, pages of verifier log; the sentence tells the user what to do.
	 */
	libbpf_set_print(NULL);
	skel = podprof_bpf__open();
	if (!skel)
		return -errno;
	r = load_skeleton(obj, skel, opts, has_loop);
	podprof_bpf__destroy(skel);
	drop_image();
	return r;
}

static void unload(struct bpfobj *obj)
{
	for (size_t i = 0; i < obj->n_maps; i++)
		close_fdp(&obj->maps[i]);
	for (size_t i = 0; i < BPFOBJ_PROGRAMS; i++)
		close_fdp(&obj->programs[i]);
	if (obj->bss)
		munmap(obj->bss, obj->bss_bytes);
	free(obj->maps);
	verifier_deinit(&obj->verifier);
	obj->maps = NULL;
	obj->n_maps = 0;
	obj->bss = NULL;
}

/* Kernels before 5.17 have no bpf_loop() and refuse programs with it, and so do kernels without a
 * JIT compiler (net.core.bpf_jit_enable=0). Both load the walk in parts. */
static int load(struct bpfobj *obj, const struct bpfobj_opts *opts)
{
	int r = load_with(obj, opts, true);

	if (r >= 0 || r == -EPERM || r == -ENOMEM)
		return r;
	unload(obj);
	return load_with(obj, opts, false);
}

int bpfobj_new(const struct bpfobj_opts *opts, struct bpfobj_why *ret_why, struct bpfobj **ret)
{
	_cleanup_(bpfobj_unrefp) struct bpfobj *obj = calloc(1, sizeof(*obj));
	struct bpfobj_opts possible = *opts;
	struct bpfobj_facts facts;
	char complaint[128];
	int r;

	if (!obj)
		return -ENOMEM;
	obj->refs = 1;
	for (size_t i = 0; i < BPFOBJ_PROGRAMS; i++)
		obj->programs[i] = -1;
	facts = bpfobj_facts_here(opts->proc, opts->sys);
	r = bpfobj_permit(&facts, opts->unsafe_kernel, ret_why);
	if (r < 0)
		return r;
	obj->version = facts.version;
	obj->lacks_dumps = opts->stack_dump_bytes && kernel_ring_may_sleep(&facts.version);
	if (obj->lacks_dumps) {
		possible.stack_dump_bytes = 0;
		possible.settings.dumps_per_second = 0;
	}
	r = load(obj, &possible);
	if (r < 0) {
		verifier_complaint(&obj->verifier, complaint, sizeof(complaint));
		facts.complaint = complaint;
		bpfobj_explain(BPFOBJ_LOAD, r, &facts, ret_why);
		return r;
	}
	*ret = take_ptr(obj);
	return 0;
}

struct bpfobj *bpfobj_ref(struct bpfobj *obj)
{
	atomic_fetch_add(&obj->refs, 1);
	return obj;
}

void bpfobj_unref(struct bpfobj *obj)
{
	if (!obj || atomic_fetch_sub(&obj->refs, 1) > 1)
		return;
	unload(obj);
	free(obj);
}

bool bpfobj_lacks_dumps(const struct bpfobj *obj)
{
	return obj->lacks_dumps;
}

/* ---------------------------------------------------------------- language runtimes */

/* The maps of the loaded object, instead of new ones. Both objects list their maps in one order. */
static int share_maps(const struct bpfobj *from, const struct podprof_bpf *to)
{
	struct bpf_map *map;
	size_t i = 0;
	int r = 0;

	bpf_object__for_each_map(map, to->obj)
	{
		const int shared = from->maps[i++];

		if (!r)
			r = shared < 0 ? bpf_map__set_autocreate(map, false)
				       : bpf_map__reuse_fd(map, shared);
	}
	return r;
}

static bool is_walk_of(const struct bpfobj *obj, const struct runtime_walk *walk, uint32_t runtime)
{
	return walk->runtime == runtime && (!walk->offcpu || obj->has_offcpu) &&
	       (walk->dump ? obj->has_dumps : walk->looped == obj->has_loop);
}

/* Only the walks of the runtime. */
static int set_walks(const struct bpfobj *obj, const struct podprof_bpf *skel, uint32_t runtime)
{
	const struct runtime_walks walks = runtime_walks(skel);
	struct bpf_program *program;
	int r = 0;

	bpf_object__for_each_program(program, skel->obj)
	{
		if (!r)
			r = bpf_program__set_autoload(program, false);
	}
	for (const struct runtime_walk *walk = walks.items; !r && walk->program; walk++)
		if (is_walk_of(obj, walk, runtime))
			r = bpf_program__set_autoload(walk->program, true);
	return r;
}

/* The arrays of programs keep the walks when @skel is gone. */
static int chain_walks(const struct bpfobj *obj, const struct podprof_bpf *skel, uint32_t runtime)
{
	const struct runtime_walks walks = runtime_walks(skel);
	int r = 0;

	for (const struct runtime_walk *walk = walks.items; !r && walk->program; walk++)
		if (is_walk_of(obj, walk, runtime))
			r = chain(walk->offcpu ? obj->parts.offcpu_programs
					       : obj->parts.oncpu_programs,
				  walk->dump ? walk->dump : runtime, walk->program);
	return r;
}

/* Whether the runtime's walks have a memo of its objects. */
static bool have_objects(uint32_t runtime)
{
	return runtime == FRAME_RUNTIME_HOTSPOT || runtime == FRAME_RUNTIME_PYTHON;
}

/* The rooms of these walks alone; others have none. */
static int set_objects(const struct bpfobj *obj, const struct podprof_bpf *skel)
{
	const struct map_size sizes[] = {
		{skel->maps.oncpu_objects, obj->n_cpus},
		{skel->maps.offcpu_objects, obj->has_offcpu ? obj->n_cpus : 0},
	};

	return set_sizes_of(sizes, array_size(sizes));
}

static int make_objects(const struct bpfobj *obj, const struct podprof_bpf *skel)
{
	int r = make_rooms(skel->maps.oncpu_objects, obj->n_cpus, SETTINGS_OBJECTS_BYTES);

	if (!r && obj->has_offcpu)
		r = make_rooms(skel->maps.offcpu_objects, obj->n_cpus, SETTINGS_OBJECTS_BYTES);
	return r;
}

static int load_walks(const struct bpfobj *obj, struct podprof_bpf *skel, uint32_t runtime,
		      struct bpfobj_runtime *ret)
{
	int r = share_maps(obj, skel);

	if (!r && have_objects(runtime))
		r = set_objects(obj, skel);
	if (!r)
		r = set_walks(obj, skel, runtime);
	if (!r)
		r = verifier_init(&ret->verifier, skel->obj);
	if (r)
		return r;
	r = podprof_bpf__load(skel);
	if (r == -EPERM || r == -ENOMEM)
		return r;
	if (r) {
		verifier_complaint(&ret->verifier, ret->why, sizeof(ret->why));
		return BPFOBJ_RUNTIME_REFUSED;
	}
	verifier_done(&ret->verifier);
	r = have_objects(runtime) ? make_objects(obj, skel) : 0;
	return r ? r : chain_walks(obj, skel, runtime);
}

int bpfobj_load_runtime(const struct bpfobj *obj, uint32_t runtime, struct bpfobj_runtime *ret)
{
	struct podprof_bpf *skel = podprof_bpf__open();
	int r;

	if (!skel)
		return -errno;
	*ret = (struct bpfobj_runtime){0};
	r = load_walks(obj, skel, runtime, ret);
	podprof_bpf__destroy(skel);
	drop_image();
	if (r < 0)
		bpfobj_runtime_deinit(ret);
	return r;
}

void bpfobj_runtime_deinit(struct bpfobj_runtime *runtime)
{
	verifier_deinit(&runtime->verifier);
}

/* ---------------------------------------------------------------- parts */

struct bpfobj_oncpu bpfobj_oncpu(const struct bpfobj *obj)
{
	return obj->parts.oncpu;
}

struct bpfobj_offcpu bpfobj_offcpu(const struct bpfobj *obj)
{
	return obj->parts.offcpu;
}

struct bpfobj_pid_filter bpfobj_pid_filter(const struct bpfobj *obj)
{
	return obj->parts.pid_filter;
}

struct bpfobj_cgroup_sampling bpfobj_cgroup_sampling(const struct bpfobj *obj)
{
	return obj->parts.cgroup_sampling;
}

struct bpfobj_cgroup_events bpfobj_cgroup_events(const struct bpfobj *obj)
{
	return obj->parts.cgroup_events;
}

struct bpfobj_stack_dumps bpfobj_stack_dumps(const struct bpfobj *obj)
{
	return obj->parts.stack_dumps;
}

struct bpfobj_unwind bpfobj_unwind(const struct bpfobj *obj)
{
	return obj->parts.unwind;
}

/* ---------------------------------------------------------------- what it costs */

int bpfobj_cost(int program, struct bpfobj_cost *ret)
{
	struct bpf_prog_info info = {0};
	uint32_t n = sizeof(info);
	int r;

	r = bpf_obj_get_info_by_fd(program, &info, &n);
	if (r < 0)
		return r;
	/* An older kernel fills fewer fields; the rest stays 0. */
	*ret = (struct bpfobj_cost){
		.runs = info.run_cnt,
		.run_ns = info.run_time_ns,
	};
	return 0;
}

const struct verifier *bpfobj_verifier(const struct bpfobj *obj)
{
	return &obj->verifier;
}

uint64_t bpfobj_load_ns(const struct bpfobj *obj)
{
	return obj->load_ns;
}

bool bpfobj_has_loop(const struct bpfobj *obj)
{
	return obj->has_loop;
}

int bpfobj_count_cost(void)
{
	return bpf_enable_stats(BPF_STATS_RUN_TIME);
}

/* "memlock:" in a map descriptor's fdinfo. */
static uint64_t map_bytes(const struct root *proc, int fd)
{
	struct buf b = BUF_INIT(4096);
	struct strview all, line;
	uint64_t bytes = 0;
	char path[64];

	snprintf(path, sizeof(path), "self/fdinfo/%d", fd);
	if (root_read(proc, path, &b) == 0) {
		all = strview_of_bytes(b.data, b.len);
		while (strview_line(&all, &line)) {
			if (!strview_prefix(&line, "memlock:"))
				continue;
			strview_skip_blanks(&line);
			if (!strview_only_u64(line, 10, &bytes))
				bytes = 0;
		}
	}
	buf_deinit(&b);
	return bytes;
}

uint64_t bpfobj_map_bytes(const struct bpfobj *obj, const struct root *proc)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < obj->n_maps; i++)
		bytes += map_bytes(proc, obj->maps[i]);
	return bytes;
}
