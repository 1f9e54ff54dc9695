// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/loop.h"
#include "base/root.h"
#include "discovery/pid.h"
#include "procmap/address_space.h"
#include "runtimes/runtimes.h"
#include "support/allocfail.h"
#include "support/metrics.h"

DEFINE_CLEANUP(struct runtimes *, runtimes_freep, runtimes_free);

#define LONG "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* ---------------------------------------------------------------- two readers */

/* The first reader's answers, by the frame's first word. */
struct answer {
	int result;
	struct runtime_place place;
};

static const struct runtime_place inlined[] = {
	{.function = {"inner", "app.src", 40}, .line = 41},
	{.function = {"handle", "app.src", 10}, .line = 12},
};

static const struct answer answers[] = {
	{0, {.function = {"handle", "app.src", 10}, .line = 12}},
	{0, {.function = {"handle", "app.src", 10}, .line = 13}},
	{0, {.function = {"handle", "lib.src", 10}, .line = 12}},
	{0, {.function = {"handle", "app.src", 20}, .line = 22}},
	{0, {.function = {"", "", 0}, .line = 0}},
	{0, {.function = {"a\xff\x1b[1mb", "c\nd", 0}, .line = 0}},
	{0,
	 {.function = {LONG LONG LONG LONG LONG, LONG LONG LONG LONG LONG LONG LONG LONG LONG, 1},
	  .line = 1}},
	{RUNTIME_GONE, {.function = {"never", "seen", 0}, .line = 0}},
	{-EIO, {.function = {"never", "seen", 0}, .line = 0}},
	{0, {{"outer", "app.src", 30}, 31, inlined, array_size(inlined), 0}},
	{0, {{"outer", "app.src", 30}, 32, inlined, array_size(inlined), 0}},
	{0, {{"outer", "app.src", 30}, 31, inlined, 1, 0}},
	{RUNTIME_NO_PLACE, {.function = {"handle", "app.src", 10}, .line = 0}},
};
#define NO_PLACE 12

/* First words of frames of code that is replaced: the name is the number of names that were asked
 * for. It counts for no time, or for ever. */
#define REPLACED 2000
#define KEPT	 2001

static int n_readers;
static int n_asked; /* for a name */
static int n_wants;

static int ant_new(const struct runtime_host *host, void **ret)
{
	(void)host;
	*ret = &n_readers;
	n_readers++;
	return 0;
}

static void ant_free(void *reader)
{
	assert_ptr_equal(reader, &n_readers);
	n_readers--;
}

/* Of the processes with even numbers. */
static bool ant_runs(void *reader, const struct address_space_who *who,
		     const struct address_space *space)
{
	(void)space;
	assert_ptr_equal(reader, &n_readers);
	return who->pid.pid % 2 == 0;
}

static int ant_frame_name(void *reader, const struct address_space_who *who,
			  const struct frame_record *frame, struct runtime_place *ret)
{
	static char name[32];

	assert_ptr_equal(reader, &n_readers);
	assert_int_equal(who->pid.pid, 42);
	n_asked++;
	if (frame->words[0] >= array_size(answers)) {
		snprintf(name, sizeof(name), "f%llu", (unsigned long long)frame->words[0]);
		*ret = (struct runtime_place){.function = {name, "many.src", 1}, .line = 1};
		if (frame->words[0] == REPLACED || frame->words[0] == KEPT) {
			snprintf(name, sizeof(name), "f%d", n_asked);
			ret->until_ns = frame->words[0] == REPLACED ? 1 : UINT64_MAX;
		}
		return 0;
	}
	*ret = answers[frame->words[0]].place;
	return answers[frame->words[0]].result;
}

static bool ant_wants(void *reader, const struct address_space_who *who,
		      const struct frame_record *frame)
{
	assert_ptr_equal(reader, &n_readers);
	assert_int_equal(who->pid.pid, 42);
	n_wants++;
	return frame->words[0] >= array_size(answers);
}

static bool bee_runs(void *reader, const struct address_space_who *who,
		     const struct address_space *space)
{
	(void)reader;
	(void)space;
	return who->pid.pid % 3 == 0;
}

static const struct runtime ant = {.name = "ant",
				   .new = ant_new,
				   .free = ant_free,
				   .runs = ant_runs,
				   .wants = ant_wants,
				   .frame_name = ant_frame_name};
static const struct runtime bee = {.name = "bee", .runs = bee_runs};
static const struct runtime *const table[] = {NULL, NULL, &ant, &bee};
static const struct address_space_who who = {.pid = {.pid = 42}};

#define ANT 2
#define BEE 3

static struct runtimes *make(void)
{
	const struct runtimes_opts opts = {.table = table, .n = array_size(table)};
	struct runtimes *rs;

	assert_int_equal(runtimes_new(&opts, &rs), 0);
	return rs;
}

static struct frame resolve(struct runtimes *rs, struct frame_record record)
{
	struct frame frame = {0};

	assert_int_equal(runtimes_resolve(rs, &who, &record, &frame), 0);
	return frame;
}

static struct frame_record function(uint64_t word)
{
	return (struct frame_record){FRAME_RUNTIME, ANT, 0, 2, {word, 0}};
}

/* ---------------------------------------------------------------- frames */

struct resolve_row {
	const char *name;
	struct frame_record record;
	enum image_kind kind;
	const char *path, *function, *file;
	uint32_t start_line, line;
	const char *outcome;
};

static const struct resolve_row resolve_rows[] = {
	{"a function",
	 {FRAME_RUNTIME, ANT, 0, 2, {0, 0}},
	 IMAGE_RUNTIME,
	 "[ant]",
	 "handle",
	 "app.src",
	 10,
	 12,
	 "ok"},
	{"nothing known but that there is one",
	 {FRAME_RUNTIME, ANT, 0, 2, {4, 0}},
	 IMAGE_RUNTIME,
	 "[ant]",
	 "",
	 "",
	 0,
	 0,
	 "ok"},
	{"bytes that are no text",
	 {FRAME_RUNTIME, ANT, 0, 2, {5, 0}},
	 IMAGE_RUNTIME,
	 "[ant]",
	 "a??[1mb",
	 "c?d",
	 0,
	 0,
	 "ok"},
	{"gone",
	 {FRAME_RUNTIME, ANT, 0, 2, {7, 0}},
	 IMAGE_BROKEN,
	 "[ant]",
	 "[ant: gone]",
	 "",
	 0,
	 0,
	 "gone"},
	{"cannot be read any more",
	 {FRAME_RUNTIME, ANT, 0, 2, {8, 0}},
	 IMAGE_BROKEN,
	 "[ant]",
	 "[ant: gone]",
	 "",
	 0,
	 0,
	 "gone"},
	{"the walker could not read it",
	 {FRAME_BROKEN, BEE, FRAME_REASON_UNREADABLE, 1, {0x10, 0}},
	 IMAGE_BROKEN,
	 "[bee]",
	 "[bee: unreadable]",
	 "",
	 0,
	 0,
	 "broken"},
	{"the walker did not understand it",
	 {FRAME_BROKEN, ANT, FRAME_REASON_ODD, 1, {0x10, 0}},
	 IMAGE_BROKEN,
	 "[ant]",
	 "[ant: not understood]",
	 "",
	 0,
	 0,
	 "broken"},
	{"no reader for it",
	 {FRAME_RUNTIME, 1, 0, 2, {0, 0}},
	 IMAGE_BROKEN,
	 "[runtime 1]",
	 "[runtime 1: no reader]",
	 "",
	 0,
	 0,
	 "no_reader"},
	{"a number behind the last",
	 {FRAME_RUNTIME, 127, 0, 2, {0, 0}},
	 IMAGE_BROKEN,
	 "[runtime 127]",
	 "[runtime 127: no reader]",
	 "",
	 0,
	 0,
	 "no_reader"},
	{"broken, and no reader either",
	 {FRAME_BROKEN, 4, FRAME_REASON_ODD, 1, {0, 0}},
	 IMAGE_BROKEN,
	 "[runtime 4]",
	 "[runtime 4: not understood]",
	 "",
	 0,
	 0,
	 "broken"},
};

static void test_resolve(void **state)
{
	_cleanup_(runtimes_freep) struct runtimes *rs = make();

	(void)state;
	for (size_t i = 0; i < array_size(resolve_rows); i++) {
		const struct resolve_row *row = &resolve_rows[i];
		const uint64_t before =
			metrics_get(runtimes_collect, rs, "podprof_runtime_frames", row->outcome);
		struct frame got;

		row_begin(row->name);
		got = resolve(rs, row->record);
		assert_int_equal(got.image->kind, row->kind);
		assert_string_equal(got.image->path, row->path);
		assert_string_equal(got.image->function.name, row->function);
		assert_string_equal(got.image->function.file, row->file);
		assert_int_equal(got.image->function.start_line, row->start_line);
		assert_true(got.vaddr == row->line);
		assert_null(got.image->file);
		assert_int_equal(
			metrics_get(runtimes_collect, rs, "podprof_runtime_frames", row->outcome),
			before + 1);
		image_unref(got.image);
	}
}

/* Equal functions are one image; the frame has the line. */
static void test_equal(void **state)
{
	_cleanup_(runtimes_freep) struct runtimes *rs = make();
	struct frame frames[4], again;

	(void)state;
	for (uint64_t i = 0; i < array_size(frames); i++)
		frames[i] = resolve(rs, function(i));
	assert_ptr_equal(frames[0].image, frames[1].image);
	assert_true(frames[0].vaddr != frames[1].vaddr);
	assert_ptr_not_equal(frames[0].image, frames[2].image);
	assert_ptr_not_equal(frames[0].image, frames[3].image);
	for (size_t i = 0; i < array_size(frames); i++)
		image_unref(frames[i].image);

	again = resolve(rs, function(0));
	runtimes_sweep(rs); /* seen since the last time */
	assert_int_equal(metrics_get(runtimes_collect, rs, "podprof_runtime_functions", ""), 3);
	runtimes_sweep(rs);
	assert_int_equal(metrics_get(runtimes_collect, rs, "podprof_runtime_functions", ""), 1);
	image_unref(again.image);
	runtimes_sweep(rs);
	assert_int_equal(metrics_get(runtimes_collect, rs, "podprof_runtime_functions", ""), 0);
}

/* A function whose place is not known is the function without a line, until the place is known. */
static void test_no_place(void **state)
{
	_cleanup_(runtimes_freep) struct runtimes *rs = make();
	const struct frame known = resolve(rs, function(0));
	struct frame frame;
	int before;

	(void)state;
	for (int i = 0; i < 2; i++) {
		before = n_asked;
		frame = resolve(rs, function(NO_PLACE));
		assert_int_equal(n_asked, before + 1);
		assert_ptr_equal(frame.image, known.image);
		assert_int_equal(frame.vaddr, 0);
		image_unref(frame.image);
	}
	assert_int_equal(metrics_get(runtimes_collect, rs, "podprof_runtime_frames", "ok"), 3);
	image_unref(known.image);
}

/* Functions that are inlined are one frame with the outermost function, and equal if all are. */
static void test_inlined(void **state)
{
	_cleanup_(runtimes_freep) struct runtimes *rs = make();
	const struct frame plain = resolve(rs, function(0));
	struct frame frames[4];

	(void)state;
	for (uint64_t i = 0; i < array_size(frames); i++)
		frames[i] = resolve(rs, function(i < 3 ? 9 + i : 9));
	assert_int_equal(frames[0].image->kind, IMAGE_RUNTIME);
	assert_string_equal(frames[0].image->path, "[ant]");
	assert_string_equal(frames[0].image->function.name, "outer");
	assert_int_equal(frames[0].vaddr, 31);
	assert_int_equal(frames[0].image->n_places, 3);
	assert_string_equal(frames[0].image->places[0].image->function.name, "inner");
	assert_int_equal(frames[0].image->places[0].vaddr, 41);
	assert_ptr_equal(frames[0].image->places[1].image, plain.image);
	assert_int_equal(frames[0].image->places[1].vaddr, 12);
	assert_int_equal(frames[0].image->places[2].vaddr, 31);
	assert_null(frames[0].image->places[2].image->places);
	assert_ptr_equal(frames[0].image, frames[3].image);
	assert_ptr_not_equal(frames[0].image, frames[1].image);
	assert_int_equal(frames[2].image->n_places, 2);
	image_unref(plain.image);
	for (size_t i = 1; i < array_size(frames); i++)
		image_unref(frames[i].image);

	/* the functions go after the places */
	runtimes_sweep(rs);
	runtimes_sweep(rs);
	assert_string_equal(frames[0].image->places[1].image->function.name, "handle");
	image_unref(frames[0].image);
	runtimes_sweep(rs);
	runtimes_sweep(rs);
	assert_int_equal(metrics_get(runtimes_collect, rs, "podprof_runtime_functions", ""), 0);
}

static void test_long_names(void **state)
{
	_cleanup_(runtimes_freep) struct runtimes *rs = make();
	struct frame got = resolve(rs, function(6));

	(void)state;
	assert_int_equal(strlen(got.image->function.name), RUNTIMES_NAME_MAX - 1);
	assert_int_equal(strlen(got.image->function.file), RUNTIMES_FILE_MAX - 1);
	image_unref(got.image);
}

/* New functions of an owner, until one has no room. Returns the number of the others. */
static uint64_t fill(struct runtimes *rs, uint64_t owner, uint64_t from)
{
	for (uint64_t i = 0;; i++) {
		struct address_space_who filling = who;
		struct frame_record record = function(from + i);
		struct frame got = {0};
		enum image_kind kind;

		filling.owner = owner;
		assert_int_equal(runtimes_resolve(rs, &filling, &record, &got), 0);
		kind = got.image->kind;
		if (kind == IMAGE_BROKEN)
			assert_string_equal(got.image->function.name, "[ant: too many functions]");
		image_unref(got.image);
		if (kind == IMAGE_BROKEN)
			return i;
	}
}

/* The owner that fills all that it may leaves room for its neighbours, each less than the one
 * before. */
static void test_ceiling(void **state)
{
	_cleanup_(runtimes_freep) struct runtimes *rs = make();
	uint64_t n, before;
	struct frame got;

	(void)state;
	n = fill(rs, 1, 1000);
	assert_true(n > RUNTIMES_FUNCTIONS_BYTES_MAX / 1000);
	assert_true(metrics_get(runtimes_collect, rs, "podprof_runtime_profile_bytes", "") <
		    RUNTIMES_FUNCTIONS_BYTES_MAX + (5 << 20));
	assert_int_equal(metrics_get(runtimes_collect, rs, "podprof_runtime_frames", "full"), 1);
	before = n;
	for (uint64_t owner = 2; owner < 8; owner++) {
		uint64_t own = fill(rs, owner, 1000000 * owner);

		assert_true(own > 300 && own < before);
		before = own;
	}
	assert_int_equal(fill(rs, 1, 999000), 0);
	assert_true(metrics_get(runtimes_collect, rs, "podprof_runtime_profile_bytes", "") <
		    RUNTIMES_FUNCTIONS_BYTES_MAX + (5 << 20));

	/* known functions keep their names, and there is room again after a sweep */
	got = resolve(rs, function(1000));
	assert_string_equal(got.image->function.name, "f1000");
	image_unref(got.image);
	runtimes_sweep(rs);
	runtimes_sweep(rs);
	assert_int_equal(metrics_get(runtimes_collect, rs, "podprof_runtime_profile_bytes", ""), 0);
	got = resolve(rs, function(0));
	assert_string_equal(got.image->function.name, "handle");
	image_unref(got.image);
}

/* Once a window, the reader is asked for the name of a frame that is known: so it learns that the
 * function is in use. */
static void test_known(void **state)
{
	_cleanup_(runtimes_freep) struct runtimes *rs = make();
	const struct frame_record known = {FRAME_RUNTIME, ANT, 0, 2, {9, 8}};
	const struct frame_record late = {FRAME_RUNTIME, ANT, 0, 2, {NO_PLACE, 8}};
	const struct frame_record *const both[] = {&known, &late};
	struct frame got;

	(void)state;
	n_wants = 0;
	for (size_t i = 0; i < array_size(both); i++) {
		assert_false(runtimes_wants(rs, &who, both[i]));
		assert_int_equal(runtimes_resolve(rs, &who, both[i], &got), 0);
		image_unref(got.image);
	}
	assert_int_equal(n_wants, 2);
	assert_false(runtimes_wants(rs, &who, &known));
	assert_int_equal(n_wants, 2);
	assert_false(runtimes_wants(rs, &who, &late)); /* its place may be read now */
	assert_int_equal(n_wants, 3);
	assert_true(runtimes_wants(rs, &who,
				   &(struct frame_record){FRAME_RUNTIME, ANT, 0, 2, {1000, 0}}));
	assert_int_equal(n_wants, 4);

	runtimes_sweep(rs); /* the next window */
	for (size_t i = 0; i < 3; i++) {
		assert_false(runtimes_wants(rs, &who, &known));
		assert_int_equal(n_wants, 5);
		assert_int_equal(runtimes_resolve(rs, &who, &known, &got), 0);
		image_unref(got.image);
	}
}

/* Code that is replaced at its address has a new name once the old one counts no more. */
static void test_replaced(void **state)
{
	static const uint64_t words[] = {REPLACED, KEPT};
	_cleanup_(runtimes_freep) struct runtimes *rs = make();

	(void)state;
	n_asked = n_wants = 0;
	for (size_t i = 0; i < 2 * array_size(words); i++) {
		const uint64_t word = words[i / 2];
		const struct frame_record record = {FRAME_RUNTIME, ANT, 0, 2, {word, 8}};
		struct frame got;
		char want[32];

		(void)runtimes_wants(rs, &who, &record);
		assert_int_equal(runtimes_resolve(rs, &who, &record, &got), 0);
		snprintf(want, sizeof(want), "f%d", n_asked);
		assert_string_equal(got.image->function.name, want);
		image_unref(got.image);
	}
	assert_int_equal(n_asked, 3);
	assert_int_equal(n_wants, 3);
}

/* ---------------------------------------------------------------- processes */

static void test_runtime_of_process(void **state)
{
	static const uint32_t wants[] = {ANT, 0, ANT, BEE, ANT, 0, ANT};
	_cleanup_(runtimes_freep) struct runtimes *rs = make();

	(void)state;
	for (uint64_t pid = 0; pid < array_size(wants); pid++)
		assert_int_equal(
			runtimes_of(rs, &(struct address_space_who){.pid = {.pid = pid}}, NULL),
			wants[pid]);
}

/* podprof's own. */
static void test_product(void **state)
{
	struct frame_record record = {.kind = FRAME_RUNTIME, .runtime = FRAME_RUNTIME_PYTHON};
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	struct runtimes_opts opts = {.table = NULL, .host.proc = &proc};
	struct runtimes *rs;
	struct loop *loop;
	struct frame got;
	char unknown[64];

	(void)state;
	snprintf(unknown, sizeof(unknown), "[runtime %d: no reader]", FRAME_RUNTIME_MAX);
	assert_int_equal(root_open("/proc", &proc), 0);
	assert_int_equal(loop_new(&loop), 0);
	opts.host.loop = loop;
	assert_int_equal(runtimes_new(&opts, &rs), 0);
	assert_false(runtimes_wants(rs, &who, &record));
	assert_null(runtimes_record(rs, FRAME_RUNTIME_PYTHON, &who));
	assert_true(runtimes_has_excerpts(rs, FRAME_RUNTIME_PYTHON));
	assert_false(runtimes_has_excerpts(rs, FRAME_RUNTIME_HOTSPOT));
	got = resolve(rs, record);
	assert_string_equal(got.image->function.name, "[python: gone]");
	image_unref(got.image);
	record.runtime = FRAME_RUNTIME_MAX;
	got = resolve(rs, record);
	assert_string_equal(got.image->function.name, unknown);
	image_unref(got.image);
	runtimes_free(rs);
	loop_free(loop);
}

static int resolve_some(void *ctx)
{
	const struct runtimes_opts opts = {.table = table, .n = array_size(table)};
	_cleanup_(runtimes_freep) struct runtimes *rs = NULL;
	int r = runtimes_new(&opts, &rs);

	(void)ctx;
	for (uint64_t i = 0; !r && i < array_size(answers); i++) {
		const struct frame_record record = function(i);
		struct frame frame = {0};

		r = runtimes_resolve(rs, &who, &record, &frame);
		assert_int_equal(!frame.image, r != 0);
		image_unref(frame.image);
	}
	return r;
}

static void test_no_memory(void **state)
{
	(void)state;
	assert_int_equal(resolve_some(NULL), 0);
	assert_true(allocfail_each(resolve_some, NULL) > 10);
	assert_int_equal(n_readers, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resolve),
		cmocka_unit_test(test_equal),
		cmocka_unit_test(test_no_place),
		cmocka_unit_test(test_inlined),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_ceiling),
		cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_runtime_of_process),
		cmocka_unit_test(test_product),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
