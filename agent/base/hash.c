// SPDX-License-Identifier: Apache-2.0
/*
 * The construction of wyhash: two words are mixed with the seed and multiplied to 128 bits, the
 * halves once more, and these are folded. Without the seed nobody can choose keys that collide more
 * often than by chance.
 */
#include "base/hash.h"

#include <string.h>
#include <sys/random.h>

/* Set before main(), and constant from then on. The initial value serves early in a boot, when the
 * kernel has no random bytes yet. */
static uint64_t seed[2] = {0x9e3779b97f4a7c15ull, 0xe7037ed1a0b428dbull};

static __attribute__((constructor)) void hash_init(void)
{
	uint64_t random[2];

	if (getrandom(random, sizeof(random), GRND_NONBLOCK) == sizeof(random))
		memcpy(seed, random, sizeof(seed));
}

uint64_t hash_words(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)(a ^ seed[0]) * (b ^ seed[1]);

	/* once more: words that differ in one number give a regular sequence of products */
	product = (unsigned __int128)((uint64_t)product ^ seed[1]) *
		  ((uint64_t)(product >> 64) ^ seed[0]);
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t hash_bytes(const void *bytes, size_t n)
{
	const uint8_t *at = bytes;
	uint64_t hash = n, words[2];

	for (; n >= sizeof(words); n -= sizeof(words), at += sizeof(words)) {
		memcpy(words, at, sizeof(words));
		hash = hash_words(hash ^ words[0], words[1]);
	}
	words[0] = words[1] = 0;
	if (n)
		memcpy(words, at, n);
	return hash_words(hash ^ words[0], words[1]);
}
