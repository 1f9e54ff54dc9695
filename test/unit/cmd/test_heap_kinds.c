// SPDX-License-Identifier: Apache-2.0
/*
 * 'podprof heap' compared with Go programs' own profiles at a quiet point: mutex and block profiles
 * must be equal, record by record, from a live process and from its core.
 */
#include "support/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/root.h"
#include "cmd/cmd.h"
#include "support/command.h"
#include "support/corewrite.h"
#include "support/gofixture.h"
#include "support/goprocess.h"
#include "support/samelines.h"
#include "support/tree.h"

#define CONTENTION	  "test/fixtures/go/contention"
#define PARKED		  "test/fixtures/go/parked"
#define UNREAD		  "test/fixtures/go/unread"
#define PROFILE_BYTES_MAX (16u << 20)

/* ---------------------------------------------------------------- a program */

static const char *const contention_types[] = {"contentions", "delay"};

static void read_file(const char *path, struct buf *ret)
{
	const struct root here = {.fd = AT_FDCWD};

	ret->len = 0;
	assert_int_equal(root_read(&here, path, ret), 0);
}

/* A running fixture, and the names of its files and podprof's. */
struct subject {
	struct goprocess process;
	char own[64];
	char ours[64];
	char core[64]; /* "": the process is read */
};

static void subject_start(struct subject *s, const char *path, const char *env)
{
	const char *const args[] = {s->own, NULL};

	snprintf(s->own, sizeof(s->own), "/tmp/test_heap_kinds.%d.own", (int)getpid());
	snprintf(s->ours, sizeof(s->ours), "/tmp/test_heap_kinds.%d.ours", (int)getpid());
	goprocess_start(&s->process, path, args, env);
}

static void subject_stop(struct subject *s)
{
	char name[80];

	goprocess_stop(&s->process);
	if (s->core[0])
		unlink(s->core);
	unlink(s->own);
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "%s.%s", s->own, i ? "mutex" : "block");
		unlink(name);
	}
	unlink(s->ours);
}

/* Run 'heap' on the process. Returns the status, and the messages in @says unless NULL. */
static int read_kind(const struct subject *s, const char *kind, char *says, size_t n)
{
	struct command_run run;
	char line[512], whose[128];
	int status;

	snprintf(whose, sizeof(whose), "%d", (int)s->process.id.pid);
	if (s->core[0])
		snprintf(whose, sizeof(whose), "--core %s", s->core);
	snprintf(line, sizeof(line), "heap %s --kind %s --output %s", whose, kind, s->ours);
	command_run(line, &run);
	status = run.status;
	if (says)
		snprintf(says, n, "%s", run.err.data);
	else if (status)
		fail_msg("%s", run.err.data);
	command_run_deinit(&run);
	return status;
}

static void compare_kind(const struct subject *s, const char *kind, struct samelines_tally *tally)
{
	_cleanup_(buf_deinit) struct buf own_bytes = BUF_INIT(PROFILE_BYTES_MAX);
	_cleanup_(buf_deinit) struct buf our_bytes = BUF_INIT(PROFILE_BYTES_MAX);
	_cleanup_(samelines_deinit) struct samelines own = {0}, ours = {0};
	char name[80];

	assert_int_equal(read_kind(s, kind, NULL, 0), CMD_DONE);
	snprintf(name, sizeof(name), "%s.%s", s->own, kind);
	read_file(name, &own_bytes);
	read_file(s->ours, &our_bytes);
	samelines_of(&own_bytes, contention_types, 2, &own);
	samelines_of(&our_bytes, contention_types, 2, &ours);
	samelines_compare(&own, &ours, tally);
	assert_int_equal(own.n, ours.n);
	assert_int_equal(tally->n_one_off, 0);
}

static void equal_to_own(void **state)
{
	static const char *const variants[] = {"default", "stripped", "cgo-pie"};
	static const char *const rates[] = {NULL, "CONTENTION_RATES=3 1000000"};
	const char *gos[GOFIXTURE_GOS_MAX] = {NULL};
	size_t n = gofixture_gos(gos);

	(void)state;
	for (size_t i = 0; i < n * array_size(variants); i++) {
		char *path = gofixture_build(CONTENTION, gos[i / array_size(variants)],
					     variants[i % array_size(variants)]);

		row_begin(path);
		for (size_t k = 0; k < array_size(rates); k++) {
			struct subject s = {.process = {.to = -1}};
			struct samelines_tally mutex = {0}, block = {0};

			subject_start(&s, path, rates[k]);
			compare_kind(&s, "mutex", &mutex);
			compare_kind(&s, "block", &block);
			goprocess_order(&s.process, "again");
			compare_kind(&s, "mutex", &mutex);
			compare_kind(&s, "block", &block);
			print_message("  %s: %zu of mutexes, %zu of blocking, %zu frames\n",
				      rates[k] ? rates[k] : "all", mutex.n_lines, block.n_lines,
				      mutex.n_frames + block.n_frames);
			subject_stop(&s);
		}
		free(path);
	}
}

/* All contentions with this function in their stacks. */
static int64_t count_of(const struct subject *s, const char *kind, const char *function)
{
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(PROFILE_BYTES_MAX);
	_cleanup_(samelines_deinit) struct samelines lines = {0};
	int64_t n = 0;

	assert_int_equal(read_kind(s, kind, NULL, 0), CMD_DONE);
	read_file(s->ours, &bytes);
	samelines_of(&bytes, contention_types, 2, &lines);
	for (size_t i = 0; i < lines.n; i++) {
		assert_true(lines.items[i].values[1] > 0);
		if (strstr(lines.items[i].key, function))
			n += lines.items[i].values[0];
	}
	return n;
}

/* Turned on by programs without a reader. podprof has to measure the length of a tick. */
static void without_readers(void **state)
{
	static const char *const variants[] = {"default", "stripped", "pie-stripped"};
	const char *gos[GOFIXTURE_GOS_MAX] = {NULL};
	size_t n = gofixture_gos(gos);

	(void)state;
	for (size_t i = 0; i < n * array_size(variants); i++) {
		struct subject s = {.process = {.to = -1}};
		char *path = gofixture_build(UNREAD, gos[i / array_size(variants)],
					     variants[i % array_size(variants)]);

		row_begin(path);
		subject_start(&s, path, NULL);
		assert_int_equal(count_of(&s, "block", "main.receive "), 20);
		assert_true(count_of(&s, "mutex", "main.release ") > 0);
		subject_stop(&s);
		free(path);
	}
}

/* A core has all profiles, long after the process's end. */
static void equal_from_core(void **state)
{
	static const char *const heap_types[] = {"alloc_objects", "alloc_space", "inuse_objects",
						 "inuse_space"};
	static const char *const variants[] = {"default", "pie-stripped"};
	const char *gos[GOFIXTURE_GOS_MAX] = {NULL};
	size_t n = gofixture_gos(gos);

	(void)state;
	for (size_t i = 0; i < n * array_size(variants); i++) {
		_cleanup_(buf_deinit) struct buf live_bytes = BUF_INIT(PROFILE_BYTES_MAX);
		_cleanup_(buf_deinit) struct buf core_bytes = BUF_INIT(PROFILE_BYTES_MAX);
		_cleanup_(samelines_deinit) struct samelines live = {0}, core = {0};
		struct subject s = {.process = {.to = -1}};
		struct samelines_tally tally = {0};
		char *path = gofixture_build(CONTENTION, gos[i / array_size(variants)],
					     variants[i % array_size(variants)]);

		row_begin(path);
		subject_start(&s, path, NULL);
		assert_int_equal(read_kind(&s, "heap", NULL, 0), CMD_DONE);
		read_file(s.ours, &live_bytes);
		snprintf(s.core, sizeof(s.core), "/tmp/test_heap_kinds.%d.core", (int)getpid());
		corewrite(&s.process.proc, &s.process.id, s.core);
		goprocess_stop(&s.process);
		compare_kind(&s, "mutex", &tally);
		compare_kind(&s, "block", &tally);
		assert_int_equal(read_kind(&s, "heap", NULL, 0), CMD_DONE);
		read_file(s.ours, &core_bytes);
		samelines_of(&live_bytes, heap_types, 4, &live);
		samelines_of(&core_bytes, heap_types, 4, &core);
		samelines_compare(&live, &core, &tally);
		assert_int_equal(live.n, core.n);
		subject_stop(&s);
		free(path);
	}
}

static void bad_cores(void **state)
{
	_cleanup_(freep) char *path = NULL;
	const char *gos[GOFIXTURE_GOS_MAX] = {NULL};
	struct subject s = {.process = {.to = -1}};
	char says[512];

	(void)state;
	gofixture_gos(gos);
	path = gofixture_build(CONTENTION, gos[0], "default");
	subject_start(&s, path, NULL);
	snprintf(s.core, sizeof(s.core), "/tmp/test_heap_kinds.%d.core", (int)getpid());
	corewrite(&s.process.proc, &s.process.id, s.core);
	assert_int_equal(truncate(s.core, 200000), 0);
	assert_int_equal(read_kind(&s, "mutex", says, sizeof(says)), CMD_FAILED);
	assert_non_null(strstr(says, "is truncated"));
	assert_int_equal(truncate(s.core, 10), 0);
	assert_int_equal(read_kind(&s, "mutex", says, sizeof(says)), CMD_FAILED);
	assert_non_null(strstr(says, "is not a core"));
	unlink(s.core);
	assert_int_equal(read_kind(&s, "mutex", says, sizeof(says)), CMD_FAILED);
	assert_non_null(strstr(says, "No such file"));
	subject_stop(&s);
}

/* The program is missing from its path, or replaced. */
static void moved_program(void **state)
{
	_cleanup_(freep) char *path = NULL, *other = NULL;
	const char *gos[GOFIXTURE_GOS_MAX] = {NULL};
	struct subject s = {.process = {.to = -1}};
	struct command_run run;
	char line[1024];

	(void)state;
	gofixture_gos(gos);
	path = gofixture_build(CONTENTION, gos[0], "default");
	other = gofixture_build(CONTENTION, gos[0], "stripped");
	subject_start(&s, path, NULL);
	snprintf(s.core, sizeof(s.core), "/tmp/test_heap_kinds.%d.core", (int)getpid());
	corewrite(&s.process.proc, &s.process.id, s.core);
	for (int i = 0; i < 3; i++) {
		const char *program = i == 0 ? "/nowhere" : i == 1 ? other : path;

		snprintf(line, sizeof(line),
			 "heap --core %s --kind mutex --sysroot /tmp --executable %s --output %s",
			 s.core, program, s.ours);
		command_run(line, &run);
		if (i < 2) {
			assert_int_equal(run.status, CMD_FAILED);
			command_assert_has(&run.err, "set --executable");
		} else {
			assert_int_equal(run.status, CMD_DONE);
		}
		command_run_deinit(&run);
	}
	subject_stop(&s);
}

/* ---------------------------------------------------------------- goroutines */

/* A stack without podprof's labels of the goroutine. */
static const char *without_labels(const char *key)
{
	while (strncmp(key, "state=", 6) == 0 || strncmp(key, "wait_reason=", 12) == 0)
		key = strchr(key, '\n') + 1;
	return key;
}

/* The goroutine that wrote the profile has moved on since. */
static bool is_main(const char *key)
{
	return strstr(key, "main.main ") != NULL;
}

static int64_t count_stacks(const struct samelines *l, const char *stack)
{
	int64_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		if (stack ? strcmp(without_labels(l->items[i].key), stack) == 0
			  : !is_main(l->items[i].key))
			n += l->items[i].values[0];
	return n;
}

/* All except the main goroutine: the number of goroutines, and of different stacks. */
static void compare_goroutines(const struct subject *s, int64_t *ret_n, size_t *ret_stacks)
{
	static const char *const types[] = {"goroutine"};
	_cleanup_(buf_deinit) struct buf own_bytes = BUF_INIT(PROFILE_BYTES_MAX);
	_cleanup_(buf_deinit) struct buf our_bytes = BUF_INIT(PROFILE_BYTES_MAX);
	_cleanup_(samelines_deinit) struct samelines own = {0}, ours = {0};

	assert_int_equal(read_kind(s, "goroutine", NULL, 0), CMD_DONE);
	read_file(s->own, &own_bytes);
	read_file(s->ours, &our_bytes);
	samelines_of(&own_bytes, types, 1, &own);
	samelines_of(&our_bytes, types, 1, &ours);
	for (size_t i = 0; i < own.n; i++) {
		int64_t n = is_main(own.items[i].key) ? own.items[i].values[0]
						      : count_stacks(&ours, own.items[i].key);

		if (n != own.items[i].values[0])
			fail_msg("%lld of %lld of\n%s", (long long)n,
				 (long long)own.items[i].values[0], own.items[i].key);
	}
	*ret_n = count_stacks(&own, NULL);
	*ret_stacks = own.n - 1;
	assert_int_equal(count_stacks(&ours, NULL), *ret_n);
}

static void goroutines_equal_to_own(void **state)
{
	static const char *const variants[] = {"default", "pie-stripped", "cgo-pie"};
	const char *gos[GOFIXTURE_GOS_MAX] = {NULL};
	size_t n = gofixture_gos(gos);

	(void)state;
	for (size_t i = 0; i < n * array_size(variants); i++) {
		struct subject s = {.process = {.to = -1}};
		char *path = gofixture_build(PARKED, gos[i / array_size(variants)],
					     variants[i % array_size(variants)]);
		int64_t n_goroutines;
		size_t n_stacks;

		row_begin(path);
		subject_start(&s, path, NULL);
		compare_goroutines(&s, &n_goroutines, &n_stacks);
		print_message("  %lld goroutines, %zu stacks\n", (long long)n_goroutines, n_stacks);
		assert_true(n_stacks > 12);
		snprintf(s.core, sizeof(s.core), "/tmp/test_heap_kinds.%d.core", (int)getpid());
		corewrite(&s.process.proc, &s.process.id, s.core);
		goprocess_stop(&s.process);
		compare_goroutines(&s, &n_goroutines, &n_stacks);
		subject_stop(&s);
		free(path);
	}
}

/* Short-lived goroutines are read or counted; waiting ones are there each time. */
static void goroutines_while_it_runs(void **state)
{
	static const char *const types[] = {"goroutine"};
	_cleanup_(freep) char *path = NULL;
	const char *gos[GOFIXTURE_GOS_MAX] = {NULL};
	struct subject s = {.process = {.to = -1}};

	(void)state;
	gofixture_gos(gos);
	path = gofixture_build(PARKED, gos[0], "default");
	subject_start(&s, path, "PARKED_BUSY=1");
	for (int i = 0; i < 20; i++) {
		_cleanup_(buf_deinit) struct buf own_bytes = BUF_INIT(PROFILE_BYTES_MAX);
		_cleanup_(buf_deinit) struct buf our_bytes = BUF_INIT(PROFILE_BYTES_MAX);
		_cleanup_(samelines_deinit) struct samelines own = {0}, ours = {0};

		assert_int_equal(read_kind(&s, "goroutine", NULL, 0), CMD_DONE);
		read_file(s.own, &own_bytes);
		read_file(s.ours, &our_bytes);
		samelines_of(&own_bytes, types, 1, &own);
		samelines_of(&our_bytes, types, 1, &ours);
		for (size_t k = 0; k < own.n; k++)
			if (!is_main(own.items[k].key) &&
			    count_stacks(&ours, own.items[k].key) != own.items[k].values[0])
				fail_msg("not all of\n%s", own.items[k].key);
	}
	subject_stop(&s);
}

/* A goroutine that has not started has only a compiler-made function on its stack, if its function
 * has arguments. */
static void goroutines_before_their_start(void **state)
{
	static const char *const types[] = {"goroutine"};
	const char *gos[GOFIXTURE_GOS_MAX] = {NULL};
	size_t n = gofixture_gos(gos);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(PROFILE_BYTES_MAX);
		_cleanup_(samelines_deinit) struct samelines ours = {0};
		_cleanup_(freep) char *path = gofixture_build(PARKED, gos[i], "default");
		struct subject s = {.process = {.to = -1}};
		int64_t n_unstarted = 0;

		row_begin(path);
		subject_start(&s, path, "GODEBUG=asyncpreemptoff=1");
		assert_int_equal(read_kind(&s, "goroutine", NULL, 0), CMD_DONE);
		read_file(s.ours, &bytes);
		samelines_of(&bytes, types, 1, &ours);
		for (size_t k = 0; k < ours.n; k++) {
			const struct sameline *line = &ours.items[k];

			/* the main goroutine is at runtime.main */
			if (strncmp(without_labels(line->key), "main.", 5) == 0)
				n_unstarted += line->values[0];
			assert_true(without_labels(line->key)[0] != '\0');
		}
		assert_int_equal(n_unstarted, 1);
		subject_stop(&s);
	}
}

/* ---------------------------------------------------------------- a container */

#define SCOPES	"system.slice/"
#define ID_ZERO "00000000000000000000000000000000000000000000000000000000000"
#define ID_GO	"aaaa1" ID_ZERO
#define ID_C	"aaaa2" ID_ZERO

static void make_container(struct tree *tree, const char *id, pid_t a, pid_t b)
{
	char path[256], pids[64];

	snprintf(path, sizeof(path), SCOPES "docker-%s.scope", id);
	tree_mkdir(tree->fd, path);
	snprintf(path, sizeof(path), SCOPES "docker-%s.scope/cgroup.procs", id);
	snprintf(pids, sizeof(pids), "%d\n%d\n", (int)a, (int)b);
	tree_write(tree->fd, path, pids);
}

static int64_t count_contentions(const char *path)
{
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(PROFILE_BYTES_MAX);
	_cleanup_(samelines_deinit) struct samelines lines = {0};
	int64_t n = 0;

	read_file(path, &bytes);
	samelines_of(&bytes, contention_types, 2, &lines);
	for (size_t i = 0; i < lines.n; i++)
		n += lines.items[i].values[0];
	return n;
}

static void containers(void **state)
{
	static const struct {
		const char *id;
		int status;
		const char *says;
	} rows[] = {
		{"aaaa1", CMD_DONE, "2 processes"},
		{"containerd://aaaa1", CMD_DONE, "2 processes"},
		{ID_GO, CMD_DONE, "2 processes"},
		{"aaaa2", CMD_NOTHING, "is not a Go program"},
		{"aaaa", CMD_USAGE, "the ids of several containers begin with aaaa"},
		{"bbbb", CMD_NOTHING, "no container bbbb"},
	};
	_cleanup_(freep) char *path = NULL;
	const char *gos[GOFIXTURE_GOS_MAX] = {NULL};
	struct subject a = {.process = {.to = -1}}, b = {.process = {.to = -1}};
	struct tree tree;
	int64_t n_both;

	(void)state;
	gofixture_gos(gos);
	path = gofixture_build(CONTENTION, gos[0], "default");
	subject_start(&a, path, NULL);
	subject_start(&b, path, NULL);
	tree_init(&tree);
	tree_write(tree.fd, "cgroup.controllers", "");
	make_container(&tree, ID_GO, (pid_t)a.process.id.pid, (pid_t)b.process.id.pid);
	make_container(&tree, ID_C, getpid(), getpid());
	assert_int_equal(read_kind(&a, "mutex", NULL, 0), CMD_DONE);
	n_both = count_contentions(a.ours);
	assert_int_equal(read_kind(&b, "mutex", NULL, 0), CMD_DONE);
	n_both += count_contentions(b.ours);
	for (size_t i = 0; i < array_size(rows); i++) {
		struct command_run run;
		char line[512];

		row_begin(rows[i].id);
		snprintf(line, sizeof(line),
			 "heap --container %s --cgroupfs-root %s --kind mutex --output %s",
			 rows[i].id, tree.path, a.ours);
		command_run(line, &run);
		assert_int_equal(run.status, rows[i].status);
		command_assert_has(rows[i].status ? &run.err : &run.out, rows[i].says);
		if (!rows[i].status)
			assert_int_equal(count_contentions(a.ours), n_both);
		command_run_deinit(&run);
	}
	tree_deinit(&tree);
	subject_stop(&a);
	subject_stop(&b);
}

/* ---------------------------------------------------------------- messages */

static void off_is_said(void **state)
{
	_cleanup_(freep) char *path = NULL;
	const char *gos[GOFIXTURE_GOS_MAX] = {NULL};
	struct subject s = {.process = {.to = -1}};
	char says[512];

	(void)state;
	gofixture_gos(gos);
	path = gofixture_build(CONTENTION, gos[0], "default");
	subject_start(&s, path, "CONTENTION_RATES=0 0");
	assert_int_equal(read_kind(&s, "mutex", says, sizeof(says)), CMD_NOTHING);
	assert_non_null(strstr(says, "records no mutex contention"));
	assert_int_equal(read_kind(&s, "block", says, sizeof(says)), CMD_NOTHING);
	assert_non_null(strstr(says, "records no blocking"));
	subject_stop(&s);
}

static void wrong_usage(void **state)
{
	static const struct {
		const char *line;
		const char *says;
	} rows[] = {
		{"heap", "give one PID"},
		{"heap x --output -", "give one PID"},
		{"heap 1 2 --output -", "give one PID"},
		{"heap 1 --container abc", "only one of"},
		{"heap --container=", "--container takes an id"},
		{"heap 1 --kind cpu --output x", "--kind takes"},
		{"heap 1 --kind mutex --force --output x", "heap profiles only"},
		{"heap 1", "give --output"},
		{"heap 1 --core x", "only one of"},
		{"heap --core x --force --output y", "--force needs a running"},
		{"heap 1 --sysroot / --output y", "need --core"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct command_run run;

		row_begin(rows[i].line);
		command_run(rows[i].line, &run);
		command_assert_error(&run, CMD_USAGE, rows[i].says);
		command_run_deinit(&run);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_to_own),
		cmocka_unit_test(without_readers),
		cmocka_unit_test(equal_from_core),
		cmocka_unit_test(bad_cores),
		cmocka_unit_test(moved_program),
		cmocka_unit_test(goroutines_equal_to_own),
		cmocka_unit_test(goroutines_while_it_runs),
		cmocka_unit_test(goroutines_before_their_start),
		cmocka_unit_test(containers),
		cmocka_unit_test(off_is_said),
		cmocka_unit_test(wrong_usage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
