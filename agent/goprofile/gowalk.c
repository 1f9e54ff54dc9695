// SPDX-License-Identifier: Apache-2.0
/*
 * For each place of the code Go's tables give the number of bytes between the stack pointer and the
 * return address (gopclntab_sp()). So the walk needs no frame pointers. Leaf functions, and in
 * older releases functions about to enter a system call, have none.
 *
 *   amd64  return address at sp + n, the caller's sp above it
 *   arm64  return address at sp, if n is not 0; the caller's sp is sp + n
 *
 * The outermost function of every goroutine is runtime.goexit. A walk to code without a table (C),
 * or to the end of the copied stack, is not whole.
 *
 * Goroutines wait at few places, so the result for each return address is cached.
 */
#include "goprofile/gowalk.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "elf/elffile.h"
#include "gofile/gopclntab.h"
#include "goheap/goroutines.h"
#include "goheap/pcset.h"

/* Go files of a process. Reached: a stack ends at the first frame in any other file. */
#define GOWALK_FILES_MAX  16
/* Distinct return addresses in the cache, 40 bytes each. Reached: the stack ends there. */
#define GOWALK_PLACES_MAX (1u << 20)

/* The facts of a pc. */
struct place {
	uint32_t n_bytes; /* from sp to the value at function entry */
	bool known;
	bool root;  /* runtime.goexit */
	bool arm64; /* the place of the return address */
	bool system;
};

struct go_file {
	struct image *image; /* owned reference */
	struct gopclntab *table;
};

struct gowalk {
	struct stacksnap_space space;
	struct go_file files[GOWALK_FILES_MAX];
	size_t n_files;
	struct pcset pcs;
	struct place *places; /* of pcs */
	size_t cap;
	struct gopclntab_line line; /* scratch: large */
};

int gowalk_new(const struct stacksnap_space *space, struct gowalk **ret)
{
	struct gowalk *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->space = *space;
	*ret = w;
	return 0;
}

void gowalk_free(struct gowalk *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->n_files; i++) {
		gopclntab_free(w->files[i].table);
		image_unref(w->files[i].image);
	}
	pcset_deinit(&w->pcs);
	free(w->places);
	free(w);
}

/* ---------------------------------------------------------------- places */

/* *@ret is NULL for an image without Go. */
static int table_of(struct gowalk *w, struct image *image, struct gopclntab **ret)
{
	struct go_file *file;
	int r;

	*ret = NULL;
	for (size_t i = 0; i < w->n_files; i++) {
		if (w->files[i].image == image) {
			*ret = w->files[i].table;
			return 0;
		}
	}
	if (!image->file || w->n_files == GOWALK_FILES_MAX)
		return 0;
	file = &w->files[w->n_files];
	*file = (struct go_file){0};
	r = gopclntab_open(image->file, &file->table);
	if (r < 0)
		return r;
	file->image = image_ref(image);
	w->n_files++;
	*ret = file->table;
	return 0;
}

/* By the name of the goroutine's first function. Three goroutines of the program begin in the
 * runtime, too: the main goroutine, and the callers of finalizers and of cleanups. The two callers
 * belong to the program only during their work, but the work is not visible here. */
static bool is_system_name(const char *name)
{
	return strncmp(name, "runtime.", strlen("runtime.")) == 0 &&
	       strcmp(name, "runtime.main") != 0 && strcmp(name, "runtime.handleAsyncEvent") != 0;
}

static int look_up(struct gowalk *w, uint64_t pc, struct place *ret)
{
	struct gopclntab *table = NULL;
	struct frame frame;
	int r = w->space.resolve(w->space.ctx, pc, &frame);

	*ret = (struct place){0};
	if (r)
		return r;
	r = table_of(w, frame.image, &table);
	if (!r && table) {
		ret->arm64 = elffile_machine(frame.image->file) == EM_AARCH64;
		r = gopclntab_sp(table, frame.vaddr, &ret->n_bytes);
		if (!r)
			r = gopclntab_find(table, frame.vaddr, &w->line);
		ret->known = r == 0;
		ret->root = r == 0 && strcmp(w->line.function, "runtime.goexit") == 0;
		ret->system = r == 0 && is_system_name(w->line.function);
	}
	image_unref(frame.image);
	return r < 0 ? r : 0;
}

static int place_of(struct gowalk *w, uint64_t pc, struct place *ret)
{
	size_t n = w->pcs.n;
	uint32_t number;
	int r;

	*ret = (struct place){0};
	if (n >= GOWALK_PLACES_MAX)
		return 0;
	r = vec_grow(&w->places, &w->cap, n + 1, sizeof(*w->places), GOWALK_PLACES_MAX);
	if (!r)
		r = pcset_number(&w->pcs, pc, &number);
	if (r)
		return r < 0 ? r : -ENOMEM;
	if (number == n) {
		w->places[number] = (struct place){0};
		r = look_up(w, pc, &w->places[number]);
	}
	*ret = w->places[number];
	return r;
}

/* ---------------------------------------------------------------- a stack */

/* The word at @addr of the stack; false if not copied. */
static bool stack_word(const struct goroutine *g, uint64_t addr, uint64_t *ret)
{
	uint64_t off = addr - g->sp;

	if (addr < g->sp || off > g->n_stack || g->n_stack - off < sizeof(*ret))
		return false;
	memcpy(ret, g->stack + off, sizeof(*ret));
	return true;
}

/* Go to the caller; false at the end of the walk. */
static bool step(const struct goroutine *g, const struct place *place, uint64_t *pc, uint64_t *sp)
{
	uint64_t top;

	if (!place->known || (place->arm64 && !place->n_bytes) ||
	    __builtin_add_overflow(*sp, place->n_bytes, &top))
		return false;
	if (!stack_word(g, place->arm64 ? *sp : top, pc) || !*pc)
		return false;
	*sp = place->arm64 ? top : top + sizeof(*pc);
	return true;
}

int gowalk(struct gowalk *w, const struct goroutine *g, uint64_t ret[GOWALK_FRAMES_MAX],
	   size_t *ret_n, bool *ret_whole)
{
	uint64_t pc = g->pc, sp = g->sp;
	struct place place;

	*ret_n = 0;
	*ret_whole = false;
	while (pc && *ret_n < GOWALK_FRAMES_MAX) {
		int r = place_of(w, pc, &place);

		if (r)
			return r;
		*ret_whole = place.root;
		/* a goroutine that has not started is at an instruction, not after a call */
		ret[*ret_n] = *ret_n == 0 && pc == g->start_pc ? pc + 1 : pc;
		++*ret_n;
		if (place.root || !step(g, &place, &pc, &sp))
			break;
	}
	return 0;
}

int gowalk_is_system(struct gowalk *w, uint64_t start_pc, bool *ret)
{
	struct place place;
	int r = place_of(w, start_pc, &place);

	if (!r)
		*ret = place.system;
	return r;
}
