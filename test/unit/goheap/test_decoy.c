// SPDX-License-Identifier: Apache-2.0
/*
 * Programs whose sampling looks forceable, but whose tables lead elsewhere: nothing may be written.
 * Each is a real Go program with sampling turned off by the linker, and with its file changed
 * before the start. A running program does not read the changed tables, so it works as before.
 */
#include "support/test.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "goheap/force.h"
#include "goheap/goheap.h"
#include "support/gofixture.h"
#include "support/goprocess.h"

#define PLAIN "test/fixtures/go/plain"
#define RATE  "runtime.MemProfileRate"

/* ---------------------------------------------------------------- a file to change */

struct image {
	uint8_t *bytes;
	size_t n;
	Elf64_Ehdr *ehdr;
	Elf64_Shdr *sections;
	Elf64_Sym *syms;
	size_t n_syms;
	char *names;
};

static void image_load(const char *path, struct image *ret)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	*ret = (struct image){.bytes = malloc((size_t)st.st_size), .n = (size_t)st.st_size};
	assert_non_null(ret->bytes);
	assert_int_equal(read(fd, ret->bytes, ret->n), ret->n);
	close(fd);
	ret->ehdr = (Elf64_Ehdr *)ret->bytes;
	ret->sections = (Elf64_Shdr *)(ret->bytes + ret->ehdr->e_shoff);
	for (size_t i = 0; i < ret->ehdr->e_shnum; i++) {
		const Elf64_Shdr *s = &ret->sections[i];

		if (s->sh_type != SHT_SYMTAB)
			continue;
		ret->syms = (Elf64_Sym *)(ret->bytes + s->sh_offset);
		ret->n_syms = s->sh_size / sizeof(*ret->syms);
		ret->names = (char *)ret->bytes + ret->sections[s->sh_link].sh_offset;
	}
	assert_non_null(ret->syms);
}

static Elf64_Sym *find_symbol(const struct image *image, const char *name)
{
	for (size_t i = 0; i < image->n_syms; i++)
		if (strcmp(image->names + image->syms[i].st_name, name) == 0)
			return &image->syms[i];
	fail_msg("no symbol %s", name);
	return NULL;
}

static size_t find_section(const struct image *image, const char *name)
{
	const Elf64_Shdr *strings = &image->sections[image->ehdr->e_shstrndx];
	const char *names = (const char *)image->bytes + strings->sh_offset;

	for (size_t i = 0; i < image->ehdr->e_shnum; i++)
		if (strcmp(names + image->sections[i].sh_name, name) == 0)
			return i;
	fail_msg("no section %s", name);
	return 0;
}

static uint8_t *bytes_at(const struct image *image, uint64_t vaddr)
{
	for (size_t i = 0; i < image->ehdr->e_shnum; i++) {
		const Elf64_Shdr *s = &image->sections[i];

		if (s->sh_addr && s->sh_type != SHT_NOBITS && vaddr >= s->sh_addr &&
		    vaddr - s->sh_addr < s->sh_size)
			return image->bytes + s->sh_offset + (vaddr - s->sh_addr);
	}
	fail_msg("nothing at %" PRIx64, vaddr);
	return NULL;
}

static void image_store(struct image *image, char path[32])
{
	int fd;

	snprintf(path, 32, "/tmp/podprof-decoy.XXXXXX");
	fd = mkostemp(path, O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, image->bytes, image->n), image->n);
	assert_int_equal(fchmod(fd, 0755), 0);
	close(fd);
	free(image->bytes);
}

/* ---------------------------------------------------------------- the changes */

/* The symbol leads @by bytes further. */
static void move(struct image *image, int64_t by)
{
	find_symbol(image, RATE)->st_value += (uint64_t)by;
}

static void to_next_word(struct image *image)
{
	move(image, 8);
}

static void to_half_a_word(struct image *image)
{
	move(image, 4);
}

static void to_code(struct image *image)
{
	Elf64_Sym *sym = find_symbol(image, RATE);

	sym->st_shndx = (uint16_t)find_section(image, ".text");
	sym->st_value = image->sections[sym->st_shndx].sh_addr + 0x1000;
}

static void to_constants(struct image *image)
{
	Elf64_Sym *sym = find_symbol(image, RATE);

	sym->st_shndx = (uint16_t)find_section(image, ".rodata");
	sym->st_value = image->sections[sym->st_shndx].sh_addr;
}

/* In writable data, but outside of the named section. */
static void to_another_section(struct image *image)
{
	Elf64_Sym *sym = find_symbol(image, RATE);

	sym->st_value = image->sections[find_section(image, ".bss")].sh_addr + 4096;
}

static void to_pointers(struct image *image)
{
	Elf64_Sym *sym = find_symbol(image, RATE);

	sym->st_shndx = (uint16_t)find_section(image, ".bss");
	sym->st_value = find_symbol(image, "runtime.mbuckets")->st_value;
}

/* Go's heap begins there: mapped, private and writable. */
static void to_the_heap(struct image *image)
{
	find_symbol(image, RATE)->st_value = 0xc000000000 + 4096;
}

static void half_as_large(struct image *image)
{
	find_symbol(image, RATE)->st_size = 4;
}

static void two_of_them(struct image *image)
{
	find_symbol(image, "runtime.blockprofilerate")->st_name = find_symbol(image, RATE)->st_name;
}

/* Each address in the function, relative to the code, leads a word further. */
static void move_code(struct image *image, const char *function)
{
	const Elf64_Sym *sym = find_symbol(image, function);
	uint64_t rate = find_symbol(image, RATE)->st_value;
	uint8_t *code = bytes_at(image, sym->st_value);
	unsigned int n = 0;

	for (size_t i = 0; i + 4 <= sym->st_size; i++) {
		int32_t rel;

		memcpy(&rel, code + i, sizeof(rel));
		if (sym->st_value + i + 4 + (uint64_t)(int64_t)rel != rate)
			continue;
		rel += 8;
		memcpy(code + i, &rel, sizeof(rel));
		n++;
	}
	assert_true(n > 0);
}

static void code_to_next_word(struct image *image)
{
	move_code(image, "runtime.profilealloc");
}

static void both_to_next_word(struct image *image)
{
	move_code(image, "runtime.profilealloc");
	move(image, 8);
}

static void without_symbol(struct image *image)
{
	move_code(image, "runtime.profilealloc");
	find_symbol(image, RATE)->st_name = 0;
}

/* ---------------------------------------------------------------- decoys */

struct decoy_row {
	const char *name;
	void (*change)(struct image *image);
	bool is_known; /* the rest proves the rate's address: this word may be written, nothing else
			*/
};

static const struct decoy_row decoy_rows[] = {
	{"symbol: the next word", to_next_word, false},
	{"symbol: half a word further", to_half_a_word, false},
	{"symbol: in the code", to_code, false},
	{"symbol: in the constants", to_constants, false},
	{"symbol: in another section than it says", to_another_section, false},
	{"symbol: another variable's address", to_pointers, false},
	{"symbol: in another mapping", to_the_heap, false},
	{"symbol: four bytes long", half_as_large, false},
	{"symbol: two of them", two_of_them, false},
	{"code: the next word", code_to_next_word, true},
	{"code and symbol: the next word", both_to_next_word, false},
	{"code, no symbol: the next word", without_symbol, false},
};

/* All ones for unmapped addresses. */
static uint64_t word_at(const struct goprocess *p, uint64_t addr)
{
	uint64_t word = UINT64_MAX;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/mem", p->id.pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	if (pread(fd, &word, sizeof(word), (off_t)addr) != sizeof(word))
		word = UINT64_MAX;
	close(fd);
	return word;
}

static struct goheap *open_heap(const struct goprocess *p)
{
	const struct goheap_opts opts = {.proc = &p->proc, .id = p->id, .force = true};
	struct goheap *h;

	assert_int_equal(goheap_new(&opts, &h), 0);
	return h;
}

/* Words around the rate, and around its symbol's address. */
#define AROUND 2

static void look_around(const struct goprocess *p, const uint64_t places[2],
			uint64_t ret[2 * AROUND])
{
	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < AROUND; k++)
			ret[i * AROUND + k] = word_at(p, places[i] - places[i] % 8 + k * 8);
}

static void check_decoy(const struct decoy_row *row, const char *path)
{
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	static const char *const args[] = {NULL};
	uint64_t places[2], before[2 * AROUND], after[2 * AROUND];
	struct goheap_profile profile;
	struct image image;
	struct goheap *h;
	char decoy[32];
	int r;

	image_load(path, &image);
	places[0] = find_symbol(&image, RATE)->st_value;
	row->change(&image);
	places[1] = places[0] + 8;
	for (size_t i = 0; !row->is_known && i < image.n_syms; i++)
		if (strcmp(image.names + image.syms[i].st_name, RATE) == 0)
			places[1] = image.syms[i].st_value;
	image_store(&image, decoy);

	goprocess_start(&p, decoy, args, NULL);
	look_around(&p, places, before);
	assert_int_equal(word_at(&p, places[0]), 0); /* the word podprof would write */
	h = open_heap(&p);
	r = goheap_read(h, &profile);
	look_around(&p, places, after);
	assert_int_not_equal(r, GORUNTIME_OK);
	if (r == GORUNTIME_FORCED) {
		assert_true(row->is_known);
		assert_int_equal(after[0], FORCE_RATE);
		after[0] = 0;
		after[AROUND] = places[1] == places[0] ? 0 : after[AROUND];
	}
	assert_memory_equal(before, after, sizeof(before));
	goprocess_order(&p, "allocate"); /* the program still runs */
	goheap_free(h);
	unlink(decoy);
}

static void decoys(void **state)
{
	const char *gos[GOFIXTURE_GOS_MAX];
	size_t n = gofixture_gos(gos);

	(void)state;
	for (size_t g = 0; g < n; g++) {
		_cleanup_(freep) char *path = gofixture_build(PLAIN, gos[g], "default");

		if (gofixture_minor(path) < 17)
			continue; /* this linker turns nothing off */
		for (size_t i = 0; i < array_size(decoy_rows); i++) {
			row_begin(decoy_rows[i].name);
			check_decoy(&decoy_rows[i], path);
		}
	}
}

/* A decoy replaces the file after podprof has read it; the running program counts. A process that
 * executes another program in between is not written to. */
static void replaced(void **state)
{
	const char *gos[GOFIXTURE_GOS_MAX];
	_cleanup_(freep) char *path =
		gofixture_build(PLAIN, gos[gofixture_gos(gos) - 1], "default");
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	static const char *const args[] = {NULL};
	char running[32], decoy[32];
	struct goheap_profile profile;
	struct image image;
	struct goheap *h;
	uint64_t rate;

	(void)state;
	image_load(path, &image);
	rate = find_symbol(&image, RATE)->st_value;
	image_store(&image, running);
	image_load(path, &image);
	to_next_word(&image);
	image_store(&image, decoy);
	goprocess_start(&p, running, args, NULL);
	h = open_heap(&p);
	assert_int_equal(rename(decoy, running), 0);
	goprocess_order(&p, "exec"); /* the first program runs again: another address space */
	assert_int_equal(goheap_read(h, &profile), GORUNTIME_GONE);
	assert_int_equal(word_at(&p, rate), 0);
	goheap_free(h);
	/* the file is deleted; the process still has it mapped */
	h = open_heap(&p);
	assert_int_equal(goheap_read(h, &profile), GORUNTIME_FORCED);
	assert_int_equal(word_at(&p, rate), FORCE_RATE);
	goheap_free(h);
	unlink(running);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decoys),
		cmocka_unit_test(replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
