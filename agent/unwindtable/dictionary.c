// SPDX-License-Identifier: Apache-2.0
/*
 * A chained hash table over numbers, and a queue of numbers without holders, the longest free
 * first. A value in the queue returns unchanged to a new holder.
 */
#include "unwindtable/dictionary.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"

/* In chains and in the queue: none. Number 0 is in neither. */
#define NONE 0

struct entry {
	uint32_t refs;
	uint32_t freed_ms; /* modulo 2^32: 49 days */
	uint16_t chain;
	uint16_t older, newer; /* in the queue, while refs is 0 */
};

struct dictionary {
	uint8_t *values;
	uint32_t n, value_size;
	uint32_t fresh; /* numbers from here on were never used */
	uint32_t used;
	struct entry *entries;
	uint16_t *heads;
	uint32_t n_heads; /* a power of two */
	uint16_t oldest, newest;
};

DEFINE_CLEANUP(struct dictionary *, dictionary_freep, dictionary_free);

int dictionary_new(const struct dictionary_opts *opts, struct dictionary **ret)
{
	_cleanup_(dictionary_freep) struct dictionary *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->values = opts->values;
	d->n = opts->n;
	d->value_size = opts->value_size;
	d->fresh = 1;
	d->n_heads = 64;
	while (d->n_heads < opts->n)
		d->n_heads *= 2;
	d->entries = calloc(opts->n, sizeof(*d->entries));
	d->heads = calloc(d->n_heads, sizeof(*d->heads));
	if (!d->entries || !d->heads)
		return -ENOMEM;
	*ret = take_ptr(d);
	return 0;
}

void dictionary_free(struct dictionary *d)
{
	if (!d)
		return;
	free(d->entries);
	free(d->heads);
	free(d);
}

static uint8_t *value_at(const struct dictionary *d, uint16_t number)
{
	return d->values + (size_t)number * d->value_size;
}

static uint16_t *head_of(const struct dictionary *d, const uint8_t *value)
{
	return &d->heads[hash_bytes(value, d->value_size) & (d->n_heads - 1)];
}

static bool all_zeros(const struct dictionary *d, const uint8_t *value)
{
	for (uint32_t i = 0; i < d->value_size; i++)
		if (value[i])
			return false;
	return true;
}

static void queue_add(struct dictionary *d, uint16_t number)
{
	struct entry *e = &d->entries[number];

	e->older = d->newest;
	e->newer = NONE;
	if (d->newest)
		d->entries[d->newest].newer = number;
	else
		d->oldest = number;
	d->newest = number;
}

static void queue_remove(struct dictionary *d, uint16_t number)
{
	const struct entry *e = &d->entries[number];

	if (e->older)
		d->entries[e->older].newer = e->newer;
	else
		d->oldest = e->newer;
	if (e->newer)
		d->entries[e->newer].older = e->older;
	else
		d->newest = e->older;
}

static void unchain(struct dictionary *d, uint16_t number)
{
	uint16_t *link = head_of(d, value_at(d, number));

	while (*link != number)
		link = &d->entries[*link].chain;
	*link = d->entries[number].chain;
}

/* A number without a value, NONE if there is none. A number free for long enough comes before a
 * fresh one, so values occupy little memory. */
static uint16_t free_number(struct dictionary *d, uint64_t now_ns)
{
	uint32_t free_ms = (uint32_t)(now_ns / 1000000) - d->entries[d->oldest].freed_ms;
	uint16_t number = d->oldest;

	if (number && free_ms >= DICTIONARY_QUIET_NS / 1000000) {
		queue_remove(d, number);
		unchain(d, number);
		return number;
	}
	return d->fresh < d->n ? (uint16_t)d->fresh++ : NONE;
}

int dictionary_take(struct dictionary *d, const void *value, uint64_t now_ns, uint16_t *ret)
{
	uint16_t *head = head_of(d, value), number;

	if (all_zeros(d, value)) {
		*ret = 0;
		return 0;
	}
	for (number = *head; number; number = d->entries[number].chain)
		if (memcmp(value_at(d, number), value, d->value_size) == 0)
			break;
	if (number && !d->entries[number].refs)
		queue_remove(d, number);
	if (!number) {
		number = free_number(d, now_ns);
		if (!number)
			return DICTIONARY_FULL;
		memcpy(value_at(d, number), value, d->value_size);
		d->entries[number].chain = *head;
		*head = number;
	}
	d->used += !d->entries[number].refs++;
	*ret = number;
	return 0;
}

void dictionary_drop(struct dictionary *d, uint16_t number, uint64_t now_ns)
{
	struct entry *e = &d->entries[number];

	if (!number || --e->refs)
		return;
	d->used--;
	e->freed_ms = (uint32_t)(now_ns / 1000000);
	queue_add(d, number);
}

uint32_t dictionary_used(const struct dictionary *d)
{
	return d->used;
}
