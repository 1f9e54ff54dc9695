// SPDX-License-Identifier: Apache-2.0
/*
 * The user-space half of bpf/lib/stack.bpf.h: empties the maps.
 *
 * A double buffer of two map generations keeps all counts. The program reads the active generation
 * once, just before the store of a sample. During its run, a flag in its CPU's slot is set. A drain
 * takes two ticks. The first tick activates the other, empty generation. The second tick comes
 * STACKS_SETTLE_NS later and checks the flags. A program with the old generation has either ended,
 * or has run since before the first tick with its flag set. With any flag set, the drain waits for
 * another tick. Causes are a program just started (a run takes microseconds) and a virtual
 * machine's CPU descheduled during a run. Without a flag, no program can write to the old
 * generation, and the agent empties it. At the end, the agent first stops the program and waits for
 * running instances. Then it empties both generations.
 *
 * What is lost by design is counted in the kernel: a stack that finds all maps full. Not counted,
 * because the kernel does not tell: an event during another BPF program on the same CPU (the kernel
 * then skips ours), and during the system call that empties our maps. Both are of the order of 1 in
 * 10,000.
 */
#include "profile/stacks.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "shared/sample.h"

/* From the change of generations to the emptying: thousands of times what a program takes, and long
 * enough for its flag to be seen by any other CPU. */
#define STACKS_SETTLE_NS     (10 * NSEC_PER_MSEC)
/* A flag that stays set for so long is not one of a running program; nothing that we know of does
 * that. Emptying goes on, counted as podprof_bpf_unsettled_drains. Reached:
 * `podprof_bpf_unsettled_drains_total`. */
#define STACKS_SETTLE_MAX_NS (2 * NSEC_PER_SEC)

/* Entries read by one system call. A bucket of the kernel's hash table is read as a whole, so the
 * batch must hold the longest chain: with as many buckets as entries and a random seed, chains of
 * more than 16 are not seen. */
#define STACKS_SMALL_BATCH 256
#define STACKS_LARGE_BATCH 64
#define STACKS_DEEP_BATCH  32

struct stacks {
	const char *kind;
	struct bpfobj_stacks maps;
	struct bpfobj_sizes sizes;
	uint64_t wished_ns;	 /* interval that was asked for */
	uint64_t interval_ns;	 /* the one in force */
	struct sample_key *keys; /* STACKS_SMALL_BATCH */
	void *values;		 /* a batch of any class */
	uint64_t *cpu_values;	 /* one per possible CPU */
	int n_possible;
	bool turned;	      /* generations have changed, the old one is to be emptied */
	uint64_t turned_ns;   /* when (monotonic) */
	uint64_t begun_ns[2]; /* when each generation became the active one (boot clock) */
	uint64_t n_unsettled;
	uint64_t n_odd; /* entries that could not be understood */
	uint64_t fp_frames;
	uint64_t row_frames;
	uint64_t runtime_frames;
	uint64_t kernel_frames;
	uint64_t walked[SAMPLE_END_MAX]; /* of those that were copied out, by end */
	uint64_t n_walked;
};

DEFINE_CLEANUP(struct stacks *, stacks_freep, stacks_free);

/* One drain's bookkeeping. */
struct drain {
	struct stacks *stacks;
	sample_fn fn;
	void *ctx;
	size_t n_small;
	size_t n_large;
	size_t n_deep;
};

static int make_buffers(struct stacks *s)
{
	const size_t small = STACKS_SMALL_BATCH * sizeof(struct sample_small);
	const size_t large = STACKS_LARGE_BATCH * sizeof(struct sample_large);
	const size_t deep = STACKS_DEEP_BATCH * sizeof(struct sample_deep);
	const size_t most = small > large ? small : large;

	s->n_possible = libbpf_num_possible_cpus();
	if (s->n_possible < 0)
		return s->n_possible;
	s->keys = calloc(STACKS_SMALL_BATCH, sizeof(*s->keys));
	s->values = calloc(1, most > deep ? most : deep);
	s->cpu_values = calloc((size_t)s->n_possible, sizeof(*s->cpu_values));
	return s->keys && s->values && s->cpu_values ? 0 : -ENOMEM;
}

int stacks_new(const char *kind, const struct bpfobj_stacks *maps, const struct bpfobj_sizes *sizes,
	       uint64_t wished_ns, struct stacks **ret)
{
	_cleanup_(stacks_freep) struct stacks *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->kind = kind;
	s->maps = *maps;
	s->sizes = *sizes;
	s->wished_ns = wished_ns;
	s->interval_ns = wished_ns;
	r = make_buffers(s);
	if (r < 0)
		return r;
	*ret = take_ptr(s);
	return 0;
}

void stacks_free(struct stacks *s)
{
	if (!s)
		return;
	free(s->keys);
	free(s->values);
	free(s->cpu_values);
	free(s);
}

/* Half the interval when a class was more than three quarters full, and back again when all are
 * less than a quarter. */
static void adapt_interval(struct stacks *s, const struct drain *d)
{
	const size_t small_quarter = s->sizes.small / 4, large_quarter = s->sizes.large / 4;
	const size_t deep_quarter = s->sizes.deep / 4;

	if (d->n_small > 3 * small_quarter || d->n_large > 3 * large_quarter ||
	    d->n_deep > 3 * deep_quarter)
		s->interval_ns /= 2;
	else if (d->n_small < small_quarter && d->n_large < large_quarter &&
		 d->n_deep < deep_quarter)
		s->interval_ns *= 2;
	if (s->interval_ns < STACKS_INTERVAL_MIN_NS)
		s->interval_ns = STACKS_INTERVAL_MIN_NS;
	if (s->interval_ns > s->wished_ns)
		s->interval_ns = s->wished_ns;
}

static void count_frames(struct stacks *s, const struct sample *sample)
{
	s->row_frames += sample->n_rows * sample->count;
	if (sample->n_native) /* the innermost is not unwound */
		s->fp_frames += (sample->n_native - 1 - sample->n_rows) * sample->count;
	s->runtime_frames += sample->n_runtime * sample->count;
	s->kernel_frames += sample->n_kernel * sample->count;
}

void stacks_walked(struct stacks *s, const struct sample *sample)
{
	s->walked[sample->end] += sample->count;
	s->n_walked += sample->count;
	count_frames(s, sample);
}

static void deliver(struct drain *d, const void *key, const void *value, size_t value_size)
{
	struct stacks *s = d->stacks;
	struct sample sample;

	if (value_size == sizeof(struct sample_small))
		d->n_small++;
	else if (value_size == sizeof(struct sample_large))
		d->n_large++;
	else
		d->n_deep++;
	if (sample_decode(key, value, value_size, &sample) != SAMPLE_OK) {
		s->n_odd++;
		return;
	}
	if (!sample.dump_id) /* else when it is known who walks it: stacks_walked() */
		count_frames(s, &sample);
	d->fn(d->ctx, &sample);
}

/* One entry at a time, for what the batch call cannot do. */
static int drain_singly(struct drain *d, int fd, size_t value_size)
{
	struct sample_key *key = d->stacks->keys;
	int r;

	for (;;) {
		r = bpf_map_get_next_key(fd, NULL, key);
		if (r < 0)
			return r == -ENOENT ? 0 : r;
		r = bpf_map_lookup_elem(fd, key, d->stacks->values);
		if (r < 0)
			return r;
		r = bpf_map_delete_elem(fd, key);
		if (r < 0)
			return r;
		deliver(d, key, d->stacks->values, value_size);
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
		r = bpf_map_lookup_and_delete_batch(fd, from, &position, d->stacks->keys,
						    d->stacks->values, &n, &opts);
		if (r < 0 && r != -ENOENT)
			return drain_singly(d, fd, value_size);
		for (uint32_t i = 0; i < n; i++)
			deliver(d, &d->stacks->keys[i],
				(const char *)d->stacks->values + i * value_size, value_size);
		if (r == -ENOENT)
			return 0; /* that was the end of the table */
		from = &position;
	}
}

static int drain_generation(struct drain *d, unsigned int generation)
{
	int r;

	r = drain_map(d, d->stacks->maps.small[generation], sizeof(struct sample_small),
		      STACKS_SMALL_BATCH);
	if (r < 0)
		return r;
	r = drain_map(d, d->stacks->maps.large[generation], sizeof(struct sample_large),
		      STACKS_LARGE_BATCH);
	if (r < 0)
		return r;
	return drain_map(d, d->stacks->maps.deep[generation], sizeof(struct sample_deep),
			 STACKS_DEEP_BATCH);
}

/* Whether a program runs on some CPU, or -errno. */
static int is_running(const struct stacks *s)
{
	const uint32_t slot = SAMPLE_STAT_RUNNING;
	int r = bpf_map_lookup_elem(s->maps.stats, &slot, s->cpu_values);

	if (r < 0)
		return r;
	for (int cpu = 0; cpu < s->n_possible; cpu++)
		if (s->cpu_values[cpu])
			return 1;
	return 0;
}

/* Whether the old generation may be emptied, or -errno. */
static int is_settled(struct stacks *s)
{
	const uint64_t age_ns = nsec_monotonic() - s->turned_ns;
	int r;

	if (age_ns < STACKS_SETTLE_NS)
		return 0;
	r = is_running(s);
	if (r <= 0)
		return r < 0 ? r : 1;
	if (age_ns < STACKS_SETTLE_MAX_NS)
		return 0;
	s->n_unsettled++;
	return 1;
}

static unsigned int inactive_generation(const struct stacks *s)
{
	return !(*s->maps.generation & 1);
}

int stacks_tick(struct stacks *s, sample_fn fn, void *ctx)
{
	struct drain drain = {.stacks = s, .fn = fn, .ctx = ctx};
	int r;

	if (!s->turned) { /* the first tick of two */
		s->begun_ns[inactive_generation(s)] = nsec_boot();
		*s->maps.generation = inactive_generation(s);
		s->turned = true;
		s->turned_ns = nsec_monotonic();
		return 0;
	}
	r = is_settled(s);
	if (r <= 0)
		return r;
	r = drain_generation(&drain, inactive_generation(s));
	if (r < 0)
		return r;
	s->turned = false;
	adapt_interval(s, &drain);
	return 0;
}

int stacks_finish(struct stacks *s, sample_fn fn, void *ctx)
{
	struct drain drain = {.stacks = s, .fn = fn, .ctx = ctx};
	const unsigned int inactive = inactive_generation(s);
	int r;

	r = drain_generation(&drain, inactive);
	if (r < 0)
		return r;
	return drain_generation(&drain, !inactive);
}

/* ---------------------------------------------------------------- telling */

uint64_t stacks_interval_ns(const struct stacks *s)
{
	return s->turned ? STACKS_SETTLE_NS : s->interval_ns - STACKS_SETTLE_NS;
}

uint64_t stacks_since_ns(const struct stacks *s)
{
	const uint64_t begun_ns =
		s->begun_ns[s->turned ? inactive_generation(s) : !inactive_generation(s)];

	return begun_ns > STACKS_SETTLE_NS ? begun_ns - STACKS_SETTLE_NS : 0;
}

int stacks_stats(const struct stacks *s, uint64_t ret[], size_t n)
{
	int r;

	for (uint32_t stat = 0; stat < n && stat < SAMPLE_STAT_MAX; stat++) {
		r = bpf_map_lookup_elem(s->maps.stats, &stat, s->cpu_values);
		if (r < 0)
			return r;
		ret[stat] = 0;
		for (int cpu = 0; cpu < s->n_possible; cpu++)
			ret[stat] += s->cpu_values[cpu];
		if (stat < SAMPLE_END_MAX)
			ret[stat] += s->walked[stat];
		if (stat == SAMPLE_STAT_DUMPED)
			ret[stat] -= s->n_walked;
	}
	return 0;
}

static void collect_samples(const struct stacks *const all[], size_t n, struct metric_sink *sink)
{
	static const struct metric_family_desc family = {"podprof_samples", METRIC_COUNTER,
							 "Stack samples by outcome.", NULL};
	uint64_t stats[SAMPLE_STAT_MAX];

	metric_family(sink, &family);
	for (size_t k = 0; k < n; k++) {
		if (stacks_stats(all[k], stats, SAMPLE_STAT_MAX) < 0)
			continue;
		/* those that wait are counted when they are walked */
		for (unsigned int i = 0; i < SAMPLE_STAT_MAX; i++)
			if (i != SAMPLE_STAT_DUMPED)
				metric_u64(sink, stats[i],
					   (const struct metric_label[]){
						   {"kind", all[k]->kind},
						   {"outcome", sample_stat_name(i)}},
					   2);
	}
}

void stacks_collect(const struct stacks *const all[], size_t n, struct metric_sink *sink)
{
	static const struct metric_family_desc frames = {"podprof_frames", METRIC_COUNTER,
							 "Stack frames by unwinding method.", NULL};
	static const struct metric_family_desc unsettled = {
		"podprof_bpf_unsettled_drains", METRIC_COUNTER,
		"Drains of the maps while a BPF program still seemed to run.", NULL};
	static const struct metric_family_desc odd = {
		"podprof_bpf_invalid_entries", METRIC_COUNTER,
		"Invalid map entries, not written by podprof's BPF programs.", NULL};
	struct stacks sum = {0};

	collect_samples(all, n, sink);
	for (size_t k = 0; k < n; k++) {
		sum.fp_frames += all[k]->fp_frames;
		sum.row_frames += all[k]->row_frames;
		sum.runtime_frames += all[k]->runtime_frames;
		sum.kernel_frames += all[k]->kernel_frames;
		sum.n_unsettled += all[k]->n_unsettled;
		sum.n_odd += all[k]->n_odd;
	}
	metric_family(sink, &frames);
	metric_u64(sink, sum.fp_frames, &(struct metric_label){"unwinder", "fp"}, 1);
	metric_u64(sink, sum.row_frames, &(struct metric_label){"unwinder", "dwarf"}, 1);
	metric_u64(sink, sum.runtime_frames, &(struct metric_label){"unwinder", "runtime"}, 1);
	metric_u64(sink, sum.kernel_frames, &(struct metric_label){"unwinder", "kernel"}, 1);
	metric_family(sink, &unsettled);
	metric_u64(sink, sum.n_unsettled, NULL, 0);
	metric_family(sink, &odd);
	metric_u64(sink, sum.n_odd, NULL, 0);
}
