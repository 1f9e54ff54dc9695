// SPDX-License-Identifier: Apache-2.0
/*
 * Processes without samples cost nothing. The first sample of a process shows that the walker did
 * not know it. Resolving that sample's stack reads the mappings anyway (procmap/address_space.h).
 * The publisher then publishes them with the identity in the sample, and again with later samples
 * when the mappings have changed. In the first interval of a process or of a new image, BPF dumps
 * the stacks (cpu/deferred_unwind.h).
 *
 * A record is wrong only for a negligible time. The walker compares start time and exec id. Events
 * report added mappings, and the agent reads the events before the next sample. The exit of the
 * leader withdraws the record. If other threads live on, their next sample publishes the process
 * again.
 */
#include "unwindtable/unwind_publisher.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "discovery/pid.h"
#include "unwindtable/table_builder.h"
#include "procmap/address_space.h"
#include "profile/stack_dump.h"
#include "profile/sample.h"
#include "runtimes/runtimes.h"
#include "shared/sample.h"
#include "unwindtable/dumpwalk.h"
#include "unwindtable/early_rules.h"
#include "unwindtable/processes.h"
#include "unwindtable/runtime_exes.h"
#include "unwindtable/slabmaker.h"
#include "unwindtable/tablemaps.h"

struct unwind_publisher {
	struct unwind_publisher_opts opts;
	struct tablemaps *maps_of_tables;
	struct slabmaker *slabs;
	struct tables *tables;
	struct processes *processes;
	struct table_builder *builder;
	struct early_rules *rules;
	struct runtime_exes *exes;
	struct dumpwalk *dumpwalk;
	struct process_mapping *maps; /* room for the largest table */
	size_t n_maps;
	uint64_t maps_version; /* of the published address space; 0: none */
};

DEFINE_CLEANUP(struct unwind_publisher *, unwind_publisher_freep, unwind_publisher_free);

#define MAPPINGS ((size_t)PROCESS_PAGES_MAX * PROCESS_MAPPINGS_PER_PAGE)

/* ---------------------------------------------------------------- mappings */

static uint64_t page_of(uint64_t address)
{
	return address >> PROCESS_PAGE_SHIFT;
}

/* Code without an image is in the table, too, so that the walker knows it as code. */
static struct process_mapping mapping_of(struct unwind_publisher *u,
					 const struct address_space_mapping *m)
{
	struct image *image = image_to_unwind(m->image);
	uint64_t bias = 0;
	uint16_t exe = 0;

	if (image && image_bias(image, m->start, m->limit - m->start, m->offset, &bias))
		exe = table_builder_number(u->builder, image);
	return (struct process_mapping){
		.start_pages = page_of(m->start),
		.n_pages = page_of(m->limit - m->start),
		.bias_pages = exe ? page_of(bias) : 0,
		.exe = exe,
	};
}

static void make_maps(struct unwind_publisher *u, const struct address_space *space)
{
	const struct address_space_mapping *items;
	size_t n;

	if (u->maps_version && address_space_version(space) == u->maps_version)
		return;
	items = address_space_mappings(space, &n);
	u->n_maps = n < MAPPINGS ? n : MAPPINGS;
	for (size_t i = 0; i < u->n_maps; i++)
		u->maps[i] = mapping_of(u, &items[i]);
	u->maps_version = address_space_version(space);
}

/* Requests the image at @pc, before the walker's counts show it. */
static void want(struct unwind_publisher *u, uint64_t pc, const struct address_space *space)
{
	const struct address_space_mapping *items;
	size_t n;

	items = address_space_mappings(space, &n);
	for (size_t i = 0; i < n; i++)
		if (pc >= items[i].start && pc < items[i].limit && image_to_unwind(items[i].image))
			table_builder_want(u->builder, image_to_unwind(items[i].image));
}

/* Requests the tables of all mapped files. */
static void want_all(struct unwind_publisher *u, const struct address_space *space)
{
	const struct address_space_mapping *items;
	size_t n;

	items = address_space_mappings(space, &n);
	for (size_t i = 0; i < n; i++) {
		struct image *image = image_to_unwind(items[i].image);

		if (image)
			table_builder_want(u->builder, image);
	}
}

static bool is_program(const struct processes_id *known, const struct address_space_who *who)
{
	return known->start_boottime_ns == who->start_ns && known->exec_id == who->exec_id;
}

/* Whether @known is the same process, at the same point of its life as @id or later. */
static bool is_newer(const struct processes_id *known, const struct processes_id *id)
{
	if (known->start_boottime_ns != id->start_boottime_ns)
		return false;
	return known->exec_id > id->exec_id ||
	       (known->exec_id == id->exec_id && known->version >= id->version);
}

/* The outermost native frame: the end of the walk. */
static uint64_t outermost_pc(const struct sample *sample)
{
	struct frame_record frame;
	uint64_t pc = 0;
	size_t at = 0;

	while (sample_user_next(sample, &at, &frame))
		if (frame.kind == FRAME_NATIVE)
			pc = frame.words[0] - (at > 1);
	return pc;
}

static struct address_space_who who_of(const struct sample *sample)
{
	return (struct address_space_who){
		.pid = sample->pid,
		.start_ns = sample->start_boottime_ns,
		.exec_id = sample->exec_id,
	};
}

/* The map of a runtime's processes; -1: it has none. */
static int map_of(const struct unwind_publisher *u, uint32_t runtime)
{
	return runtime < u->opts.kernel.n_runtimes ? u->opts.kernel.runtimes[runtime] : -1;
}

/* Write the process into the runtime's own map, before the record that names the runtime. False if
 * the walk must do without the runtime. */
static bool write_runtime(struct unwind_publisher *u, uint32_t runtime,
			  const struct address_space_who *who)
{
	const int map = map_of(u, runtime);
	const uint32_t tgid = (uint32_t)who->pid.pid;
	const void *value;

	if (runtime == FRAME_RUNTIME_NONE)
		return true;
	value = runtimes_record(u->opts.runtimes, runtime, who);
	if (map >= 0 && (!value || bpf_map_update_elem(map, &tgid, value, BPF_ANY)))
		return false;
	if (u->opts.wanted)
		u->opts.wanted(u->opts.ctx, runtime);
	return true;
}

/* After the record is gone, or names the runtime no more. */
static void remove_runtime(struct unwind_publisher *u, uint32_t runtime, uint32_t tgid)
{
	const int map = map_of(u, runtime);

	if (map >= 0)
		(void)bpf_map_delete_elem(map, &tgid);
}

/* Publishes the process of @sample, sampled at @pc, to the walker. @exe: what it executes; only
 * stack dumps tell, so without it the record keeps what an earlier dump told. */
static void publish(struct unwind_publisher *u, const struct sample *sample,
		    const struct exe_key *exe, uint64_t pc, const struct address_space *space)
{
	const struct address_space_who who = who_of(sample);
	struct processes_id known = {0};
	struct processes_id id = {
		.tgid = (uint32_t)sample->pid.pid,
		.start_boottime_ns = sample->start_boottime_ns,
		.exec_id = sample->exec_id,
		.version = address_space_version(space),
	};
	bool failed;

	if (!id.version || address_space_gone(space))
		return;
	if (sample->n_user && sample->end == SAMPLE_END_NO_TABLE)
		want(u, outermost_pc(sample), space);
	/* Until its files are open, the walker copies the stacks of a new process. */
	if (address_space_opening(space) ||
	    (processes_find(u->processes, id.tgid, &known) && is_newer(&known, &id)))
		return;
	want(u, pc, space);
	/* the last samples come after the exit event, which has withdrawn the record */
	if (pid_n_threads(u->opts.proc, (pid_t)id.tgid) <= address_space_ended(space))
		return;
	make_maps(u, space);
	if (u->opts.all_tables)
		want_all(u, space);
	id.exe = !exe->inode && is_program(&known, &who) ? known.exe : *exe;
	id.runtime = runtimes_of(u->opts.runtimes, &who, space);
	if (!write_runtime(u, id.runtime, &who))
		id.runtime = FRAME_RUNTIME_NONE;
	/* processes_publish() counts a failure; the next sample retries */
	failed = processes_publish(u->processes, &id, u->maps, u->n_maps, nsec_monotonic());
	if (known.runtime != id.runtime)
		remove_runtime(u, failed ? id.runtime : known.runtime, id.tgid);
}

/* Later dumps of the program @exe of @owner are like @dumps says, and like earlier ones. Programs
 * with excerpts have no room for more, and need no wake. */
static void learn_dumps(struct unwind_publisher *u, uint64_t owner, const struct exe_key *exe,
			struct exe_dumps dumps)
{
	const struct exe_dumps *known;
	uint32_t runtime;

	known = runtime_exes_find(u->exes, exe, &runtime);
	if (known && runtime != FRAME_RUNTIME_NONE)
		return;
	if (known && known->n_parts > dumps.n_parts)
		dumps.n_parts = known->n_parts;
	dumps.wakes |= known ? known->wakes : 0;
	runtime_exes_learn(u->exes, owner, exe, FRAME_RUNTIME_NONE, &dumps, sizeof(dumps));
}

/* Later dumps of the program @exe, of which @space is a process, have excerpts. */
static void learn_exe(struct unwind_publisher *u, const struct exe_key *exe,
		      const struct address_space *space)
{
	const void *value;
	uint32_t runtime;
	size_t n;

	if (!exe->inode)
		return;
	runtime = runtimes_exe(u->opts.runtimes, space, &value, &n);
	if (value)
		runtime_exes_learn(u->exes, address_space_owner(space), exe, runtime, value, n);
}

void unwind_publisher_runtime(struct unwind_publisher *u, uint32_t runtime,
			      const struct address_space_who *who,
			      const struct address_space *space)
{
	const uint32_t tgid = (uint32_t)who->pid.pid;
	struct processes_id known;
	bool is_set;

	if (!processes_find(u->processes, tgid, &known) || !is_program(&known, who))
		return;
	/* before the walk has the runtime's frames, so that their names come with the first */
	learn_exe(u, &known.exe, space);
	if (!runtimes_has_excerpts(u->opts.runtimes, runtime))
		learn_dumps(u, address_space_owner(space), &known.exe,
			    (struct exe_dumps){.n_parts = 1, .wakes = 1});
	if (!write_runtime(u, runtime, who))
		return;
	is_set = processes_set_runtime(u->processes, tgid, runtime);
	if (known.runtime != runtime)
		remove_runtime(u, is_set ? known.runtime : runtime, tgid);
}

void unwind_publisher_sample(struct unwind_publisher *u, const struct sample *sample,
			     const struct address_space *space)
{
	const struct exe_key not_told = {0};
	struct frame_record frame;
	size_t at = 0;

	while (sample_user_next(sample, &at, &frame))
		if (frame.kind == FRAME_NATIVE) {
			publish(u, sample, &not_told, frame.words[0] - (at > 1), space);
			return;
		}
}

/* ---------------------------------------------------------------- copied stacks */

static bool early_rule(void *ctx, uint16_t exe, uint64_t vaddr, struct unwind_rule *ret)
{
	const struct unwind_publisher *u = ctx;

	return early_rules_find(u->rules, exe, vaddr, ret);
}

/* Mappings of one image that are searched for places; the linker makes one. Reached: the stack
 * waits for the table. */
#define CODE_MAPPINGS_MAX 8

/* The mappings of an image's code. */
struct code {
	uint16_t exe;
	size_t n;
	const struct process_mapping *items[CODE_MAPPINGS_MAX];
};

static struct code code_of(const struct unwind_publisher *u, uint16_t exe)
{
	struct code code = {.exe = exe};

	for (size_t i = 0; i < u->n_maps && code.n < CODE_MAPPINGS_MAX; i++)
		if (u->maps[i].exe == exe)
			code.items[code.n++] = &u->maps[i];
	return code;
}

/* The address in the image of a run-time address. False outside of its code. */
static bool place_of(const struct code *code, uint64_t pc, uint64_t *ret)
{
	for (size_t i = 0; i < code->n; i++) {
		const struct process_mapping *m = code->items[i];

		if ((pc >> PROCESS_PAGE_SHIFT) - m->start_pages >= m->n_pages)
			continue;
		*ret = pc - ((uint64_t)m->bias_pages << PROCESS_PAGE_SHIFT);
		return true;
	}
	return false;
}

/* All words of the dump that may be return addresses into the image, and the pc. Most are, and an
 * old one costs microseconds; so one request serves the whole stack. */
static size_t find_places(const struct code *code, const struct stack_dump *dump, uint64_t *ret)
{
	const uint64_t unused = (regs_sp(dump->regs) - dump->at) & ~7ull;
	size_t n = 0;

	n += place_of(code, regs_pc(dump->regs), &ret[n]);
	n += place_of(code, regs_pc(dump->regs) - 1, &ret[n]);
	for (size_t at = unused < dump->n_bytes ? unused : 0;
	     at + 8 <= dump->n_bytes && n < EARLY_RULES_BATCH_MAX; at += 8) {
		uint64_t word;

		memcpy(&word, dump->bytes + at, sizeof(word));
		n += place_of(code, regs_code_pointer(word) - 1, &ret[n]);
	}
	return n;
}

/* Requests the rules that a walk of the dump can need of an image without a table: the round. */
static uint32_t want_rules(struct unwind_publisher *u, uint16_t exe, const struct stack_dump *dump,
			   const struct address_space *space, bool *ret_more)
{
	struct image *image = table_builder_image(u->builder, exe);
	const struct code code = code_of(u, exe);
	uint64_t places[EARLY_RULES_BATCH_MAX];

	if (!image || !early_rules_serve(u->rules, exe, image))
		return 0;
	return early_rules_want(u->rules, address_space_owner(space), exe, places,
				find_places(&code, dump, places), ret_more);
}

/* The innermost missing table. A search of the whole dump for places costs more than its walk, so
 * there is one for each image that a walk waits for. */
static struct unwind_publisher_wait wait_for(struct unwind_publisher *u, uint16_t exe,
					     const struct stack_dump *dump,
					     const struct address_space *space,
					     const struct unwind_publisher_wait *before)
{
	struct unwind_publisher_wait wait = {.exe = exe, .asked = exe};
	bool more = false;

	if (before->asked == exe) {
		wait.round = before->exe == exe ? before->round : 0;
		return wait;
	}
	wait.round = want_rules(u, exe, dump, space, &more);
	if (more)
		wait.asked = 0;
	return wait;
}

/* Requests all missing tables, and until they are there the rules. Returns whether any is on the
 * way. */
static bool want_missing(struct unwind_publisher *u, const struct stack_dump *dump,
			 const struct address_space *space, const struct dumpwalk_stack *stack,
			 struct unwind_publisher_wait *wait)
{
	const struct unwind_publisher_wait before = *wait;

	wait->exe = 0;
	wait->round = 0;
	for (size_t i = stack->n_missing; i-- > 0;) {
		if (table_builder_want_number(u->builder, stack->missing[i]) ==
		    TABLE_BUILDER_COMING)
			*wait = wait_for(u, stack->missing[i], dump, space, &before);
	}
	return wait->exe;
}

bool unwind_publisher_names(struct unwind_publisher *u, const struct stack_dump *dump,
			    const struct address_space *space)
{
	const struct address_space_who who = who_of(&dump->sample);

	return runtimes_excerpt(u->opts.runtimes, dump->runtime, &who, space, dump->excerpt,
				dump->n_excerpt);
}

/* The runtime's part of the dump: the names in its excerpt, and the step for the walk. A dump
 * without excerpt tells which program it is of, so that the next one has an excerpt. */
static void take_runtime(struct unwind_publisher *u, const struct stack_dump *dump,
			 const struct address_space *space, struct dumpwalk_from *ret)
{
	const struct address_space_who who = who_of(&dump->sample);

	if (dump->runtime)
		ret->process = runtimes_excerpt(u->opts.runtimes, dump->runtime, &who, space,
						dump->excerpt, dump->n_excerpt);
	if (ret->process) {
		ret->runtime = dump->runtime;
		ret->excerpt = dump->excerpt;
		ret->n_excerpt = dump->n_excerpt;
		return;
	}
	/* Among a part of the files, the reader finds the process's runtime, but not its file, and
	 * then the program is not learnt. */
	if (!address_space_opening(space))
		ret->runtime = runtimes_of(u->opts.runtimes, &who, space);
	learn_exe(u, dump->exe, space);
}

/* A walk of a later stack in the kernel can lead through the process's other large files, whose
 * tables take long. */
static void want_ahead(struct unwind_publisher *u)
{
	size_t n = 0;

	for (size_t i = 0; i < u->n_maps && n < UNWIND_PUBLISHER_AHEAD; i++) {
		const struct process_mapping *m = &u->maps[i];

		if ((uint64_t)m->n_pages << PROCESS_PAGE_SHIFT < UNWIND_PUBLISHER_AHEAD_BYTES)
			continue;
		n++;
		if (m->exe)
			(void)table_builder_want_number(u->builder, m->exe);
	}
}

/* The number of the image at @pc; 0: none. */
static uint16_t exe_at(const struct unwind_publisher *u, uint64_t pc)
{
	for (size_t i = 0; i < u->n_maps; i++)
		if (page_of(pc) - u->maps[i].start_pages < u->maps[i].n_pages)
			return u->maps[i].exe;
	return 0;
}

/* After a stack that is larger than its dump: the next dumps of the program may have a part more.
 * The process is unknown to the kernel for a moment each time that the program starts, also when
 * all tables are there. Programs with excerpts have no room for it. */
static void learn_deep(struct unwind_publisher *u, const struct stack_dump *dump,
		       const struct address_space *space)
{
	const uint32_t n = (uint32_t)(dump->n_bytes / STACK_DUMP_BYTES + 1);

	if (n <= STACK_DUMP_PARTS)
		learn_dumps(u, address_space_owner(space), dump->exe,
			    (struct exe_dumps){.n_parts = n});
}

/* For a stack that is larger than its dump: the tables without which such stacks stay cut. Before
 * the walk in the kernel has told which one it lacks, this is the image of the frame where the dump
 * ends. */
static void hurry(struct unwind_publisher *u, const struct stack_dump *dump,
		  const struct sample *walked)
{
	const uint16_t exe = dump->awaits ? dump->awaits : exe_at(u, outermost_pc(walked));

	if (exe && table_builder_want_number(u->builder, exe) == TABLE_BUILDER_COMING)
		table_builder_hurry(u->builder, exe);
	want_ahead(u);
}

int unwind_publisher_walk(struct unwind_publisher *u, const struct stack_dump *dump,
			  const struct address_space *space, struct sample *ret,
			  struct unwind_publisher_wait *wait)
{
	struct dumpwalk_from from = {
		.regs = dump->regs,
		.at = dump->at,
		.bytes = dump->bytes,
		.n_bytes = dump->n_bytes,
		.pieces = dump->pieces,
		.mode = u->opts.mode,
		.rule = early_rule,
		.rule_ctx = u,
	};
	struct dumpwalk_stack stack;

	if (dump->awaits) /* the copy may end before it */
		(void)table_builder_want_number(u->builder, dump->awaits);
	publish(u, &dump->sample, dump->exe, regs_pc(dump->regs), space);
	make_maps(u, space);
	from.maps = u->maps;
	from.n_maps = u->n_maps;
	take_runtime(u, dump, space, &from);
	dumpwalk_walk(u->dumpwalk, &from, &stack);
	*ret = dump->sample;
	(void)sample_set_user(ret, stack.words, stack.n, stack.n_rows); /* our own words */
	ret->end = stack.end;
	ret->flags = stack.flags;
	if (ret->end == SAMPLE_END_DUMP) {
		hurry(u, dump, ret);
		learn_deep(u, dump, space);
	}
	return want_missing(u, dump, space, &stack, wait) ? UNWIND_PUBLISHER_WAITS
							  : UNWIND_PUBLISHER_OK;
}

bool unwind_publisher_want(struct unwind_publisher *u, uint16_t exe)
{
	return table_builder_want_number(u->builder, exe) == TABLE_BUILDER_COMING;
}

void unwind_publisher_rest(struct unwind_publisher *u)
{
	dumpwalk_rest(u->dumpwalk);
}

bool unwind_publisher_wait(struct unwind_publisher *u, uint64_t timeout_ns)
{
	return table_builder_wait(u->builder, timeout_ns);
}

/* ---------------------------------------------------------------- forgetting */

void unwind_publisher_exit(struct unwind_publisher *u, uint32_t tgid)
{
	processes_withdraw(u->processes, tgid, nsec_monotonic());
}

void unwind_publisher_tick(struct unwind_publisher *u)
{
	processes_sweep(u->processes, nsec_monotonic());
	table_builder_tick(u->builder);
	page_pool_ahead(tables_page_pool(u->tables));
}

static void withdraw_if_gone(void *ctx, const struct processes_id *id)
{
	struct unwind_publisher *u = ctx;
	const struct pid_id pid = {.pid = id->tgid,
				   .start_ticks = pid_ticks_of_ns(id->start_boottime_ns)};

	if (pid_check(u->opts.proc, &pid) == PID_GONE)
		processes_withdraw(u->processes, id->tgid, nsec_monotonic());
}

void unwind_publisher_sweep(struct unwind_publisher *u, bool check)
{
	bool *used = calloc(TABLE_EXES, sizeof(*used));

	if (check)
		processes_for_each(u->processes, withdraw_if_gone, u);
	if (!used)
		return;
	u->maps_version = 0; /* other images may get its numbers after this */
	processes_mark(u->processes, used, TABLE_EXES);
	table_builder_sweep(u->builder, used, TABLE_EXES);
	for (size_t i = 0; i < TABLE_EXES; i++)
		used[i] &= !tables_live(u->tables, (uint16_t)i);
	early_rules_sweep(u->rules, used, TABLE_EXES);
	free(used);
}

size_t unwind_publisher_pending(const struct unwind_publisher *u)
{
	return table_builder_pending(u->builder) + tables_stats(u->tables).n_waiting;
}

/* ---------------------------------------------------------------- the kernel's side */

static int reserve(void *ctx, uint32_t n, uint32_t *ret)
{
	struct unwind_publisher *u = ctx;

	return page_pool_reserve(tables_page_pool(u->tables), PAGE_POOL_MAPPINGS, n, ret);
}

static void release(void *ctx, uint32_t first, uint32_t n)
{
	struct unwind_publisher *u = ctx;

	page_pool_release(tables_page_pool(u->tables), first, n);
}

static struct process_mapping *table_page(void *ctx, uint32_t number)
{
	struct unwind_publisher *u = ctx;

	return (struct process_mapping *)page_pool_at(tables_page_pool(u->tables), number);
}

static int record(void *ctx, uint32_t tgid, const struct process *process)
{
	struct unwind_publisher *u = ctx;

	return bpf_map_update_elem(u->opts.kernel.records, &tgid, process, BPF_ANY);
}

static void remove_record(void *ctx, uint32_t tgid)
{
	struct unwind_publisher *u = ctx;
	struct processes_id known;

	(void)bpf_map_delete_elem(u->opts.kernel.records, &tgid);
	if (processes_find(u->processes, tgid, &known))
		remove_runtime(u, known.runtime, tgid);
}

static void slab_made(void *ctx, int result)
{
	struct unwind_publisher *u = ctx;

	tables_slab_made(u->tables, result, nsec_monotonic());
	if (u->opts.ready)
		u->opts.ready(u->opts.ctx, 0, 0);
	if (!result)
		page_pool_ahead(tables_page_pool(u->tables));
}

/* ---------------------------------------------------------------- life */

static void rules_ready(void *ctx, uint16_t number, uint32_t round)
{
	struct unwind_publisher *u = ctx;

	if (u->opts.ready)
		u->opts.ready(u->opts.ctx, number, round);
}

static void table_ready(void *ctx, uint16_t number)
{
	struct unwind_publisher *u = ctx;

	if (tables_live(u->tables, number))
		early_rules_drop(u->rules, number);
	if (u->opts.ready)
		u->opts.ready(u->opts.ctx, number, 0);
}

/* The kernel's side of tables: the first slab is being made when this returns. */
static int start_tables(struct unwind_publisher *u)
{
	const struct tablemaps_fds fds = {.slabs = u->opts.kernel.slabs,
					  .exes = u->opts.kernel.exes,
					  .uses = u->opts.kernel.uses,
					  .rules = u->opts.kernel.rules,
					  .rule_runs = u->opts.kernel.rule_runs};
	struct tables_opts opts = {.budget_bytes = u->opts.table_bytes};
	struct slabmaker_opts slabs = {.loop = u->opts.loop, .made = slab_made, .ctx = u};
	int r = tablemaps_new(&fds, &u->maps_of_tables);

	if (r)
		return r;
	opts.memory = tablemaps_memory(u->maps_of_tables);
	slabs.slabs = opts.memory.slabs;
	r = slabmaker_new(&slabs, &u->slabs);
	if (r)
		return r;
	opts.memory.slabs = slabmaker_slabs(u->slabs);
	r = tables_new(&opts, &u->tables);
	if (!r)
		page_pool_ahead(tables_page_pool(u->tables));
	return r;
}

static int unwind_publisher_init(struct unwind_publisher *u)
{
	const struct processes_kernel kernel = {.ctx = u,
						.reserve = reserve,
						.release = release,
						.table_page = table_page,
						.record = record,
						.remove = remove_record};
	struct table_builder_opts table_builder_opts = {
		.loop = u->opts.loop,
		.ready = table_ready,
		.ctx = u,
	};
	const struct early_rules_opts early_rules_opts = {
		.loop = u->opts.loop, .ready = rules_ready, .ctx = u};
	int r;

	u->maps = calloc(MAPPINGS, sizeof(*u->maps));
	if (!u->maps)
		return -ENOMEM;
	r = start_tables(u);
	if (!r)
		r = runtime_exes_new(u->opts.kernel.runtime_exes, u->opts.kernel.n_runtimes,
				     &u->exes);
	if (!r)
		r = dumpwalk_new(u->tables, &u->dumpwalk);
	if (!r)
		r = processes_new(&kernel, &u->processes);
	if (!r)
		r = early_rules_new(&early_rules_opts, &u->rules);
	table_builder_opts.tables = u->tables;
	if (!r)
		r = table_builder_new(&table_builder_opts, &u->builder);
	return r;
}

int unwind_publisher_new(const struct unwind_publisher_opts *opts, struct unwind_publisher **ret)
{
	_cleanup_(unwind_publisher_freep) struct unwind_publisher *u = calloc(1, sizeof(*u));
	int r;

	if (!u)
		return -ENOMEM;
	u->opts = *opts;
	r = unwind_publisher_init(u);
	if (r)
		return r;
	*ret = take_ptr(u);
	return 0;
}

void unwind_publisher_free(struct unwind_publisher *u)
{
	if (!u)
		return;
	table_builder_free(u->builder);
	early_rules_free(u->rules);
	processes_free(u->processes);
	runtime_exes_free(u->exes);
	dumpwalk_free(u->dumpwalk);
	tables_free(u->tables);
	slabmaker_free(u->slabs);
	tablemaps_free(u->maps_of_tables);
	free(u->maps);
	free(u);
}

static void collect_processes(const struct unwind_publisher *u, struct metric_sink *sink)
{
	static const struct metric_family_desc published = {
		"podprof_unwind_processes", METRIC_COUNTER,
		"Publications of a process's mappings to the walker, by outcome.", NULL};
	static const struct metric_family_desc known = {
		"podprof_unwind_entries", METRIC_GAUGE,
		"Processes known to the walker, and their shared mapping tables.", NULL};
	struct processes_stats stats = processes_stats(u->processes);
	const char *names[PROCESSES_OUTCOME_MAX];

	for (int i = 0; i < PROCESSES_OUTCOME_MAX; i++)
		names[i] = processes_outcome_name(i);
	metric_by_name(sink, &published, "outcome", stats.outcomes, names, PROCESSES_OUTCOME_MAX);
	metric_family(sink, &known);
	metric_u64(sink, stats.n_records, &(struct metric_label){"kind", "processes"}, 1);
	metric_u64(sink, stats.n_tables, &(struct metric_label){"kind", "mapping_tables"}, 1);
}

static void collect_tables(const struct unwind_publisher *u, struct metric_sink *sink)
{
	static const struct metric_family_desc tables = {
		"podprof_unwind_tables", METRIC_GAUGE,
		"Images mapped by known processes, by state of the unwind table.", NULL};
	static const struct metric_family_desc rows = {"podprof_unwind_rows", METRIC_GAUGE,
						       "Rows of the loaded tables.", NULL};
	static const struct metric_family_desc bytes = {
		"podprof_unwind_bytes", METRIC_GAUGE,
		"Kernel memory of unwind tables and mappings, by kind.", "bytes"};
	static const struct metric_family_desc changes = {
		"podprof_unwind_table_changes", METRIC_COUNTER,
		"Tables loaded, evicted and refused; rules lost; failures.", NULL};
	static const char *const names[] = {"loaded", "evicted", "refused", "rules_lost", "failed"};
	struct tables_stats s = tables_stats(u->tables);
	const uint64_t counts[] = {s.loads, s.evictions, s.refused, s.rules_lost, s.failures};

	metric_family(sink, &tables);
	metric_u64(sink, s.n_live, &(struct metric_label){"state", "loaded"}, 1);
	metric_u64(sink, s.n_waiting, &(struct metric_label){"state", "pending"}, 1);
	metric_u64(sink, s.n_exes - s.n_live - s.n_waiting, &(struct metric_label){"state", "none"},
		   1);
	metric_family(sink, &rows);
	metric_u64(sink, s.rows, NULL, 0);
	metric_family(sink, &bytes);
	metric_u64(sink, s.table_bytes, &(struct metric_label){"kind", "tables"}, 1);
	metric_u64(sink, s.slab_bytes, &(struct metric_label){"kind", "slabs"}, 1);
	metric_u64(sink, tablemaps_fixed_bytes(), &(struct metric_label){"kind", "fixed"}, 1);
	metric_by_name(sink, &changes, "event", counts, names, array_size(names));
}

void unwind_publisher_collect(void *publisher, struct metric_sink *sink)
{
	const struct unwind_publisher *u = publisher;

	collect_processes(u, sink);
	collect_tables(u, sink);
	table_builder_collect(u->builder, sink);
	early_rules_collect(u->rules, sink);
}
