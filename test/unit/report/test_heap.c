// SPDX-License-Identifier: Apache-2.0
/*
 * The oracle: Go programs that write their own heap profile at a quiet point. What is read from
 * outside must be the same, record by record: stacks with names, files, lines and inlining, and all
 * four values.
 */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "goheap/goheap.h"
#include "pprof/reader.h"
#include "procmap/space.h"
#include "report/heap.h"
#include "report/heapsnap.h"
#include "support/allocfail.h"
#include "support/gofixture.h"
#include "support/goprocess.h"
#include "symbolize/symbolizer.h"

#define PROFILE_BYTES_MAX (64u << 20)
#define KEY_BYTES_MAX	  (256u << 10)
#define N_VALUES	  4

/* ---------------------------------------------------------------- a profile as sorted lines */

/* All samples with one stack and one size. */
struct line {
	char *key;
	int64_t values[N_VALUES];
	size_t n; /* samples added up */
};

struct lines {
	struct line *items;
	size_t n;
};

static void lines_deinit(struct lines *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->items[i].key);
	free(l->items);
	*l = (struct lines){0};
}

static void append_location(const struct pprof_tables *t, uint32_t number, struct buf *key)
{
	const struct pprof_location_row *location = &t->locations[number - 1];

	for (size_t i = 0; i < location->n_lines; i++) {
		const struct pprof_function_row *f = &t->functions[location->lines[i].function - 1];

		assert_int_equal(buf_printf(key, "%s %s:%" PRId64 "%s\n", t->strings[f->name],
					    t->strings[f->file], location->lines[i].line,
					    i + 1 < location->n_lines ? " inlined" : ""),
				 0);
	}
}

static char *key_of(const struct pprof_tables *t, const struct pprof_sample_row *sample)
{
	struct buf key = BUF_INIT(KEY_BYTES_MAX);

	for (size_t i = 0; i < sample->n_labels; i++) {
		const struct pprof_label_row *label = &sample->labels[i];

		assert_int_equal(
			buf_printf(&key, "%s=%" PRId64 "\n", t->strings[label->key], label->num),
			0);
	}
	for (size_t i = 0; i < sample->n_locations; i++)
		append_location(t, sample->locations[i], &key);
	return buf_take(&key);
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(((const struct line *)a)->key, ((const struct line *)b)->key);
}

/* Go 1.26 and later write several samples for one stack and size. */
static void merge(struct lines *l)
{
	size_t to = 0;

	qsort(l->items, l->n, sizeof(*l->items), compare_lines);
	for (size_t i = 0; i < l->n; i++) {
		if (to > 0 && strcmp(l->items[to - 1].key, l->items[i].key) == 0) {
			for (size_t k = 0; k < N_VALUES; k++)
				l->items[to - 1].values[k] += l->items[i].values[k];
			l->items[to - 1].n++;
			free(l->items[i].key);
		} else {
			l->items[to++] = l->items[i];
		}
	}
	l->n = to;
}

static void lines_of(const struct buf *profile, struct lines *ret, int64_t *ret_period)
{
	const struct pprof_tables *t;
	struct reader *reader = NULL;
	const char *why = NULL;

	assert_int_equal(reader_new(profile->data, profile->len, PROFILE_BYTES_MAX, &reader, &why),
			 0);
	t = reader_tables(reader);
	assert_int_equal(t->n_types, N_VALUES);
	assert_string_equal(t->strings[t->types[0].type], "alloc_objects");
	assert_string_equal(t->strings[t->types[3].type], "inuse_space");
	assert_string_equal(t->strings[t->period_type.type], "space");
	*ret_period = t->period;
	*ret = (struct lines){calloc(t->n_samples + 1, sizeof(*ret->items)), t->n_samples};
	assert_non_null(ret->items);
	for (size_t i = 0; i < t->n_samples; i++) {
		ret->items[i].key = key_of(t, &t->samples[i]);
		ret->items[i].n = 1;
		memcpy(ret->items[i].values, t->values + i * N_VALUES,
		       sizeof(ret->items[i].values));
	}
	reader_free(reader);
	merge(ret);
}

static const struct line *find(const struct lines *l, const struct line *line)
{
	return bsearch(line, l->items, l->n, sizeof(*l->items), compare_lines);
}

/* ---------------------------------------------------------------- reading from outside */

/* A process with all that names its addresses. */
struct outside {
	struct goprocess process;
	struct goheap *heap;
	struct space_cache *space;
	struct symbolizer *symbolizer;
};

static void outside_deinit(struct outside *o)
{
	goheap_free(o->heap);
	symbolizer_free(o->symbolizer);
	space_cache_free(o->space);
	goprocess_stop(&o->process);
}

static void outside_init(struct outside *o, const char *path, const char *const *args,
			 const char *env)
{
	struct symbolizer_opts symbols = {.cache_bytes = 64u << 20};
	struct goheap_opts heap = {0};

	goprocess_start(&o->process, path, args, env);
	symbols.proc = heap.proc = &o->process.proc;
	heap.id = o->process.id;
	assert_int_equal(space_cache_new(&o->process.proc, &o->space), 0);
	assert_int_equal(symbolizer_new(&symbols, &o->symbolizer), 0);
	assert_int_equal(goheap_new(&heap, &o->heap), 0);
	assert_int_equal(goheap_state(o->heap), GORUNTIME_OK);
}

static int resolve(void *ctx, uint64_t pc, struct frame *ret)
{
	struct outside *o = ctx;

	return space_cache_resolve(o->space, &o->process.id, pc, ret);
}

static int read_outside(struct outside *o, const struct heap_report_opts *opts, bool since_start,
			struct buf *ret, struct heap_report_stats *ret_stats,
			struct goheap_totals *ret_totals)
{
	const struct heapsnap_opts snap_opts = {
		.space = {resolve, o},
		.since_start = since_start,
	};
	struct goheap_profile profile = {0};
	struct heapsnap *snap = NULL;
	int r = goheap_read(o->heap, &profile);

	if (r)
		return r;
	goheap_totals(&profile, ret_totals);
	r = heapsnap_new(&profile, &snap_opts, &snap);
	if (r)
		return r;
	r = heap_report(&snap, 1, o->symbolizer, opts, ret, ret_stats);
	heapsnap_free(snap);
	symbolizer_release(o->symbolizer);
	return r;
}

static const struct heap_report_opts cumulative = {
	.time_ns = 1,
	.max_samples = 1u << 20,
	.max_bytes = PROFILE_BYTES_MAX,
};

/* ---------------------------------------------------------------- equal to the process's own */

/* exp() of Go and of the C library may differ in the last bit; see unsample.c. */
static bool near(int64_t a, int64_t b, size_t n)
{
	return llabs(a - b) <= (long long)n;
}

struct tally {
	size_t n_lines;
	size_t n_exact;
	size_t n_one_off;
	size_t n_frames_deepest;
};

static void compare_line(const struct line *own, const struct line *ours, struct tally *tally)
{
	bool exact = true;

	if (!ours) {
		fail_msg("not seen from outside:\n%s", own->key);
		return;
	}
	for (size_t i = 0; i < N_VALUES; i++) {
		if (!near(own->values[i], ours->values[i], own->n))
			fail_msg("value %zu is %" PRId64 ", from outside %" PRId64 ", of\n%s", i,
				 own->values[i], ours->values[i], own->key);
		exact = exact && own->values[i] == ours->values[i];
	}
	tally->n_lines++;
	*(exact ? &tally->n_exact : &tally->n_one_off) += 1;
}

/* The process has made records since it wrote the profile, by writing it; they are of no published
 * collection and have no value. */
static void compare_rest(const struct lines *ours, const struct lines *own)
{
	for (size_t i = 0; i < ours->n; i++) {
		if (find(own, &ours->items[i]))
			continue;
		for (size_t k = 0; k < N_VALUES; k++)
			if (ours->items[i].values[k])
				fail_msg("seen only from outside:\n%s", ours->items[i].key);
	}
}

static void compare(const struct buf *own_bytes, const struct buf *our_bytes, struct tally *tally)
{
	_cleanup_(lines_deinit) struct lines own = {0}, ours = {0};
	int64_t own_period, our_period;

	lines_of(own_bytes, &own, &own_period);
	lines_of(our_bytes, &ours, &our_period);
	assert_int_equal(own_period, our_period);
	assert_true(own.n > 0);
	for (size_t i = 0; i < own.n; i++)
		compare_line(&own.items[i], find(&ours, &own.items[i]), tally);
	compare_rest(&ours, &own);
}

static void read_file(const char *path, struct buf *ret)
{
	const struct root here = {.fd = AT_FDCWD};

	ret->len = 0;
	assert_int_equal(root_read(&here, path, ret), 0);
}

static void check_program(const char *path, const char *env, struct tally *tally)
{
	_cleanup_(buf_deinit) struct buf own = BUF_INIT(PROFILE_BYTES_MAX);
	_cleanup_(buf_deinit) struct buf ours = BUF_INIT(PROFILE_BYTES_MAX);
	_cleanup_(outside_deinit) struct outside o = {.process = {.to = -1}};
	struct heap_report_stats stats = {0};
	struct goheap_totals totals;
	char file[4096];
	const char *const args[] = {file, NULL};

	snprintf(file, sizeof(file), "%s.own.%d", path, (int)getpid());
	outside_init(&o, path, args, env);
	/* twice: all is read the first time, counters and what is new the second time */
	for (int i = 0; i < 2; i++) {
		if (i > 0)
			goprocess_order(&o.process, "again");
		buf_reset(&ours);
		assert_int_equal(read_outside(&o, &cumulative, false, &ours, &stats, &totals), 0);
		assert_int_equal(stats.n_left_out, 0);
		assert_int_equal(stats.n_unnamed, 0);
		read_file(file, &own);
		compare(&own, &ours, tally);
	}
	remove(file);
}

/* Rate 4096 gives some hundred records; 1 records everything and scales nothing; HEAP_GC=0: nothing
 * is published. */
static void equal_to_own(void **state)
{
	static const char *const variants[] = {"default", "stripped", "pie-stripped", "cgo-pie",
					       "cgo-pie-stripped"};
	static const char *const envs[] = {NULL, "HEAP_RATE=4096", "HEAP_RATE=64", "HEAP_GC=0"};
	const char *gos[GOFIXTURE_GOS_MAX] = {NULL};
	size_t n = gofixture_gos(gos);

	(void)state;
	for (size_t i = 0; i < n * array_size(variants); i++) {
		const char *variant = variants[i % array_size(variants)];
		char *path = gofixture_build("test/fixtures/go/heap", gos[i / array_size(variants)],
					     variant);

		for (size_t k = 0; k < array_size(envs); k++) {
			struct tally tally = {0};

			row_begin(path);
			check_program(path, envs[k], &tally);
			print_message("  %s: %zu records, %zu exact, %zu one off\n",
				      envs[k] ? envs[k] : "as it is", tally.n_lines, tally.n_exact,
				      tally.n_one_off);
			assert_true(tally.n_lines > 10);
		}
		free(path);
	}
}

/* ---------------------------------------------------------------- windows */

static void sum_values(const struct buf *bytes, int64_t sums[N_VALUES])
{
	_cleanup_(lines_deinit) struct lines l = {0};
	int64_t period;

	lines_of(bytes, &l, &period);
	for (size_t i = 0; i < l.n; i++) {
		for (size_t k = 0; k < N_VALUES; k++) {
			assert_true(l.items[i].values[k] >= 0);
			sums[k] += l.items[i].values[k];
		}
		assert_true(l.items[i].values[0] || l.items[i].values[2]);
	}
}

/* One window, and what the same read says in all. */
static void read_window(struct outside *o, bool since_start, int64_t sums[N_VALUES],
			struct goheap_totals *ret_totals)
{
	const struct heap_report_opts delta = {.delta = true, .duration_ns = 1};
	_cleanup_(buf_deinit) struct buf window = BUF_INIT(PROFILE_BYTES_MAX);
	struct heap_report_stats stats = {0};

	memset(sums, 0, N_VALUES * sizeof(*sums));
	assert_int_equal(read_outside(o, &delta, since_start, &window, &stats, ret_totals), 0);
	assert_int_equal(stats.n_left_out, 0);
	sum_values(&window, sums);
}

/* The windows' allocations add up to what there is in the end; the first has none, unless the
 * process began in it. */
static void windows_add_up(void **state)
{
	const char *const args[] = {"/dev/null", "inline", "large", NULL};
	_cleanup_(freep) char *path = NULL;
	const char *gos[GOFIXTURE_GOS_MAX] = {NULL};

	(void)state;
	gofixture_gos(gos);
	path = gofixture_build("test/fixtures/go/heap", gos[0], "default");
	for (int since_start = 0; since_start <= 1; since_start++) {
		_cleanup_(outside_deinit) struct outside o = {.process = {.to = -1}};
		struct goheap_totals before = {0}, after = {0};
		int64_t sums[N_VALUES];

		outside_init(&o, path, args, "HEAP_RATE=4096");
		read_window(&o, since_start, sums, &before);
		assert_int_equal(sums[0], since_start ? before.alloc.objects : 0);
		assert_int_equal(sums[1], since_start ? before.alloc.bytes : 0);
		assert_int_equal(sums[2], before.inuse.objects);
		assert_int_equal(sums[3], before.inuse.bytes);

		goprocess_order(&o.process, "again");
		read_window(&o, since_start, sums, &after);
		assert_int_equal(sums[0], after.alloc.objects - before.alloc.objects);
		assert_int_equal(sums[1], after.alloc.bytes - before.alloc.bytes);
		assert_int_equal(sums[2], after.inuse.objects);
		/* four large objects; Go 1.16 may miss the first after a change of the rate */

		before = after;
		read_window(&o, since_start, sums, &after);
		assert_int_equal(sums[0], after.alloc.objects - before.alloc.objects);
		assert_true(sums[1] < 8 << 20);
	}
}

/* ---------------------------------------------------------------- ceilings, memory */

static void ceilings(void **state)
{
	const struct heap_report_opts few = {.max_samples = 3};
	const struct heap_report_opts small = {.max_bytes = 2000};
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(PROFILE_BYTES_MAX);
	_cleanup_(buf_deinit) struct buf tiny = BUF_INIT(100);
	_cleanup_(outside_deinit) struct outside o = {.process = {.to = -1}};
	const char *const args[] = {"/dev/null", "inline", "tiny", "deep", NULL};
	_cleanup_(freep) char *path = NULL;
	const char *gos[GOFIXTURE_GOS_MAX] = {NULL};
	struct heap_report_stats stats = {0};
	struct goheap_totals totals;

	(void)state;
	gofixture_gos(gos);
	path = gofixture_build("test/fixtures/go/heap", gos[0], "default");
	outside_init(&o, path, args, "HEAP_RATE=4096");
	assert_int_equal(read_outside(&o, &few, false, &out, &stats, &totals), 0);
	assert_true(stats.n_records >= 3);
	assert_true(stats.n_left_out > 0);
	assert_int_equal(read_outside(&o, &small, false, &out, &stats, &totals), 0);
	assert_true(stats.n_left_out > 0);
	assert_int_equal(read_outside(&o, &cumulative, false, &tiny, &stats, &totals), BUF_FULL);
	assert_int_equal(tiny.len, 0);
}

static int report_again(void *ctx)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(PROFILE_BYTES_MAX);
	struct heap_report_stats stats = {0};
	struct goheap_totals totals;

	return read_outside(ctx, &cumulative, false, &out, &stats, &totals);
}

static void no_memory(void **state)
{
	_cleanup_(outside_deinit) struct outside o = {.process = {.to = -1}};
	const char *const args[] = {"/dev/null", "tiny", NULL};
	_cleanup_(freep) char *path = NULL;
	const char *gos[GOFIXTURE_GOS_MAX] = {NULL};

	(void)state;
	gofixture_gos(gos);
	path = gofixture_build("test/fixtures/go/heap", gos[0], "default");
	outside_init(&o, path, args, "HEAP_RATE=4096");
	assert_int_equal(report_again(&o), 0);
	assert_true(allocfail_each(report_again, &o) > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_to_own),
		cmocka_unit_test(windows_add_up),
		cmocka_unit_test(ceilings),
		cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
