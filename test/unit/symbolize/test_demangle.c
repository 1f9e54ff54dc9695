// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "symbolize/demangle.h"

struct row {
	const char *mangled;
	const char *want; /* NULL: unchanged */
};

static const struct row rows[] = {
	/* C++ */
	{"_ZN3foo3barEv", "foo::bar"},
	{"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back"},
	{"_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()"},
	{"_ZN12_GLOBAL__N_11fEv", "(anonymous namespace)::f"},
	{"_ZN1AC2Ev", "A::A"},
	{"_ZN5boost6detailltERKNS_1AES3_", "boost::detail::operator<"},
	{"_Z1fIJilEEvDpT_", "f<int, long>"},
	{"_ZThn8_N1A1fEv", "non-virtual thunk to A::f()"},
	{"_ZN3foo3barEv.cold", "foo::bar"},
	{"_ZNSs4swapERSs", "std::string::swap"},
	/* Rust, legacy and v0 */
	{"_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "core::ptr::drop_in_place"},
	{"_ZN77_$LT$alloc..raw_vec..RawVec$LT$T$C$A$GT$$u20$as$u20$core..ops..drop..Drop$GT$"
	 "4drop17h79c0a3ed1d6d3d4fE",
	 "<alloc::raw_vec::RawVec<T,A> as core::ops::drop::Drop>::drop"},
	{"_RNvC6_123foo3bar", "123foo::bar"},
	{"_RINvC1a1fTllEE", "a::f::<(i32, i32)>"},
	{"_RNvC1au8gdel_5qa", "a::gödel"},
	{"_RINvC1a1fFG_RL0_hEuKj2a_E", "a::f::<for<'a> fn(&'a u8), 42>"},
	{"_RNvYNtC1a1bNtC1c1d1e.llvm.77", "<a::b as c::d>::e"},
	{"_RNvC3fooXu", NULL},
	{"_RNvC1a1fC1", NULL},
	/* endless otherwise: hidden lifetimes, a cycle */
	{"_RNvMIC1aFGzzzzzzzz_EuEC1b1f", NULL},
	{"_RINvC1a1_RNvC1au8gdel_5qaB_b", NULL},
	{"_RINvC1a1fTB8_lEE", NULL},
	/* OCaml */
	{"camlStdlib__List__map_487", "Stdlib.List.map_487"},
	{"camlStdlib__Bytes__$2b$2b_127", "Stdlib.Bytes.++_127"},
	{"camlStdlib.List.map_487", "Stdlib.List.map_487"},
	{"camlMain___private_1", "Main._private_1"},
	{"camlMain", NULL},
	{"camlMain__", NULL},
	{"caml_alloc", NULL},
	{"camlp4__main", NULL},
	{"camlMain__$2_1", NULL},
	{"camlMain__$20_1", NULL},
	{"camlMain__$7f_1", NULL},
	{"camlMain__$", NULL},
	/* clones */
	{"_ZN4core3ptr13drop_in_place17h0123456789abcdefE.llvm.12345", "core::ptr::drop_in_place"},
	{"_ZN3foo3barEv.constprop.0.isra.0", "foo::bar"},
	{"copy.cold", "copy"},
	{"copy.cold.12", "copy"},
	{"copy.constprop.0", "copy"},
	{"copy.part.1.isra.0.cold", "copy"},
	{"copy.llvm.8811223344", "copy"},
	{"copy.lto_priv.0", "copy"},
	{"copy.localalias", "copy"},
	{"x.cold", "x"},
	{".cold", NULL},
	{"cold", NULL},
	{"copy.cold.", NULL},
	{"copy.coldest", NULL},
	{"copy.isra", NULL},
	{"copy.isra.x", NULL},
	{"copy.0", NULL},
	{"copy.avx2.0", NULL},
	/* no mangled names */
	{"", NULL},
	{"_", NULL},
	{"main", NULL},
	{"_start", NULL},
	{"_Z", NULL},
	{"_R", NULL},
	{"_Zebra", NULL},
	{"main.main", NULL},
	{"_ZN3foo3ba", NULL},
};

static void check(const char *mangled, const char *want)
{
	char name[DEMANGLE_NAME_MAX] = "untouched";

	assert_int_equal(demangle(mangled, name), want != NULL);
	assert_string_equal(name, want ? want : "untouched");
}

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		row_begin(rows[i].mangled);
		check(rows[i].mangled, rows[i].want);
	}
}

/* Substitution @n, up to 36: "S_", "S0_", ... "SZ_". */
static char *append_substitution(char *to, unsigned int n)
{
	*to++ = 'S';
	if (n)
		*to++ = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[n - 1];
	*to++ = '_';
	return to;
}

/* f<@before A<A<..., X>, X>>: each level repeats the inner one. */
static void make_nested(char *to, const char *before, unsigned int levels)
{
	to += sprintf(to, "_Z1fI%s1AI", before);
	for (unsigned int i = 0; i < levels; i++)
		to += sprintf(to, "S0_I");
	to += sprintf(to, "iiE");
	for (unsigned int i = 0; i < levels; i++) {
		to = append_substitution(to, i + 2);
		*to++ = 'E';
	}
	sprintf(to, "Evv");
}

static void test_growing_names(void **state)
{
	char mangled[4096], name[DEMANGLE_NAME_MAX];

	(void)state;
	make_nested(mangled, "", 30);
	assert_true(demangle(mangled, name));
	assert_int_equal(strlen(name), DEMANGLE_NAME_MAX - 1);
	assert_string_equal(name + DEMANGLE_NAME_MAX - 4, "...");
	assert_memory_equal(name, "f<A<A<A<", 8);

	/* no output, but endless work if tried */
	make_nested(mangled, "Dp", 34);
	assert_false(demangle(mangled, name));
	make_nested(mangled, "Dp", 4);
	assert_true(demangle(mangled, name));
}

/* (T, T), each time of the previous type. */
static void test_growing_rust_names(void **state)
{
	char mangled[1024], name[DEMANGLE_NAME_MAX];
	int n = sprintf(mangled, "_RINvC1a1fTllE"), before = 8;

	(void)state;
	for (unsigned int i = 0; i < 6; i++) {
		int start = n - 2;
		char at = (char)(before - 1 < 10 ? '0' + before - 1 : 'a' + before - 11);

		if (before - 1 >= 36)
			at = (char)('A' + before - 37);
		assert_true(before <= 62);
		n += sprintf(mangled + n, "TB%c_B%c_E", at, at);
		before = start;
	}
	sprintf(mangled + n, "E");
	assert_true(demangle(mangled, name));
	assert_true(strlen(name) > 1000);
	assert_memory_equal(name, "a::f::<(i32, i32), ((i32, i32), (i32, i32)), (((i32", 50);
}

static void test_lengths(void **state)
{
	char mangled[4096], name[DEMANGLE_NAME_MAX];
	int n = sprintf(mangled, "_Z1017");

	(void)state;
	memset(mangled + n, 'a', 1017);
	sprintf(mangled + n + 1017, "v");
	assert_int_equal(strlen(mangled), 1024);
	assert_true(demangle(mangled, name));
	assert_int_equal(strlen(name), 1017);
	sprintf(mangled + n + 1017, "vv");
	assert_false(demangle(mangled, name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_growing_names),
		cmocka_unit_test(test_growing_rust_names),
		cmocka_unit_test(test_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
