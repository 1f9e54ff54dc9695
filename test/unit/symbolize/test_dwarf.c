// SPDX-License-Identifier: Apache-2.0
/*
 * Inlined functions, files and lines. The truth is addr2line of binutils, which is right about
 * DWARF 4. Its version of Debian 12 takes wrong files of DWARF 5, so the truth about a program with
 * DWARF 5 is that of the same code with DWARF 4.
 */
#include "support/test.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/root.h"
#include "support/allocfail.h"
#include "support/elfmake.h"
#include "support/fixture.h"
#include "support/threads.h"
#include "symbolize/debugfile.h"
#include "symbolize/demangle.h"
#include "symbolize/dwarfchild.h"
#include "symbolize/dwarfreader.h"
#include "symbolize/dwarfwire.h"
#include "symbolize/linecache.h"
#include "symbolize/source.h"
#include "symbolize/symbolizer.h"

#define CACHE_BYTES (16u << 20)
/* As long as a busy machine may need. */
#define DEADLINE    (600 * NSEC_PER_SEC)
/* Every so many bytes of the code. */
#define STEP	    3
#define NAME	    8192
/* Bytes of a unit in the large file. */
#define LARGE	    ((uint64_t)1 << 31)

static const char *program(void)
{
	static char path[FIXTURE_PATH_MAX];

	return fixture_path("../../podprof", path);
}

/* @sources: @n in number; NULL: the usual ones. */
static struct symbolizer *new_with(const struct root *proc, uint64_t patience_ns,
				   uint64_t deadline_ns, const struct symbol_source *const *sources,
				   size_t n)
{
	const struct dwarfreader_opts dwarf = {
		.program = program(), .patience_ns = patience_ns, .deadline_ns = deadline_ns};
	const struct symbolizer_opts opts = {.proc = proc,
					     .cache_bytes = CACHE_BYTES,
					     .dwarf = &dwarf,
					     .sources = sources,
					     .n_sources = n};
	struct symbolizer *s;

	assert_int_equal(symbolizer_new(&opts, &s), 0);
	return s;
}

static struct symbolizer *new_symbolizer(const struct root *proc, uint64_t patience_ns,
					 uint64_t deadline_ns)
{
	return new_with(proc, patience_ns, deadline_ns, NULL, 0);
}

static struct elffile_section text_of(const struct image *image)
{
	struct elffile_section text;

	assert_int_equal(elffile_section(image->file, ".text", &text), 0);
	return text;
}

static uint64_t count(const struct symbolizer *s, enum dwarfreader_outcome outcome)
{
	uint64_t counts[DWARFREADER_OUTCOME_MAX];

	symbolizer_dwarf_counts(s, counts);
	return counts[outcome];
}

/* ---------------------------------------------------------------- addr2line */

/* A line of text without its end; false at the end of the file. */
static bool read_text(FILE *file, char ret[NAME])
{
	if (!fgets(ret, NAME, file))
		return false;
	ret[strcspn(ret, "\n")] = '\0';
	return true;
}

/* "FILE:LINE", with "?" for an unknown line, perhaps " (discriminator N)". */
static void split_place(char *place, uint32_t *ret_line)
{
	char *end = strstr(place, " (discriminator"), *colon;

	if (end)
		*end = '\0';
	colon = strrchr(place, ':');
	assert_non_null(colon);
	*colon = '\0';
	*ret_line = (uint32_t)strtoul(colon + 1, NULL, 10);
}

/* The symbol table has the names of clones (NAME.cold), and one name of a constructor has others
 * that mean the same. */
static bool is_name(const struct symbol_line *line, const char *want)
{
	char readable[DEMANGLE_NAME_MAX];
	size_t n = strlen(want);

	return (strncmp(line->system_name, want, n) == 0 &&
		(!line->system_name[n] || line->system_name[n] == '.')) ||
	       (demangle(want, readable) && strcmp(line->function, readable) == 0);
}

struct compared {
	FILE *truth;
	char next[NAME]; /* its next line */
	struct image *image;
	const uint64_t *vaddrs;
	size_t n_lines;
	size_t n_inlined;
	size_t n_named; /* the innermost of them has the same name */
	size_t n_done;
};

/* Where the symbol table and DWARF differ, addr2line gives the innermost function the name of the
 * outermost. llvm-symbolizer does not. */
static bool is_name_in(const struct symbol *symbol, size_t level, const char *want)
{
	const struct symbol_line *lines = symbol->lines;

	return is_name(&lines[level], want) ||
	       (!level && is_name(&lines[symbol->n_lines - 1], want));
}

/* The chain of addr2line is next in the file: pairs of lines, until the next address. */
static int compare(void *ctx, size_t i, const struct symbol *symbol)
{
	struct compared *c = ctx;
	char first[NAME] = "", function[NAME], place[NAME];
	uint32_t line;
	size_t n = 0;

	assert_int_equal(strtoul(c->next, NULL, 16), c->vaddrs[i]);
	while (read_text(c->truth, function) && strncmp(function, "0x", 2) != 0) {
		assert_true(read_text(c->truth, place));
		split_place(place, &line);
		if (!n++)
			memcpy(first, function, sizeof(first));
		/* start-up code without DWARF, whose file addr2line knows; and the bytes between
		 * two functions, which addr2line takes for the first function */
		if ((!symbol->lines[0].line && !line) || !symbol->found)
			continue;
		if (n <= symbol->n_lines && strcmp(symbol->lines[n - 1].file, place) == 0 &&
		    symbol->lines[n - 1].line == line && is_name_in(symbol, n - 1, function))
			continue;
		fail_msg("0x%lx level %zu of %zu: %s %s:%u instead of %s %s:%u", c->vaddrs[i], n,
			 symbol->n_lines, symbol->lines[n - 1].system_name,
			 symbol->lines[n - 1].file, symbol->lines[n - 1].line, function, place,
			 line);
	}
	memcpy(c->next, function, sizeof(function));
	assert_int_equal(n, symbol->n_lines);
	c->n_lines += symbol->lines[0].line > 0;
	c->n_inlined += symbol->n_lines > 1;
	c->n_named += symbol->n_lines > 1 && is_name(&symbol->lines[0], first);
	c->n_done++;
	return 0;
}

/* The names of @name are those of addr2line for @truth. */
static void compare_with(struct symbolizer *s, const char *name, const char *truth)
{
	char path[FIXTURE_PATH_MAX], addresses[] = "/tmp/podprof-addresses-XXXXXX", *command;
	struct compared c = {.image = fixture_image(name)};
	struct elffile_section text = text_of(c.image);
	size_t n = text.size / STEP;
	_cleanup_(freep) uint64_t *vaddrs = calloc(n, sizeof(*vaddrs));
	int fd = mkstemp(addresses);

	row_begin(name);
	for (size_t i = 0; i < n; i++) {
		vaddrs[i] = text.vaddr + i * STEP;
		dprintf(fd, "0x%lx\n", vaddrs[i]);
	}
	close(fd);
	assert_true(asprintf(&command, "addr2line -i -f -a -e %s <%s", fixture_path(truth, path),
			     addresses) > 0);
	c.vaddrs = vaddrs;
	c.truth = popen(command, "r"); // NOLINT(cert-env33-c): a path of our own
	assert_non_null(c.truth);
	assert_true(read_text(c.truth, c.next));
	assert_int_equal(symbolizer_find_all(s, c.image, vaddrs, n, compare, &c), 0);
	assert_int_equal(pclose(c.truth), 0);
	print_message("%zu addresses, %zu with lines, %zu in inlined functions\n", c.n_done,
		      c.n_lines, c.n_inlined);
	assert_int_equal(c.n_done, n);
	assert_true(c.n_lines > n / 2 && c.n_inlined > n / 2);
	assert_true(c.n_named > c.n_inlined * 9 / 10);
	unlink(addresses);
	free(command);
	image_unref(c.image);
}

static void assert_same_code(const char *a, const char *b)
{
	struct image *x = fixture_image(a), *y = fixture_image(b);
	struct elffile_section tx = text_of(x), ty = text_of(y);
	void *bytes_x, *bytes_y;

	assert_int_equal(tx.vaddr, ty.vaddr);
	assert_int_equal(tx.size, ty.size);
	assert_int_equal(elffile_read_section(x->file, &tx, tx.size, &bytes_x), 0);
	assert_int_equal(elffile_read_section(y->file, &ty, ty.size, &bytes_y), 0);
	assert_memory_equal(bytes_x, bytes_y, tx.size);
	free(bytes_x);
	free(bytes_y);
	image_unref(x);
	image_unref(y);
}

static void test_chains(void **state)
{
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	struct symbolizer *s;

	(void)state;
	assert_int_equal(root_open("/proc", &proc), 0);
	s = new_symbolizer(&proc, 0, DEADLINE);
	compare_with(s, "inline-gcc4", "inline-gcc4");
	compare_with(s, "inline-clang4", "inline-clang4");
	compare_with(s, "inline-gz", "inline-gz");
	compare_with(s, "inline-linked", "inline-gcc4");
	compare_with(s, "inline-dwz", "inline-gcc4");
	assert_same_code("inline-gcc5", "inline-gcc4");
	compare_with(s, "inline-gcc5", "inline-gcc4");
	assert_same_code("inline-clang5", "inline-clang4");
	compare_with(s, "inline-clang5", "inline-clang4");
	assert_int_equal(count(s, DWARFREADER_CRASHED), 0);
	symbolizer_free(s);
}

/* ---------------------------------------------------------------- failures */

/* The address of a function with a symbol and lines. */
static uint64_t some_vaddr(struct symbolizer *s, struct image *image)
{
	struct elffile_section text = text_of(image);

	for (uint64_t vaddr = text.vaddr; vaddr < text.vaddr + text.size; vaddr++) {
		struct symbol symbol;

		assert_int_equal(symbolizer_find(s, &(struct frame){image, vaddr}, &symbol), 0);
		if (symbol.found && symbol.lines[symbol.n_lines - 1].line &&
		    strstr(symbol.lines[symbol.n_lines - 1].system_name, "4work"))
			return vaddr;
	}
	fail();
	return 0;
}

/* The same by a symbolizer that waits for as long as a busy machine needs. */
static uint64_t known_vaddr(struct image *image)
{
	struct symbolizer *s = new_symbolizer(NULL, 0, DEADLINE);
	const uint64_t vaddr = some_vaddr(s, image);

	symbolizer_free(s);
	return vaddr;
}

static void check(struct symbolizer *s, struct image *image, uint64_t vaddr, bool lines)
{
	struct symbol symbol;

	assert_int_equal(symbolizer_find(s, &(struct frame){image, vaddr}, &symbol), 0);
	assert_true(symbol.found);
	assert_string_equal(symbol.lines[symbol.n_lines - 1].function, "shop::work");
	assert_int_equal(symbol.lines[symbol.n_lines - 1].line > 0, lines);
}

/* ---------------------------------------------------------------- split DWARF */

/* Functions, files and lines of addresses, as text. */
struct chains {
	struct buf text;
	size_t n_inlined;
};

static int add_chain(void *ctx, size_t i, const struct symbol *symbol)
{
	struct chains *c = ctx;

	for (size_t k = 0; k < symbol->n_lines; k++) {
		const struct symbol_line *line = &symbol->lines[k];

		assert_int_equal(buf_printf(&c->text, "%zu %s %s:%u:%u %u\n", i,
					    symbol->found ? line->system_name : "?", line->file,
					    line->line, line->column, line->start_line),
				 0);
	}
	c->n_inlined += symbol->n_lines > 1;
	return 0;
}

static void ask_chains(struct symbolizer *s, struct image *image, struct chains *ret)
{
	const struct elffile_section text = text_of(image);
	uint64_t *vaddrs = calloc(text.size, sizeof(*vaddrs));

	assert_non_null(vaddrs);
	*ret = (struct chains){.text = BUF_INIT(64u << 20)};
	for (size_t i = 0; i < text.size; i++)
		vaddrs[i] = text.vaddr + i;
	assert_int_equal(symbolizer_find_all(s, image, vaddrs, text.size, add_chain, ret), 0);
	symbolizer_release(s);
	free(vaddrs);
}

struct split_row {
	const char *split;
	const char *whole;
};

static const struct split_row split_rows[] = {
	{"inline-split4", "inline-gcc4"},	   {"inline-split5", "inline-gcc5"},
	{"inline-clangsplit4", "inline-clang4"},   {"inline-clangsplit5", "inline-clang5"},
	{"inline-package4", "inline-gcc4"},	   {"inline-package5", "inline-gcc5"},
	{"inline-clangpackage4", "inline-clang4"}, {"inline-clangpackage5", "inline-clang5"},
};

/* Each byte of the code has the functions and lines that it has without the split. */
static void test_split(void **state)
{
	struct root proc;

	(void)state;
	assert_int_equal(root_open("/proc", &proc), 0);
	for (size_t i = 0; i < array_size(split_rows); i++) {
		struct symbolizer *s = new_symbolizer(&proc, 0, DEADLINE);
		struct image *split = fixture_image(split_rows[i].split);
		struct image *whole = fixture_image(split_rows[i].whole);
		struct chains a, b;

		row_begin(split_rows[i].split);
		assert_int_equal(text_of(split).vaddr, text_of(whole).vaddr);
		ask_chains(s, split, &a);
		ask_chains(s, whole, &b);
		assert_string_equal(a.text.data, b.text.data);
		assert_int_equal(a.n_inlined, b.n_inlined);
		assert_true(a.n_inlined > 500);
		buf_deinit(&a.text);
		buf_deinit(&b.text);
		symbolizer_free(s);
		image_unref(split);
		image_unref(whole);
	}
	root_deinit(&proc);
}

/* Without the file, the line is known, and the name of the symbol table. */
static void test_split_absent(void **state)
{
	struct image *split = fixture_image("inline-split5");
	struct symbolizer *s = new_symbolizer(NULL, 0, DEADLINE);
	struct chains c;

	(void)state;
	ask_chains(s, split, &c);
	assert_int_equal(c.n_inlined, 0);
	assert_non_null(strstr(c.text.data, "/inline.cc:"));
	buf_deinit(&c.text);
	symbolizer_free(s);
	image_unref(split);
}

struct place_row {
	const char *name;
	const char *path; /* without a '/': a fixture */
	int outcome;
};

static const struct place_row place_rows[] = {
	{"split DWARF", "inline-split5-inline.dwo", 0},
	{"a program", "inline-split5", DEBUGFILE_OTHER},
	{"a text", "/etc/passwd", DEBUGFILE_OTHER},
	{"a device", "/dev/zero", DEBUGFILE_ABSENT},
	{"a directory", "/", DEBUGFILE_ABSENT},
	{"nothing", "/no/such.dwo", DEBUGFILE_ABSENT},
};

/* The process that reads DWARF may ask for any path, and gets split DWARF alone. */
static void test_split_places(void **state)
{
	struct image *program_image = fixture_image("inline-split5");
	struct root proc;
	struct source_file of = {.elf = program_image->file, .proc = &proc};

	(void)state;
	assert_int_equal(root_open("/proc", &proc), 0);
	for (size_t i = 0; i < array_size(place_rows); i++) {
		const struct place_row *row = &place_rows[i];
		char relative[FIXTURE_PATH_MAX], path[PATH_MAX];
		struct elffile *file = NULL;

		row_begin(row->name);
		if (row->path[0] == '/')
			snprintf(path, sizeof(path), "%s", row->path);
		else
			assert_non_null(realpath(fixture_path(row->path, relative), path));
		assert_int_equal(debugfile_open_split(&of, path, &file), row->outcome);
		elffile_free(file);
	}
	image_unref(program_image);
	root_deinit(&proc);
}

/* A report does not wait; a later one has the lines. */
static void test_late(void **state)
{
	struct symbolizer *s = new_symbolizer(NULL, 20 * NSEC_PER_MSEC, DEADLINE);
	struct image *image = fixture_image("inline-gcc4"), *other = fixture_image("inline-gcc5");
	struct symbol symbol = {.n_lines = 0};
	const uint64_t vaddr = known_vaddr(image);

	(void)state;
	while (!symbol.lines[0].line) { /* the process has started */
		symbolizer_release(s);
		assert_int_equal(symbolizer_find(s, &(struct frame){image, vaddr}, &symbol), 0);
	}
	assert_int_equal(kill(threads_child(), SIGSTOP), 0);
	symbolizer_release(s);
	check(s, other, vaddr, false);
	check(s, other, vaddr, false);
	assert_int_equal(kill(threads_child(), SIGCONT), 0);
	for (symbol.lines[0].line = 0; !symbol.lines[0].line;) {
		symbolizer_release(s);
		assert_int_equal(symbolizer_find(s, &(struct frame){other, vaddr}, &symbol), 0);
	}
	check(s, other, vaddr, true);
	assert_int_equal(count(s, DWARFREADER_TIMEOUT), 0);
	symbolizer_free(s);
	image_unref(image);
	image_unref(other);
}

/* From outside, between two requests. */
static void test_killed(void **state)
{
	struct symbolizer *s = new_symbolizer(NULL, 0, DEADLINE);
	struct image *image = fixture_image("inline-gcc4"), *other = fixture_image("inline-gcc5");
	uint64_t vaddr = some_vaddr(s, image);
	pid_t first = threads_child();
	siginfo_t info;

	(void)state;
	assert_int_equal(kill(first, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)first, &info, WEXITED | WNOWAIT), 0);
	check(s, other, vaddr, true);
	assert_true(threads_child() != first);
	assert_int_equal(count(s, DWARFREADER_CRASHED), 0);
	symbolizer_free(s);
	image_unref(image);
	image_unref(other);
}

/* ---------------------------------------------------------------- hostile files */

/* A copy of a fixture, changed. */
struct copy {
	char path[64];
	uint8_t *bytes;
	size_t n;
};

static void copy_init(struct copy *c, const char *name)
{
	char path[FIXTURE_PATH_MAX];
	_cleanup_(fclosep) FILE *file = fopen(fixture_path(name, path), "re");

	assert_non_null(file);
	(void)fseek(file, 0, SEEK_END);
	c->n = (size_t)ftell(file);
	rewind(file);
	c->bytes = malloc(c->n);
	assert_non_null(c->bytes);
	assert_int_equal(fread(c->bytes, 1, c->n, file), c->n);
}

static struct image *copy_open(struct copy *c, size_t n)
{
	int fd;

	snprintf(c->path, sizeof(c->path), "/tmp/podprof-dwarf-XXXXXX");
	fd = mkstemp(c->path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, c->bytes, n), n);
	close(fd);
	return fixture_image_at(c->path);
}

/* Bytes of the DWARF at random: whatever the process does, the symbol table has the name. */
static void test_broken_bytes(void **state)
{
	static const char *const sections[] = {".debug_info", ".debug_abbrev", ".debug_line",
					       ".debug_ranges", ".debug_str"};
	struct symbolizer *s = new_symbolizer(NULL, 0, DEADLINE);
	struct image *good = fixture_image("inline-gcc4");
	const uint64_t vaddr = some_vaddr(s, good);
	const struct elffile_section text = text_of(good);

	(void)state;
	srand(1);
	for (unsigned int i = 0; i < 60; i++) {
		struct elffile_section section;
		struct copy c;
		struct image *image;
		struct symbol symbol;

		copy_init(&c, "inline-gcc4");
		assert_int_equal(
			elffile_section(good->file, sections[i % array_size(sections)], &section),
			0);
		for (int j = 0; j < 30; j++)
			c.bytes[section.off + (uint64_t)rand() % section.size] = (uint8_t)rand();
		image = copy_open(&c, c.n);
		for (uint64_t at = text.vaddr; at < text.vaddr + text.size; at += 64)
			assert_int_equal(symbolizer_find(s, &(struct frame){image, at}, &symbol),
					 0);
		assert_int_equal(symbolizer_find(s, &(struct frame){image, vaddr}, &symbol), 0);
		assert_true(symbol.found);
		assert_string_equal(symbol.lines[symbol.n_lines - 1].function, "shop::work");
		unlink(c.path);
		image_unref(image);
		free(c.bytes);
	}
	print_message(
		"%lu answers, %lu crashes, %lu timeouts, %lu without memory, %lu unreadable\n",
		count(s, DWARFREADER_OK), count(s, DWARFREADER_CRASHED),
		count(s, DWARFREADER_TIMEOUT), count(s, DWARFREADER_MEMORY),
		count(s, DWARFREADER_UNREADABLE));
	check(s, good, vaddr, true);
	symbolizer_free(s);
	image_unref(good);
}

/* The header of section @name in the file's bytes. */
static Elf64_Shdr *section_header(const struct copy *c, const char *name)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)c->bytes;
	Elf64_Shdr *sections = (Elf64_Shdr *)(c->bytes + header->e_shoff);
	const char *names = (const char *)c->bytes + sections[header->e_shstrndx].sh_offset;

	for (size_t i = 0; i < header->e_shnum; i++)
		if (strcmp(names + sections[i].sh_name, name) == 0)
			return &sections[i];
	fail_msg("no section %s", name);
	return NULL;
}

/* The same file, but its .debug_info is behind a unit of LARGE bytes, most of them a hole in the
 * file. Units are found by their lengths, so all offsets above 2 GiB are in use. */
static struct image *make_large(const char *name, struct copy *c)
{
	const struct {
		uint32_t length;
		uint16_t version;
		uint32_t abbreviations;
		uint8_t address_bytes;
	} __attribute__((packed)) unit = {LARGE - sizeof(uint32_t), 4, 0, 8};
	Elf64_Shdr *info, old;
	struct image *image;
	uint64_t at;
	int fd;

	copy_init(c, name);
	info = section_header(c, ".debug_info");
	old = *info;
	at = (c->n + 4095) & ~(uint64_t)4095;
	info->sh_offset = at;
	info->sh_size = LARGE + old.sh_size;
	image_unref(copy_open(c, c->n));
	fd = open(c->path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, &unit, sizeof(unit), (off_t)at), sizeof(unit));
	assert_int_equal(pwrite(fd, c->bytes + old.sh_offset, old.sh_size, (off_t)(at + LARGE)),
			 old.sh_size);
	close(fd);
	image = fixture_image_at(c->path);
	assert_true(image->id.size > LARGE);
	return image;
}

/* A file of more than 2 GiB, with the limits of the process: the answers are those of the small
 * file. */
static void test_large(void **state)
{
	struct image *small = fixture_image("inline-gcc4"), *large;
	const struct elffile_section text = text_of(small);
	struct symbolizer *s = new_symbolizer(NULL, 0, DEADLINE);
	size_t n_inlined = 0;
	struct copy c;

	(void)state;
	large = make_large("inline-gcc4", &c);
	for (uint64_t at = text.vaddr; at < text.vaddr + text.size; at += 16) {
		struct symbol want, is;

		assert_int_equal(symbolizer_find(s, &(struct frame){small, at}, &want), 0);
		assert_int_equal(symbolizer_find(s, &(struct frame){large, at}, &is), 0);
		assert_int_equal(is.found, want.found);
		assert_int_equal(is.n_lines, want.n_lines);
		for (size_t i = 0; want.found && i < want.n_lines; i++) {
			assert_string_equal(is.lines[i].function, want.lines[i].function);
			assert_string_equal(is.lines[i].file, want.lines[i].file);
			assert_int_equal(is.lines[i].line, want.lines[i].line);
		}
		n_inlined += want.n_lines > 1;
	}
	assert_true(n_inlined > 10);
	assert_int_equal(count(s, DWARFREADER_MEMORY) + count(s, DWARFREADER_TIMEOUT), 0);
	unlink(c.path);
	free(c.bytes);
	symbolizer_free(s);
	image_unref(small);
	image_unref(large);
}

/* Of a file that shrinks between the look at it and the read of its DWARF; NULL: none. */
static const char *shrinks;

static int shrinking_open(const struct source_file *file, void **ret)
{
	(void)file;
	*ret = &shrinks;
	return 0;
}

static int shrinking_find(void *opened, uint64_t vaddr, struct symbol_lines *lines)
{
	(void)opened;
	(void)vaddr;
	(void)lines;
	if (shrinks)
		assert_int_equal(truncate(shrinks, 0), 0);
	shrinks = NULL;
	return SOURCE_NONE;
}

static size_t shrinking_bytes(const void *opened)
{
	(void)opened;
	return 0;
}

static void shrinking_free(void *opened)
{
	(void)opened;
}

/* The file shrinks while the process has it mapped: SIGBUS ends the process alone. */
static void test_shrinks(void **state)
{
	static const struct symbol_source shrinking = {.name = "shrinking",
						       .open = shrinking_open,
						       .find = shrinking_find,
						       .bytes = shrinking_bytes,
						       .free = shrinking_free};
	const struct symbol_source *const sources[] = {&shrinking, &source_dwarf, &source_symtab};
	struct symbolizer *s = new_with(NULL, 0, DEADLINE, sources, array_size(sources));
	struct image *good = fixture_image("inline-gcc4"), *image;
	uint64_t vaddr = some_vaddr(s, good);
	struct symbol symbol;
	struct copy c;

	(void)state;
	copy_init(&c, "inline-gcc4");
	image = copy_open(&c, c.n);
	check(s, image, vaddr, true);
	shrinks = c.path;
	assert_int_equal(symbolizer_find(s, &(struct frame){image, vaddr + 1}, &symbol), 0);
	assert_int_equal(symbol.lines[0].line, 0);
	assert_int_equal(symbol.missing, SYMBOL_OVERWRITTEN);
	assert_int_equal(count(s, DWARFREADER_CRASHED), 1);
	check(s, good, vaddr + 1, true);
	unlink(c.path);
	image_unref(image);
	free(c.bytes);
	image_unref(good);
	symbolizer_free(s);
}

#define HOSTILE_VADDR 0x401000u
#define HOSTILE_SIZE  0x1000u

/* A unit with @n_functions empty functions, a function with itself as sibling and origin, and
 * @n_rows rows of lines. */
static struct image *hostile_image(struct copy *c, size_t n_functions, size_t n_rows)
{
	static const uint8_t abbrev[] = {
		1, 0x11, 1,    0x11, 0x01, 0x12, 0x07, 0x10, 0x17, 0,	 0, /* low, high, lines */
		2, 0x2e, 0,    0x01, 0x13, 0x31, 0x13, 0x11, 0x01, 0x12, 0x07, 0,
		0, 3,	 0x2e, 0,    0x11, 0x01, 0x12, 0x0b, 0,	   0,	 0,
	};
	struct {
		uint32_t length;
		uint16_t version;
		uint32_t abbrev;
		uint8_t address_size;
		uint8_t unit;
		uint64_t low, size;
		uint32_t lines;
	} __attribute__((packed)) unit = {
		.version = 4,
		.address_size = 8,
		.unit = 1,
		.low = HOSTILE_VADDR,
		.size = HOSTILE_SIZE,
	};
	const struct {
		uint8_t function;
		uint64_t low;
		uint8_t size;
	} __attribute__((packed)) small = {3, HOSTILE_VADDR + HOSTILE_SIZE - 1, 1};
	struct {
		uint8_t function;
		uint32_t sibling, origin;
		uint64_t low, size;
		uint8_t end;
	} __attribute__((packed))
	circle = {.function = 2, .low = HOSTILE_VADDR, .size = HOSTILE_SIZE - 1};
	static const uint8_t line_header[] =
		{
			4, 0, 25, 0, 0, 0, 1, 1,    1,	  0xfb, 14, 13,	 0, 1,
			1, 1, 1,  0, 0, 0, 1, 0,    0,	  1,	0,  'a', 0, 0,
			0, 0, 0,  0, 9, 2, 0, 0x10, 0x40, 0,	0,  0,	 0, 0, /* the address */
		};
	static const uint8_t end[] = {0, 1, 1};
	const Elf64_Sym symbols[2] = {{0},
				      {.st_name = 1,
				       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				       .st_shndx = 1,
				       .st_value = HOSTILE_VADDR,
				       .st_size = HOSTILE_SIZE}};
	static const char strings[] = "\0hostile";
	const uint32_t n_lines = (uint32_t)(sizeof(line_header) + n_rows + sizeof(end));
	_cleanup_(freep) uint8_t *rows = malloc(n_rows + 1);
	struct elfmake m;
	size_t off, index;

	assert_non_null(rows);
	memset(rows, 0x21, n_rows); /* the next address and line */
	elfmake_init(&m, ET_EXEC, 0x8000 + n_rows + n_functions * sizeof(small));
	off = elfmake_bytes(&m, NULL, HOSTILE_SIZE);
	elfmake_section(&m, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, HOSTILE_VADDR, off,
			HOSTILE_SIZE);
	elfmake_segment(&m, PT_LOAD, PF_R | PF_X, HOSTILE_VADDR, off, HOSTILE_SIZE);
	off = elfmake_bytes(&m, abbrev, sizeof(abbrev));
	elfmake_section(&m, ".debug_abbrev", SHT_PROGBITS, 0, 0, off, sizeof(abbrev));
	circle.sibling = (uint32_t)(sizeof(unit) + n_functions * sizeof(small));
	circle.origin = circle.sibling;
	unit.length = (uint32_t)(circle.origin + sizeof(circle) - sizeof(unit.length));
	off = elfmake_bytes(&m, &unit, sizeof(unit));
	for (size_t i = 0; i < n_functions; i++)
		elfmake_bytes(&m, &small, sizeof(small));
	elfmake_bytes(&m, &circle, sizeof(circle));
	elfmake_section(&m, ".debug_info", SHT_PROGBITS, 0, 0, off, m.n - off);
	off = elfmake_bytes(&m, &n_lines, sizeof(n_lines));
	elfmake_bytes(&m, line_header, sizeof(line_header));
	elfmake_bytes(&m, rows, n_rows);
	elfmake_bytes(&m, end, sizeof(end));
	elfmake_section(&m, ".debug_line", SHT_PROGBITS, 0, 0, off, m.n - off);
	off = elfmake_bytes(&m, strings, sizeof(strings));
	index = elfmake_section(&m, ".strtab", SHT_STRTAB, 0, 0, off, sizeof(strings));
	off = elfmake_bytes(&m, symbols, sizeof(symbols));
	off = elfmake_section(&m, ".symtab", SHT_SYMTAB, 0, 0, off, sizeof(symbols));
	m.sh[off].sh_link = (uint32_t)index;
	m.sh[off].sh_entsize = sizeof(symbols[0]);
	elfmake_finish(&m);
	c->bytes = m.data;
	c->n = m.n;
	free(m.ph);
	return copy_open(c, c->n);
}

/* The symbol table has the name in each case. */
static void test_hostile(void **state)
{
	static const struct row {
		const char *name;
		size_t n_functions;
		size_t n_rows;
		enum dwarfreader_outcome outcome;
		bool has_line;
	} rows[] = {
		{"references in a circle", 0, 4, DWARFREADER_OK, true},
		{"eight million rows of lines", 0, 8 << 20, DWARFREADER_OK, false},
		{"two million functions", 2200000, 4, DWARFREADER_MEMORY, false},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct symbolizer *s = new_symbolizer(NULL, 0, DEADLINE);
		struct image *good = fixture_image("inline-gcc4"), *image;
		struct symbol symbol;
		struct copy c;

		row_begin(rows[i].name);
		image = hostile_image(&c, rows[i].n_functions, rows[i].n_rows);
		assert_int_equal(
			symbolizer_find(s, &(struct frame){image, HOSTILE_VADDR + 2}, &symbol), 0);
		assert_string_equal(symbol.lines[symbol.n_lines - 1].function, "hostile");
		assert_int_equal(count(s, rows[i].outcome), 1);
		assert_int_equal(symbol.lines[0].line > 0, rows[i].has_line);
		some_vaddr(s, good);
		symbolizer_free(s);
		unlink(c.path);
		image_unref(image);
		image_unref(good);
		free(c.bytes);
	}
}

#define FORGED_NAMES 1000

static int ignore(void *ctx, size_t i, const struct symbol *symbol)
{
	(void)ctx;
	(void)i;
	(void)symbol;
	return 0;
}

/* CPU time of the process for a name of the file. */
static uint64_t forged_name_ns(struct image *image, uint64_t vaddr)
{
	struct symbolizer *s = new_symbolizer(NULL, 0, DEADLINE);
	char readable[DEMANGLE_NAME_MAX];
	struct symbol symbol;
	uint64_t begin_ns;

	assert_int_equal(symbolizer_find(s, &(struct frame){image, vaddr}, &symbol), 0);
	assert_true(symbol.lines[0].line > 0);
	begin_ns = nsec_read(CLOCK_PROCESS_CPUTIME_ID);
	assert_true(demangle(symbol.lines[0].system_name, readable));
	begin_ns = nsec_read(CLOCK_PROCESS_CPUTIME_ID) - begin_ns;
	symbolizer_free(s);
	return begin_ns;
}

/* Names that take long to demangle are a part of the batch's work budget, which ends after some 150
 * of them. */
static void test_forged_names(void **state)
{
	struct image *image = fixture_image("forged");
	struct symbolizer *s = new_symbolizer(NULL, 0, DEADLINE);
	uint64_t vaddrs[FORGED_NAMES], begin_ns, name_ns;
	struct elffile_section code;

	(void)state;
	assert_int_equal(elffile_section(image->file, "forged", &code), 0);
	for (size_t i = 0; i < FORGED_NAMES; i++)
		vaddrs[i] = code.vaddr + i * (code.size / FORGED_NAMES);
	name_ns = forged_name_ns(image, vaddrs[0]);
	begin_ns = nsec_read(CLOCK_PROCESS_CPUTIME_ID);
	assert_int_equal(symbolizer_find_all(s, image, vaddrs, FORGED_NAMES, ignore, NULL), 0);
	assert_true(nsec_read(CLOCK_PROCESS_CPUTIME_ID) - begin_ns < FORGED_NAMES / 2 * name_ns);
	assert_int_equal(symbolizer_reads(s)[SYMBOL_READ_ABANDONED], 1);
	symbolizer_free(s);
	image_unref(image);
}

/* ---------------------------------------------------------------- the cache */

/* One line at @vaddr, whose number is the address. */
static void add(struct linecache *cache, uint64_t vaddr)
{
	const struct symbol_line line = {
		.function = "f", .system_name = "f", .file = "f.c", .line = (uint32_t)vaddr};

	assert_int_equal(linecache_add(cache, vaddr, &line, 1), 0);
}

static bool has(struct linecache *cache, uint64_t vaddr)
{
	const struct linecache_answer *answer = linecache_find(cache, vaddr);

	if (!answer)
		return false;
	assert_int_equal(answer->n, 1);
	assert_int_equal(answer->lines[0].line, vaddr);
	return true;
}

/* What is asked for now and then stays, however much is added; the bytes stay below the ceiling. */
static void test_eviction(void **state)
{
	enum { MAX = 256 << 10 };
	struct linecache cache;

	(void)state;
	linecache_init(&cache, MAX);
	add(&cache, 1);
	for (uint64_t vaddr = 2; vaddr < 20000; vaddr++) {
		add(&cache, vaddr);
		if (vaddr % 100 == 0)
			assert_true(has(&cache, 1));
		assert_true(linecache_bytes(&cache) <= MAX);
	}
	assert_true(has(&cache, 19999));
	assert_false(has(&cache, 2));
	assert_int_equal(linecache_add(&cache, 3, NULL, 0), 0); /* known to have no name */
	linecache_deinit(&cache);
}

/* A full cache keeps no further answers, and the kept answers stay in place until they age. */
static void test_borrowed(void **state)
{
	const struct linecache_answer none = {.start = 0x60, .has_start = true};
	const struct linecache_answer *first, *kept;
	struct linecache cache;
	uint64_t vaddr = 1;
	int r;

	(void)state;
	linecache_init(&cache, 64 << 10);
	for (size_t i = 0; i < 3; i++) {
		r = linecache_keep(&cache, vaddr, &none, false, &kept);
		assert_int_equal(r, 0);
		first = linecache_find(&cache, vaddr);
		assert_ptr_equal(first, kept);
		while (!r)
			r = linecache_keep(&cache, ++vaddr, &none, false, &kept);
		assert_int_equal(r, LINECACHE_FULL);
		assert_int_equal(first->n, 0);
		assert_true(first->has_start);
		assert_int_equal(first->start, 0x60);
		assert_non_null(linecache_find(&cache, vaddr - 1));
		linecache_age(&cache);
		assert_non_null(linecache_find(&cache, vaddr - 1));
		linecache_age(&cache); /* there is room */
		assert_non_null(linecache_find(&cache, vaddr - 1));
	}
	assert_null(linecache_find(&cache, 1));
	linecache_deinit(&cache);
}

/* Each of many addresses has its own answer, the last one that was kept. */
static void test_table(void **state)
{
	enum { N = 3000 };
	const struct linecache_answer *kept;
	struct linecache cache;

	(void)state;
	linecache_init(&cache, 2 << 20);
	for (uint64_t round = 0; round < 2; round++)
		for (uint64_t i = 0; i < N; i++) {
			const struct linecache_answer answer = {.start = i + round};

			assert_int_equal(linecache_keep(&cache, i << 12, &answer, false, &kept), 0);
			assert_int_equal(kept->start, i + round);
		}
	assert_int_equal(cache.young.n, N);
	for (uint64_t i = 0; i < N; i++) {
		assert_int_equal(linecache_find(&cache, i << 12)->start, i + 1);
		assert_null(linecache_find(&cache, (i << 12) + 1));
	}
	assert_null(linecache_find(&cache, (uint64_t)N << 12));
	linecache_deinit(&cache);
}

/* A string is there once, also for the answers with it. A full cache takes no string. */
static void test_strings(void **state)
{
	char text[64] = "function";
	struct symbol_line line = {.file = ""};
	const struct linecache_answer answer = {.lines = &line, .n = 1}, *first, *second;
	const char *function, *again, *found[2000];
	struct linecache cache;
	size_t n = 0;
	int r = 0;

	(void)state;
	linecache_init(&cache, 64 << 10);
	assert_int_equal(linecache_expect(&cache, 100), 0);
	assert_int_equal(linecache_string(&cache, text, strlen(text), &function), 0);
	assert_ptr_not_equal(function, text);
	assert_string_equal(function, text);
	assert_int_equal(linecache_string(&cache, "", 0, &line.file), 0);
	line.function = line.system_name = function;
	assert_int_equal(linecache_keep(&cache, 1, &answer, true, &first), 0);
	assert_ptr_equal(first->lines[0].function, function);
	line.function = text;
	assert_int_equal(linecache_keep(&cache, 2, &answer, false, &second), 0);
	assert_ptr_equal(second->lines[0].function, function);
	assert_ptr_equal(second->lines[0].system_name, function);
	assert_ptr_equal(second->lines[0].file, line.file);
	assert_int_equal(linecache_string(&cache, text, 4, &again), 0);
	assert_string_equal(again, "func");
	while (!r && n < array_size(found)) {
		snprintf(text, sizeof(text), "function %zu", n);
		r = linecache_string(&cache, text, strlen(text), &found[n]);
		n += !r;
	}
	assert_in_range(n, 500, array_size(found) - 1);
	for (size_t i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "function %zu", i);
		assert_string_equal(found[i], text);
		assert_int_equal(linecache_string(&cache, text, strlen(text), &again), 0);
		assert_ptr_equal(again, found[i]);
	}
	snprintf(text, sizeof(text), "function %zu", n);
	assert_int_equal(r, LINECACHE_FULL);
	assert_int_equal(linecache_string(&cache, "function", 8, &again), 0);
	assert_ptr_equal(again, function);
	linecache_age(&cache);
	assert_string_equal(first->lines[0].function, "function");
	assert_int_equal(linecache_string(&cache, text, strlen(text), &again), 0);
	linecache_deinit(&cache);
}

/* An address that was left out for lack of time, and a number of lines that is too large. */
static void test_left_out(void **state)
{
	static const uint8_t answer[] = {1, 0, 0, 0, 0, 0, DWARFWIRE_LEFT, 0, SYMBOL_LINES_MAX + 1};
	struct symbol_line lines[SYMBOL_LINES_MAX];
	struct dwarfwire_reader reader;
	size_t n = 7;

	(void)state;
	assert_int_equal(dwarfwire_reader_init(&reader, answer, sizeof(answer)), 0);
	assert_int_equal(dwarfwire_next(&reader, lines, &n), DWARFWIRE_NOT_ASKED);
	assert_int_equal(n, 7);
	assert_int_equal(dwarfwire_next(&reader, lines, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(dwarfwire_next(&reader, lines, &n), DWARFWIRE_MALFORMED);
	dwarfwire_reader_deinit(&reader);
}

static int keep_one(void *ctx)
{
	static const uint8_t answer[] = {2, 0, 0, 0, 0, 0, 1, 0, 'f', 1, 1, 0, 0, 0, 0,
					 0, 0, 0, 7, 0, 0, 0, 2, 0,   0, 0, 5, 0, 0, 0};
	struct symbol_line lines[SYMBOL_LINES_MAX];
	struct dwarfwire_reader reader;
	struct linecache cache;
	size_t n = 0;
	int r = dwarfwire_reader_init(&reader, answer, sizeof(answer));

	(void)ctx;
	if (r)
		return r;
	r = dwarfwire_next(&reader, lines, &n);
	linecache_init(&cache, 1 << 20);
	if (!r)
		r = linecache_add(&cache, 1, lines, n);
	linecache_deinit(&cache);
	dwarfwire_reader_deinit(&reader);
	return r;
}

static int find_one(void *ctx)
{
	const struct dwarfreader_opts dwarf = {.program = program()};
	const struct symbolizer_opts opts = {.cache_bytes = CACHE_BYTES, .dwarf = &dwarf};
	struct frame frame = {.image = ctx, .vaddr = text_of(ctx).vaddr};
	struct symbolizer *s = NULL;
	struct symbol symbol;
	int r = symbolizer_new(&opts, &s);

	if (!r)
		r = symbolizer_find(s, &frame, &symbol);
	symbolizer_free(s);
	return r;
}

static void test_without_memory(void **state)
{
	struct image *image = fixture_image("inline-gcc4");

	(void)state;
	allocfail_each(keep_one, NULL);
	allocfail_survive(find_one, image);
	image_unref(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chains),	       cmocka_unit_test(test_split),
		cmocka_unit_test(test_split_absent),   cmocka_unit_test(test_split_places),
		cmocka_unit_test(test_late),	       cmocka_unit_test(test_killed),
		cmocka_unit_test(test_broken_bytes),   cmocka_unit_test(test_shrinks),
		cmocka_unit_test(test_large),	       cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_forged_names),   cmocka_unit_test(test_eviction),
		cmocka_unit_test(test_borrowed),       cmocka_unit_test(test_table),
		cmocka_unit_test(test_left_out),       cmocka_unit_test(test_strings),
		cmocka_unit_test(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
