// SPDX-License-Identifier: Apache-2.0
/*
 * A line of /proc/kallsyms is
 *
 *	ADDRESS TYPE NAME[\t[MODULE]]
 *
 * with the types of nm(1). There are no sizes. A function reaches to the next symbol of any type,
 * and at most KSYMS_FUNCTION_MAX bytes; this limit matters at the end of a module. Of the kernel
 * itself only symbols between _stext and _etext count. The list also has initialisation code, but
 * the kernel has freed this code, and modules may use its addresses. Modules, BPF programs
 * ("[bpf]") and trampolines ("[ftrace]") are accepted unchanged.
 *
 * Users without the right to see addresses see zeros (kernel.kptr_restrict).
 *
 * 16 bytes a function and one table of names; 6 MB for 117,000 functions.
 */
#include "symbolize/ksyms.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/line_reader.h"
#include "base/root.h"
#include "base/strview.h"
#include "base/vec.h"
#include "symbolize/symname.h"

/* Symbols of all types while the file is read (16 bytes each), and the bytes of their names. A
 * kernel with everything has 300,000. Reached: no name. */
#define KSYMS_SYMBOLS_MAX  (1u << 20)
/* Bytes of their names. Reached: no name. */
#define KSYMS_NAMES_MAX	   (48u << 20)
/* Bytes; the kernel's largest functions have some 30 KiB. Reached: no name. */
#define KSYMS_FUNCTION_MAX (256u << 10)

enum ksym_kind {
	KSYM_GLOBAL, /* by rank, the best first */
	KSYM_WEAK,
	KSYM_LOCAL,
	KSYM_BOUNDARY, /* not a function: ends the function before it */
};

struct ksym {
	uint64_t start;
	uint32_t size : 29;
	uint32_t kind : 2; /* enum ksym_kind */
	uint32_t core : 1; /* of the kernel itself, not of a module or the like */
	uint32_t name;	   /* offset into names */
};
_Static_assert(sizeof(struct ksym) == 16, "16 bytes a symbol");

struct ksyms {
	struct ksym *items; /* ascending; unique addresses after the load */
	size_t n;
	size_t cap;
	struct buf names;
	uint64_t text_start; /* _stext */
	uint64_t text_limit; /* _etext */
	bool any;	     /* a line was understood */
	bool shown;	     /* an address was not 0 */
};

DEFINE_CLEANUP(struct ksyms *, ksyms_freep, ksyms_free);

const char *ksyms_outcome_name(int outcome)
{
	static const char *const names[KSYMS_OUTCOME_MAX] = {
		[KSYMS_OK] = "ok",
		[KSYMS_ABSENT] = "absent",
		[KSYMS_DENIED] = "denied",
		[KSYMS_HIDDEN] = "hidden",
		[KSYMS_NOT_FOUND] = "not_found",
	};

	return outcome >= 0 && outcome < KSYMS_OUTCOME_MAX ? names[outcome] : "error";
}

/* ---------------------------------------------------------------- load */

struct ksym_line {
	uint64_t start;
	char type;
	struct strview name;
	struct strview module; /* "[x]", or empty */
};

static bool parse_line(struct strview line, struct ksym_line *ret)
{
	struct strview type;

	if (!strview_u64(&line, 16, &ret->start) || !strview_word(&line, &type) ||
	    strview_len(&type) != 1 || !strview_word(&line, &ret->name))
		return false;
	ret->type = *type.p;
	ret->module = strview_of("");
	if (strview_word(&line, &ret->module) && !strview_starts(&ret->module, "["))
		return false;
	return true;
}

static enum ksym_kind kind_of(const struct ksym_line *line)
{
	switch (line->type) {
	case 'T':
		return KSYM_GLOBAL;
	case 'W':
	case 'w':
		return KSYM_WEAK;
	case 't':
		return KSYM_LOCAL;
	default:
		return KSYM_BOUNDARY;
	}
}

/* Appends "name" or "name [module]" to the names. BUF_FULL above the ceiling. */
static int add_name(struct ksyms *k, const struct ksym_line *line, uint32_t *ret)
{
	size_t at = k->names.len;
	int r = buf_append(&k->names, line->name.p, strview_len(&line->name));

	if (!r && strview_len(&line->module))
		r = buf_puts(&k->names, " ");
	if (!r)
		r = buf_append(&k->names, line->module.p, strview_len(&line->module));
	if (!r)
		r = buf_append(&k->names, "", 1);
	if (r)
		k->names.len = at;
	else
		*ret = (uint32_t)at;
	return r;
}

static void note_text_bounds(struct ksyms *k, const struct ksym_line *line)
{
	if (strview_len(&line->module))
		return;
	if (strview_is(&line->name, "_stext"))
		k->text_start = line->start;
	else if (strview_is(&line->name, "_etext"))
		k->text_limit = line->start;
}

static int add_line(void *ctx, struct strview text)
{
	struct ksyms *k = ctx;
	struct ksym_line line;
	struct ksym sym = {0};
	uint32_t name = 0;
	int r;

	if (!parse_line(text, &line))
		return 0;
	k->any = true;
	if (!line.start)
		return 0;
	k->shown = true;
	note_text_bounds(k, &line);
	sym.start = line.start;
	sym.kind = kind_of(&line);
	sym.core = strview_empty(&line.module);
	r = vec_grow(&k->items, &k->cap, k->n + 1, sizeof(*k->items), KSYMS_SYMBOLS_MAX);
	if (!r && sym.kind != KSYM_BOUNDARY)
		r = add_name(k, &line, &name);
	if (r)
		return r < 0 ? r : 0;
	sym.name = name;
	k->items[k->n++] = sym;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct ksym *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

/* The best of @n names of an address, sorted by rank. */
static struct ksym best_of(const struct ksyms *k, const struct ksym *same, size_t n)
{
	struct ksym best = same[0];

	for (size_t i = 1; i < n && same[i].kind == best.kind && best.kind != KSYM_BOUNDARY; i++)
		if (symname_is_better(k->names.data + same[i].name, k->names.data + best.name))
			best = same[i];
	return best;
}

static bool is_shown(const struct ksyms *k, const struct ksym *sym)
{
	if (sym->kind == KSYM_BOUNDARY)
		return false;
	if (!sym->core || !k->text_start || !k->text_limit)
		return true;
	return sym->start >= k->text_start && sym->start < k->text_limit;
}

/* Leaves a function for each address; the next symbol gives its size. */
static void make_functions(struct ksyms *k)
{
	size_t kept = 0, next;

	for (size_t i = 0; i < k->n; i = next) {
		uint64_t size = KSYMS_FUNCTION_MAX;
		struct ksym best;

		for (next = i + 1; next < k->n && k->items[next].start == k->items[i].start;)
			next++;
		best = best_of(k, &k->items[i], next - i);
		if (next < k->n && k->items[next].start - best.start < size)
			size = k->items[next].start - best.start;
		best.size = (uint32_t)size & ((1u << 29) - 1);
		if (is_shown(k, &best))
			k->items[kept++] = best;
	}
	k->n = kept;
}

/* Releases unused room of the arrays. */
static void shrink(struct ksyms *k)
{
	struct ksym *items = reallocarray(k->items, k->n, sizeof(*items));

	if (!items)
		return;
	k->items = items;
	k->cap = k->n;
}

static int read_lines(const struct root *proc, struct ksyms *k)
{
	_cleanup_(close_fdp) int fd = -1;
	size_t n_skipped;
	int r = root_open_file(proc, "kallsyms", &fd);

	if (!r)
		r = line_reader_read(fd, add_line, k, &n_skipped);
	if (r > 0)
		return r == ROOT_DENIED ? KSYMS_DENIED : KSYMS_ABSENT;
	return r;
}

int ksyms_load(const struct root *proc, struct ksyms **ret)
{
	_cleanup_(ksyms_freep) struct ksyms *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return -ENOMEM;
	buf_init(&k->names, KSYMS_NAMES_MAX);
	r = read_lines(proc, k);
	if (r)
		return r;
	if (k->any && !k->shown)
		return KSYMS_HIDDEN;
	if (k->n)
		qsort(k->items, k->n, sizeof(*k->items), compare);
	make_functions(k);
	if (!k->n)
		return KSYMS_ABSENT;
	shrink(k);
	*ret = take_ptr(k);
	return 0;
}

void ksyms_free(struct ksyms *k)
{
	if (!k)
		return;
	free(k->items);
	buf_deinit(&k->names);
	free(k);
}

size_t ksyms_n(const struct ksyms *k)
{
	return k->n;
}

size_t ksyms_bytes(const struct ksyms *k)
{
	return sizeof(*k) + k->cap * sizeof(*k->items) + k->names.cap;
}

/* ---------------------------------------------------------------- find */

int ksyms_find(const struct ksyms *k, uint64_t pc, const char **ret_name, uint64_t *ret_start)
{
	size_t low = 0, high = k->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct ksym *sym = &k->items[mid];

		if (pc < sym->start) {
			high = mid;
		} else if (pc - sym->start >= sym->size) {
			low = mid + 1;
		} else {
			*ret_name = k->names.data + sym->name;
			*ret_start = sym->start;
			return 0;
		}
	}
	return KSYMS_NOT_FOUND;
}
