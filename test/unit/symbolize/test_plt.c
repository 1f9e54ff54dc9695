// SPDX-License-Identifier: Apache-2.0
/* The truth comes from objdump, over all stubs of real files. */
#include "support/test.h"

#include <fcntl.h>
#include <string.h>

#include "elf/elffile.h"
#include "support/allocfail.h"
#include "support/fixture.h"
#include "symbolize/plt.h"

static struct elffile *open_file(const char *path)
{
	struct elffile *file;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(elffile_open(fd, &file), 0);
	return file;
}

/* "ADDRESS <NAME@plt>:"; objdump counts the stub without a name from the next one. */
static bool parse_stub(const char *line, uint64_t *ret_vaddr, char name[PLT_NAME_MAX])
{
	char *end;

	// NOLINTNEXTLINE(cert-err34-c): objdump writes numbers
	if (sscanf(line, "%lx <%4000[^>]>:", ret_vaddr, name) != 2)
		return false;
	end = strstr(name, "@plt");
	if (!end || end[4])
		return false;
	*end = '\0';
	end = strchr(name, '@'); /* a version */
	if (end)
		*end = '\0';
	return true;
}

/* The number of stubs. */
static size_t check_file(const char *path, const char *sections)
{
	char command[FIXTURE_PATH_MAX + 128], line[2 * PLT_NAME_MAX], want[PLT_NAME_MAX],
		got[PLT_NAME_MAX];
	struct elffile *file = open_file(path);
	struct plt *plt;
	uint64_t vaddr;
	size_t n = 0;
	FILE *out;

	row_begin(path);
	assert_int_equal(plt_open(file, &plt), 0);
	snprintf(command, sizeof(command), "LC_ALL=C objdump -d %s '%s' 2>/dev/null", sections,
		 path);
	out = popen(command, "re");
	assert_non_null(out);
	while (fgets(line, sizeof(line), out)) {
		if (!parse_stub(line, &vaddr, want))
			continue;
		n++;
		for (uint64_t i = 0; i < 6; i++) {
			assert_int_equal(plt_find(plt, vaddr + i, got), 0);
			assert_string_equal(got, want);
		}
	}
	assert_true(pclose(out) >= 0);
	assert_int_equal(plt_find(plt, 0, got), PLT_NOT_FOUND);
	assert_int_equal(plt_find(plt, elffile_entry(file), got), PLT_NOT_FOUND);
	assert_int_equal(plt_find(plt, UINT64_MAX, got), PLT_NOT_FOUND);
	plt_free(plt);
	elffile_free(file);
	return n;
}

static void test_real_files(void **state)
{
	static const char all[] = "-j .plt -j .plt.sec -j .plt.got";
	char path[FIXTURE_PATH_MAX];
	FILE *out;

	(void)state;
	assert_true(check_file(fixture_path("zoo-lazy", path), all) > 3);
	assert_true(check_file(fixture_path("cxx-linked", path), all) > 0);
	out = popen("g++ -print-file-name=libstdc++.so.6", "re");
	assert_non_null(out);
	assert_non_null(fgets(path, sizeof(path), out));
	assert_int_equal(pclose(out), 0);
	path[strcspn(path, "\n")] = '\0';
	assert_true(check_file(path, all) > 500);
}

static void test_without_stubs(void **state)
{
	char path[FIXTURE_PATH_MAX];
	struct elffile *file = open_file(fixture_path("asm", path));
	struct plt *plt;

	(void)state;
	assert_int_equal(plt_open(file, &plt), PLT_ABSENT);
	elffile_free(file);
}

static int open_plt(void *ctx)
{
	struct plt *plt;
	int r = plt_open(ctx, &plt);

	if (!r)
		plt_free(plt);
	return r;
}

static void test_without_memory(void **state)
{
	char path[FIXTURE_PATH_MAX];
	struct elffile *file = open_file(fixture_path("zoo-lazy", path));

	(void)state;
	allocfail_each(open_plt, file);
	elffile_free(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real_files),
		cmocka_unit_test(test_without_stubs),
		cmocka_unit_test(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
