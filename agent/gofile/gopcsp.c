// SPDX-License-Identifier: Apache-2.0
/*
 * Reads one value of every function's record, the offset of the pcsp table in the part "pcs"
 * (gopclntab.c describes the parts), and that table from beginning to end.
 *
 * The functions are in the order of the code (gofunc.h), but the pcsp tables are not, because
 * equal tables are stored once. So the whole part is in memory during the walk: 7 MB for a program
 * of 100 MB.
 *
 * A table is pairs of varints, a step of the value (zig-zag) and a step of the address. The value
 * begins at -1, and each pair gives the address up to which the value holds; a value step of 0
 * after the first pair ends the table. The rest of the function is padding and keeps the last
 * value.
 *
 * Sources: the Go project's src/runtime/symtab.go (pcvalue, funcspdelta),
 * src/cmd/link/internal/ld/pcln.go, of the releases in goversion.c.
 */
#include "gofile/gopcsp.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "elf/elffile.h"
#include "elf/elfwindow.h"
#include "gofile/gofunc.h"

/* Bytes of all tables together, including those for files and lines. The largest program seen,
 * of 200 MB, has 12 million. Reached: no rows from Go's tables; the outcome is GOPCSP_TOO_LARGE. */
#define GOPCSP_TABLES_MAX (64u << 20)
/* Steps of a function; the largest seen has some thousand. Reached: the function has no row;
 * the outcome is GOPCSP_MALFORMED. */
#define GOPCSP_STEPS_MAX  (1u << 16)

#define RECORDS_WINDOW (256u << 10)
#define NAMES_WINDOW   (4u << 10)
/* Units of work for a step. */
#define STEP_COST      8u

struct gopcsp {
	const struct elffile *file;
	struct gomodule module;
	struct gofuncwalk walk;
	struct elfwindow names;
	uint8_t *tables;
	size_t n_tables; /* bytes */
	struct gocode_step *steps;
	size_t steps_cap;
};

/* ---------------------------------------------------------------- one function's table */

/* A varint of at most 32 bits. False if the table ends inside it. */
static bool varint(const uint8_t **pos, const uint8_t *end, uint32_t *ret)
{
	const uint8_t *p = *pos;
	uint32_t value = 0;

	for (unsigned int shift = 0; shift < 35 && p < end; shift += 7) {
		uint8_t byte = *p++;

		value |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*pos = p;
			*ret = value;
			return true;
		}
	}
	return false;
}

static int add_step(struct gopcsp *p, size_t n, uint64_t start, uint32_t value)
{
	int r = vec_grow(&p->steps, &p->steps_cap, n + 1, sizeof(*p->steps), GOPCSP_STEPS_MAX);

	if (r)
		return r < 0 ? r : GOPCSP_MALFORMED;
	p->steps[n] = (struct gocode_step){.start = start, .delta = (int32_t)value};
	return 0;
}

static int read_steps(struct gopcsp *p, uint32_t off, struct gocode_func *f)
{
	const uint8_t *pos = p->tables + off, *end = p->tables + p->n_tables;
	uint64_t pc = f->entry;
	uint32_t value = UINT32_MAX, step, pc_step;
	size_t n = 0;

	for (bool first = true; pc < f->end; first = false) {
		int r;

		if (!varint(&pos, end, &step))
			return GOPCSP_MALFORMED;
		if (step == 0 && !first)
			break;
		if (!varint(&pos, end, &pc_step))
			return GOPCSP_MALFORMED;
		/* a long table without code would be read for each function that has it */
		if (n && p->steps[n - 1].start == pc)
			return GOPCSP_MALFORMED;
		value += (step >> 1) ^ -(step & 1);
		r = add_step(p, n++, pc, value);
		if (r)
			return r;
		pc += (uint64_t)pc_step * p->module.quantum;
	}
	/* thousands of functions may share one long table */
	if (!elffile_spend(p->file, STEP_COST * n))
		return GOPCSP_MALFORMED;
	f->steps = p->steps;
	f->n_steps = n;
	return 0;
}

/* ---------------------------------------------------------------- one function */

static int module_outcome(int r)
{
	switch (r) {
	case GOMODULE_ABSENT:
		return GOPCSP_ABSENT;
	case GOMODULE_UNSUPPORTED:
		return GOPCSP_UNSUPPORTED;
	case GOMODULE_MALFORMED:
		return GOPCSP_MALFORMED;
	default:
		return r;
	}
}

/* A read beyond the file is an offset beyond the table, so it is malformed. */
static int read_outcome(int r)
{
	return r > 0 ? GOPCSP_MALFORMED : r;
}

static int read_name(struct gopcsp *p, uint32_t off, char ret[GOCODE_NAME_MAX])
{
	uint64_t left = off < p->names.size ? p->names.size - off : 0;
	size_t n = left < GOCODE_NAME_MAX - 1 ? (size_t)left : GOCODE_NAME_MAX - 1;
	const uint8_t *bytes;
	int r;

	if (n == 0)
		return GOPCSP_MALFORMED;
	r = elfwindow_get(&p->names, off, n, &bytes);
	if (r)
		return read_outcome(r);
	n = strnlen((const char *)bytes, n);
	memcpy(ret, bytes, n);
	ret[n] = '\0';
	return 0;
}

int gopcsp_next(struct gopcsp *p, struct gocode_func *ret)
{
	struct gofunc f;
	int r = gofuncwalk_next(&p->walk, &f);

	if (r)
		return r == GOFUNCWALK_END ? GOPCSP_END : module_outcome(r);
	*ret = (struct gocode_func){.entry = f.entry, .end = f.end, .flags = f.flags};
	if (f.flags || f.func_id || p->module.form == GOMODULE_1_16)
		r = read_name(p, f.name, ret->name);
	if (r || f.pc_sp == 0)
		return r;
	return f.pc_sp < p->n_tables ? read_steps(p, f.pc_sp, ret) : GOPCSP_MALFORMED;
}

/* ---------------------------------------------------------------- open */

static int read_tables(struct gopcsp *p, const struct elffile *file)
{
	const struct gomodule *m = &p->module;
	uint64_t n = m->funcs - m->pcs;

	if (n > GOPCSP_TABLES_MAX)
		return GOPCSP_TOO_LARGE;
	if (n == 0)
		return GOPCSP_MALFORMED;
	p->tables = malloc(n);
	if (!p->tables)
		return -ENOMEM;
	p->n_tables = n;
	return read_outcome(elffile_read(file, m->off + m->pcs, p->tables, n));
}

DEFINE_CLEANUP(struct gopcsp *, gopcsp_freep, gopcsp_free);

int gopcsp_open(const struct elffile *file, struct gopcsp **ret)
{
	_cleanup_(gopcsp_freep) struct gopcsp *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->file = file;
	r = module_outcome(gomodule_find(file, &p->module));
	if (!r)
		r = read_tables(p, file);
	if (!r)
		r = elfwindow_init(&p->names, file, p->module.off + p->module.names,
				   p->module.cus - p->module.names, NAMES_WINDOW);
	if (!r)
		r = module_outcome(gofuncwalk_init(&p->walk, file, &p->module, RECORDS_WINDOW));
	if (r)
		return r;
	*ret = take_ptr(p);
	return 0;
}

void gopcsp_free(struct gopcsp *p)
{
	if (!p)
		return;
	gofuncwalk_deinit(&p->walk);
	elfwindow_deinit(&p->names);
	free(p->tables);
	free(p->steps);
	free(p);
}
