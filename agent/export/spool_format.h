/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_SPOOL_FORMAT_H
#define PODPROF_EXPORT_SPOOL_FORMAT_H

/*
 * The bytes of the spool's segments. A segment is SPOOL_MAGIC, then records without gaps. All
 * numbers are little-endian. A record is
 *
 *	u32 mark		SPOOL_RECORD_MARK
 *	u8  type		enum spool_type
 *	u8  n_destinations
 *	u16 flags		SPOOL_*; unknown ones are ignored
 *	u32 body_len
 *	u32 body_crc		zlib's crc32() of the body
 *	u64 start_ns		a profile's start, wall clock
 *	u32 pprof_len		of a profile
 *	u32 delta_len		the same for the window's differences; 0: none
 *	u64 destinations[]	a profile's destinations, n_destinations of them
 *	u32 header_crc		crc32() of everything before
 *	    body
 *
 * The body of a profile is
 *
 *	char id[36]		the UUID of all attempts
 *	u64  duration_ns
 *	     kind		profile_kind_name(), with a final NUL
 *	u16  n_labels
 *	     labels		name and value, each with a final NUL
 *	     pprof
 *	     delta
 *
 * and the body of acknowledgements is a list of struct spool_ack, 24 bytes each.
 *
 * A process that ends at any point leaves a prefix of a segment, and the reader takes a prefix of
 * its records from it. After the first wrong record the rest of the segment is unreadable.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/outbox.h"

struct buf;
struct cursor;
struct profile;

#define SPOOL_MAGIC		 "podprof spool 1\n"
#define SPOOL_MAGIC_LEN		 16
#define SPOOL_RECORD_MARK	 0x31727073u /* "spr1" */
/* Destinations of one profile, as many as the settings permit. Reached: a further destination has
 * no spool, and its profiles wait in memory. */
#define SPOOL_DESTINATIONS_MAX	 8
/* Bytes of one record; a profile has 2 MiB before compression. Reached:
 * `podprof_spool_profiles_total{outcome="too_large"}`, and the profile waits in memory. */
#define SPOOL_RECORD_MAX	 (8u << 20)
#define SPOOL_RECORD_HEADER_ROOM (36 + 8 * SPOOL_DESTINATIONS_MAX)
#define SPOOL_ACK_LEN		 24

/* Flag of a profile: its samples may have the names of their threads. */
#define SPOOL_THREAD_NAMES 1

enum spool_type { SPOOL_PROFILE = 1, SPOOL_ACKS = 2 };

/**
 * struct spool_record - a record of a segment; borrows the segment's bytes
 * @len:  of the whole record
 */
struct spool_record {
	enum spool_type type;
	uint16_t flags;
	uint64_t start_ns;
	uint32_t pprof_len;
	uint32_t delta_len;
	unsigned int n_destinations;
	uint64_t destinations[SPOOL_DESTINATIONS_MAX];
	const void *body;
	size_t body_len;
	size_t len;
};

/* @n profiles of the segment with the number @segment, from @first on, have ended for
 * @destination. Profiles of a segment are counted from 0. */
struct spool_ack {
	uint64_t destination;
	uint64_t segment;
	uint32_t first;
	uint32_t n;
};

enum spool_format_outcome {
	SPOOL_FORMAT_OK = 0,
	SPOOL_FORMAT_END,     /* no byte is left */
	SPOOL_FORMAT_INVALID, /* torn or damaged */
};

/* Bytes of a profile's record. */
size_t spool_profile_size(const struct profile *profile, size_t n_destinations);
/* Append a record. 0, BUF_FULL, -ENOMEM; after a failure @to has a part of the record. */
int spool_profile_append(struct buf *to, const struct profile *profile, const char *id,
			 const uint64_t *destinations, size_t n_destinations);
int spool_acks_append(struct buf *to, const struct spool_ack *acks, size_t n);

/* Moves past SPOOL_MAGIC; SPOOL_FORMAT_INVALID for another file. */
int spool_magic_read(struct cursor *c);
/* Reads one record and moves past it. 0, SPOOL_FORMAT_END, SPOOL_FORMAT_INVALID. */
int spool_record_next(struct cursor *c, struct spool_record *ret);
/* The profile of a record. With @deltas only the form for a destination that wants differences, and
 * without @deltas only the other form. The caller owns *@ret. 0, SPOOL_FORMAT_INVALID, -ENOMEM. */
int spool_profile_read(const struct spool_record *record, bool deltas, struct profile **ret,
		       char ret_id[QUEUED_PROFILE_ID_LEN + 1]);
/* The next of a record's acknowledgements. 0, SPOOL_FORMAT_END, SPOOL_FORMAT_INVALID. */
int spool_ack_next(struct cursor *c, struct spool_ack *ret);

#endif
