// SPDX-License-Identifier: Apache-2.0
#include "support/heapsaved.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"

#define PAGES_MAX 65536
/* Windows end at a page, so the file keeps only needed memory. */
#define WINDOW	  (64u << 10)
/* Zeros are told apart by so many bytes. */
#define BLOCK	  128

/* The places, each way. */
static void places_of(struct goruntime_file *f, uint64_t *ret[HEAPSAVED_PLACES])
{
	uint64_t *others[] = {&f->heap_stats, &f->total_alloc,	 &f->controller,
			      &f->heap_live,  &f->sched.allglen, &f->sched.allp,
			      &f->sched.free, &f->sched.system,	 &f->data};

	_Static_assert(array_size(others) + GORUNTIME_VAR_MAX == HEAPSAVED_PLACES, "all of them");
	for (size_t i = 0; i < GORUNTIME_VAR_MAX; i++)
		ret[i] = &f->vars[i].vaddr;
	memcpy(ret + GORUNTIME_VAR_MAX, others, sizeof(others));
}

/* ---------------------------------------------------------------- as memory */

/* Reads the available part of @n bytes at @addr. */
static size_t piece_read(const struct heapsaved *s, uint64_t addr, uint8_t *to, size_t n)
{
	for (size_t i = 0; i < s->n_pieces; i++) {
		const struct heapsaved_piece *p = &s->pieces[i];
		uint64_t off = addr - p->addr;

		if (addr < p->addr || off >= p->n)
			continue;
		if (n > p->n - off)
			n = (size_t)(p->n - off);
		if (p->bytes)
			memcpy(to, p->bytes + off, n);
		else
			memset(to, 0, n);
		return n;
	}
	return 0;
}

static int saved_read(struct memory *m, const struct memory_range *ranges, size_t n, size_t *ret)
{
	struct heapsaved *s = container_of(m, struct heapsaved, memory);

	if (s->on_read)
		s->on_read(s, m->n_calls);
	*ret = 0;
	for (size_t i = 0; i < n; i++) {
		size_t done = 0, got;

		do {
			got = piece_read(s, ranges[i].addr + done, (uint8_t *)ranges[i].to + done,
					 ranges[i].n - done);
			done += got;
		} while (got && done < ranges[i].n);
		*ret += done;
		if (done < ranges[i].n)
			return 0;
	}
	return 0;
}

static int saved_check(struct memory *m)
{
	(void)m;
	return 0;
}

void heapsaved_open(struct heapsaved *s, uint8_t *bytes, size_t n)
{
	uint64_t head[2 + HEAPSAVED_PLACES] = {0}, *places[HEAPSAVED_PLACES];
	struct goruntime *rt = &s->runtime;
	size_t at = sizeof(head);

	*s = (struct heapsaved){.memory = {.read = saved_read, .check = saved_check}};
	memcpy(head, bytes, n < sizeof(head) ? n : sizeof(head));
	snprintf(rt->file.version, sizeof(rt->file.version), "go1.%u",
		 (unsigned int)(head[0] % 100));
	rt->file.sched.split = head[0] % 100 >= 25;
	s->word = head[1];
	places_of(&rt->file, places);
	for (size_t i = 0; i < HEAPSAVED_PLACES; i++)
		*places[i] = head[2 + i];
	for (size_t i = 0; i < GORUNTIME_VAR_MAX; i++)
		rt->file.vars[i].source = *places[i] ? GORUNTIME_FROM_CODE : GORUNTIME_FROM_NOWHERE;
	while (s->n_pieces < HEAPSAVED_PIECES_MAX && at + 16 <= n) {
		struct heapsaved_piece *p = &s->pieces[s->n_pieces++];

		memcpy(&p->addr, bytes + at, sizeof(p->addr));
		memcpy(&p->n, bytes + at + 8, sizeof(p->n));
		at += 16;
		if (p->n & HEAPSAVED_ZERO) {
			p->n &= ~HEAPSAVED_ZERO;
			continue;
		}
		p->bytes = bytes + at;
		if (p->n > n - at)
			p->n = n - at;
		at += (size_t)p->n;
	}
}

/* ---------------------------------------------------------------- recording */

static int note_pages(struct heaprecorder *r, uint64_t addr, size_t n)
{
	for (uint64_t page = addr / MEMORY_PAGE_BYTES; page * MEMORY_PAGE_BYTES < addr + n;
	     page++) {
		int e = vec_grow(&r->pages, &r->cap, r->n_pages + 1, sizeof(*r->pages), PAGES_MAX);

		if (e)
			return e < 0 ? e : -ENOSPC;
		r->pages[r->n_pages++] = page * MEMORY_PAGE_BYTES;
	}
	return 0;
}

static int recorder_read(struct memory *m, const struct memory_range *ranges, size_t n, size_t *ret)
{
	struct heaprecorder *r = container_of(m, struct heaprecorder, memory);
	struct memory_range one = ranges[0];
	int e = 0;

	if (n == 1 && one.n >= WINDOW) {
		one.n = MEMORY_PAGE_BYTES - (size_t)(one.addr % MEMORY_PAGE_BYTES);
		ranges = &one;
	}
	for (size_t i = 0; !e && i < n; i++)
		e = note_pages(r, ranges[i].addr, ranges[i].n);
	return e ? e : r->from->read(r->from, ranges, n, ret);
}

static int recorder_check(struct memory *m)
{
	return memory_check(container_of(m, struct heaprecorder, memory)->from);
}

void heaprecorder_init(struct heaprecorder *r, struct memory *from)
{
	*r = (struct heaprecorder){.memory = {.read = recorder_read, .check = recorder_check},
				   .from = from};
}

void heaprecorder_deinit(struct heaprecorder *r)
{
	free(r->pages);
}

static int by_addr(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

/* A piece under construction; grows while the next bytes are adjacent. */
struct saving {
	struct buf *to;
	uint64_t addr;
	uint64_t n;
	bool is_zero;
	size_t head; /* offset of the piece's header in the buffer */
};

static int begin_piece(struct saving *s, uint64_t addr, bool is_zero)
{
	const uint64_t nothing[2] = {0};

	s->head = s->to->len;
	s->addr = addr;
	s->n = 0;
	s->is_zero = is_zero;
	return buf_append(s->to, nothing, sizeof(nothing));
}

static int save_block(struct saving *s, uint64_t addr, const uint8_t block[BLOCK])
{
	static const uint8_t zeros[BLOCK];
	bool is_zero = memcmp(block, zeros, BLOCK) == 0;
	uint64_t head[2];
	int e = 0;

	if (!s->n || addr != s->addr + s->n || is_zero != s->is_zero)
		e = begin_piece(s, addr, is_zero);
	if (!e && !is_zero)
		e = buf_append(s->to, block, BLOCK);
	if (e)
		return e;
	s->n += BLOCK;
	head[0] = s->addr;
	head[1] = s->n | (is_zero ? HEAPSAVED_ZERO : 0);
	memcpy(s->to->data + s->head, head, sizeof(head));
	return 0;
}

static int save_page(struct heaprecorder *r, uint64_t addr, struct saving *to)
{
	uint8_t page[MEMORY_PAGE_BYTES];
	int e = memory_read(r->from, addr, page, sizeof(page));

	if (e)
		return e < 0 ? e : 0;
	for (size_t i = 0; !e && i < sizeof(page); i += BLOCK)
		e = save_block(to, addr + i, page + i);
	return e;
}

int heaprecorder_save(struct heaprecorder *r, const struct goruntime *rt, struct buf *ret)
{
	uint64_t head[2 + HEAPSAVED_PLACES] = {goruntime_minor(&rt->file)};
	uint64_t *places[HEAPSAVED_PLACES];
	struct goruntime_file file = rt->file;
	struct saving to = {.to = ret};
	int e;

	places_of(&file, places);
	for (size_t i = 0; i < HEAPSAVED_PLACES; i++)
		head[2 + i] = *places[i] ? *places[i] + rt->bias : 0;
	e = buf_append(ret, head, sizeof(head));
	qsort(r->pages, r->n_pages, sizeof(*r->pages), by_addr);
	for (size_t i = 0; !e && i < r->n_pages; i++)
		if (!i || r->pages[i] != r->pages[i - 1])
			e = save_page(r, r->pages[i], &to);
	return e;
}
