// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/nsec.h"
#include "base/root.h"
#include "support/allocfail.h"
#include "support/fixture.h"
#include "support/gofixture.h"
#include "support/gotable.h"
#include "symbolize/lookup.h"
#include "symbolize/source.h"
#include "symbolize/symbolizer.h"

#define CACHE_BYTES   (16u << 20)
#define SILENT_IMAGES (LOOKUP_BLOCKED_MAX / 2 + 2)

struct fixture {
	struct root proc;
	struct symbolizer *s;
};

static void make_symbolizer(struct fixture *f, size_t cache_bytes)
{
	struct symbolizer_opts opts = {.proc = &f->proc, .cache_bytes = cache_bytes};

	assert_int_equal(symbolizer_new(&opts, &f->s), 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(root_open("/proc", &f->proc), 0);
	make_symbolizer(f, CACHE_BYTES);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	symbolizer_free(f->s);
	root_deinit(&f->proc);
	free(f);
	return 0;
}

static struct image *open_image(const char *path)
{
	struct image *image;
	int elf, fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(image_new_file(fd, path, &image, &elf), 0);
	return image;
}

static struct image *open_fixture(const char *name)
{
	char path[FIXTURE_PATH_MAX];

	return open_image(fixture_path(name, path));
}

static struct symbol find(struct fixture *f, struct image *image, uint64_t vaddr)
{
	struct frame frame = {.image = image, .vaddr = vaddr};
	struct symbol sym;

	assert_int_equal(symbolizer_find(f->s, &frame, &sym), 0);
	assert_true(sym.n_lines >= 1);
	assert_false(sym.lines[sym.n_lines - 1].inlined);
	return sym;
}

static void check_name(const struct symbol *sym, bool found, const char *function)
{
	assert_int_equal(sym->found, found);
	assert_int_equal(sym->n_lines, 1);
	assert_string_equal(sym->lines[0].function, function);
}

/* A symbol's address, by nm. */
static uint64_t ask_nm(const char *path, const char *name)
{
	char command[FIXTURE_PATH_MAX + 32], line[1024], symbol[512], type;
	unsigned long long at, vaddr = 0;
	FILE *out;

	snprintf(command, sizeof(command), "nm '%s'", path);
	out = popen(command, "re"); // NOLINT(bugprone-command-processor,cert-env33-c)
	assert_non_null(out);
	while (fgets(line, sizeof(line), out))
		// NOLINTNEXTLINE(cert-err34-c): readelf, nm and the kernel write numbers
		if (sscanf(line, "%llx %c %511s", &at, &type, symbol) == 3 &&
		    strcmp(symbol, name) == 0)
			vaddr = at;
	assert_int_equal(pclose(out), 0);
	assert_true(vaddr != 0);
	return vaddr;
}

static void test_programs(void **state)
{
	struct image *c = open_fixture("plain-pie"), *cxx = open_fixture("cxx");
	struct fixture *f = *state;
	struct symbol sym;

	sym = find(f, c, ask_nm(c->path, "global_function"));
	check_name(&sym, true, "global_function");
	assert_ptr_equal(sym.lines[0].function, sym.lines[0].system_name);
	assert_string_equal(sym.lines[0].file, "");

	sym = find(f, cxx, ask_nm(cxx->path, "_ZNK5outer3boxIiE3getEv") + 1);
	check_name(&sym, true, "outer::box<int>::get");
	assert_string_equal(sym.lines[0].system_name, "_ZNK5outer3boxIiE3getEv");

	sym = find(f, c, 0x10);
	check_name(&sym, false, "plain-pie+0x10");
	sym = find(f, c, UINT64_MAX);
	check_name(&sym, false, "plain-pie+0xffffffffffffffff");
	image_unref(c);
	image_unref(cxx);
}

static void test_without_names(void **state)
{
	struct image *stripped = open_fixture("plain-stripped"), *text, *anon, *unknown, *odd;
	struct fixture *f = *state;
	struct symbol sym;

	text = open_image("Makefile");
	assert_null(text->file);
	assert_int_equal(image_new(IMAGE_ANON, "[anon]", &anon), 0);
	assert_int_equal(image_new(IMAGE_UNKNOWN, "[unknown]", &unknown), 0);
	assert_int_equal(image_new(IMAGE_FILE,
				   "/x/a\xff"
				   "b",
				   &odd),
			 0);
	sym = find(f, stripped, 0x1234);
	check_name(&sym, false, "plain-stripped+0x1234");
	sym = find(f, text, 0x1234);
	check_name(&sym, false, "Makefile+0x1234");
	sym = find(f, anon, 0x7f0000001234);
	check_name(&sym, false, "[anon]");
	sym = find(f, unknown, 0x7f0000001234);
	check_name(&sym, false, "[unknown]");
	sym = find(f, odd, 1);
	check_name(&sym, false, "a?b+0x1");
	image_unref(stripped);
	image_unref(text);
	image_unref(anon);
	image_unref(unknown);
	image_unref(odd);
}

static void test_vdso(void **state)
{
	struct fixture *f = *state;
	struct image *vdso;
	size_t n_found = 0;

	assert_int_equal(image_new_vdso(&vdso), 0);
	assert_non_null(vdso->file);
	for (uint64_t vaddr = 0; vaddr < elffile_size(vdso->file); vaddr += 16) {
		struct symbol sym = find(f, vdso, vaddr);

		/* x86 calls the functions __vdso_x, arm64 __kernel_x */
		n_found += sym.found && strstr(sym.lines[0].function, "gettime") != NULL;
		if (!sym.found)
			assert_memory_equal(sym.lines[0].function, "[vdso]+0x", 9);
	}
	assert_true(n_found > 0);
	image_unref(vdso);
}

/* With hidden kernel addresses there is nothing to look up or find. */
static void test_kernel(void **state)
{
	struct fixture *f = *state;
	unsigned long long at = 0, pc = 0;
	char line[1024], name[512], type;
	FILE *kallsyms = fopen("/proc/kallsyms", "re");
	struct image *kernel;
	struct symbol sym;

	assert_non_null(kallsyms);
	while (fgets(line, sizeof(line), kallsyms))
		// NOLINTNEXTLINE(cert-err34-c): readelf, nm and the kernel write numbers
		if (sscanf(line, "%llx %c %511s", &at, &type, name) == 3 &&
		    strcmp(name, "vfs_read") == 0)
			pc = at;
	fclose(kallsyms);
	assert_int_equal(image_new(IMAGE_KERNEL, "[kernel.kallsyms]", &kernel), 0);
	sym = find(f, kernel, pc + 1);
	check_name(&sym, pc != 0, pc ? "vfs_read" : "[kernel]");
	sym = find(f, kernel, 0xffffffffffffff00);
	check_name(&sym, false, "[kernel]");
	image_unref(kernel);
}

static void test_go(void **state)
{
	const char *gos[GOFIXTURE_GOS_MAX];
	size_t n_main = 0, n_inlined = 0, n_lines = 0;
	_cleanup_(freep) char *path = NULL;
	struct elffile_section text;
	struct fixture *f = *state;
	struct image *image;

	gofixture_gos(gos);
	path = gofixture_build("test/fixtures/go/lines", gos[0], "stripped");
	image = open_image(path);
	assert_int_equal(elffile_section(image->file, ".text", &text), 0);
	for (uint64_t off = 0; off < text.size; off += 61) {
		struct symbol sym = find(f, image, text.vaddr + off);

		n_main += strcmp(sym.lines[sym.n_lines - 1].function, "main.main") == 0;
		n_lines += sym.lines[0].line != 0 && sym.lines[0].file[0] != '\0';
		n_inlined += sym.n_lines > 1;
		for (size_t i = 0; i + 1 < sym.n_lines; i++)
			assert_true(sym.lines[i].inlined);
	}
	assert_true(n_main > 0 && n_inlined > 100 && n_lines > 1000);
	image_unref(image);
}

/* With room for less than one table, each image costs a load, and the answers are the same. */
static void test_small_cache(void **state)
{
	struct image *images[] = {open_fixture("plain-pie"), open_fixture("plain-fixed"),
				  open_fixture("plain-static")};
	uint64_t at[array_size(images)];
	struct fixture f = {.proc = ((struct fixture *)*state)->proc};

	make_symbolizer(&f, 1);
	for (size_t i = 0; i < array_size(images); i++)
		at[i] = ask_nm(images[i]->path, "local_function");
	for (size_t i = 0; i < 12; i++) {
		struct symbol sym = find(&f, images[i % 3], at[i % 3]);

		check_name(&sym, true, "local_function");
		/* this table and the caller's, and no others */
		assert_int_equal(images[i % 3]->refs, 2);
		assert_int_equal(images[(i + 1) % 3]->refs, 1);
		assert_int_equal(images[(i + 2) % 3]->refs, 1);
	}
	symbolizer_free(f.s);
	for (size_t i = 0; i < array_size(images); i++)
		image_unref(images[i]);
}

static void test_many_strings(void **state)
{
	struct fixture *f = *state;
	struct image *image;
	struct symbol sym;
	uint64_t i = 0;

	assert_int_equal(image_new(IMAGE_FILE, "/lib/some.so", &image), 0);
	do
		sym = find(f, image, i++);
	while (strcmp(sym.lines[0].function, "[too many names]") != 0);
	assert_true(i > 100000);
	assert_true(symbolizer_bytes(f->s) < (80u << 20));
	symbolizer_release(f->s);
	sym = find(f, image, i);
	assert_memory_equal(sym.lines[0].function, "some.so+0x", 10);
	image_unref(image);
}

/* A hostile line table: two functions hidden from traces are inlined into each other. */
static void test_go_circle(void **state)
{
	struct gotable_opts opts = {.minor = 20};
	struct fixture *f = *state;
	struct image *image;
	struct gotable t;
	struct symbol sym;
	int elf, fd = memfd_create("circle", MFD_CLOEXEC);

	gotable_build(&opts, &t);
	gotable_put(&t, t.tree, 21, 1); /* func_id of the outer entry: a wrapper */
	gotable_put(&t, t.tree + 8, 0x14,
		    4); /* the call is inside the inner function, its own callee */
	gotable_put(&t, t.tree + 16, 21, 1);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, t.data, t.n), t.n);
	assert_int_equal(image_new_file(fd, "/circle", &image, &elf), 0);
	sym = find(f, image, GOTABLE_BASE + t.text + 0x14);
	assert_string_equal(sym.lines[0].function, "circle+0x400114");
	sym = find(f, image, GOTABLE_BASE + t.text + 0x20);
	assert_string_equal(sym.lines[0].function, "main.outer");
	image_unref(image);
}

static int find_one(void *ctx)
{
	struct symbolizer_opts opts = {.cache_bytes = CACHE_BYTES};
	struct frame frame = {.image = ctx, .vaddr = 0x10};
	struct symbolizer *s = NULL;
	struct symbol sym;
	int r = symbolizer_new(&opts, &s);

	if (!r)
		r = symbolizer_find(s, &frame, &sym);
	symbolizer_free(s);
	return r;
}

static void test_out_of_memory(void **state)
{
	struct image *image = open_fixture("plain-pie");

	(void)state;
	allocfail_survive(find_one, image); /* a table may fail to shrink, a string to be kept */
	assert_int_equal(image->refs, 1);
	image_unref(image);
}

/* ---------------------------------------------------------------- sources that do not answer */

/* A source whose file server is silent until the gate opens, or that has its names later. */
struct silent {
	sem_t gate;
	_Atomic int n_opened, n_freed;
	bool blocks;
	int later; /* open() says so this often */
};

static struct silent silent;

static int silent_open(const struct elffile *file, void **ret)
{
	assert_non_null(file);
	if (silent.later-- > 0)
		return SOURCE_LATER;
	silent.n_opened++;
	while (silent.blocks && sem_wait(&silent.gate) && errno == EINTR)
		continue;
	*ret = &silent;
	return SOURCE_OK;
}

static int silent_find(void *opened, uint64_t vaddr, struct symbol_lines *lines)
{
	const struct symbol_line even = {.function = "even", .system_name = "_even", .file = ""};

	assert_ptr_equal(opened, &silent);
	return vaddr % 2 ? (int)SOURCE_NONE : symbol_lines_add(lines, &even);
}

static size_t silent_bytes(const void *opened)
{
	(void)opened;
	return 1;
}

static void silent_free(void *opened)
{
	(void)opened;
	silent.n_freed++;
}

static const struct symbol_source silent_source = {"silent", silent_open, silent_find, silent_bytes,
						   silent_free};

static struct symbolizer *silent_symbolizer(const struct fixture *f)
{
	static const struct symbol_source *const sources[] = {&silent_source};
	const struct symbolizer_opts opts = {
		.proc = &f->proc,
		.cache_bytes = CACHE_BYTES,
		.guarded = true,
		.blocked_ns = 100 * NSEC_PER_MSEC,
		.sources = sources,
		.n_sources = 1,
	};
	struct symbolizer *s;

	assert_int_equal(symbolizer_new(&opts, &s), 0);
	return s;
}

static struct symbol find_with(struct symbolizer *s, struct image *image, uint64_t vaddr)
{
	struct symbol sym;

	assert_int_equal(symbolizer_find(s, &(struct frame){image, vaddr}, &sym), 0);
	return sym;
}

/* A file that blocks its reader has no names for a while; the others have theirs. At half of the
 * ceiling only files that were read before are read. */
static void test_blocked(void **state)
{
	const struct fixture *f = *state;
	struct image *images[SILENT_IMAGES], *good = open_fixture("plain-pie");
	struct symbolizer *s;
	struct symbol sym;

	silent = (struct silent){.blocks = false};
	sem_init(&silent.gate, 0, 0);
	s = silent_symbolizer(f);
	sym = find_with(s, good, 2);
	check_name(&sym, true, "even");
	assert_string_equal(sym.lines[0].system_name, "_even");
	silent.blocks = true;
	for (int i = 0; i < SILENT_IMAGES; i++) {
		images[i] = open_fixture("plain-stripped");
		sym = find_with(s, images[i], 2);
		check_name(&sym, false, "plain-stripped+0x2");
		assert_int_equal(image_is_slow(images[i]), i < LOOKUP_BLOCKED_MAX / 2);
	}
	assert_int_equal(symbolizer_blocked(s), LOOKUP_BLOCKED_MAX / 2);
	assert_int_equal(silent.n_opened, 1 + LOOKUP_BLOCKED_MAX / 2);
	sym = find_with(s, images[0], 2); /* at once */
	check_name(&sym, false, "plain-stripped+0x2");
	sym = find_with(s, good, 4);
	check_name(&sym, true, "even");
	sym = find_with(s, good, 5);
	check_name(&sym, false, "plain-pie+0x5");
	symbolizer_free(s);
	for (int i = 0; i < SILENT_IMAGES; i++) {
		sem_post(&silent.gate);
		image_unref(images[i]);
	}
	while (silent.n_freed < silent.n_opened)
		usleep(1000);
	image_unref(good);
}

static void test_later(void **state)
{
	const struct fixture *f = *state;
	struct image *image = open_fixture("plain-pie");
	struct symbolizer *s;
	struct symbol sym;

	silent = (struct silent){.later = 2};
	s = silent_symbolizer(f);
	for (int i = 0; i < 3; i++) {
		sym = find_with(s, image, 2);
		check_name(&sym, i == 2, i == 2 ? "even" : "plain-pie+0x2");
	}
	assert_int_equal(silent.n_opened, 1);
	symbolizer_free(s);
	assert_int_equal(silent.n_freed, 1);
	image_unref(image);
}

static int count_found(void *ctx, size_t i, const struct symbol *symbol)
{
	bool *found = ctx;

	assert_false(found[i]);
	found[i] = true;
	assert_int_equal(symbol->found, i % 2 == 0);
	return 0;
}

/* More addresses than one batch has. */
static void test_batches(void **state)
{
	enum { N = 3 * LOOKUP_BATCH + 7 };
	const struct fixture *f = *state;
	struct image *image = open_fixture("plain-pie");
	static uint64_t vaddrs[N];
	static bool found[N];
	struct symbolizer *s;

	silent = (struct silent){0};
	s = silent_symbolizer(f);
	for (size_t i = 0; i < N; i++)
		vaddrs[i] = i;
	assert_int_equal(symbolizer_find_all(s, image, vaddrs, N, count_found, found), 0);
	for (size_t i = 0; i < N; i++)
		assert_true(found[i]);
	assert_int_equal(silent.n_opened, 1);
	symbolizer_free(s);
	image_unref(image);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_programs),
		TEST(test_without_names),
		TEST(test_vdso),
		TEST(test_kernel),
		TEST(test_go),
		TEST(test_small_cache),
		TEST(test_many_strings),
		TEST(test_go_circle),
		TEST(test_out_of_memory),
		TEST(test_blocked),
		TEST(test_later),
		TEST(test_batches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
