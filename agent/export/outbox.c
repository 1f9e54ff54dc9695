// SPDX-License-Identifier: Apache-2.0
/*
 * Backends are down for minutes and sometimes for hours, but profiles arrive every window. Two
 * limits bound the waiting profiles: the maximum age accepted by the destination, and the bytes of
 * all outboxes together. Above the ceiling the oldest waiting profile of all outboxes is dropped.
 * Its queue belongs to the destination furthest behind, so a working backend loses no profiles to a
 * broken backend.
 */
#include "export/outbox.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "export/destination.h"
#include "export/profile.h"

/* Header and trailer of a gzip member. */
#define GZIP_BYTES_MIN 18

const char *export_outcome_name(enum export_outcome outcome)
{
	static const char *const names[EXPORT_OUTCOME_MAX] = {
		[EXPORT_SENT] = "sent",
		[EXPORT_RETRIED] = "retried",
		[EXPORT_UNKNOWN] = "unknown",
		[EXPORT_DROPPED_FULL] = "dropped_queue_full",
		[EXPORT_DROPPED_OLD] = "dropped_too_old",
		[EXPORT_DROPPED_DENIED] = "dropped_unauthorized",
		[EXPORT_DROPPED_TOO_LARGE] = "dropped_too_large",
		[EXPORT_DROPPED_REFUSED] = "dropped_rejected",
		[EXPORT_DROPPED_MEMORY] = "dropped_no_memory",
		[EXPORT_DROPPED_STOPPED] = "dropped_shutdown",
		[EXPORT_DROPPED_DAMAGED] = "dropped_damaged",
	};

	return names[outcome];
}

/* ---- queued profiles */

/* RFC 9562 section 5.4: version 4, random. */
static int uuid_make(char ret[QUEUED_PROFILE_ID_LEN + 1])
{
	unsigned char b[16];

	if (getrandom(b, sizeof(b), 0) != sizeof(b))
		return -errno;
	b[6] = (b[6] & 0x0f) | 0x40;
	b[8] = (b[8] & 0x3f) | 0x80;
	snprintf(ret, QUEUED_PROFILE_ID_LEN + 1,
		 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
		 b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
		 b[15]);
	return 0;
}

static uint64_t profile_bytes(const struct profile *profile)
{
	uint64_t bytes = sizeof(struct queued_profile) + sizeof(*profile) + profile->pprof_len +
			 profile->pprof_delta_len;

	for (size_t i = 0; i < profile->labels.n; i++)
		bytes += sizeof(struct label) + strlen(profile->labels.items[i].name) +
			 strlen(profile->labels.items[i].value) + 2;
	return bytes;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	return hash_words(hash, hash_bytes(text, strlen(text)));
}

static uint64_t profile_series(const struct profile *profile)
{
	uint64_t hash = hash_text(0, profile_kind_name(profile->kind));

	for (size_t i = 0; i < profile->labels.n; i++) {
		hash = hash_text(hash, profile->labels.items[i].name);
		hash = hash_text(hash, profile->labels.items[i].value);
	}
	return hash;
}

int queued_profile_new(struct outbox_budget *budget, struct profile *profile,
		       struct queued_profile **ret)
{
	_cleanup_(freep) struct queued_profile *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	r = uuid_make(p->id);
	if (r < 0)
		return r;
	p->refs = 1;
	p->budget = budget;
	p->profile = profile;
	p->bytes = profile_bytes(profile);
	p->seq = budget->seq++;
	p->series = profile_series(profile);
	budget->used_bytes += p->bytes;
	*ret = take_ptr(p);
	return 0;
}

void queued_profile_unref(struct queued_profile *p)
{
	if (!p || --p->refs)
		return;
	if (p->source)
		p->source->ended(p);
	queued_profile_orphan(p);
	profile_free(p->profile);
	free(p);
}

void queued_profile_orphan(struct queued_profile *p)
{
	if (p->budget)
		p->budget->used_bytes -= p->bytes;
	p->budget = NULL;
}

/* ---- lists */

static void list_append(struct outbox_list *list, struct outbox_item *item)
{
	item->next = NULL;
	if (list->last)
		list->last->next = item;
	else
		list->first = item;
	list->last = item;
	list->n++;
	list->bytes += item->queued->bytes;
}

static struct outbox_item *list_pop(struct outbox_list *list)
{
	struct outbox_item *item = list->first;

	list->first = item->next;
	if (!list->first)
		list->last = NULL;
	list->n--;
	list->bytes -= item->queued->bytes;
	return item;
}

void outbox_list_split(struct outbox_list *list, size_t n, struct outbox_list *ret)
{
	*ret = (struct outbox_list){0};
	while (list->first && ret->n < n)
		list_append(ret, list_pop(list));
}

void outbox_list_shift(struct outbox_list *list, struct outbox_list *to)
{
	list_append(to, list_pop(list));
}

void outbox_list_prepend(struct outbox_list *list, struct outbox_list *front)
{
	if (!front->first)
		return;
	front->last->next = list->first;
	list->first = front->first;
	if (!list->last)
		list->last = front->last;
	list->n += front->n;
	list->bytes += front->bytes;
	*front = (struct outbox_list){0};
}

/* ---- outboxes */

void outbox_init(struct outbox *box, struct outbox_budget *budget,
		 const struct destination_kind *kind)
{
	*box = (struct outbox){.next = budget->boxes, .budget = budget, .kind = kind};
	budget->boxes = box;
}

const void *outbox_payload(const struct outbox *box, const struct profile *profile, size_t *ret_len)
{
	if (box->kind->deltas && profile->pprof_delta) {
		*ret_len = profile->pprof_delta_len;
		return profile->pprof_delta;
	}
	*ret_len = profile->pprof_len;
	return profile->pprof;
}

/* The bytes before compression, from the end of the gzip member (RFC 1952 section 2.3.1); of other
 * bytes their number. */
static uint64_t profile_raw(const struct outbox *box, const struct profile *profile)
{
	size_t len;
	const unsigned char *p = outbox_payload(box, profile, &len), *end = p + len;

	if (len < GZIP_BYTES_MIN || p[0] != 0x1f || p[1] != 0x8b)
		return len;
	return end[-4] | (uint64_t)end[-3] << 8 | (uint64_t)end[-2] << 16 | (uint64_t)end[-1] << 24;
}

static uint64_t list_raw(const struct outbox *box, const struct outbox_list *list)
{
	uint64_t raw = 0;

	for (const struct outbox_item *item = list->first; item; item = item->next)
		raw += profile_raw(box, item->queued->profile);
	return raw;
}

void outbox_count(struct outbox *box, const struct profile *profile, enum export_outcome outcome)
{
	size_t len;

	(void)outbox_payload(box, profile, &len);
	box->profiles[outcome]++;
	box->payload[outcome] += len;
}

static void outbox_end_item(struct outbox *box, struct outbox_item *item,
			    enum export_outcome outcome)
{
	struct queued_profile *p = item->queued;

	if (outcome == EXPORT_DROPPED_STOPPED && p->source && p->source->on_disk(p))
		p->stays = true; /* no end: the next run sends the profile */
	else
		outbox_count(box, p->profile, outcome);
	queued_profile_unref(p);
	free(item);
}

void outbox_deinit(struct outbox *box)
{
	struct outbox **at;

	while (box->waiting.first)
		outbox_end_item(box, list_pop(&box->waiting), EXPORT_DROPPED_STOPPED);
	for (at = &box->budget->boxes; *at; at = &(*at)->next)
		if (*at == box) {
			*at = box->next;
			break;
		}
}

/* The oldest item that exists in memory only, as the pointer to it; NULL if there is none. Items
 * from the spool are few, and in front as long as the disk works. */
static struct outbox_item **list_oldest(struct outbox_list *list)
{
	for (struct outbox_item **at = &list->first; *at; at = &(*at)->next)
		if (!(*at)->queued->source)
			return at;
	return NULL;
}

static struct outbox_item *list_remove(struct outbox_list *list, struct outbox_item **at)
{
	struct outbox_item *item = *at;

	*at = item->next;
	if (list->last == item)
		list->last = at == &list->first ? NULL : container_of(at, struct outbox_item, next);
	list->n--;
	list->bytes -= item->queued->bytes;
	return item;
}

/* The outbox with the oldest waiting profile; NULL if nothing waits. */
static struct outbox *budget_oldest(const struct outbox_budget *budget, struct outbox_item ***ret)
{
	struct outbox *oldest = NULL;

	for (struct outbox *box = budget->boxes; box; box = box->next) {
		struct outbox_item **at = list_oldest(&box->waiting);

		if (at && (!oldest || (*at)->queued->seq < (**ret)->queued->seq)) {
			oldest = box;
			*ret = at;
		}
	}
	return oldest;
}

static void budget_enforce(struct outbox_budget *budget)
{
	while (budget->used_bytes > budget->max_bytes) {
		struct outbox_item **at = NULL;
		struct outbox *box = budget_oldest(budget, &at);

		if (!box)
			return; /* the rest is on the way, bounded by the requests' size */
		outbox_end_item(box, list_remove(&box->waiting, at), EXPORT_DROPPED_FULL);
	}
}

static bool outbox_too_old(const struct outbox *box, const struct outbox_item *item,
			   uint64_t wall_ns)
{
	uint64_t start_ns = item->queued->profile->start_ns;

	return wall_ns > start_ns && wall_ns - start_ns > box->kind->limits.age_ns;
}

/* Windows arrive in order, so the oldest profiles are in front. outbox_take() finds the exceptions.
 */
static void outbox_expire(struct outbox *box, uint64_t wall_ns)
{
	while (box->waiting.first && outbox_too_old(box, box->waiting.first, wall_ns))
		outbox_end_item(box, list_pop(&box->waiting), EXPORT_DROPPED_OLD);
}

static void outbox_push_part(struct outbox *box, struct queued_profile *p, unsigned int part)
{
	struct outbox_item *item = malloc(sizeof(*item));

	if (!item) {
		outbox_count(box, p->profile, EXPORT_DROPPED_MEMORY);
		return;
	}
	p->refs++;
	item->queued = p;
	item->part = part;
	item->series = part ? hash_words(p->series, part) : p->series;
	list_append(&box->waiting, item);
}

void outbox_push(struct outbox *box, struct queued_profile *p, uint64_t wall_ns)
{
	if (p->bytes > box->budget->max_bytes) {
		outbox_count(box, p->profile,
			     EXPORT_DROPPED_FULL); /* else this profile would push out all others */
		return;
	}
	for (unsigned int part = 0; part == 0 || part < box->kind->parts[p->profile->kind]; part++)
		outbox_push_part(box, p, part);
	outbox_expire(box, wall_ns);
	budget_enforce(box->budget);
}

static struct outbox_item **flying_chain(struct outbox *box, const struct outbox_item *item)
{
	return &box->flying[item->series % OUTBOX_FLYING_CHAINS];
}

static bool series_is_flying(struct outbox *box, const struct outbox_item *item)
{
	for (const struct outbox_item *at = *flying_chain(box, item); at; at = at->next_flying)
		if (at->series == item->series)
			return true;
	return false;
}

/* The items of @taken are on the way from now on. */
static void list_fly(struct outbox *box, const struct outbox_list *taken)
{
	for (struct outbox_item *item = taken->first; item; item = item->next) {
		struct outbox_item **chain = flying_chain(box, item);

		item->next_flying = *chain;
		*chain = item;
	}
	box->on_the_way += taken->bytes;
	box->raw_on_the_way += list_raw(box, taken);
}

/* They are no longer. */
static void list_land(struct outbox *box, const struct outbox_list *taken)
{
	for (const struct outbox_item *item = taken->first; item; item = item->next) {
		struct outbox_item **at = flying_chain(box, item);

		while (*at != item)
			at = &(*at)->next_flying;
		*at = item->next_flying;
	}
	box->on_the_way -= taken->bytes;
	box->raw_on_the_way -= list_raw(box, taken);
}

static struct outbox_suspect *quarantine_find(struct outbox *box, uint64_t series)
{
	for (size_t i = 0; i < OUTBOX_QUARANTINE_MAX; i++)
		if (box->quarantine[i].series == series)
			return &box->quarantine[i];
	return NULL;
}

/* A request of fewer profiles than before: the search ends. */
void outbox_quarantine(struct outbox *box, const struct outbox_list *taken)
{
	const size_t max_n =
		(taken->n + OUTBOX_QUARANTINE_REQUESTS - 1) / OUTBOX_QUARANTINE_REQUESTS;

	for (const struct outbox_item *item = taken->first; item; item = item->next) {
		struct outbox_suspect *at = quarantine_find(box, item->series);

		if (!at)
			at = &box->quarantine[box->n_quarantined++ % OUTBOX_QUARANTINE_MAX];
		*at = (struct outbox_suspect){item->series, max_n};
	}
}

void outbox_release(struct outbox *box, const struct outbox_list *taken)
{
	for (const struct outbox_item *item = taken->first; item && box->n_quarantined;
	     item = item->next) {
		struct outbox_suspect *at = quarantine_find(box, item->series);

		if (at)
			*at = (struct outbox_suspect){0};
	}
}

/* Whether the first waiting profile may join the request @ret, by the series in quarantine of both.
 * @max_n: of the request; lowered. */
static bool quarantine_permits(struct outbox *box, const struct outbox_list *ret, size_t *max_n)
{
	const struct outbox_suspect *at = quarantine_find(box, box->waiting.first->series);

	if (ret->n && !at != !quarantine_find(box, ret->first->series))
		return false;
	if (at && at->max_n < *max_n)
		*max_n = at->max_n;
	return ret->n < *max_n;
}

void outbox_take(struct outbox *box, size_t max_n, uint64_t max_payload, uint64_t wall_ns,
		 struct outbox_list *ret)
{
	const uint64_t max_raw = box->kind->limits.raw ? box->kind->limits.raw : UINT64_MAX;
	uint64_t payload = 0, raw = box->raw_on_the_way;
	bool is_only = box->on_the_way == 0;
	size_t len;

	*ret = (struct outbox_list){0};
	for (;;) {
		const struct profile *profile;

		outbox_expire(box, wall_ns);
		if (!box->waiting.first || ret->n >= max_n ||
		    series_is_flying(box, box->waiting.first) ||
		    !quarantine_permits(box, ret, &max_n))
			break;
		profile = box->waiting.first->queued->profile;
		(void)outbox_payload(box, profile, &len);
		payload += len;
		raw += profile_raw(box, profile);
		if ((ret->n > 0 || !is_only) && (payload > max_payload || raw > max_raw))
			break;
		list_append(ret, list_pop(&box->waiting));
	}
	list_fly(box, ret);
}

void outbox_profiles(const struct outbox *box, const struct outbox_list *taken,
		     struct destination_profile *ret)
{
	for (const struct outbox_item *item = taken->first; item; item = item->next, ret++) {
		ret->profile = item->queued->profile;
		ret->pprof = outbox_payload(box, ret->profile, &ret->pprof_len);
		ret->id = item->queued->id;
		ret->part = item->part;
	}
}

void outbox_end(struct outbox *box, struct outbox_list *taken, enum export_outcome outcome)
{
	list_land(box, taken);
	while (taken->first)
		outbox_end_item(box, list_pop(taken), outcome);
}

void outbox_count_retried(struct outbox *box, const struct outbox_list *taken)
{
	for (const struct outbox_item *item = taken->first; item; item = item->next)
		outbox_count(box, item->queued->profile, EXPORT_RETRIED);
}

void outbox_put_back(struct outbox *box, struct outbox_list *taken)
{
	list_land(box, taken);
	outbox_list_prepend(&box->waiting, taken);
	budget_enforce(box->budget);
}

void outbox_put_last(struct outbox *box, struct outbox_list *taken)
{
	list_land(box, taken);
	while (taken->first)
		list_append(&box->waiting, list_pop(taken));
	budget_enforce(box->budget);
}
