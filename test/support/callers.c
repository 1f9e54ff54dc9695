// SPDX-License-Identifier: Apache-2.0
#include "support/callers.h"

#include <sys/uio.h>

#include "support/test.h"

/* Bytes of a call instruction, with the prefixes of calls of __tls_get_addr(). */
#define CALL_MAX     8
#define INSN_SYSCALL 0x050f
#define NR_SIGRETURN 15
/* From the handler's first sp: a return address, then struct ucontext. */
#define CONTEXT_OFF  8
#define CONTEXT_PC   (40 + 16 * 8)

uint64_t callers_peek(const struct callers *c, uint64_t address)
{
	uint64_t word = 0;
	struct iovec to = {&word, sizeof(word)}, from = {(void *)(uintptr_t)address, sizeof(word)};

	assert_int_equal(process_vm_readv(c->tid, &to, 1, &from, 1, 0), sizeof(word));
	return word;
}

static void push(struct callers *c, uint64_t pc, uint64_t slot, uint64_t context)
{
	assert_true(c->n < CALLERS_MAX);
	c->list[c->n++] = (struct caller){pc, slot, context};
	if (c->n > c->depth)
		c->depth = c->n;
}

void callers_push(struct callers *c, uint64_t pc)
{
	push(c, pc, UINT64_MAX, 0);
}

/* The interrupted code has not called the handler, so its pc is not a return address: the stored
 * value is one larger. */
void callers_signalled(struct callers *c, const struct hostwalk_regs *now)
{
	push(c, 0, UINT64_MAX, now->sp + CONTEXT_OFF + CONTEXT_PC);
	push(c, callers_peek(c, now->sp) + 1, now->sp, 0);
}

void callers_follow(struct callers *c, const struct hostwalk_regs *before,
		    const struct hostwalk_regs *now)
{
	const uint64_t insn = callers_peek(c, before->pc);
	const uint64_t top = callers_peek(c, now->sp);

	if ((insn & 0xffff) == INSN_SYSCALL && before->numbered[0] == NR_SIGRETURN) {
		c->n--;
		return;
	}
	while (c->n && c->list[c->n - 1].slot < now->sp)
		c->n--;
	/* to a caller from before the first step */
	if (c->n && c->list[c->n - 1].slot == UINT64_MAX && c->list[c->n - 1].pc == now->pc &&
	    now->sp == before->sp + 8 && callers_peek(c, before->sp) == now->pc)
		c->n--;
	if (now->sp == before->sp - 8 && top > before->pc && top <= before->pc + CALL_MAX &&
	    now->pc != top)
		push(c, top, now->sp, 0);
}

uint64_t callers_word(const struct callers *c, const struct hostwalk_regs *now, size_t i)
{
	const struct caller *caller = &c->list[c->n - i];

	if (!i)
		return now->pc - now->in_syscall;
	return caller->context ? callers_peek(c, caller->context) + 1 : caller->pc;
}
