// SPDX-License-Identifier: Apache-2.0
#include "support/usertables.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "unwind/rows.h"
#include "unwindtable/table.h"

#define SLABS 4
#define VADDR 0x1000ull
#define PAGES (USERTABLES_BYTES >> PROCESS_PAGE_SHIFT)

struct usertables {
	struct table_exe exes[TABLE_EXES];
	struct table_use uses[TABLE_EXES];
	struct unwind_rule rules[TABLE_RULES];
	struct table_rule_run rule_runs[TABLE_RULE_RUNS];
	struct table_page table_pages[SLABS * TABLE_SLAB_PAGES];
	struct tables *tables;
	uint16_t numbers[2];
	struct process_mapping maps[USERTABLES_MAPS];
};

DEFINE_CLEANUP(struct usertables *, usertables_freep, usertables_free);

static int make(void *ctx, uint32_t number)
{
	(void)ctx;
	return number < SLABS ? 0 : -ENOMEM;
}

static struct table_page *map(void *ctx, uint32_t number, uint32_t first, uint32_t n)
{
	struct usertables *u = ctx;

	(void)n;
	return &u->table_pages[(size_t)number * TABLE_SLAB_PAGES + first];
}

static void unmap(void *ctx, struct table_page *mem, uint32_t n)
{
	(void)ctx;
	(void)mem;
	(void)n;
}

static int make_table(struct table **ret)
{
	static const struct unwind_rule frame = {.cfa = UNWIND_CFA_REG,
						 .cfa_reg = REGS_UNWIND_SP,
						 .cfa_off = USERTABLES_FRAME,
						 .ra_off = -8};
	static const struct unwind_rule outermost = {.cfa = UNWIND_CFA_STOP};
	_cleanup_(rows_freep) struct rows *rows = NULL;
	int r = rows_new(VADDR, VADDR + USERTABLES_BYTES, &rows);

	if (!r)
		r = rows_begin(rows, ROWS_EH_FRAME, VADDR, VADDR + USERTABLES_BYTES);
	if (!r)
		r = rows_add(rows, VADDR, &frame);
	if (!r)
		r = rows_add(rows, VADDR + USERTABLES_OUTERMOST - USERTABLES_CODE, &outermost);
	if (!r)
		r = rows_end(rows);
	if (!r)
		r = rows_finish(rows);
	return r ? r : table_pack(rows, ret);
}

static int fill(struct usertables *u)
{
	const struct tables_opts opts = {
		.budget_bytes = (uint64_t)SLABS * TABLE_SLAB_PAGES * TABLE_PAGE_BYTES,
		.memory = {u->exes, u->uses, u->rules, u->rule_runs, {u, make, map, unmap}},
	};
	struct table *table;
	int r = tables_new(&opts, &u->tables);

	for (uint8_t i = 0; i < 2 && !r; i++)
		r = tables_exe_get(u->tables, &(struct file_id){.inode = i}, 1, &u->numbers[i]);
	if (!r)
		r = make_table(&table);
	if (!r)
		r = tables_publish(u->tables, u->numbers[0], table, 1);
	for (uint64_t i = 0; i < USERTABLES_MAPS; i++)
		u->maps[i] = (struct process_mapping){
			.start_pages = (USERTABLES_CODE >> PROCESS_PAGE_SHIFT) + i * PAGES,
			.n_pages = PAGES,
			.bias_pages = i < 2 ? (USERTABLES_CODE - VADDR) >> PROCESS_PAGE_SHIFT : 0,
			.exe = i < 2 ? u->numbers[i] : 0,
		};
	return r;
}

struct usertables *usertables_new(void)
{
	_cleanup_(usertables_freep) struct usertables *u = calloc(1, sizeof(*u));

	return u && fill(u) == 0 ? take_ptr(u) : NULL;
}

void usertables_free(struct usertables *u)
{
	if (u)
		tables_free(u->tables);
	free(u);
}

struct tables *usertables_tables(struct usertables *u)
{
	return u->tables;
}

const struct process_mapping *usertables_maps(const struct usertables *u)
{
	return u->maps;
}

uint16_t usertables_bare(const struct usertables *u)
{
	return u->numbers[1];
}

uint64_t usertables_frames(const struct usertables *u)
{
	return u->uses[u->numbers[0]].frames;
}

#if defined(__x86_64__)
struct regs usertables_regs(uint64_t pc, uint64_t sp, uint64_t fp)
{
	return (struct regs){.ip = pc, .sp = sp, .bp = fp, .orig_ax = UINT64_MAX};
}
#else
struct regs usertables_regs(uint64_t pc, uint64_t sp, uint64_t fp)
{
	struct regs regs = {.pc = pc, .sp = sp};

	regs.x[29] = fp;
	return regs;
}
#endif
