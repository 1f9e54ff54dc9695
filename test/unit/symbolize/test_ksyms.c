// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>
#include <sys/stat.h>

#include "base/root.h"
#include "support/allocfail.h"
#include "symbolize/ksyms.h"

static const char listing[] = "0000000000000000 A fixed_percpu_data\n"
			      "ffffffff80ff0000 t before_text\n"
			      "ffffffff81000000 T _stext\n"
			      "ffffffff81000000 T startup_64\n"
			      "ffffffff81000040 t local_one\n"
			      "ffffffff81000040 W weak_one\n"
			      "ffffffff81000040 T __the_public_one\n"
			      "ffffffff81000040 T the_public_one\n"
			      "ffffffff810000c0 t __pfx_padded\n"
			      "ffffffff810000d0 t padded\n"
			      "ffffffff810000e0 t __pfx_other_name\n"
			      "ffffffff810000f0 t __pfx_last_function\n"
			      "ffffffff81000100 t last_function\n"
			      "ffffffff810001e0 t __pfx_not_before_data\n"
			      "ffffffff81000200 T _etext\n"
			      "ffffffff81000200 D some_data\n"
			      "ffffffff82000000 t init_code\n"
			      "ffffffffa0000000 t mod_first\t[mod]\n"
			      "ffffffffa0000010 d mod_data\t[mod]\n"
			      "ffffffffa0100000 t mod_last\t[mod]\n"
			      "ffffffffc0000000 t bpf_prog_6deef7357e7b4530_sd_fw_egress\t[bpf]\n"
			      "fffffffeffffff00 t edge\t[odd]\n"
			      "ffff800010000000 t lowest\t[low]\n"
			      "ffff800010000000 T lowest_global\t[low]\n"
			      "ffffffff00000080 t behind_edge\t[odd]\n"
			      "ffff800010000040 d low_data\t[low]\n"
			      "ffff800010000020 t second_lowest\t[low]\n"
			      "not a line\n"
			      "ffffffffd0000000 tt two_letters\n"
			      "ffffffffd0000000\n";

struct row {
	const char *name;
	uint64_t pc;
	const char *want; /* NULL: not found */
	uint64_t start;
};

static const struct row rows[] = {
	{"zero", 0, NULL, 0},
	{"before the text", 0xffffffff80ff0000, NULL, 0},
	{"first, two names", 0xffffffff81000000, "startup_64", 0xffffffff81000000},
	{"best of four", 0xffffffff81000041, "the_public_one", 0xffffffff81000040},
	{"its last byte", 0xffffffff810000bf, "the_public_one", 0xffffffff81000040},
	{"room before a function", 0xffffffff810000c0, "padded", 0xffffffff810000c0},
	{"behind the room", 0xffffffff810000df, "padded", 0xffffffff810000c0},
	{"room of another function", 0xffffffff810000e0, "__pfx_other_name", 0xffffffff810000e0},
	{"last function", 0xffffffff810001df, "last_function", 0xffffffff810000f0},
	{"room before no function", 0xffffffff810001ff, "__pfx_not_before_data",
	 0xffffffff810001e0},
	{"behind the text", 0xffffffff81000200, NULL, 0},
	{"code that was thrown away", 0xffffffff82000000, NULL, 0},
	{"module", 0xffffffffa000000f, "mod_first [mod]", 0xffffffffa0000000},
	{"module's data", 0xffffffffa0000010, NULL, 0},
	{"module's last function", 0xffffffffa013ffff, "mod_last [mod]", 0xffffffffa0100000},
	{"far behind it", 0xffffffffa0140000, NULL, 0},
	{"BPF program", 0xffffffffc0000000, "bpf_prog_6deef7357e7b4530_sd_fw_egress [bpf]",
	 0xffffffffc0000000},
	{"highest", UINT64_MAX, NULL, 0},
	/* out of order in the list, and with another high half of the address */
	{"below the lowest", 0xffff80000fffffff, NULL, 0},
	{"lowest, two names", 0xffff80001000001f, "lowest_global [low]", 0xffff800010000000},
	{"second lowest", 0xffff80001000003f, "second_lowest [low]", 0xffff800010000020},
	{"a gap", 0xffff800010000040, NULL, 0},
	{"before the edge", 0xfffffffefffffeff, NULL, 0},
	{"at the edge", 0xfffffffeffffffff, "edge [odd]", 0xfffffffeffffff00},
	{"over the edge", 0xffffffff0000007f, "edge [odd]", 0xfffffffeffffff00},
	{"behind the edge", 0xffffffff00000080, "behind_edge [odd]", 0xffffffff00000080},
	{"far behind the edge", 0xffffffff00040080, NULL, 0},
};

/* A directory with a file kallsyms of this text, or without the file. */
static void make_root(char dir[], const char *text, struct root *ret)
{
	char path[128];
	FILE *f;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/kallsyms", dir);
	f = text ? fopen(path, "we") : NULL;
	if (f) {
		fputs(text, f);
		fclose(f);
	}
	assert_int_equal(root_open(dir, ret), 0);
}

static void remove_root(const char *dir, struct root *root)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/kallsyms", dir);
	unlink(path);
	rmdir(dir);
	root_deinit(root);
}

static void test_rows(void **state)
{
	char dir[] = "/tmp/podprof-ksyms.XXXXXX";
	struct root root = ROOT_INIT;
	struct ksyms *k;

	(void)state;
	make_root(dir, listing, &root);
	assert_int_equal(ksyms_load(&root, &k), 0);
	assert_int_equal(ksyms_n(k), 13);
	for (size_t i = 0; i < array_size(rows); i++) {
		struct ksyms_name name = {0};
		uint64_t start = 0;

		row_begin(rows[i].name);
		assert_int_equal(ksyms_find(k, rows[i].pc, &name, &start),
				 rows[i].want ? 0 : KSYMS_NOT_FOUND);
		if (!rows[i].want)
			continue;
		assert_string_equal(name.text, rows[i].want);
		assert_true(start == rows[i].start);
	}
	ksyms_free(k);
	remove_root(dir, &root);
}

struct load_row {
	const char *name;
	const char *text;
	int want;
};

static const struct load_row load_rows[] = {
	{"no file", NULL, KSYMS_ABSENT},
	{"empty", "", KSYMS_ABSENT},
	{"nonsense", "a\nb c d\n\n", KSYMS_ABSENT},
	{"hidden", "0000000000000000 T _stext\n0000000000000000 t x\t[m]\n", KSYMS_HIDDEN},
	{"data only", "ffffffff81000000 D x\n", KSYMS_ABSENT},
	{"one", "ffffffff81000000 T x", KSYMS_OK},
};

static void test_load(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(load_rows); i++) {
		char dir[] = "/tmp/podprof-ksyms.XXXXXX";
		struct root root = ROOT_INIT;
		struct ksyms *k = NULL;

		row_begin(load_rows[i].name);
		make_root(dir, load_rows[i].text, &root);
		assert_int_equal(ksyms_load(&root, &k), load_rows[i].want);
		assert_int_equal(k != NULL, load_rows[i].want == KSYMS_OK);
		ksyms_free(k);
		remove_root(dir, &root);
	}
}

/* Every function of this machine's kernel, if readable: its address has a name that kallsyms lists
 * for this address. */
static void test_this_kernel(void **state)
{
	struct root proc = ROOT_INIT;
	unsigned long long start = 0, text_start = 0;
	char line[1024], name[768], type;
	size_t n = 0, n_same = 0;
	struct ksyms *k = NULL;
	FILE *f;
	int r;

	(void)state;
	assert_int_equal(root_open("/proc", &proc), 0);
	r = ksyms_load(&proc, &k);
	root_deinit(&proc);
	assert_true(r == 0 || r == KSYMS_HIDDEN);
	if (r)
		return; /* the right result with hidden addresses */
	f = fopen("/proc/kallsyms", "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		struct ksyms_name found;
		const char *shown = name;
		uint64_t at;

		// NOLINTNEXTLINE(cert-err34-c): readelf, nm and the kernel write numbers
		if (sscanf(line, "%llx %c %767s", &start, &type, name) != 3)
			continue;
		if (strcmp(name, "_stext") == 0)
			text_start = start;
		if (ksyms_find(k, start, &found, &at) != 0)
			continue;
		n++;
		assert_true(at <= start);
		if (start == at && strncmp(name, "__pfx_", 6) == 0)
			shown += 6;
		n_same += start - at <= 64 && strncmp(found.text, shown, strlen(shown)) == 0;
	}
	fclose(f);
	print_message("%zu of %zu, %zu bytes\n", n_same, n, ksyms_bytes(k));
	assert_true(n_same > 10000 && n_same >= ksyms_n(k) * 99 / 100);
	assert_true(ksyms_text_start(k) != 0 && ksyms_text_start(k) == text_start);
	ksyms_free(k);
}

static int load_and_free(void *ctx)
{
	struct ksyms *k = NULL;
	int r = ksyms_load(ctx, &k);

	ksyms_free(k);
	return r;
}

static void test_out_of_memory(void **state)
{
	char dir[] = "/tmp/podprof-ksyms.XXXXXX";
	struct root root = ROOT_INIT;

	(void)state;
	make_root(dir, listing, &root);
	allocfail_survive(load_and_free, &root); /* shrinking may fail */
	remove_root(dir, &root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_this_kernel),
		cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
