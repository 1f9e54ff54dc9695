// SPDX-License-Identifier: Apache-2.0
/*
 * The instructions are an ABI: debuggers and libgcc recognise the frame by them, so the kernel and
 * the C libraries keep them as they are (arch/arm64/kernel/vdso/sigreturn.S says so; libgcc's
 * x86_64_fallback_frame_state() and aarch64_fallback_frame_state()).
 */
#include "unwind/synthetic.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* Read at a time. */
#define PIECE ((size_t)32 << 10)

/* The code that a process begins with: glibc's dynamic linker has 64 bytes of it, until it jumps to
 * the program's, others have less. */
#define ENTRY_BYTES 64

struct trampoline {
	uint16_t machine;
	uint8_t n;
	uint8_t bytes[9];
};

static const struct trampoline trampolines[] = {
	/* mov $15 (rt_sigreturn), %rax; syscall: glibc, musl with GNU as */
	{EM_X86_64, 9, {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05}},
	/* mov $15, %eax; syscall: musl with clang's, Go */
	{EM_X86_64, 7, {0xb8, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05}},
	/* mov x8, #139; svc #0: the vDSO, musl */
	{EM_AARCH64, 8, {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4}},
};

/* A handler returns to the first byte, and like any caller it is looked up by the one before. */
static int add_trampoline(struct rows *rows, uint64_t vaddr, size_t n)
{
	static const struct unwind_rule rule = {.cfa = UNWIND_CFA_SIGNAL};
	int r;

	if (rows_begin(rows, ROWS_SYNTHETIC, vaddr - 1, vaddr + n))
		return 0; /* at the code's very start: nobody returns there */
	r = rows_add(rows, vaddr - 1, &rule);
	if (r)
		rows_drop(rows);
	else
		r = rows_end(rows);
	return r == ROWS_FULL ? -ENOSPC : r;
}

static int search(struct rows *rows, const uint8_t *bytes, size_t n, uint64_t vaddr,
		  const struct trampoline *t)
{
	const uint8_t *at = bytes, *end = bytes + n;
	int r = 0;

	while (!r && (at = memmem(at, (size_t)(end - at), t->bytes, t->n))) {
		r = add_trampoline(rows, vaddr + (uint64_t)(at - bytes), t->n);
		at += t->n;
	}
	return r;
}

/* Pieces overlap by less than a trampoline, so that each is found whole, and once. */
static int search_segment(const struct elffile *file, const struct elffile_segment *segment,
			  const struct trampoline *t, uint8_t *buf, struct rows *rows)
{
	uint64_t off = 0;
	int r = 0;

	while (!r && segment->filesz - off >= t->n) {
		uint64_t left = segment->filesz - off;
		size_t n = left < PIECE ? (size_t)left : PIECE;

		r = elffile_read(file, segment->off + off, buf, n);
		if (!r)
			r = search(rows, buf, n, segment->vaddr + off, t);
		off += n == left ? left : n - t->n + 1u;
	}
	return r;
}

int synthetic_add_entry(const struct elffile *file, struct rows *rows)
{
	static const struct unwind_rule rule = {.cfa = UNWIND_CFA_STOP};
	const uint64_t entry = elffile_entry(file);
	int r;

	/* the lowest source: whatever is known of what follows counts */
	if (!entry || rows_begin(rows, ROWS_DEBUG_FRAME, entry, entry + ENTRY_BYTES))
		return 0;
	r = rows_add(rows, entry, &rule);
	if (r)
		rows_drop(rows);
	else
		r = rows_end(rows);
	return r == ROWS_FULL ? -ENOSPC : r;
}

static bool is_code(const struct elffile_segment *s)
{
	return (s->flags & PF_X) && s->vaddr + s->filesz >= s->vaddr;
}

int synthetic_add(const struct elffile *file, struct rows *rows)
{
	_cleanup_(freep) uint8_t *buf = NULL;
	const struct elffile_segment *segments;
	uint64_t total = 0;
	size_t n;
	int r = 0;

	segments = elffile_segments(file, &n);
	for (size_t i = 0; i < n; i++)
		if (is_code(&segments[i]) &&
		    __builtin_add_overflow(total, segments[i].filesz, &total))
			return 0;
	if (!total || total > SYNTHETIC_SCAN_MAX)
		return 0;
	buf = malloc(PIECE);
	if (!buf)
		return -ENOMEM;
	for (size_t i = 0; i < n && !r; i++)
		for (size_t j = 0; j < array_size(trampolines) && !r; j++)
			if (is_code(&segments[i]) &&
			    trampolines[j].machine == elffile_machine(file))
				r = search_segment(file, &segments[i], &trampolines[j], buf, rows);
	return r;
}
