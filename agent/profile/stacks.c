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
 * A copy of the old generation and the delivery of its samples are two steps, which two threads may
 * take. The copy costs some system calls. The delivery reads files of processes, and on a busy node
 * it waits for a CPU between any two samples. Copied batches wait in a queue. A full queue stops
 * the drain, and the kernel's maps hold what they can.
 *
 * A stack that finds all maps full is lost by design. The kernel counts it, and adds its values to
 * an entry of its process in a further map (SAMPLE_FLAG_LOST). Not counted, because the kernel does
 * not tell: an event during another BPF program on the same CPU (the kernel then skips ours), and
 * during the system call that empties our maps. Both are of the order of 1 in 10,000.
 */
#include "profile/stacks.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "shared/sample.h"

/* From the change of generations to the emptying: a thousand times the run time of a program, and
 * long enough for its flag to become visible on other CPUs. */
#define STACKS_SETTLE_NS     (10 * NSEC_PER_MSEC)
/* A flag set for this long is not of a running program; no cause is known. The drain goes on.
 * Reached: `podprof_bpf_unsettled_drains_total`. */
#define STACKS_SETTLE_MAX_NS (2 * NSEC_PER_SEC)

/* Entries read by one system call. The kernel reads a hash bucket as a whole, so a batch must hold
 * the longest chain. With as many buckets as entries and a random seed, no chain has more than 16.
 */
#define STACKS_SMALL_BATCH 256
#define STACKS_LARGE_BATCH 64
#define STACKS_DEEP_BATCH  32
#define STACKS_LOST_BATCH  32
/* Names of threads, likewise. */
#define STACKS_NAMES_BATCH 256

/* Entries of one class, as the kernel had them. */
struct chunk {
	STAILQ_ENTRY(chunk) in_list;
	size_t value_size;
	uint32_t n;
	uint32_t room;
	struct sample_key *keys;
	unsigned char *values;
};

STAILQ_HEAD(chunk_list, chunk);

/* One copy of a generation. */
struct batch {
	STAILQ_ENTRY(batch) in_list;
	uint64_t since_ns; /* boot clock */
	uint64_t until_ns; /* the same */
	size_t bytes;
	struct chunk_list chunks;
};

STAILQ_HEAD(batch_list, batch);

/* The names of tasks, by what they tell. */
enum task_outcome {
	TASK_UNNAMED,
	TASK_OTHER,
	TASK_UNKNOWN,
	TASK_NAMED,
	TASK_OUTCOME_MAX,
};

static const struct {
	const char *name, *outcome;
} task_outcomes[TASK_OUTCOME_MAX] = {
	[TASK_UNNAMED] = {SAMPLE_TASK_UNNAMED, "unnamed"},
	[TASK_OTHER] = {SAMPLE_OTHER_THREAD, "other"},
	[TASK_UNKNOWN] = {SAMPLE_TASK_UNKNOWN, "unknown"},
	[TASK_NAMED] = {NULL, "named"},
};

struct stacks {
	const char *kind;
	struct bpfobj_stacks maps;
	struct bpfobj_sizes sizes;
	int n_possible;

	/* of the fetching thread */
	uint64_t wished_ns;	    /* requested interval */
	uint64_t interval_ns;	    /* present interval */
	bool sparse;		    /* the last copy was below a quarter in all classes */
	struct sample_stats *flags; /* one per possible CPU */
	bool turned;	      /* the generations have changed, and the old one is not emptied yet */
	uint64_t turned_ns;   /* when (monotonic) */
	uint64_t begun_ns[2]; /* when each generation became active (boot clock) */
	struct batch *copying; /* copy of the old generation; NULL: not begun */
	_Atomic uint64_t n_unsettled;

	pthread_mutex_t lock; /* guards the next two */
	struct batch_list fetched;
	size_t fetched_bytes;

	/* of the taking thread */
	struct batch *taken; /* until all is delivered; else NULL */
	struct chunk *at;    /* ... of which the next sample is number @at_n; NULL: none */
	uint32_t at_n;
	struct sample_stats *stats; /* one per possible CPU */
	uint64_t n_odd;		    /* malformed entries */
	uint64_t fp_frames;
	uint64_t row_frames;
	uint64_t runtime_frames;
	uint64_t kernel_frames;
	uint64_t other_threads;		  /* samples without the name of their thread */
	uint64_t tasks[TASK_OUTCOME_MAX]; /* samples in a task */
	uint64_t walked[SAMPLE_END_MAX];  /* stack dumps by their end */
	uint64_t n_walked;
};

DEFINE_CLEANUP(struct stacks *, stacks_freep, stacks_free);

/* ---------------------------------------------------------------- batches */

static void batch_free(struct batch *batch)
{
	struct chunk *chunk;

	if (!batch)
		return;
	while ((chunk = STAILQ_FIRST(&batch->chunks))) {
		STAILQ_REMOVE_HEAD(&batch->chunks, in_list);
		free(chunk);
	}
	free(batch);
}

static struct batch *batch_new(uint64_t since_ns, uint64_t until_ns)
{
	struct batch *batch = calloc(1, sizeof(*batch));

	if (!batch)
		return NULL;
	batch->since_ns = since_ns;
	batch->until_ns = until_ns;
	STAILQ_INIT(&batch->chunks);
	return batch;
}

/* Room for @room entries, at the end of the batch. NULL: no memory. */
static struct chunk *batch_room(struct batch *batch, size_t value_size, uint32_t room)
{
	const size_t each = sizeof(struct sample_key) + value_size;
	struct chunk *chunk = malloc(sizeof(*chunk) + room * each);

	if (!chunk)
		return NULL;
	*chunk = (struct chunk){.value_size = value_size, .room = room};
	chunk->keys = (struct sample_key *)(chunk + 1);
	chunk->values = (unsigned char *)(chunk->keys + room);
	return chunk;
}

_Static_assert(sizeof(struct chunk) % 8 == 0 && sizeof(struct sample_key) % 8 == 0,
	       "keys and values are aligned");

/* Takes @chunk, shrunk to its entries: most chunks are nearly empty. */
static void batch_add(struct batch *batch, struct chunk *chunk)
{
	struct chunk *fitted;

	fitted = chunk->n ? batch_room(batch, chunk->value_size, chunk->n) : NULL;
	if (fitted) {
		memcpy(fitted->keys, chunk->keys, chunk->n * sizeof(*chunk->keys));
		memcpy(fitted->values, chunk->values, chunk->n * chunk->value_size);
		fitted->n = chunk->n;
		free(chunk);
		chunk = fitted;
	}
	if (!chunk->n) {
		free(chunk);
		return;
	}
	batch->bytes += sizeof(*chunk) + chunk->room * (sizeof(*chunk->keys) + chunk->value_size);
	STAILQ_INSERT_TAIL(&batch->chunks, chunk, in_list);
}

static size_t batch_count(const struct batch *batch, size_t value_size)
{
	const struct chunk *chunk;
	size_t n = 0;

	STAILQ_FOREACH(chunk, &batch->chunks, in_list)
	n += chunk->value_size == value_size ? chunk->n : 0;
	return n;
}

/* ---------------------------------------------------------------- life */

int stacks_new(const char *kind, const struct bpfobj_stacks *maps, const struct bpfobj_sizes *sizes,
	       uint64_t wished_ns, struct stacks **ret)
{
	_cleanup_(stacks_freep) struct stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->kind = kind;
	s->maps = *maps;
	s->sizes = *sizes;
	s->wished_ns = wished_ns;
	s->interval_ns = wished_ns;
	pthread_mutex_init(&s->lock, NULL);
	STAILQ_INIT(&s->fetched);
	s->n_possible = libbpf_num_possible_cpus();
	if (s->n_possible < 0)
		return s->n_possible;
	s->flags = calloc((size_t)s->n_possible, sizeof(*s->flags));
	s->stats = calloc((size_t)s->n_possible, sizeof(*s->stats));
	if (!s->flags || !s->stats)
		return -ENOMEM;
	*ret = take_ptr(s);
	return 0;
}

void stacks_free(struct stacks *s)
{
	struct batch *batch;

	if (!s)
		return;
	while ((batch = STAILQ_FIRST(&s->fetched))) {
		STAILQ_REMOVE_HEAD(&s->fetched, in_list);
		batch_free(batch);
	}
	batch_free(s->copying);
	batch_free(s->taken);
	pthread_mutex_destroy(&s->lock);
	free(s->flags);
	free(s->stats);
	free(s);
}

/* ---------------------------------------------------------------- fetching */

/* Adapt the interval: half if a class was more than three quarters full, double if all are below a
 * quarter. */
static void adapt_interval(struct stacks *s, const struct batch *batch)
{
	const size_t small_quarter = s->sizes.small / 4, large_quarter = s->sizes.large / 4;
	const size_t deep_quarter = s->sizes.deep / 4;
	const size_t n_small = batch_count(batch, sizeof(struct sample_small));
	const size_t n_large = batch_count(batch, sizeof(struct sample_large));
	const size_t n_deep = batch_count(batch, sizeof(struct sample_deep));

	s->sparse = n_small < small_quarter && n_large < large_quarter && n_deep < deep_quarter;
	if (n_small > 3 * small_quarter || n_large > 3 * large_quarter || n_deep > 3 * deep_quarter)
		s->interval_ns /= 2;
	else if (s->sparse)
		s->interval_ns *= 2;
	if (s->interval_ns < STACKS_INTERVAL_MIN_NS)
		s->interval_ns = STACKS_INTERVAL_MIN_NS;
	if (s->interval_ns > s->wished_ns)
		s->interval_ns = s->wished_ns;
}

/* Copy the entries one at a time, where the batch call fails. Allocate first: a deleted entry must
 * be in the batch. */
static int copy_singly(struct batch *batch, int fd, size_t value_size)
{
	struct chunk *chunk;
	int r;

	for (;;) {
		chunk = batch_room(batch, value_size, 1);
		if (!chunk)
			return -ENOMEM;
		r = bpf_map_get_next_key(fd, NULL, chunk->keys);
		if (!r)
			r = bpf_map_lookup_elem(fd, chunk->keys, chunk->values);
		if (!r)
			r = bpf_map_delete_elem(fd, chunk->keys);
		chunk->n = !r;
		batch_add(batch, chunk);
		if (r)
			return r == -ENOENT ? 0 : r;
	}
}

static int copy_map(struct batch *batch, int fd, size_t value_size, uint32_t batch_max)
{
	LIBBPF_OPTS(bpf_map_batch_opts, opts);
	uint64_t position = 0; /* the kernel's, 4 bytes of it; 8 leave room */
	void *from = NULL;
	struct chunk *chunk;
	int r;

	for (;;) {
		chunk = batch_room(batch, value_size, batch_max);
		if (!chunk)
			return -ENOMEM;
		chunk->n = batch_max;
		r = bpf_map_lookup_and_delete_batch(fd, from, &position, chunk->keys, chunk->values,
						    &chunk->n, &opts);
		if (r < 0 && r != -ENOENT)
			chunk->n = 0;
		batch_add(batch, chunk);
		if (r < 0)
			return r == -ENOENT ? 0 : copy_singly(batch, fd, value_size);
		from = &position;
	}
}

static int copy_generation(const struct stacks *s, unsigned int generation, struct batch *batch)
{
	int r;

	r = copy_map(batch, s->maps.small[generation], sizeof(struct sample_small),
		     STACKS_SMALL_BATCH);
	if (r < 0)
		return r;
	r = copy_map(batch, s->maps.large[generation], sizeof(struct sample_large),
		     STACKS_LARGE_BATCH);
	if (r < 0)
		return r;
	r = copy_map(batch, s->maps.deep[generation], sizeof(struct sample_deep),
		     STACKS_DEEP_BATCH);
	if (r < 0)
		return r;
	return copy_map(batch, s->maps.lost[generation], sizeof(struct sample_head),
			STACKS_LOST_BATCH);
}

/* Empty the names in use, so that processes may use others. A program that runs meanwhile may
 * exceed the limit. Errors need no action: the names stay, and the next drain tries again. */
static void empty_names(int fd)
{
	LIBBPF_OPTS(bpf_map_batch_opts, opts);
	struct sample_name_key names[STACKS_NAMES_BATCH];
	uint32_t values[STACKS_NAMES_BATCH], n;
	uint64_t position = 0; /* as in copy_map() */
	void *from = NULL;
	int r = 0;

	while (!r && fd >= 0) {
		n = STACKS_NAMES_BATCH;
		r = bpf_map_lookup_and_delete_batch(fd, from, &position, names, values, &n, &opts);
		from = &position;
	}
}

/* Whether a program runs on some CPU, or -errno. */
static int is_running(const struct stacks *s)
{
	const uint32_t zero = 0;
	int r = bpf_map_lookup_elem(s->maps.stats, &zero, s->flags);

	if (r < 0)
		return r;
	for (int cpu = 0; cpu < s->n_possible; cpu++)
		if (s->flags[cpu].running)
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

/* Earliest time of a sample of a generation. A program that ran during the change may have stored a
 * sample. */
static uint64_t since_of(const struct stacks *s, unsigned int generation)
{
	const uint64_t begun_ns = s->begun_ns[generation];

	return begun_ns > STACKS_SETTLE_NS ? begun_ns - STACKS_SETTLE_NS : 0;
}

static bool is_full(struct stacks *s)
{
	bool full;

	pthread_mutex_lock(&s->lock);
	full = s->fetched_bytes >= STACKS_FETCHED_BYTES_MAX;
	pthread_mutex_unlock(&s->lock);
	return full;
}

/* Takes the copy. */
static void queue_batch(struct stacks *s, struct batch *batch)
{
	adapt_interval(s, batch);
	pthread_mutex_lock(&s->lock);
	s->fetched_bytes += batch->bytes;
	STAILQ_INSERT_TAIL(&s->fetched, batch, in_list);
	pthread_mutex_unlock(&s->lock);
}

/* Copy a generation and queue the copy. After an error the partial copy stays, and the next call
 * continues. */
static int fetch_generation(struct stacks *s, unsigned int generation)
{
	int r;

	if (!s->copying)
		s->copying = batch_new(since_of(s, generation), s->begun_ns[!generation]);
	if (!s->copying)
		return -ENOMEM;
	r = copy_generation(s, generation, s->copying);
	if (r < 0)
		return r;
	queue_batch(s, take_ptr(s->copying));
	return 0;
}

bool stacks_idle(struct stacks *s)
{
	const unsigned int active = !inactive_generation(s);
	const int maps[] = {s->maps.small[active], s->maps.large[active], s->maps.deep[active]};
	const uint64_t now_ns = nsec_boot();
	struct sample_key key;

	if (s->turned)
		return false;
	for (size_t i = 0; i < array_size(maps); i++)
		if (bpf_map_get_next_key(maps[i], NULL, &key) != -ENOENT)
			return false; /* stacks_fetch() returns the reason of a failure */
	s->begun_ns[active] = now_ns;
	return true;
}

int stacks_fetch_none(struct stacks *s)
{
	const unsigned int active = !inactive_generation(s);
	struct batch *batch = batch_new(since_of(s, active), s->begun_ns[active]);

	if (!batch)
		return -ENOMEM;
	queue_batch(s, batch);
	return STACKS_FETCHED;
}

int stacks_fetch(struct stacks *s)
{
	int r;

	if (!s->turned) { /* the first half of a drain */
		if (is_full(s))
			return 0;
		s->begun_ns[inactive_generation(s)] = nsec_boot();
		*s->maps.generation = inactive_generation(s);
		s->turned = true;
		s->turned_ns = nsec_monotonic();
		return 0;
	}
	r = is_settled(s);
	if (r <= 0)
		return r;
	r = fetch_generation(s, inactive_generation(s));
	if (r < 0)
		return r;
	empty_names(s->maps.names);
	s->turned = false;
	return STACKS_FETCHED;
}

/* ---------------------------------------------------------------- taking */

static enum task_outcome outcome_of_task(const char *name)
{
	int i = 0;

	while (i < TASK_NAMED && strcmp(name, task_outcomes[i].name) != 0)
		i++;
	return i;
}

static void count_sample(struct stacks *s, const struct sample *sample)
{
	if (strcmp(sample->thread, SAMPLE_OTHER_THREAD) == 0)
		s->other_threads += sample->count;
	if (*sample->task)
		s->tasks[outcome_of_task(sample->task)] += sample->count;
	s->row_frames += sample->n_rows * sample->count;
	s->fp_frames += (sample->n_walked - sample->n_rows) * sample->count;
	s->runtime_frames += sample->n_runtime * sample->count;
	s->kernel_frames += sample->n_kernel * sample->count;
}

void stacks_walked(struct stacks *s, const struct sample *sample)
{
	s->walked[sample->end] += sample->count;
	s->n_walked += sample->count;
	count_sample(s, sample);
}

static void deliver(struct stacks *s, const struct chunk *chunk, uint32_t i, sample_fn fn,
		    void *ctx)
{
	struct sample sample;

	if (sample_decode(&chunk->keys[i], chunk->values + i * chunk->value_size, chunk->value_size,
			  &sample) != SAMPLE_OK) {
		s->n_odd++;
		return;
	}
	if (!sample.dump_id) /* dumped stacks are counted in stacks_walked() */
		count_sample(s, &sample);
	fn(ctx, &sample);
}

bool stacks_next(struct stacks *s)
{
	struct batch *batch;

	if (s->taken)
		return true;
	pthread_mutex_lock(&s->lock);
	batch = STAILQ_FIRST(&s->fetched);
	if (batch) {
		STAILQ_REMOVE_HEAD(&s->fetched, in_list);
		s->fetched_bytes -= batch->bytes;
	}
	pthread_mutex_unlock(&s->lock);
	s->taken = batch;
	s->at = batch ? STAILQ_FIRST(&batch->chunks) : NULL;
	s->at_n = 0;
	return batch != NULL;
}

/* Goes on to the next chunk behind the last sample of one. Whether a sample is left. */
static bool seek_sample(struct stacks *s)
{
	while (s->at && s->at_n == s->at->n) {
		s->at = STAILQ_NEXT(s->at, in_list);
		s->at_n = 0;
	}
	return s->at != NULL;
}

bool stacks_deliver_until(struct stacks *s, uint64_t end_ns, sample_fn fn, void *ctx)
{
	while (seek_sample(s)) {
		deliver(s, s->at, s->at_n++, fn, ctx);
		if (nsec_monotonic() >= end_ns)
			break;
	}
	if (seek_sample(s))
		return true;
	batch_free(s->taken);
	s->taken = NULL;
	return false;
}

void stacks_deliver(struct stacks *s, sample_fn fn, void *ctx)
{
	(void)stacks_deliver_until(s, UINT64_MAX, fn, ctx);
}

int stacks_tick(struct stacks *s, sample_fn fn, void *ctx)
{
	int r = stacks_fetch(s);

	while (stacks_next(s))
		stacks_deliver(s, fn, ctx);
	return r < 0 ? r : 0;
}

int stacks_fetch_rest(struct stacks *s)
{
	const unsigned int inactive = inactive_generation(s);
	int r = fetch_generation(s, inactive);

	return r ? r : fetch_generation(s, !inactive);
}

int stacks_finish(struct stacks *s, sample_fn fn, void *ctx)
{
	int r = stacks_fetch_rest(s);

	while (stacks_next(s))
		stacks_deliver(s, fn, ctx);
	return r;
}

/* ---------------------------------------------------------------- telling */

uint64_t stacks_interval_ns(const struct stacks *s, unsigned int n)
{
	return s->turned ? STACKS_SETTLE_NS : n * s->interval_ns - STACKS_SETTLE_NS;
}

bool stacks_sparse(const struct stacks *s)
{
	return !s->turned && s->sparse && s->interval_ns == s->wished_ns;
}

uint64_t stacks_next_since_ns(struct stacks *s)
{
	uint64_t since_ns;

	if (s->taken)
		return s->taken->since_ns;
	pthread_mutex_lock(&s->lock);
	since_ns = STAILQ_EMPTY(&s->fetched) ? UINT64_MAX : STAILQ_FIRST(&s->fetched)->since_ns;
	pthread_mutex_unlock(&s->lock);
	return since_ns;
}

uint64_t stacks_since_ns(const struct stacks *s)
{
	return s->taken ? s->taken->since_ns : 0;
}

uint64_t stacks_until_ns(const struct stacks *s)
{
	return s->taken ? s->taken->until_ns : 0;
}

int stacks_stats(const struct stacks *s, uint64_t ret[], size_t n)
{
	const uint32_t zero = 0;
	int r = bpf_map_lookup_elem(s->maps.stats, &zero, s->stats);

	if (r < 0)
		return r;
	for (uint32_t stat = 0; stat < n && stat < SAMPLE_STAT_MAX; stat++) {
		ret[stat] = 0;
		for (int cpu = 0; cpu < s->n_possible; cpu++)
			ret[stat] += s->stats[cpu].counts[stat];
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
		/* waiting dumps are counted after their walk */
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
	static const struct metric_family_desc other = {
		"podprof_other_thread_samples", METRIC_COUNTER,
		"Samples without the name of their thread, above a limit of names.", NULL};
	static const struct metric_family_desc tasks = {
		"podprof_task_samples", METRIC_COUNTER,
		"Samples in an asyncio task, by the name of the task.", NULL};
	struct stacks sum = {0};
	uint64_t n_unsettled = 0;

	collect_samples(all, n, sink);
	for (size_t k = 0; k < n; k++) {
		sum.fp_frames += all[k]->fp_frames;
		sum.row_frames += all[k]->row_frames;
		sum.runtime_frames += all[k]->runtime_frames;
		sum.kernel_frames += all[k]->kernel_frames;
		n_unsettled += all[k]->n_unsettled;
		sum.n_odd += all[k]->n_odd;
		sum.other_threads += all[k]->other_threads;
		for (int i = 0; i < TASK_OUTCOME_MAX; i++)
			sum.tasks[i] += all[k]->tasks[i];
	}
	metric_family(sink, &frames);
	metric_u64(sink, sum.fp_frames, &(struct metric_label){"unwinder", "fp"}, 1);
	metric_u64(sink, sum.row_frames, &(struct metric_label){"unwinder", "dwarf"}, 1);
	metric_u64(sink, sum.runtime_frames, &(struct metric_label){"unwinder", "runtime"}, 1);
	metric_u64(sink, sum.kernel_frames, &(struct metric_label){"unwinder", "kernel"}, 1);
	metric_family(sink, &unsettled);
	metric_u64(sink, n_unsettled, NULL, 0);
	metric_family(sink, &odd);
	metric_u64(sink, sum.n_odd, NULL, 0);
	metric_family(sink, &other);
	metric_u64(sink, sum.other_threads, NULL, 0);
	metric_family(sink, &tasks);
	for (int i = 0; i < TASK_OUTCOME_MAX; i++)
		metric_u64(sink, sum.tasks[i],
			   &(struct metric_label){"outcome", task_outcomes[i].outcome}, 1);
}
