/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_DIGEST_H
#define PODPROF_BASE_DIGEST_H

/*
 * A number of 64 bits for many bytes, under a secret: who does not know the secret cannot make
 * other bytes with the same number, nor bytes with a number that fits. Several bytes a cycle. The
 * same bytes in other pieces give the same number; on another machine they may give another.
 */

#include <stddef.h>
#include <stdint.h>

struct digest_key {
	uint64_t words[4]; /* random */
};

/* What has been added so far; plain memory. */
struct digest {
	uint64_t key[4];
	uint64_t lanes[2];
	uint64_t n;
	uint8_t rest[32]; /* the first n % 32 bytes of a block */
};

void digest_init(struct digest *d, const struct digest_key *key);
void digest_add(struct digest *d, const void *data, size_t n);
void digest_u64(struct digest *d, uint64_t word);
/* Of all that was added; more may be added afterwards. */
uint64_t digest_end(const struct digest *d);

#endif
