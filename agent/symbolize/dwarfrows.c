// SPDX-License-Identifier: Apache-2.0
/*
 * The table is a program for a small machine. Each of its sequences has rising addresses; the
 * sequences come in any order. Most rows only mark statements: a row that changes neither file,
 * line nor column is left out, and so is a row without code.
 *
 * Machines with several operations for each address (VLIW) are not supported.
 */
#include "symbolize/dwarfrows.h"

#include <dwarf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "symbolize/dwarfentry.h"
#include "symbolize/dwarffile.h"

#define NO_CODE		 UINT16_MAX
/* Instructions between two charges of work. */
#define CHARGE		 4096
/* Parts of a file's description in DWARF 5: path, directory, time, size, checksum, and more.
 * Reached: the unit has no lines. */
#define ENTRY_FORMAT_MAX 32

struct name {
	const char *name;
	uint64_t directory; /* number */
};

struct names {
	struct name *items;
	size_t n;
	size_t cap;
};

/* The rows from @first on. */
struct sequence {
	uint64_t vaddr;
	size_t first;
	size_t n;
};

struct dwarfrows {
	struct dwarfrow *items;
	size_t n;
	size_t cap;
	struct sequence *sequences;
	size_t n_sequences;
	size_t cap_sequences;
	size_t first; /* row of the last sequence */
	struct names files;
	struct names directories;
	uint16_t version;
};

struct header {
	uint8_t offset_size;
	uint8_t step; /* bytes of the smallest instruction */
	int8_t line_base;
	uint8_t line_range;
	uint8_t opcode_base;
	const uint8_t *lengths; /* of the arguments of standard opcodes, from 1 on */
	struct cursor program;
};

enum { MALFORMED = 1 };

/* ---------------------------------------------------------------- files */

static int add_name(struct names *names, const char *name, uint64_t directory)
{
	int r = vec_grow(&names->items, &names->cap, names->n + 1, sizeof(*names->items),
			 DWARFROWS_FILES_MAX);

	if (!r)
		names->items[names->n++] = (struct name){name, directory};
	return r < 0 ? r : 0;
}

static int read_file(struct cursor *c, const char *name, struct names *files)
{
	uint64_t directory, unused;

	if (!cursor_uleb(c, &directory) || !cursor_uleb(c, &unused) || !cursor_uleb(c, &unused))
		return MALFORMED;
	return add_name(files, name, directory);
}

/* Of DWARF 2 to 4: strings up to an empty one. Directory 0 is the compiler's; file 0 is none. */
static int read_old_names(struct cursor *c, const char *directory, struct dwarfrows *rows)
{
	const char *name;
	int r = add_name(&rows->directories, directory, 0);

	while (!r) {
		if (!cursor_cstr(c, &name))
			return MALFORMED;
		if (!name[0])
			break;
		r = add_name(&rows->directories, name, 0);
	}
	if (!r)
		r = add_name(&rows->files, NULL, 0);
	while (!r) {
		if (!cursor_cstr(c, &name))
			return MALFORMED;
		if (!name[0])
			break;
		r = read_file(c, name, &rows->files);
	}
	return r;
}

static bool read_format(struct cursor *c, const struct dwarfunit *unit,
			struct dwarfabbrev_attr *ret)
{
	const struct dwarfabbrev_sizes sizes = dwarffile_sizes(unit);
	uint64_t content, form;

	if (!cursor_uleb(c, &content) || !cursor_uleb(c, &form) || content > UINT16_MAX ||
	    form > UINT16_MAX)
		return false;
	*ret = (struct dwarfabbrev_attr){.name = (uint16_t)content, .form = (uint16_t)form};
	return dwarfabbrev_attr_step(ret, &sizes);
}

/* Of DWARF 5: the format of a description, then the descriptions. */
static int read_new_names(struct dwarffile *f, const struct dwarfunit *unit, struct cursor *c,
			  struct names *ret)
{
	struct dwarfabbrev_attr formats[ENTRY_FORMAT_MAX];
	uint8_t n_formats;
	uint64_t n;
	int r = 0;

	if (!cursor_u8(c, &n_formats) || n_formats > ENTRY_FORMAT_MAX)
		return MALFORMED;
	for (size_t i = 0; i < n_formats; i++)
		if (!read_format(c, unit, &formats[i]))
			return MALFORMED;
	if (!cursor_uleb(c, &n) || (n && !n_formats) || n > cursor_left(c))
		return MALFORMED;
	for (uint64_t i = 0; i < n && !r; i++) {
		struct name name = {.name = NULL};

		if (!dwarffile_spend(f, n_formats))
			return MALFORMED;
		for (size_t k = 0; k < n_formats; k++) {
			struct dwarfvalue value;

			if (!dwarfvalue_read(c, &formats[k], &value))
				return MALFORMED;
			if (formats[k].name == DW_LNCT_path)
				name.name = dwarfvalue_string(f, unit, &value);
			else if (formats[k].name == DW_LNCT_directory_index)
				name.directory = value.number;
		}
		r = add_name(ret, name.name, name.directory);
	}
	return r;
}

/* ---------------------------------------------------------------- rows */

struct machine {
	uint64_t vaddr;
	uint64_t file;
	uint32_t line;
	uint64_t column;
	bool is_begun; /* the sequence has a row */
};

static void reset(struct machine *m)
{
	*m = (struct machine){.file = 1, .line = 1};
}

/* Removed code begins at 0 or 1, and is left out as a whole. */
static int end_sequence(struct dwarfrows *rows)
{
	struct sequence *last = &rows->sequences[rows->n_sequences - 1];

	last->n = rows->n - last->first;
	if (last->vaddr <= 1) {
		rows->n = last->first;
		rows->n_sequences--;
	}
	return 0;
}

static int begin_sequence(struct dwarfrows *rows, struct machine *m)
{
	int r = vec_grow(&rows->sequences, &rows->cap_sequences, rows->n_sequences + 1,
			 sizeof(*rows->sequences), DWARFROWS_MAX);

	if (r)
		return r < 0 ? r : MALFORMED;
	m->is_begun = true;
	rows->first = rows->n;
	rows->sequences[rows->n_sequences++] =
		(struct sequence){.vaddr = m->vaddr, .first = rows->n};
	return 0;
}

/* Most rows are neither the first nor the last of a sequence. */
static inline __attribute__((always_inline)) int add_row(struct dwarfrows *rows, struct machine *m,
							 bool is_end)
{
	const struct dwarfrow row = {
		.vaddr = m->vaddr,
		.line = m->line,
		.file = is_end		    ? NO_CODE
			: m->file < NO_CODE ? (uint16_t)m->file
					    : 0,
		.column = m->column <= UINT16_MAX ? (uint16_t)m->column : 0,
	};
	struct dwarfrow *last;
	int r = m->is_begun ? 0 : begin_sequence(rows, m);

	if (r)
		return r;
	if (rows->n > rows->first) {
		last = &rows->items[rows->n - 1];
		if (last->vaddr == row.vaddr && !is_end) {
			*last = row;
			return 0;
		}
		if (last->line == row.line && last->file == row.file &&
		    last->column == row.column && last->vaddr < row.vaddr)
			return 0;
	}
	if (rows->n == rows->cap) {
		r = vec_grow(&rows->items, &rows->cap, rows->n + 1, sizeof(*rows->items),
			     DWARFROWS_MAX);
		if (r)
			return r < 0 ? r : MALFORMED;
	}
	rows->items[rows->n++] = row;
	return is_end ? end_sequence(rows) : 0;
}

static __attribute__((noinline)) int run_extended(struct dwarfrows *rows, struct machine *m,
						  struct cursor *c)
{
	struct cursor arguments;
	const char *name;
	uint8_t opcode;
	uint64_t n;
	int r = 0;

	if (!cursor_uleb(c, &n) || !n || !cursor_sub(c, n, &arguments) ||
	    !cursor_u8(&arguments, &opcode))
		return MALFORMED;
	switch (opcode) {
	case DW_LNE_end_sequence:
		r = add_row(rows, m, true);
		reset(m);
		return r;
	case DW_LNE_set_address:
		if (cursor_left(&arguments) != sizeof(m->vaddr) ||
		    !cursor_u64(&arguments, &m->vaddr))
			return MALFORMED;
		return 0;
	case DW_LNE_define_file:
		return cursor_cstr(&arguments, &name) ? read_file(&arguments, name, &rows->files)
						      : MALFORMED;
	default:
		return 0;
	}
}

static inline __attribute__((always_inline)) int run_standard(struct dwarfrows *rows,
							      const struct header *h,
							      struct machine *m, struct cursor *c,
							      uint8_t opcode)
{
	uint64_t number;
	int64_t signed_number;
	uint16_t advance;

	switch (opcode) {
	case DW_LNS_copy:
		return add_row(rows, m, false);
	case DW_LNS_advance_pc:
		if (!cursor_uleb(c, &number))
			return MALFORMED;
		m->vaddr += number * h->step;
		return 0;
	case DW_LNS_advance_line:
		if (!cursor_sleb(c, &signed_number))
			return MALFORMED;
		m->line += (uint32_t)signed_number;
		return 0;
	case DW_LNS_set_file:
		return cursor_uleb(c, &m->file) ? 0 : MALFORMED;
	case DW_LNS_set_column:
		return cursor_uleb(c, &m->column) ? 0 : MALFORMED;
	case DW_LNS_const_add_pc:
		m->vaddr += (uint64_t)(255 - h->opcode_base) / h->line_range * h->step;
		return 0;
	case DW_LNS_fixed_advance_pc:
		if (!cursor_u16(c, &advance))
			return MALFORMED;
		m->vaddr += advance;
		return 0;
	default: /* flags, and what is not known */
		for (uint8_t i = 0; i < h->lengths[opcode - 1]; i++)
			if (!cursor_uleb(c, &number))
				return MALFORMED;
		return 0;
	}
}

static inline __attribute__((always_inline)) int
run_special(struct dwarfrows *rows, const struct header *h, struct machine *m, uint8_t opcode)
{
	const unsigned int adjusted = opcode - h->opcode_base;
	const unsigned int advance = adjusted / h->line_range; /* the only division */

	m->vaddr += (uint64_t)advance * h->step;
	m->line += (uint32_t)(h->line_base + (int)(adjusted - advance * h->line_range));
	return add_row(rows, m, false);
}

static int run(struct dwarffile *f, const struct header *h, struct dwarfrows *rows)
{
	struct cursor c = h->program;
	struct machine m;
	uint8_t opcode;
	int r = 0;

	reset(&m);
	for (uint64_t i = 0; !r && cursor_u8(&c, &opcode); i++) {
		if (i % CHARGE == 0 && !dwarffile_spend(f, CHARGE))
			return MALFORMED;
		if (opcode >= h->opcode_base)
			r = run_special(rows, h, &m, opcode);
		else if (opcode)
			r = run_standard(rows, h, &m, &c, opcode);
		else
			r = run_extended(rows, &m, &c);
	}
	/* a sequence without an end has no code */
	if (!r && m.is_begun) {
		rows->n = rows->sequences[rows->n_sequences - 1].first;
		rows->n_sequences--;
	}
	return r;
}

/* ---------------------------------------------------------------- order */

static bool is_sorted(const struct dwarfrows *rows)
{
	for (size_t i = 1; i < rows->n; i++)
		if (rows->items[i - 1].vaddr > rows->items[i].vaddr)
			return false;
	return true;
}

static int by_vaddr(const void *a, const void *b)
{
	const struct sequence *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

/* Merges the rows [@from, @middle) and [@middle, @to). At one address, the ends of sequences come
 * first, then the rows of the part before. */
static void merge(const struct dwarfrow *from, const struct dwarfrow *middle,
		  const struct dwarfrow *to, struct dwarfrow *ret)
{
	const struct dwarfrow *a = from, *b = middle;

	while (a < middle && b < to) {
		bool first = a->vaddr < b->vaddr ||
			     (a->vaddr == b->vaddr && (a->file == NO_CODE || b->file != NO_CODE));

		*ret++ = first ? *a++ : *b++;
	}
	for (; a < middle; a++)
		*ret++ = *a;
	for (; b < to; b++)
		*ret++ = *b;
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Sequences that overlap, as of removed code, and sequences without order in themselves. */
static void merge_all(struct dwarfrow **items, struct dwarfrow **spare, size_t n)
{
	for (size_t width = 1; width < n; width *= 2) {
		struct dwarfrow *from = *items;

		for (size_t i = 0; i < n; i += 2 * width)
			merge(from + i, from + smaller(i + width, n),
			      from + smaller(i + 2 * width, n), *spare + i);
		*items = *spare;
		*spare = from;
	}
}

static int sort(struct dwarfrows *rows)
{
	struct dwarfrow *sorted, *at;

	if (is_sorted(rows))
		return 0;
	sorted = at = malloc(rows->n * sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	qsort(rows->sequences, rows->n_sequences, sizeof(*rows->sequences), by_vaddr);
	for (size_t i = 0; i < rows->n_sequences; i++) {
		const struct sequence *s = &rows->sequences[i];

		memcpy(at, rows->items + s->first, s->n * sizeof(*at));
		at += s->n;
	}
	free(rows->items);
	rows->items = sorted;
	rows->cap = rows->n;
	if (is_sorted(rows))
		return 0;
	sorted = malloc(rows->n * sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	merge_all(&rows->items, &sorted, rows->n);
	free(sorted);
	return 0;
}

/* ---------------------------------------------------------------- the table */

/* The part of the header before the files. */
static bool read_header(struct cursor *c, struct header *ret, uint16_t *ret_version,
			struct cursor *ret_names)
{
	uint8_t address_size = 8, segment_size = 0, operations = 1, is_statement, base;
	uint64_t n, n_header;
	struct cursor table;
	const void *lengths;

	if (!dwarfvalue_length(c, &n, &ret->offset_size) || !cursor_sub(c, n, &table) ||
	    !cursor_u16(&table, ret_version) || *ret_version < 2 || *ret_version > 5)
		return false;
	if (*ret_version == 5 &&
	    (!cursor_u8(&table, &address_size) || !cursor_u8(&table, &segment_size)))
		return false;
	if (!dwarfvalue_number(&table, ret->offset_size, &n_header) ||
	    !cursor_sub(&table, n_header, ret_names))
		return false;
	ret->program = table;
	if (!cursor_u8(ret_names, &ret->step) ||
	    (*ret_version >= 4 && !cursor_u8(ret_names, &operations)) ||
	    !cursor_u8(ret_names, &is_statement) || !cursor_u8(ret_names, &base) ||
	    !cursor_u8(ret_names, &ret->line_range) || !cursor_u8(ret_names, &ret->opcode_base))
		return false;
	ret->line_base = (int8_t)base;
	if (!ret->line_range || !ret->opcode_base || operations != 1 || address_size != 8 ||
	    segment_size || !cursor_bytes(ret_names, ret->opcode_base - 1u, &lengths))
		return false;
	ret->lengths = lengths;
	return true;
}

static int read_table(struct dwarffile *f, const struct dwarfunit *unit, struct dwarfrows *rows)
{
	struct cursor c = dwarfsections_at(f->sections, DWARFSECTION_LINE, unit->lines), names;
	struct dwarfunit of = *unit;
	struct header h;
	int r;

	if (!read_header(&c, &h, &rows->version, &names) ||
	    !dwarffile_spend(f, cursor_left(&names)))
		return MALFORMED;
	of.offset_size = h.offset_size;
	if (rows->version < 5)
		r = read_old_names(&names, unit->directory, rows);
	else
		r = read_new_names(f, &of, &names, &rows->directories);
	if (!r && rows->version >= 5)
		r = read_new_names(f, &of, &names, &rows->files);
	if (!r)
		r = run(f, &h, rows);
	return r ? r : sort(rows);
}

/* A finished table does not grow. */
static int shrink(struct dwarfrows *rows)
{
	struct dwarfrow *items;

	free(take_ptr(rows->sequences));
	if (!rows->n) {
		free(take_ptr(rows->items));
		return 0;
	}
	items = realloc(rows->items, rows->n * sizeof(*rows->items));
	if (items)
		rows->items = items;
	return items ? 0 : -ENOMEM;
}

int dwarfrows_read(struct dwarffile *f, const struct dwarfunit *unit, struct dwarfrows **ret)
{
	struct dwarfrows *rows = calloc(1, sizeof(*rows));
	int r = rows ? read_table(f, unit, rows) : -ENOMEM;

	if (r > 0)
		rows->n = rows->files.n = rows->directories.n = 0;
	if (r >= 0)
		r = shrink(rows);
	if (r)
		dwarfrows_free(rows);
	else
		*ret = rows;
	return r;
}

void dwarfrows_free(struct dwarfrows *rows)
{
	if (!rows)
		return;
	free(rows->items);
	free(rows->sequences);
	free(rows->files.items);
	free(rows->directories.items);
	free(rows);
}

const struct dwarfrow *dwarfrows_find(const struct dwarfrows *rows, uint64_t vaddr)
{
	size_t low = 0, high = rows->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (rows->items[middle].vaddr <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low && rows->items[low - 1].file != NO_CODE ? &rows->items[low - 1] : NULL;
}

const char *dwarfrows_file(const struct dwarfrows *rows, uint64_t number,
			   const char **ret_directory)
{
	const struct name *file;

	if (number >= rows->files.n || !rows->files.items[number].name)
		return NULL;
	file = &rows->files.items[number];
	*ret_directory = file->directory < rows->directories.n
				 ? rows->directories.items[file->directory].name
				 : NULL;
	return file->name;
}
