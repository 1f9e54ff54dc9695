// SPDX-License-Identifier: Apache-2.0
/* Readers of real processes, round after round. */
#include "support/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "goheap/force.h"
#include "goprofile/heapsnap.h"
#include "goprofile/reader.h"
#include "support/gofixture.h"
#include "support/goprocess.h"

#define HEAP	"test/fixtures/go/heap"
#define PLAIN	"test/fixtures/go/plain"
#define BUCKETS "test/fixtures/go/buckets"
#define PYTHON	"/usr/bin/python3"

static const char *const no_args[] = {NULL};

static struct go_profile_reader *open_readers(const struct goprocess *p)
{
	const struct go_profile_reader_opts opts = {
		.proc = &p->proc,
		.kinds = GO_PROFILE_CUMULATIVE,
		.rounds = true,
		.record_bytes = 64u << 20,
		.symbol_bytes = 16u << 20,
	};
	struct go_profile_reader *reader;

	assert_int_equal(go_profile_reader_new(&opts, &reader), 0);
	return reader;
}

/* A round with a single process; the caller frees the result. */
static struct go_profile_target read_round(struct go_profile_reader *reader,
					   const struct goprocess *p, bool force)
{
	struct go_profile_target target = {.pid = p->id, .force = force};

	assert_int_equal(go_profile_reader_read(reader, 0, &target), 0);
	go_profile_reader_end_round(reader);
	return target;
}

static const char *newest(void)
{
	static const char *gos[GOFIXTURE_GOS_MAX];

	return gos[gofixture_gos(gos) - 1];
}

static bool has(const struct go_profile_found *found, enum goalloc_value what)
{
	return found->reading.has & 1u << what;
}

static void one_program(void **state)
{
	static const char *const args[] = {"/dev/null", "all", NULL};
	_cleanup_(freep) char *path = gofixture_build(HEAP, newest(), "stripped");
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	struct go_profile_reader *reader;

	(void)state;
	goprocess_start(&p, path, args, NULL);
	reader = open_readers(&p);
	for (int round = 0; round < 3; round++) {
		struct go_profile_target target = read_round(reader, &p, false);
		const struct heapsnap *snap;

		assert_int_equal(target.n_found, 1);
		assert_string_equal(target.found[0].reading.state, "ok");
		assert_string_equal(target.found[0].reading.source, "runtime");
		assert_int_equal(target.found[0].number, 1);
		assert_non_null(strstr(target.found[0].go_version, "go1."));
		assert_true(has(&target.found[0], GOALLOC_ALLOC_BYTES));
		snap = target.found[0].snaps[GO_PROFILE_HEAP];
		assert_non_null(snap);
		assert_true(snap->n_records > 0);
		go_profile_target_deinit(&target);
	}
	go_profile_reader_free(reader);
}

/* Two libraries are two separate runtimes. */
static void two_runtimes(void **state)
{
	static const char *const args[] = {"/dev/null", "large", NULL};
	_cleanup_(freep) char *heap = gofixture_build(HEAP, newest(), "c-shared");
	_cleanup_(freep) char *plain = gofixture_build(PLAIN, newest(), "c-shared-stripped");
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	struct go_profile_reader *reader;
	char env[4200];

	(void)state;
	snprintf(env, sizeof(env), "GOHOST_ALSO=%s.so -", plain);
	goprocess_start(&p, heap, args, env);
	goprocess_wait(&p);
	reader = open_readers(&p);
	for (int round = 0; round < 2; round++) {
		struct go_profile_target target = read_round(reader, &p, false);
		unsigned int n_ok = 0, n_disabled = 0;

		assert_int_equal(target.n_found, 2);
		assert_int_equal(target.found[0].number + target.found[1].number, 3);
		for (size_t i = 0; i < 2; i++) {
			const struct go_profile_found *found = &target.found[i];

			n_ok += strcmp(found->reading.state, "ok") == 0 &&
				found->snaps[GO_PROFILE_HEAP];
			n_disabled += strcmp(found->reading.state, "disabled_by_linker") == 0;
			assert_true(has(found, GOALLOC_GC_CYCLES));
		}
		assert_true(n_ok == 1 && n_disabled == 1);
		go_profile_target_deinit(&target);
	}
	go_profile_reader_free(reader);
}

/* The search repeats after 1, 2, 4 and more rounds, so a library is found after at most as many
 * rounds again. */
static void library_comes_later(void **state)
{
	static const char script[] = "import os, sys, ctypes\n"
				     "os.write(1, b'ready\\n')\n"
				     "os.read(0, 1)\n"
				     "ctypes.CDLL(sys.argv[1]).goMain(b'/dev/null large')\n";
	_cleanup_(freep) char *host = gofixture_build(HEAP, newest(), "c-shared-stripped");
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	char library[4200];
	const char *const args[] = {"-c", script, library, NULL};
	struct go_profile_reader *reader;
	size_t n_found = 0;
	int round;

	(void)state;
	snprintf(library, sizeof(library), "%s.so", host);
	goprocess_start(&p, PYTHON, args, NULL);
	reader = open_readers(&p);
	for (round = 0; round < 10; round++) {
		struct go_profile_target target = read_round(reader, &p, false);

		assert_int_equal(target.n_found, 0);
		go_profile_target_deinit(&target);
	}
	goprocess_order(&p, "load");
	for (round = 0; n_found == 0 && round < 10; round++) {
		struct go_profile_target target = read_round(reader, &p, false);

		n_found = target.n_found;
		go_profile_target_deinit(&target);
	}
	assert_int_equal(n_found, 1);
	go_profile_reader_free(reader);
}

static void assert_state(struct go_profile_reader *reader, const struct goprocess *p, bool force,
			 const char *want, unsigned int number)
{
	struct go_profile_target target = read_round(reader, p, force);

	assert_int_equal(target.n_found, 1);
	assert_string_equal(target.found[0].reading.state, want);
	assert_int_equal(target.found[0].number, number);
	go_profile_target_deinit(&target);
}

/* The same process, program and start time, but another address space: read anew in the same round,
 * and not forced a second time. */
static void executes_itself(void **state)
{
	_cleanup_(freep) char *path = gofixture_build(PLAIN, newest(), "default");
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	struct go_profile_reader *reader;

	(void)state;
	goprocess_start(&p, path, no_args, NULL);
	reader = open_readers(&p);
	assert_state(reader, &p, true, "forced", 1);
	goprocess_order(&p, "allocate");
	assert_state(reader, &p, true, "forced", 1);
	goprocess_order(&p, "exec");
	assert_state(reader, &p, true, "disabled_by_linker", 2);
	assert_state(reader, &p, true, "disabled_by_linker", 2);
	go_profile_reader_free(reader);
}

static void ends(void **state)
{
	_cleanup_(freep) char *path = gofixture_build(PLAIN, newest(), "default");
	struct goprocess p = {.to = -1};
	struct go_profile_reader *reader;
	struct go_profile_target target;

	(void)state;
	goprocess_start(&p, path, no_args, NULL);
	reader = open_readers(&p);
	assert_state(reader, &p, false, "disabled_by_linker", 1);
	target.pid = p.id;
	goprocess_stop(&p);
	assert_int_equal(root_open("/proc", &p.proc), 0);
	target = read_round(reader, &p, false);
	assert_int_equal(target.n_found, 0);
	go_profile_target_deinit(&target);
	go_profile_reader_free(reader);
	root_deinit(&p.proc);
}

/* Above the memory ceiling a process is read again in each round, under the same identity. */
static void no_room(void **state)
{
	static const char *const args[] = {"/dev/null", "all", NULL};
	_cleanup_(freep) char *path = gofixture_build(HEAP, newest(), "stripped");
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	struct go_profile_reader_opts opts = {.kinds = GO_PROFILE_CUMULATIVE,
					      .rounds = true,
					      .record_bytes = 1,
					      .symbol_bytes = 1u << 20};
	struct go_profile_reader *reader;

	(void)state;
	goprocess_start(&p, path, args, "HEAP_RATE=512");
	opts.proc = &p.proc;
	assert_int_equal(go_profile_reader_new(&opts, &reader), 0);
	for (int round = 0; round < 3; round++) {
		struct go_profile_target target = read_round(reader, &p, false);

		assert_true(target.full);
		assert_int_equal(target.n_found, 1);
		assert_int_equal(target.found[0].number, 1);
		assert_true(has(&target.found[0], GOALLOC_ALLOC_BYTES));
		go_profile_target_deinit(&target);
	}
	go_profile_reader_free(reader);
}

static size_t snapshot_bytes(const struct go_profile_target *target)
{
	size_t n = 0;

	for (size_t i = 0; i < target->n_found; i++)
		if (target->found[i].snaps[GO_PROFILE_HEAP])
			n += heapsnap_bytes(target->found[i].snaps[GO_PROFILE_HEAP]);
	return n;
}

/* The snapshots of all processes of a container are together within a ceiling. Here all processes
 * are one, so its records count once. */
static void no_room_for_snapshots(void **state)
{
	enum { N = 8 };
	static const char *const args[] = {"12", NULL};
	_cleanup_(freep) char *path = gofixture_build(BUCKETS, newest(), "stripped");
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	struct go_profile_target targets[N];
	struct go_profile_reader_opts opts = {.kinds = 1u << GO_PROFILE_HEAP,
					      .rounds = true,
					      .record_bytes = 64u << 20,
					      .symbol_bytes = 1u << 20};
	struct go_profile_reader *reader;
	const struct heapsnap *snap;

	(void)state;
	goprocess_start(&p, path, args, "GOMAXPROCS=1");
	opts.proc = &p.proc;
	assert_int_equal(go_profile_reader_new(&opts, &reader), 0);
	targets[0] = (struct go_profile_target){.pid = p.id};
	assert_int_equal(go_profile_reader_read(reader, 0, &targets[0]), 0);
	snap = targets[0].found[0].snaps[GO_PROFILE_HEAP];
	assert_true(snap->n_records >= 4096);
	opts.record_bytes = 3 * heapsnap_bytes(snap) / 2;
	go_profile_reader_end_round(reader);
	go_profile_target_deinit(&targets[0]);
	go_profile_reader_free(reader);

	assert_int_equal(go_profile_reader_new(&opts, &reader), 0);
	for (int round = 0; round < 2; round++) {
		size_t n_bytes = 0, n_dropped = 0;

		go_profile_reader_begin(reader);
		for (size_t i = 0; i < N; i++) {
			targets[i] = (struct go_profile_target){.pid = p.id};
			assert_int_equal(go_profile_reader_read(reader, 0, &targets[i]), 0);
			assert_int_equal(targets[i].found[0].state, GORUNTIME_OK);
			assert_int_equal(targets[i].full, !snapshot_bytes(&targets[i]));
			n_bytes += snapshot_bytes(&targets[i]);
			n_dropped += targets[i].full;
		}
		assert_true(n_bytes <= 2 * opts.record_bytes);
		assert_true(n_dropped > 0 && n_dropped < N);
		for (size_t i = 0; i < N; i++)
			go_profile_target_deinit(&targets[i]);
		go_profile_reader_end_round(reader);
	}
	go_profile_reader_free(reader);
}

/* The reads of one container are limited, too: records that are above the ceiling are read again
 * and again. The next container, or the next round, has reads of its own. Here all processes are
 * one. */
static void too_many_reads(void **state)
{
	enum { N = 200 };
	static const char *const args[] = {"10", NULL};
	_cleanup_(freep) char *path = gofixture_build(BUCKETS, newest(), "stripped");
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	struct go_profile_reader_opts opts = {.kinds = 1u << GO_PROFILE_HEAP,
					      .rounds = true,
					      .record_bytes = 4096,
					      .symbol_bytes = 1u << 20};
	struct go_profile_reader *reader;

	(void)state;
	goprocess_start(&p, path, args, "GOMAXPROCS=1");
	opts.proc = &p.proc;
	assert_int_equal(go_profile_reader_new(&opts, &reader), 0);
	for (int round = 0; round < 3; round++) {
		size_t n = 0;

		if (round == 1)
			go_profile_reader_begin(reader);
		for (size_t i = 0; i < N; i++) {
			struct go_profile_target target = {.pid = p.id};

			assert_int_equal(go_profile_reader_read(reader, 0, &target), 0);
			assert_true(target.n_found || target.full);
			n += target.n_found;
			go_profile_target_deinit(&target);
		}
		assert_true(n > 0 && n < N);
		if (round == 1)
			go_profile_reader_end_round(reader);
	}
	go_profile_reader_free(reader);
}

/* A process with many files mapped as code, inherited from this process. */
static pid_t fork_idle(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

/* The files of a container's processes are looked at in the rounds to come, too. */
static void too_many_files(void **state)
{
	enum { N = 72, N_FILES = 1000 };
	const struct go_profile_reader_opts opts = {.kinds = 1u << GO_PROFILE_HEAP,
						    .rounds = true,
						    .record_bytes = 1u << 20,
						    .symbol_bytes = 1u << 20};
	struct go_profile_reader_opts with = opts;
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	struct go_profile_reader *reader;
	size_t n_full[3] = {0};
	struct pid_id ids[N];
	void *maps[N_FILES];

	(void)state;
	assert_int_equal(root_open("/proc", &proc), 0);
	for (size_t i = 0; i < N_FILES; i++) {
		_cleanup_(close_fdp) int fd = memfd_create("code", MFD_CLOEXEC);

		assert_int_equal(ftruncate(fd, 4096), 0);
		maps[i] = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		assert_true(maps[i] != MAP_FAILED);
	}
	for (size_t i = 0; i < N; i++)
		assert_int_equal(pid_read(&proc, fork_idle(), &ids[i]), 0);
	with.proc = &proc;
	assert_int_equal(go_profile_reader_new(&with, &reader), 0);
	for (size_t round = 0; round < array_size(n_full); round++) {
		for (size_t i = 0; i < N; i++) {
			struct go_profile_target target = {.pid = ids[i]};

			assert_int_equal(go_profile_reader_read(reader, 0, &target), 0);
			n_full[round] += target.full;
			go_profile_target_deinit(&target);
		}
		go_profile_reader_end_round(reader);
	}
	go_profile_reader_free(reader);
	for (size_t i = 0; i < N; i++) {
		kill((pid_t)ids[i].pid, SIGKILL);
		waitpid((pid_t)ids[i].pid, NULL, 0);
	}
	for (size_t i = 0; i < N_FILES; i++)
		munmap(maps[i], 4096);
	print_message("%zu, %zu, %zu processes too many\n", n_full[0], n_full[1], n_full[2]);
	assert_in_range(n_full[0], 1, N - 60);
	assert_int_equal(n_full[1], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_program),
		cmocka_unit_test(two_runtimes),
		cmocka_unit_test(library_comes_later),
		cmocka_unit_test(executes_itself),
		cmocka_unit_test(ends),
		cmocka_unit_test(no_room),
		cmocka_unit_test(no_room_for_snapshots),
		cmocka_unit_test(too_many_reads),
		cmocka_unit_test(too_many_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
