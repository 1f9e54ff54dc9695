// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/root.h"
#include "elf/elffile.h"
#include "discovery/pid.h"
#include "support/allocfail.h"
#include "support/fixture.h"
#include "support/gofixture.h"
#include "support/gotable.h"
#include "support/jitmake.h"
#include "symbolize/jitdump.h"
#include "symbolize/lookup.h"
#include "symbolize/perf_map.h"
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
	struct image *c = fixture_image("plain-pie"), *cxx = fixture_image("cxx");
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

struct bare_row {
	const char *name;
	uint64_t at;	      /* from the first function on */
	const char *whole;    /* with .symtab */
	const char *stripped; /* with .dynsym */
};

/* A part is 64 bytes. NULL: no name. */
static const struct bare_row bare_rows[] = {
	{"the end in the unwind table", 63, "covered", "covered"},
	{"no unwinding, first", 64, "bare", "bare"},
	{"no unwinding", 65, "bare", NULL},
	{"no unwinding, last", 127, "bare", NULL},
	{"a function without a symbol", 128, NULL, NULL},
	{"the same, last", 191, NULL, NULL},
	{"no function", 192, NULL, NULL},
	{"behind a function without a symbol", 256, "later", "later"},
	{"the same, last", 319, "later", NULL},
	{"the next symbol", 320, "last", "last"},
};

/* Symbols without a size (bare.S). */
static void test_without_size(void **state)
{
	struct image *whole = fixture_image("bare"), *stripped = fixture_image("bare-stripped");
	const uint64_t start = ask_nm(whole->path, "covered");

	for (size_t i = 0; i < array_size(bare_rows); i++) {
		const struct bare_row *row = &bare_rows[i];
		struct symbol sym = find(*state, whole, start + row->at);

		row_begin(row->name);
		assert_int_equal(sym.found, row->whole != NULL);
		if (row->whole)
			check_name(&sym, true, row->whole);
		sym = find(*state, stripped, start + row->at);
		assert_int_equal(sym.found, row->stripped != NULL);
		if (row->stripped)
			check_name(&sym, true, row->stripped);
	}
	image_unref(whole);
	image_unref(stripped);
}

/* The first half of a program. */
static struct image *make_cut(const char *path)
{
	_cleanup_(close_fdp) int from = open(path, O_RDONLY | O_CLOEXEC);
	int elf, fd = memfd_create("cut", MFD_CLOEXEC);
	struct image *image;
	struct stat st;

	assert_int_equal(fstat(from, &st), 0);
	assert_int_equal(sendfile(fd, from, NULL, (size_t)st.st_size / 2), st.st_size / 2);
	assert_int_equal(image_new_file(fd, "/x/cut", &image, &elf), 0);
	assert_null(image->file);
	return image;
}

static void test_without_names(void **state)
{
	char path[FIXTURE_PATH_MAX];
	struct image *stripped = fixture_image("plain-stripped"), *text, *anon, *unknown, *odd;
	struct image *cut = make_cut(fixture_path("plain-pie", path));
	struct image *whole = fixture_image("plain-pie"), *linked = fixture_image("cxx-linked");
	struct fixture *f = *state;
	struct symbol sym;
	int elf, fd = open("Makefile", O_RDONLY | O_CLOEXEC);

	assert_int_equal(image_new_file(fd, "Makefile", &text, &elf), 0);
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
	assert_int_equal(sym.missing, SYMBOL_STRIPPED);
	sym = find(f, whole, 0x10);
	assert_int_equal(sym.missing, SYMBOL_NO_SYMBOL);
	sym = find(f, linked, 0x10);
	assert_int_equal(sym.missing, SYMBOL_NO_SYMBOL);
	sym = find(f, text, 0x1234);
	check_name(&sym, false, "Makefile+0x1234");
	assert_int_equal(sym.missing, SYMBOL_UNREADABLE_ELF);
	sym = find(f, cut, 0x1234);
	check_name(&sym, false, "cut+0x1234");
	assert_int_equal(sym.missing, SYMBOL_TRUNCATED_ELF);
	sym = find(f, anon, 0x7f0000001234);
	check_name(&sym, false, "[anon]");
	assert_int_equal(sym.missing, SYMBOL_NO_PERF_MAP);
	sym = find(f, unknown, 0x7f0000001234);
	check_name(&sym, false, "[unknown]");
	assert_int_equal(sym.missing, SYMBOL_NO_MAPPING);
	sym = find(f, odd, 1);
	check_name(&sym, false, "a?b+0x1");
	assert_int_equal(sym.missing, SYMBOL_NOT_OPENED);
	odd->fault = IMAGE_DENIED;
	sym = find(f, odd, 1);
	assert_int_equal(sym.missing, SYMBOL_DENIED);
	image_set_slow(whole);
	sym = find(f, whole, 0x11);
	assert_int_equal(sym.missing, SYMBOL_SLOW_FILE);
	image_unref(stripped);
	image_unref(whole);
	image_unref(linked);
	image_unref(text);
	image_unref(cut);
	image_unref(anon);
	image_unref(unknown);
	image_unref(odd);
}

static struct image *make_memory(const struct pid_id *pid, const char *path)
{
	struct image *image;

	assert_int_equal(image_new(IMAGE_ANON, path, &image), 0);
	image->mapped_by = *pid;
	return image;
}

static void append_map(const char *path, const char *line)
{
	FILE *map = fopen(path, "ae");

	assert_non_null(map);
	fputs(line, map);
	fclose(map);
}

/* The map of this process; it grows, and goes. */
static void test_perf_map(void **state)
{
	struct fixture *f = *state;
	const uint64_t *events = symbolizer_perf_map_events(f->s);
	struct image *jit, *ended;
	struct symbol sym;
	struct pid_id id;
	char path[64];

	assert_int_equal(pid_read(&f->proc, getpid(), &id), 0);
	jit = make_memory(&id, "[anon:jit]");
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	(void)unlink(path);
	sym = find(f, jit, 0x1008);
	check_name(&sym, false, "[anon:jit]");
	assert_int_equal(events[PERF_MAP_ABSENT], 1);

	append_map(path, "1000 10 LazyCompile:f /a b.js:1\n2000 10 a\xff"
			 "b\n");
	sym = find(f, jit, 0x1008);
	check_name(&sym, true, "LazyCompile:f /a b.js:1");
	sym = find(f, jit, 0x2000);
	check_name(&sym, true, "a?b");
	sym = find(f, jit, 0x3000);
	check_name(&sym, false, "[anon:jit]");
	assert_int_equal(sym.missing, SYMBOL_NOT_IN_PERF_MAP);
	append_map(path, "1008 4 inner\n");
	sym = find(f, jit, 0x1008);
	check_name(&sym, true, "inner");
	sym = find(f, jit, 0x1007);
	check_name(&sym, true, "LazyCompile:f /a b.js:1");

	/* opened while the process lived */
	id.start_ticks--;
	ended = make_memory(&id, "[anon]");
	sym = find(f, ended, 0x1008);
	check_name(&sym, false, "[anon]");
	image_set_perf_map(ended, open(path, O_RDONLY | O_CLOEXEC));
	assert_int_equal(unlink(path), 0);
	sym = find(f, ended, 0x1008);
	check_name(&sym, true, "inner");
	assert_int_equal(events[PERF_MAP_ABSENT], 2);
	/* what was read stays */
	sym = find(f, jit, 0x1008);
	check_name(&sym, true, "inner");
	image_unref(jit);
	image_unref(ended);
}

/* The descriptor comes with the process's mappings. The dump has lines, and goes before the map. */
static void test_jitdump(void **state)
{
	const struct jitmake_line lines[] = {{0x1000, 10, "/a/b.js"}, {0x1008, 11, NULL}};
	const struct jitmake_header header = jitmake_this();
	struct fixture *f = *state;
	const uint64_t *events = symbolizer_jitdump_events(f->s);
	int fd = memfd_create("dump", MFD_CLOEXEC);
	struct buf b = BUF_INIT(1u << 20);
	struct image *jit;
	struct symbol sym;
	struct pid_id id;
	char path[64];

	assert_int_equal(pid_read(&f->proc, getpid(), &id), 0);
	jit = make_memory(&id, "[anon]");
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	append_map(path, "1000 10 map\n2000 10 only_map\n");
	sym = find(f, jit, 0x1008);
	check_name(&sym, true, "map");
	jitmake_header(&b, &header);
	jitmake_lines(&b, 0x1000, lines, array_size(lines));
	jitmake_load(&b, 0x1000, 16, "dump", 16);
	assert_int_equal(write(fd, b.data, b.len), b.len);
	image_set_jitdump(jit, fd);
	sym = find(f, jit, 0x1008);
	check_name(&sym, true, "dump");
	assert_string_equal(sym.lines[0].file, "/a/b.js");
	assert_int_equal(sym.lines[0].line, 11);
	sym = find(f, jit, 0x2000);
	check_name(&sym, true, "only_map");
	sym = find(f, jit, 0x3000);
	check_name(&sym, false, "[anon]");
	assert_int_equal(sym.missing, SYMBOL_NOT_IN_PERF_MAP);
	assert_int_equal(events[JITDUMP_READ], 1);
	assert_int_equal(unlink(path), 0);
	image_unref(jit);
	buf_deinit(&b);
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
	assert_int_equal(sym.missing, pc ? SYMBOL_NOT_IN_KERNEL : SYMBOL_KERNEL_HIDDEN);
	image_unref(kernel);
}

/* The function adds up over its clones; the system name tells these apart. */
static void test_kernel_clones(void **state)
{
	static const char listing[] = "ffffffff81000000 T _text\n"
				      "ffffffff81000100 t copy.isra.0\n"
				      "ffffffff81000200 t copy.cold\n"
				      "ffffffff81000300 T plain\n"
				      "ffffffffc0000000 t mine.part.0\t[module]\n";
	static const struct {
		uint64_t pc;
		const char *function;
		const char *system_name;
	} rows[] = {
		{0xffffffff81000104, "copy", "copy.isra.0"},
		{0xffffffff81000204, "copy", "copy.cold"},
		{0xffffffff81000304, "plain", "plain"},
		{0xffffffffc0000004, "mine [module]", "mine.part.0 [module]"},
	};
	char dir[] = "/tmp/podprof-clones.XXXXXX", path[64];
	struct symbolizer_opts opts = {.cache_bytes = CACHE_BYTES};
	struct fixture f = {.proc = ROOT_INIT};
	struct image *kernel;
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/kallsyms", dir);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs(listing, file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(root_open(dir, &f.proc), 0);
	opts.proc = &f.proc;
	assert_int_equal(symbolizer_new(&opts, &f.s), 0);
	assert_int_equal(image_new(IMAGE_KERNEL, "[kernel.kallsyms]", &kernel), 0);
	for (size_t i = 0; i < array_size(rows); i++) {
		struct symbol sym = find(&f, kernel, rows[i].pc);

		check_name(&sym, true, rows[i].function);
		assert_string_equal(sym.lines[0].system_name, rows[i].system_name);
	}
	image_unref(kernel);
	symbolizer_free(f.s);
	root_deinit(&f.proc);
	unlink(path);
	rmdir(dir);
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
	image = fixture_image_at(path);
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
	struct image *images[] = {fixture_image("plain-pie"), fixture_image("plain-fixed"),
				  fixture_image("plain-static")};
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
	struct image *image = fixture_image("plain-pie");

	(void)state;
	allocfail_survive(find_one, image); /* a table may fail to shrink, a string to be kept */
	assert_int_equal(image->refs, 1);
	image_unref(image);
}

/* ---------------------------------------------------------------- sources that do not answer */

/* A source with a file server that is silent until the gate opens, or a source that gives names
 * later. */
struct silent {
	sem_t gate;
	_Atomic int n_opened, n_freed;
	bool blocks; /* open() */
	bool finds_block;
	_Atomic int later; /* open() says so this often */
};

static struct silent silent;

static int silent_open(const struct source_file *file, void **ret)
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
	while (silent.finds_block && sem_wait(&silent.gate) && errno == EINTR)
		continue;
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

static const struct symbol_source silent_source = {
	.name = "silent",
	.open = silent_open,
	.find = silent_find,
	.bytes = silent_bytes,
	.free = silent_free,
};

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

/* A known name stays while the file's other addresses block the reader, with the file's table. */
static void test_blocked_later(void **state)
{
	const struct fixture *f = *state;
	struct image *image = fixture_image("plain-pie");
	struct symbolizer *s;
	struct symbol known, sym;

	silent = (struct silent){.blocks = false};
	sem_init(&silent.gate, 0, 0);
	s = silent_symbolizer(f);
	find_with(s, image, 2);
	symbolizer_release(s);
	known = find_with(s, image, 2);
	silent.finds_block = true;
	sym = find_with(s, image, 4);
	check_name(&sym, false, "plain-pie+0x4");
	assert_true(image_is_slow(image));
	sem_post(&silent.gate);
	while (!silent.n_freed) /* by the abandoned thread */
		usleep(1000);
	check_name(&known, true, "even");
	symbolizer_free(s);
	image_unref(image);
}

/* A file that blocks its reader has no names for a while; the others have theirs. At half of the
 * ceiling only files that were read before are read. */
static void test_blocked(void **state)
{
	const struct fixture *f = *state;
	struct image *images[SILENT_IMAGES], *good = fixture_image("plain-pie");
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
		images[i] = fixture_image("plain-stripped");
		sym = find_with(s, images[i], 2);
		check_name(&sym, false, "plain-stripped+0x2");
		assert_int_equal(image_is_slow(images[i]), i < LOOKUP_BLOCKED_MAX / 2);
	}
	assert_int_equal(symbolizer_reads(s)[SYMBOL_READ_SLOW], LOOKUP_BLOCKED_MAX / 2);
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
	struct image *image = fixture_image("plain-pie");
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

/* No address is found. */
static int count_greedy(void *ctx, size_t i, const struct symbol *symbol)
{
	(void)ctx;
	(void)i;
	assert_false(symbol->found);
	return 0;
}

/* More addresses than one batch has. */
static void test_batches(void **state)
{
	enum { N = 3 * LOOKUP_BATCH + 7 };
	const struct fixture *f = *state;
	struct image *image = fixture_image("plain-pie");
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

/* ---------------------------------------------------------------- files that take too much work */

enum greed {
	GREED_OPEN,    /* open() works until the budget ends, */
	GREED_PART,    /* with a part to show */
	GREED_FIND,    /* find() does */
	GREED_PATIENT, /* open() works slowly until the budget ends */
};

struct greedy {
	enum greed greed;
	struct image *image; /* other files are like silent's */
	const struct elffile *file;
	int n_opened;
	sem_t opening;
};

static struct greedy greedy;

static void work(uint64_t units)
{
	while (elffile_spend(greedy.file, units))
		continue;
}

static int greedy_open(const struct source_file *file, void **ret)
{
	greedy.file = file->elf;
	greedy.n_opened++;
	sem_post(&greedy.opening);
	if (elffile_size(file->elf) != elffile_size(greedy.image->file) ||
	    greedy.greed == GREED_FIND)
		return silent_open(file, ret);
	work(greedy.greed == GREED_PATIENT ? 1 : UINT64_MAX / 2);
	if (greedy.greed == GREED_PART)
		*ret = &silent;
	return SOURCE_ABANDONED;
}

static int greedy_find(void *opened, uint64_t vaddr, struct symbol_lines *lines)
{
	if (greedy.greed == GREED_FIND && vaddr >= 100) {
		work(UINT64_MAX / 2);
		return SOURCE_NONE;
	}
	return silent_find(opened, vaddr, lines);
}

static const struct symbol_source greedy_source = {
	.name = "greedy",
	.open = greedy_open,
	.find = greedy_find,
	.bytes = silent_bytes,
	.free = silent_free,
};

static struct symbolizer *greedy_symbolizer(const struct fixture *f, enum greed greed)
{
	static const struct symbol_source *const sources[] = {&greedy_source};
	const struct symbolizer_opts opts = {
		.proc = &f->proc,
		.cache_bytes = CACHE_BYTES,
		.guarded = true,
		.sources = sources,
		.n_sources = 1,
	};
	struct symbolizer *s;

	silent = (struct silent){0};
	greedy = (struct greedy){.greed = greed, .image = fixture_image("plain-pie")};
	sem_init(&greedy.opening, 0, 0);
	assert_int_equal(symbolizer_new(&opts, &s), 0);
	return s;
}

static void check_reads(const struct symbolizer *s, uint64_t ok, uint64_t abandoned)
{
	assert_int_equal(symbolizer_reads(s)[SYMBOL_READ_OK], ok);
	assert_int_equal(symbolizer_reads(s)[SYMBOL_READ_ABANDONED], abandoned);
}

/* The file is not read again, not even as another image. Other files have their names. */
static void test_too_much_work(void **state)
{
	static const enum greed greeds[] = {GREED_OPEN, GREED_PART, GREED_FIND};

	for (size_t i = 0; i < array_size(greeds); i++) {
		const bool part = greeds[i] == GREED_PART;
		const uint64_t vaddrs[] = {2, 100, 102};
		struct symbolizer *s = greedy_symbolizer(*state, greeds[i]);
		struct image *again = fixture_image("plain-pie"), *other = fixture_image("cxx");
		struct symbol sym;

		row_begin(part ? "part" : greeds[i] == GREED_FIND ? "find" : "open");
		sym = find_with(s, other, 2);
		check_name(&sym, true, "even");
		if (greeds[i] == GREED_FIND) { /* the names found before stay */
			bool found[3] = {0};

			assert_int_equal(
				symbolizer_find_all(s, greedy.image, vaddrs, 1, count_found, found),
				0);
			assert_int_equal(symbolizer_find_all(s, greedy.image, vaddrs + 1, 2,
							     count_greedy, found),
					 0);
		}
		sym = find_with(s, greedy.image, 2);
		check_name(&sym, greeds[i] != GREED_OPEN,
			   greeds[i] != GREED_OPEN ? "even" : "plain-pie+0x2");
		sym = find_with(s, greedy.image, 4);
		check_name(&sym, part, part ? "even" : "plain-pie+0x4");
		sym = find_with(s, again, 2);
		check_name(&sym, false, "plain-pie+0x2");
		assert_int_equal(sym.missing, SYMBOL_OVER_BUDGET);
		sym = find_with(s, other, 4);
		check_name(&sym, true, "even");
		assert_int_equal(greedy.n_opened, 2);
		check_reads(s, greeds[i] == GREED_FIND ? 2 : 1, 1);
		symbolizer_free(s);
		assert_int_equal(silent.n_freed, greeds[i] == GREED_OPEN ? 1 : 2);
		image_unref(again);
		image_unref(other);
		image_unref(greedy.image);
	}
}

/* A source that counts. The odd addresses may have other names later. */
static size_t n_asked, n_settled;

static int counted_find(void *opened, uint64_t vaddr, struct symbol_lines *lines)
{
	n_asked++;
	if (vaddr >= 100) {
		symbol_lines_start(lines, 96);
		return SOURCE_NONE;
	}
	return silent_find(opened, vaddr & ~(uint64_t)1, lines);
}

static void counted_settle(void *opened)
{
	(void)opened;
	n_settled++;
}

static bool counted_is_final(void *opened, uint64_t vaddr)
{
	(void)opened;
	return vaddr % 2 == 0;
}

static int nothing_new(void *opened, const struct source_file *file)
{
	(void)opened;
	(void)file;
	return 0;
}

struct kept_row {
	const char *name;
	struct symbol_source source;
	uint64_t vaddr;
	const char *want;
	size_t n_asked; /* in three reports */
};

#define COUNTED                                                                                 \
	.name = "counted", .open = silent_open, .find = counted_find, .settle = counted_settle, \
	.bytes = silent_bytes, .free = silent_free

static const struct kept_row kept_rows[] = {
	{"a name", {COUNTED}, 2, "even", 1},
	{"no name", {COUNTED}, 100, "plain-pie+0x60", 1},
	{"final", {COUNTED, .is_final = counted_is_final}, 2, "even", 1},
	{"not final", {COUNTED, .is_final = counted_is_final}, 3, "even", 3},
	{"the source may have news", {COUNTED, .refresh = nothing_new}, 2, "even", 3},
};

/* Later reports do not ask again for what is known. */
static void test_kept(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < array_size(kept_rows); i++) {
		const struct kept_row *row = &kept_rows[i];
		const struct symbol_source *const sources[] = {&row->source};
		const struct symbolizer_opts opts = {.proc = &f->proc,
						     .cache_bytes = CACHE_BYTES,
						     .sources = sources,
						     .n_sources = 1};
		struct image *image = fixture_image("plain-pie");
		struct symbolizer *s;
		struct symbol sym;

		row_begin(row->name);
		silent = (struct silent){0};
		n_asked = n_settled = 0;
		assert_int_equal(symbolizer_new(&opts, &s), 0);
		for (size_t k = 0; k < 3; k++) {
			sym = find_with(s, image, row->vaddr);
			check_name(&sym, row->vaddr < 100, row->want);
			symbolizer_release(s);
		}
		assert_int_equal(n_asked, row->n_asked);
		assert_int_equal(n_settled, row->n_asked); /* a batch each */
		symbolizer_free(s);
		image_unref(image);
	}
}

static const char library_path[] = "/tmp/podprof-test-overwritten";

/* Without a new inode, as cp and a shell's redirection do it. */
static void write_library(const char *from)
{
	const int in = open(from, O_RDONLY | O_CLOEXEC);
	const int out = open(library_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	struct stat st;

	assert_true(in >= 0 && out >= 0 && fstat(in, &st) == 0);
	assert_int_equal(sendfile(out, in, NULL, (size_t)st.st_size), st.st_size);
	close(in);
	close(out);
}

static void set_time_of_library(void)
{
	assert_int_equal(utimensat(AT_FDCWD, library_path, NULL, 0), 0);
}

static void write_other_library(void)
{
	char path[FIXTURE_PATH_MAX];

	write_library(fixture_path("plain-fixed", path));
}

static void write_same_library(void)
{
	char path[FIXTURE_PATH_MAX];

	write_library(fixture_path("plain-pie", path));
}

static void truncate_library(void)
{
	assert_int_equal(truncate(library_path, 10), 0);
}

static const struct overwritten_row {
	const char *name;
	void (*change)(void);
	bool found;
} overwritten_rows[] = {
	{"another time", set_time_of_library, true},
	{"the same content", write_same_library, true},
	{"another content", write_other_library, false},
	{"no ELF file any more", truncate_library, false},
};

/* A file that is overwritten in place names no address of the content before. Names that were read
 * before stay. */
static void test_overwritten(void **state)
{
	for (size_t i = 0; i < array_size(overwritten_rows); i++) {
		const struct overwritten_row *row = &overwritten_rows[i];
		struct fixture *f = *state;
		struct image *image;
		struct symbol sym;
		uint64_t known, later;

		row_begin(row->name);
		write_same_library();
		image = fixture_image_at(library_path);
		known = ask_nm(library_path, "global_function");
		later = ask_nm(library_path, "main");
		sym = find(f, image, known);
		check_name(&sym, true, "global_function");
		row->change();
		sym = find(f, image, later);
		assert_int_equal(sym.found, row->found);
		if (!row->found)
			assert_int_equal(sym.missing, SYMBOL_OVERWRITTEN);
		sym = find(f, image, known);
		check_name(&sym, true, "global_function");
		image_unref(image);
		symbolizer_release(f->s);
		unlink(library_path);
	}
}

static int find_in_new_content(void *data, uint64_t vaddr, struct symbol_lines *lines)
{
	write_other_library();
	return counted_find(data, vaddr, lines);
}

/* A write during the reads counts, too. */
static void test_overwritten_meanwhile(void **state)
{
	static const struct symbol_source late = {.name = "late",
						  .open = silent_open,
						  .find = find_in_new_content,
						  .bytes = silent_bytes,
						  .free = silent_free};
	static const struct symbol_source *const sources[] = {&late};
	const struct fixture *f = *state;
	const struct symbolizer_opts opts = {
		.proc = &f->proc, .cache_bytes = CACHE_BYTES, .sources = sources, .n_sources = 1};
	struct symbolizer *s;
	struct image *image;
	struct symbol sym;

	silent = (struct silent){0};
	write_same_library();
	image = fixture_image_at(library_path);
	assert_int_equal(symbolizer_new(&opts, &s), 0);
	sym = find_with(s, image, 2);
	check_name(&sym, false, "podprof-test-overwritten+0x2");
	assert_int_equal(sym.missing, SYMBOL_OVERWRITTEN);
	symbolizer_free(s);
	image_unref(image);
	unlink(library_path);
}

static int is_even(void *ctx, size_t i, const struct symbol *symbol)
{
	const uint64_t *vaddrs = ctx;

	check_name(symbol, vaddrs[i] < 100, vaddrs[i] < 100 ? "even" : "plain-pie+0x60");
	return 0;
}

/* Of a batch, the sources are asked for the new addresses only. */
static void test_kept_in_batch(void **state)
{
	static const struct symbol_source settled = {COUNTED};
	static const struct symbol_source *const sources[] = {&settled};
	const struct fixture *f = *state;
	const struct symbolizer_opts opts = {.proc = &f->proc,
					     .cache_bytes = CACHE_BYTES,
					     .guarded = true,
					     .sources = sources,
					     .n_sources = 1};
	uint64_t vaddrs[] = {100, 2, 102, 4, 104};
	struct image *image = fixture_image("plain-pie");
	struct symbolizer *s;

	silent = (struct silent){0};
	n_asked = 0;
	assert_int_equal(symbolizer_new(&opts, &s), 0);
	for (size_t n = 1; n <= array_size(vaddrs); n++) {
		/* the known ones are the last, the first, and between new ones */
		uint64_t *first = n % 2 ? vaddrs : vaddrs + array_size(vaddrs) - n;

		assert_int_equal(symbolizer_find_all(s, image, first, n, is_even, first), 0);
		symbolizer_release(s);
	}
	assert_int_equal(n_asked, array_size(vaddrs));
	symbolizer_free(s);
	image_unref(image);
}

/* The source behind another one. */
static size_t n_next_opened;

static int next_open(const struct source_file *file, void **ret)
{
	n_next_opened++;
	return silent_open(file, ret);
}

static int next_open_later(const struct source_file *file, void **ret)
{
	(void)file;
	(void)ret;
	n_next_opened++;
	return SOURCE_LATER;
}

static int next_find(void *opened, uint64_t vaddr, struct symbol_lines *lines)
{
	(void)opened;
	(void)vaddr;
	(void)lines;
	return SOURCE_NONE;
}

#define NEXT .name = "next", .find = next_find, .bytes = silent_bytes, .free = silent_free

static const struct {
	const char *name;
	struct symbol_source next;
	uint64_t vaddrs[2];
	size_t n_next_opened; /* in three reports */
	size_t n_asked;
} demand_rows[] = {
	{"all addresses have names", {NEXT, .open = next_open}, {2, 4}, 0, 2},
	{"an address has none", {NEXT, .open = next_open}, {2, 100}, 1, 2},
	{"the source of all is not there yet", {NEXT, .open = next_open_later}, {4, 2}, 0, 2},
	/* the known name stays, the other address is asked again */
	{"the source is not there yet", {NEXT, .open = next_open_later}, {100, 2}, 3, 4},
};

/* A source is opened at the first address without a name from the sources before. */
static void test_on_demand(void **state)
{
	static const struct symbol_source settled = {COUNTED};
	const struct fixture *f = *state;

	for (size_t i = 0; i < array_size(demand_rows); i++) {
		const struct symbol_source *const sources[] = {&settled, &demand_rows[i].next};
		const struct symbolizer_opts opts = {.proc = &f->proc,
						     .cache_bytes = CACHE_BYTES,
						     .sources = sources,
						     .n_sources = array_size(sources)};
		uint64_t vaddrs[2] = {demand_rows[i].vaddrs[0], demand_rows[i].vaddrs[1]};
		struct image *image = fixture_image("plain-pie");
		struct symbolizer *s;

		row_begin(demand_rows[i].name);
		silent = (struct silent){0};
		n_asked = n_next_opened = 0;
		assert_int_equal(symbolizer_new(&opts, &s), 0);
		for (size_t k = 0; k < 3; k++) {
			assert_int_equal(symbolizer_find_all(s, image, vaddrs, 2, is_even, vaddrs),
					 0);
			symbolizer_release(s);
		}
		assert_int_equal(n_next_opened, demand_rows[i].n_next_opened);
		assert_int_equal(n_asked, demand_rows[i].n_asked);
		/* the list of sources opens all */
		assert_int_equal(symbolizer_sources(s, image, NULL, NULL), 0);
		assert_true(n_next_opened > 0);
		symbolizer_free(s);
		assert_int_equal(silent.n_freed, silent.n_opened);
		image_unref(image);
	}
}

/* Strings of kept answers stay until the release: the file's table is evicted meanwhile. */
static void test_kept_strings(void **state)
{
	static const struct symbol_source settled = {COUNTED};
	static const struct symbol_source *const sources[] = {&settled};
	const struct fixture *f = *state;
	const struct symbolizer_opts opts = {
		.proc = &f->proc, .cache_bytes = 1, .sources = sources, .n_sources = 1};
	struct image *image = fixture_image("plain-pie"), *other = fixture_image("cxx");
	struct symbolizer *s;
	struct symbol first, again, far;

	silent = (struct silent){0};
	n_asked = 0;
	assert_int_equal(symbolizer_new(&opts, &s), 0);
	find_with(s, image, 2);
	find_with(s, image, 100);
	symbolizer_release(s);
	first = find_with(s, image, 2);
	assert_int_equal(n_asked, 2);
	find_with(s, other, 2); /* there is room for one table */
	assert_int_equal(silent.n_freed, 1);
	far = find_with(s, other, 100);
	again = find_with(s, image, 2); /* a new table */
	assert_int_equal(n_asked, 5);
	check_name(&first, true, "even");
	assert_string_equal(first.lines[0].system_name, "_even");
	check_name(&again, true, "even");
	check_name(&far, false, "cxx+0x60");
	symbolizer_release(s);
	symbolizer_free(s);
	assert_int_equal(silent.n_freed, silent.n_opened);
	image_unref(image);
	image_unref(other);
}

/* ---------------------------------------------------------------- many files at once */

/* More than one exchange has. */
#define LEARNED_IMAGES 70

static int open_count_to_block; /* the open() that blocks; 0: none */

static int open_or_block(const struct source_file *file, void **ret)
{
	const int number = ++silent.n_opened;

	(void)file;
	while (number == open_count_to_block && sem_wait(&silent.gate) && errno == EINTR)
		continue;
	*ret = &silent;
	return SOURCE_OK;
}

static struct symbolizer *learning_symbolizer(const struct fixture *f, int blocking)
{
	static const struct symbol_source source = {.name = "learned",
						    .open = open_or_block,
						    .find = counted_find,
						    .bytes = silent_bytes,
						    .free = silent_free};
	static const struct symbol_source *const sources[] = {&source};
	const struct symbolizer_opts opts = {.proc = &f->proc,
					     .cache_bytes = CACHE_BYTES,
					     .guarded = true,
					     .blocked_ns = 100 * NSEC_PER_MSEC,
					     .sources = sources,
					     .n_sources = 1};
	struct symbolizer *s;

	silent = (struct silent){0};
	sem_init(&silent.gate, 0, 0);
	open_count_to_block = blocking;
	n_asked = 0;
	assert_int_equal(symbolizer_new(&opts, &s), 0);
	return s;
}

static void learn(struct symbolizer *s, struct symbolizer_addresses *files, size_t n)
{
	assert_int_equal(symbolizer_learn(s, files, n), 0);
	symbolizer_release(s);
}

static void find_learned(struct symbolizer *s, const struct symbolizer_addresses *file)
{
	assert_int_equal(symbolizer_find_all(s, file->image, file->vaddrs, file->n, is_even,
					     (void *)file->vaddrs),
			 0);
}

/* Later calls ask no source. */
static void test_learn(void **state)
{
	enum { N = 2 * LOOKUP_BATCH + 7 };
	struct symbolizer *s = learning_symbolizer(*state, 0);
	struct symbolizer_addresses files[LEARNED_IMAGES];
	static uint64_t vaddrs[N];

	for (size_t i = 0; i < N; i++)
		vaddrs[i] = 2 * i;
	for (size_t i = 0; i < LEARNED_IMAGES; i++)
		files[i] = (struct symbolizer_addresses){fixture_image("plain-pie"), vaddrs,
							 i == 1 ? N : i % 3};
	learn(s, files, LEARNED_IMAGES);
	learn(s, files, LEARNED_IMAGES);
	assert_int_equal(n_asked, N - 1 + LEARNED_IMAGES - 1);
	for (size_t i = 0; i < LEARNED_IMAGES; i++) {
		find_learned(s, &files[i]);
		image_unref(files[i].image);
	}
	assert_int_equal(n_asked, N - 1 + LEARNED_IMAGES - 1);
	symbolizer_free(s);
}

/* The files before a blocking one are known, the files behind it are read when they are asked for.
 */
static void test_learn_blocked(void **state)
{
	struct symbolizer *s = learning_symbolizer(*state, 2);
	static const uint64_t vaddrs[] = {2, 4};
	struct symbolizer_addresses files[3];
	struct symbol sym;

	for (size_t i = 0; i < array_size(files); i++)
		files[i] = (struct symbolizer_addresses){fixture_image("plain-pie"), vaddrs, 2};
	learn(s, files, array_size(files));
	assert_int_equal(symbolizer_reads(s)[SYMBOL_READ_SLOW], 1);
	for (size_t i = 0; i < array_size(files); i++)
		assert_int_equal(image_is_slow(files[i].image), i == 1);
	assert_int_equal(n_asked, 2);
	find_learned(s, &files[0]);
	assert_int_equal(n_asked, 2);
	find_learned(s, &files[2]);
	assert_int_equal(n_asked, 4);
	sym = find_with(s, files[1].image, 2);
	check_name(&sym, false, "plain-pie+0x2");
	sem_post(&silent.gate);
	while (!silent.n_freed) /* by the abandoned thread */
		usleep(1000);
	symbolizer_free(s);
	assert_int_equal(silent.n_freed, 3);
	for (size_t i = 0; i < array_size(files); i++)
		image_unref(files[i].image);
}

static void *stop(void *s)
{
	while (sem_wait(&greedy.opening) && errno == EINTR)
		continue;
	symbolizer_stop(s);
	return NULL;
}

/* A running read ends, no later one begins, and no file is to blame. */
static void test_stop(void **state)
{
	struct symbolizer *s = greedy_symbolizer(*state, GREED_PATIENT);
	struct image *other = fixture_image("cxx");
	struct symbol sym;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, stop, s), 0);
	sym = find_with(s, greedy.image, 2);
	check_name(&sym, false, "plain-pie+0x2");
	assert_int_equal(pthread_join(thread, NULL), 0);
	sym = find_with(s, other, 2);
	check_name(&sym, false, "cxx+0x2");
	assert_int_equal(sym.missing, SYMBOL_OVER_BUDGET);
	check_reads(s, 0, 0);
	symbolizer_free(s);
	image_unref(greedy.image);
	image_unref(other);
}

/* A report has so much time for names. Known names take none. */
static void test_report_time(void **state)
{
	const struct fixture *f = *state;
	const struct symbolizer_opts opts = {
		.proc = &f->proc, .cache_bytes = CACHE_BYTES, .report_ns = 1};
	struct image *image = fixture_image("plain-pie");
	struct elffile *file = image->file;
	struct symbolizer *s;
	struct symbol sym;
	uint64_t vaddr = elffile_entry(file);

	assert_int_equal(symbolizer_new(&opts, &s), 0);
	for (uint64_t i = 0; i < 2; i++) {
		sym = find_with(s, image, vaddr + i);
		assert_true(sym.found);
		sym = find_with(s, image, vaddr + 2);
		assert_false(sym.found);
		sym = find_with(s, image, vaddr + i);
		assert_true(sym.found);
		symbolizer_release(s);
	}
	symbolizer_free(s);
	image_unref(image);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_programs),
		TEST(test_without_names),
		TEST(test_perf_map),
		TEST(test_vdso),
		TEST(test_kernel),
		TEST(test_go),
		TEST(test_small_cache),
		TEST(test_many_strings),
		TEST(test_go_circle),
		TEST(test_out_of_memory),
		TEST(test_blocked),
		TEST(test_blocked_later),
		TEST(test_later),
		TEST(test_batches),
		TEST(test_too_much_work),
		TEST(test_stop),
		TEST(test_report_time),
		TEST(test_jitdump),
		TEST(test_kept),
		TEST(test_without_size),
		TEST(test_kernel_clones),
		TEST(test_overwritten),
		TEST(test_overwritten_meanwhile),
		TEST(test_kept_in_batch),
		TEST(test_kept_strings),
		TEST(test_learn),
		TEST(test_learn_blocked),
		TEST(test_on_demand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
