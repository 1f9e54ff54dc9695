// SPDX-License-Identifier: Apache-2.0
/* The bytes are a segment of the spool. The first byte says how: 0 as found on disk; else the rest
 * is the body of a profile, which no search would reach behind the checksums: 2 bytes length of the
 * pprof, 2 bytes length of the differences, the body. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "export/profile.h"
#include "export/spool_format.h"

DEFINE_CLEANUP(struct profile *, profile_freep, profile_free);

/* A profile that was read can be written, and read again as the same. */
static void check_profile(const struct spool_record *record, bool deltas)
{
	_cleanup_(profile_freep) struct profile *profile = NULL, *again = NULL;
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(2 * SPOOL_RECORD_MAX);
	char id[QUEUED_PROFILE_ID_LEN + 1], id_again[QUEUED_PROFILE_ID_LEN + 1];
	const uint64_t destination = 1;
	struct spool_record copy;
	struct cursor c;

	if (spool_profile_read(record, deltas, &profile, id))
		return;
	if (strlen(id) != QUEUED_PROFILE_ID_LEN || profile->start_ns != record->start_ns)
		abort();
	if (spool_profile_append(&bytes, profile, id, &destination, 1))
		return;
	cursor_init(&c, bytes.data, bytes.len);
	if (spool_record_next(&c, &copy) || spool_profile_read(&copy, deltas, &again, id_again))
		abort();
	if (!labels_equal(&profile->labels, &again->labels) || again->kind != profile->kind ||
	    again->pprof_len != profile->pprof_len ||
	    again->pprof_delta_len != profile->pprof_delta_len || strcmp(id, id_again) != 0)
		abort();
}

static void check_record(const struct spool_record *record)
{
	struct spool_ack ack;
	struct cursor c;

	check_profile(record, false);
	check_profile(record, true);
	if (record->type != SPOOL_ACKS)
		return;
	cursor_init(&c, record->body, record->body_len);
	while (!spool_ack_next(&c, &ack))
		continue;
	if (cursor_left(&c))
		abort();
}

static void check_body(struct cursor *c)
{
	struct spool_record record = {.type = SPOOL_PROFILE, .n_destinations = 1};
	uint16_t pprof_len, delta_len;

	if (!cursor_u16(c, &pprof_len) || !cursor_u16(c, &delta_len))
		return;
	record.pprof_len = pprof_len;
	record.delta_len = delta_len;
	record.body_len = cursor_left(c);
	record.body = c->pos;
	check_record(&record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct spool_record record;
	size_t end = 0;
	struct cursor c;
	uint8_t how;

	cursor_init(&c, data, size);
	if (!cursor_u8(&c, &how))
		return 0;
	if (how) {
		check_body(&c);
		return 0;
	}
	if (spool_magic_read(&c))
		return 0;
	while (!spool_record_next(&c, &record)) {
		const uint8_t *body = record.body;

		if (cursor_pos(&c) <= end || body < data || record.body_len > size ||
		    body + record.body_len != c.pos)
			abort();
		end = cursor_pos(&c);
		check_record(&record);
	}
	return 0;
}
