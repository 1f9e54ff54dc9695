// SPDX-License-Identifier: Apache-2.0
#include "export/spool_format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "export/profile.h"

/* Without the destinations: up to them, and the checksum behind them. */
#define HEADER_LEN 32

DEFINE_CLEANUP(struct profile *, profile_freep, profile_free);

static uint32_t checksum(const void *data, size_t n)
{
	return (uint32_t)crc32(0, data, (unsigned int)n);
}

/* ---- writing */

struct header {
	uint32_t mark;
	uint8_t type;
	uint8_t n_destinations;
	uint16_t flags;
	uint32_t body_len;
	uint32_t body_crc;
	uint64_t start_ns;
	uint32_t pprof_len;
	uint32_t delta_len;
};
_Static_assert(sizeof(struct header) == HEADER_LEN, "written as it is");
_Static_assert(sizeof(struct spool_ack) == SPOOL_ACK_LEN, "written as it is");

static size_t header_size(size_t n_destinations)
{
	return HEADER_LEN + n_destinations * sizeof(uint64_t) + sizeof(uint32_t);
}

/* Fills the header before the body at the end of @to. */
static void header_write(char *at, const struct header *header, const uint64_t *destinations)
{
	size_t n = header->n_destinations * sizeof(*destinations);
	uint32_t crc;

	memcpy(at, header, HEADER_LEN);
	if (n)
		memcpy(at + HEADER_LEN, destinations, n);
	crc = checksum(at, HEADER_LEN + n);
	memcpy(at + HEADER_LEN + n, &crc, sizeof(crc));
}

static size_t body_size(const struct profile *profile)
{
	size_t n = QUEUED_PROFILE_ID_LEN + sizeof(uint64_t) +
		   strlen(profile_kind_name(profile->kind)) + 1 + sizeof(uint16_t);

	for (size_t i = 0; i < profile->labels.n; i++)
		n += strlen(profile->labels.items[i].name) +
		     strlen(profile->labels.items[i].value) + 2;
	return n + profile->pprof_len + profile->pprof_delta_len;
}

size_t spool_profile_size(const struct profile *profile, size_t n_destinations)
{
	return header_size(n_destinations) + body_size(profile);
}

static int append_text(struct buf *to, const char *text)
{
	return buf_append(to, text, strlen(text) + 1);
}

static int append_body(struct buf *to, const struct profile *profile, const char *id)
{
	uint16_t n_labels = (uint16_t)profile->labels.n;
	int r = buf_append(to, id, QUEUED_PROFILE_ID_LEN);

	if (!r)
		r = buf_append(to, &profile->duration_ns, sizeof(profile->duration_ns));
	if (!r)
		r = append_text(to, profile_kind_name(profile->kind));
	if (!r)
		r = buf_append(to, &n_labels, sizeof(n_labels));
	for (size_t i = 0; !r && i < profile->labels.n; i++) {
		r = append_text(to, profile->labels.items[i].name);
		if (!r)
			r = append_text(to, profile->labels.items[i].value);
	}
	if (!r)
		r = buf_append(to, profile->pprof, profile->pprof_len);
	if (!r && profile->pprof_delta_len)
		r = buf_append(to, profile->pprof_delta, profile->pprof_delta_len);
	return r;
}

int spool_profile_append(struct buf *to, const struct profile *profile, const char *id,
			 const uint64_t *destinations, size_t n_destinations)
{
	size_t at = to->len, size = header_size(n_destinations);
	struct header header = {
		.mark = SPOOL_RECORD_MARK,
		.type = SPOOL_PROFILE,
		.n_destinations = (uint8_t)n_destinations,
		.flags = profile->thread_names ? SPOOL_THREAD_NAMES : 0,
		.start_ns = profile->start_ns,
		.pprof_len = (uint32_t)profile->pprof_len,
		.delta_len = (uint32_t)profile->pprof_delta_len,
	};
	char *room;
	int r;

	/* the body's bytes also reserve the room of all appends */
	r = buf_reserve(to, spool_profile_size(profile, n_destinations), &room);
	if (r)
		return r;
	to->len += size;
	r = append_body(to, profile, id);
	if (r)
		return r;
	header.body_len = (uint32_t)(to->len - at - size);
	header.body_crc = checksum(to->data + at + size, header.body_len);
	header_write(to->data + at, &header, destinations);
	return 0;
}

int spool_acks_append(struct buf *to, const struct spool_ack *acks, size_t n)
{
	struct header header = {
		.mark = SPOOL_RECORD_MARK,
		.type = SPOOL_ACKS,
		.body_len = (uint32_t)(n * SPOOL_ACK_LEN),
		.body_crc = checksum(acks, n * SPOOL_ACK_LEN),
	};
	char *room;
	int r = buf_reserve(to, header_size(0), &room);

	if (r)
		return r;
	header_write(room, &header, NULL);
	to->len += header_size(0);
	return buf_append(to, acks, n * SPOOL_ACK_LEN);
}

/* ---- reading */

int spool_magic_read(struct cursor *c)
{
	const void *magic;

	if (!cursor_bytes(c, SPOOL_MAGIC_LEN, &magic) ||
	    memcmp(magic, SPOOL_MAGIC, SPOOL_MAGIC_LEN) != 0)
		return SPOOL_FORMAT_INVALID;
	return 0;
}

static bool header_read(struct cursor *c, struct spool_record *ret, uint32_t *ret_body_crc,
			uint32_t *ret_body_len)
{
	const void *start = c->pos;
	uint8_t type, n;
	uint32_t mark, crc;

	if (!cursor_u32(c, &mark) || mark != SPOOL_RECORD_MARK || !cursor_u8(c, &type) ||
	    !cursor_u8(c, &n) || n > SPOOL_DESTINATIONS_MAX || !cursor_u16(c, &ret->flags) ||
	    !cursor_u32(c, ret_body_len) || !cursor_u32(c, ret_body_crc) ||
	    !cursor_u64(c, &ret->start_ns) || !cursor_u32(c, &ret->pprof_len) ||
	    !cursor_u32(c, &ret->delta_len))
		return false;
	for (unsigned int i = 0; i < n; i++)
		if (!cursor_u64(c, &ret->destinations[i]))
			return false;
	if (!cursor_u32(c, &crc) || crc != checksum(start, HEADER_LEN + n * sizeof(uint64_t)))
		return false;
	ret->type = type;
	ret->n_destinations = n;
	return true;
}

static bool record_plausible(const struct spool_record *record)
{
	if (record->type == SPOOL_ACKS)
		return record->body_len % SPOOL_ACK_LEN == 0;
	return record->type == SPOOL_PROFILE && record->n_destinations &&
	       (uint64_t)record->pprof_len + record->delta_len <= record->body_len;
}

int spool_record_next(struct cursor *c, struct spool_record *ret)
{
	struct spool_record record = {0};
	struct cursor at = *c;
	uint32_t crc, body_len;

	if (!cursor_left(c))
		return SPOOL_FORMAT_END;
	if (!header_read(&at, &record, &crc, &body_len) || body_len > SPOOL_RECORD_MAX ||
	    !cursor_bytes(&at, body_len, &record.body) || checksum(record.body, body_len) != crc)
		return SPOOL_FORMAT_INVALID;
	record.body_len = body_len;
	record.len = cursor_pos(&at) - cursor_pos(c);
	if (!record_plausible(&record))
		return SPOOL_FORMAT_INVALID;
	*c = at;
	*ret = record;
	return 0;
}

/* False for a kind of another version. */
static bool kind_read(struct cursor *c, enum profile_kind *ret)
{
	const char *name;

	if (!cursor_cstr(c, &name))
		return false;
	for (*ret = 0; *ret < PROFILE_KIND_MAX; (*ret)++)
		if (strcmp(name, profile_kind_name(*ret)) == 0)
			return true;
	return false;
}

static int labels_read(struct cursor *c, struct labels *labels)
{
	const char *name, *value;
	uint16_t n;
	int r = 0;

	if (!cursor_u16(c, &n) || n > LABELS_MAX)
		return SPOOL_FORMAT_INVALID;
	while (!r && n--)
		r = cursor_cstr(c, &name) && cursor_cstr(c, &value)
			    ? labels_set(labels, name, value)
			    : SPOOL_FORMAT_INVALID;
	return r > 0 ? SPOOL_FORMAT_INVALID : r;
}

static int bytes_copy(const void *bytes, size_t n, char **ret)
{
	*ret = malloc(n + 1); /* + 1: not of size 0 */
	if (!*ret)
		return -ENOMEM;
	memcpy(*ret, bytes, n);
	return 0;
}

static int payload_read(struct cursor *c, const struct spool_record *record, bool deltas,
			struct profile *profile)
{
	const void *pprof, *delta;

	if (!cursor_bytes(c, record->pprof_len, &pprof) ||
	    !cursor_bytes(c, record->delta_len, &delta) || cursor_left(c))
		return SPOOL_FORMAT_INVALID;
	if (deltas && record->delta_len) {
		profile->pprof_delta_len = record->delta_len;
		return bytes_copy(delta, record->delta_len, &profile->pprof_delta);
	}
	profile->pprof_len = record->pprof_len;
	return bytes_copy(pprof, record->pprof_len, &profile->pprof);
}

int spool_profile_read(const struct spool_record *record, bool deltas, struct profile **ret,
		       char ret_id[QUEUED_PROFILE_ID_LEN + 1])
{
	_cleanup_(profile_freep) struct profile *profile = calloc(1, sizeof(*profile));
	const void *id;
	struct cursor c;
	int r;

	if (!profile)
		return -ENOMEM;
	cursor_init(&c, record->body, record->body_len);
	profile->start_ns = record->start_ns;
	if (record->type != SPOOL_PROFILE || !cursor_bytes(&c, QUEUED_PROFILE_ID_LEN, &id) ||
	    memchr(id, '\0', QUEUED_PROFILE_ID_LEN) || !cursor_u64(&c, &profile->duration_ns) ||
	    !kind_read(&c, &profile->kind))
		return SPOOL_FORMAT_INVALID;
	profile->thread_names = record->flags & SPOOL_THREAD_NAMES;
	r = labels_read(&c, &profile->labels);
	if (!r)
		r = payload_read(&c, record, deltas, profile);
	if (r)
		return r;
	memcpy(ret_id, id, QUEUED_PROFILE_ID_LEN);
	ret_id[QUEUED_PROFILE_ID_LEN] = '\0';
	*ret = take_ptr(profile);
	return 0;
}

int spool_ack_next(struct cursor *c, struct spool_ack *ret)
{
	struct spool_ack ack;
	struct cursor at = *c;

	if (!cursor_left(c))
		return SPOOL_FORMAT_END;
	if (!cursor_u64(&at, &ack.destination) || !cursor_u64(&at, &ack.segment) ||
	    !cursor_u32(&at, &ack.first) || !cursor_u32(&at, &ack.n))
		return SPOOL_FORMAT_INVALID;
	*c = at;
	*ret = ack;
	return 0;
}
