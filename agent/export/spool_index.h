/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_SPOOL_INDEX_H
#define PODPROF_EXPORT_SPOOL_INDEX_H

/* The spool's segments in memory: the place of each profile, and the destinations that still wait
 * for the profile. Destinations are numbers below SPOOL_DESTINATIONS_MAX; a set is a mask. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/spool_format.h"

/* Profiles on disk, 16 bytes of memory each. 600,000 would be an hour of 10,000 series. Reached:
 * the oldest segment goes, as above --spool-bytes. */
#define SPOOL_PROFILES_MAX 524288
/* Files. Each start of the agent begins a new one. Reached: the oldest segment goes. */
#define SPOOL_SEGMENTS_MAX 1024

/* A profile in its segment. @live: destinations without an end for the profile. */
struct spool_place {
	uint32_t off;
	uint32_t pprof_len;
	uint32_t delta_len;
	uint8_t live;
};

/**
 * struct spool_share - the part of one destination in a segment
 * @n_live:        profiles without an end
 * @n_unread:      of these, profiles not in memory
 * @unread_bytes:  the same in bytes of the destination's pprof
 */
struct spool_share {
	uint32_t n_live;
	uint32_t n_unread;
	uint64_t unread_bytes;
};

/* @bytes: of the file; the next record begins there. */
struct spool_segment {
	uint64_t number;
	uint64_t bytes;
	uint64_t newest_start_ns;
	struct spool_place *places;
	size_t n, cap;
	struct spool_share shares[SPOOL_DESTINATIONS_MAX];
};

/**
 * struct spool_index - {0} is empty
 * @segments: in the order of their numbers, @n of them
 * @bytes:    of all files
 * @deltas:   destinations that get pprof_delta
 */
struct spool_index {
	struct spool_segment **segments;
	size_t n;
	size_t n_profiles;
	uint64_t bytes;
	uint8_t deltas;
};

void spool_index_deinit(struct spool_index *x);
/* Add an empty segment with a number above all others. 0 or -ENOMEM. */
int spool_index_add_segment(struct spool_index *x, uint64_t number, struct spool_segment **ret);
/* NULL if there is none. */
struct spool_segment *spool_index_find(const struct spool_index *x, uint64_t number);
/* Room for @n more profiles of @segment, so spool_index_add() succeeds. 0 or -ENOMEM. */
int spool_index_reserve(struct spool_segment *segment, size_t n);
/* Requires room. @place->live: the profile's destinations. */
void spool_index_add(struct spool_index *x, struct spool_segment *segment,
		     const struct spool_place *place, uint64_t start_ns);
void spool_index_add_bytes(struct spool_index *x, struct spool_segment *segment, uint64_t bytes);
/* The profile @i goes to memory, for a destination that waits for the profile. */
void spool_index_read(const struct spool_index *x, struct spool_segment *segment, size_t i,
		      unsigned int destination);
/* The profile does not get to memory after all: undoes spool_index_read(). */
void spool_index_unread(const struct spool_index *x, struct spool_segment *segment, size_t i,
			unsigned int destination);
/* The end of a profile that is in memory. */
void spool_index_end(struct spool_segment *segment, size_t i, unsigned int destination);
/* An acknowledgement on disk, of a foreign number; false if there is no such profile. */
bool spool_index_acknowledge(struct spool_index *x, const struct spool_ack *ack,
			     unsigned int destination);
/* No destination waits for a profile of the segment. */
bool spool_segment_is_done(const struct spool_segment *segment);
/* Require a segment. The newest one must have no profiles. */
void spool_index_drop_oldest(struct spool_index *x);
void spool_index_drop_newest(struct spool_index *x);

#endif
