// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "support/allocfail.h"
#include "support/profiles.h"

#include "export/destination.h"
#include "export/outbox.h"

#define HOUR_NS	 3600000000000ull
#define NOW_NS	 (500000 * HOUR_NS)
#define MAX_N	 100
#define ANY_SIZE UINT64_MAX

static const struct destination_kind plain = {.name = "plain", .limits.age_ns = HOUR_NS};
static const struct destination_kind deltas = {
	.name = "d", .limits.age_ns = HOUR_NS, .deltas = true};

/* Submit a profile of @n bytes to the outboxes. */
static void submit_as(struct outbox_budget *budget, const char *service, char mark,
		      uint64_t start_ns, size_t n)
{
	struct profile *profile = profile_make(PROFILE_CPU, service, start_ns, mark, n);
	struct queued_profile *p;

	assert_int_equal(queued_profile_new(budget, profile, &p), 0);
	for (struct outbox *box = budget->boxes; box; box = box->next)
		outbox_push(box, p, NOW_NS);
	queued_profile_unref(p);
}

static void submit(struct outbox_budget *budget, char mark, uint64_t start_ns, size_t n)
{
	submit_as(budget, "svc", mark, start_ns, n);
}

/* The marks of what is in a list, in order. */
static const char *marks(const struct outbox_list *list, char ret[MAX_N])
{
	size_t n = 0;

	for (const struct outbox_item *item = list->first; item; item = item->next)
		ret[n++] = item->queued->profile->pprof[0];
	assert_int_equal(n, list->n);
	ret[n] = '\0';
	return ret;
}

static uint64_t overhead(void)
{
	struct outbox_budget budget = {.max_bytes = UINT64_MAX};
	struct outbox box;
	uint64_t bytes;

	outbox_init(&box, &budget, &plain);
	submit(&budget, 'x', NOW_NS, 1000);
	bytes = budget.used_bytes - 1000;
	outbox_deinit(&box);
	return bytes;
}

struct take_row {
	const char *name;
	size_t max_n;
	uint64_t max_payload;
	const char *taken;
};

/* Out of a, b, c, d with 100 bytes each. */
static const struct take_row take_rows[] = {
	{"all", 10, 1000, "abcd"},     {"exactly all", 4, 400, "abcd"},
	{"by number", 3, 1000, "abc"}, {"by size, exactly", 10, 200, "ab"},
	{"by size", 10, 299, "ab"},    {"always one", 10, 99, "a"},
};

static void test_take(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(take_rows); i++) {
		const struct take_row *row = &take_rows[i];
		struct outbox_budget budget = {.max_bytes = UINT64_MAX};
		struct outbox_list list;
		struct outbox box;
		char text[MAX_N];

		row_begin(row->name);
		outbox_init(&box, &budget, &plain);
		for (int mark = 'a'; mark <= 'd'; mark++)
			submit(&budget, (char)mark, NOW_NS, 100);
		assert_int_equal(outbox_bytes(&box), budget.used_bytes);
		outbox_take(&box, row->max_n, row->max_payload, NOW_NS, &list);
		assert_string_equal(marks(&list, text), row->taken);
		assert_int_equal(outbox_bytes(&box), budget.used_bytes);

		/* After outbox_put_back() the profiles are in the same places. */
		outbox_count_retried(&box, &list);
		outbox_put_back(&box, &list);
		assert_string_equal(marks(&box.waiting, text), "abcd");
		assert_int_equal(box.profiles[EXPORT_RETRIED], strlen(row->taken));
		outbox_take(&box, row->max_n, row->max_payload, NOW_NS, &list);
		outbox_end(&box, &list, EXPORT_SENT);
		assert_int_equal(box.profiles[EXPORT_SENT], strlen(row->taken));
		assert_int_equal(box.payload[EXPORT_SENT], 100 * strlen(row->taken));

		outbox_deinit(&box);
		assert_int_equal(box.profiles[EXPORT_DROPPED_STOPPED], 4 - strlen(row->taken));
		assert_int_equal(budget.used_bytes, 0);
		assert_null(budget.boxes);
	}
}

static void test_put_back_before_others(void **state)
{
	struct outbox_budget budget = {.max_bytes = UINT64_MAX};
	struct outbox_list list, nothing = {0};
	struct outbox box;
	char text[MAX_N];

	(void)state;
	outbox_init(&box, &budget, &plain);
	submit(&budget, 'a', NOW_NS, 1);
	submit(&budget, 'b', NOW_NS, 1);
	outbox_take(&box, MAX_N, ANY_SIZE, NOW_NS, &list);
	assert_null(box.waiting.first);
	submit(&budget, 'c', NOW_NS, 1);
	outbox_put_back(&box, &list);
	submit(&budget, 'd', NOW_NS, 1);
	assert_string_equal(marks(&box.waiting, text), "abcd");
	outbox_put_back(&box, &nothing);
	assert_string_equal(marks(&box.waiting, text), "abcd");
	outbox_deinit(&box);
}

static void test_put_last(void **state)
{
	struct outbox_budget budget = {.max_bytes = UINT64_MAX};
	struct outbox_list taken;
	struct outbox box;
	char text[MAX_N];

	(void)state;
	outbox_init(&box, &budget, &plain);
	for (const char *mark = "abcd"; *mark; mark++)
		submit(&budget, *mark, NOW_NS, 10);
	outbox_take(&box, 2, ANY_SIZE, NOW_NS, &taken);
	outbox_put_last(&box, &taken);
	assert_string_equal(marks(&box.waiting, text), "cdab");
	assert_int_equal(box.on_the_way, 0);
	outbox_deinit(&box);
	assert_int_equal(budget.used_bytes, 0);
}

/* A profile of 30 bytes that says it has @raw bytes before compression. */
static void submit_gzip(struct outbox_budget *budget, size_t n, uint32_t raw)
{
	struct profile *profile = profile_make(PROFILE_CPU, "svc", NOW_NS, 'x', n);
	struct queued_profile *p;

	profile->pprof[0] = '\x1f';
	profile->pprof[1] = '\x8b';
	for (size_t i = 0; i < sizeof(raw); i++)
		profile->pprof[n - sizeof(raw) + i] = (char)(raw >> 8 * i);
	assert_int_equal(queued_profile_new(budget, profile, &p), 0);
	outbox_push(budget->boxes, p, NOW_NS);
	queued_profile_unref(p);
}

struct raw_row {
	const char *name;
	size_t len;
	uint32_t raw[5]; /* of the profiles; 0 ends */
	size_t first;
};

/* With 1000 bytes on the way at most. */
static const struct raw_row raw_rows[] = {
	{"exactly", 30, {400, 600, 1}, 2},
	{"one more", 30, {400, 601, 1}, 1},
	{"room for one more", 30, {400, 599, 1, 1}, 3},
	{"one that is larger goes alone", 30, {4000000000, 1}, 1},
	{"the shortest gzip", 18, {400, 600, 1}, 2},
	{"too short for gzip", 17, {400, 601, 1}, 3},
};

/* Bytes before compression: of all profiles on the way. */
static void test_raw(void **state)
{
	static const struct destination_kind kind = {
		.name = "r", .limits.age_ns = HOUR_NS, .limits.raw = 1000};

	(void)state;
	for (size_t i = 0; i < array_size(raw_rows); i++) {
		const struct raw_row *row = &raw_rows[i];
		struct outbox_budget budget = {.max_bytes = UINT64_MAX};
		struct outbox_list first, second;
		struct outbox box;

		row_begin(row->name);
		outbox_init(&box, &budget, &kind);
		for (size_t n = 0; row->raw[n]; n++)
			submit_gzip(&budget, row->len, row->raw[n]);
		outbox_take(&box, MAX_N, ANY_SIZE, NOW_NS, &first);
		assert_int_equal(first.n, row->first);
		outbox_take(&box, MAX_N, ANY_SIZE, NOW_NS, &second);
		assert_int_equal(second.n, 0);
		outbox_put_back(&box, &first);
		assert_int_equal(box.raw_on_the_way, 0);
		outbox_take(&box, MAX_N, ANY_SIZE, NOW_NS, &first);
		assert_int_equal(first.n, row->first);
		outbox_end(&box, &first, EXPORT_SENT);
		assert_int_equal(box.raw_on_the_way, 0);
		outbox_deinit(&box);
	}
}

/* Series a and b, two windows. */
static void test_flying(void **state)
{
	struct outbox_budget budget = {.max_bytes = UINT64_MAX};
	struct outbox_list first, second, none;
	struct outbox box;
	char text[MAX_N];

	(void)state;
	outbox_init(&box, &budget, &plain);
	submit_as(&budget, "a", '1', NOW_NS, 10);
	submit_as(&budget, "b", '2', NOW_NS, 10);
	submit_as(&budget, "c", '3', NOW_NS, 10);
	submit_as(&budget, "a", '4', NOW_NS, 10);
	submit_as(&budget, "d", '5', NOW_NS, 10);
	outbox_take(&box, 2, ANY_SIZE, NOW_NS, &first);
	assert_string_equal(marks(&first, text), "12");
	row_begin("up to a series on the way");
	outbox_take(&box, MAX_N, ANY_SIZE, NOW_NS, &second);
	assert_string_equal(marks(&second, text), "3");
	outbox_take(&box, MAX_N, ANY_SIZE, NOW_NS, &none);
	assert_int_equal(none.n, 0);
	row_begin("back in front, in any order");
	outbox_put_back(&box, &first);
	outbox_put_back(&box, &second);
	assert_string_equal(marks(&box.waiting, text), "31245");
	row_begin("one request may have a series twice");
	outbox_take(&box, 4, ANY_SIZE, NOW_NS, &first);
	assert_string_equal(marks(&first, text), "3124");
	row_begin("not larger than the rest of the room, if others are on the way");
	outbox_take(&box, MAX_N, 9, NOW_NS, &none);
	assert_int_equal(none.n, 0);
	outbox_take(&box, MAX_N, 10, NOW_NS, &second);
	assert_string_equal(marks(&second, text), "5");
	row_begin("split and joined");
	outbox_list_split(&first, 3, &none);
	assert_string_equal(marks(&none, text), "312");
	assert_string_equal(marks(&first, text), "4");
	outbox_end(&box, &none, EXPORT_SENT);
	outbox_list_prepend(&second, &first);
	outbox_list_prepend(&second, &first);
	assert_string_equal(marks(&second, text), "45");
	outbox_end(&box, &second, EXPORT_SENT);
	assert_int_equal(outbox_bytes(&box), 0);
	outbox_deinit(&box);
	assert_int_equal(budget.used_bytes, 0);
}

static void submit_series(struct outbox_budget *budget, const char *marks)
{
	for (char series[2] = ""; *marks; marks++) {
		series[0] = *marks;
		submit_as(budget, series, *marks, NOW_NS, 10);
	}
}

/* The waiting profiles @from up to @to, as if a request with @n profiles was refused. */
static void quarantine(struct outbox *box, size_t from, size_t to, size_t n)
{
	struct outbox_item *items = calloc(n, sizeof(*items)), *at = box->waiting.first;
	struct outbox_list list = {.first = items, .n = n};
	size_t n_items = 0;

	assert_non_null(items);
	for (size_t i = 0; i < to; i++, at = at->next)
		if (i >= from)
			items[n_items++].series = at->series;
	for (size_t i = 0; i + 1 < n_items; i++)
		items[i].next = &items[i + 1];
	outbox_quarantine(box, &list);
	free(items);
}

/* @refused: profiles of the refused request: all series from the second to the fifth of eight */
struct quarantine_row {
	const char *name;
	size_t refused;
	const char *taken[8];
};

/* Profiles of series in quarantine go alone or in groups, and without others. */
static void test_quarantine(void **state)
{
	static const struct quarantine_row rows[] = {
		{"alone", OUTBOX_QUARANTINE_REQUESTS, {"1", "2", "3", "4", "5", "678"}},
		{"in twos", OUTBOX_QUARANTINE_REQUESTS + 1, {"1", "23", "45", "678"}},
		{"still in twos", 2 * OUTBOX_QUARANTINE_REQUESTS, {"1", "23", "45", "678"}},
		{"in threes", 2 * OUTBOX_QUARANTINE_REQUESTS + 1, {"1", "234", "5", "678"}},
		{"all of a large request", 8 * OUTBOX_QUARANTINE_REQUESTS, {"1", "2345", "678"}},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct outbox_budget budget = {.max_bytes = UINT64_MAX};
		struct outbox_list list;
		struct outbox box;
		char text[MAX_N];

		row_begin(rows[i].name);
		outbox_init(&box, &budget, &plain);
		submit_series(&budget, "12345678");
		quarantine(&box, 1, 5, rows[i].refused);
		assert_int_equal(box.n_quarantined, 4);
		for (size_t t = 0; rows[i].taken[t]; t++) {
			outbox_take(&box, MAX_N, ANY_SIZE, NOW_NS, &list);
			assert_string_equal(marks(&list, text), rows[i].taken[t]);
			outbox_end(&box, &list, EXPORT_SENT);
		}
		outbox_deinit(&box);
	}
}

/* Three windows. Accepted groups go with all others again, a refused group goes alone. */
static void test_quarantine_ends(void **state)
{
	static const struct {
		const char *window, *taken;
		bool refused;
	} steps[] = {
		{"12345", "12", false}, {"", "34", true}, {"", "5", false}, {"12345", "12", false},
		{"", "3", false},	{"", "4", true},  {"", "5", false}, {"1235", "1235", false},
		{"1243", "12", false},	{"", "4", false}, {"", "3", false}, {"1234", "1234", false},
	};
	struct outbox_budget budget = {.max_bytes = UINT64_MAX};
	struct outbox_list list;
	struct outbox box;
	char text[MAX_N];

	(void)state;
	outbox_init(&box, &budget, &plain);
	for (size_t i = 0; i < array_size(steps); i++) {
		submit_series(&budget, steps[i].window);
		if (i == 0)
			quarantine(&box, 0, 4, 2 * OUTBOX_QUARANTINE_REQUESTS);
		outbox_take(&box, MAX_N, ANY_SIZE, NOW_NS, &list);
		assert_string_equal(marks(&list, text), steps[i].taken);
		if (steps[i].refused)
			outbox_quarantine(&box, &list);
		else
			outbox_release(&box, &list);
		outbox_end(&box, &list, EXPORT_SENT);
	}
	outbox_deinit(&box);
}

/* The oldest entry goes. */
static void test_quarantine_full(void **state)
{
	struct outbox_budget budget = {.max_bytes = UINT64_MAX};
	struct outbox_item other = {0};
	struct outbox_list list = {.first = &other, .n = 1};
	struct outbox box;
	char text[MAX_N];

	(void)state;
	outbox_init(&box, &budget, &plain);
	submit_as(&budget, "bad", 'a', NOW_NS, 10);
	submit_as(&budget, "bad", 'b', NOW_NS, 10);
	quarantine(&box, 0, 1, 1);
	for (uint64_t i = 1; i < OUTBOX_QUARANTINE_MAX; i++) {
		other.series = i;
		outbox_quarantine(&box, &list);
	}
	outbox_take(&box, MAX_N, ANY_SIZE, NOW_NS, &list);
	assert_string_equal(marks(&list, text), "a");
	outbox_put_back(&box, &list);
	list = (struct outbox_list){.first = &other, .n = 1};
	other.series = OUTBOX_QUARANTINE_MAX;
	outbox_quarantine(&box, &list);
	outbox_take(&box, MAX_N, ANY_SIZE, NOW_NS, &list);
	assert_string_equal(marks(&list, text), "ab");
	outbox_end(&box, &list, EXPORT_SENT);
	outbox_deinit(&box);
}

static void test_age(void **state)
{
	struct outbox_budget budget = {.max_bytes = UINT64_MAX};
	struct outbox_list list;
	struct outbox box;
	char text[MAX_N];

	(void)state;
	outbox_init(&box, &budget, &plain);
	submit(&budget, 'a', NOW_NS - HOUR_NS - 1, 1);
	assert_int_equal(box.profiles[EXPORT_DROPPED_OLD], 1);
	submit(&budget, 'b', NOW_NS - HOUR_NS, 1);
	submit(&budget, 'c', NOW_NS, 1);
	submit(&budget, 'd', NOW_NS - HOUR_NS, 1); /* behind a younger one */
	submit(&budget, 'e', NOW_NS + HOUR_NS, 1); /* the clock was set back */
	assert_string_equal(marks(&box.waiting, text), "bcde");
	outbox_take(&box, MAX_N, ANY_SIZE, NOW_NS + 1, &list);
	assert_string_equal(marks(&list, text), "ce");
	assert_int_equal(box.profiles[EXPORT_DROPPED_OLD], 3);
	outbox_end(&box, &list, EXPORT_SENT);
	outbox_deinit(&box);
	assert_int_equal(budget.used_bytes, 0);
}

static void test_full(void **state)
{
	uint64_t one = overhead() + 100;
	struct outbox_budget budget = {.max_bytes = 3 * one};
	struct outbox_list list;
	struct outbox box;
	char text[MAX_N];

	(void)state;
	outbox_init(&box, &budget, &plain);
	for (int mark = 'a'; mark <= 'c'; mark++)
		submit(&budget, (char)mark, NOW_NS, 100);
	assert_string_equal(marks(&box.waiting, text), "abc");
	submit(&budget, 'd', NOW_NS, 100);
	assert_string_equal(marks(&box.waiting, text), "bcd");
	assert_int_equal(box.profiles[EXPORT_DROPPED_FULL], 1);

	row_begin("larger than all of it: the others stay");
	submit(&budget, 'e', NOW_NS, 100 + 2 * one + 1);
	assert_string_equal(marks(&box.waiting, text), "bcd");
	assert_int_equal(box.profiles[EXPORT_DROPPED_FULL], 2);

	row_begin("what is on the way counts, but is not dropped");
	outbox_take(&box, 2, ANY_SIZE, NOW_NS, &list);
	submit(&budget, 'f', NOW_NS, 100);
	assert_string_equal(marks(&box.waiting, text), "f");
	outbox_put_back(&box, &list);
	assert_string_equal(marks(&box.waiting, text), "bcf");
	assert_true(budget.used_bytes <= budget.max_bytes);
	outbox_deinit(&box);
}

/* A working destination loses nothing to a failing one, and a profile waiting for both is in memory
 * once. */
static void test_shared(void **state)
{
	uint64_t one = overhead() + 100;
	struct outbox_budget budget = {.max_bytes = 3 * one};
	struct outbox works, down;
	struct outbox_list list;
	char text[MAX_N];

	(void)state;
	outbox_init(&works, &budget, &plain);
	outbox_init(&down, &budget, &plain);
	for (int mark = 'a'; mark <= 'z'; mark++) {
		submit(&budget, (char)mark, NOW_NS, 100);
		assert_true(budget.used_bytes <= budget.max_bytes);
		outbox_take(&works, MAX_N, ANY_SIZE, NOW_NS, &list);
		outbox_end(&works, &list, EXPORT_SENT);
	}
	assert_int_equal(works.profiles[EXPORT_SENT], 26);
	assert_string_equal(marks(&down.waiting, text), "xyz");
	assert_int_equal(down.profiles[EXPORT_DROPPED_FULL], 23);
	assert_int_equal(budget.used_bytes, 3 * one);
	outbox_deinit(&down);
	outbox_deinit(&works);
	assert_int_equal(budget.used_bytes, 0);
}

static void test_payload(void **state)
{
	struct outbox_budget budget = {.max_bytes = UINT64_MAX};
	struct profile *profile = profile_make(PROFILE_GO_HEAP, NULL, NOW_NS, 'c', 10);
	struct outbox a, b;
	size_t len;

	(void)state;
	outbox_init(&a, &budget, &plain);
	outbox_init(&b, &budget, &deltas);
	assert_ptr_equal(outbox_payload(&b, profile, &len), profile->pprof);
	assert_int_equal(len, 10);
	profile->pprof_delta = strdup("delta");
	profile->pprof_delta_len = 5;
	assert_ptr_equal(outbox_payload(&a, profile, &len), profile->pprof);
	assert_ptr_equal(outbox_payload(&b, profile, &len), profile->pprof_delta);
	assert_int_equal(len, 5);
	profile_free(profile);
	outbox_deinit(&a);
	outbox_deinit(&b);
}

static void test_ids(void **state)
{
	struct outbox_budget budget = {.max_bytes = UINT64_MAX};
	struct queued_profile *p[2];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct profile *profile = profile_make(PROFILE_CPU, NULL, NOW_NS, 'a', 1);

		assert_int_equal(queued_profile_new(&budget, profile, &p[i]), 0);
		assert_int_equal(strlen(p[i]->id), QUEUED_PROFILE_ID_LEN);
		assert_int_equal(strspn(p[i]->id, "0123456789abcdef-"), QUEUED_PROFILE_ID_LEN);
		assert_int_equal(p[i]->id[14], '4');
		assert_non_null(strchr("89ab", p[i]->id[19]));
	}
	assert_string_not_equal(p[0]->id, p[1]->id);
	queued_profile_unref(p[0]);
	queued_profile_unref(p[1]);
	queued_profile_unref(NULL);
}

/* Each part is an item and a series of its own. */
static void test_parts(void **state)
{
	static const struct destination_kind parts = {
		.name = "parts", .limits.age_ns = HOUR_NS, .parts = {[PROFILE_GO_HEAP] = 3}};
	struct outbox_budget budget = {.max_bytes = UINT64_MAX};
	struct destination_profile profiles[4];
	struct outbox_list first, second;
	struct queued_profile *p;
	struct outbox box;

	(void)state;
	outbox_init(&box, &budget, &parts);
	for (size_t i = 0; i < 2; i++) {
		struct profile *heap = profile_make(PROFILE_GO_HEAP, "svc", NOW_NS, 'h', 1);

		assert_int_equal(queued_profile_new(&budget, heap, &p), 0);
		outbox_push(&box, p, NOW_NS);
		queued_profile_unref(p);
	}
	submit(&budget, 'c', NOW_NS, 1);
	assert_int_equal(box.waiting.n, 7);
	outbox_take(&box, 1, ANY_SIZE, NOW_NS, &first);
	outbox_take(&box, 10, ANY_SIZE, NOW_NS, &second); /* to the next part 0 */
	assert_int_equal(second.n, 2);
	outbox_profiles(&box, &first, profiles);
	outbox_profiles(&box, &second, profiles + 1);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(profiles[i].part, i);
		assert_ptr_equal(profiles[i].profile, profiles[0].profile);
	}
	outbox_end(&box, &first, EXPORT_SENT);
	outbox_end(&box, &second, EXPORT_SENT);
	assert_int_equal(box.profiles[EXPORT_SENT], 3);
	outbox_deinit(&box);
	assert_int_equal(budget.used_bytes, 0);
}

static int push_one(void *ctx)
{
	struct outbox_budget budget = {.max_bytes = UINT64_MAX};
	struct outbox box;
	struct queued_profile *p;
	int r = queued_profile_new(&budget, ctx, &p);

	if (r < 0)
		return r;
	outbox_init(&box, &budget, &plain);
	outbox_push(&box, p, NOW_NS);
	r = box.profiles[EXPORT_DROPPED_MEMORY] ? -ENOMEM : 0;
	outbox_deinit(&box);
	assert_int_equal(p->refs, 1);
	free(p); /* the profile is the test's, for the next round */
	return r;
}

static void test_no_memory(void **state)
{
	struct profile *profile = profile_make(PROFILE_CPU, NULL, NOW_NS, 'a', 1);

	(void)state;
	assert_int_equal(allocfail_each(push_one, profile), 2);
	profile_free(profile);
}

static void test_names(void **state)
{
	(void)state;
	for (enum export_outcome o = 0; o < EXPORT_OUTCOME_MAX; o++)
		assert_non_null(export_outcome_name(o));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_take),
		cmocka_unit_test(test_put_back_before_others),
		cmocka_unit_test(test_age),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_payload),
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_put_last),
		cmocka_unit_test(test_raw),
		cmocka_unit_test(test_flying),
		cmocka_unit_test(test_quarantine),
		cmocka_unit_test(test_quarantine_ends),
		cmocka_unit_test(test_quarantine_full),
		cmocka_unit_test(test_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
