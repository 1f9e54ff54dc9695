// SPDX-License-Identifier: Apache-2.0
/*
 * Names of stripped files. The truth is the symbol table of the same program before strip.
 */
#include "support/test.h"

#include <fcntl.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "support/allocfail.h"
#include "support/fixture.h"
#include "support/tree.h"
#include "symbolize/debugdata.h"
#include "symbolize/debugfile.h"
#include "symbolize/source.h"
#include "symbolize/symbolizer.h"
#include "unwind/ehindex.h"

#define CACHE_BYTES (16u << 20)

struct fixture {
	struct root proc;
	struct image *whole;
	struct symbolizer *s;
};

static struct symbolizer *new_symbolizer(const struct root *proc)
{
	struct symbolizer_opts opts = {.proc = proc, .cache_bytes = CACHE_BYTES};
	struct symbolizer *s;

	assert_int_equal(symbolizer_new(&opts, &s), 0);
	return s;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(root_open("/proc", &f->proc), 0);
	f->whole = fixture_image("cxx");
	f->s = new_symbolizer(&f->proc);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	symbolizer_free(f->s);
	image_unref(f->whole);
	root_deinit(&f->proc);
	free(f);
	return 0;
}

static bool find(struct symbolizer *s, struct image *image, uint64_t vaddr, struct symbol *ret)
{
	const struct frame frame = {.image = image, .vaddr = vaddr};

	assert_int_equal(symbolizer_find(s, &frame, ret), 0);
	return ret->found;
}

/* Each byte of the code. Returns the number of addresses with a name. */
static size_t compare(struct fixture *f, struct symbolizer *s, struct image *stripped)
{
	struct symbol want, got;
	struct elffile_section text;
	size_t n = 0;

	assert_int_equal(elffile_section(f->whole->file, ".text", &text), 0);
	for (uint64_t vaddr = text.vaddr; vaddr < text.vaddr + text.size; vaddr++) {
		if (!find(f->s, f->whole, vaddr, &want) || !find(s, stripped, vaddr, &got))
			continue;
		n++;
		assert_string_equal(got.lines[0].function, want.lines[0].function);
		assert_string_equal(got.lines[0].system_name, want.lines[0].system_name);
	}
	return n;
}

static size_t compare_file(struct fixture *f, const char *name)
{
	struct image *stripped = fixture_image(name);
	size_t n;

	row_begin(name);
	assert_int_equal(pid_read(&f->proc, getpid(), &stripped->mapped_by), 0);
	n = compare(f, f->s, stripped);
	image_unref(stripped);
	return n;
}

static void test_beside_the_program(void **state)
{
	struct fixture *f = *state;
	size_t all = compare(f, f->s, f->whole);

	assert_true(all > 100);
	assert_int_equal(compare_file(f, "cxx-linked"), all);
	assert_int_equal(compare_file(f, "cxx-checked"), all);
	assert_int_equal(compare_file(f, "cxx-mini"), all);
	assert_int_equal(compare_file(f, "cxx-other"), 0);
}

/* ---------------------------------------------------------------- by build id */

/* A host with the debug file of "cxx" at @path_of_file. */
static void make_host(struct tree *t, const struct image *whole, char path[192])
{
	char directory[64];

	tree_mkdir(t->fd, "1");
	assert_int_equal(symlinkat("../host", t->fd, "1/root"), 0);
	snprintf(directory, sizeof(directory), "host/usr/lib/debug/.build-id/%.2s",
		 whole->build_id);
	tree_mkdir(t->fd, directory);
	snprintf(path, 192, "%s/%s.debug", directory, whole->build_id + 2);
}

static void copy_file(const char *from, int fd, const char *to)
{
	_cleanup_(close_fdp) int in = open(from, O_RDONLY | O_CLOEXEC);
	_cleanup_(close_fdp) int out = openat(fd, to, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct stat st;

	assert_true(in >= 0 && out >= 0);
	assert_int_equal(fstat(in, &st), 0);
	assert_int_equal(sendfile(out, in, NULL, (size_t)st.st_size), st.st_size);
}

static size_t compare_on_host(struct fixture *f, struct tree *t)
{
	struct root proc = {.fd = t->fd};
	struct symbolizer *s = new_symbolizer(&proc);
	struct image *stripped = fixture_image("cxx-linked");
	size_t n;

	stripped->path[0] = '-'; /* so that its directory has no debug file */
	n = compare(f, s, stripped);
	image_unref(stripped);
	symbolizer_free(s);
	return n;
}

static void test_by_build_id(void **state)
{
	_cleanup_(tree_deinit) struct tree t = {0};
	struct fixture *f = *state;
	char path[192], debug[FIXTURE_PATH_MAX];

	tree_init(&t);
	make_host(&t, f->whole, path);
	assert_int_equal(compare_on_host(f, &t), 0);
	copy_file(fixture_path("cxx.debug", debug), t.fd, path);
	assert_true(compare_on_host(f, &t) > 100);
}

/* Neither blocks, and no file outside the host's root is read. */
static void test_hostile_debug_file(void **state)
{
	_cleanup_(tree_deinit) struct tree t = {0};
	struct fixture *f = *state;
	char path[192], debug[FIXTURE_PATH_MAX];

	tree_init(&t);
	make_host(&t, f->whole, path);
	assert_int_equal(mkfifoat(t.fd, path, 0600), 0);
	assert_int_equal(compare_on_host(f, &t), 0);
	assert_int_equal(unlinkat(t.fd, path, 0), 0);
	assert_int_equal(symlinkat(fixture_path("cxx.debug", debug), t.fd, path), 0);
	assert_int_equal(compare_on_host(f, &t), 0);
}

/* ---------------------------------------------------------------- without names */

/* All addresses of a function have its start in their name. The unwind table lacks some of the
 * C library's start-up code. */
static void test_function_starts(void **state)
{
	struct fixture *f = *state;
	struct image *stripped = fixture_image("cxx-other");
	struct symbol known, known_at_start, got;
	struct elffile_section text;
	struct ehindex *functions;
	struct ehrange range;
	uint64_t start, last = 0;
	size_t n_bytes = 0, n_starts = 0;

	assert_int_equal(elffile_section(stripped->file, ".text", &text), 0);
	assert_int_equal(ehindex_open(stripped->file, &functions), 0);
	for (uint64_t vaddr = text.vaddr; vaddr < text.vaddr + text.size; vaddr++) {
		assert_false(find(f->s, stripped, vaddr, &got));
		// NOLINTNEXTLINE(cert-err34-c): the symbolizer has written the number
		assert_int_equal(sscanf(got.lines[0].function, "cxx-other+0x%lx", &start), 1);
		assert_true(start <= vaddr);
		if (!find(f->s, f->whole, vaddr, &known) ||
		    ehindex_find(functions, vaddr, &range) != 0)
			continue;
		n_bytes++;
		n_starts += start != last;
		last = start;
		assert_true(find(f->s, f->whole, start, &known_at_start));
		assert_string_equal(known_at_start.lines[0].function, known.lines[0].function);
	}
	print_message("%zu functions, %zu bytes\n", n_starts, n_bytes);
	assert_true(n_starts > 3 && n_starts < n_bytes / 10);
	ehindex_free(functions);
	image_unref(stripped);
}

/* ---------------------------------------------------------------- memory */

static int read_debugdata(void *ctx)
{
	struct image *image = ctx;
	void *bytes = NULL;
	size_t n;
	int r = debugdata_read(image->file, &bytes, &n);

	free(bytes);
	return r;
}

static int open_debugfile(void *ctx)
{
	struct debugfile debug = {0};
	struct source_file of = *(const struct source_file *)ctx;
	const struct elffile *file;
	int r;

	of.debug = &debug;
	r = debugfile_find(&of, &file);
	debugfile_deinit(&debug);
	return r;
}

static void test_without_memory(void **state)
{
	struct fixture *f = *state;
	struct image *mini = fixture_image("cxx-mini"), *checked = fixture_image("cxx-checked");
	struct source_file of = {.elf = checked->file,
				 .build_id = checked->build_id,
				 .path = checked->path,
				 .proc = &f->proc};

	allocfail_each(read_debugdata, mini);
	allocfail_each(open_debugfile, &of);
	image_unref(mini);
	image_unref(checked);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_beside_the_program, setup, teardown),
		cmocka_unit_test_setup_teardown(test_by_build_id, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile_debug_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_function_starts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without_memory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
