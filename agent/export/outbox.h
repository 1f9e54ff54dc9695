/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_OUTBOX_H
#define PODPROF_EXPORT_OUTBOX_H

/*
 * Profiles waiting for sending: one outbox for each destination, one ceiling for all. Several
 * outboxes share one copy of a profile in memory, the queued profile.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;
struct destination_kind;
struct destination_profile;

/* The outcome of a profile in an outbox. Each item (a profile, or each part) is counted once by its
 * end, and as "retried" for each failed attempt with a retry. */
enum export_outcome {
	EXPORT_SENT,
	EXPORT_RETRIED,
	EXPORT_UNKNOWN,	       /* of a batch that is stored in part; the reply names no profile */
	EXPORT_DROPPED_FULL,   /* above the ceiling: the oldest profiles are dropped first */
	EXPORT_DROPPED_OLD,    /* too old for the destination */
	EXPORT_DROPPED_DENIED, /* 401, 403 */
	EXPORT_DROPPED_TOO_LARGE, /* 413, for a request with this profile alone */
	EXPORT_DROPPED_REFUSED,	  /* any other permanent refusal */
	EXPORT_DROPPED_MEMORY,
	EXPORT_DROPPED_STOPPED, /* podprof ended */
	EXPORT_DROPPED_DAMAGED, /* unreadable on the spool's disk */
	EXPORT_OUTCOME_MAX,
};
const char *export_outcome_name(enum export_outcome outcome);

#define QUEUED_PROFILE_ID_LEN 36

struct queued_profile;

/**
 * struct queued_source - the owner of a profile's copy on disk
 * @ended:   called with the last reference
 * @on_disk: whether the copy is still there
 */
struct queued_source {
	void (*ended)(struct queued_profile *p);
	bool (*on_disk)(const struct queued_profile *p);
};

/**
 * struct queued_profile - a reference-counted profile
 * @refs:   a blocked thread may drop the last reference
 * @budget: NULL: an orphan
 * @id:     a random UUID, the same for each attempt
 * @bytes:  size in memory, for the ceiling
 * @seq:    order of creation
 * @series: hash of kind and labels; a collision only delays a profile
 * @source: set for a profile from the spool; else NULL. @spool, @segment and @place belong to the
 *          source
 * @stays:  podprof ends while a part of the profile still waits: the profile stays on disk for the
 *          next run
 */
struct queued_profile {
	_Atomic unsigned int refs;
	struct outbox_budget *budget;
	struct profile *profile;
	uint64_t bytes;
	uint64_t seq;
	uint64_t series;
	const struct queued_source *source;
	void *spool;
	uint64_t segment;
	uint32_t place;
	bool stays;
	char id[QUEUED_PROFILE_ID_LEN + 1];
};

/* The ceiling of all outboxes in @boxes. The owner sets @max_bytes; the rest starts as 0. */
struct outbox_budget {
	uint64_t max_bytes;
	uint64_t used_bytes;
	uint64_t seq;
	struct outbox *boxes;
};

/* Takes @profile on success. The caller owns one reference. 0 or -errno. */
int queued_profile_new(struct outbox_budget *budget, struct profile *profile,
		       struct queued_profile **ret);
void queued_profile_unref(struct queued_profile *p); /* NULL is fine */
/* At the end of the run: takes the profile out of its budget, because a blocked thread has a
 * reference. The profile may outlive the budget then. */
void queued_profile_orphan(struct queued_profile *p);

/**
 * struct outbox_item - a queued profile in one outbox, or one part of the profile
 * @series: hash of the queued profile's series and the part
 * @next_flying: while the item is taken: next item in the hash chain of outbox.flying
 */
struct outbox_item {
	struct outbox_item *next;
	struct outbox_item *next_flying;
	struct queued_profile *queued;
	unsigned int part;
	uint64_t series;
};

/* Items, oldest first. {0} is empty. */
struct outbox_list {
	struct outbox_item *first, *last;
	size_t n;
	uint64_t bytes; /* of the queued profiles */
};

/* Hash chains of the taken profiles; a few requests of some hundred profiles run at a time. */
#define OUTBOX_FLYING_CHAINS 1024

/* Series in quarantine: the destination refused the last profile for its content, or a batch with
 * this profile: two of the largest batches. Reached: the oldest entry is overwritten. At the next
 * refusal of a batch the sender searches for this series again, or the batch is dropped again. */
#define OUTBOX_QUARANTINE_MAX	   512
/* Requests for the profiles of a refused batch in the next window. More requests would load the
 * backend, and with fewer each would risk more profiles. */
#define OUTBOX_QUARANTINE_REQUESTS 32

/**
 * struct outbox_suspect - a series in quarantine
 * @series: outbox_item.series; 0: none
 * @max_n:  profiles in a request with one of this series
 */
struct outbox_suspect {
	uint64_t series;
	size_t max_n;
};

/**
 * struct outbox - the queue of one destination
 * @waiting:  profiles to send
 * @n_on_disk: further profiles of this destination in the spool; set by the spool
 * @on_the_way: bytes of taken profiles that have neither ended nor been put back
 * @raw_on_the_way: the same, as bytes of pprof before compression
 * @flying:   the taken profiles, by series
 * @quarantine: a ring; @n_quarantined: entries ever made
 * @profiles: ended profiles, by enum export_outcome
 * @payload:  the same, as bytes of this destination's pprof
 * @rejected: profiles refused in replies to accepted requests, as counted by the destination
 */
struct outbox {
	struct outbox *next;
	struct outbox_budget *budget;
	const struct destination_kind *kind;
	struct outbox_list waiting;
	uint64_t n_on_disk;
	uint64_t on_the_way;
	uint64_t raw_on_the_way;
	struct outbox_item *flying[OUTBOX_FLYING_CHAINS];
	struct outbox_suspect quarantine[OUTBOX_QUARANTINE_MAX];
	size_t n_quarantined;
	uint64_t profiles[EXPORT_OUTCOME_MAX];
	uint64_t payload[EXPORT_OUTCOME_MAX];
	uint64_t rejected;
};

/* Joins @budget's list. */
void outbox_init(struct outbox *box, struct outbox_budget *budget,
		 const struct destination_kind *kind);
/* Waiting profiles end as "stopped". The caller must have ended or put back all taken profiles. */
void outbox_deinit(struct outbox *box);

/* Takes a reference of @p for each part. A profile above the ceiling by itself is dropped at once.
 * While the ceiling is exceeded, drops the oldest waiting profile of all outboxes. Profiles from
 * the spool are not dropped, because the spool limits their memory. */
void outbox_push(struct outbox *box, struct queued_profile *p, uint64_t wall_ns);

/* Counts an outcome as outbox_end() does, for a profile that was never in the outbox. */
void outbox_count(struct outbox *box, const struct profile *profile, enum export_outcome outcome);
/* Counts the profiles of a failed request that are sent again. */
void outbox_count_retried(struct outbox *box, const struct outbox_list *taken);

/* The pprof for this destination: with differences or cumulative. */
const void *outbox_payload(const struct outbox *box, const struct profile *profile,
			   size_t *ret_len);

/**
 * outbox_take() - take the oldest profiles for one request
 * @max_n:       maximum number
 * @max_payload: maximum bytes of pprof; a single profile may have more if no other profile of the
 *               outbox is on the way. The same is true of the kind's limits.raw
 * @ret:         may be empty; given back by outbox_end() or outbox_put_back()
 *
 * Drops expired profiles. If an earlier call has taken a profile of a series and this profile is
 * still on the way, outbox_take() ends before the next profile of the series, and takes no profile
 * behind. So several requests keep the order within each series. Profiles of series in quarantine
 * are taken alone or in small groups, without others.
 */
void outbox_take(struct outbox *box, size_t max_n, uint64_t max_payload, uint64_t wall_ns,
		 struct outbox_list *ret);
/* The taken profiles for the kind's encoder. @ret has room for taken->n. Everything is borrowed. */
void outbox_profiles(const struct outbox *box, const struct outbox_list *taken,
		     struct destination_profile *ret);
void outbox_end(struct outbox *box, struct outbox_list *taken, enum export_outcome outcome);
/* Puts the profiles at the front of the outbox. The ceiling applies again. */
void outbox_put_back(struct outbox *box, struct outbox_list *taken);
/* The same at the end of the outbox. */
void outbox_put_last(struct outbox *box, struct outbox_list *taken);

/* After the refusal of all of @taken for a profile's content: the next profiles of these series are
 * taken in groups, OUTBOX_QUARANTINE_REQUESTS of them or fewer, or alone. outbox_release() ends
 * this for accepted profiles. */
void outbox_quarantine(struct outbox *box, const struct outbox_list *taken);
void outbox_release(struct outbox *box, const struct outbox_list *taken);

/* Move the first @n items (fewer if there are fewer) of @list to the empty @ret. */
void outbox_list_split(struct outbox_list *list, size_t n, struct outbox_list *ret);
/* Move the first item of @list, which is not empty, to the end of @to. */
void outbox_list_shift(struct outbox_list *list, struct outbox_list *to);
/* Put @front before @list; @front is empty afterwards. */
void outbox_list_prepend(struct outbox_list *list, struct outbox_list *front);

static inline uint64_t outbox_bytes(const struct outbox *box)
{
	return box->waiting.bytes + box->on_the_way;
}

#endif
