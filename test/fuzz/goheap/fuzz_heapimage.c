// SPDX-License-Identifier: Apache-2.0
/*
 * A process with the input as its memory, read by all readers: records, twice, with a changed word
 * in between; counters of allocator, collector and scheduler; contention; goroutines. The seeds are
 * of real processes (test/tools/heapsave.c).
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "goheap/goheap.h"
#include "goheap/goroutines.h"
#include "support/heapsaved.h"

#define MAX_BYTES (1u << 20)

static void expect(bool good)
{
	if (!good)
		abort();
}

/* The low byte of the input's word selects the read at which a word changes, the rest selects the
 * word. */
static void on_read(struct heapsaved *s, uint64_t n)
{
	const struct heapsaved_piece *p;
	uint64_t word;

	if (!s->n_pieces || n != (s->word & 0xff))
		return;
	p = &s->pieces[(s->word >> 8) % s->n_pieces];
	if (!p->bytes || p->n < sizeof(word))
		return;
	memcpy(&word, p->bytes + (s->word >> 16) % (p->n - 7), sizeof(word));
	word += (s->word >> 40) + 1;
	memcpy(p->bytes + (s->word >> 16) % (p->n - 7), &word, sizeof(word));
}

static void look_at_records(const struct goheap_profile *p)
{
	struct goheap_totals totals;

	for (size_t i = 0; i < p->n_records; i++) {
		struct goheap_record record;

		goheap_record(p, i, &record);
		expect(record.fresh_allocs >= record.before_allocs && record.n_pcs > 0);
		for (size_t k = 0; k < record.n_pcs; k++)
			expect(record.stack[k] < p->n_pcs);
	}
	goheap_totals(p, &totals);
	expect(totals.alloc.objects >= 0 && totals.alloc.bytes >= 0 && totals.inuse.bytes >= 0);
}

static void read_heap(struct goheap *h)
{
	struct goheap_profile profile;

	for (int i = 0; i < 2; i++) {
		int r = goheap_read(h, &profile);

		expect(r >= 0 && r < GORUNTIME_STATE_MAX);
		if (r == GORUNTIME_OK || r == GORUNTIME_FORCED)
			look_at_records(&profile);
		expect(goheap_bytes(h) < 4 * (size_t)MAX_BYTES);
	}
}

static void read_contention(struct goheap *h)
{
	for (int i = GO_PROFILE_MUTEX; i <= GO_PROFILE_BLOCK; i++) {
		struct contention_profile profile;
		int r = goheap_contention(h, (enum go_profile_kind)i, &profile);

		expect(r >= 0 && r < GORUNTIME_STATE_MAX);
		for (size_t k = 0; r == GORUNTIME_OK && k < profile.n_records; k++) {
			struct contention_record record;

			contention_record(&profile, k, &record);
			expect(record.contentions >= 0 && record.delay_ns >= 0);
		}
	}
}

static int on_goroutine(void *ctx, const struct goroutine *g)
{
	(void)ctx;
	expect(g->n_stack <= GOROUTINES_STACK_MAX && strlen(g->wait_reason) < 64);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);
	struct goroutines_stats stats;
	struct goheap_gauges gauges;
	struct gototals totals;
	struct heapsaved saved;
	struct goheap *h;

	expect(copy != NULL);
	memcpy(copy, data, size);
	heapsaved_open(&saved, copy, size);
	saved.on_read = on_read;
	expect(goheap_new_of_memory(&saved.runtime, &saved.memory, MAX_BYTES, &h) == 0);
	read_heap(h);
	expect(goheap_exact(h, &totals) >= 0);
	expect(goheap_gauges(h, &gauges) >= 0);
	read_contention(h);
	expect(goroutines_read(&saved.runtime, &saved.memory, on_goroutine, NULL, &stats) >= 0);
	goheap_free(h);
	free(copy);
	return 0;
}
