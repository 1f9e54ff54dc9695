// SPDX-License-Identifier: Apache-2.0
/*
 * The user-space half of bpf/oncpu.bpf.c: loads it, gives every CPU a clock, and empties the maps.
 *
 * Why no count is lost between the kernel and here. There are two generations of maps. The program
 * reads which one is active once, just before it stores a sample, and all the while it runs, a flag
 * says so in a slot of its CPU. Emptying goes in two ticks. The first makes the other generation,
 * which is empty, the active one. The second comes ONCPU_SETTLE_NS later and looks at the flags: a
 * program that saw the old generation as active has either ended, or has been running since before
 * the first tick, and its flag is set. If any flag is set it waits for another tick; that happens
 * when a program has just begun (they take microseconds) or when a virtual machine's CPU was taken
 * away in the middle of one. If none is set nobody writes to the old generation any more, and it is
 * emptied. At the end the clocks are stopped first, which waits for running handlers, and both are
 * emptied.
 *
 * What is lost by design is counted in the kernel: a stack that finds both maps full. Not counted,
 * because the kernel does not tell: a clock interrupt during another BPF program on the same CPU
 * (the kernel then skips ours), and during the system call that empties our maps. Both are of the
 * order of 1 in 10,000.
 */
#include "profile/oncpu.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/root.h"
#include "profile/clocks.h"
#include "profile/event.h"
#include "profile/wanted.h"
#include "shared/sample.h"

/* Stacks in one generation. As many samples as an interval has can all be different ones; beyond
 * the ceilings the interval becomes shorter, and what finds no room is counted as lost_full. Kernel
 * memory at the ceilings: 2 x (16384 x 0.44 + 2048 x 1.4 + 256 x 5.2) KB = 23 MB. */
#define ONCPU_SMALL_MIN 256
#define ONCPU_SMALL_MAX 16384
#define ONCPU_LARGE_MIN 128
#define ONCPU_LARGE_MAX 2048
#define ONCPU_DEEP_MIN	32
#define ONCPU_DEEP_MAX	256

/* Drains do not come more often than this, however full the maps are. */
#define ONCPU_INTERVAL_MIN_NS (100 * NSEC_PER_MSEC)

/* From the change of generations to the emptying: thousands of times what a program takes, and long
 * enough for its flag to be seen by any other CPU. */
#define ONCPU_SETTLE_NS	    (10 * NSEC_PER_MSEC)
/* A flag that stays set for so long is not one of a running program; nothing that we know of does
 * that. Emptying goes on, counted as podprof_bpf_unsettled_drains. */
#define ONCPU_SETTLE_MAX_NS (2 * NSEC_PER_SEC)

/* Entries read by one system call. A bucket of the kernel's hash table is read as a whole, so the
 * batch must hold the longest chain: with as many buckets as entries and a random seed, chains of
 * more than 16 are not seen. */
#define ONCPU_SMALL_BATCH 256
#define ONCPU_LARGE_BATCH 64
#define ONCPU_DEEP_BATCH  32

struct oncpu {
	struct bpfobj *obj;
	struct bpfobj_oncpu bpf;
	struct clocks clocks;
	struct wanted_set *wanted;
	const struct root *proc;
	uint64_t wished_ns;   /* interval that was asked for, or less with many CPUs */
	uint64_t interval_ns; /* the one in force */
	uint32_t small_entries;
	uint32_t large_entries;
	uint32_t deep_entries;
	uint64_t map_bytes;
	struct sample_key *keys; /* ONCPU_SMALL_BATCH */
	void *values;		 /* a batch of any class */
	uint64_t *cpu_values;	 /* one per possible CPU */
	int n_possible;
	struct bpfobj_why why;
	bool turned;	    /* generations have changed, the old one is to be emptied */
	uint64_t turned_ns; /* when (monotonic) */
	uint64_t n_unsettled;
	uint64_t n_odd; /* entries that could not be understood */
	uint64_t fp_frames;
	uint64_t row_frames;
	uint64_t kernel_frames;
};

DEFINE_CLEANUP(struct oncpu *, oncpu_freep, oncpu_free);

/* One drain's bookkeeping. */
struct drain {
	struct oncpu *oc;
	sample_fn fn;
	void *ctx;
	size_t n_small;
	size_t n_large;
	size_t n_deep;
};

/* ---------------------------------------------------------------- sizes */

static uint64_t clamp(uint64_t x, uint64_t min, uint64_t max)
{
	return x < min ? min : x > max ? max : x;
}

/* How often events other than a clock's come nobody knows: room for as many as there may be. */
static uint64_t samples_per_second(const struct oncpu_opts *opts, size_t n_cpus)
{
	return (uint64_t)(opts->event ? ONCPU_RATE_MAX : opts->rate_hz) * n_cpus;
}

/* Samples of all CPUs in an interval. */
static uint64_t samples_in(const struct oncpu_opts *opts, size_t n_cpus, uint64_t interval_ns)
{
	return samples_per_second(opts, n_cpus) * (interval_ns / NSEC_PER_MSEC) / 1000 + n_cpus;
}

/* Twice what one interval can fill in the small class, since a tick may come late. */
static void choose_sizes(struct oncpu *oc, const struct oncpu_opts *opts, size_t n_cpus)
{
	uint64_t interval_ns = opts->interval_ns ? opts->interval_ns : ONCPU_INTERVAL_NS;
	uint64_t per_second = samples_per_second(opts, n_cpus);
	uint64_t n;

	if (samples_in(opts, n_cpus, interval_ns) > ONCPU_SMALL_MAX)
		interval_ns = NSEC_PER_SEC * ONCPU_SMALL_MAX / per_second;
	if (interval_ns < ONCPU_INTERVAL_MIN_NS)
		interval_ns = ONCPU_INTERVAL_MIN_NS;
	n = samples_in(opts, n_cpus, interval_ns);
	oc->small_entries = (uint32_t)clamp(2 * n, ONCPU_SMALL_MIN, ONCPU_SMALL_MAX);
	oc->large_entries = (uint32_t)clamp(n, ONCPU_LARGE_MIN, ONCPU_LARGE_MAX);
	oc->deep_entries = (uint32_t)clamp(n / 8, ONCPU_DEEP_MIN, ONCPU_DEEP_MAX);
	oc->wished_ns = interval_ns;
	oc->interval_ns = interval_ns;
}

/* Half the interval when a class was more than three quarters full, and back again when all are
 * less than a quarter. */
static void adapt_interval(struct oncpu *oc, const struct drain *d)
{
	const size_t small_quarter = oc->small_entries / 4, large_quarter = oc->large_entries / 4;
	const size_t deep_quarter = oc->deep_entries / 4;

	if (d->n_small > 3 * small_quarter || d->n_large > 3 * large_quarter ||
	    d->n_deep > 3 * deep_quarter)
		oc->interval_ns /= 2;
	else if (d->n_small < small_quarter && d->n_large < large_quarter &&
		 d->n_deep < deep_quarter)
		oc->interval_ns *= 2;
	oc->interval_ns = clamp(oc->interval_ns, ONCPU_INTERVAL_MIN_NS, oc->wished_ns);
}

/* ---------------------------------------------------------------- starting */

/* The pid namespace that @proc shows is that of its process 1. Reading that link may be forbidden
 * (ptrace access); then it is taken to be our own. */
static uint32_t pidns_of(const struct root *proc)
{
	struct stat st;

	if (fstatat(proc->fd, "1/ns/pid", &st, 0) == 0 ||
	    fstatat(proc->fd, "self/ns/pid", &st, 0) == 0)
		return (uint32_t)st.st_ino;
	return SETTINGS_PIDNS_INIT;
}

static int load(struct oncpu *oc, const struct oncpu_opts *opts, struct bpfobj_why *ret_why)
{
	const unsigned int n_cpus = clocks_possible(opts->sys);
	const struct bpfobj_opts obj_opts = {
		.settings =
			{
				.v1_controller = opts->v1,
				.kernel_stacks = opts->kernel_stacks,
				.unwind = opts->unwind,
				.pidns_inum = pidns_of(opts->proc),
				.wanted = opts->wanted,
			},
		.small_entries = oc->small_entries,
		.large_entries = oc->large_entries,
		.deep_entries = oc->deep_entries,
		.n_cpus = n_cpus ? n_cpus : (uint32_t)oc->n_possible,
		.unsafe_kernel = opts->unsafe_kernel,
		.proc = opts->proc,
		.sys = opts->sys,
	};
	int r;

	r = bpfobj_new(&obj_opts, ret_why, &oc->obj);
	if (r < 0)
		return r;
	oc->bpf = bpfobj_oncpu(oc->obj);
	oc->map_bytes = bpfobj_map_bytes(oc->obj, opts->proc);
	return 0;
}

static int make_buffers(struct oncpu *oc)
{
	const size_t small = ONCPU_SMALL_BATCH * sizeof(struct sample_small);
	const size_t large = ONCPU_LARGE_BATCH * sizeof(struct sample_large);
	const size_t deep = ONCPU_DEEP_BATCH * sizeof(struct sample_deep);
	const size_t most = small > large ? small : large;

	oc->n_possible = libbpf_num_possible_cpus();
	if (oc->n_possible < 0)
		return oc->n_possible;
	oc->keys = calloc(ONCPU_SMALL_BATCH, sizeof(*oc->keys));
	oc->values = calloc(1, most > deep ? most : deep);
	oc->cpu_values = calloc((size_t)oc->n_possible, sizeof(*oc->cpu_values));
	return oc->keys && oc->values && oc->cpu_values ? 0 : -ENOMEM;
}

static void note_failure(struct oncpu *oc)
{
	if (oc->clocks.error)
		bpfobj_explain_here(oc->clocks.attaching ? BPFOBJ_ATTACH : BPFOBJ_EVENT,
				    oc->clocks.error, oc->clocks.sys, &oc->why);
}

/* The clocks of all CPUs; without a single one there is no profiling. */
static int start(struct oncpu *oc, const struct oncpu_opts *opts, struct bpfobj_why *ret_why)
{
	int r;

	clocks_init(&oc->clocks, opts->event ? opts->event : event_clock(),
		    opts->event ? opts->period : NSEC_PER_SEC / opts->rate_hz, oc->bpf.program,
		    opts->sys);
	r = clocks_follow(&oc->clocks);
	if (r < 0)
		return r;
	if (r > 0) {
		snprintf(ret_why->text, sizeof(ret_why->text),
			 "finding the CPUs failed (%s); the host's /sys must be mounted with "
			 "devices/system/cpu/online in it",
			 clocks_outcome_name(r));
		return -ENOENT;
	}
	note_failure(oc);
	if (clocks_n_open(&oc->clocks))
		return 0;
	*ret_why = oc->why;
	return oc->clocks.error ? oc->clocks.error : -ENODEV;
}

static int start_wanted(struct oncpu *oc, const struct oncpu_opts *opts, struct bpfobj_why *ret_why)
{
	const struct bpfobj_wanted parts = bpfobj_wanted(oc->obj);
	int r;

	if (opts->wanted == SETTINGS_WANTED_ALL)
		return 0;
	r = wanted_new(&parts, opts->wanted, &oc->wanted);
	if (r < 0)
		bpfobj_explain_here(BPFOBJ_FOLLOW, r, opts->sys, ret_why);
	return r;
}

static size_t count_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 0 ? (size_t)n : 1;
}

int oncpu_new(const struct oncpu_opts *opts, struct bpfobj_why *ret_why, struct oncpu **ret)
{
	_cleanup_(oncpu_freep) struct oncpu *oc = NULL;
	int r;

	if (opts->event ? !opts->period : opts->rate_hz < 1 || opts->rate_hz > ONCPU_RATE_MAX)
		return -EINVAL;
	oc = calloc(1, sizeof(*oc));
	if (!oc)
		return -ENOMEM;
	oc->proc = opts->proc;
	choose_sizes(oc, opts, count_cpus());
	r = make_buffers(oc);
	if (r < 0)
		return r;
	r = load(oc, opts, ret_why);
	if (r < 0)
		return r;
	r = start_wanted(oc, opts, ret_why);
	if (r < 0)
		return r;
	r = start(oc, opts, ret_why);
	if (r < 0)
		return r;
	*ret = take_ptr(oc);
	return 0;
}

void oncpu_free(struct oncpu *oc)
{
	if (!oc)
		return;
	clocks_deinit(&oc->clocks);
	wanted_free(oc->wanted);
	bpfobj_free(oc->obj);
	free(oc->keys);
	free(oc->values);
	free(oc->cpu_values);
	free(oc);
}

/* ---------------------------------------------------------------- draining */

static void deliver(struct drain *d, const void *key, const void *value, size_t value_size)
{
	struct oncpu *oc = d->oc;
	struct sample sample;

	if (value_size == sizeof(struct sample_small))
		d->n_small++;
	else if (value_size == sizeof(struct sample_large))
		d->n_large++;
	else
		d->n_deep++;
	if (sample_decode(key, value, value_size, &sample) != SAMPLE_OK) {
		oc->n_odd++;
		return;
	}
	oc->row_frames += sample.n_rows * sample.count;
	if (sample.n_user) /* the innermost is not unwound */
		oc->fp_frames += (sample.n_user - 1 - sample.n_rows) * sample.count;
	oc->kernel_frames += sample.n_kernel * sample.count;
	d->fn(d->ctx, &sample);
}

/* One entry at a time, for what the batch call cannot do. */
static int drain_singly(struct drain *d, int fd, size_t value_size)
{
	struct sample_key *key = d->oc->keys;
	int r;

	for (;;) {
		r = bpf_map_get_next_key(fd, NULL, key);
		if (r < 0)
			return r == -ENOENT ? 0 : r;
		r = bpf_map_lookup_elem(fd, key, d->oc->values);
		if (r < 0)
			return r;
		r = bpf_map_delete_elem(fd, key);
		if (r < 0)
			return r;
		deliver(d, key, d->oc->values, value_size);
	}
}

static int drain_map(struct drain *d, int fd, size_t value_size, uint32_t batch_max)
{
	LIBBPF_OPTS(bpf_map_batch_opts, opts);
	uint64_t position = 0; /* the kernel's, 4 bytes of it; 8 leave room */
	void *from = NULL;
	uint32_t n;
	int r;

	for (;;) {
		n = batch_max;
		r = bpf_map_lookup_and_delete_batch(fd, from, &position, d->oc->keys, d->oc->values,
						    &n, &opts);
		if (r < 0 && r != -ENOENT)
			return drain_singly(d, fd, value_size);
		for (uint32_t i = 0; i < n; i++)
			deliver(d, &d->oc->keys[i], (const char *)d->oc->values + i * value_size,
				value_size);
		if (r == -ENOENT)
			return 0; /* that was the end of the table */
		from = &position;
	}
}

static int drain_generation(struct drain *d, unsigned int generation)
{
	int r;

	r = drain_map(d, d->oc->bpf.small[generation], sizeof(struct sample_small),
		      ONCPU_SMALL_BATCH);
	if (r < 0)
		return r;
	r = drain_map(d, d->oc->bpf.large[generation], sizeof(struct sample_large),
		      ONCPU_LARGE_BATCH);
	if (r < 0)
		return r;
	return drain_map(d, d->oc->bpf.deep[generation], sizeof(struct sample_deep),
			 ONCPU_DEEP_BATCH);
}

/* Whether a program runs on some CPU, or -errno. */
static int is_running(const struct oncpu *oc)
{
	const uint32_t slot = SAMPLE_STAT_RUNNING;
	int r = bpf_map_lookup_elem(oc->bpf.stats, &slot, oc->cpu_values);

	if (r < 0)
		return r;
	for (int cpu = 0; cpu < oc->n_possible; cpu++)
		if (oc->cpu_values[cpu])
			return 1;
	return 0;
}

/* Whether the old generation may be emptied, or -errno. */
static int is_settled(struct oncpu *oc)
{
	const uint64_t age_ns = nsec_monotonic() - oc->turned_ns;
	int r;

	if (age_ns < ONCPU_SETTLE_NS)
		return 0;
	r = is_running(oc);
	if (r <= 0)
		return r < 0 ? r : 1;
	if (age_ns < ONCPU_SETTLE_MAX_NS)
		return 0;
	oc->n_unsettled++;
	return 1;
}

static unsigned int inactive_generation(const struct oncpu *oc)
{
	return !(*oc->bpf.generation & 1);
}

/* The first tick of two. */
static int turn(struct oncpu *oc)
{
	int r = clocks_follow(&oc->clocks);

	if (r < 0)
		return r;
	note_failure(oc);
	*oc->bpf.generation = inactive_generation(oc);
	oc->turned = true;
	oc->turned_ns = nsec_monotonic();
	return 0;
}

int oncpu_tick(struct oncpu *oc, sample_fn fn, void *ctx)
{
	struct drain drain = {.oc = oc, .fn = fn, .ctx = ctx};
	int r;

	if (!oc->turned)
		return turn(oc);
	r = is_settled(oc);
	if (r <= 0)
		return r;
	r = drain_generation(&drain, inactive_generation(oc));
	if (r < 0)
		return r;
	oc->turned = false;
	adapt_interval(oc, &drain);
	return 0;
}

void oncpu_stop(struct oncpu *oc)
{
	if (oc)
		clocks_deinit(&oc->clocks);
}

int oncpu_finish(struct oncpu *oc, sample_fn fn, void *ctx)
{
	struct drain drain = {.oc = oc, .fn = fn, .ctx = ctx};
	const unsigned int inactive = inactive_generation(oc);
	int r;

	clocks_deinit(&oc->clocks);
	r = drain_generation(&drain, inactive);
	if (r < 0)
		return r;
	return drain_generation(&drain, !inactive);
}

/* ---------------------------------------------------------------- telling */

struct bpfobj_unwind oncpu_unwind(const struct oncpu *oc)
{
	return bpfobj_unwind(oc->obj);
}

uint64_t oncpu_interval_ns(const struct oncpu *oc)
{
	return oc->turned ? ONCPU_SETTLE_NS : oc->interval_ns - ONCPU_SETTLE_NS;
}

uint64_t oncpu_period(const struct oncpu *oc)
{
	return oc->clocks.period;
}

struct wanted_set *oncpu_wanted(const struct oncpu *oc)
{
	return oc->wanted;
}

size_t oncpu_n_cpus(const struct oncpu *oc)
{
	return clocks_n_open(&oc->clocks);
}

const char *oncpu_why(const struct oncpu *oc)
{
	return oc->why.text;
}

int oncpu_program(const struct oncpu *oc)
{
	return oc->bpf.program;
}

const struct bpfobj *oncpu_object(const struct oncpu *oc)
{
	return oc->obj;
}

uint64_t oncpu_map_bytes(const struct oncpu *oc)
{
	return oc->map_bytes;
}

int oncpu_stats(const struct oncpu *oc, uint64_t ret[], size_t n)
{
	int r;

	for (uint32_t stat = 0; stat < n && stat < SAMPLE_STAT_MAX; stat++) {
		r = bpf_map_lookup_elem(oc->bpf.stats, &stat, oc->cpu_values);
		if (r < 0)
			return r;
		ret[stat] = 0;
		for (int cpu = 0; cpu < oc->n_possible; cpu++)
			ret[stat] += oc->cpu_values[cpu];
	}
	return 0;
}

static void collect_samples(const struct oncpu *oc, struct metric_sink *sink)
{
	static const struct metric_family_desc family = {
		"podprof_samples", METRIC_COUNTER, "Stack samples by what became of them.", NULL};
	uint64_t stats[SAMPLE_STAT_MAX];

	if (oncpu_stats(oc, stats, SAMPLE_STAT_MAX) < 0)
		return;
	metric_family(sink, &family);
	for (unsigned int i = 0; i < SAMPLE_STAT_MAX; i++)
		metric_u64(sink, stats[i],
			   (const struct metric_label[]){{"kind", "cpu"},
							 {"outcome", sample_stat_name(i)}},
			   2);
}

static void collect_clocks(const struct oncpu *oc, struct metric_sink *sink)
{
	static const struct metric_family_desc cpus = {"podprof_sampled_cpus", METRIC_GAUGE,
						       "CPUs that are being sampled.", NULL};
	static const struct metric_family_desc clocks = {
		"podprof_cpu_clocks", METRIC_COUNTER,
		"Clocks for CPUs that were opened or could not be; one that comes back has a new "
		"one.",
		NULL};

	metric_family(sink, &cpus);
	metric_u64(sink, clocks_n_open(&oc->clocks), NULL, 0);
	metric_family(sink, &clocks);
	metric_u64(sink, oc->clocks.opened, &(struct metric_label){"outcome", "opened"}, 1);
	metric_u64(sink, oc->clocks.failed, &(struct metric_label){"outcome", "failed"}, 1);
}

static void collect_cost(const struct oncpu *oc, struct metric_sink *sink)
{
	static const struct metric_family_desc runs = {"podprof_bpf_runs", METRIC_COUNTER,
						       "Runs of a BPF program of ours.", NULL};
	static const struct metric_family_desc seconds = {"podprof_bpf_run_seconds", METRIC_COUNTER,
							  "Time that a BPF program of ours took.",
							  "seconds"};
	static const struct metric_label label = {"program", "oncpu_sample"};
	struct bpfobj_cost cost;

	/* Nothing is counted unless kernel.bpf_stats_enabled is on. */
	if (bpfobj_cost(oc->bpf.program, &cost) < 0 || !cost.runs)
		return;
	metric_family(sink, &runs);
	metric_u64(sink, cost.runs, &label, 1);
	metric_family(sink, &seconds);
	metric_double(sink, (double)cost.run_ns / (double)NSEC_PER_SEC, &label, 1);
}

void oncpu_collect(void *oncpu, struct metric_sink *sink)
{
	static const struct metric_family_desc frames = {"podprof_frames", METRIC_COUNTER,
							 "Stack frames by what found them.", NULL};
	static const struct metric_family_desc bytes = {"podprof_bpf_map_bytes", METRIC_GAUGE,
							"Kernel memory of the BPF maps.", "bytes"};
	static const struct metric_family_desc unsettled = {
		"podprof_bpf_unsettled_drains", METRIC_COUNTER,
		"Times that maps were emptied though a program seemed to be running.", NULL};
	static const struct metric_family_desc odd = {
		"podprof_bpf_odd_entries", METRIC_COUNTER,
		"Map entries that no program of ours can have written.", NULL};
	const struct oncpu *oc = oncpu;

	collect_samples(oc, sink);
	metric_family(sink, &frames);
	metric_u64(sink, oc->fp_frames, &(struct metric_label){"unwinder", "fp"}, 1);
	metric_u64(sink, oc->row_frames, &(struct metric_label){"unwinder", "dwarf"}, 1);
	metric_u64(sink, oc->kernel_frames, &(struct metric_label){"unwinder", "kernel"}, 1);
	collect_cost(oc, sink);
	metric_family(sink, &bytes);
	metric_u64(sink, oc->map_bytes, NULL, 0);
	collect_clocks(oc, sink);
	metric_family(sink, &unsettled);
	metric_u64(sink, oc->n_unsettled, NULL, 0);
	metric_family(sink, &odd);
	metric_u64(sink, oc->n_odd, NULL, 0);
}
