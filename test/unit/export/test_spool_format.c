// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "support/allocfail.h"
#include "support/profiles.h"

#include "base/buf.h"
#include "base/cursor.h"
#include "base/nsec.h"
#include "export/profile.h"
#include "export/spool_format.h"

#define START_NS 1700000000123456789ull
#define ID	 "01234567-89ab-4def-8123-456789abcdef"

DEFINE_CLEANUP(struct profile *, profile_freep, profile_free);

static const uint64_t destinations[SPOOL_DESTINATIONS_MAX] = {7, 11, 13, 17, 19, 23, 29, 31};

static struct profile *make(enum profile_kind kind, size_t n, size_t n_delta)
{
	struct profile *profile = profile_make(kind, "shop \xc3\xa4", START_NS, 'p', n);

	profile->duration_ns = 59993000000;
	profile->thread_names = kind == PROFILE_OFF_CPU;
	if (n_delta) {
		profile->pprof_delta = calloc(1, n_delta);
		profile->pprof_delta[0] = 'd';
		profile->pprof_delta_len = n_delta;
	}
	return profile;
}

static void append_profile(struct buf *to, enum profile_kind kind, size_t n, size_t n_delta,
			   size_t n_destinations)
{
	_cleanup_(profile_freep) struct profile *profile = make(kind, n, n_delta);
	size_t before = to->len;

	assert_int_equal(spool_profile_append(to, profile, ID, destinations, n_destinations), 0);
	assert_int_equal(to->len - before, spool_profile_size(profile, n_destinations));
}

struct form_row {
	const char *name;
	enum profile_kind kind;
	size_t n, n_delta, n_destinations;
	bool deltas;
	char mark;
	size_t payload;
};

static const struct form_row form_rows[] = {
	{"a CPU profile", PROFILE_CPU, 100, 0, 1, false, 'p', 100},
	{"for differences, without any", PROFILE_OFF_CPU, 1, 0, 1, true, 'p', 1},
	{"cumulative", PROFILE_GO_HEAP, 300, 200, 2, false, 'p', 300},
	{"differences", PROFILE_GO_HEAP, 300, 200, 2, true, 'd', 200},
	{"every destination", PROFILE_GO_BLOCK, 3, 2, 8, true, 'd', 2},
};

static void test_round_trip(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(form_rows); i++) {
		const struct form_row *row = &form_rows[i];
		_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(1u << 20);
		_cleanup_(profile_freep) struct profile *profile = NULL;
		_cleanup_(profile_freep) struct profile *want =
			make(row->kind, row->n, row->n_delta);
		char id[QUEUED_PROFILE_ID_LEN + 1];
		struct spool_record record;
		struct cursor c;

		row_begin(row->name);
		append_profile(&bytes, row->kind, row->n, row->n_delta, row->n_destinations);
		cursor_init(&c, bytes.data, bytes.len);
		assert_int_equal(spool_record_next(&c, &record), 0);
		assert_int_equal(record.type, SPOOL_PROFILE);
		assert_int_equal(record.start_ns, START_NS);
		assert_int_equal(record.len, bytes.len);
		assert_int_equal(record.n_destinations, row->n_destinations);
		assert_memory_equal(record.destinations, destinations,
				    row->n_destinations * sizeof(destinations[0]));
		assert_int_equal(spool_profile_read(&record, row->deltas, &profile, id), 0);
		assert_string_equal(id, ID);
		assert_int_equal(profile->kind, row->kind);
		assert_int_equal(profile->start_ns, START_NS);
		assert_int_equal(profile->duration_ns, 59993000000);
		assert_int_equal(profile->thread_names, want->thread_names);
		assert_true(labels_equal(&profile->labels, &want->labels));
		if (row->mark == 'd') {
			assert_null(profile->pprof);
			assert_int_equal(profile->pprof_delta_len, row->payload);
			assert_memory_equal(profile->pprof_delta, want->pprof_delta, row->payload);
		} else {
			assert_null(profile->pprof_delta);
			assert_int_equal(profile->pprof_len, row->payload);
			assert_memory_equal(profile->pprof, want->pprof, row->payload);
		}
		assert_int_equal(spool_record_next(&c, &record), SPOOL_FORMAT_END);
	}
}

/* Ends of the records of a segment. */
#define N_RECORDS 5
struct segment {
	struct buf bytes;
	size_t ends[N_RECORDS];
};

static void segment_make(struct segment *s)
{
	static const struct spool_ack acks[] = {{7, 1, 0, 2}, {11, 1, 1, 1}};

	*s = (struct segment){.bytes = BUF_INIT(1u << 20)};
	assert_int_equal(buf_append(&s->bytes, SPOOL_MAGIC, SPOOL_MAGIC_LEN), 0);
	append_profile(&s->bytes, PROFILE_CPU, 60, 0, 2);
	s->ends[0] = s->bytes.len;
	append_profile(&s->bytes, PROFILE_GO_HEAP, 40, 30, 1);
	s->ends[1] = s->bytes.len;
	assert_int_equal(spool_acks_append(&s->bytes, acks, array_size(acks)), 0);
	s->ends[2] = s->bytes.len;
	append_profile(&s->bytes, PROFILE_GO_MUTEX, 50, 0, 1);
	s->ends[3] = s->bytes.len;
	assert_int_equal(spool_acks_append(&s->bytes, acks, 1), 0);
	s->ends[4] = s->bytes.len;
}

static size_t read_records(const void *bytes, size_t n, int *ret)
{
	struct spool_record record;
	size_t n_records = 0;
	struct cursor c;

	cursor_init(&c, bytes, n);
	*ret = spool_magic_read(&c);
	while (!*ret && !(*ret = spool_record_next(&c, &record)))
		n_records++;
	return n_records;
}

/* Each prefix of a segment is read as a prefix of its records. */
static void test_every_prefix(void **state)
{
	struct segment s;

	(void)state;
	segment_make(&s);
	for (size_t len = 0; len <= s.bytes.len; len++) {
		/* a copy of this size: ASan sees a read beyond the end */
		_cleanup_(freep) char *prefix = malloc(len ? len : 1);
		size_t n = 0;
		int r;

		memcpy(prefix, s.bytes.data, len);
		while (n < N_RECORDS && s.ends[n] <= len)
			n++;
		assert_int_equal(read_records(prefix, len, &r), n);
		assert_int_equal(r, len == SPOOL_MAGIC_LEN || (n && s.ends[n - 1] == len)
					    ? SPOOL_FORMAT_END
					    : SPOOL_FORMAT_INVALID);
	}
	buf_deinit(&s.bytes);
}

/* A wrong byte costs the record and all following records, and changes no record before. */
static void test_every_byte(void **state)
{
	struct segment s;

	(void)state;
	segment_make(&s);
	for (size_t at = 0; at < s.bytes.len; at++) {
		size_t n = 0;
		int r;

		s.bytes.data[at] ^= 0x10;
		while (n < N_RECORDS && s.ends[n] <= at)
			n++;
		assert_int_equal(read_records(s.bytes.data, s.bytes.len, &r), n);
		assert_int_equal(r, SPOOL_FORMAT_INVALID);
		s.bytes.data[at] ^= 0x10;
	}
	buf_deinit(&s.bytes);
}

static void test_acks(void **state)
{
	static const struct spool_ack acks[] = {{7, 1, 0, 2}, {UINT64_MAX, 1ull << 40, 5, 1}};
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(1u << 20);
	struct spool_record record;
	struct spool_ack ack;
	struct cursor c;

	(void)state;
	assert_int_equal(spool_acks_append(&bytes, acks, array_size(acks)), 0);
	cursor_init(&c, bytes.data, bytes.len);
	assert_int_equal(spool_record_next(&c, &record), 0);
	assert_int_equal(record.type, SPOOL_ACKS);
	cursor_init(&c, record.body, record.body_len);
	for (size_t i = 0; i < array_size(acks); i++) {
		assert_int_equal(spool_ack_next(&c, &ack), 0);
		assert_memory_equal(&ack, &acks[i], sizeof(ack));
	}
	assert_int_equal(spool_ack_next(&c, &ack), SPOOL_FORMAT_END);
}

/* Bodies with a right checksum and a wrong content: as another version writes them. */
static void test_other_bodies(void **state)
{
	struct row {
		const char *name;
		size_t at; /* of a byte in the body */
		char value;
	};
	/* id[36], duration[8], "cpu\0", u16 2, "node\0n1\0service_name\0..." */
	static const struct row rows[] = {
		{"a NUL in the id", 3, 0},
		{"an unknown kind", 44, 'x'},
		{"a kind without an end", 47, 'x'},
		{"more labels than there are", 48, 9},
		{"more labels than the ceiling", 49, 1},
		{"a name that is none", 50, '-'},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(1u << 20);
		struct profile *profile = NULL;
		char id[QUEUED_PROFILE_ID_LEN + 1];
		struct spool_record record;
		struct cursor c;

		row_begin(rows[i].name);
		append_profile(&bytes, PROFILE_CPU, 60, 0, 1);
		cursor_init(&c, bytes.data, bytes.len);
		assert_int_equal(spool_record_next(&c, &record), 0);
		bytes.data[(const char *)record.body - bytes.data + (ptrdiff_t)rows[i].at] =
			rows[i].value;
		assert_int_equal(spool_profile_read(&record, false, &profile, id),
				 SPOOL_FORMAT_INVALID);
	}
}

static int read_one(void *ctx)
{
	_cleanup_(profile_freep) struct profile *profile = NULL;
	char id[QUEUED_PROFILE_ID_LEN + 1];

	return spool_profile_read(ctx, true, &profile, id);
}

static int append_one(void *ctx)
{
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(1u << 20);

	return spool_profile_append(&bytes, ctx, ID, destinations, 3);
}

static void test_no_memory(void **state)
{
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(1u << 20);
	_cleanup_(profile_freep) struct profile *profile = make(PROFILE_GO_HEAP, 100, 90);
	struct spool_record record;
	struct cursor c;

	(void)state;
	append_profile(&bytes, PROFILE_GO_HEAP, 100, 90, 2);
	cursor_init(&c, bytes.data, bytes.len);
	assert_int_equal(spool_record_next(&c, &record), 0);
	allocfail_each(read_one, &record);
	allocfail_each(append_one, profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),   cmocka_unit_test(test_every_prefix),
		cmocka_unit_test(test_every_byte),   cmocka_unit_test(test_acks),
		cmocka_unit_test(test_other_bodies), cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
