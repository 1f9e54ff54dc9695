// SPDX-License-Identifier: Apache-2.0
/*
 * The data of the kernel's walker for a process: the mappings, each with the table of the image.
 * The source is the BPF maps of the running podprof. Without a running podprof, or for a process
 * unknown to it, the command makes the same data itself and says so.
 */
#include "cmd/inspect.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "base/utf8.h"
#include "cmd/cmd.h"
#include "cmd/cmdline.h"
#include "cmd/view.h"
#include "procmap/address_space.h"
#include "procmap/maps.h"
#include "unwind/rowtext.h"
#include "unwindtable/compile.h"
#include "unwindtable/table.h"
#include "unwindtable/walkerview.h"

struct looking {
	const struct inspect_unwind_pid *o;
	struct root proc;
	struct pid_id id; /* start_ticks is 0 for an ended process */
	struct maps maps; /* executable mappings, for their paths */
	struct walkerview *kernel;
	const char *why; /* reason for not using the kernel's data; NULL: the kernel's */
	struct address_space_cache *cache;
	struct address_space *space;
};

/* A mapping, from either source. */
struct shown {
	uint64_t start, limit, bias;
	uint16_t image; /* the kernel's number; 0: none */
	uint64_t frames;
	bool has_table;
	uint64_t table_start, table_limit; /* vaddrs covered by the table */
	const char *path;
};

DEFINE_CLEANUP(struct table *, table_freep, table_free);

static void looking_deinit(struct looking *l)
{
	walkerview_free(l->kernel);
	address_space_cache_free(l->cache);
	maps_deinit(&l->maps);
	root_deinit(&l->proc);
}

static void show_table(struct shown *s, const struct table_exe *exe)
{
	s->has_table = exe->n_blocks > 0;
	s->table_start = exe->start;
	s->table_limit = exe->start + ((uint64_t)exe->n_blocks * 256 << exe->unit_shift % 64);
}

/* ---------------------------------------------------------------- from the kernel */

static const char *path_at(const struct looking *l, uint64_t pc)
{
	const struct maps_entry *e = maps_find(&l->maps, pc);

	return e && e->path[0] ? e->path : "-";
}

static struct shown shown_of_kernel(const struct looking *l, uint32_t i)
{
	struct process_mapping m = walkerview_mapping(l->kernel, i);
	const struct table_exe *exe = walkerview_exe(l->kernel, m.exe);
	struct shown s = {
		.start = (uint64_t)m.start_pages << PROCESS_PAGE_SHIFT,
		.limit = ((uint64_t)m.start_pages + m.n_pages) << PROCESS_PAGE_SHIFT,
		.bias = (uint64_t)m.bias_pages << PROCESS_PAGE_SHIFT,
		.image = m.exe,
		.frames = m.exe ? walkerview_frames(l->kernel, m.exe) : 0,
	};

	s.path = path_at(l, s.start);
	if (m.exe && exe)
		show_table(&s, exe);
	return s;
}

/* ---- data made by the command */

/* Works as the table builder (table_builder.c). NULL for an image without a table. */
static int make_table(const struct image *image, struct table **ret)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	struct ehframe_stats stats;
	int r = image->file ? compile_image(image->file, &stats, &rows) : ELFFILE_ABSENT;

	*ret = NULL;
	if (!r)
		r = table_pack(rows, ret);
	return r == -ENOMEM ? r : 0;
}

static int shown_of_address_space(const struct looking *l, const struct address_space_mapping *m,
				  struct shown *ret)
{
	_cleanup_(table_freep) struct table *table = NULL;
	int r = make_table(m->image, &table);

	if (r)
		return r;
	utf8_make_printable(m->image->path);
	*ret = (struct shown){.start = m->start, .limit = m->limit, .path = m->image->path};
	(void)image_bias(m->image, m->start, m->limit - m->start, m->offset, &ret->bias);
	if (table)
		show_table(ret, &table->exe);
	return 0;
}

/* ---------------------------------------------------------------- mappings */

static json_t *json_of(const struct shown *s)
{
	json_t *table = s->has_table ? json_pack("{s:o, s:o}", "start", view_hex(s->table_start),
						 "limit", view_hex(s->table_limit))
				     : json_null();

	return json_pack("{s:o, s:o, s:o, s:i, s:I, s:o, s:s}", "start", view_hex(s->start),
			 "limit", view_hex(s->limit), "bias", view_hex(s->bias), "image",
			 (int)s->image, "frames", (json_int_t)s->frames, "table", table, "path",
			 s->path);
}

static int list_mappings(const struct looking *l, json_t *list)
{
	const struct address_space_mapping *items;
	struct shown s;
	size_t n;
	int r = 0;

	if (l->kernel) {
		for (uint32_t i = 0; !r && i < walkerview_process(l->kernel)->n_mappings; i++) {
			s = shown_of_kernel(l, i);
			r = json_array_append_new(list, json_of(&s));
		}
		return r ? -ENOMEM : 0;
	}
	items = address_space_mappings(l->space, &n);
	for (size_t i = 0; !r && i < n; i++) {
		r = shown_of_address_space(l, &items[i], &s);
		if (!r && json_array_append_new(list, json_of(&s)))
			r = -ENOMEM;
	}
	return r;
}

/* Whether the kernel's data belong to the current process with this pid. */
static bool is_current(const struct looking *l)
{
	return !l->kernel ||
	       l->id.start_ticks ==
		       pid_ticks_of_ns(walkerview_process(l->kernel)->start_boottime_ns);
}

static void print_text(const struct looking *l, const json_t *list)
{
	const json_t *mapping;
	size_t i;

	printf("process %d: %zu mappings, ", (int)l->o->pid, json_array_size(list));
	if (l->why)
		printf("computed, not read from the kernel: %s\n", l->why);
	else
		printf("read from the kernel's walker%s\n",
		       is_current(l) ? "" : "; of an earlier process with this PID");
	printf("%16s %16s %16s %5s %-24s %10s %s\n", "START", "LIMIT", "BIAS", "IMAGE", "TABLE",
	       "FRAMES", "PATH");
	json_array_foreach(list, i, mapping)
		view_print_text(mapping, "{start:16x} {limit:16x} {bias:16x} {image:5z} "
					 "{table:-24r} {frames:10} {path}\n");
}

static int print_mappings(const struct looking *l)
{
	json_t *list = json_array();
	int r = list ? list_mappings(l, list) : -ENOMEM;

	if (!r && l->o->json)
		return cmd_print_json(json_pack("{s:i, s:s, s:s?, s:b, s:o}", "pid", (int)l->o->pid,
						"source", l->kernel ? "kernel" : "computed", "why",
						l->why, "current", is_current(l), "mappings",
						list));
	if (!r)
		print_text(l, list);
	json_decref(list);
	return r;
}

/* ---- an address */

/* The kernel's machine, taken from our own executable. Rows are printed with the machine's register
 * names. */
static enum cfi_machine host_machine(void)
{
	struct elffile *self = NULL;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	enum cfi_machine ret;

	if (fd >= 0 && elffile_open(fd, &self))
		close(fd);
	ret = self && elffile_machine(self) == EM_AARCH64 ? CFI_ARM64 : CFI_X86_64;
	elffile_free(self);
	return ret;
}

static int look_up_address_space(const struct looking *l, struct walkerview_row *ret,
				 const char **ret_path)
{
	const struct address_space_mapping *items;
	uint64_t pc = l->o->pc, bias = 0;
	size_t n;

	items = address_space_mappings(l->space, &n);
	for (size_t i = 0; i < n; i++) {
		_cleanup_(table_freep) struct table *table = NULL;
		int r;

		if (pc < items[i].start || pc >= items[i].limit)
			continue;
		(void)image_bias(items[i].image, items[i].start, items[i].limit - items[i].start,
				 items[i].offset, &bias);
		*ret = (struct walkerview_row){.vaddr = pc - bias, .found = TABLE_OUTSIDE};
		utf8_make_printable(items[i].image->path);
		*ret_path = items[i].image->path;
		r = make_table(items[i].image, &table);
		if (table)
			ret->found = table_lookup(table, ret->vaddr, &ret->rule);
		return r;
	}
	return WALKERVIEW_UNKNOWN;
}

static int print_lookup(const struct looking *l)
{
	struct walkerview_row row;
	const char *path = "-";
	char rule[ROWTEXT_MAX];
	int r;

	if (l->kernel) {
		path = path_at(l, l->o->pc);
		r = walkerview_lookup(l->kernel, l->o->pc, &row);
	} else {
		r = look_up_address_space(l, &row, &path);
	}
	if (r)
		return r;
	rowtext_print(host_machine(), &row.rule, rule);
	if (!l->o->json && l->why)
		printf("computed, not read from the kernel: %s\n", l->why);
	return view_print(json_pack("{s:o, s:s, s:o, s:s, s:s}", "pc", view_hex(l->o->pc), "source",
				    l->kernel ? "kernel" : "computed", "vaddr", view_hex(row.vaddr),
				    "rule", rule, "path", path),
			  l->o->json, "{pc:x} {vaddr:x} {rule} {path}\n");
}

/* ---------------------------------------------------------------- the command */

/* Open the kernel's data, or set the reason for the failure. */
static int open_kernel(struct looking *l)
{
	int r = walkerview_open((uint32_t)l->o->pid, &l->kernel);

	if (r == WALKERVIEW_NONE)
		l->why = "no podprof samples here";
	else if (r == WALKERVIEW_UNKNOWN)
		l->why = "the running podprof has no sample of the process yet";
	else if (r == WALKERVIEW_ODD)
		l->why = "the running podprof is another version";
	else if (r == -EPERM || r == -EACCES)
		l->why = "only root may read the kernel's maps";
	return r == -ENOMEM ? r : 0;
}

static int open_address_space(struct looking *l)
{
	struct address_space_who who = {.pid = l->id, .exec_id = ADDRESS_SPACE_EXEC_ANY};
	int r = address_space_cache_new(&l->proc, &l->cache);

	return r ? r : address_space_cache_get(l->cache, &who, &l->space);
}

static int look(struct looking *l)
{
	bool lives = !pid_read(&l->proc, l->o->pid, &l->id);
	int r = open_kernel(l);

	if (r)
		return r;
	if (!l->kernel && !lives) {
		cmd_error("inspect unwind: cannot read process %d; check the number, and run as "
			  "root",
			  (int)l->o->pid);
		return CMD_FAILED;
	}
	l->maps.only_prot = MAPS_X;
	if (lives)
		(void)maps_read(&l->proc, &l->id, &l->maps); /* on failure: no paths */
	for (size_t i = 0; i < l->maps.n; i++)
		utf8_make_printable(l->maps.items[i].path);
	if (!l->kernel) {
		if (!l->why)
			l->why = "the kernel's maps cannot be read";
		r = open_address_space(l);
	}
	if (r)
		return r;
	if (l->o->lookup)
		r = print_lookup(l);
	else
		r = print_mappings(l);
	if (r == WALKERVIEW_UNKNOWN) {
		cmd_error("inspect unwind: %" PRIx64 " is in no executable mapping of process %d",
			  l->o->pc, (int)l->o->pid);
		return CMD_FAILED;
	}
	return r;
}

int inspect_unwind_pid(const struct inspect_unwind_pid *o)
{
	_cleanup_(looking_deinit) struct looking l = {.o = o, .proc = ROOT_INIT};
	int r = cmdline_open_proc("inspect unwind", o->proc_root, &l.proc);

	if (r != CMD_DONE)
		return r;
	r = look(&l);
	if (r < 0) {
		cmd_error("inspect unwind: %s", strerror(-r));
		r = CMD_FAILED;
	}
	return cmdline_finish("inspect unwind", r);
}
