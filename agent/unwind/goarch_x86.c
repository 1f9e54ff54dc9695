// SPDX-License-Identifier: Apache-2.0
/*
 * Go's frames on x86-64. The call puts the return address on the stack. Below it the function
 * allocates its frame, and saves the caller's frame pointer in the uppermost word:
 *
 *	since 1.21	push %rbp; mov %rsp,%rbp; sub $n,%rsp
 *	before		sub $n,%rsp; mov %rbp,n-8(%rsp); lea n-8(%rsp),%rbp
 *
 * So the saved pointer is at CFA - 16, and %rbp + 16 is the CFA. A leaf function without locals
 * does not save the frame pointer, nor does some assembly. vfork takes its return address off the
 * stack, where the child would overwrite it, and keeps it in %r12 until the parent runs again.
 *
 * Sources: the Go project's src/cmd/internal/obj/x86/obj6.go (preprocess), src/runtime/asm_amd64.s
 * (asmcgocall), src/syscall/asm_linux_amd64.s (rawVforkSyscall), of the releases in goversion.c.
 */
#include "unwind/goarch.h"

#include <string.h>

#define X86_RDX		1
#define X86_R12		12
/* Bytes from the store of sp in asmcgocall to its restoration. */
#define CGO_CALL_BYTES	64
/* Bytes searched by load_g() and load_curg(). */
#define COME_BACK_BYTES 40
/* The stack pointer relative to its value at entry, after the pop. */
#define POPPED		(-8)

/* Whether the code has these bytes at @vaddr. */
static bool has(const struct gocode *code, uint64_t vaddr, const void *bytes, size_t n)
{
	uint64_t off = vaddr - code->entry;

	return vaddr >= code->entry && off <= code->n && n <= code->n - off &&
	       memcmp(code->bytes + off, bytes, n) == 0;
}

/*
 * The length of a move between %rbp and disp(%rsp), with the first two bytes @op; 0 for another
 * instruction.
 */
static size_t rbp_to_stack(const struct gocode *code, uint64_t vaddr, const char op[2],
			   uint32_t disp)
{
	uint8_t none[] = {(uint8_t)op[0], (uint8_t)op[1], 0x2c, 0x24};
	uint8_t small[] = {(uint8_t)op[0], (uint8_t)op[1], 0x6c, 0x24, (uint8_t)disp};
	uint8_t large[8] = {(uint8_t)op[0], (uint8_t)op[1], 0xac, 0x24};

	memcpy(large + 4, &disp, sizeof(disp));
	if (disp == 0 && has(code, vaddr, none, sizeof(none)))
		return sizeof(none);
	if (disp < 128 && has(code, vaddr, small, sizeof(small)))
		return sizeof(small);
	return has(code, vaddr, large, sizeof(large)) ? sizeof(large) : 0;
}

static void x86_frame(const struct gocode *code, uint64_t first, int32_t delta, struct goframe *ret)
{
	size_t save, set;

	*ret = (struct goframe){GOARCH_NEVER, GOARCH_NEVER, true};
	if (delta == 8 && has(code, first - 1, "\x55\x48\x89\xe5", 4)) {
		ret->fp_saved = first;
		ret->fp_set = first + 3;
		return;
	}
	if (delta < 8)
		return;
	save = rbp_to_stack(code, first, "\x48\x89", (uint32_t)delta - 8);
	if (!save)
		return;
	ret->fp_saved = first + save;
	set = rbp_to_stack(code, first + save, "\x48\x8d", (uint32_t)delta - 8);
	if (set)
		ret->fp_set = first + save + set;
}

static void x86_rule(const struct goframe *f, uint64_t pc, int32_t delta, struct unwind_rule *ret)
{
	*ret = (struct unwind_rule){
		.cfa = UNWIND_CFA_REG,
		.cfa_reg = UNWIND_X86_SP,
		.cfa_off = delta + 8,
		.ra_off = -8,
	};
	if (delta == POPPED) {
		ret->ra = UNWIND_RA_REG;
		ret->ra_off = X86_R12;
	}
	if (delta >= 8 && pc >= f->fp_saved) {
		ret->fp = UNWIND_FP_AT_CFA;
		ret->fp_off = -16;
	}
}

static int32_t x86_cfa_of_fp(int32_t delta)
{
	return 16;
}

/*
 * The function's first bytes with the form of an instruction that sets %rsp: a move from memory or
 * from another register, or "and". A match may lie inside another instruction. But the searched
 * functions are short and known, and test_gorows checks the matches.
 */
static uint64_t x86_sp_written(const struct gocode *code)
{
	for (size_t i = 0; i + 4 < code->n; i++) {
		const uint8_t *b = code->bytes + i;
		uint64_t next = code->entry + i + 3;

		bool to_rsp = (b[0] & 0xfe) == 0x48, from_any = (b[0] & 0xfb) == 0x48;

		if (to_rsp && b[1] == 0x8b && (b[2] & 0xf8) == 0x60) /* mov disp8(reg),%rsp */
			return next + 1;
		if (to_rsp && b[1] == 0x8b && (b[2] & 0xf8) == 0x20) /* mov (reg),%rsp */
			return next;
		if (from_any && b[1] == 0x89 && (b[2] & 0xc7) == 0xc4) /* mov reg,%rsp */
			return next;
		if (b[0] == 0x48 && b[1] == 0x83 && b[2] == 0xe4) /* and $imm8,%rsp */
			return next + 1;
		if (b[0] == 0x48 && b[1] == 0x81 && b[2] == 0xe4) /* and $imm32,%rsp */
			return next + 4;
	}
	return GOARCH_NEVER;
}

static uint64_t x86_gives_back(const struct gocode *code, uint64_t end)
{
	if (has(code, end - 4, "\x48\x83\xc4", 3)) /* add $imm8,%rsp */
		return end - 4;
	if (has(code, end - 7, "\x48\x81\xc4", 3)) /* add $imm32,%rsp */
		return end - 7;
	return has(code, end - 1, "\x5d", 1) ? end - 1 : end; /* pop %rbp */
}

/* mov reg,disp8(%rsp), @modrm naming the register; its length, 0 for another instruction. */
static size_t store_to_stack(const uint8_t *b, uint8_t modrm, uint8_t *ret_disp)
{
	if (b[0] != 0x48 || b[1] != 0x89 || b[3] != 0x24)
		return 0;
	*ret_disp = b[2] == modrm ? 0 : b[4];
	if (b[2] == modrm)
		return 4;
	return b[2] == (modrm | 0x40) ? 5 : 0;
}

/* The code from @i, where sp has been stored, to where sp is the caller's again: mov %rsi,%rsp. */
static bool find_return(const struct gocode *code, size_t i, struct gocall *ret)
{
	ret->start = code->entry + i;
	for (size_t j = i; j + 3 <= code->n && j < i + CGO_CALL_BYTES; j++)
		if (memcmp(code->bytes + j, "\x48\x89\xf4", 3) == 0) {
			ret->end = code->entry + j + 3;
			return true;
		}
	return false;
}

/* From the goroutine's stack: mov %rdi,g(%rsp); mov 8(%rdi),%rdi; sub %rdx,%rdi; mov
 * %rdi,depth(%rsp). From the thread's own: movq $0,g(%rsp); mov %rdx,depth(%rsp). */
static bool cgo_call_at(const struct gocode *code, size_t i, struct gocall *ret)
{
	static const uint8_t between[] = {0x48, 0x8b, 0x7f, 0x08, 0x48, 0x29, 0xd7};
	static const uint8_t zero[] = {0x48, 0xc7, 0x44, 0x24};
	const uint8_t *b = code->bytes + i;
	size_t n = store_to_stack(b, 0x3c, &ret->g), more;

	if (n && memcmp(b + n, between, sizeof(between)) == 0) {
		n += sizeof(between);
		more = store_to_stack(b + n, 0x3c, &ret->depth);
	} else if (memcmp(b, zero, sizeof(zero)) == 0) {
		ret->g = b[sizeof(zero)];
		n = sizeof(zero) + 5;
		more = store_to_stack(b + n, 0x14, &ret->depth);
	} else {
		return false;
	}
	return more && find_return(code, i + n + more, ret);
}

/* Before it, sub $imm8,%rsp; and $-16,%rsp. */
static size_t x86_cgo_calls(const struct gocode *code, struct gocall ret[GOARCH_CALLS])
{
	static const uint8_t align[] = {0x48, 0x83, 0xe4, 0xf0};
	size_t n = 0;

	for (size_t i = 8; i + 24 <= code->n && n < GOARCH_CALLS; i++) {
		struct gocall c = {0};

		if (memcmp(code->bytes + i - 4, align, sizeof(align)) != 0 ||
		    !cgo_call_at(code, i, &c))
			continue;
		c.from = code->entry + i - 8;
		ret[n++] = c;
	}
	return n;
}

/* The load of g: mov %fs:disp32,%rax; or mov $imm32,%rcx or mov disp32(%rip),%rcx, and then mov
 * %fs:(%rcx),%rax. The length, 0 for another instruction. */
static size_t load_g(const struct gocode *code, size_t i, struct goswitch *ret)
{
	static const uint8_t direct[] = {0x64, 0x48, 0x8b, 0x04, 0x25};
	static const uint8_t through_rcx[] = {0x64, 0x48, 0x8b, 0x01};
	const uint8_t *b = code->bytes + i;
	int64_t at;

	if (memcmp(b, direct, sizeof(direct)) == 0) {
		memcpy(&ret->tls, b + sizeof(direct), sizeof(ret->tls));
		ret->g = UNWIND_GO_TLS;
		return sizeof(direct) + 4;
	}
	if (memcmp(b + 7, through_rcx, sizeof(through_rcx)) != 0)
		return 0;
	memcpy(&ret->tls, b + 3, sizeof(ret->tls));
	ret->g = UNWIND_GO_TLS;
	if (memcmp(b, "\x48\xc7\xc1", 3) == 0)
		return 11;
	at = (int64_t)(code->entry + i + 7) + ret->tls;
	if (memcmp(b, "\x48\x8b\x0d", 3) != 0 || at > INT32_MAX || at < 0)
		return 0;
	ret->g = UNWIND_GO_TLS_AT;
	ret->tls = (int32_t)at;
	return 11;
}

/* mov 48(%rax),%rbx; mov curg(%rbx),%rax; mov %rax,the same place; mov 56(%rax),%rsp. Its length, 0
 * without a match. */
static size_t load_curg(const uint8_t *b, bool direct, struct goswitch *ret)
{
	static const uint8_t m[] = {0x48, 0x8b, 0x58, UNWIND_GO_M, 0x48, 0x8b};
	static const uint8_t sp[] = {0x48, 0x8b, 0x60, UNWIND_GO_SP};
	size_t n = sizeof(m), store = direct ? 9 : 4;
	int32_t curg;

	if (memcmp(b, m, sizeof(m)) != 0)
		return 0;
	if (b[n] == 0x43) {
		curg = b[n + 1] < 0x80 ? b[n + 1] : -1; /* the displacement is signed */
		n += 2;
	} else if (b[n] == 0x83) {
		memcpy(&curg, b + n + 1, sizeof(curg));
		n += 5;
	} else {
		return 0;
	}
	if (curg <= 0 || curg % 8 || curg > GOARCH_CURG_LIMIT || b[n] != 0x64 ||
	    memcmp(b + n + store, sp, sizeof(sp)) != 0)
		return 0;
	ret->curg = (uint16_t)curg;
	return n + store + sizeof(sp);
}

/* After the call. */
static bool x86_come_back(const struct gocode *code, struct goswitch *ret)
{
	for (size_t i = 0; i + COME_BACK_BYTES <= code->n; i++) {
		struct goswitch s = {0};
		size_t n = load_g(code, i, &s), more;

		if (!n)
			continue;
		more = load_curg(code->bytes + i + n, n == 9, &s);
		if (!more)
			continue;
		s.back = code->entry + i + n + more;
		*ret = s;
		return true;
	}
	return false;
}

const struct goarch goarch_x86 = {
	.fp = UNWIND_X86_FP,
	.popped = POPPED,
	.frame = x86_frame,
	.rule = x86_rule,
	.cfa_of_fp = x86_cfa_of_fp,
	.sp_written = x86_sp_written,
	.gives_back = x86_gives_back,
	.cgo_sp = X86_RDX,
	.cgo_calls = x86_cgo_calls,
	.come_back = x86_come_back,
};
