// SPDX-License-Identifier: Apache-2.0
/*
 * These instructions are an ABI: debuggers and libgcc recognise the frame by them, so the kernel
 * and the C libraries keep them unchanged (stated in arch/arm64/kernel/vdso/sigreturn.S; libgcc's
 * x86_64_fallback_frame_state() and aarch64_fallback_frame_state()).
 *
 * glibc's __mpn_addmul_1() and __mpn_submul_1() (sysdeps/x86_64/addmul_1.S, since 2.15) push two
 * registers without a description in their table. printf() and strtod() of floating-point numbers
 * spend their time there. __start_context(), the return target of a coroutine's first function
 * (makecontext()), is described as if it had a caller.
 *
 * A linkage table is code of the linker (System V ABI for AMD64, section 5.2; on AArch64 as GNU ld
 * and lld write it, which describe none of it). A call through it
 * takes a few instructions, and a program that calls small functions of a library has up to a
 * hundredth of its samples there.
 */
#include "unwind/synthetic.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "base/cleanup.h"
#include "unwind/coderanges.h"

/* Read at a time. */
#define PIECE ((size_t)32 << 10)

/* Code at the entry of a process: glibc's dynamic linker has 64 bytes of it before the jump to the
 * program, others have less. */
#define ENTRY_BYTES 64

/* Bytes of the longest pattern. */
#define PATTERN_BYTES 26

/* Bytes of the function that is recognised by its beginning. */
#define MPN_BYTES 512u

/* Adds rows for the @n bytes of code at @vaddr. */
typedef int add_fn(const struct elffile *file, struct rows *rows, uint64_t vaddr, size_t n);

static add_fn add_trampoline;
static add_fn add_mpn;
static add_fn add_start_context;

struct pattern {
	add_fn *add;
	uint16_t machine;
	uint8_t n;
	uint8_t pair; /* the place of two bytes that are rare in code together */
	uint8_t bytes[PATTERN_BYTES];
};

static const struct pattern patterns[] = {
	/* mov $15 (rt_sigreturn), %rax; syscall: glibc, musl with GNU as */
	{add_trampoline, EM_X86_64, 9, 7, {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05}},
	/* mov $15, %eax; syscall: musl with clang's, Go */
	{add_trampoline, EM_X86_64, 7, 5, {0xb8, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05}},
	/* mov x8, #139; svc #0: the vDSO, musl */
	{add_trampoline, EM_AARCH64, 8, 0, {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4}},
	/* push %rbx; push %rbp; lea (%rdx),%rbx; neg %rbx; mov (%rsi),%rax; mov (%rdi),%r10;
	 * lea -16(%rdi,%rdx,8),%rdi; lea (%rsi,%rdx,8),%rsi */
	{add_mpn, EM_X86_64, PATTERN_BYTES, 21, {0x53, 0x55, 0x48, 0x8d, 0x1a, 0x48, 0xf7,
						 0xdb, 0x48, 0x8b, 0x06, 0x4c, 0x8b, 0x17,
						 0x48, 0x8d, 0x7c, 0xd7, 0xf0, 0x48, 0x8d,
						 0x34, 0xd6, 0x48, 0xf7, 0xe1}},
	/* mov %rbx,%rsp; mov (%rsp),%rdi; test %rdi,%rdi */
	{add_start_context,
	 EM_X86_64,
	 10,
	 1,
	 {0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85, 0xff}},
};

/* A handler returns to the first byte, and the lookup of a caller uses the byte before. */
static int add_trampoline(const struct elffile *file, struct rows *rows, uint64_t vaddr, size_t n)
{
	static const struct unwind_rule rule = {.cfa = UNWIND_CFA_SIGNAL};
	int r;

	(void)file;
	if (rows_begin(rows, ROWS_SYNTHETIC, vaddr - 1, vaddr + n))
		return 0; /* at the code's very start: nobody returns there */
	r = rows_add(rows, vaddr - 1, &rule);
	if (r)
		rows_drop(rows);
	else
		r = rows_end(rows);
	return r == ROWS_FULL ? -ENOSPC : r;
}

/* The function and its callees have no caller. The lookup of a caller uses the byte before the
 * first byte, perhaps a byte of endbr64. */
static int add_start_context(const struct elffile *file, struct rows *rows, uint64_t vaddr,
			     size_t n)
{
	static const struct unwind_rule rule = {.cfa = UNWIND_CFA_STOP};
	uint64_t first = vaddr - 1, off;
	char before[4];
	int r;

	if (elffile_off_of_vaddr(file, vaddr - sizeof(before), &off) &&
	    elffile_read(file, off, before, sizeof(before)) == 0 &&
	    memcmp(before, "\xf3\x0f\x1e\xfa", sizeof(before)) == 0)
		first -= sizeof(before);
	if (rows_begin(rows, ROWS_SYNTHETIC, first, vaddr + n))
		return 0;
	r = rows_add(rows, first, &rule);
	if (r)
		rows_drop(rows);
	else
		r = rows_end(rows);
	return r == ROWS_FULL ? -ENOSPC : r;
}

static int add_mpn_row(struct rows *rows, uint64_t vaddr, int32_t pushed)
{
	struct unwind_rule rule = {.cfa = UNWIND_CFA_REG,
				   .cfa_reg = UNWIND_X86_SP,
				   .cfa_off = 8 + pushed,
				   .ra_off = -8};

	if (pushed == 16) {
		rule.fp = UNWIND_FP_AT_CFA;
		rule.fp_off = -24;
	}
	return rows_add(rows, vaddr, &rule);
}

/* It ends with pop %rbp; pop %rbx; ret. */
static int add_mpn(const struct elffile *file, struct rows *rows, uint64_t vaddr, size_t n)
{
	static const struct {
		uint8_t at, pushed;
	} begin[] = {{0, 0}, {1, 8}, {2, 16}}, end[] = {{1, 8}, {2, 0}};
	uint8_t code[MPN_BYTES];
	const uint8_t *pops;
	uint64_t off, last;
	int r = 0;

	if (!elffile_off_of_vaddr(file, vaddr, &off) || elffile_read(file, off, code, sizeof(code)))
		return 0;
	pops = memmem(code + n, sizeof(code) - n, "\x5d\x5b\xc3", 3);
	if (!pops)
		return 0;
	last = vaddr + (uint64_t)(pops - code);
	if (rows_begin(rows, ROWS_SYNTHETIC, vaddr, last + 3))
		return 0;
	for (size_t i = 0; i < array_size(begin) && !r; i++)
		r = add_mpn_row(rows, vaddr + begin[i].at, begin[i].pushed);
	for (size_t i = 0; i < array_size(end) && !r; i++)
		r = add_mpn_row(rows, last + end[i].at, end[i].pushed);
	if (r)
		rows_drop(rows);
	else
		r = rows_end(rows);
	return r == ROWS_FULL ? -ENOSPC : r;
}

/* The pairs of one machine's patterns; two patterns have the same. Unused ones repeat the last. */
#define PAIRS 3

struct pairs {
	uint8_t first[PAIRS], second[PAIRS];
	size_t n;
};

static void add_pair(struct pairs *pairs, uint8_t first, uint8_t second)
{
	for (size_t i = 0; i < pairs->n; i++)
		if (pairs->first[i] == first && pairs->second[i] == second)
			return;
	for (size_t i = pairs->n; i < PAIRS; i++) {
		pairs->first[i] = first;
		pairs->second[i] = second;
	}
	pairs->n++;
}

static struct pairs pairs_of(uint16_t machine)
{
	struct pairs pairs = {0};

	for (size_t i = 0; i < array_size(patterns); i++)
		if (patterns[i].machine == machine)
			add_pair(&pairs, patterns[i].bytes[patterns[i].pair],
				 patterns[i].bytes[patterns[i].pair + 1]);
	return pairs;
}

/* Bytes looked at together. */
#define STRIDE ((size_t)64)

/* Where a pair begins; @a and @b are vectors of bytes, @b of those behind. */
#define IS_PAIR(a, b, pairs, i) (((a) == (pairs)->first[i]) & ((b) == (pairs)->second[i]))
#define IS_ANY_PAIR(a, b, pairs) \
	(IS_PAIR(a, b, pairs, 0) | IS_PAIR(a, b, pairs, 1) | IS_PAIR(a, b, pairs, 2))
_Static_assert(PAIRS == 3, "the pairs above");

typedef uint8_t block __attribute__((vector_size(16)));

/* Bytes of ones where a pair begins. */
static inline block find_pairs(const uint8_t *bytes, const struct pairs *pairs)
{
	block first, second;

	memcpy(&first, bytes, sizeof(first));
	memcpy(&second, bytes + 1, sizeof(second));
	return (block)IS_ANY_PAIR(first, second, pairs);
}

/* Moves @at on by strides without a pair. One pass for all patterns: the program's whole code comes
 * here, ten times the bytes of its tables. */
static size_t skip_any(const uint8_t *bytes, size_t n, size_t at, const struct pairs *pairs)
{
	for (; at + STRIDE < n; at += STRIDE) {
		const block found =
			find_pairs(bytes + at, pairs) | find_pairs(bytes + at + 16, pairs) |
			find_pairs(bytes + at + 32, pairs) | find_pairs(bytes + at + 48, pairs);
		uint64_t words[2];

		memcpy(words, &found, sizeof(words));
		if (words[0] | words[1])
			break;
	}
	return at;
}

#ifdef __x86_64__
typedef uint8_t wide __attribute__((vector_size(32)));

static inline __attribute__((target("avx2"))) __m256i find_pairs_avx2(const uint8_t *bytes,
								      const struct pairs *pairs)
{
	wide first, second;

	memcpy(&first, bytes, sizeof(first));
	memcpy(&second, bytes + 1, sizeof(second));
	return (__m256i)IS_ANY_PAIR(first, second, pairs);
}

/* The same in half of the instructions. */
static __attribute__((target("avx2"))) size_t skip_avx2(const uint8_t *bytes, size_t n, size_t at,
							const struct pairs *pairs)
{
	for (; at + STRIDE < n; at += STRIDE) {
		const __m256i found = find_pairs_avx2(bytes + at, pairs) |
				      find_pairs_avx2(bytes + at + 32, pairs);

		if (!_mm256_testz_si256(found, found))
			break;
	}
	return at;
}
#endif

static size_t skip(const uint8_t *bytes, size_t n, size_t at, const struct pairs *pairs)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2"))
		return skip_avx2(bytes, n, at, pairs);
#endif
	return skip_any(bytes, n, at, pairs);
}

/* The first place from @at on with one of the pairs; @n without any. */
static size_t next_pair(const uint8_t *bytes, size_t n, size_t at, const struct pairs *pairs)
{
	for (at = skip(bytes, n, at, pairs); at + 1 < n; at++)
		for (size_t i = 0; i < PAIRS; i++)
			if (bytes[at] == pairs->first[i] && bytes[at + 1] == pairs->second[i])
				return at;
	return n;
}

/* Whether the pair at @at is this pattern's, in a match inside the @n bytes. */
static bool matches(const struct pattern *t, const uint8_t *bytes, size_t n, size_t at)
{
	return at >= t->pair && t->n <= n - (at - t->pair) &&
	       memcmp(bytes + at - t->pair, t->bytes, t->n) == 0;
}

/* A bit for each pattern with a match in the @n bytes: nearly always none. */
static uint32_t find_patterns(const uint8_t *bytes, size_t n, uint16_t machine,
			      const struct pairs *pairs)
{
	uint32_t found = 0;

	for (size_t at = 0; (at = next_pair(bytes, n, at, pairs)) < n; at++)
		for (size_t i = 0; i < array_size(patterns); i++)
			if (patterns[i].machine == machine && matches(&patterns[i], bytes, n, at))
				found |= 1u << i;
	return found;
}

/* Matches that begin in the first @n_begin of the @n bytes. */
static int search(const struct elffile *file, struct rows *rows, const uint8_t *bytes, size_t n,
		  size_t n_begin, uint64_t vaddr, const struct pattern *t)
{
	const uint8_t *at = bytes, *end = bytes + n;
	int r = 0;

	while (!r && (at = memmem(at, (size_t)(end - at), t->bytes, t->n)) &&
	       at < bytes + n_begin) {
		r = t->add(file, rows, vaddr + (uint64_t)(at - bytes), t->n);
		at += t->n;
	}
	return r;
}

/* Pieces overlap by a pattern, so that each match is whole. */
static int search_range(const struct elffile *file, const struct coderange *range, uint8_t *buf,
			struct rows *rows)
{
	const uint16_t machine = elffile_machine(file);
	const struct pairs pairs = pairs_of(machine);
	const uint64_t size = range->end - range->start;
	uint64_t begin, off = 0;
	int r = 0;

	if (!elffile_off_of_vaddr(file, range->start, &begin))
		return 0;
	while (!r && off < size) {
		uint64_t left = size - off;
		size_t n = left < PIECE ? (size_t)left : PIECE;
		size_t n_begin = n == left ? n : n - PATTERN_BYTES + 1;
		uint32_t found;

		r = elffile_read(file, begin + off, buf, n);
		found = r ? 0 : find_patterns(buf, n, machine, &pairs);
		for (size_t i = 0; i < array_size(patterns) && !r; i++)
			if (found >> i & 1)
				r = search(file, rows, buf, n, n_begin, range->start + off,
					   &patterns[i]);
		off += n_begin;
	}
	return r;
}

int synthetic_add_entry(const struct elffile *file, struct rows *rows)
{
	static const struct unwind_rule rule = {.cfa = UNWIND_CFA_STOP};
	const uint64_t entry = elffile_entry(file);
	int r;

	/* the lowest source: any description of the following code wins */
	if (!entry || rows_begin(rows, ROWS_DEBUG_FRAME, entry, entry + ENTRY_BYTES))
		return 0;
	r = rows_add(rows, entry, &rule);
	if (r)
		rows_drop(rows);
	else
		r = rows_end(rows);
	return r == ROWS_FULL ? -ENOSPC : r;
}

/* The bytes at @at of a linkage table are these. */
struct linkage_part {
	uint8_t at, n;
	uint8_t bytes[5];
};

/* A form of linkage tables. The first stub of a lazy table is the resolver's; it ends at @first. */
struct linkage {
	const char *section;
	uint16_t machine;
	uint8_t first;
	uint8_t stored; /* place in the resolver's stub behind its store to the stack */
	uint8_t pushed; /* place in a stub behind its push; 0: it has none */
	struct linkage_part parts[3];
};

#define RESOLVER                   \
	{                          \
		0, 2,              \
		{                  \
			0xff, 0x35 \
		}                  \
	}
#define RESOLVER_BYTES 16
#define STORE                          \
	{                              \
		0xf0, 0x7b, 0xbf, 0xa9 \
	} /* stp x16, x30, [sp, #-16]! */
#define JUMP                           \
	{                              \
		0x20, 0x02, 0x1f, 0xd6 \
	} /* br x17 */

static const struct linkage linkages[] = {
	/* push GOT+8; jmp *GOT+16; then stubs: jmp *WORD; push N; jmp to the resolver */
	{".plt",
	 EM_X86_64,
	 RESOLVER_BYTES,
	 6,
	 11,
	 {RESOLVER, {16, 2, {0xff, 0x25}}, {22, 1, {0x68}}}},
	/* with stubs for indirect branch tracking: endbr64; push N; jmp to the resolver */
	{".plt",
	 EM_X86_64,
	 RESOLVER_BYTES,
	 6,
	 9,
	 {RESOLVER, {16, 5, {0xf3, 0x0f, 0x1e, 0xfa, 0x68}}}},
	/* endbr64; jmp *WORD */
	{".plt.sec", EM_X86_64, 0, 0, 0, {{0, 4, {0xf3, 0x0f, 0x1e, 0xfa}}}},
	{".plt.got", EM_X86_64, 0, 0, 0, {{0, 4, {0xf3, 0x0f, 0x1e, 0xfa}}}},
	/* jmp *WORD */
	{".plt.got", EM_X86_64, 0, 0, 0, {{0, 2, {0xff, 0x25}}}},
	/* store; adrp x16, PAGE; ldr x17, WORD; add x16, x16, N; jump; 3 nop; then stubs of the
	 * same without a store */
	{".plt", EM_AARCH64, 2 * RESOLVER_BYTES, 4, 0, {{0, 4, STORE}, {16, 4, JUMP}}},
	/* bti c; the same */
	{".plt",
	 EM_AARCH64,
	 2 * RESOLVER_BYTES,
	 8,
	 0,
	 {{0, 4, {0x5f, 0x24, 0x03, 0xd5}}, {4, 4, STORE}, {20, 4, JUMP}}},
};

static bool is_linkage(const struct linkage *form, const uint8_t *bytes)
{
	for (size_t i = 0; i < array_size(form->parts); i++)
		if (memcmp(bytes + form->parts[i].at, form->parts[i].bytes, form->parts[i].n) != 0)
			return false;
	return true;
}

/* @cfa_off counts from the stack pointer; @plt: in a table with stubs that push. */
static int add_linkage_row(struct rows *rows, uint64_t vaddr, bool plt, int16_t cfa_off)
{
	const struct unwind_rule rule = {.cfa = plt ? UNWIND_CFA_PLT : UNWIND_CFA_REG,
					 .cfa_reg = plt ? 0 : UNWIND_X86_SP,
					 .cfa_off = cfa_off,
					 .ra_off = -8};

	return rows_add(rows, vaddr, &rule);
}

static int add_x86_linkage(const struct linkage *form, uint64_t vaddr, struct rows *rows)
{
	int r = 0;

	if (form->first)
		r = add_linkage_row(rows, vaddr, false, 16);
	if (form->first && !r)
		r = add_linkage_row(rows, vaddr + form->stored, false, 24);
	if (!r)
		r = add_linkage_row(rows, vaddr + form->first, form->pushed,
				    form->pushed ? form->pushed : 8);
	return r;
}

/* The return address is in its register; the resolver's stub stores it above another word. */
static int add_arm64_linkage(const struct linkage *form, uint64_t vaddr, struct rows *rows)
{
	static const struct unwind_rule kept = {.cfa = UNWIND_CFA_REG,
						.cfa_reg = UNWIND_ARM64_SP,
						.ra = UNWIND_RA_REG,
						.ra_off = UNWIND_ARM64_LR};
	static const struct unwind_rule stored = {
		.cfa = UNWIND_CFA_REG, .cfa_reg = UNWIND_ARM64_SP, .cfa_off = 16, .ra_off = -8};
	int r = rows_add(rows, vaddr, &kept);

	if (!r)
		r = rows_add(rows, vaddr + form->stored, &stored);
	return r ? r : rows_add(rows, vaddr + form->first, &kept);
}

static int add_linkage_rows(const struct linkage *form, const struct elffile_section *section,
			    struct rows *rows)
{
	int r;

	if (rows_begin(rows, ROWS_CODE, section->vaddr, section->vaddr + section->size))
		return 0;
	r = form->machine == EM_X86_64 ? add_x86_linkage(form, section->vaddr, rows)
				       : add_arm64_linkage(form, section->vaddr, rows);
	if (r)
		rows_drop(rows);
	else
		r = rows_end(rows);
	return r == ROWS_FULL ? -ENOSPC : r;
}

int synthetic_add_linkage(const struct elffile *file, struct rows *rows)
{
	struct elffile_section section;
	uint8_t bytes[2 * RESOLVER_BYTES];
	int r = 0;

	for (size_t i = 0; i < array_size(linkages) && !r; i++) {
		const struct linkage *form = &linkages[i];
		const size_t n = form->first ? sizeof(bytes) : form->parts[0].n;

		memset(bytes, 0, sizeof(bytes));
		if (elffile_machine(file) != form->machine ||
		    elffile_section(file, form->section, &section) || section.size < n ||
		    section.vaddr % RESOLVER_BYTES || section.vaddr + section.size < section.vaddr)
			continue;
		r = elffile_read(file, section.off, bytes, n);
		if (!r && is_linkage(form, bytes))
			r = add_linkage_rows(form, &section, rows);
	}
	return r;
}

int synthetic_add(const struct elffile *file, struct rows *rows)
{
	_cleanup_(coderanges_deinit) struct coderanges code = {0};
	_cleanup_(freep) uint8_t *buf = NULL;
	int r = coderanges_find(file, &code);

	if (r || !code.bytes || code.bytes > SYNTHETIC_SCAN_MAX)
		return r;
	buf = malloc(PIECE);
	if (!buf)
		return -ENOMEM;
	for (size_t i = 0; i < code.n && !r; i++)
		r = search_range(file, &code.items[i], buf, rows);
	return r;
}
