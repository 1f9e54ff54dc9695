// SPDX-License-Identifier: Apache-2.0
/*
 * runtime.mbuckets is a zero-initialised variable: in .bss since Go 1.19, in .noptrbss before. The
 * runtime's own description gives the ranges of both sections. Some thousand words there point to
 * writable memory. But a heap record begins with a type, an address of the next record, a size and
 * a number of PCs, and has a hash over these fields: no other word passes.
 *
 * A large .noptrbss is not searched: programs with Go's cryptography have 32 MiB of zeros there,
 * and are of 1.26 or later. PCs need not be in the program's code, because those of a plugin are
 * not.
 */
#include "goheap/gobss.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "goheap/buckets.h"
#include "goheap/goruntime.h"
#include "procmap/maps.h"
#include "procmap/memory.h"

/* Bytes of variables searched in a section; programs of 100 MB have 200 KB. Reached: the
 * section is not searched. */
#define GOBSS_BYTES_MAX (4u << 20)
/* PCs read in a search. In a real program only the head of the list looks like a record. But half a
 * million words may all point to a record of 1,026 PCs. Reached: no list is found:
 * `unknown_layout`. */
#define GOBSS_PCS_MAX	(64u << 10)

/* Words of moduledata, from MODULE_FIRST on: begin and end of each section. */
enum { BSS = 0, NOPTRBSS = 2, MODULE_WORDS = 4, MODULE_FIRST = 28 };

/* A record's head: next, allnext, typ, hash, size, nstk. */
enum { ALLNEXT = 1, TYPE, HASH, SIZE, N_PCS, HEAD_WORDS };

struct candidate {
	uint64_t at; /* address of the variable */
	uint64_t record;
	uint64_t head[HEAD_WORDS];
};

struct scan {
	struct memory *memory;
	const struct maps *maps;
	uint64_t own[2]; /* the searched variables: no record lies among them */
	struct candidate *candidates;
	uint64_t found;
	size_t n_found;
	size_t n_pcs;
};

static int outcome_of_memory(int r)
{
	switch (r) {
	case MEMORY_GONE:
		return GOBSS_GONE;
	case MEMORY_DENIED:
		return GOBSS_DENIED;
	default:
		return r > 0 ? GOBSS_ABSENT : r;
	}
}

static bool may_be_record(const struct scan *s, uint64_t addr)
{
	const struct maps_entry *e;

	if (!addr || addr % 8 || (addr >= s->own[0] && addr < s->own[1]))
		return false;
	e = maps_find(s->maps, addr);
	return e && (e->prot & (MAPS_R | MAPS_W)) == (MAPS_R | MAPS_W) &&
	       e->limit - addr >= sizeof(uint64_t) * HEAD_WORDS;
}

static int check_record(struct scan *s, const struct candidate *c)
{
	uint64_t pcs[BUCKETS_PCS_MAX];
	size_t n = (size_t)c->head[N_PCS];
	int r;

	/* no head of a record */
	if (!(c->head[TYPE] == BUCKETS_MEMORY && c->head[N_PCS] >= 1 &&
	      c->head[N_PCS] <= BUCKETS_PCS_MAX && c->head[SIZE] > 0 &&
	      c->head[SIZE] < BUCKETS_SIZE_MAX && c->head[0] % 8 == 0 && c->head[ALLNEXT] % 8 == 0))
		return 0;
	s->n_pcs += n;
	if (s->n_pcs > GOBSS_PCS_MAX)
		return GOBSS_AMBIGUOUS;
	r = memory_read(s->memory, c->record + sizeof(c->head), pcs, n * sizeof(pcs[0]));
	if (r)
		return r == MEMORY_UNMAPPED ? 0 : outcome_of_memory(r);
	if (bucket_hash(pcs, n, c->head[SIZE]) != c->head[HASH])
		return 0;
	s->found = c->at;
	s->n_found++;
	return 0;
}

/* Read the heads of @n candidates; individually if the mappings have changed meanwhile. */
static int read_heads(struct scan *s, size_t n)
{
	struct memory_range ranges[MEMORY_RANGES_MAX] = {0};
	int r;

	for (size_t i = 0; i < n; i++)
		ranges[i] = (struct memory_range){s->candidates[i].record, s->candidates[i].head,
						  sizeof(s->candidates[i].head)};
	r = memory_read_ranges(s->memory, ranges, n);
	if (r != MEMORY_UNMAPPED)
		return outcome_of_memory(r);
	for (size_t i = 0; i < n; i++) {
		r = memory_read_ranges(s->memory, &ranges[i], 1);
		if (r == MEMORY_UNMAPPED)
			s->candidates[i].head[TYPE] = 0;
		else if (r)
			return outcome_of_memory(r);
	}
	return 0;
}

static int check_candidates(struct scan *s, size_t n)
{
	int r = n ? read_heads(s, n) : 0;

	for (size_t i = 0; !r && i < n; i++)
		r = check_record(s, &s->candidates[i]);
	return r;
}

static int scan_words(struct scan *s, uint64_t start, const uint64_t *words, size_t n_words)
{
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; !r && i < n_words; i++) {
		if (!may_be_record(s, words[i]))
			continue;
		s->candidates[n++] = (struct candidate){
			.at = start + i * sizeof(words[0]),
			.record = words[i],
		};
		if (n < MEMORY_RANGES_MAX)
			continue;
		r = check_candidates(s, n);
		n = 0;
	}
	return r ? r : check_candidates(s, n);
}

static int scan_section(struct scan *s, const uint64_t range[2])
{
	_cleanup_(freep) uint64_t *words = NULL;
	uint64_t start = (range[0] + 7) & ~(uint64_t)7;
	size_t n;
	int r;

	if (start < range[0] || range[1] <= start || range[1] - start > GOBSS_BYTES_MAX)
		return 0;
	n = (size_t)(range[1] - start) / sizeof(words[0]);
	words = calloc(n + 1, sizeof(words[0]));
	if (!words)
		return -ENOMEM;
	r = memory_read(s->memory, start, words, n * sizeof(words[0]));
	if (r)
		return outcome_of_memory(r);
	return scan_words(s, start, words, n);
}

int gobss_find(const struct goruntime *rt, struct memory *m, const struct maps *maps, uint64_t *ret)
{
	_cleanup_(freep) struct candidate *candidates = NULL;
	struct scan s = {.memory = m, .maps = maps};
	uint64_t words[MODULE_WORDS];
	int r;

	if (!rt->file.data)
		return GOBSS_ABSENT;
	r = memory_read(m, rt->file.data + rt->bias + MODULE_FIRST * sizeof(words[0]), words,
			sizeof(words));
	if (r)
		return outcome_of_memory(r);
	candidates = calloc(MEMORY_RANGES_MAX, sizeof(*candidates));
	if (!candidates)
		return -ENOMEM;
	s.candidates = candidates;
	s.own[0] = words[BSS];
	s.own[1] = words[NOPTRBSS + 1];
	r = scan_section(&s, words + BSS);
	if (!r)
		r = scan_section(&s, words + NOPTRBSS);
	if (r)
		return r;
	if (s.n_found == 1)
		*ret = s.found;
	return s.n_found == 1 ? GOBSS_OK : s.n_found ? GOBSS_AMBIGUOUS : GOBSS_ABSENT;
}
