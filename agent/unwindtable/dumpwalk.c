// SPDX-License-Identifier: Apache-2.0
/*
 * The walker of bpf/lib is text without helpers; this file has its accessors for a stack dump. They
 * read the tables through the maps of the kernel's walkers. So kernel and agent share the tables,
 * the budget and the count of wanted tables. The process's mappings are an array of the caller. To
 * the walker they are pages behind the last possible page. If the dump has an excerpt, the excerpt
 * has the frames of the runtime.
 *
 * The process controls the bytes of the stack and the registers. As in the kernel, the accessors
 * check every number, so no value leads outside of the readable data.
 */
#include "unwindtable/dumpwalk.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "shared/stack_dump.h"
#include "shared/unwind.h"
#include "unwindtable/tables.h"

struct table_space;
static __u64 copy_to_edge(const struct table_space *space, __u64 address);
#define WINDOW_TO_EDGE(space, address) copy_to_edge(space, address)
struct walk_ctx;
static bool rule_apart(const struct walk_ctx *c, __u64 exe, __u64 vaddr, struct unwind_rule *ret);
#define WALK_RULE_APART(c, exe, vaddr, ret) rule_apart(c, exe, vaddr, ret)

#define WALK_RUNTIMES
#define PYTHON_COPIED
#include "lib/walk.bpf.h"

/* Of the process's mapping table. */
#define FIRST_PAGE    ((uint64_t)TABLE_SLABS * TABLE_SLAB_PAGES)
#define FIRST_MAPPING (FIRST_PAGE * PROCESS_MAPPINGS_PER_PAGE)
#define MAPPINGS      ((size_t)PROCESS_PAGES_MAX * PROCESS_MAPPINGS_PER_PAGE)

/* All data of one walk. */
struct table_space {
	const struct tables_memory *memory;
	struct page_pool *table_pages;
	const struct dumpwalk_from *from;
	struct dumpwalk_stack *stack;
	bool beyond; /* an earlier read went beyond the copied bytes */
	struct table_page maps[PROCESS_PAGES_MAX];
	struct walk_room room;
	/* of the excerpt */
	const __u64 *thread; /* NULL: not there */
	const struct stack_dump_part *copied[PYTHON_EXCERPT_FRAMES];
	size_t n_copied;
	size_t next_copied; /* behind the one found last */
};

struct dumpwalk {
	struct table_space space;
	__u64 frames[WALK_SLOTS];
};

/* ---------------------------------------------------------------- accessors */

static size_t n_pieces(const struct dumpwalk_from *from)
{
	return (from->n_bytes + STACK_DUMP_READ_BYTES - 1) / STACK_DUMP_READ_BYTES;
}

/* Bytes of the stack from @address on that lie in the dump in a row, and where they are in it. */
static __u64 find_copied(const struct dumpwalk_from *from, __u64 address, __u64 *ret_at)
{
	const __u64 off = address - from->at, piece = off / STACK_DUMP_READ_BYTES;
	const size_t n = n_pieces(from);
	size_t i = 0, end;

	*ret_at = off;
	if (!from->pieces)
		return off < from->n_bytes ? from->n_bytes - off : 0;
	while (i < n && from->pieces[i] < piece)
		i++;
	if (i == n || from->pieces[i] != piece)
		return 0;
	for (end = i + 1; end < n && from->pieces[end] == from->pieces[end - 1] + 1;)
		end++;
	*ret_at = i * STACK_DUMP_READ_BYTES + off % STACK_DUMP_READ_BYTES;
	end *= STACK_DUMP_READ_BYTES;
	end = end < from->n_bytes ? end : from->n_bytes;
	return *ret_at < end ? end - *ret_at : 0;
}

static __u64 copy_to_edge(const struct table_space *space, __u64 address)
{
	__u64 at;

	return find_copied(space->from, address, &at);
}

/* One past the last copied byte. */
static __u64 copy_end(const struct dumpwalk_from *from)
{
	const size_t n = n_pieces(from);

	if (!from->pieces || !n)
		return from->at + from->n_bytes;
	return from->at + (from->pieces[n - 1] + 1ull) * STACK_DUMP_READ_BYTES;
}

WINDOW_INLINE int window_read(const struct table_space *space, void *to, __u64 n, __u64 address)
{
	__u64 at;

	((struct table_space *)space)->beyond = address >= copy_end(space->from);
	if (n > find_copied(space->from, address, &at))
		return -1;
	memcpy(to, space->from->bytes + at, n);
	return 0;
}

TABLE_INLINE const struct table_page *table_page(const struct table_space *space, __u64 number)
{
	if (number >= FIRST_PAGE + PROCESS_PAGES_MAX)
		return NULL;
	return number >= FIRST_PAGE ? &space->maps[number - FIRST_PAGE]
				    : page_pool_view(space->table_pages, (uint32_t)number);
}

TABLE_INLINE const struct unwind_rule *table_rule(const struct table_space *space, __u64 number)
{
	return number < TABLE_RULES ? &space->memory->rules[number] : NULL;
}

TABLE_INLINE const struct table_rule_run *table_rule_run(const struct table_space *space,
							 __u64 number)
{
	return number < TABLE_RULE_RUNS ? &space->memory->rule_runs[number] : NULL;
}

static void note_missing(struct dumpwalk_stack *stack, uint16_t exe)
{
	for (size_t i = 0; i < stack->n_missing; i++)
		if (stack->missing[i] == exe)
			return;
	if (stack->n_missing < DUMPWALK_MISSING_MAX)
		stack->missing[stack->n_missing++] = exe;
}

WALK_INLINE const struct table_exe *walk_exe(const struct table_space *space, __u32 exe)
{
	return exe < TABLE_EXES ? &space->memory->exes[exe] : NULL;
}

/* For the walk, a known rule is as good as a table. */
static bool rule_apart(const struct walk_ctx *c, __u64 exe, __u64 vaddr, struct unwind_rule *ret)
{
	const struct dumpwalk_from *from = c->space->from;

	if (from->rule && from->rule(from->rule_ctx, (uint16_t)exe, vaddr, ret))
		return true;
	note_missing(c->space->stack, (uint16_t)exe);
	return false;
}

WALK_INLINE void walk_used(const struct table_space *space, __u32 exe, __u64 n_frames)
{
	if (exe < TABLE_EXES)
		space->memory->uses[exe].frames += n_frames;
}

/* Useless without the memory at that address. */
WALK_INLINE __u64 walk_thread_pointer(const struct table_space *space)
{
	(void)space;
	return 0;
}

WALK_INLINE struct walk_room *walk_room(const struct walk_ctx *c)
{
	return &((struct table_space *)c->space)->room;
}

/* None: the dump has no memory but the machine stack. */
WALK_INLINE const struct hotspot_process *hotspot_process_of(const struct walk_ctx *c)
{
	(void)c;
	return NULL;
}

/* None: the objects are not in the dump. */
WALK_INLINE const struct v8_process *v8_process_of(const struct walk_ctx *c)
{
	(void)c;
	return NULL;
}

/* With an excerpt alone: the process's memory is of the present, and the dump of the past. */
WALK_INLINE const struct python_process *python_process_of(const struct walk_ctx *c)
{
	return c->space->from->process;
}

WALK_INLINE const __u64 *python_copied_thread(const struct walk_ctx *c)
{
	return c->space->thread;
}

/* The walk asks in the order of the list, and for a frame several times. */
WALK_INLINE const __u64 *python_copied_frame(const struct walk_ctx *c, __u64 address)
{
	struct table_space *space = (struct table_space *)c->space;

	for (size_t i = 0; i < space->n_copied; i++) {
		const size_t at = (space->next_copied + i) % space->n_copied;

		if (space->copied[at]->at != address)
			continue;
		space->next_copied = at;
		return (const __u64 *)(const void *)(space->copied[at] + 1);
	}
	return NULL;
}

/* ---------------------------------------------------------------- walking */

/* The step of a runtime, as in the kernel's programs; NULL for native code alone. */
static const struct walk_runtime *step_of(uint32_t runtime)
{
#define STEP_ROW(NAME, name) [FRAME_RUNTIME_##NAME] = &name##_walk,
	static const struct walk_runtime *steps[FRAME_RUNTIME_MAX] = {[FRAME_RUNTIME_NONE] = NULL,
								      FRAME_RUNTIMES(STEP_ROW)};

	return runtime < FRAME_RUNTIME_MAX ? steps[runtime] : NULL;
}

static void take_excerpt(struct table_space *space, const struct dumpwalk_from *from)
{
	const struct stack_dump_part *part;
	__u64 at = 0;

	space->thread = NULL;
	space->n_copied = space->next_copied = 0;
	while ((part = stack_dump_next_part(from->excerpt, from->n_excerpt, &at))) {
		if (part->what == PYTHON_PART_THREAD && part->n == PYTHON_THREAD_WORDS * 8)
			space->thread = (const __u64 *)(const void *)(part + 1);
		if (part->what == PYTHON_PART_FRAME && part->n == PYTHON_FRAME_WORDS * 8 &&
		    space->n_copied < PYTHON_EXCERPT_FRAMES)
			space->copied[space->n_copied++] = part;
	}
}

void dumpwalk_walk(struct dumpwalk *dw, const struct dumpwalk_from *from,
		   struct dumpwalk_stack *ret)
{
	const size_t n_maps = from->n_maps < MAPPINGS ? from->n_maps : MAPPINGS;
	struct regs regs = *from->regs;
	struct walk w = {0};
	struct window win;
	const struct walk_ctx c = {
		.w = &w,
		.regs = &regs,
		.win = &win,
		.frames = dw->frames,
		.space = &dw->space,
		.mode = from->mode,
	};

	*ret = (struct dumpwalk_stack){.words = (const uint64_t *)dw->frames};
	dw->space.from = from;
	dw->space.stack = ret;
	dw->space.beyond = false;
	take_excerpt(&dw->space, from);
	if (n_maps)
		memcpy(dw->space.maps, from->maps, n_maps * sizeof(*from->maps));
	walk_begin(&c, FIRST_MAPPING, n_maps);
	for (int i = 0; i < WALK_PROGRAMS && w.end == WALK_ON; i++)
		walk_on(&c, step_of(from->runtime));
	ret->n = w.n;
	ret->n_rows = w.n_rows;
	ret->flags = w.flags;
	ret->end = w.end == WALK_ON ? SAMPLE_END_MAX_FRAMES : w.end;
	/* a full part, the last of its dump */
	if (ret->end == SAMPLE_END_UNREADABLE && dw->space.beyond && from->n_bytes &&
	    from->n_bytes % STACK_DUMP_BYTES == 0)
		ret->end = SAMPLE_END_DUMP;
	dw->space.from = NULL;
	dw->space.stack = NULL;
}

void dumpwalk_rest(struct dumpwalk *dw)
{
	page_pool_unview(dw->space.table_pages);
}

/* ---------------------------------------------------------------- life */

int dumpwalk_new(struct tables *tables, struct dumpwalk **ret)
{
	struct dumpwalk *dw = calloc(1, sizeof(*dw));

	if (!dw)
		return -ENOMEM;
	dw->space.memory = tables_memory(tables);
	dw->space.table_pages = tables_page_pool(tables);
	*ret = dw;
	return 0;
}

void dumpwalk_free(struct dumpwalk *dw)
{
	free(dw);
}
