// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "support/rowparse.h"
#include "unwind/rowtext.h"

static void test_both_ways(void **state)
{
	static const struct {
		const char *text;
		enum cfi_machine machine;
		struct unwind_rule rule;
	} rows[] = {
		{"cfa=rsp+8 fp=same ra=cfa-8",
		 CFI_X86_64,
		 {.cfa = UNWIND_CFA_REG, .cfa_reg = 7, .cfa_off = 8, .ra_off = -8}},
		{"cfa=r10-16 fp=cfa-24 ra=cfa+0",
		 CFI_X86_64,
		 {.cfa = UNWIND_CFA_REG,
		  .cfa_reg = 10,
		  .cfa_off = -16,
		  .fp = UNWIND_FP_AT_CFA,
		  .fp_off = -24}},
		{"cfa=rsp+2147483647 fp=cfa-2147483648 ra=cfa-32768",
		 CFI_X86_64,
		 {.cfa = UNWIND_CFA_REG,
		  .cfa_reg = 7,
		  .cfa_off = INT32_MAX,
		  .fp = UNWIND_FP_AT_CFA,
		  .fp_off = INT32_MIN,
		  .ra_off = INT16_MIN}},
		{"cfa=plt11 fp=same ra=cfa-8",
		 CFI_X86_64,
		 {.cfa = UNWIND_CFA_PLT, .cfa_off = 11, .ra_off = -8}},
		{"cfa=deref(rbp-8)+16 fp=deref(rbp-32) ra=rdi",
		 CFI_X86_64,
		 {.cfa = UNWIND_CFA_DEREF,
		  .cfa_reg = 6,
		  .cfa_off = -8,
		  .cfa_add = 16,
		  .fp = UNWIND_FP_DEREF,
		  .fp_off = -32,
		  .ra = UNWIND_RA_REG,
		  .ra_off = 5}},
		{"cfa=sp+32 fp=cfa-32 ra=x30",
		 CFI_ARM64,
		 {.cfa = UNWIND_CFA_REG,
		  .cfa_reg = 31,
		  .cfa_off = 32,
		  .fp = UNWIND_FP_AT_CFA,
		  .fp_off = -32,
		  .ra = UNWIND_RA_REG,
		  .ra_off = 30}},
		{"cfa=curg(tls-8,184)+16 fp=cfa-16 ra=cfa-8",
		 CFI_X86_64,
		 {.cfa = UNWIND_CFA_GO_CURG,
		  .cfa_reg = UNWIND_GO_TLS,
		  .cfa_off = -8,
		  .cfa_add = 23 << UNWIND_GO_CURG | 2,
		  .fp = UNWIND_FP_AT_CFA,
		  .fp_off = -16,
		  .ra_off = -8}},
		{"cfa=curg(tlsat+2147483647,8184)+248 fp=curg+104 ra=cfa-8",
		 CFI_X86_64,
		 {.cfa = UNWIND_CFA_GO_CURG,
		  .cfa_reg = UNWIND_GO_TLS_AT,
		  .cfa_off = INT32_MAX,
		  .cfa_add = INT16_MAX,
		  .fp = UNWIND_FP_GO_CURG,
		  .fp_off = 104,
		  .ra_off = -8}},
		{"cfa=curg(x28+0,0)+0 fp=same ra=cfa-16",
		 CFI_ARM64,
		 {.cfa = UNWIND_CFA_GO_CURG, .cfa_reg = 28, .ra_off = -16}},
		{"gap", CFI_X86_64, {.cfa = UNWIND_CFA_GAP}},
		{"stop", CFI_ARM64, {.cfa = UNWIND_CFA_STOP}},
		{"signal", CFI_X86_64, {.cfa = UNWIND_CFA_SIGNAL}},
		{"frame", CFI_X86_64, {.cfa = UNWIND_CFA_FP}},
		{"unsupported=fp_register",
		 CFI_X86_64,
		 {.cfa = UNWIND_CFA_UNSUPPORTED, .cfa_off = UNSUPPORTED_FP_REGISTER}},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct unwind_rule rule;
		char text[ROWTEXT_MAX];

		row_begin(rows[i].text);
		assert_string_equal(rowtext_print(rows[i].machine, &rows[i].rule, text),
				    rows[i].text);
		assert_true(rowparse(rows[i].machine, strview_of(rows[i].text), &rule));
		assert_memory_equal(&rule, &rows[i].rule, sizeof(rule));
	}
}

static void test_longest(void **state)
{
	static const struct unwind_rule rule = {.cfa = UNWIND_CFA_DEREF,
						.cfa_reg = 29,
						.cfa_off = INT32_MIN,
						.cfa_add = INT16_MIN,
						.fp = UNWIND_FP_DEREF,
						.fp_off = INT32_MIN,
						.ra_off = INT16_MIN};
	char text[ROWTEXT_MAX];

	(void)state;
	assert_true(strlen(rowtext_print(CFI_ARM64, &rule, text)) <= 69);
	assert_true(text[strlen(text) - 1] == '8');
}

static void test_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"cfa=rsp+8",
		"cfa=rsp+8 fp=same",
		"cfa=rsp+8 fp=same ra=cfa-8 ",
		"cfa=rsp+8 fp=same ra=cfa-8 x",
		"cfa=rsp+8fp=same ra=cfa-8",
		" cfa=rsp+8 fp=same ra=cfa-8",
		"cfa=rsp8 fp=same ra=cfa-8",
		"cfa=rsp fp=same ra=cfa-8",
		"cfa=rip+8 fp=same ra=cfa-8",
		"cfa=x29+8 fp=same ra=cfa-8",
		"cfa=rsp+2147483648 fp=same ra=cfa-8",
		"cfa=rsp+99999999999999999999 fp=same ra=cfa-8",
		"cfa=rsp+-8 fp=same ra=cfa-8",
		"cfa=plt16 fp=same ra=cfa-8",
		"cfa=plt fp=same ra=cfa-8",
		"cfa=deref(rsp+8) fp=same ra=cfa-8",
		"cfa=deref(rsp+8)+32768 fp=same ra=cfa-8",
		"cfa=deref(rsp+8+8 fp=same ra=cfa-8",
		"cfa=curg(tls-8,184) fp=same ra=cfa-8",
		"cfa=curg(tls-8,184)+256 fp=same ra=cfa-8",
		"cfa=curg(tls-8,184)+4 fp=same ra=cfa-8",
		"cfa=curg(tls-8,184)-8 fp=same ra=cfa-8",
		"cfa=curg(tls-8,8192)+8 fp=same ra=cfa-8",
		"cfa=curg(tls-8,100)+8 fp=same ra=cfa-8",
		"cfa=curg(tls,184)+8 fp=same ra=cfa-8",
		"cfa=curg(xyz+8,184)+8 fp=same ra=cfa-8",
		"cfa=curg(tls-8)+8 fp=same ra=cfa-8",
		"cfa=rsp+8 fp=curg+104 ra=cfa-8",
		"cfa=rsp+8 fp=deref(rsp+8) ra=cfa-8",
		"cfa=rsp+8 fp=rbx ra=cfa-8",
		"cfa=rsp+8 fp=same ra=cfa-32769",
		"cfa=rsp+8 fp=same ra=same",
		"gap ",
		"unsupported",
		"unsupported=",
		"unsupported=unknown",
	};

	(void)state;
	for (size_t i = 0; i < array_size(texts); i++) {
		struct unwind_rule rule;

		row_begin(texts[i]);
		assert_false(rowparse(CFI_X86_64, strview_of(texts[i]), &rule));
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_ways),
		cmocka_unit_test(test_longest),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
