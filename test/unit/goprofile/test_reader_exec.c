// SPDX-License-Identifier: Apache-2.0
/*
 * A process that runs another program during a read: the names are those of the program whose
 * records are read. Both programs lie at the same addresses, so a wrong file names them, too. The
 * calls that read a process's memory are this file's; after one of them the process executes.
 */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "goprofile/heapsnap.h"
#include "goprofile/reader.h"
#include "procmap/image.h"
#include "support/gofixture.h"
#include "support/goprocess.h"

#define BUCKETS "test/fixtures/go/buckets"

/* @at: number of the call after which the process executes @next; 0: never */
static struct {
	struct goprocess *process;
	const char *next;
	size_t n;
	size_t at;
} calls;

static void called(void)
{
	char order[4200];

	if (++calls.n != calls.at)
		return;
	snprintf(order, sizeof(order), "exec %s", calls.next);
	goprocess_order(calls.process, order);
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *lvec, unsigned long liovcnt,
			 const struct iovec *rvec, unsigned long riovcnt, unsigned long flags)
{
	ssize_t r = syscall(SYS_process_vm_readv, pid, lvec, liovcnt, rvec, riovcnt, flags);

	called();
	return r;
}

/* A byte at 0 is memory_check(). */
static ssize_t read_at(int fd, void *to, size_t n, off_t off)
{
	ssize_t r = syscall(SYS_pread64, fd, to, n, off);

	if (n == 1 && off == 0)
		called();
	return r;
}

ssize_t pread(int fd, void *buf, size_t nbytes, off_t offset)
{
	return read_at(fd, buf, nbytes, offset);
}

ssize_t pread64(int fd, void *buf, size_t nbytes, off_t offset)
{
	return read_at(fd, buf, nbytes, offset);
}

static const char *newest(void)
{
	static const char *gos[GOFIXTURE_GOS_MAX];

	return gos[gofixture_gos(gos) - 1];
}

static size_t n_frames_of(const struct stacksnap *stacks, const char *path)
{
	size_t n = 0;

	for (size_t i = 0; i < stacks->n_frames; i++)
		n += stacks->frames[i].image->path &&
		     strcmp(stacks->frames[i].image->path, path) == 0;
	return n;
}

/* @programs: by the number of the runtime, from 1 */
static void check(const struct go_profile_target *target, char *const programs[2])
{
	const struct heapsnap *snap;
	unsigned int number;

	/* an exec during the search for the runtime: the next read finds the program */
	if (!target->n_found)
		return;
	assert_int_equal(target->n_found, 1);
	number = target->found[0].number;
	assert_in_range(number, 1, 2);
	snap = target->found[0].snaps[GO_PROFILE_HEAP];
	if (!snap)
		return;
	assert_true(snap->stacks.n_frames > 0);
	assert_int_equal(n_frames_of(&snap->stacks, programs[number - 1]), snap->stacks.n_frames);
}

/* False: there is no such call. */
static bool exec_after(size_t at, const struct go_profile_reader_opts *with, int n_rounds,
		       char *const programs[2])
{
	static const char *const args[] = {"4", NULL};
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	struct go_profile_reader_opts opts = *with;
	struct go_profile_reader *reader;

	calls.process = &p;
	calls.next = programs[1];
	goprocess_start(&p, programs[0], args, "GOMAXPROCS=1");
	opts.proc = &p.proc;
	assert_int_equal(go_profile_reader_new(&opts, &reader), 0);
	for (int round = 0; round < n_rounds; round++) {
		struct go_profile_target target = {.pid = p.id};

		calls.n = 0;
		calls.at = round == n_rounds - 1 ? at : 0;
		assert_int_equal(go_profile_reader_read(reader, 0, &target), 0);
		check(&target, programs);
		go_profile_target_deinit(&target);
		go_profile_reader_end_round(reader);
	}
	go_profile_reader_free(reader);
	return calls.n >= at;
}

static void exec_during_a_read(void **state)
{
	static const struct {
		const char *name;
		unsigned int kinds;
		bool rounds;
		int n_rounds;
	} rows[] = {
		{"a single read", 1u << GO_PROFILE_HEAP, false, 1},
		{"the first round", GO_PROFILE_CUMULATIVE, true, 1},
		{"the second round", GO_PROFILE_CUMULATIVE, true, 2},
	};
	static const char *const variants[] = {"default", "noopt"};
	char *programs[2];

	(void)state;
	for (size_t i = 0; i < array_size(variants); i++) {
		_cleanup_(freep) char *path = gofixture_build(BUCKETS, newest(), variants[i]);

		programs[i] = realpath(path, NULL); /* as in the mappings */
		assert_non_null(programs[i]);
	}
	for (size_t i = 0; i < array_size(rows); i++) {
		const struct go_profile_reader_opts opts = {
			.kinds = rows[i].kinds,
			.rounds = rows[i].rounds,
			.record_bytes = 64u << 20,
			.symbol_bytes = 1u << 20,
		};
		size_t at = 1;

		row_begin(rows[i].name);
		while (exec_after(at, &opts, rows[i].n_rounds, programs))
			at++;
		print_message("%zu calls\n", at - 1);
		assert_true(at > 5);
	}
	free(programs[0]);
	free(programs[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(exec_during_a_read)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
