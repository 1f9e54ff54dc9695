// SPDX-License-Identifier: Apache-2.0
/*
 * Go's frames on arm64. The return address arrives in lr. A function with a frame stores lr at the
 * frame's lower end, at sp, and the caller's frame pointer one word below:
 *
 *	small	str x30,[sp,#-n]!; stur x29,[sp,#-8]; sub x29,sp,#8
 *	large	sub x20,sp,#n; stp x29,x30,[x20,#-8]; mov sp,x20; sub x29,sp,#8
 *	before	sub x27,sp,#n; str x30,[x27]; mov sp,x27; stur x29,[sp,#-8]; sub x29,sp,#8
 *
 * So with n bytes of frame the CFA is sp + n, or x29 + 8 + n. A function without a frame leaves
 * both in their registers, and so does assembly that allocates its own stack space.
 *
 * Sources: the Go project's src/cmd/internal/obj/arm64/obj7.go (preprocess),
 * src/runtime/asm_arm64.s (asmcgocall), of the releases in goversion.c; Arm ARM (DDI 0487), C6.2.
 */
#include "unwind/goarch.h"

#include <string.h>

#include "unwind/rows.h"

#define INSN_STUR_FP	0xf81f83fdu /* stur x29, [sp, #-8] */
#define INSN_SUB_FP	0xd10023fdu /* sub x29, sp, #8 */
#define INSN_BLR_X1	0xd63f0020u
#define INSN_REG_MASK	0xfffffc1fu /* but for the first source or base register */
#define INSN_MOV_SP	0x9100001fu /* mov sp, xN */
#define INSN_STP_FP_LR	0xa93ff81du /* stp x29, x30, [xN, #-8] */
#define INSN_STR_LR	0xf8000ffeu /* str x30, [sp, #imm9]! */
#define INSN_STR_LR_OFF 0x001ff000u /* imm9 */

#define INSN_STUR_LR	0xf80003feu /* stur x30, [sp, #imm9] */
#define INSN_STR_LR_X27 0xf83b6bfeu /* str x30, [sp, x27] */
#define INSN_STR_LR_XN	0xf900001eu /* str x30, [xN] */
#define INSN_STP_BELOW	0xa9007bfdu /* stp x29, x30, [sp, #imm7 * 8] */
#define INSN_LDR	0xf9400000u /* ldr xA, [xB, #imm12 * 8] */
#define INSN_LDR_OFF	0x003ffc00u
#define INSN_SUB_SP	0xd10003ffu /* sub sp, sp, #imm12 */

/* The instruction at @vaddr; 0, an invalid instruction, outside of the code. */
static uint32_t insn_at(const struct gocode *code, uint64_t vaddr)
{
	uint64_t off = vaddr - code->entry;
	uint32_t insn;

	if (vaddr < code->entry || off > code->n || code->n - off < sizeof(insn))
		return 0;
	memcpy(&insn, code->bytes + off, sizeof(insn));
	return insn;
}

static bool is_push_lr(uint32_t insn, int32_t delta)
{
	uint32_t imm9 = (uint32_t)-delta & 0x1ff;

	return delta > 0 && delta <= 256 && (insn & ~INSN_STR_LR_OFF) == INSN_STR_LR &&
	       (insn & INSN_STR_LR_OFF) == imm9 << 12;
}

/* Assembly's own way: first stored below sp, then sp moved. */
static bool is_sub_sp(uint32_t insn, int32_t delta)
{
	return delta > 0 && delta < 0x1000 && insn == (INSN_SUB_SP | (uint32_t)delta << 10);
}

static bool is_store_lr(uint32_t insn, int32_t delta)
{
	if (delta > 256)
		return insn == INSN_STR_LR_X27;
	return insn == (INSN_STUR_LR | ((uint32_t)-delta & 0x1ff) << 12);
}

static bool is_store_both(uint32_t insn, int32_t delta)
{
	return delta <= 504 && delta % 8 == 0 &&
	       insn == (INSN_STP_BELOW | ((uint32_t)(-(delta + 8) / 8) & 0x7f) << 15);
}

static bool is_large(const struct gocode *code, uint64_t first, int32_t delta)
{
	uint32_t last = insn_at(code, first - 4), before = insn_at(code, first - 8);

	return ((last & INSN_REG_MASK) == INSN_MOV_SP &&
		(before & INSN_REG_MASK) == INSN_STP_FP_LR) ||
	       (is_sub_sp(last, delta) && is_store_both(before, delta));
}

static bool is_small(const struct gocode *code, uint64_t first, int32_t delta)
{
	uint32_t last = insn_at(code, first - 4), before = insn_at(code, first - 8);

	return is_push_lr(last, delta) || (is_sub_sp(last, delta) && is_store_lr(before, delta)) ||
	       ((last & INSN_REG_MASK) == INSN_MOV_SP &&
		(before & INSN_REG_MASK) == INSN_STR_LR_XN);
}

static void arm64_frame(const struct gocode *code, uint64_t first, int32_t delta,
			struct goframe *ret)
{
	*ret = (struct goframe){GOARCH_NEVER, GOARCH_NEVER, false};
	if (is_small(code, first, delta)) {
		ret->ra_saved = true;
		if (insn_at(code, first) != INSN_STUR_FP)
			return;
		ret->fp_saved = first + 4;
		if (insn_at(code, first + 4) == INSN_SUB_FP)
			ret->fp_set = first + 8;
		return;
	}
	if (!is_large(code, first, delta))
		return;
	ret->ra_saved = true;
	ret->fp_saved = first;
	if (insn_at(code, first) == INSN_SUB_FP)
		ret->fp_set = first + 4;
}

static void arm64_rule(const struct goframe *f, uint64_t pc, int32_t delta, struct unwind_rule *ret)
{
	*ret = (struct unwind_rule){
		.cfa = UNWIND_CFA_REG,
		.cfa_reg = UNWIND_ARM64_SP,
		.cfa_off = delta,
		.ra = UNWIND_RA_REG,
		.ra_off = UNWIND_ARM64_LR,
	};
	if (delta > -INT16_MIN) {
		*ret = (struct unwind_rule){.cfa = UNWIND_CFA_UNSUPPORTED,
					    .cfa_off = UNSUPPORTED_RA_OFFSET};
		return;
	}
	if (delta > 0 && f->ra_saved) {
		ret->ra = UNWIND_RA_AT_CFA;
		ret->ra_off = (int16_t)-delta;
	}
	if (delta > 0 && pc >= f->fp_saved) {
		ret->fp = UNWIND_FP_AT_CFA;
		ret->fp_off = -delta - 8;
	}
}

static int32_t arm64_cfa_of_fp(int32_t delta)
{
	return delta + 8;
}

static uint64_t arm64_sp_written(const struct gocode *code)
{
	for (size_t i = 0; i + 4 <= code->n; i += 4)
		if ((insn_at(code, code->entry + i) & INSN_REG_MASK) == INSN_MOV_SP)
			return code->entry + i + 4;
	return GOARCH_NEVER;
}

static uint64_t arm64_gives_back(const struct gocode *code, uint64_t end)
{
	return end - code->entry < 4 ? end : end - 4;
}

/* The first "blr x1"; the goroutine is at sp then, and the depth after it. */
static size_t arm64_cgo_calls(const struct gocode *code, struct gocall ret[GOARCH_CALLS])
{
	for (size_t i = 0; i + 4 <= code->n; i += 4)
		if (insn_at(code, code->entry + i) == INSN_BLR_X1) {
			ret[0] = (struct gocall){
				.from = code->entry + i,
				.start = code->entry + i,
				.end = code->entry + i + 4,
				.depth = 8,
			};
			return 1;
		}
	return 0;
}

/* The offset of a 64-bit load into @to from @from; -1 for another instruction. */
static int32_t load_off(uint32_t insn, uint32_t to, uint32_t from)
{
	if ((insn & ~INSN_LDR_OFF) != (INSN_LDR | from << 5 | to))
		return -1;
	return (int32_t)((insn & INSN_LDR_OFF) >> 10) * 8;
}

/* ldr x3,[x28,#48]; ldr x28,[x3,#curg]; bl save_g; ldr x0,[x28,#56]; mov sp,x0 */
static bool arm64_come_back(const struct gocode *code, struct goswitch *ret)
{
	for (size_t i = 0; i + 20 <= code->n; i += 4) {
		const uint64_t at = code->entry + i;
		const int32_t curg = load_off(insn_at(code, at + 4), 28, 3);

		if (load_off(insn_at(code, at), 3, 28) != UNWIND_GO_M || curg <= 0 ||
		    curg > GOARCH_CURG_LIMIT ||
		    load_off(insn_at(code, at + 12), 0, 28) != UNWIND_GO_SP ||
		    insn_at(code, at + 16) != INSN_MOV_SP)
			continue;
		*ret = (struct goswitch){
			.back = at + 20,
			.g = 28,
			.curg = (uint16_t)curg,
		};
		return true;
	}
	return false;
}

const struct goarch goarch_arm64 = {
	.fp = UNWIND_ARM64_FP,
	.injected = 16, /* lr is there, as the call requires */
	.frame = arm64_frame,
	.rule = arm64_rule,
	.cfa_of_fp = arm64_cfa_of_fp,
	.sp_written = arm64_sp_written,
	.gives_back = arm64_gives_back,
	.cgo_calls = arm64_cgo_calls,
	.come_back = arm64_come_back,
};
