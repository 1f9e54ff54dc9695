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
 * The kernel's own symbols come sorted; modules and BPF programs follow in any order. So only the
 * rest is sorted, and merged. A function then takes 8 bytes and its name: the low half of its
 * address, and the place of the packed name. Functions with the same high half are a group. A gap
 * ends a function and is none.
 *
 * Kernels with room for a patched call before each function (CONFIG_FUNCTION_PADDING_BYTES) list
 * this room as "__pfx_NAME" directly before NAME. The room is a part of the function: its calls are
 * the function's, and half of the list would be such names.
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
#include "symbolize/packed_names.h"
#include "symbolize/symname.h"

/* Symbols of all types while the file is read, 16 bytes each. A kernel with everything has 300,000.
 * Reached: no name. */
#define KSYMS_SYMBOLS_MAX  (1u << 20)
/* Bytes of their names. Reached: no name. */
#define KSYMS_NAMES_MAX	   (48u << 20)
/* Bytes; the kernel's largest functions have some 30 KiB. Reached: no name. */
#define KSYMS_FUNCTION_MAX (256u << 10)
/* Bytes; kernels have at most 64. Reached: the room is a function of its own. */
#define KSYMS_PADDING_MAX  256u
#define KSYMS_PADDING	   "__pfx_"

enum ksym_kind {
	KSYM_GLOBAL, /* by rank, the best first */
	KSYM_WEAK,
	KSYM_LOCAL,
	KSYM_BOUNDARY, /* not a function: ends the function before it */
};

/* A symbol while the list is read. */
struct ksym {
	uint64_t start;
	uint32_t name; /* offset into names */
	uint8_t kind;  /* enum ksym_kind */
	bool core;     /* of the kernel itself, not of a module or the like */
};
_Static_assert(sizeof(struct ksym) == 16, "16 bytes a symbol");

/* The list, during the read. */
struct listing {
	struct ksym *items;
	size_t n;
	size_t cap;
	size_t n_sorted; /* sorted, in front */
	struct buf names;
	uint64_t text_start; /* _stext */
	uint64_t text_limit; /* _etext */
	bool any;	     /* a line was understood */
	bool shown;	     /* an address was not 0 */
};

#define KSYM_GAP UINT32_MAX

struct function {
	uint32_t low;  /* half of the address */
	uint32_t name; /* place in names, or KSYM_GAP */
};

/* Functions from @first on. */
struct group {
	uint64_t high; /* half of the addresses, in place */
	size_t first;
};

struct ksyms {
	struct function *items; /* ascending and unique in each group */
	size_t n;
	size_t n_functions;
	struct group *groups; /* ascending */
	size_t n_groups;
	size_t groups_cap;
	struct packed_names names;
	uint64_t text_start;
};

static void listing_deinit(struct listing *l)
{
	free(l->items);
	buf_deinit(&l->names);
}

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

/* A list has more than 100,000 lines: this is half of the time to load the list. */
static bool parse_line(struct strview line, struct ksym_line *ret)
{
	const char *tab;

	if (!strview_u64(&line, 16, &ret->start) || strview_len(&line) < 4 || line.p[0] != ' ' ||
	    line.p[2] != ' ')
		return false;
	ret->type = line.p[1];
	ret->name = (struct strview){line.p + 3, line.end};
	ret->module = strview_of_bytes(line.end, 0);
	tab = memchr(ret->name.p, '\t', strview_len(&ret->name));
	if (!tab)
		return true;
	ret->name.end = tab;
	ret->module.p = tab + 1;
	return tab > ret->name.p && strview_starts(&ret->module, "[");
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

/* Appends "name" or "name [module]". BUF_FULL above the ceiling. */
static int add_name(struct buf *names, const struct ksym_line *line, uint32_t *ret)
{
	const size_t n = strview_len(&line->name), n_module = strview_len(&line->module);
	const size_t all = n + (n_module ? 1 + n_module : 0) + 1;
	char *to;
	int r = buf_reserve(names, all, &to);

	if (r)
		return r;
	memcpy(to, line->name.p, n);
	if (n_module) {
		to[n] = ' ';
		memcpy(to + n + 1, line->module.p, n_module);
	}
	to[all - 1] = '\0';
	*ret = (uint32_t)names->len;
	names->len += all;
	return 0;
}

static void note_text_bounds(struct listing *l, const struct ksym_line *line)
{
	if (strview_is(&line->name, "_stext"))
		l->text_start = line->start;
	else if (strview_is(&line->name, "_etext"))
		l->text_limit = line->start;
}

static int add_line(void *ctx, struct strview text)
{
	struct listing *l = ctx;
	struct ksym_line line;
	struct ksym sym = {0};
	int r;

	if (!parse_line(text, &line))
		return 0;
	l->any = true;
	if (!line.start)
		return 0;
	l->shown = true;
	sym.start = line.start;
	sym.kind = kind_of(&line);
	sym.core = strview_empty(&line.module);
	if (sym.core)
		note_text_bounds(l, &line);
	r = vec_grow(&l->items, &l->cap, l->n + 1, sizeof(*l->items), KSYMS_SYMBOLS_MAX);
	if (!r && sym.kind != KSYM_BOUNDARY)
		r = add_name(&l->names, &line, &sym.name);
	if (r)
		return r < 0 ? r : 0;
	if (l->n_sorted == l->n && (!l->n || l->items[l->n - 1].start <= sym.start))
		l->n_sorted++;
	l->items[l->n++] = sym;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct ksym *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Merges the sorted front with the rest. */
static int sort(struct listing *l)
{
	struct ksym *rest = l->items + l->n_sorted, *merged;
	size_t n_rest = l->n - l->n_sorted, i = 0, k = 0;

	if (!n_rest)
		return 0;
	qsort(rest, n_rest, sizeof(*rest), compare);
	if (l->items[l->n_sorted - 1].start <= rest[0].start)
		return 0;
	merged = calloc(l->n, sizeof(*merged));
	if (!merged)
		return -ENOMEM;
	for (size_t n = 0; n < l->n; n++) {
		bool front = i < l->n_sorted && (k == n_rest || l->items[i].start <= rest[k].start);

		merged[n] = front ? l->items[i++] : rest[k++];
	}
	free(l->items);
	l->items = merged;
	return 0;
}

static bool is_better(const struct listing *l, const struct ksym *a, const struct ksym *b)
{
	if (a->kind != b->kind)
		return a->kind < b->kind;
	return a->kind != KSYM_BOUNDARY &&
	       symname_is_better(l->names.data + a->name, l->names.data + b->name);
}

static bool is_shown(const struct listing *l, const struct ksym *sym)
{
	if (sym->kind == KSYM_BOUNDARY)
		return false;
	if (!sym->core || !l->text_start || !l->text_limit)
		return true;
	return sym->start >= l->text_start && sym->start < l->text_limit;
}

/* @name: KSYM_GAP for a gap. There is room. */
static int add_function(struct ksyms *k, uint64_t start, uint32_t name)
{
	const uint64_t high = start & ~(uint64_t)UINT32_MAX;
	int r = 0;

	if (!k->n_groups || k->groups[k->n_groups - 1].high != high) {
		r = vec_grow(&k->groups, &k->groups_cap, k->n_groups + 1, sizeof(*k->groups),
			     KSYMS_SYMBOLS_MAX);
		if (r)
			return r;
		k->groups[k->n_groups++] = (struct group){high, k->n};
	}
	k->items[k->n++] = (struct function){(uint32_t)start, name};
	k->n_functions += name != KSYM_GAP;
	return 0;
}

/* The symbol that names the address of item *@i, and *@i moves behind the address's symbols. */
static const struct ksym *best_at(const struct listing *l, size_t *i)
{
	const struct ksym *best = &l->items[*i];
	const uint64_t start = best->start;

	while (++*i < l->n && l->items[*i].start == start)
		if (is_better(l, &l->items[*i], best))
			best = &l->items[*i];
	return best;
}

/* Whether @sym is the room before the function @next. */
static bool is_padding(const struct listing *l, const struct ksym *sym, const struct ksym *next)
{
	const char *name = l->names.data + sym->name;
	const size_t n = strlen(KSYMS_PADDING);

	return sym->kind != KSYM_BOUNDARY && next->kind != KSYM_BOUNDARY &&
	       next->start - sym->start <= KSYMS_PADDING_MAX &&
	       strncmp(name, KSYMS_PADDING, n) == 0 &&
	       strcmp(name + n, l->names.data + next->name) == 0;
}

/* The best name of each address. A single gap is enough behind a function. */
static int make_functions(struct ksyms *k, const struct listing *l)
{
	bool in_gap = true;
	int r = 0;

	packed_names_init(&k->names, KSYMS_NAMES_MAX);
	k->items = calloc(l->n ? l->n : 1, sizeof(*k->items));
	if (!k->items)
		return -ENOMEM;
	for (size_t i = 0; i < l->n && !r;) {
		const struct ksym *best = best_at(l, &i);
		const uint64_t start = best->start;
		uint32_t name = KSYM_GAP;
		bool shown = is_shown(l, best);

		if (shown && i < l->n) {
			size_t after = i;
			const struct ksym *next = best_at(l, &after);

			if (is_padding(l, best, next)) {
				best = next;
				i = after;
			}
		}
		if (shown)
			r = packed_names_add(&k->names, l->names.data + best->name, &name);
		if (!r && (shown || !in_gap))
			r = add_function(k, start, name);
		in_gap = !shown;
	}
	return r;
}

/* Releases unused room. */
static void shrink(struct ksyms *k)
{
	struct function *items = reallocarray(k->items, k->n, sizeof(*items));

	if (items)
		k->items = items;
	packed_names_complete(&k->names);
}

static int read_lines(const struct root *proc, struct listing *l)
{
	_cleanup_(close_fdp) int fd = -1;
	size_t n_skipped;
	int r = root_open_file(proc, "kallsyms", &fd);

	if (!r)
		r = line_reader_read(fd, add_line, l, &n_skipped);
	if (r > 0)
		return r == ROOT_DENIED ? KSYMS_DENIED : KSYMS_ABSENT;
	return r;
}

int ksyms_load(const struct root *proc, struct ksyms **ret)
{
	_cleanup_(listing_deinit) struct listing l = {.names = BUF_INIT(KSYMS_NAMES_MAX)};
	_cleanup_(ksyms_freep) struct ksyms *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return -ENOMEM;
	r = read_lines(proc, &l);
	if (r)
		return r;
	if (l.any && !l.shown)
		return KSYMS_HIDDEN;
	r = sort(&l);
	if (!r)
		r = make_functions(k, &l);
	if (r)
		return r;
	if (!k->n_functions)
		return KSYMS_ABSENT;
	k->text_start = l.text_start;
	shrink(k);
	*ret = take_ptr(k);
	return 0;
}

void ksyms_free(struct ksyms *k)
{
	if (!k)
		return;
	free(k->items);
	free(k->groups);
	packed_names_deinit(&k->names);
	free(k);
}

size_t ksyms_n(const struct ksyms *k)
{
	return k->n_functions;
}

size_t ksyms_bytes(const struct ksyms *k)
{
	return sizeof(*k) + k->n * sizeof(*k->items) + k->groups_cap * sizeof(*k->groups) +
	       packed_names_bytes(&k->names);
}

uint64_t ksyms_text_start(const struct ksyms *k)
{
	return k->text_start;
}

/* ---------------------------------------------------------------- find */

/* The last group that begins at @pc or before; NULL: none. */
static const struct group *group_of(const struct ksyms *k, uint64_t pc)
{
	const struct group *found = NULL;

	for (size_t low = 0, high = k->n_groups; low < high;) {
		size_t mid = low + (high - low) / 2;

		if (k->groups[mid].high > pc) {
			high = mid;
		} else {
			found = &k->groups[mid];
			low = mid + 1;
		}
	}
	return found;
}

/* A function before the first one of the group of @pc belongs to the group before. */
int ksyms_find(const struct ksyms *k, uint64_t pc, struct ksyms_name *ret_name, uint64_t *ret_start)
{
	const struct group *group = group_of(k, pc), *end = k->groups + k->n_groups;
	const struct function *found;
	uint64_t start;
	size_t low, high;

	if (group && pc < (group->high | k->items[group->first].low))
		group = group > k->groups ? group - 1 : NULL;
	if (!group)
		return KSYMS_NOT_FOUND;
	low = group->first;
	high = group + 1 < end ? group[1].first : k->n;
	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;

		if ((group->high | k->items[mid].low) <= pc)
			low = mid;
		else
			high = mid;
	}
	found = &k->items[low];
	start = group->high | found->low;
	if (found->name == KSYM_GAP || pc - start >= KSYMS_FUNCTION_MAX)
		return KSYMS_NOT_FOUND;
	packed_names_get(&k->names, found->name, ret_name->text, sizeof(ret_name->text));
	*ret_start = start;
	return 0;
}
