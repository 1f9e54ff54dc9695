// SPDX-License-Identifier: Apache-2.0
/* The function at an address: of a file, or of a running process. */
#include "cmd/inspect.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/root.h"
#include "base/strview.h"
#include "cmd/cmd.h"
#include "cmd/cmdline.h"
#include "cmd/debugservers.h"
#include "cmd/view.h"
#include "discovery/pid.h"
#include "procmap/address_space.h"
#include "procmap/image.h"
#include "symbolize/debuginfod.h"
#include "symbolize/dwarfreader.h"
#include "symbolize/symbolizer.h"

/* Bytes of symbol tables kept, while the command runs. */
#define INSPECT_CACHE_BYTES  (64u << 20)
/* Addresses of user programs are below. */
#define INSPECT_KERNEL_START (1ull << 63)

struct options {
	bool json;
	bool by_pid;
	bool sources;
	pid_t pid;
	const char *proc_root;
	const char *file;
	char **addresses;
	int n_addresses;
	struct cmdline_values debuginfod; /* URLs */
	const char *debuginfod_dir;
	struct debugservers servers;
};

static const char help[] =
	"usage: podprof inspect symbols [--json] FILE VADDR...\n"
	"       podprof inspect symbols [--json] [--proc-root PATH] --pid PID PC...\n"
	"       podprof inspect symbols [--json] --sources FILE [VADDR...]\n"
	"\n"
	"Shows the functions at addresses in hex: ELF virtual addresses of a program or library, "
	"or\n"
	"run-time addresses of a process or the kernel. Inlined functions come first, each "
	"inlined\n"
	"into the next.\n"
	"\n"
	"  --json            one JSON array a line for each address, innermost first, of\n"
	"                    {\"function\",\"file\",\"line\",\"inlined\"}; file and line are null "
	"if\n"
	"                    unknown\n"
	"  --pid PID         the addresses belong to this process\n"
	"  --debuginfod URL  ask this debuginfod server for missing debug files, and wait up to a\n"
	"                    minute for them; repeatable. The server learns the build ids\n"
	"  --debuginfod-dir DIR\n"
	"                    keep these files here (~/.cache/podprof/debuginfod)\n"
	"  --sources         first show the sources of FILE's names, the best first: a source\n"
	"                    present in the file (or beside it), and its memory in bytes;\n"
	"                    then the debug file, and why other functions have no name\n"
	"  --proc-root PATH  mount point of procfs (/proc)\n"
	"  --help            this text\n";

/* ---------------------------------------------------------------- output */

static json_t *line_as_json(const struct symbol_line *line)
{
	return json_pack("{s:s, s:s?, s:o, s:b}", "function", line->function, "file",
			 line->file[0] ? line->file : NULL, "line",
			 line->line ? json_integer(line->line) : json_null(), "inlined",
			 line->inlined);
}

static json_t *lines_as_json(const struct symbol *sym)
{
	json_t *lines = json_array();

	for (size_t i = 0; i < sym->n_lines; i++) {
		if (json_array_append_new(lines, line_as_json(&sym->lines[i])) < 0) {
			json_decref(lines);
			return NULL;
		}
	}
	return lines;
}

static int print_lines(const struct options *o, uint64_t address, json_t *lines)
{
	const json_t *line;
	size_t i;

	if (o->json || !lines)
		return cmd_print_json(lines);
	json_array_foreach(lines, i, line) {
		printf("0x%" PRIx64 "  ", address);
		view_print_text(line, "{function}[file?  {file}:{line|0}][inlined?  (inlined)]\n");
	}
	json_decref(lines);
	return 0;
}

/* A symbolizer_fn. */
struct printing {
	const struct options *options;
	const uint64_t *addresses;
};

static int print_symbol(void *ctx, size_t i, const struct symbol *symbol)
{
	const struct printing *p = ctx;

	return print_lines(p->options, p->addresses[i], lines_as_json(symbol));
}

/* @r: of print_symbol(). */
static int status_of(int r)
{
	if (r)
		cmd_error("inspect symbols: %s", strerror(-r));
	return r ? CMD_FAILED : CMD_DONE;
}

static int print_source(void *ctx, const char *name, bool is_present, size_t bytes)
{
	const struct options *o = ctx;

	if (o->json)
		return cmd_print_json(json_pack("{s:s, s:b, s:I}", "source", name, "present",
						is_present, "bytes", (json_int_t)bytes));
	printf("%-10s  %-7s  %zu\n", name, is_present ? "present" : "absent", bytes);
	return 0;
}

/* What a user can do about missing names; NULL: nothing. */
static const char *remedy(const struct options *o, enum symbol_missing missing)
{
	switch (missing) {
	case SYMBOL_STRIPPED:
		return o->debuginfod.n ? "no server has the debug file; install its package of "
					 "debug symbols"
				       : "install its package of debug symbols, or set "
					 "--debuginfod";
	case SYMBOL_AWAITS_DEBUG_FILE:
		return "its debug file is being downloaded; try again";
	case SYMBOL_TRUNCATED_ELF:
		return "the file is truncated or damaged";
	case SYMBOL_OVER_BUDGET:
		return "the file takes too much work";
	case SYMBOL_SLOW_FILE:
		return "its file system does not answer";
	default:
		return NULL;
	}
}

/* The build id, the debug file, and why other functions have no name. */
static int print_state(const struct options *o, struct symbolizer *s, struct image *image)
{
	struct symbolizer_state *state = calloc(1, sizeof(*state));
	json_t *object = NULL;
	int r = state ? symbolizer_state(s, image, state) : -ENOMEM;

	if (!r) {
		object = json_pack("{s:o, s:o, s:s?, s:s?}", "build_id", view_text(image->build_id),
				   "debug_file", view_text(state->debug_file), "unnamed",
				   symbol_missing_names[state->missing], "remedy",
				   remedy(o, state->missing));
		r = view_print(object, o->json,
			       "build id    {build_id|none}\n"
			       "debug file  {debug_file|none}\n"
			       "unnamed     {unnamed|none}[remedy?: {remedy}]\n");
	}
	free(state);
	return r;
}

static int print_sources(const struct options *o, struct symbolizer *s, struct image *image)
{
	int r;

	if (!o->json)
		puts("source      state    bytes in memory");
	r = symbolizer_sources(s, image, print_source, (void *)o);
	return r ? r : print_state(o, s, image);
}

/* ---------------------------------------------------------------- addresses */

/* All were checked before. */
static uint64_t address_of(const char *text)
{
	uint64_t address;

	return strview_address(text, &address) ? address : 0;
}

/* In batches: each one is an exchange with the process that reads DWARF. */
static int print_in_file(const struct options *o, struct symbolizer *s, struct image *image)
{
	const size_t n = (size_t)o->n_addresses;
	_cleanup_(freep) uint64_t *addresses = calloc(n + 1, sizeof(*addresses));
	struct printing printing = {o, addresses};

	if (!addresses)
		return status_of(-ENOMEM);
	for (size_t i = 0; i < n; i++)
		addresses[i] = address_of(o->addresses[i]);
	return status_of(symbolizer_find_all(s, image, addresses, n, print_symbol, &printing));
}

/* Waits for the debug file of @image, for a bounded time. 0 or -ENOMEM. */
static int fetch(const struct options *o, struct symbolizer *s, struct image *image)
{
	const uint64_t until_ns = nsec_monotonic() + DEBUGSERVERS_WAIT_NS;
	const struct timespec look = {.tv_nsec = DEBUGSERVERS_LOOK_NS};
	int r;

	if (!o->servers.servers || !image->file)
		return 0;
	r = symbolizer_sources(s, image, NULL, NULL);
	while (!r && debuginfod_pending(o->servers.servers) && nsec_monotonic() < until_ns)
		(void)nanosleep(&look, NULL);
	return r;
}

static int inspect_file(const struct options *o, const struct root *proc, struct symbolizer *s)
{
	/* its debug file may be beside it */
	_cleanup_(freep) char *path = realpath(o->file, NULL);
	_cleanup_(close_fdp) int fd = -1;
	struct image *image = NULL;
	int elf = 0, status, r;

	if (cmdline_open_elf("inspect symbols", o->file, &fd))
		return CMD_FAILED;
	r = image_new_file(fd, path ? path : o->file, &image, &elf);
	if (r)
		return status_of(r);
	fd = -1; /* the image's now */
	if (elf) {
		image_unref(image);
		return cmdline_not_elf("inspect symbols", o->file, elf);
	}
	/* its debug file is looked for in our own file system */
	(void)pid_read(proc, getpid(), &image->mapped_by);
	status = status_of(fetch(o, s, image));
	if (status == CMD_DONE && o->sources)
		status = print_sources(o, s, image) ? CMD_FAILED : CMD_DONE;
	if (status == CMD_DONE)
		status = print_in_file(o, s, image);
	image_unref(image);
	return status;
}

struct process {
	struct address_space_cache *cache;
	struct pid_id id;
};

static int resolve(const struct process *p, uint64_t address, struct frame *ret)
{
	if (address < INSPECT_KERNEL_START)
		return address_space_cache_resolve(p->cache, &p->id, address, ret);
	address_space_cache_kernel(p->cache, address, ret);
	return 0;
}

static int print_in_process(const struct options *o, struct symbolizer *s, const struct process *p)
{
	int r = 0;

	for (int i = 0; !r && i < o->n_addresses; i++) {
		const uint64_t address = address_of(o->addresses[i]);
		struct printing printing = {o, &address};
		struct frame frame = {0};

		r = resolve(p, address, &frame);
		if (r >= 0)
			r = fetch(o, s, frame.image);
		if (!r)
			r = symbolizer_find_all(s, frame.image, &frame.vaddr, 1, print_symbol,
						&printing);
		image_unref(frame.image);
	}
	return status_of(r);
}

static int inspect_process(const struct options *o, const struct root *proc, struct symbolizer *s)
{
	struct process p = {0};
	int status, r = pid_read(proc, o->pid, &p.id);

	if (r) {
		cmd_error("inspect symbols: cannot read process %d: %s; %s", (int)o->pid,
			  r < 0		    ? strerror(-r)
			  : r == PID_DENIED ? "denied"
					    : "no such process",
			  r == PID_DENIED ? "run as root" : "check the number");
		return CMD_FAILED;
	}
	if (address_space_cache_new(proc, &p.cache)) {
		cmd_error("inspect symbols: out of memory");
		return CMD_FAILED;
	}
	status = print_in_process(o, s, &p);
	address_space_cache_free(p.cache);
	return status;
}

/* ---------------------------------------------------------------- the command */

/* Exit status; prints errors. */
static int take_operands(const struct cmdline *line, struct options *o)
{
	uint64_t address;
	int n = 0;

	if (!o->by_pid && n < line->n_operands)
		o->file = line->operands[n++];
	if (!o->by_pid && !o->file)
		return cmdline_usage(line, "give FILE and addresses, or --pid PID and addresses");
	o->addresses = line->operands + n;
	o->n_addresses = line->n_operands - n;
	if (o->sources && o->by_pid)
		return cmdline_usage(line, "give FILE with --sources");
	if (!o->sources && !o->n_addresses)
		return cmdline_usage(line, "give addresses in hex");
	for (int i = 0; i < o->n_addresses; i++)
		if (!strview_address(o->addresses[i], &address))
			return cmdline_usage(line, "not a hex address: '%s'", o->addresses[i]);
	return CMD_DONE;
}

/* True to go on; else *@ret_exit is the status to leave with. */
static bool parse_options(int argc, char **argv, struct options *o, int *ret_exit)
{
	const struct cmdline_option options[] = {
		{.name = "json", .given = &o->json},
		{.name = "pid", .pid = &o->pid, .given = &o->by_pid},
		{.name = "proc-root", .string = &o->proc_root},
		{.name = "sources", .given = &o->sources},
		{.name = "debuginfod", .values = &o->debuginfod},
		{.name = "debuginfod-dir", .string = &o->debuginfod_dir},
	};
	struct cmdline line = {
		.command = "inspect symbols",
		.help = help,
		.options = options,
		.n_options = array_size(options),
	};

	if (!cmdline_parse(&line, argc, argv, ret_exit))
		return false;
	*ret_exit = take_operands(&line, o);
	return *ret_exit == CMD_DONE;
}

int inspect_symbols(int argc, char **argv)
{
	struct options o = {.proc_root = "/proc", .servers = DEBUGSERVERS_INIT};
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	const struct dwarfreader_opts dwarf = {0};
	struct symbolizer_opts opts = {
		.proc = &proc,
		.cache_bytes = INSPECT_CACHE_BYTES,
		.dwarf = &dwarf,
	};
	struct symbolizer *s = NULL;
	int status;

	if (!parse_options(argc, argv, &o, &status))
		return status;
	status = cmdline_open_proc("inspect symbols", o.proc_root, &proc);
	if (status != CMD_DONE)
		return status;
	status = debugservers_open("inspect symbols", &o.debuginfod, o.debuginfod_dir, &o.servers);
	if (status != CMD_DONE)
		return status;
	opts.debuginfod = o.servers.servers;
	if (symbolizer_new(&opts, &s)) {
		cmd_error("inspect symbols: out of memory");
		debugservers_deinit(&o.servers);
		return CMD_FAILED;
	}
	status = o.by_pid ? inspect_process(&o, &proc, s) : inspect_file(&o, &proc, s);
	if (symbolizer_reads(s)[SYMBOL_READ_ABANDONED])
		cmd_error("inspect symbols: names are missing: a file takes too much work; its "
			  "other code is shown as FILE+0xADDRESS");
	symbolizer_free(s);
	debugservers_summary(&o.servers);
	debugservers_deinit(&o.servers);
	return cmdline_finish("inspect symbols", status);
}
