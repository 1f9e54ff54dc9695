/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_OUTBOX_H
#define PODPROF_EXPORT_OUTBOX_H

/*
 * Profiles that wait to be sent: one outbox for each destination, one ceiling for all. A profile is
 * in memory once (a queued profile) however many outboxes hold it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;
struct destination_kind;
struct destination_profile;

/* What became of a profile that was put into an outbox. Each is counted once by how it ended, and
 * under "retried" each time sending it has failed but will be tried again. */
enum export_outcome {
	EXPORT_SENT,
	EXPORT_RETRIED,
	EXPORT_DROPPED_FULL,	  /* the ceiling: the oldest go first */
	EXPORT_DROPPED_OLD,	  /* the destination would refuse it for its age */
	EXPORT_DROPPED_DENIED,	  /* 401, 403 */
	EXPORT_DROPPED_TOO_LARGE, /* 413, alone in its request */
	EXPORT_DROPPED_REFUSED,	  /* any other reply that will not change */
	EXPORT_DROPPED_MEMORY,
	EXPORT_DROPPED_STOPPED, /* podprof ended */
	EXPORT_OUTCOME_MAX,
};
const char *export_outcome_name(enum export_outcome outcome);

#define QUEUED_PROFILE_ID_LEN 36

/**
 * struct queued_profile - a profile with the number of its holders
 * @id:    a random UUID; stays the same when the profile is sent again
 * @bytes: what it takes in memory, for the ceiling
 * @seq:   order of creation
 */
struct queued_profile {
	unsigned int refs;
	struct outbox_budget *budget;
	struct profile *profile;
	uint64_t bytes;
	uint64_t seq;
	char id[QUEUED_PROFILE_ID_LEN + 1];
};

/* The ceiling of all outboxes in @boxes. The owner sets @max_bytes; the rest starts as 0. */
struct outbox_budget {
	uint64_t max_bytes;
	uint64_t used_bytes;
	uint64_t seq;
	struct outbox *boxes;
};

/* Takes @profile on success. One reference is the caller's. 0 or -errno. */
int queued_profile_new(struct outbox_budget *budget, struct profile *profile,
		       struct queued_profile **ret);
struct queued_profile *queued_profile_ref(struct queued_profile *p);
void queued_profile_unref(struct queued_profile *p); /* NULL is fine */

struct outbox_item {
	struct outbox_item *next;
	struct queued_profile *queued;
};

/* Items, oldest first. {0} is empty. */
struct outbox_list {
	struct outbox_item *first, *last;
	size_t n;
	uint64_t bytes; /* of the queued profiles */
};

/**
 * struct outbox - what one destination still has to get
 * @waiting:  to be sent
 * @on_the_way: bytes that were taken and neither ended nor put back
 * @profiles: how they ended, by enum export_outcome
 * @payload:  the same in bytes of the pprof meant for this destination
 */
struct outbox {
	struct outbox *next;
	struct outbox_budget *budget;
	const struct destination_kind *kind;
	struct outbox_list waiting;
	uint64_t on_the_way;
	uint64_t profiles[EXPORT_OUTCOME_MAX];
	uint64_t payload[EXPORT_OUTCOME_MAX];
};

/* Joins @budget's list. */
void outbox_init(struct outbox *box, struct outbox_budget *budget,
		 const struct destination_kind *kind);
/* What waits ends as "stopped"; what is on the way must have been ended or put back. */
void outbox_deinit(struct outbox *box);

/* References @p. While the ceiling is passed, the oldest queued profile that waits anywhere is
 * dropped. */
void outbox_push(struct outbox *box, struct queued_profile *p, uint64_t wall_ns);

/* What outbox_end() and the like do; for a profile that cannot even be put in. */
void outbox_count(struct outbox *box, const struct profile *profile, enum export_outcome outcome);

/* The pprof that is meant for this destination: with differences or cumulative. */
const void *outbox_payload(const struct outbox *box, const struct profile *profile,
			   size_t *ret_len);

/**
 * outbox_take() - the oldest profiles, for one request
 * @max_n:       at most so many
 * @max_payload: and so many bytes of pprof, but always one profile
 * @ret:         empty when nothing waits; given back by outbox_end() or outbox_put_back()
 *
 * What has become too old is dropped on the way.
 */
void outbox_take(struct outbox *box, size_t max_n, uint64_t max_payload, uint64_t wall_ns,
		 struct outbox_list *ret);
/* What was taken, for the kind's encoder: @ret has room for taken->n. All is borrowed. */
void outbox_profiles(const struct outbox *box, const struct outbox_list *taken,
		     struct destination_profile *ret);
void outbox_end(struct outbox *box, struct outbox_list *taken, enum export_outcome outcome);
/* To the front; they are counted as retried. */
void outbox_put_back(struct outbox *box, struct outbox_list *taken);
/* The same, but to the end. */
void outbox_put_last(struct outbox *box, struct outbox_list *taken);

static inline uint64_t outbox_bytes(const struct outbox *box)
{
	return box->waiting.bytes + box->on_the_way;
}

#endif
