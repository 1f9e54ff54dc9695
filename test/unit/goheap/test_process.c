// SPDX-License-Identifier: Apache-2.0
/* Real processes: states, forcing, and ends during a read. */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "goheap/force.h"
#include "goheap/goheap.h"
#include "procmap/memory.h"
#include "support/gofixture.h"
#include "support/goprocess.h"

#define PLAIN "test/fixtures/go/plain"
#define HEAP  "test/fixtures/go/heap"

static struct goheap *open_heap(const struct goprocess *p, bool force, bool was_forced)
{
	const struct goheap_opts opts = {
		.proc = &p->proc,
		.id = p->id,
		.force = force,
		.was_forced = was_forced,
	};
	struct goheap *h;

	assert_int_equal(goheap_new(&opts, &h), 0);
	return h;
}

/* ---------------------------------------------------------------- memory */

/* The test reads itself: two pages, a hole, two pages, the last one unreadable. */
static void memory_of_a_process(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	_cleanup_(process_memory_deinit) struct process_memory pm = {.fd = -1};
	uint8_t buf[64], *at = mmap(NULL, 5 * page, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t addr = (uint64_t)(uintptr_t)at;
	struct memory_range ranges[] = {{addr, buf, 8}, {addr + 2 * page - 8, buf + 8, 8}};
	struct pid_id id;
	size_t n;

	(void)state;
	assert_true(at != MAP_FAILED);
	memset(at, 7, 5 * page);
	munmap(at + 2 * page, page);
	mprotect(at + 4 * page, page, PROT_NONE);
	assert_int_equal(root_open("/proc", &proc), 0);
	assert_int_equal(pid_read(&proc, getpid(), &id), 0);
	assert_int_equal(process_memory_init(&pm, &proc, &id), 0);

	assert_int_equal(memory_read(&pm.memory, addr, buf, 64), 0);
	assert_int_equal(buf[63], 7);
	assert_int_equal(memory_read(&pm.memory, addr + 2 * page - 32, buf, 64), MEMORY_UNMAPPED);
	assert_int_equal(memory_read_some(&pm.memory, addr + 2 * page - 32, buf, 64, &n), 0);
	assert_int_equal(n, 32);
	assert_int_equal(memory_read_some(&pm.memory, addr + 2 * page, buf, 64, &n),
			 MEMORY_UNMAPPED);
	assert_int_equal(memory_read(&pm.memory, addr + 4 * page - 32, buf, 64), MEMORY_UNMAPPED);
	assert_int_equal(memory_read(&pm.memory, addr + 4 * page, buf, 1), MEMORY_UNMAPPED);
	assert_int_equal(memory_read(&pm.memory, UINT64_MAX - 3, buf, 8), MEMORY_UNMAPPED);
	assert_int_equal(memory_read(&pm.memory, 1ull << 63, buf, 8), MEMORY_UNMAPPED);
	assert_int_equal(memory_read_ranges(&pm.memory, ranges, 2), 0);
	ranges[1].addr += 4;
	assert_int_equal(memory_read_ranges(&pm.memory, ranges, 2), MEMORY_UNMAPPED);
	assert_int_equal(memory_check(&pm.memory), 0);
	munmap(at, 5 * page);
}

/* Bytes of the ranges in order, up to the first that is not mapped: [@hole, @hole_end) is not. */
static size_t fill(const struct memory_range *ranges, size_t n, uint64_t hole, uint64_t hole_end)
{
	size_t filled = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < ranges[i].n; k++, filled++)
			if (ranges[i].addr + k >= hole && ranges[i].addr + k < hole_end)
				return filled;
	return filled;
}

/* Near ranges are read as one, which must not show: forwards, backwards, overlapping, empty, over
 * the end of a page. */
static void near_ranges(void **state)
{
	enum { PAGES = 3, N = 12, BYTES = 700, TURNS = 20000 };
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	_cleanup_(process_memory_deinit) struct process_memory pm = {.fd = -1};
	uint8_t *at = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	const uint64_t addr = (uint64_t)(uintptr_t)at, hole = addr + 2 * page;
	static uint8_t to[N][BYTES];
	struct pid_id id;
	size_t n_short = 0;

	(void)state;
	assert_true(at != MAP_FAILED);
	for (size_t i = 0; i < PAGES * page; i++)
		at[i] = (uint8_t)(i * 2654435761u >> 13);
	munmap(at + 2 * page, page);
	assert_int_equal(root_open("/proc", &proc), 0);
	assert_int_equal(pid_read(&proc, getpid(), &id), 0);
	assert_int_equal(process_memory_init(&pm, &proc, &id), 0);
	srand(1);
	for (size_t turn = 0; turn < TURNS; turn++) {
		struct memory_range ranges[N];
		const size_t n = 1 + (size_t)rand() % N;
		const uint64_t near = addr + (size_t)rand() % (2 * page);
		size_t want, got = SIZE_MAX;

		for (size_t i = 0; i < n; i++) {
			const size_t bytes = (size_t)rand() % (rand() % 8 ? 32 : BYTES);

			ranges[i] =
				(struct memory_range){near + (size_t)rand() % 256, to[i], bytes};
		}
		want = fill(ranges, n, hole, hole + page);
		assert_int_equal(pm.memory.read(&pm.memory, ranges, n, &got), 0);
		assert_int_equal(got, want);
		n_short += got < fill(ranges, n, 0, 0);
		for (size_t i = 0; i < n && want; i++) {
			const size_t bytes = ranges[i].n < want ? ranges[i].n : want;

			assert_memory_equal(to[i], at + (ranges[i].addr - addr), bytes);
			want -= bytes;
		}
	}
	assert_true(n_short > TURNS / 100);
	munmap(at, 2 * page);
}

/* More ranges than a single call takes, all from the memory of one window. */
static void many_ranges(void **state)
{
	enum { N = 2 * MEMORY_RANGES_MAX + 1 };
	static uint32_t from[N], to[N];
	static struct memory_range ranges[N];
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	_cleanup_(process_memory_deinit) struct process_memory pm = {.fd = -1};
	struct pid_id id;

	(void)state;
	for (uint32_t i = 0; i < N; i++) {
		from[i] = i + 1;
		ranges[i] = (struct memory_range){(uint64_t)(uintptr_t)&from[i], &to[i], 4};
	}
	assert_int_equal(root_open("/proc", &proc), 0);
	assert_int_equal(pid_read(&proc, getpid(), &id), 0);
	assert_int_equal(process_memory_init(&pm, &proc, &id), 0);
	assert_int_equal(memory_read_ranges(&pm.memory, ranges, N), 0);
	assert_memory_equal(from, to, sizeof(from));
	assert_int_equal(pm.memory.n_calls, 3);
	assert_int_equal(pm.memory.n_bytes, sizeof(from));
}

/* The same pid and start time, another program. */
static void exec_is_noticed(void **state)
{
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	_cleanup_(process_memory_deinit) struct process_memory pm = {.fd = -1};
	int go[2], gone[2];
	struct pid_id id;
	pid_t pid;
	char c;

	(void)state;
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(pipe2(gone, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		if (read(go[0], &c, 1) == 1)
			execl("/bin/sleep", "sleep", "1000", NULL);
		_exit(1);
	}
	close(gone[1]);
	assert_int_equal(root_open("/proc", &proc), 0);
	assert_int_equal(pid_read(&proc, pid, &id), 0);
	assert_int_equal(process_memory_init(&pm, &proc, &id), 0);
	assert_int_equal(memory_check(&pm.memory), 0);
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_int_equal(read(gone[0], &c, 1), 0); /* closed by the exec */
	assert_int_equal(pid_check(&proc, &id), 0);
	assert_int_equal(memory_check(&pm.memory), MEMORY_GONE);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(memory_check(&pm.memory), MEMORY_GONE);
	assert_int_equal(memory_read(&pm.memory, 0x1000, &c, 1), MEMORY_GONE);
	process_memory_deinit(&pm);
	assert_int_equal(process_memory_init(&pm, &proc, &id), MEMORY_GONE);
	assert_int_equal(process_memory_open(&pm, &proc, &id, true), MEMORY_GONE);
	close(go[0]);
	close(go[1]);
	close(gone[0]);
}

/* Memory that is opened without a check is another process's until the check tells. */
static void reused_pid(void **state)
{
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	const int word = 0x12345;
	struct process_memory pm;
	struct pid_id id;
	int got = 0;

	(void)state;
	assert_int_equal(root_open("/proc", &proc), 0);
	assert_int_equal(pid_read(&proc, getpid(), &id), 0);
	id.start_ticks++;
	for (int is_ours = 0; is_ours < 2; is_ours++) {
		assert_int_equal(process_memory_open(&pm, &proc, &id, is_ours), 0);
		assert_int_equal(memory_read(&pm.memory, (uintptr_t)&word, &got, sizeof(got)), 0);
		assert_int_equal(got, word);
		assert_int_equal(memory_check(&pm.memory), MEMORY_GONE);
		process_memory_deinit(&pm);
	}
	assert_int_equal(process_memory_init(&pm, &proc, &id), MEMORY_GONE);
	assert_int_equal(pm.fd, -1);
}

/* ---------------------------------------------------------------- states */

static void not_go(void **state)
{
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	struct goheap_opts opts = {.proc = &proc};
	struct goheap_profile profile;
	struct goheap *h;

	(void)state;
	assert_int_equal(root_open("/proc", &proc), 0);
	assert_int_equal(pid_read(&proc, getpid(), &opts.id), 0);
	assert_int_equal(goheap_new(&opts, &h), 0);
	assert_int_equal(goheap_state(h), GORUNTIME_NO_RUNTIME);
	assert_null(goheap_runtime(h));
	assert_int_equal(goheap_read(h, &profile), GORUNTIME_NO_RUNTIME);
	goheap_free(h);

	/* another process had this pid */
	opts.id.start_ticks++;
	assert_int_equal(goheap_new(&opts, &h), 0);
	assert_int_equal(goheap_state(h), GORUNTIME_GONE);
	goheap_free(h);
}

static void states_of_programs(void **state)
{
	static const struct {
		const char *name;
		const char *src;
		const char *variant;
		const char *env;
		enum goruntime_state want;
	} rows[] = {
		{"profiles itself", HEAP, "default", "HEAP_RATE=1", GORUNTIME_OK},
		{"stripped", HEAP, "stripped", "HEAP_RATE=1", GORUNTIME_OK},
		{"asks for no profile", PLAIN, "default", NULL, GORUNTIME_DISABLED_BY_LINKER},
		{"asks for none, stripped", PLAIN, "stripped", NULL, GORUNTIME_DISABLED_BY_LINKER},
		{"turned off by itself", HEAP, "default", "HEAP_RATE=0",
		 GORUNTIME_DISABLED_BY_PROGRAM},
	};
	const char *gos[GOFIXTURE_GOS_MAX];
	size_t n = gofixture_gos(gos);

	(void)state;
	for (size_t i = 0; i < n * array_size(rows); i++) {
		_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
		char *path =
			gofixture_build(rows[i % array_size(rows)].src, gos[i / array_size(rows)],
					rows[i % array_size(rows)].variant);
		const char *const args[] = {"/dev/null", "inline", NULL};
		const struct goruntime *rt;
		struct goheap_profile profile;
		enum goruntime_state want = rows[i % array_size(rows)].want;
		struct goheap *h;

		row_begin(rows[i % array_size(rows)].name);
		if (want == GORUNTIME_DISABLED_BY_LINKER && gofixture_minor(path) < 17)
			want = GORUNTIME_OK; /* the linker does this since 1.17 */
		goprocess_start(&p, path, args, rows[i % array_size(rows)].env);
		if (want == GORUNTIME_OK)
			goprocess_order(&p, "again"); /* perhaps no sample until then */
		h = open_heap(&p, false, false);
		assert_int_equal(goheap_read(h, &profile), want);
		rt = goheap_runtime(h);
		assert_non_null(rt);
		assert_int_equal(goruntime_minor(&rt->file), gofixture_minor(path));
		goheap_free(h);
		free(path);
	}
}

/* ---------------------------------------------------------------- exact totals */

/* The program's own values from a moment ago. */
static void read_stats(const char *path, struct gototals *ret)
{
	uint64_t total, mallocs, heap, frees;
	FILE *f = fopen(path, "re");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &total, &mallocs,
				&heap, &frees),
			 4); // NOLINT(cert-err34-c): our own fixture's
	fclose(f);
	*ret = (struct gototals){total, mallocs, total - heap, frees};
}

/* @now was read after @then; meanwhile the program only allocated to write its file. */
static void assert_near(uint64_t now, uint64_t then, uint64_t slack)
{
	assert_true(now >= then);
	assert_true(now - then <= then / 5000 + slack);
}

static void exact_totals(void **state)
{
	static const char *const variants[] = {"default", "stripped", "cgo-pie-stripped"};
	const char *gos[GOFIXTURE_GOS_MAX];
	size_t n = gofixture_gos(gos);

	(void)state;
	for (size_t i = 0; i < n * array_size(variants); i++) {
		_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
		char *path = gofixture_build(HEAP, gos[i / array_size(variants)],
					     variants[i % array_size(variants)]);
		char out[] = "/tmp/test_process.XXXXXX", stats[sizeof(out) + 8];
		const char *const args[] = {out, "all", NULL};
		/* in 1.17 and 1.18 the spans of processors count as allocated */
		uint64_t slack = gofixture_minor(path) < 19 ? 512 << 10 : 4096;
		struct gototals now, then;
		struct goheap *h;

		row_begin(path);
		close(mkstemp(out));
		snprintf(stats, sizeof(stats), "%s.stats", out);
		goprocess_start(&p, path, args, NULL);
		goprocess_order(&p, "stats");
		read_stats(stats, &then);
		h = open_heap(&p, false, false);
		if (gofixture_minor(path) < 17) {
			assert_int_equal(goheap_exact(h, &now), GOTOTALS_ABSENT);
		} else {
			assert_int_equal(goheap_exact(h, &now), 0);
			assert_near(now.alloc_bytes, then.alloc_bytes, slack);
			assert_near(now.alloc_objects, then.alloc_objects, slack);
			assert_near(now.free_bytes, then.free_bytes, slack);
			assert_near(now.free_objects, then.free_objects, slack);
		}
		goheap_free(h);
		unlink(out);
		unlink(stats);
		free(path);
	}
}

/* ---------------------------------------------------------------- forcing */

static uint64_t allocated_bytes(const struct goheap_profile *profile)
{
	struct goheap_totals totals;

	goheap_totals(profile, &totals);
	return (uint64_t)totals.alloc.bytes;
}

static void force_one(const char *path)
{
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	const char *const args[] = {NULL};
	struct goheap_profile profile = {0};
	struct goheap *h;
	uint64_t before;

	goprocess_start(&p, path, args, NULL);
	/* never a second time */
	h = open_heap(&p, true, true);
	assert_int_equal(goheap_read(h, &profile), GORUNTIME_DISABLED_BY_LINKER);
	assert_int_equal(goheap_force_outcome(h), FORCE_WAS_ON);
	goheap_free(h);

	h = open_heap(&p, true, false);
	assert_false(goheap_was_forced(h));
	assert_int_equal(goheap_read(h, &profile), GORUNTIME_FORCED);
	assert_true(goheap_was_forced(h));
	assert_int_equal(goheap_force_outcome(h), FORCE_OK);
	assert_int_equal(profile.rate, FORCE_RATE);
	before = allocated_bytes(&profile);
	goprocess_order(&p, "allocate");
	goprocess_order(&p, "allocate");
	assert_int_equal(goheap_read(h, &profile), GORUNTIME_FORCED);
	/* 64 samples are expected of 32 MiB; 16 are 6 standard deviations away */
	assert_true(allocated_bytes(&profile) - before > 8u << 20);
	/* never a second write, even without knowledge of the first */
	assert_int_equal(force_sampling(&p.proc, &p.id, goheap_runtime(h)), FORCE_NOT_ZERO);
	goheap_free(h);
	h = open_heap(&p, false, false);
	assert_int_equal(goheap_read(h, &profile), GORUNTIME_FORCED);
	goheap_free(h);
	/* nor after the program has turned sampling off again */
	goprocess_order(&p, "off");
	h = open_heap(&p, true, false);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(goheap_read(h, &profile), GORUNTIME_DISABLED_BY_PROGRAM);
		assert_int_equal(goheap_force_outcome(h), i ? FORCE_OUTCOME_MAX : FORCE_WAS_ON);
		assert_false(goheap_was_forced(h));
	}
	goheap_free(h);
}

static void force(void **state)
{
	static const char *const variants[] = {"default",      "pie",	      "stripped",
					       "pie-stripped", "sectionless", "c-shared-stripped",
					       "packed"};
	const char *gos[GOFIXTURE_GOS_MAX];
	size_t n = gofixture_gos(gos);

	(void)state;
	for (size_t i = 0; i < n * array_size(variants); i++) {
		char *path = gofixture_build(PLAIN, gos[i / array_size(variants)],
					     variants[i % array_size(variants)]);

		row_begin(path);
		if (gofixture_minor(path) >= 17)
			force_one(path);
		free(path);
	}
}

/* A runtime's own description (goruntime.c): the address of the tables, the number of functions,
 * and all memory as data. */
static uint64_t own_description[32] = {[0] = 0x401000, [17] = 8, [25] = UINT64_MAX};

static struct goruntime runtime_with_rate(uint64_t addr)
{
	struct goruntime rt = {
		.certain = true,
		.file = {.data = (uint64_t)(uintptr_t)own_description,
			 .table = 0x401000,
			 .n_funcs = 7},
	};

	rt.file.vars[GORUNTIME_RATE] =
		(struct goruntime_place){addr, GORUNTIME_FROM_SYMTAB, ".noptrdata"};
	return rt;
}

/* Addresses that a symbol might name, and that must not be written. */
static void force_refuses(void **state)
{
	static int64_t set = 42, zero;
	static const int64_t constant = 0;
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int64_t *shared =
		mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int64_t *hole = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	const struct {
		const char *name;
		uint64_t addr;
		int want;
	} rows[] = {
		{"set already", (uint64_t)(uintptr_t)&set, FORCE_NOT_ZERO},
		{"read-only", (uint64_t)(uintptr_t)&constant, FORCE_UNCERTAIN},
		{"shared", (uint64_t)(uintptr_t)shared, FORCE_UNCERTAIN},
		{"not mapped", 0x1000, FORCE_UNCERTAIN},
		{"not readable", (uint64_t)(uintptr_t)hole, FORCE_UNCERTAIN},
		{"not aligned", (uint64_t)(uintptr_t)&zero + 4, FORCE_UNCERTAIN},
		{"none", 0, FORCE_UNCERTAIN},
		{"kernel", 1ull << 63, FORCE_UNCERTAIN},
		{"right", (uint64_t)(uintptr_t)&zero, FORCE_OK},
	};
	struct pid_id id;
	struct goruntime rt;

	(void)state;
	assert_int_equal(root_open("/proc", &proc), 0);
	assert_int_equal(pid_read(&proc, getpid(), &id), 0);
	for (size_t i = 0; i < array_size(rows); i++) {
		rt = runtime_with_rate(rows[i].addr);
		row_begin(rows[i].name);
		assert_int_equal(zero, 0);
		assert_int_equal(force_sampling(&proc, &id, &rt), rows[i].want);
		/* the file is not compared with the memory yet */
		rt.certain = false;
		assert_int_equal(force_sampling(&proc, &id, &rt), FORCE_UNCERTAIN);
	}
	/* the memory differs by now: another program runs */
	rt = runtime_with_rate((uint64_t)(uintptr_t)&zero);
	zero = 0;
	own_description[17]++;
	assert_int_equal(force_sampling(&proc, &id, &rt), FORCE_UNCERTAIN);
	assert_int_equal(zero, 0);
	own_description[17]--;
	assert_int_equal(force_sampling(&proc, &id, &rt), FORCE_OK);
	assert_int_equal(zero, FORCE_RATE);
	assert_int_equal(set, 42);
	assert_int_equal(*shared, 0);
	id.start_ticks++;
	zero = 0;
	assert_int_equal(force_sampling(&proc, &id, &rt), FORCE_GONE);
	assert_int_equal(zero, 0);
	munmap(shared, page);
	munmap(hole, page);
}

/* ---------------------------------------------------------------- running and dying processes */

/* Two goroutines that allocate and collect as fast as possible. */
static void never_less(void **state)
{
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	const char *const args[] = {NULL};
	_cleanup_(freep) char *path = NULL;
	const char *gos[GOFIXTURE_GOS_MAX];
	struct goheap_profile profile;
	uint64_t last = 0, n_unsettled = 0;
	enum goruntime_state want;
	struct goheap *h;

	(void)state;
	path = gofixture_build(PLAIN, gos[gofixture_gos(gos) - 1], "default");
	/* before 1.17 nothing turns sampling off */
	want = gofixture_minor(path) < 17 ? GORUNTIME_OK : GORUNTIME_FORCED;
	goprocess_start(&p, path, args, "PLAIN_BUSY=1");
	if (want == GORUNTIME_OK)
		goprocess_order(&p, "again");
	h = open_heap(&p, true, false);
	for (int i = 0; i < 3000; i++) {
		uint64_t now = 0;

		assert_int_equal(goheap_read(h, &profile), want);
		n_unsettled += !profile.settled;
		for (size_t k = 0; k < profile.n_records; k++) {
			struct goheap_record record;

			goheap_record(&profile, k, &record);
			assert_true(record.fresh_allocs >= record.before_allocs);
			now += record.fresh_allocs;
		}
		assert_true(now >= last);
		last = now;
	}
	assert_true(last > 0);
	print_message("%" PRIu64 " sampled, %" PRIu64 " reads not settled\n", last, n_unsettled);
	goheap_free(h);
}

/* Killed at a moving moment during the search for the runtime and the read of the records. Until
 * the test waits for the process, it is a zombie: present, but empty. */
static void killed_while_read(void **state)
{
	const char *const args[] = {"/dev/null", "many", NULL};
	_cleanup_(freep) char *path = NULL;
	const char *gos[GOFIXTURE_GOS_MAX];
	unsigned int n_gone = 0;

	(void)state;
	path = gofixture_build(HEAP, gos[gofixture_gos(gos) - 1], "default");
	for (useconds_t delay_us = 0; delay_us < 20000; delay_us += 500) {
		_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
		struct goheap_profile profile;
		struct goheap *h;
		pid_t killer;
		int r = 0;

		goprocess_start(&p, path, args, "HEAP_RATE=4096");
		killer = fork();
		if (killer == 0) {
			usleep(delay_us);
			kill((pid_t)p.id.pid, SIGKILL);
			_exit(0);
		}
		h = open_heap(&p, false, false);
		/* the first sample may be late: its predecessor has set the distance, at the rate
		 * of that time */
		while (r == GORUNTIME_OK || r == GORUNTIME_NO_SAMPLES_YET)
			r = goheap_read(h, &profile);
		assert_int_equal(r, GORUNTIME_GONE);
		n_gone++;
		waitpid(killer, NULL, 0);
		goheap_free(h);
	}
	assert_int_equal(n_gone, 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_of_a_process),
		cmocka_unit_test(near_ranges),
		cmocka_unit_test(many_ranges),
		cmocka_unit_test(exec_is_noticed),
		cmocka_unit_test(reused_pid),
		cmocka_unit_test(not_go),
		cmocka_unit_test(states_of_programs),
		cmocka_unit_test(exact_totals),
		cmocka_unit_test(force),
		cmocka_unit_test(force_refuses),
		cmocka_unit_test(never_less),
		cmocka_unit_test(killed_while_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
