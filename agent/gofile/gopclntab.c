// SPDX-License-Identifier: Apache-2.0
/*
 * Reading Go's line table, as found by gomodule.c. The parts:
 *
 *   names, files   NUL-terminated strings
 *   cus            for each compilation unit, its file numbers as offsets into files
 *   pcs            tables from code address to value: pairs of varints, each a step of the value
 *                  (zig-zag) and a step of the address. The value starts at -1; a value step of 0
 *                  after the first pair ends the table.
 *   funcs          the function table, sorted: address of code and offset of the function record,
 *                  and one more entry for the end; then the records themselves.
 *
 * A function record (gofunc.h) is followed by
 *
 *   n_pcdata offsets into pcs;
 *   n_funcdata offsets from moduledata.gofunc (1.16: aligned 64-bit addresses)
 *
 * Inlining: pcdata 2 maps an address to an index into funcdata 3, the inlining tree; -1 is the
 * function itself. An entry of the tree has the inlined function's name and the place of the call,
 * as offset of an instruction. At that instruction the tables give the enclosing function in the
 * same way. pcfile and pcln are those of the innermost function.
 *
 * Wrappers have a func_id, with a number that differs between releases. The compiler makes wrappers
 * for method values, go statements, embedded methods and calls across ABIs, and the runtime marks
 * some functions as wrappers. All other numbers belong to two dozen functions of package runtime,
 * so the name decides.
 *
 * Nothing is copied: each question costs about twenty small reads, through a cache of blocks. All
 * input is untrusted. Each offset is checked against its part, and each string must follow another
 * string, so a damaged table is detected.
 *
 * Left out: the runtime's index for finding functions (findfunctab), because a binary search costs
 * about as much; argument sizes. gopcsp.c reads the tables for the stack pointer.
 *
 * Sources: the Go project's src/runtime/symtab.go (findfunc, pcvalue, funcNameForPrint),
 * symtabinl.go, runtime2.go (_func), src/cmd/internal/objabi/funcid.go, of the releases in
 * goversion.c.
 */
#include "gofile/gopclntab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/nsec.h"
#include "base/work_budget.h"
#include "elf/blockcache.h"
#include "elf/elffile.h"
#include "gofile/gofunc.h"
#include "gofile/gomodule.h"

/* Bytes of an address table. Hundreds are usual; the largest in a program of 90 MB has between
 * 16 KiB and 64 KiB. Reached: `malformed`. */
#define GOPCLNTAB_PCS_MAX    (256u << 10)
/* Bytes of a string; names of generic functions have at most some KiB. Reached: `malformed`. */
#define GOPCLNTAB_STRING_MAX (64u << 10)

/* Units of work for a byte of an address table. */
#define PCS_COST	    4u
/* Work on one file: units for the search of its tables, and more with each look-up. Addresses all
 * over a program of 707 MB take 65,000 a look-up. A forged file has functions with the longest
 * tables at each level of inlining. Above it names are missing. */
#define GOPCLNTAB_WORK	    ((uint64_t)1 << 30)
#define GOPCLNTAB_FIND_WORK ((uint64_t)1 << 18)
/* The same as CPU time, where units do not describe the search. */
#define GOPCLNTAB_CPU_NS    (5 * NSEC_PER_SEC)

#define PCDATA_INLINE_INDEX  2u
#define FUNCDATA_INLINE_TREE 3u
/* Bytes of an entry of the inlining tree, of the newest version. Reached: -. */
#define TREE_BYTES_MAX	     20u
#define NO_INDEX	     (-1)
#define NO_FILE		     UINT32_MAX
#define NO_FUNCDATA	     UINT32_MAX

struct gopclntab {
	struct work_budget work;
	struct elffile *file; /* owned; with this budget */
	struct gomodule module;
	struct blockcache cache;
	struct gofunc last; /* of the last look-up; end 0: none */
	bool full_names;
};

/* An entry of the inlining tree. */
struct inlined {
	uint32_t name;
	int32_t parent_pc;
	uint32_t start_line;
	uint8_t func_id;
};

/* ---------------------------------------------------------------- bytes */

/* A read beyond the file is an offset beyond the table, so it is malformed. */
static int read_outcome(int r)
{
	return r > 0 ? GOPCLNTAB_MALFORMED : r;
}

/* @n bytes at offset @off of the table. */
static int table_read(struct gopclntab *t, uint64_t off, void *ret, size_t n)
{
	if (off > t->module.size || n > t->module.size - off)
		return GOPCLNTAB_MALFORMED;
	return read_outcome(blockcache_read(&t->cache, t->module.off + off, ret, n));
}

static int table_u32(struct gopclntab *t, uint64_t off, uint32_t *ret)
{
	return table_read(t, off, ret, sizeof(*ret));
}

/* ---------------------------------------------------------------- strings */

/*
 * Writes a string that arrives in pieces, in the form that Go prints: "..." replaces the text
 * between the first '[' and the last ']'.
 */
struct name_writer {
	char *out; /* GOPCLNTAB_NAME_MAX bytes */
	size_t n;  /* written there, at most GOPCLNTAB_NAME_MAX - 1 */
	bool shorten;
	bool opened;		       /* a '[' has been seen: */
	size_t open;		       /* n at the first one */
	bool closed;		       /* a ']' has been seen after it: */
	char tail[GOPCLNTAB_NAME_MAX]; /* what follows the last one */
	size_t n_tail;
};

static void name_writer_put(struct name_writer *w, char c)
{
	if (w->shorten && c == '[' && !w->opened) {
		w->opened = true;
		w->open = w->n;
	} else if (c == ']' && w->opened) {
		w->closed = true;
		w->n_tail = 0;
	} else if (w->closed && w->n_tail < sizeof(w->tail)) {
		w->tail[w->n_tail++] = c;
	}
	if (w->n < GOPCLNTAB_NAME_MAX - 1)
		w->out[w->n++] = c;
}

static void name_writer_append(struct name_writer *w, const void *s, size_t n)
{
	if (n > GOPCLNTAB_NAME_MAX - 1 - w->n)
		n = GOPCLNTAB_NAME_MAX - 1 - w->n;
	memcpy(w->out + w->n, s, n);
	w->n += n;
}

/* The next @n bytes of the string. */
static void name_writer_put_all(struct name_writer *w, const uint8_t *bytes, size_t n)
{
	if (!w->shorten || (!w->opened && !memchr(bytes, '[', n))) {
		name_writer_append(w, bytes, n);
		return;
	}
	for (size_t i = 0; i < n; i++)
		name_writer_put(w, (char)bytes[i]);
}

static void name_writer_end(struct name_writer *w)
{
	if (w->closed) {
		w->n = w->open;
		name_writer_append(w, "[...]", 5);
		name_writer_append(w, w->tail, w->n_tail);
	}
	w->out[w->n] = '\0';
}

/* Whether a string begins at offset @off of the part [@part, @part_end): after the NUL of
 * another string. */
static int check_string_start(struct gopclntab *t, uint64_t part, uint64_t part_end, uint32_t off)
{
	char before = '\0';
	int r = 0;

	if (off >= part_end - part)
		return GOPCLNTAB_MALFORMED;
	if (off > 0)
		r = table_read(t, part + off - 1, &before, 1);
	if (r)
		return r;
	return before == '\0' ? 0 : GOPCLNTAB_MALFORMED;
}

/* View the bytes of the string at @pos in place, up to the end of the block or the part. */
static int peek_string(struct gopclntab *t, uint64_t pos, uint64_t part_end, const uint8_t **ret,
		       size_t *ret_n)
{
	size_t n;
	int r;

	if (pos >= part_end)
		return GOPCLNTAB_MALFORMED;
	r = blockcache_peek(&t->cache, t->module.off + pos, ret, &n);
	if (r)
		return read_outcome(r);
	*ret_n = n < part_end - pos ? n : (size_t)(part_end - pos);
	return 0;
}

static int read_string(struct gopclntab *t, uint64_t part, uint64_t part_end, uint32_t off,
		       struct name_writer *w)
{
	uint64_t pos = part + off, limit = pos + GOPCLNTAB_STRING_MAX;
	int r = check_string_start(t, part, part_end, off);

	while (!r && pos < limit) {
		const uint8_t *bytes, *end;
		size_t n = 0;

		r = peek_string(t, pos, part_end, &bytes, &n);
		if (r)
			break;
		end = memchr(bytes, '\0', n);
		name_writer_put_all(w, bytes, end ? (size_t)(end - bytes) : n);
		if (end) {
			name_writer_end(w);
			return w->n > 0 ? 0 : GOPCLNTAB_MALFORMED;
		}
		pos += n;
	}
	return r ? r : GOPCLNTAB_MALFORMED;
}

static int read_name(struct gopclntab *t, uint32_t off, char ret[GOPCLNTAB_NAME_MAX])
{
	/* Go's linker shortens names up to 1.20, its runtime since 1.21; before 1.18 neither
	 * does */
	struct name_writer w = {
		.out = ret,
		.shorten = t->module.form == GOMODULE_1_20 && !t->full_names,
	};

	return read_string(t, t->module.names, t->module.cus, off, &w);
}

static int read_file_name(struct gopclntab *t, const struct gofunc *f, int32_t number,
			  char ret[GOPCLNTAB_NAME_MAX])
{
	struct name_writer w = {.out = ret};
	uint64_t pos = t->module.cus + 4 * ((uint64_t)f->cu + (uint32_t)number);
	uint32_t off;
	int r;

	if (number < 0 || pos >= t->module.files)
		return GOPCLNTAB_MALFORMED;
	r = table_u32(t, pos, &off);
	if (r)
		return r;
	if (off == NO_FILE) {
		ret[0] = '\0';
		return 0;
	}
	return read_string(t, t->module.files, t->module.pcs, off, &w);
}

/* ---------------------------------------------------------------- tables over addresses */

/* A position in an address table. */
struct pcs_reader {
	struct gopclntab *t;
	const uint8_t *bytes;
	size_t n;	/* left in @bytes */
	size_t read;	/* all of @bytes */
	uint64_t pos;	/* in the table, of the data after @bytes */
	uint64_t limit; /* the reader stops here */
};

static int pcs_byte(struct pcs_reader *p, uint8_t *ret)
{
	if (p->n == 0) {
		int r;

		if (p->pos >= p->limit)
			return GOPCLNTAB_MALFORMED;
		/* look-ups decode the table of a function from its begin, inlined ones too */
		if (!elffile_spend(p->t->file, PCS_COST * p->read))
			return GOPCLNTAB_MALFORMED;
		r = peek_string(p->t, p->pos, p->limit, &p->bytes, &p->n);
		if (r)
			return r;
		p->pos += p->n;
		p->read = p->n;
	}
	*ret = *p->bytes++;
	p->n--;
	return 0;
}

/* A varint of at most 32 bits. */
static int pcs_varint(struct pcs_reader *p, uint32_t *ret)
{
	uint32_t value = 0;

	for (unsigned int shift = 0; shift < 35; shift += 7) {
		uint8_t byte;
		int r = pcs_byte(p, &byte);

		if (r)
			return r;
		value |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = value;
			return 0;
		}
	}
	return GOPCLNTAB_MALFORMED;
}

/* Add one step of the value. *@ret_end is true at the end of the table. */
static int pcs_step(struct pcs_reader *p, bool first, uint32_t quantum, uint32_t *value,
		    uint64_t *pc, bool *ret_end)
{
	uint32_t step, pc_step;
	int r = pcs_varint(p, &step);

	if (r)
		return r;
	*ret_end = step == 0 && !first;
	if (*ret_end)
		return 0;
	r = pcs_varint(p, &pc_step);
	if (r)
		return r;
	*value += (step >> 1) ^ -(step & 1);
	*pc += (uint64_t)pc_step * quantum;
	return 0;
}

/* A varint of one or two bytes. False for a longer one. */
static inline bool short_varint(const uint8_t **at, uint32_t *ret)
{
	uint32_t value = *(*at)++;

	if (value & 0x80)
		value = (value & 0x7f) | (uint32_t) * (*at)++ << 7;
	*ret = value;
	return value < 1u << 14;
}

/* Nearly all steps have two to four bytes, and these decide the time of a look-up. False for
 * another step, which is not read. */
static inline bool pcs_short_step(struct pcs_reader *p, bool first, uint32_t quantum,
				  uint32_t *value, uint64_t *pc)
{
	const uint8_t *at = p->bytes;
	uint32_t step, pc_step;

	if (p->n < 4 || !short_varint(&at, &step) || (!step && !first) ||
	    !short_varint(&at, &pc_step))
		return false;
	p->n -= (size_t)(at - p->bytes);
	p->bytes = at;
	*value += (step >> 1) ^ -(step & 1);
	*pc += (uint64_t)pc_step * quantum;
	return true;
}

/* The value at @vaddr of the address table at @off; -1 where there is none. */
static int pcs_value(struct gopclntab *t, uint32_t off, const struct gofunc *f, uint64_t vaddr,
		     int32_t *ret)
{
	const struct gomodule *m = &t->module;
	struct pcs_reader p = {.t = t, .pos = m->pcs + off, .limit = m->funcs};
	uint64_t pc = f->entry;
	uint32_t value = UINT32_MAX;
	bool end = false;

	*ret = -1;
	if (off == 0) /* offset 0 stands for "no table" */
		return 0;
	if (p.limit > p.pos + GOPCLNTAB_PCS_MAX)
		p.limit = p.pos + GOPCLNTAB_PCS_MAX;
	for (bool first = true;; first = false) {
		int r = 0;

		if (!pcs_short_step(&p, first, m->quantum, &value, &pc))
			r = pcs_step(&p, first, m->quantum, &value, &pc, &end);
		if (r || end)
			return r;
		if (vaddr < pc) {
			*ret = (int32_t)value;
			return 0;
		}
	}
}

/* ---------------------------------------------------------------- functions */

/* Read entry @i of the function table: the address, and the offset of the record in funcs. */
static int read_ftab(struct gopclntab *t, uint64_t i, uint64_t *ret_entry, uint64_t *ret_func)
{
	uint8_t bytes[GOFUNC_ENTRY_BYTES_MAX];
	size_t n = gofunc_entry_bytes(&t->module);
	int r = table_read(t, t->module.funcs + i * n, bytes, n);

	if (r)
		return r;
	gofunc_parse_entry(&t->module, bytes, ret_entry, ret_func);
	return 0;
}

/* Read the last entry, which has only an address. */
static int read_ftab_end(struct gopclntab *t, uint64_t *ret)
{
	const struct gomodule *m = &t->module;
	uint64_t entry = 0, i = m->n_funcs;
	int r;

	if (m->form == GOMODULE_1_16)
		r = table_read(t, m->funcs + i * 16, &entry, 8);
	else
		r = table_read(t, m->funcs + i * 8, &entry, 4);
	if (r)
		return r;
	*ret = m->text + entry;
	return 0;
}

/* Find the function at @vaddr: its begin and end, and the offset of its record. */
static int search_ftab(struct gopclntab *t, uint64_t vaddr, struct gofunc *f, uint64_t *ret_func)
{
	uint64_t low = 0, high = t->module.n_funcs, entry, func;
	int r = read_ftab_end(t, &f->end);

	if (r)
		return r;
	if (vaddr >= f->end)
		return GOPCLNTAB_NOT_FOUND;
	r = read_ftab(t, 0, &f->entry, ret_func);
	if (r)
		return r;
	if (vaddr < f->entry)
		return GOPCLNTAB_NOT_FOUND;
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		r = read_ftab(t, middle, &entry, &func);
		if (r)
			return r;
		if (entry <= vaddr) {
			low = middle;
			f->entry = entry;
			*ret_func = func;
		} else {
			high = middle;
			f->end = entry;
		}
	}
	return 0;
}

/* Read the record at offset @off of funcs. @f has entry and end. */
static int read_func(struct gopclntab *t, uint64_t off, struct gofunc *f)
{
	const struct gomodule *m = &t->module;
	uint8_t bytes[GOFUNC_BYTES_MAX];
	int r;

	if (off > m->size - m->funcs)
		return GOPCLNTAB_MALFORMED;
	f->data = m->funcs + off + gofunc_bytes(m);
	r = table_read(t, m->funcs + off, bytes, gofunc_bytes(m));
	if (r)
		return r;
	return gofunc_parse(m, bytes, f) ? 0 : GOPCLNTAB_MALFORMED;
}

/* The function at @vaddr. Inlined functions have the same one, and often the next address. */
static int find_func(struct gopclntab *t, uint64_t vaddr, struct gofunc *ret)
{
	uint64_t off;
	int r;

	if (vaddr < t->last.entry || vaddr >= t->last.end) {
		t->last.end = 0;
		r = search_ftab(t, vaddr, ret, &off);
		if (!r)
			r = read_func(t, off, ret);
		if (r)
			return r;
		t->last = *ret;
	}
	*ret = t->last;
	return 0;
}

/* ---------------------------------------------------------------- inlining */

static int inline_index(struct gopclntab *t, const struct gofunc *f, uint64_t vaddr, int32_t *ret)
{
	uint32_t off;
	int r;

	*ret = NO_INDEX;
	if (f->n_pcdata <= PCDATA_INLINE_INDEX)
		return 0;
	r = table_u32(t, f->data + 4ull * PCDATA_INLINE_INDEX, &off);
	if (r)
		return r;
	r = pcs_value(t, off, f, vaddr, ret);
	if (!r && *ret < NO_INDEX)
		r = GOPCLNTAB_MALFORMED;
	return r;
}

/* The vaddr of the function's inlining tree. */
static int inline_tree(struct gopclntab *t, const struct gofunc *f, uint64_t *ret)
{
	const struct gomodule *m = &t->module;
	uint64_t pos = f->data + 4 * (uint64_t)f->n_pcdata;
	uint32_t off;
	int r;

	if (f->n_funcdata <= FUNCDATA_INLINE_TREE)
		return GOPCLNTAB_MALFORMED;
	if (m->form == GOMODULE_1_16) {
		pos += -(m->vaddr + pos) & 4; /* aligned in memory, not in the table */
		return table_read(t, pos + 8ull * FUNCDATA_INLINE_TREE, ret, sizeof(*ret));
	}
	r = table_u32(t, pos + 4ull * FUNCDATA_INLINE_TREE, &off);
	if (r)
		return r;
	if (off == NO_FUNCDATA)
		return GOPCLNTAB_MALFORMED;
	*ret = m->gofunc + off;
	return 0;
}

static bool parse_inlined(const struct gomodule *m, struct cursor *c, struct inlined *ret)
{
	uint32_t parent_pc;
	bool ok;

	*ret = (struct inlined){0};
	if (m->form == GOMODULE_1_20)
		ok = cursor_u8(c, &ret->func_id) && cursor_skip(c, 3) &&
		     cursor_u32(c, &ret->name) && cursor_u32(c, &parent_pc) &&
		     cursor_u32(c, &ret->start_line);
	else /* parent, func_id, pad, file, line come first */
		ok = cursor_skip(c, 2) && cursor_u8(c, &ret->func_id) && cursor_skip(c, 9) &&
		     cursor_u32(c, &ret->name) && cursor_u32(c, &parent_pc);
	if (ok)
		ret->parent_pc = (int32_t)parent_pc;
	return ok;
}

static int read_inlined(struct gopclntab *t, const struct gofunc *f, int32_t index,
			struct inlined *ret)
{
	const struct gomodule *m = &t->module;
	size_t n = m->form == GOMODULE_1_20 ? 16 : 20;
	uint8_t bytes[TREE_BYTES_MAX];
	uint64_t tree, vaddr, off;
	struct cursor c;
	int r = inline_tree(t, f, &tree);

	if (r)
		return r;
	if (__builtin_add_overflow(tree, (uint64_t)index * n, &vaddr) ||
	    !elffile_off_of_vaddr(t->file, vaddr, &off))
		return GOPCLNTAB_MALFORMED;
	r = read_outcome(blockcache_read(&t->cache, off, bytes, n));
	if (r)
		return r;
	cursor_init(&c, bytes, n);
	if (!parse_inlined(m, &c, ret) || ret->parent_pc < 0 ||
	    (uint64_t)ret->parent_pc >= f->end - f->entry)
		return GOPCLNTAB_MALFORMED;
	return 0;
}

/* ---------------------------------------------------------------- the answer */

/* The functions of package runtime with a func_id of their own in any release. */
static bool is_special(const char *name)
{
	static const char *const names[] = {
		"abort",
		"asmcgocall",
		"asyncPreempt",
		"cgocallback",
		"corostart",
		"debugCallV1",
		"debugCallV2",
		"externalthreadhandler",
		"gcBgMarkWorker",
		"goexit",
		"gogo",
		"gopanic",
		"handleAsyncEvent",
		"jmpdefer",
		"main",
		"mcall",
		"morestack",
		"mstart",
		"panicwrap",
		"rt0_go",
		"runCleanups",
		"runFinalizers",
		"runfinq",
		"sigpanic",
		"systemstack",
		"systemstack_switch",
	};

	for (size_t i = 0; i < array_size(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* See the essay above. A wrapper can have the name of a special function, too, because calls of
 * assembly go through wrappers. */
static bool is_wrapper(const struct gopclntab_line *line)
{
	static const char package[] = "runtime.";
	size_t n = sizeof(package) - 1;

	if (line->func_id == 0)
		return false;
	return strncmp(line->function, package, n) != 0 || !is_special(line->function + n) ||
	       strcmp(line->file, "<autogenerated>") == 0;
}

/* Read file and line at @vaddr; neither if either is missing, as in padding after a function. */
static int read_line(struct gopclntab *t, const struct gofunc *f, uint64_t vaddr,
		     struct gopclntab_line *line)
{
	int32_t file, number;
	int r = pcs_value(t, f->pc_file, f, vaddr, &file);

	if (!r)
		r = pcs_value(t, f->pc_line, f, vaddr, &number);
	if (r || file < 0 || number <= 0)
		return r;
	r = read_file_name(t, f, file, line->file);
	if (!r && line->file[0])
		line->line = (uint32_t)number;
	return r;
}

static int describe(struct gopclntab *t, const struct gofunc *f, uint64_t vaddr,
		    struct gopclntab_line *line)
{
	const struct inlined outermost = {
		.name = f->name,
		.parent_pc = -1,
		.start_line = f->start_line,
		.func_id = f->func_id,
	};
	struct inlined inlined = outermost;
	int32_t index;
	int r = inline_index(t, f, vaddr, &index);

	if (!r && index != NO_INDEX && gopclntab_has_inlining(t))
		r = read_inlined(t, f, index, &inlined);
	/*
	 * Some compilers write trees with an inlined function that is called from an instruction of
	 * its own, the first one (Go 1.24, in Debian 13's containerd). The chain of callers would
	 * not end, so the function that holds the instruction is used instead.
	 */
	if (!r && inlined.parent_pc >= 0 && f->entry + (uint64_t)inlined.parent_pc == vaddr)
		inlined = outermost;
	if (!r)
		r = read_name(t, inlined.name, line->function);
	if (!r && (index == NO_INDEX || gopclntab_has_inlining(t)))
		r = read_line(t, f, vaddr, line);
	if (r)
		return r;
	line->start_line = inlined.start_line;
	line->parent_pc = inlined.parent_pc;
	line->func_id = inlined.func_id;
	line->entry = f->entry;
	line->wrapper = is_wrapper(line);
	return 0;
}

int gopclntab_find(struct gopclntab *t, uint64_t vaddr, struct gopclntab_line *ret)
{
	struct gopclntab_line line;
	struct gofunc f;
	int r;

	work_budget_add(&t->work, GOPCLNTAB_FIND_WORK);
	r = find_func(t, vaddr, &f);
	if (r)
		return r;
	line.file[0] = '\0';
	line.line = 0;
	r = describe(t, &f, vaddr, &line);
	if (r)
		return r;
	*ret = line;
	return 0;
}

/* ---------------------------------------------------------------- open */

static int module_outcome(int r)
{
	switch (r) {
	case GOMODULE_ABSENT:
		return GOPCLNTAB_ABSENT;
	case GOMODULE_UNSUPPORTED:
		return GOPCLNTAB_UNSUPPORTED;
	case GOMODULE_MALFORMED:
		return GOPCLNTAB_MALFORMED;
	default:
		return r;
	}
}

int gopclntab_open(const struct elffile *file, struct gopclntab **ret)
{
	struct gopclntab *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	work_budget_init(&t->work, GOPCLNTAB_WORK, GOPCLNTAB_CPU_NS, NULL);
	r = elffile_budgeted(file, &t->work, &t->file);
	if (!r)
		r = module_outcome(gomodule_find(t->file, &t->module));
	if (r > 0 && t->work.end)
		r = GOPCLNTAB_ABANDONED;
	if (r) {
		gopclntab_free(t);
		return r;
	}
	/* look-ups are bounded by units, on any thread */
	t->work.cpu_ns = UINT64_MAX;
	blockcache_init(&t->cache, t->file);
	*ret = t;
	return 0;
}

void gopclntab_keep_type_arguments(struct gopclntab *t)
{
	t->full_names = true;
}

void gopclntab_free(struct gopclntab *t)
{
	if (!t)
		return;
	blockcache_deinit(&t->cache);
	elffile_free(t->file);
	free(t);
}

size_t gopclntab_bytes(const struct gopclntab *t)
{
	return sizeof(*t) + t->cache.n_bytes;
}

void gopclntab_drop_blocks(struct gopclntab *t)
{
	blockcache_clear(&t->cache);
}

uint64_t gopclntab_reads(const struct gopclntab *t)
{
	return t->cache.n_reads;
}

bool gopclntab_has_inlining(const struct gopclntab *t)
{
	return t->module.form == GOMODULE_1_16 || t->module.gofunc != 0;
}

int gopclntab_sp(struct gopclntab *t, uint64_t vaddr, uint32_t *ret)
{
	struct gofunc f;
	int32_t value;
	int r = find_func(t, vaddr, &f);

	if (!r)
		r = pcs_value(t, f.pc_sp, &f, vaddr, &value);
	if (r)
		return r;
	if (value < 0 || value % 8 != 0)
		return GOPCLNTAB_NOT_FOUND;
	*ret = (uint32_t)value;
	return 0;
}
