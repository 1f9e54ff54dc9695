// SPDX-License-Identifier: Apache-2.0
#include "export/spool_index.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

static void segment_free(struct spool_segment *segment)
{
	free(segment->places);
	free(segment);
}

void spool_index_deinit(struct spool_index *x)
{
	for (size_t i = 0; i < x->n; i++)
		segment_free(x->segments[i]);
	free(x->segments);
	*x = (struct spool_index){.deltas = x->deltas};
}

int spool_index_add_segment(struct spool_index *x, uint64_t number, struct spool_segment **ret)
{
	struct spool_segment **segments =
		reallocarray(x->segments, x->n + 1, sizeof(struct spool_segment *));
	struct spool_segment *segment;

	if (!segments)
		return -ENOMEM;
	x->segments = segments;
	segment = calloc(1, sizeof(*segment));
	if (!segment)
		return -ENOMEM;
	segment->number = number;
	x->segments[x->n++] = segment;
	*ret = segment;
	return 0;
}

static int compare_number(const void *key, const void *item)
{
	const struct spool_segment *const *segment = item;
	const uint64_t *number = key;

	return (*number > (*segment)->number) - (*number < (*segment)->number);
}

struct spool_segment *spool_index_find(const struct spool_index *x, uint64_t number)
{
	struct spool_segment **at = x->n ? bsearch(&number, x->segments, x->n,
						   sizeof(struct spool_segment *), compare_number)
					 : NULL;

	return at ? *at : NULL;
}

int spool_index_reserve(struct spool_segment *segment, size_t n)
{
	return vec_grow(&segment->places, &segment->cap, segment->n + n, sizeof(*segment->places),
			SIZE_MAX);
}

static uint32_t payload(const struct spool_index *x, const struct spool_place *place,
			unsigned int destination)
{
	return x->deltas & 1u << destination && place->delta_len ? place->delta_len
								 : place->pprof_len;
}

void spool_index_add(struct spool_index *x, struct spool_segment *segment,
		     const struct spool_place *place, uint64_t start_ns)
{
	for (unsigned int d = 0; d < SPOOL_DESTINATIONS_MAX; d++) {
		struct spool_share *share = &segment->shares[d];

		if (!(place->live & 1u << d))
			continue;
		share->n_live++;
		share->n_unread++;
		share->unread_bytes += payload(x, place, d);
	}
	if (start_ns > segment->newest_start_ns)
		segment->newest_start_ns = start_ns;
	segment->places[segment->n++] = *place;
	x->n_profiles++;
}

void spool_index_add_bytes(struct spool_index *x, struct spool_segment *segment, uint64_t bytes)
{
	segment->bytes += bytes;
	x->bytes += bytes;
}

void spool_index_read(const struct spool_index *x, struct spool_segment *segment, size_t i,
		      unsigned int destination)
{
	struct spool_share *share = &segment->shares[destination];

	share->n_unread--;
	share->unread_bytes -= payload(x, &segment->places[i], destination);
}

void spool_index_unread(const struct spool_index *x, struct spool_segment *segment, size_t i,
			unsigned int destination)
{
	struct spool_share *share = &segment->shares[destination];

	share->n_unread++;
	share->unread_bytes += payload(x, &segment->places[i], destination);
}

void spool_index_end(struct spool_segment *segment, size_t i, unsigned int destination)
{
	segment->places[i].live &= (uint8_t) ~(1u << destination);
	segment->shares[destination].n_live--;
}

bool spool_index_acknowledge(struct spool_index *x, const struct spool_ack *ack,
			     unsigned int destination)
{
	struct spool_segment *segment = spool_index_find(x, ack->segment);
	size_t limit = (size_t)ack->first + ack->n;

	/* the segment may be gone */
	if (!segment || ack->first >= segment->n)
		return false;
	/* or its profiles behind a damage */
	for (size_t i = ack->first; i < limit && i < segment->n; i++)
		if (segment->places[i].live & 1u << destination) {
			spool_index_read(x, segment, i, destination);
			spool_index_end(segment, i, destination);
		}
	return true;
}

bool spool_segment_is_done(const struct spool_segment *segment)
{
	for (unsigned int d = 0; d < SPOOL_DESTINATIONS_MAX; d++)
		if (segment->shares[d].n_live)
			return false;
	return true;
}

void spool_index_drop_oldest(struct spool_index *x)
{
	struct spool_segment *oldest = x->segments[0];

	x->n--;
	x->n_profiles -= oldest->n;
	x->bytes -= oldest->bytes;
	memmove(x->segments, x->segments + 1, x->n * sizeof(struct spool_segment *));
	segment_free(oldest);
}

void spool_index_drop_newest(struct spool_index *x)
{
	struct spool_segment *newest = x->segments[--x->n];

	x->bytes -= newest->bytes;
	segment_free(newest);
}
