// SPDX-License-Identifier: Apache-2.0
/*
 * Folded stacks of this program itself, encoded, read again and printed: a line a sample, with
 * values, functions from the innermost on, and labels sorted by name.
 */
#include "support/test.h"

#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/labels.h"
#include "base/root.h"
#include "pprof/reader.h"
#include "procmap/image.h"
#include "cpu/fold.h"
#include "cpu/report.h"
#include "support/allocfail.h"
#include "support/fixture.h"
#include "symbolize/symbolizer.h"

#define BYTES_MAX  (4u << 20)
#define PARTS_MAX  3
#define STACKS_MAX 4
#define FRAMES_MAX 6

#define say(...) assert_int_equal(buf_printf(__VA_ARGS__), 0)

__attribute__((noinline)) static void cpu_inner(void)
{
	__asm__ volatile("nop; nop");
}

__attribute__((noinline)) static void cpu_outer(void)
{
	cpu_inner();
	__asm__ volatile("nop; nop");
}

/* ---------------------------------------------------------------- the images */

struct bench {
	struct root proc;
	struct symbolizer *symbolizer;
	struct image *self, *stripped, *linked, *kernel, *anon, *unknown, *function, *inlined,
		*broken;
	uint64_t bias;
};

static int first_bias(struct dl_phdr_info *info, size_t size, void *ret)
{
	(void)size;
	*(uint64_t *)ret = info->dlpi_addr;
	return 1;
}

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct symbolizer_opts opts = {.cache_bytes = 16u << 20};
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), elf;
	struct image *inner;
	char path[FIXTURE_PATH_MAX];

	assert_non_null(b);
	*state = b;
	dl_iterate_phdr(first_bias, &b->bias);
	assert_int_equal(root_open("/proc", &b->proc), 0);
	opts.proc = &b->proc;
	assert_int_equal(symbolizer_new(&opts, &b->symbolizer), 0);
	assert_int_equal(image_new_file(fd, "/bin/test_cpu", &b->self, &elf), 0);
	fd = open(fixture_path("plain-stripped", path), O_RDONLY | O_CLOEXEC);
	assert_int_equal(image_new_file(fd, "/bin/stripped", &b->stripped, &elf), 0);
	fd = open(fixture_path("inline-linked", path), O_RDONLY | O_CLOEXEC);
	assert_int_equal(image_new_file(fd, path, &b->linked, &elf), 0);
	assert_int_equal(image_new(IMAGE_KERNEL, "[kernel.kallsyms]", &b->kernel), 0);
	assert_int_equal(image_new(IMAGE_ANON, "[anon]", &b->anon), 0);
	assert_int_equal(image_new(IMAGE_UNKNOWN, "[unknown]", &b->unknown), 0);
	assert_int_equal(image_new_function(IMAGE_RUNTIME, "[python]",
					    &(struct image_function){"App.run", "app.py", 10},
					    &b->function),
			 0);
	assert_int_equal(image_new_function(IMAGE_RUNTIME, "[python]",
					    &(struct image_function){"App.inner", "app.py", 30},
					    &inner),
			 0);
	assert_int_equal(
		image_new_inlined((struct frame[]){{inner, 31}, {b->function, 13}}, 2, &b->inlined),
		0);
	image_unref(inner);
	assert_int_equal(image_new_function(IMAGE_BROKEN, "[python]",
					    &(struct image_function){"[python: gone]", "", 0},
					    &b->broken),
			 0);
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	image_unref(b->self);
	image_unref(b->stripped);
	image_unref(b->linked);
	image_unref(b->kernel);
	image_unref(b->anon);
	image_unref(b->unknown);
	image_unref(b->function);
	image_unref(b->inlined);
	image_unref(b->broken);
	symbolizer_free(b->symbolizer);
	root_deinit(&b->proc);
	free(b);
	return 0;
}

/* ---------------------------------------------------------------- input */

/* i, o: at the first instruction of cpu_inner(), cpu_outer(); I, O: after a call in them; a:
 * anonymous memory; s, S: a file without symbols; l: outside of the functions of a file with a
 * debug file; n: outside of this program's functions; k: the kernel; u: unknown; r, R: lines 12 and
 * 13 of a language runtime's function; q: line 13 with another function inlined; b: an unknown
 * frame of a runtime. */
static struct frame frame_of(const struct bench *b, char what, uint8_t *ret_is_return)
{
	const uint64_t inner = (uint64_t)(uintptr_t)cpu_inner - b->bias;
	const uint64_t outer = (uint64_t)(uintptr_t)cpu_outer - b->bias;

	*ret_is_return = what == 'I' || what == 'O';
	switch (what) {
	case 'i':
		return (struct frame){b->self, inner};
	case 'I':
		return (struct frame){b->self, inner + 1};
	case 'o':
		return (struct frame){b->self, outer};
	case 'O':
		return (struct frame){b->self, outer + 1};
	case 'a':
		return (struct frame){b->anon, 0x1234};
	case 'k':
		return (struct frame){b->kernel, UINT64_MAX - 1};
	case 'n':
		return (struct frame){b->self, UINT64_MAX - 1};
	case 'l':
		return (struct frame){b->linked, UINT64_MAX - 1};
	case 's':
	case 'S':
		return (struct frame){b->stripped, 1};
	case 'r':
		return (struct frame){b->function, 12};
	case 'R':
		return (struct frame){b->function, 13};
	case 'q':
		return (struct frame){b->inlined, 13};
	case 'b':
		return (struct frame){b->broken, 0};
	default:
		return (struct frame){b->unknown, 0};
	}
}

struct stack_row {
	const char *frames; /* and "~" of truncated stacks, or "@NAME" of a thread */
	uint64_t count;
	uint64_t value;
};

/* @labels: "name=value,name=value"; NULL for none at all. */
struct part_row {
	const char *labels;
	bool off_cpu;
	struct stack_row stacks[STACKS_MAX];
};

struct report_row {
	const char *name;
	struct cpu_report_opts opts;
	struct part_row parts[PARTS_MAX];
	const char *types;
	const char *expected;
	uint64_t left_out;
	const char *unnamed[STACKS_MAX]; /* the comments about them, the last */
	const char *whole;		 /* the comment behind the caller's */
};

static struct fold *make_fold(const struct bench *b, const struct part_row *row)
{
	struct fold *fold;

	assert_int_equal(fold_new(&fold), 0);
	for (size_t i = 0; i < STACKS_MAX && row->stacks[i].frames; i++) {
		const struct stack_row *s = &row->stacks[i];
		struct frame frames[FRAMES_MAX];
		uint8_t is_return[FRAMES_MAX];
		struct fold_sample sample;
		size_t n = strcspn(s->frames, "~@");

		assert_true(n <= FRAMES_MAX);
		for (size_t k = 0; k < n; k++)
			frames[k] = frame_of(b, s->frames[k], &is_return[k]);
		sample = (struct fold_sample){
			.frames = frames,
			.return_address = is_return,
			.n_frames = n,
			.thread = s->frames[n] == '@' ? s->frames + n + 1 : NULL,
			.is_truncated = s->frames[n] == '~',
		};
		assert_int_equal(fold_add(fold, &sample, s->count, s->value), 0);
	}
	return fold;
}

static void make_labels(const char *text, struct labels *ret)
{
	char copy[1024], *at = copy, *item;

	snprintf(copy, sizeof(copy), "%s", text);
	while ((item = strsep(&at, ","))) {
		char *value = strchr(item, '=');

		if (!value)
			continue;
		*value = '\0';
		assert_int_equal(labels_set(ret, item, value + 1), 0);
	}
}

struct input {
	struct bench *bench;
	struct cpu_report_part parts[PARTS_MAX];
	struct labels labels[PARTS_MAX];
	size_t n;
};

static void input_make(struct bench *b, const struct report_row *row, struct input *ret)
{
	*ret = (struct input){.bench = b};
	for (; ret->n < PARTS_MAX && row->parts[ret->n].stacks[0].frames; ret->n++) {
		const struct part_row *part = &row->parts[ret->n];

		if (part->labels)
			make_labels(part->labels, &ret->labels[ret->n]);
		ret->parts[ret->n] = (struct cpu_report_part){
			.fold = make_fold(b, part),
			.labels = part->labels ? &ret->labels[ret->n] : NULL,
			.off_cpu = part->off_cpu,
		};
	}
}

static void input_deinit(struct input *in)
{
	for (size_t i = 0; i < in->n; i++) {
		fold_free((struct fold *)in->parts[i].fold);
		labels_deinit(&in->labels[i]);
	}
}

/* ---------------------------------------------------------------- output */

static void print_sample(const struct pprof_tables *t, size_t i, struct buf *out)
{
	const struct pprof_sample_row *s = &t->samples[i];

	for (size_t k = 0; k < t->n_types; k++)
		say(out, "%" PRId64 " ", t->values[i * t->n_types + k]);
	for (size_t k = 0; k < s->n_locations; k++) {
		const struct pprof_location_row *at = &t->locations[s->locations[k] - 1];

		for (size_t l = 0; l < at->n_lines; l++)
			say(out, "%s ", t->strings[t->functions[at->lines[l].function - 1].name]);
	}
	for (size_t k = 0; k < s->n_labels; k++)
		say(out, "%s=%s ", t->strings[s->labels[k].key], t->strings[s->labels[k].str]);
	say(out, "\n");
}

static void print_types(const struct pprof_tables *t, struct buf *out)
{
	for (size_t k = 0; k < t->n_types; k++)
		say(out, "%s/%s ", t->strings[t->types[k].type], t->strings[t->types[k].unit]);
	say(out, "period %s/%s", t->strings[t->period_type.type], t->strings[t->period_type.unit]);
}

static void check_row(struct bench *b, const struct report_row *row)
{
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(BYTES_MAX), text = BUF_INIT(BYTES_MAX),
					 types = BUF_INIT(BYTES_MAX);
	struct cpu_report_stats stats = {0};
	const struct pprof_tables *t;
	struct reader *reader;
	struct input in;
	const char *why;
	size_t before;

	row_begin(row->name);
	input_make(b, row, &in);
	assert_int_equal(cpu_report(in.parts, in.n, b->symbolizer, &row->opts, &bytes, &stats), 0);
	assert_int_equal(memmem(bytes.data, bytes.len, "nanoseconds", 11) != NULL,
			 row->opts.for_disk);
	assert_int_equal(stats.n_left_out, row->left_out);
	assert_int_equal(reader_new(bytes.data, bytes.len, BYTES_MAX, &reader, &why), 0);
	t = reader_tables(reader);
	assert_int_equal(t->period, row->opts.period);
	assert_int_equal(t->time_ns, row->opts.start_ns);
	assert_int_equal(t->duration_ns, row->opts.duration_ns);
	print_types(t, &types);
	assert_string_equal((const char *)types.data, row->types);
	for (size_t i = 0; i < t->n_samples; i++)
		print_sample(t, i, &text);
	assert_string_equal((const char *)text.data, row->expected);
	for (size_t i = 0; i < row->opts.n_comments; i++)
		assert_string_equal(t->strings[t->comments[i]], row->opts.comments[i]);
	before = row->opts.n_comments + 1;
	assert_true(t->n_comments >= before);
	assert_non_null(strstr(t->strings[t->comments[before - 1]],
			       row->whole ? row->whole : "complete stacks: 100.0 % of "));
	for (size_t i = before; i < t->n_comments; i++)
		assert_string_equal(t->strings[t->comments[i]], row->unnamed[i - before]);
	assert_null(row->unnamed[t->n_comments - before]);
	reader_free(reader);
	input_deinit(&in);
}

static const char *const comments[] = {"host", "version=1.2"};

#define TIME                                                                                 \
	{                                                                                    \
		.kind = CPU_REPORT_TIME, .period = 10101010, .start_ns = 5, .duration_ns = 7 \
	}
#define TIME_TYPES "samples/count cpu/nanoseconds period cpu/nanoseconds"

static const struct report_row rows[] = {
	{"each part's labels are on each of its samples and on no other",
	 TIME,
	 {{"pid=7,comm=nginx", false, {{"iO", 2, 20}, {"o", 1, 10}}},
	  {"pid=8,comm=a name \xc3\xbc", false, {{"iO", 3, 30}}}},
	 TIME_TYPES,
	 .expected = "2 20 cpu_inner cpu_outer comm=nginx pid=7 \n"
		     "1 10 cpu_outer comm=nginx pid=7 \n"
		     "3 30 cpu_inner cpu_outer comm=a name \xc3\xbc pid=8 \n"},
	{"names of threads",
	 TIME,
	 {{"pid=7", false, {{"i@main", 1, 1}, {"i@t-2", 2, 2}, {"i", 3, 3}}},
	  {NULL, false, {{"i@main", 4, 4}}}},
	 TIME_TYPES,
	 .expected = "1 1 cpu_inner pid=7 thread=main \n"
		     "2 2 cpu_inner pid=7 thread=t-2 \n"
		     "3 3 cpu_inner pid=7 \n"
		     "4 4 cpu_inner thread=main \n"},
	{"a label of that name",
	 TIME,
	 {{"thread=mine", false, {{"i@main", 1, 1}, {"i@t-2", 2, 2}}}},
	 TIME_TYPES,
	 .expected = "3 3 cpu_inner thread=mine \n"},
	{"no labels",
	 TIME,
	 {{NULL, false, {{"i", 1, 1}}}},
	 TIME_TYPES,
	 .expected = "1 1 cpu_inner \n"},
	{"for a disk",
	 {.kind = CPU_REPORT_TIME, .period = 1, .for_disk = true},
	 {{NULL, false, {{"i", 1, 1}}}},
	 TIME_TYPES,
	 .expected = "1 1 cpu_inner \n"},
	{"the same stack with the same labels in two parts is one sample",
	 TIME,
	 {{"pid=7", false, {{"i", 1, 1}}}, {"pid=7", false, {{"i", 1, 1}}}},
	 TIME_TYPES,
	 .expected = "2 2 cpu_inner pid=7 \n"},
	/* a return address belongs to the preceding call, an innermost pc to the next instruction
	 */
	{"return addresses",
	 TIME,
	 {{NULL, false, {{"I", 1, 1}, {"iIOo", 1, 1}}}},
	 TIME_TYPES,
	 .expected = "1 1 cpu_inner \n1 1 cpu_inner cpu_inner cpu_outer cpu_outer \n"},
	{"code without a name, and no code",
	 TIME,
	 {{"comm=java", false, {{"aO", 1, 1}, {"iu", 2, 2}}}},
	 TIME_TYPES,
	 .expected = "1 1 [anon] cpu_outer comm=java \n2 2 cpu_inner [unknown] comm=java \n",
	 .unnamed = {"unnamed 66.6% no_mapping [unknown]", "unnamed 33.3% no_perf_map [anon]"}},
	{"a stack counts once for each image, by its innermost frame",
	 TIME,
	 {{NULL, false, {{"asauaO", 1, 1}, {"sS", 1, 2}, {"i", 1, 1}}}},
	 TIME_TYPES,
	 .expected = "1 1 [anon] stripped+0x1 [anon] [unknown] [anon] cpu_outer \n"
		     "1 2 stripped+0x1 stripped+0x1 \n"
		     "1 1 cpu_inner \n",
	 .unnamed = {"unnamed 75.0% stripped_no_debug /bin/stripped",
		     "unnamed 25.0% no_perf_map [anon]", "unnamed 25.0% no_mapping [unknown]"}},
	{"frames of a language runtime between native ones",
	 TIME,
	 {{"pid=7", false, {{"iOrRbO", 1, 1}, {"r", 2, 2}}}},
	 TIME_TYPES,
	 .expected = "1 1 cpu_inner cpu_outer App.run App.run [python: gone] cpu_outer pid=7 \n"
		     "2 2 App.run pid=7 \n",
	 .unnamed = {"unnamed 33.3% runtime [python]"}},
	{"events",
	 {.kind = CPU_REPORT_EVENTS, .event = "page-faults", .period = 100},
	 {{"pid=7", false, {{"i", 2, 200}}}},
	 "samples/count page-faults/count period page-faults/count",
	 .expected = "2 200 cpu_inner pid=7 \n"},
	{"truncated stacks, and samples that no fold has",
	 {.kind = CPU_REPORT_TIME, .period = 10, .n_lost = 5, .lost_value = 55},
	 {{NULL, false, {{"i", 5, 50}, {"i~", 1, 10}}}, {NULL, false, {{"o~", 2, 20}}}},
	 TIME_TYPES,
	 .expected = "6 60 cpu_inner \n2 20 cpu_outer \n5 55 [over the limit] \n",
	 .whole = "complete stacks: 62.5 % of 8 samples"},
	{"no room for waits and for CPU time",
	 {.kind = CPU_REPORT_BOTH, .period = 10, .max_samples = 2},
	 {{NULL, false, {{"i", 2, 20}, {"o", 1, 10}}}, {NULL, true, {{"o", 3, 5000}}}},
	 "samples/count cpu/nanoseconds delay/nanoseconds switches/count period cpu/nanoseconds",
	 .expected = "2 20 0 0 cpu_inner \n1 10 5000 3 [over the limit] \n",
	 .left_out = 4},
	{"waits",
	 {.kind = CPU_REPORT_OFF_CPU, .period = 1},
	 {{"pid=7", false, {{"i", 2, 5000}}}},
	 "delay/nanoseconds switches/count period delay/nanoseconds",
	 .expected = "5000 2 cpu_inner pid=7 \n"},
	{"both",
	 {.kind = CPU_REPORT_BOTH, .period = 10, .comments = comments, .n_comments = 2},
	 {{"pid=7", false, {{"i", 2, 20}}}, {"pid=7", true, {{"o", 3, 5000}}}},
	 "samples/count cpu/nanoseconds delay/nanoseconds switches/count period cpu/nanoseconds",
	 .expected = "2 20 0 0 cpu_inner pid=7 \n0 0 5000 3 cpu_outer pid=7 \n"},
	{"no room",
	 {.kind = CPU_REPORT_TIME, .period = 1, .max_samples = 2},
	 {{NULL, false, {{"i", 1, 1}, {"o", 1, 1}, {"iO", 5, 5}}}, {NULL, false, {{"a", 3, 3}}}},
	 TIME_TYPES,
	 .expected = "1 1 cpu_inner \n9 9 [over the limit] \n",
	 .left_out = 9,
	 .unnamed = {"unnamed 30.0% no_perf_map [anon]"}},
};

static void test_rows(void **state)
{
	for (size_t i = 0; i < array_size(rows); i++)
		check_row(*state, &rows[i]);
}

/* As many labels as a set has. */
static void test_many_labels(void **state)
{
	char labels[1024] = "", expected[1024] = "1 1 cpu_inner ";
	struct report_row row = {"as many labels as there may be",
				 TIME,
				 {{.labels = labels}},
				 TIME_TYPES,
				 .expected = expected};

	row.parts[0].stacks[0] = (struct stack_row){"i", 1, 1};
	for (int i = 0; i < LABELS_MAX; i++) {
		sprintf(labels + strlen(labels), "%sname_%02d=%d", i ? "," : "", i, i * i);
		sprintf(expected + strlen(expected), "name_%02d=%d ", i, i * i);
	}
	strcat(expected, "\n");
	check_row(*state, &row);
}

/* A place is a single location, in the segment of the file, for all processes. */
static void test_places(void **state)
{
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(BYTES_MAX);
	const struct report_row *row = &rows[0];
	struct cpu_report_stats stats = {0};
	const struct pprof_tables *t;
	struct bench *b = *state;
	struct reader *reader;
	struct input in;
	const char *why;

	input_make(b, row, &in);
	assert_int_equal(cpu_report(in.parts, in.n, b->symbolizer, &row->opts, &bytes, &stats), 0);
	assert_int_equal(reader_new(bytes.data, bytes.len, BYTES_MAX, &reader, &why), 0);
	t = reader_tables(reader);
	assert_int_equal(stats.n_samples, 6);
	assert_int_equal(stats.n_places, 3);
	assert_int_equal(stats.n_unnamed, 0);
	assert_int_equal(t->n_locations, 3);
	assert_int_equal(t->n_mappings, 1);
	assert_string_equal(t->strings[t->mappings[0].path], "/bin/test_cpu");
	assert_string_equal(t->strings[t->mappings[0].build_id], b->self->build_id);
	assert_true(t->mappings[0].has_functions);
	for (size_t i = 0; i < t->n_locations; i++)
		assert_true(t->locations[i].address >= t->mappings[0].start &&
			    t->locations[i].address < t->mappings[0].limit);
	reader_free(reader);
	input_deinit(&in);
}

#define OWNER 0x123456789abcdef0

/* The files with a frame without a name. */
struct unnamed {
	size_t n;
	struct stat file; /* the last */
};

static void on_unnamed(void *ctx, uint64_t owner, const char *build_id, int fd)
{
	struct unnamed *unnamed = ctx;

	assert_true(build_id[0] && fd >= 0);
	assert_true(owner == OWNER);
	assert_int_equal(fstat(fd, &unnamed->file), 0);
	unnamed->n++;
}

/* @file: the fixture that is offered; NULL: any. */
static void check_flags(struct bench *b, const char *stack, bool functions, size_t n_files,
			const char *file)
{
	char path[FIXTURE_PATH_MAX];
	struct stat expected;

	struct report_row row = {
		"", TIME, {{NULL, false, {{stack, 1, 1}}}}, TIME_TYPES, .expected = ""};
	struct unnamed unnamed = {0};
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(BYTES_MAX);
	struct cpu_report_stats stats = {0};
	const struct pprof_tables *t;
	struct reader *reader;
	struct input in;
	const char *why;

	row_begin(stack);
	input_make(b, &row, &in);
	row.opts.unnamed = on_unnamed;
	row.opts.unnamed_ctx = &unnamed;
	row.opts.owner = OWNER;
	assert_int_equal(cpu_report(in.parts, in.n, b->symbolizer, &row.opts, &bytes, &stats), 0);
	assert_int_equal(reader_new(bytes.data, bytes.len, BYTES_MAX, &reader, &why), 0);
	t = reader_tables(reader);
	assert_true(t->n_mappings > 0);
	for (size_t i = 0; i < t->n_mappings; i++) {
		const bool is_kernel =
			strcmp(t->strings[t->mappings[i].path], "[kernel.kallsyms]") == 0;

		/* the kernel's mapping is over no process's */
		if (is_kernel)
			assert_true(t->mappings[i].start == 1ull << 63);
		assert_int_equal(t->mappings[i].has_functions, functions);
		assert_false(t->mappings[i].has_filenames);
		assert_false(t->mappings[i].has_line_numbers);
		assert_false(t->mappings[i].has_inline_frames);
	}
	assert_int_equal(unnamed.n, n_files);
	if (file) {
		assert_int_equal(stat(fixture_path(file, path), &expected), 0);
		assert_int_equal(unnamed.file.st_ino, expected.st_ino);
	}
	reader_free(reader);
	input_deinit(&in);
}

/* A backend looks for the names of a mapping without functions: one frame without a name is enough.
 */
static void test_flags(void **state)
{
	check_flags(*state, "i", true, 0, NULL);
	check_flags(*state, "iO", true, 0, NULL);
	check_flags(*state, "s", false, 1, "plain-stripped");
	check_flags(*state, "in", false, 1, NULL);
	check_flags(*state, "l", false, 1, "inline.debug");
	check_flags(*state, "a", false, 0, NULL);
	check_flags(*state, "k", false, 0, NULL);
}

/* All functions of a runtime are in one mapping; each line is a location without an address, and
 * inlined functions are lines of one location. */
static void test_runtime_places(void **state)
{
	static const struct report_row row = {
		"", TIME, {{NULL, false, {{"rRrbq", 1, 1}}}}, TIME_TYPES, .expected = ""};
	static const uint32_t lines[] = {12, 13, 0, 31};
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(BYTES_MAX);
	struct cpu_report_stats stats = {0};
	const struct pprof_tables *t;
	struct bench *b = *state;
	struct reader *reader;
	struct input in;
	const char *why;

	input_make(b, &row, &in);
	assert_int_equal(cpu_report(in.parts, in.n, b->symbolizer, &row.opts, &bytes, &stats), 0);
	assert_int_equal(reader_new(bytes.data, bytes.len, BYTES_MAX, &reader, &why), 0);
	t = reader_tables(reader);
	assert_int_equal(stats.n_places, 4);
	assert_int_equal(stats.n_unnamed, 1);
	assert_int_equal(t->n_mappings, 1);
	assert_string_equal(t->strings[t->mappings[0].path], "[python]");
	assert_true(t->mappings[0].has_functions && t->mappings[0].has_filenames &&
		    t->mappings[0].has_line_numbers && t->mappings[0].has_inline_frames);
	assert_int_equal(t->n_locations, 4);
	assert_int_equal(t->n_functions, 3);
	for (size_t i = 0; i < t->n_locations; i++) {
		assert_int_equal(t->locations[i].mapping, 1);
		assert_true(t->locations[i].address == 0);
		assert_int_equal(t->locations[i].n_lines, i < 3 ? 1 : 2);
		assert_int_equal(t->locations[i].lines[0].line, lines[i]);
	}
	assert_int_equal(t->locations[3].lines[1].line, 13);
	assert_int_equal(t->locations[3].lines[1].function, t->locations[0].lines[0].function);
	assert_string_equal(t->strings[t->functions[0].file], "app.py");
	assert_int_equal(t->functions[0].start_line, 10);
	reader_free(reader);
	input_deinit(&in);
}

static int report_once(void *ctx)
{
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(BYTES_MAX);
	struct cpu_report_stats stats;
	struct input *in = ctx;

	return cpu_report(in->parts, in->n, in->bench->symbolizer, &rows[0].opts, &bytes, &stats);
}

static void test_no_memory(void **state)
{
	struct input in;

	input_make(*state, &rows[0], &in);
	assert_int_equal(report_once(&in), 0);
	/* the file's tables can be opened again without some of the memory */
	assert_true(allocfail_survive(report_once, &in) > 10);
	input_deinit(&in);
}

static void test_full(void **state)
{
	_cleanup_(buf_deinit) struct buf tiny = BUF_INIT(100);
	struct cpu_report_stats stats;
	struct bench *b = *state;
	struct input in;

	input_make(b, &rows[0], &in);
	assert_int_equal(cpu_report(in.parts, in.n, b->symbolizer, &rows[0].opts, &tiny, &stats),
			 BUF_FULL);
	assert_int_equal(tiny.len, 0);
	input_deinit(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),	  cmocka_unit_test(test_many_labels),
		cmocka_unit_test(test_places),	  cmocka_unit_test(test_runtime_places),
		cmocka_unit_test(test_flags),	  cmocka_unit_test(test_full),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
