// SPDX-License-Identifier: Apache-2.0
/*
 * The owner with the most bytes gives way, and with it each owner that has half as many or more: so
 * a program that makes functions all the time loses its own names, and a few equal owners lose
 * their oldest. Each round halves the most that an owner has, so the rounds are few. Room is made
 * ahead, so that the next function does not come here again.
 */
#include "runtimes/runtime_budget.h"

/* A sixteenth: 2 MiB. */
#define AHEAD (RUNTIME_BUDGET_BYTES_MAX / 16)

void runtime_budget_deinit(struct runtime_budget *b)
{
	struct share_holder *h, *next;

	HASH_ITER(hh, b->owners, h, next) {
		h->held = 0;
		share_holder_put(&b->owners, h);
	}
}

void runtime_budget_join(struct runtime_budget *b, struct runtime_budget_member *member)
{
	member->next = b->members;
	b->members = member;
}

void runtime_budget_leave(struct runtime_budget *b, struct runtime_budget_member *member)
{
	struct runtime_budget_member **at = &b->members;

	while (*at && *at != member)
		at = &(*at)->next;
	if (*at)
		*at = member->next;
}

bool runtime_budget_take(struct runtime_budget *b, uint64_t owner, size_t n)
{
	struct share_holder *h = share_holder_get(&b->owners, owner);

	if (!h)
		return false;
	h->held += n;
	b->n_bytes += n;
	return true;
}

void runtime_budget_give(struct runtime_budget *b, uint64_t owner, size_t n)
{
	struct share_holder *h = share_holder_find(b->owners, owner);

	if (!h)
		return;
	h->held -= n;
	b->n_bytes -= n;
	share_holder_put(&b->owners, h);
}

size_t runtime_budget_of(const struct runtime_budget *b, uint64_t owner)
{
	const struct share_holder *h = share_holder_find(b->owners, owner);

	return h ? h->held : 0;
}

static size_t most_of(const struct runtime_budget *b)
{
	size_t most = 0;

	for (const struct share_holder *h = b->owners; h; h = h->hh.next)
		most = h->held > most ? h->held : most;
	return most;
}

static void make_room(struct runtime_budget *b, size_t least, bool all)
{
	for (struct runtime_budget_member *m = b->members; m; m = m->next)
		m->give(m->ctx, least, all);
}

static bool is_above(const struct runtime_budget *b, size_t max)
{
	return b->n_bytes + b->n_common > max;
}

void runtime_budget_bound(struct runtime_budget *b)
{
	size_t least;

	if (!is_above(b, RUNTIME_BUDGET_BYTES_MAX))
		return;
	for (least = most_of(b) / 2; least && is_above(b, RUNTIME_BUDGET_BYTES_MAX - AHEAD);
	     least /= 2) {
		make_room(b, least, false);
		if (is_above(b, RUNTIME_BUDGET_BYTES_MAX - AHEAD))
			make_room(b, least, true);
	}
}
