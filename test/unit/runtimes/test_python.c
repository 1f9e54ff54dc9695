// SPDX-License-Identifier: Apache-2.0
/* Frames and lines of the interpreters of this machine, against the interpreters' own answers. */
#include "support/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "procmap/image.h"
#include "procmap/memory.h"
#include "runtimes/python_code.h"
#include "runtimes/python_frames.h"
#include "runtimes/runtime_files.h"
#include "runtimes/python_line.h"
#include "runtimes/python_target.h"
#include "support/fixture.h"
#include "support/pythons.h"

#define FRAMES_MAX 1024

DEFINE_CLEANUP(struct pythons_truth *, truth_freep, pythons_truth_free);

/* ---------------------------------------------------------------- frames */

/* The process under test. */
struct subject {
	struct python_target target;
	struct python_threads threads;
	struct process_memory pm;
};

static const struct python_thread *thread_of(const struct subject *s, uint64_t id)
{
	for (size_t i = 0; i < s->threads.n; i++)
		if (s->threads.items[i].id == id)
			return &s->threads.items[i];
	fail_msg("thread %llx is not listed", (unsigned long long)id);
	return NULL;
}

/* Of ASCII. */
static void take_string(struct subject *s, uint64_t at, struct python_code_string *ret)
{
	uint64_t before, words;

	assert_int_equal(memory_read(&s->pm.memory, at + 16, &ret->length, 8), 0);
	assert_int_equal(memory_read(&s->pm.memory, at + 24, &ret->hash, 8), 0);
	words = (ret->length + 7) / 8;
	before = words > PYTHON_TAIL_WORDS ? (words - PYTHON_TAIL_WORDS) * 8 : 0;
	assert_int_equal(memory_read(&s->pm.memory, at + 48 + before, ret->tail,
				     (size_t)(words * 8 - before)),
			 0);
}

static uint32_t check_of(struct subject *s, uint64_t code)
{
	const struct python_process *p = &s->target.process;
	struct python_code_key key = {0};
	uint32_t first;

	assert_int_equal(memory_read(&s->pm.memory, code + p->code_filename, &key.file, 8), 0);
	assert_int_equal(memory_read(&s->pm.memory, code + p->code_name, &key.name, 8), 0);
	assert_int_equal(memory_read(&s->pm.memory, code + p->code_qualname, &key.qualname, 8), 0);
	assert_int_equal(memory_read(&s->pm.memory, code + p->code_lines, &key.lines, 8), 0);
	assert_int_equal(memory_read(&s->pm.memory, code + p->code_first_line, &first, 4), 0);
	key.first_line = first;
	key.has_strings = p->has_strings;
	if (p->has_strings) {
		take_string(s, key.qualname, &key.name_string);
		take_string(s, key.file, &key.file_string);
	}
	return python_code_check(&key);
}

static void check_frame(struct subject *s, const struct python_frame *frame,
			const struct pythons_frame *want)
{
	_cleanup_(python_code_deinit) struct python_code code = {0}, other = {0};
	uint32_t check = check_of(s, frame->code), wrong = check ^ 1;

	assert_int_equal(python_code_read(&s->pm.memory, &s->target.image.layout, frame->code,
					  &check, &code),
			 0);
	assert_string_equal(code.name, want->name);
	assert_string_equal(code.file, want->file);
	assert_int_equal(python_code_line(&code, frame->place), want->line);
	assert_true(code.first_line > 0 && (uint32_t)code.first_line <= want->line);
	assert_int_equal(python_code_read(&s->pm.memory, &s->target.image.layout, frame->code,
					  &wrong, &other),
			 PYTHON_ODD);
	assert_null(other.lines);
}

/* As the walker does it. */
static uint64_t state_by_way(struct subject *s, uint64_t self)
{
	const struct python_way *way = &s->target.process.way;
	uint64_t word = 0;

	assert_int_equal(memory_read(&s->pm.memory, self + (uint64_t)(int64_t)way->at, &word, 8),
			 0);
	if (way->in_array)
		assert_int_equal(memory_read(&s->pm.memory, word + way->slot, &word, 8), 0);
	return word;
}

static void check_thread(struct subject *s, const struct pythons_thread *want)
{
	const struct python_thread *t = thread_of(s, want->id);
	struct python_frame frames[FRAMES_MAX];
	uint64_t state;
	size_t n;

	state = state_by_way(s, t->id);
	assert_int_equal(state, t->state);
	assert_int_equal(python_frames_read(&s->pm.memory, &s->target.process, t->state, FRAMES_MAX,
					    frames, &n),
			 0);
	assert_int_equal(n, want->n);
	for (size_t i = 0; i < n; i++)
		check_frame(s, &frames[i], &want->frames[i]);
	/* a limit cuts the list at its outer end */
	assert_int_equal(
		python_frames_read(&s->pm.memory, &s->target.process, t->state, 2, frames, &n), 0);
	assert_int_equal(n, 2);
}

static void check_interpreter(struct runtime_files *images, const char *path)
{
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	_cleanup_(truth_freep) struct pythons_truth *truth = NULL;
	_cleanup_(freep) struct subject *s = calloc(1, sizeof(*s));

	print_message("%s\n", path);
	pythons_start(path, &p, &truth);
	assert_int_equal(kill((pid_t)p.id.pid, SIGSTOP), 0);
	assert_int_equal(process_memory_init(&s->pm, &p.proc, &p.id), 0);
	assert_int_equal(
		python_target_find(images, &p.proc, &p.id, &s->pm.memory, &s->target, &s->threads),
		PYTHON_OK);
	assert_true(truth->n > 10 && truth->n_frames > 500);
	assert_int_equal(s->threads.n, truth->n + 1); /* the reporter's */
	for (size_t i = 0; i < truth->n; i++)
		check_thread(s, &truth->threads[i]);
	process_memory_deinit(&s->pm);
}

static void all_frames(void **state)
{
	_cleanup_(pythons_deinit) struct pythons pythons;
	_cleanup_(runtime_files_freep) struct runtime_files *images = NULL;
	uint64_t probed;

	(void)state;
	pythons_find(&pythons);
	assert_int_equal(runtime_files_new(&python_probe, &images), 0);
	for (size_t i = 0; i < pythons.n; i++)
		check_interpreter(images, pythons.paths[i]);
	/* the second process of an image costs no probe */
	probed = runtime_files_probed(images);
	check_interpreter(images, pythons.paths[0]);
	assert_int_equal(runtime_files_probed(images), probed);
}

/* The count of code objects: the number of the next one. */
static void counts(void **state)
{
	_cleanup_(pythons_deinit) struct pythons pythons;
	_cleanup_(runtime_files_freep) struct runtime_files *images = NULL;
	size_t n = 0;

	(void)state;
	pythons_find(&pythons);
	assert_int_equal(runtime_files_new(&python_probe, &images), 0);
	for (size_t i = 0; i < pythons.n; i++) {
		_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
		_cleanup_(freep) struct subject *s = calloc(1, sizeof(*s));
		_cleanup_(freep) char *newest = NULL;
		uint32_t count;

		pythons_run(pythons.paths[i], "counts.py", &p, &newest);
		assert_int_equal(process_memory_init(&s->pm, &p.proc, &p.id), 0);
		assert_int_equal(python_target_find(images, &p.proc, &p.id, &s->pm.memory,
						    &s->target, &s->threads),
				 PYTHON_OK);
		if (!s->target.image.layout.code_count) {
			assert_true(s->target.process.interpreter == 0);
		} else {
			assert_true(s->target.process.interpreter == s->threads.interpreter);
			assert_int_equal(memory_read(&s->pm.memory, s->target.process.code_count,
						     &count, sizeof(count)),
					 0);
			print_message("%s: %u\n", pythons.paths[i], count);
			assert_int_equal(count, strtoul(newest, NULL, 10) + 1);
			n++;
		}
		process_memory_deinit(&s->pm);
	}
	print_message("%zu interpreters with a count\n", n);
}

/* A process without Python. */
static void no_python(void **state)
{
	_cleanup_(runtime_files_freep) struct runtime_files *images = NULL;
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	_cleanup_(freep) struct subject *s = calloc(1, sizeof(*s));
	struct pid_id id;

	(void)state;
	assert_int_equal(root_open("/proc", &proc), 0);
	assert_int_equal(pid_read(&proc, getpid(), &id), 0);
	assert_int_equal(process_memory_init(&s->pm, &proc, &id), 0);
	assert_int_equal(runtime_files_new(&python_probe, &images), 0);
	assert_int_equal(
		python_target_find(images, &proc, &id, &s->pm.memory, &s->target, &s->threads),
		PYTHON_ABSENT);
	process_memory_deinit(&s->pm);
}

/* Files tell without their processes whether they lack Python. */
static void files_alone(void **state)
{
	_cleanup_(runtime_files_freep) struct runtime_files *files = NULL;
	struct image *images[] = {fixture_image("plain-fixed"),
				  fixture_image_at("/usr/bin/python3")};

	(void)state;
	assert_int_equal(runtime_files_new(&python_probe, &files), 0);
	assert_false(runtime_files_examine(files, images, 0));
	assert_false(runtime_files_lack(files, &images[0]->id));
	assert_true(runtime_files_examine(files, images, 1));
	assert_true(runtime_files_lack(files, &images[0]->id));
	assert_false(runtime_files_examine(files, images, 2));
	assert_false(runtime_files_lack(files, &images[1]->id));
	assert_int_equal(runtime_files_probed(files), 2);
	for (size_t i = 0; i < array_size(images); i++)
		image_unref(images[i]);
}

/* A process whose list of interpreters is forged (test/data/python/hostile.py). */
static void forged_lists(void **state)
{
	static const struct {
		const char *kind;
		int outcome;
		uint64_t n_reads; /* at most */
	} rows[] = {
		{"random", PYTHON_UNREADABLE, 100},
		{"interpreters", PYTHON_ODD, 3 * 2 * PYTHON_INTERPRETERS_MAX + 100},
		{"threads", PYTHON_NOT_READY, 3 * PYTHON_THREADS_MAX + 300},
	};
	_cleanup_(pythons_deinit) struct pythons pythons;
	_cleanup_(runtime_files_freep) struct runtime_files *images = NULL;
	_cleanup_(freep) struct subject *s = calloc(1, sizeof(*s));

	(void)state;
	pythons_find(&pythons);
	assert_int_equal(runtime_files_new(&python_probe, &images), 0);
	for (size_t i = 0; i < array_size(rows); i++) {
		const char *const args[] = {"test/data/python/hostile.py", "-", rows[i].kind, NULL};
		_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};

		row_begin(rows[i].kind);
		goprocess_start(&p, pythons.paths[0], args, NULL);
		assert_int_equal(process_memory_init(&s->pm, &p.proc, &p.id), 0);
		assert_int_equal(python_target_find(images, &p.proc, &p.id, &s->pm.memory,
						    &s->target, &s->threads),
				 rows[i].outcome);
		assert_int_equal(s->target.image.layout.version,
				 0x0300 | pythons_minor(pythons.paths[0]));
		assert_true(s->pm.memory.n_calls <= rows[i].n_reads);
		process_memory_deinit(&s->pm);
	}
}

/* ---------------------------------------------------------------- lines */

static size_t bytes_of_hex(char *hex)
{
	size_t n = 0;

	for (; hex[2 * n] && hex[0] != '-'; n++) {
		char byte[3] = {hex[2 * n], hex[2 * n + 1]};

		((uint8_t *)hex)[n] = (uint8_t)strtoul(byte, NULL, 16);
	}
	return n;
}

/* One code object: the table, and the lines of the instructions. Returns their number. */
static size_t check_lines(enum python_lines shape, char *code, char *pairs)
{
	char *hex, *rest, *word;
	const int32_t first = (int32_t)strtol(code + 2, &hex, 10);
	const size_t bytes = bytes_of_hex(++hex);
	size_t n = 0;

	for (word = strtok_r(pairs, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		char *line;
		const int32_t place = (int32_t)strtol(word, &line, 10);
		const uint32_t want = (uint32_t)strtoul(line + 1, NULL, 10);
		const uint32_t got = python_line(shape, (const uint8_t *)hex, bytes, first, place);

		if (got != want)
			fail_msg("%s, first line %d, place %d: %u, not %u", code, first, place, got,
				 want);
		n++;
	}
	return n;
}

static void all_lines(void **state)
{
	_cleanup_(pythons_deinit) struct pythons pythons;
	_cleanup_(runtime_files_freep) struct runtime_files *images = NULL;

	(void)state;
	pythons_find(&pythons);
	assert_int_equal(runtime_files_new(&python_probe, &images), 0);
	for (size_t i = 0; i < pythons.n; i++) {
		_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
		_cleanup_(process_memory_deinit) struct process_memory pm = {.fd = -1};
		_cleanup_(freep) char *answer = NULL;
		_cleanup_(freep) struct python_threads *threads = malloc(sizeof(*threads));
		struct python_target target;
		size_t n_codes = 0, n = 0;
		char *rest, *code;

		pythons_run(pythons.paths[i], "lines.py", &p, &answer);
		assert_int_equal(process_memory_init(&pm, &p.proc, &p.id), 0);
		assert_int_equal(
			python_target_find(images, &p.proc, &p.id, &pm.memory, &target, threads),
			0);
		for (code = strtok_r(answer, "\n", &rest); code;
		     code = strtok_r(NULL, "\n", &rest)) {
			n += check_lines(target.image.layout.lines, code,
					 strtok_r(NULL, "\n", &rest));
			n_codes++;
		}
		print_message("%s: %zu code objects, %zu instructions\n", pythons.paths[i], n_codes,
			      n);
		assert_true(n_codes > 5000 && n > 100000);
	}
}

struct line_row {
	const char *name;
	enum python_lines shape;
	const char *table;
	size_t n;
	int32_t first_line;
	int32_t place;
	uint32_t line;
};

#define BYTES(text) text, sizeof(text) - 1

static void odd_lines(void **state)
{
	static const struct line_row rows[] = {
		{"no table", PYTHON_LNOTAB, BYTES(""), 7, 0, 7},
		{"no table", PYTHON_LINETABLE, BYTES(""), 7, 0, 0},
		{"no table", PYTHON_LOCATIONS, BYTES(""), 7, 0, 0},
		{"not begun", PYTHON_LNOTAB, BYTES("\x02\x01"), 7, -1, 7},
		{"not begun", PYTHON_LINETABLE, BYTES("\x02\x01"), 7, -1, 7},
		{"not begun", PYTHON_LOCATIONS, BYTES("\x82\x01"), 7, -2, 7},
		{"half a pair", PYTHON_LNOTAB, BYTES("\x02\x01\x02"), 7, 4, 8},
		{"half a pair", PYTHON_LINETABLE, BYTES("\x02\x01\x02"), 7, 1, 0},
		{"lines below 1", PYTHON_LNOTAB, BYTES("\x00\x81"), 7, 4, 0},
		{"no line", PYTHON_LINETABLE, BYTES("\x02\x80\x02\x01"), 7, 0, 0},
		{"behind no line", PYTHON_LINETABLE, BYTES("\x02\x80\x02\x01"), 7, 1, 8},
		{"no line", PYTHON_LOCATIONS, BYTES("\xf8"), 7, 0, 0},
		{"no end of a number", PYTHON_LOCATIONS, BYTES("\xe8\x7f\x7f\x7f"), 7, 0, 7},
		{"a long number", PYTHON_LOCATIONS,
		 BYTES("\xe8\x7e\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x01"), 7, 0, 0},
		{"a column before all", PYTHON_LOCATIONS, BYTES("\x01\x02\x80\x01"), 7, 0, 7},
		{"the last unit", PYTHON_LOCATIONS, BYTES("\x87\x01"), 7, 15, 7},
		{"behind the last", PYTHON_LOCATIONS, BYTES("\x87\x01"), 7, 16, 0},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		const struct line_row *r = &rows[i];
		uint32_t got = python_line(r->shape, (const uint8_t *)r->table, r->n, r->first_line,
					   r->place);

		if (got != r->line)
			fail_msg("row %zu, %s: %u, not %u", i, r->name, got, r->line);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_frames),	cmocka_unit_test(counts),
		cmocka_unit_test(no_python),	cmocka_unit_test(files_alone),
		cmocka_unit_test(forged_lists), cmocka_unit_test(all_lines),
		cmocka_unit_test(odd_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
