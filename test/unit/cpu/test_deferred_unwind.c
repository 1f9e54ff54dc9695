// SPDX-License-Identifier: Apache-2.0
/*
 * Stack dumps of a process whose files are not open yet. The address space is the test's own. Its
 * list and its files arrive in address_space_cache_wait() and at no other time. The ring, the
 * publisher and the clock are the test's.
 */
#include "support/test.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "base/root.h"
#include "cpu/deferred_unwind.h"
#include "discovery/pid.h"
#include "procmap/address_space.h"
#include "procmap/process_history.h"
#include "procmap/space.h"
#include "shared/stack_dump.h"
#include "support/metrics.h"
#include "unwindtable/unwind_publisher.h"

#define MINUTE_NS (60 * NSEC_PER_SEC)
/* A pid that no process has. */
#define NOBODY	  0x7ffffff0u

struct bench {
	struct root proc;
	struct loop *loop;
	struct address_space_cache *spaces;
	struct deferred_unwind *du;
	struct pid_id self;
	uint64_t now_ns;
	struct stack_dump_record record; /* in the ring @n_ring times */
	size_t size;
	size_t n_ring;
	bool knows;	/* the publisher takes names of a process without files */
	uint64_t words; /* of a walked stack */
	size_t n_walks;
	size_t n_bytes; /* of the last */
	uint32_t end;	/* of its walk */
	bool slices;	/* the test walks the dumps */
	bool finds;	/* the next walk leads to a mapping */
	uint16_t exe;	/* without its table, and all walks need it; 0: none */
	char order[8];	/* what has left the list: n, names taken; o, names refused; s, a stack */
	size_t n_order;
};

static struct bench *bench_now;

static void note(struct bench *b, char what)
{
	if (b->n_order < sizeof(b->order) - 1)
		b->order[b->n_order++] = what;
}

/* ---------------------------------------------------------------- what surrounds the module */

static int ring_new(const struct bpfobj_stack_dumps *maps, struct stack_dumps **ret)
{
	(void)maps;
	*ret = NULL;
	return 0;
}

static void ring_free(struct stack_dumps *c)
{
	(void)c;
}

static int ring_drain(struct stack_dumps *c, stack_dumps_fn fn, void *ctx)
{
	struct bench *b = bench_now;

	(void)c;
	for (; b->n_ring; b->n_ring--) {
		struct stack_dump_copy *copy = malloc(sizeof(*copy) + b->size);

		assert_non_null(copy);
		copy->size = b->size;
		memcpy(copy->record, &b->record, b->size);
		fn(ctx, copy);
	}
	return 0;
}

static uint64_t ring_lost(const struct stack_dumps *c)
{
	(void)c;
	return 0;
}

static void ring_collect(void *c, struct metric_sink *sink)
{
	(void)c;
	(void)sink;
}

/* Whether the code of the test itself is known to the last byte. */
static bool is_open(const struct address_space *space)
{
	const uint64_t pc = (uintptr_t)&is_open;
	const struct address_space_mapping *items;
	size_t n;

	items = address_space_mappings(space, &n);
	for (size_t i = 0; i < n; i++)
		if (pc >= items[i].start && pc < items[i].limit)
			return !items[i].image->opening && items[i].image->file;
	return false;
}

static bool take_names(struct unwind_publisher *u, const struct stack_dump *dump,
		       const struct address_space *space)
{
	const bool taken = bench_now->knows || is_open(space);

	(void)u;
	assert_int_equal(dump->n_excerpt, STACK_DUMP_EXCERPT_BYTES);
	note(bench_now, taken ? 'n' : 'o');
	return taken;
}

static int walk_stack(struct unwind_publisher *u, const struct stack_dump *dump,
		      const struct address_space *space, struct sample *ret,
		      struct unwind_publisher_wait *wait)
{
	(void)u;
	/* the cache's own space: its seeking of the walk's pcs can change it */
	((struct address_space *)space)->version += bench_now->finds;
	bench_now->finds = false;
	bench_now->n_walks++;
	bench_now->n_bytes = dump->n_bytes;
	*wait = (struct unwind_publisher_wait){.exe = bench_now->exe};
	*ret = dump->sample;
	ret->end = bench_now->end;
	(void)sample_set_user(ret, &bench_now->words, 1, 0);
	return bench_now->exe ? UNWIND_PUBLISHER_WAITS : UNWIND_PUBLISHER_OK;
}

static bool want_table(struct unwind_publisher *u, uint16_t exe)
{
	(void)u;
	assert_int_not_equal(exe, 0);
	return exe == bench_now->exe;
}

static void rest(struct unwind_publisher *u)
{
	(void)u;
}

static uint64_t now(void)
{
	return bench_now->now_ns;
}

#define stack_dumps_new	       ring_new
#define stack_dumps_free       ring_free
#define stack_dumps_drain      ring_drain
#define stack_dumps_n_lost     ring_lost
#define stack_dumps_collect    ring_collect
#define unwind_publisher_names take_names
#define unwind_publisher_walk  walk_stack
#define unwind_publisher_want  want_table
#define unwind_publisher_rest  rest
#define nsec_monotonic	       now
#include "cpu/deferred_unwind.c" // NOLINT(bugprone-suspicious-include)

/* ---------------------------------------------------------------- the bench */

static void on_stack(void *ctx, enum stack_dump_kind kind, const struct sample *sample,
		     uint64_t time_ns)
{
	assert_int_equal(kind, STACK_DUMP_ONCPU);
	assert_int_equal(sample->n_user, 1);
	assert_true(time_ns > 0);
	note(ctx, 's');
}

static void on_opened(void *ctx, uint64_t pid)
{
	struct bench *b = ctx;

	deferred_unwind_opened(b->du, pid);
}

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct address_space_files files = {.opened = on_opened, .ctx = b, .stuck_ns = MINUTE_NS};
	struct deferred_unwind_opts opts = {.fn = on_stack, .ctx = b};

	assert_non_null(b);
	*state = bench_now = b;
	b->now_ns = MINUTE_NS;
	b->words = (uintptr_t)&is_open;
	assert_int_equal(root_open("/proc", &b->proc), 0);
	assert_int_equal(loop_new(&b->loop), 0);
	assert_int_equal(pid_read(&b->proc, getpid(), &b->self), 0);
	assert_int_equal(address_space_cache_new(&b->proc, &b->spaces), 0);
	opts.spaces = b->spaces;
	assert_int_equal(deferred_unwind_new(&opts, &b->du), 0);
	files.loop = b->loop;
	assert_int_equal(address_space_cache_open_behind(b->spaces, &files), 0);
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	address_space_cache_free(b->spaces);
	deferred_unwind_free(b->du);
	loop_free(b->loop);
	root_deinit(&b->proc);
	free(b);
	return 0;
}

/* @n dumps of @pid come. */
static void come(struct bench *b, uint32_t pid, enum stack_dump_kind kind, size_t n)
{
	const uint32_t n_excerpt = kind == STACK_DUMP_NAMES ? STACK_DUMP_EXCERPT_BYTES : 0;
	const uint64_t start_ns =
		b->self.start_ticks * (NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));

	b->record = (struct stack_dump_record){
		.head = {.key = {.tgid = pid, .start_boottime_ns = start_ns},
			 .head = {.count = 1},
			 .time_ns = nsec_boot(),
			 .kind = kind,
			 .runtime = n_excerpt ? FRAME_RUNTIME_PYTHON : FRAME_RUNTIME_NONE,
			 .n_excerpt = n_excerpt}};
	b->size = sizeof(b->record.head) + n_excerpt;
	b->n_ring = n;
	if (b->slices)
		return;
	assert_int_equal(deferred_unwind_tick(b->du, UINT64_MAX, UINT64_MAX), 0);
}

/* A part of the dump of @time_ns comes, behind @n_before bytes. */
static void come_part(struct bench *b, uint64_t time_ns, uint32_t n_before, uint32_t n_bytes,
		      bool more)
{
	b->slices = true;
	come(b, (uint32_t)b->self.pid, STACK_DUMP_ONCPU, 1);
	b->slices = false;
	b->record.head.time_ns = time_ns;
	b->record.head.n_before = n_before;
	b->record.head.n_bytes = n_bytes;
	b->record.head.more = more;
	for (size_t i = 0; i < STACK_DUMP_DEEP_PIECES; i++)
		b->record.head.pieces[i] = (uint16_t)i;
	b->size = sizeof(b->record.head) + n_bytes;
	assert_int_equal(deferred_unwind_tick(b->du, UINT64_MAX, UINT64_MAX), 0);
}

/* The list, or some files, arrive. */
static void arrive(struct bench *b)
{
	assert_true(address_space_cache_opening(b->spaces) > 0);
	address_space_cache_wait(b->spaces, MINUTE_NS);
	assert_false(deferred_unwind_retry(b->du, UINT64_MAX));
}

static void all_arrive(struct bench *b)
{
	while (address_space_cache_opening(b->spaces))
		arrive(b);
}

static uint64_t count(struct bench *b, const char *outcome)
{
	return metrics_get(deferred_unwind_collect, b->du, "podprof_deferred_stacks", outcome);
}

/* What has left the list, with the names that were refused in between left out. */
static void expect_order(const struct bench *b, const char *want)
{
	char kept[sizeof(b->order)] = "";
	size_t n = 0;

	for (size_t i = 0; i < b->n_order; i++)
		if (b->order[i] != 'o')
			kept[n++] = b->order[i];
	assert_string_equal(kept, want);
}

/* ---------------------------------------------------------------- tests */

/* The names wait for the list, and then for the file of the runtime. */
static void test_names_wait(void **state)
{
	struct bench *b = *state;

	come(b, (uint32_t)b->self.pid, STACK_DUMP_NAMES, 1);
	assert_int_equal(deferred_unwind_pending(b->du), 1);
	arrive(b); /* the list */
	assert_int_equal(deferred_unwind_pending(b->du), 1);
	expect_order(b, "");
	all_arrive(b);
	assert_int_equal(deferred_unwind_pending(b->du), 0);
	expect_order(b, "n");
	come(b, (uint32_t)b->self.pid, STACK_DUMP_NAMES, 1);
	assert_int_equal(deferred_unwind_pending(b->du), 0);
	expect_order(b, "nn");
	assert_int_equal(count(b, "unwound"), 0);
	assert_int_equal(count(b, "expired"), 0);
}

/* A stack waits for all files of its process, the rest of its names for the runtime's file alone.
 * So the names may be first: the thread passes back some files before the others. */
static void test_names_behind_stack(void **state)
{
	struct bench *b = *state;

	come(b, (uint32_t)b->self.pid, STACK_DUMP_ONCPU, 1);
	come(b, (uint32_t)b->self.pid, STACK_DUMP_NAMES, 2);
	assert_int_equal(deferred_unwind_pending(b->du), 3);
	all_arrive(b);
	assert_int_equal(deferred_unwind_pending(b->du), 0);
	expect_order(b, b->order[b->n_order - 1] == 's' ? "nns" : "snn");
	assert_int_equal(count(b, "unwound"), 1);
}

/* A search during the walk finds further mappings: the walk is repeated with these. */
static void test_found_meanwhile(void **state)
{
	struct bench *b = *state;

	come(b, (uint32_t)b->self.pid, STACK_DUMP_ONCPU, 1);
	all_arrive(b);
	b->n_walks = 0;
	come(b, (uint32_t)b->self.pid, STACK_DUMP_ONCPU, 1);
	assert_int_equal(b->n_walks, 1);
	b->finds = true;
	come(b, (uint32_t)b->self.pid, STACK_DUMP_ONCPU, 1);
	assert_int_equal(b->n_walks, 3);
	expect_order(b, "sss");
}

/* A slice without time is one walk. Dumps that wait for tables or files take no part. */
static void test_slices(void **state)
{
	struct bench *b = *state;

	come(b, (uint32_t)b->self.pid, STACK_DUMP_ONCPU, 1);
	all_arrive(b);
	b->slices = true;
	b->n_walks = 0;
	come(b, (uint32_t)b->self.pid, STACK_DUMP_ONCPU, 3);
	for (size_t i = 1; i < 3; i++) {
		assert_int_equal(deferred_unwind_tick(b->du, UINT64_MAX, 0), DEFERRED_UNWIND_MORE);
		assert_int_equal(b->n_walks, i);
	}
	assert_int_equal(deferred_unwind_tick(b->du, UINT64_MAX, 0), DEFERRED_UNWIND_OK);
	assert_int_equal(b->n_walks, 3);
	come(b, (uint32_t)b->self.pid, STACK_DUMP_ONCPU, 3);
	assert_int_equal(deferred_unwind_tick(b->du, UINT64_MAX, b->now_ns + 1),
			 DEFERRED_UNWIND_OK);
	assert_int_equal(b->n_walks, 6);
	assert_int_equal(deferred_unwind_pending(b->du), 0);
}

/* The caller is in memory that an event tells of: the stack waits for the list. */
static void test_memory_missing(void **state)
{
	char *at = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct bench *b = *state;
	struct process_event event = {
		.what = PROCESS_EVENT_MAP,
		.pid = (uint32_t)b->self.pid,
		.tid = (uint32_t)b->self.pid,
		.map = {.start = (uintptr_t)at, .limit = (uintptr_t)at + 4096},
		.name = "//anon",
	};

	come(b, (uint32_t)b->self.pid, STACK_DUMP_ONCPU, 1);
	all_arrive(b);
	b->end = SAMPLE_END_NO_ROW;
	come(b, (uint32_t)b->self.pid, STACK_DUMP_ONCPU, 1);
	assert_int_equal(deferred_unwind_pending(b->du), 0);
	assert_int_equal(mprotect(at, 4096, PROT_READ | PROT_EXEC), 0);
	event.time_ns = nsec_boot();
	address_space_cache_event(b->spaces, &event);
	b->end = SAMPLE_END_NO_FP;
	come(b, (uint32_t)b->self.pid, STACK_DUMP_ONCPU, 1);
	assert_int_equal(deferred_unwind_pending(b->du), 0);
	b->end = SAMPLE_END_NO_ROW;
	/* lists have pauses between them */
	for (int i = 0; i < 6000 && !deferred_unwind_pending(b->du); i++) {
		usleep(10000);
		come(b, (uint32_t)b->self.pid, STACK_DUMP_ONCPU, 1);
	}
	assert_int_equal(deferred_unwind_pending(b->du), 1);
	all_arrive(b);
	assert_int_equal(deferred_unwind_pending(b->du), 0);
	munmap(at, 4096);
}

/* A dump of several parts is walked when it has all of them, or after a second. */
static void test_parts(void **state)
{
	const uint64_t time_ns = nsec_boot();
	struct bench *b = *state;

	come(b, (uint32_t)b->self.pid, STACK_DUMP_ONCPU, 1);
	all_arrive(b);
	b->n_walks = 0;
	come_part(b, time_ns, 0, STACK_DUMP_BYTES, true);
	come_part(b, time_ns + 1, STACK_DUMP_BYTES, STACK_DUMP_BYTES, false); /* another's */
	come_part(b, time_ns, STACK_DUMP_BYTES, STACK_DUMP_BYTES, true);
	assert_int_equal(b->n_walks, 0);
	assert_int_equal(deferred_unwind_pending(b->du), 1);
	come_part(b, time_ns, 2 * STACK_DUMP_BYTES, 2 * STACK_DUMP_READ_BYTES, false);
	assert_int_equal(b->n_walks, 1);
	assert_int_equal(b->n_bytes, 2 * STACK_DUMP_BYTES + 2 * STACK_DUMP_READ_BYTES);
	assert_int_equal(deferred_unwind_pending(b->du), 0);
	assert_int_equal(b->du->bytes, 0);

	row_begin("the second part is lost");
	come_part(b, time_ns, 0, STACK_DUMP_BYTES, true);
	come_part(b, time_ns, 2 * STACK_DUMP_BYTES, STACK_DUMP_BYTES, false);
	assert_int_equal(b->n_walks, 1);
	b->now_ns += NSEC_PER_SEC;
	assert_int_equal(deferred_unwind_tick(b->du, UINT64_MAX, UINT64_MAX), 0);
	assert_int_equal(b->n_walks, 2);
	assert_int_equal(b->n_bytes, STACK_DUMP_BYTES);

	row_begin("a part alone");
	come_part(b, time_ns, STACK_DUMP_BYTES, STACK_DUMP_BYTES, false);
	assert_int_equal(b->n_walks, 2);
	assert_int_equal(deferred_unwind_pending(b->du), 0);
	assert_int_equal(b->du->bytes, 0);
}

/* A known process does not wait for the other files. */
static void test_names_known(void **state)
{
	struct bench *b = *state;

	b->knows = true;
	come(b, (uint32_t)b->self.pid, STACK_DUMP_NAMES, 1);
	assert_int_equal(deferred_unwind_pending(b->du), 0);
	expect_order(b, "n");
}

/* A table comes: the stacks that wait for it are walked in slices. */
static void test_table(void **state)
{
	struct bench *b = *state;

	come(b, (uint32_t)b->self.pid, STACK_DUMP_ONCPU, 1);
	all_arrive(b);
	b->exe = 7;
	come(b, (uint32_t)b->self.pid, STACK_DUMP_ONCPU, 3);
	assert_int_equal(deferred_unwind_pending(b->du), 3);
	deferred_unwind_ready(b->du, 8, 0);
	deferred_unwind_ready(b->du, 0, 0);
	deferred_unwind_ready(b->du, 7, 1);
	b->n_walks = 0;
	assert_false(deferred_unwind_retry(b->du, UINT64_MAX));
	assert_int_equal(b->n_walks, 0);
	b->exe = 0;
	deferred_unwind_ready(b->du, 7, 0);
	assert_int_equal(b->n_walks, 0);
	for (size_t i = 1; i < 3; i++) {
		assert_true(deferred_unwind_retry(b->du, 0));
		assert_int_equal(b->n_walks, i);
	}
	assert_false(deferred_unwind_retry(b->du, 0));
	assert_int_equal(b->n_walks, 3);
	assert_int_equal(deferred_unwind_pending(b->du), 0);
	assert_int_equal(count(b, "unwound"), 4);
}

/* The same without a retry in between: the next tick walks them. */
static void test_table_tick(void **state)
{
	struct bench *b = *state;

	come(b, (uint32_t)b->self.pid, STACK_DUMP_ONCPU, 1);
	all_arrive(b);
	b->exe = 7;
	come(b, (uint32_t)b->self.pid, STACK_DUMP_ONCPU, 3);
	b->n_walks = 0;
	deferred_unwind_ready(b->du, 7, 0);
	assert_int_equal(deferred_unwind_tick(b->du, UINT64_MAX, UINT64_MAX), 0);
	assert_int_equal(b->n_walks, 3);
	assert_int_equal(deferred_unwind_tick(b->du, UINT64_MAX, UINT64_MAX), 0);
	assert_int_equal(b->n_walks, 3);
	assert_int_equal(deferred_unwind_pending(b->du), 3);
}

/* Nothing more will be known of the process: the names are of no use. */
static void test_names_of_nobody(void **state)
{
	struct bench *b = *state;

	come(b, NOBODY, STACK_DUMP_NAMES, 1);
	all_arrive(b);
	assert_int_equal(deferred_unwind_tick(b->du, UINT64_MAX, UINT64_MAX), 0);
	assert_int_equal(deferred_unwind_pending(b->du), 0);
	expect_order(b, "");
	assert_int_equal(count(b, "expired"), 0);
}

/* The wait has the limits of the other dumps. */
static void test_names_expire(void **state)
{
	struct bench *b = *state;

	come(b, (uint32_t)b->self.pid, STACK_DUMP_NAMES, 1);
	b->now_ns += DEFERRED_UNWIND_WAIT_NS;
	assert_int_equal(deferred_unwind_tick(b->du, UINT64_MAX, UINT64_MAX), 0);
	assert_int_equal(deferred_unwind_pending(b->du), 1);
	b->now_ns++;
	assert_int_equal(deferred_unwind_tick(b->du, UINT64_MAX, UINT64_MAX), 0);
	assert_int_equal(deferred_unwind_pending(b->du), 0);
	assert_int_equal(count(b, "expired"), 1);
}

static void test_names_flushed(void **state)
{
	struct bench *b = *state;

	come(b, (uint32_t)b->self.pid, STACK_DUMP_NAMES, 3);
	deferred_unwind_flush(b->du);
	assert_int_equal(deferred_unwind_pending(b->du), 0);
	assert_int_equal(count(b, "flushed"), 3);
}

static void test_names_full(void **state)
{
	struct bench *b = *state;
	size_t most;

	come(b, (uint32_t)b->self.pid, STACK_DUMP_NAMES, 1);
	most = DEFERRED_UNWIND_BYTES_MAX /
	       (sizeof(struct deferred_stack) + sizeof(struct stack_dump_copy) + b->size);
	come(b, (uint32_t)b->self.pid, STACK_DUMP_NAMES, most - 1);
	assert_int_equal(deferred_unwind_pending(b->du), most);
	assert_int_equal(count(b, "full"), 0);
	come(b, (uint32_t)b->self.pid, STACK_DUMP_NAMES, 1);
	assert_true(count(b, "full") > 0 && count(b, "full") < most);
	assert_int_equal(deferred_unwind_pending(b->du) + count(b, "full"), most + 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_found_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slices, setup, teardown),
		cmocka_unit_test_setup_teardown(test_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory_missing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_table, setup, teardown),
		cmocka_unit_test_setup_teardown(test_table_tick, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names_behind_stack, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names_known, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names_of_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names_expire, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names_flushed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names_full, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
