// SPDX-License-Identifier: Apache-2.0
/*
 * Two lanes, each of which takes 16 bytes a step: both words are hidden by words of the key and the
 * lane's state, and the halves of their product of 128 bits are added without carry. A product is
 * the quickest thing that makes every bit of the result depend on every bit before it; what makes
 * one useless is a factor of 0, and whoever wants to choose one has to know the key. This is no
 * cryptographic hash: with the key it is easy to find two inputs that are the same.
 */
#include "base/digest.h"

#include <string.h>

/* Fractional digits of pi, as good as any. */
#define START_A 0x243f6a8885a308d3ull
#define START_B 0x13198a2e03707344ull

static uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t word_at(const uint8_t *bytes, size_t i)
{
	uint64_t word;

	memcpy(&word, bytes + i * sizeof(word), sizeof(word));
	return word;
}

static void add_block(struct digest *d, const uint8_t *block)
{
	d->lanes[0] = mix(word_at(block, 0) ^ d->key[0], word_at(block, 1) ^ d->lanes[0]);
	d->lanes[1] = mix(word_at(block, 2) ^ d->key[1], word_at(block, 3) ^ d->lanes[1]);
}

void digest_init(struct digest *d, const struct digest_key *key)
{
	*d = (struct digest){.lanes = {START_A ^ key->words[2], START_B ^ key->words[3]}};
	memcpy(d->key, key->words, sizeof(d->key));
}

/* Into the block that was begun; what is left of @n. */
static size_t fill_rest(struct digest *d, const uint8_t *data, size_t n)
{
	size_t at = d->n % sizeof(d->rest), room = sizeof(d->rest) - at;
	size_t here = n < room ? n : room;

	memcpy(d->rest + at, data, here);
	d->n += here;
	if (here == room)
		add_block(d, d->rest);
	return here;
}

void digest_add(struct digest *d, const void *data, size_t n)
{
	const uint8_t *at = data;

	if (n && d->n % sizeof(d->rest)) {
		size_t here = fill_rest(d, at, n);

		at += here;
		n -= here;
	}
	for (; n >= sizeof(d->rest); n -= sizeof(d->rest), at += sizeof(d->rest)) {
		add_block(d, at);
		d->n += sizeof(d->rest);
	}
	if (n)
		(void)fill_rest(d, at, n);
}

void digest_u64(struct digest *d, uint64_t word)
{
	digest_add(d, &word, sizeof(word));
}

uint64_t digest_end(const struct digest *d)
{
	struct digest last = *d;
	size_t used = d->n % sizeof(d->rest);

	/* the length tells zeros at the end from none */
	memset(last.rest + used, 0, sizeof(last.rest) - used);
	add_block(&last, last.rest);
	return mix(last.lanes[0] ^ last.key[2] ^ d->n, last.lanes[1] ^ last.key[3]);
}
