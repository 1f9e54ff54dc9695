// SPDX-License-Identifier: Apache-2.0
/* The difference of two reads of a live process is that of two whole profiles. */
#include "support/test.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/root.h"
#include "goprofile/heap.h"
#include "goprofile/oneshot.h"
#include "support/gofixture.h"
#include "support/goprocess.h"
#include "support/samelines.h"

#define PROFILE_BYTES_MAX (16u << 20)

static const struct {
	enum go_profile_kind kind;
	const char *types[SAMELINES_VALUES_MAX];
	size_t n_types;
} rows[] = {
	{GO_PROFILE_MUTEX, {"contentions", "delay"}, 2},
	{GO_PROFILE_BLOCK, {"contentions", "delay"}, 2},
	{GO_PROFILE_HEAP, {"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"}, 4},
};

static void begin(struct go_profile_oneshot *s, const struct goprocess *p,
		  enum go_profile_kind kind)
{
	*s = (struct go_profile_oneshot){.proc = &p->proc,
					 .kind = kind,
					 .max_bytes = 16u << 20,
					 .symbol_bytes = 16u << 20,
					 .is_twice = true};
	assert_int_equal(go_profile_oneshot_init(s), 0);
	assert_int_equal(go_profile_oneshot_process(s, &p->id), 0);
	assert_int_equal(s->n_snaps, 1);
}

static void end(struct go_profile_oneshot *s, size_t row, struct samelines *ret)
{
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(PROFILE_BYTES_MAX);
	const struct go_profile_report_opts opts = {.time_ns = 1};
	uint64_t n_left_out;

	assert_int_equal(go_profile_oneshot_encode(s, &opts, &bytes, &n_left_out), 0);
	assert_int_equal(n_left_out, 0);
	samelines_of(&bytes, rows[row].types, rows[row].n_types, ret);
	go_profile_oneshot_deinit(s);
}

static int64_t value(const struct samelines *of, const struct sameline *line, size_t type)
{
	const struct sameline *found = samelines_find(of, line);

	return found ? found->values[type] : 0;
}

/* @l: each of its lines has the difference; returns how many lines have one. */
static size_t check(const struct samelines *l, const struct samelines *before,
		    const struct samelines *after, const struct samelines *difference)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		bool differs = false;

		for (size_t type = 0; type < l->n_values; type++) {
			int64_t want = value(after, &l->items[i], type) -
				       value(before, &l->items[i], type);

			assert_int_equal(value(difference, &l->items[i], type), want);
			differs = differs || want;
		}
		assert_int_equal(!samelines_find(difference, &l->items[i]), !differs);
		n += differs;
	}
	return n;
}

static void difference(void **state)
{
	const char *gos[GOFIXTURE_GOS_MAX];
	_cleanup_(freep) char *path = gofixture_build("test/fixtures/go/contention",
						      gos[gofixture_gos(gos) - 1], "stripped");
	char own[64], name[80];
	const char *const args[] = {own, NULL};

	(void)state;
	snprintf(own, sizeof(own), "/tmp/test_oneshot.%d", (int)getpid());
	for (size_t row = 0; row < array_size(rows); row++) {
		_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
		_cleanup_(samelines_deinit) struct samelines before = {0}, after = {0}, both = {0};
		struct go_profile_oneshot s, two;
		size_t n;

		row_begin(go_profile_kind_name(rows[row].kind));
		goprocess_start(&p, path, args, NULL);
		begin(&s, &p, rows[row].kind);
		end(&s, row, &before);
		begin(&two, &p, rows[row].kind);
		goprocess_order(&p, "again");
		go_profile_oneshot_again(&two);
		assert_int_equal(two.n_snaps, 0);
		assert_int_equal(go_profile_oneshot_process(&two, &p.id), 0);
		assert_int_equal(two.n_snaps, 1);
		end(&two, row, &both);
		begin(&s, &p, rows[row].kind);
		end(&s, row, &after);
		n = check(&after, &before, &after, &both);
		(void)check(&before, &before, &after, &both);
		/* contention is exact; the heap is sampled, and may have no sample more */
		assert_true(n > 0 || rows[row].kind == GO_PROFILE_HEAP);
	}
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "%s.%s", own, i ? "mutex" : "block");
		unlink(name);
	}
}

/* A process that ends between the reads is in neither. */
static void gone(void **state)
{
	const char *gos[GOFIXTURE_GOS_MAX];
	_cleanup_(freep) char *path = gofixture_build("test/fixtures/go/contention",
						      gos[gofixture_gos(gos) - 1], "stripped");
	const char *const args[] = {"/tmp/test_oneshot_gone", NULL};
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1}, q = {.to = -1};
	_cleanup_(samelines_deinit) struct samelines both = {0};
	struct go_profile_oneshot s;
	struct pid_id id;

	(void)state;
	goprocess_start(&p, path, args, NULL);
	goprocess_start(&q, path, args, NULL);
	begin(&s, &q, GO_PROFILE_MUTEX);
	assert_int_equal(go_profile_oneshot_process(&s, &p.id), 0);
	assert_int_equal(s.n_snaps, 2);
	id = p.id;
	goprocess_stop(&p);
	p.to = -1;
	go_profile_oneshot_again(&s);
	assert_int_equal(go_profile_oneshot_process(&s, &q.id), 0);
	assert_int_equal(go_profile_oneshot_process(&s, &id), 0);
	assert_int_equal(s.n_snaps, 1);
	end(&s, 0, &both);
	assert_int_equal(both.n, 0);
	unlink("/tmp/test_oneshot_gone.mutex");
	unlink("/tmp/test_oneshot_gone.block");
}

/* The records of another program have no difference from those of the one before. */
static void other_program(void **state)
{
	static const char *const args[] = {"4", NULL};
	const char *gos[GOFIXTURE_GOS_MAX];
	_cleanup_(freep) char *path = gofixture_build("test/fixtures/go/buckets",
						      gos[gofixture_gos(gos) - 1], "stripped");
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1}, q = {.to = -1};
	_cleanup_(samelines_deinit) struct samelines both = {0};
	struct go_profile_oneshot s;

	(void)state;
	goprocess_start(&p, path, args, NULL);
	goprocess_start(&q, path, args, NULL);
	goprocess_order(&p, "more");
	begin(&s, &p, GO_PROFILE_HEAP);
	assert_int_equal(go_profile_oneshot_process(&s, &q.id), 0);
	goprocess_order(&p, "exec");
	go_profile_oneshot_again(&s);
	assert_int_equal(go_profile_oneshot_process(&s, &p.id), 0);
	assert_int_equal(s.n_snaps, 0);
	assert_int_equal(s.state, GORUNTIME_GONE);
	assert_int_equal(go_profile_oneshot_process(&s, &q.id), 0);
	assert_int_equal(s.n_snaps, 1);
	end(&s, 2, &both);
	assert_int_equal(both.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(difference),
		cmocka_unit_test(gone),
		cmocka_unit_test(other_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
