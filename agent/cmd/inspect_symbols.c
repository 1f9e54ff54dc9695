// SPDX-License-Identifier: Apache-2.0
/* The function at an address: of a file, or of a running process. */
#include "cmd/inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "base/strview.h"
#include "cmd/cmd.h"
#include "cmd/cmdline.h"
#include "procmap/address_space.h"
#include "procmap/image.h"
#include "symbolize/symbolizer.h"

/* Bytes of symbol tables kept, while the command runs. */
#define INSPECT_CACHE_BYTES  (64u << 20)
/* Addresses of user programs are below. */
#define INSPECT_KERNEL_START (1ull << 63)

struct options {
	bool json;
	bool by_pid;
	pid_t pid;
	const char *proc_root;
	const char *file;
	char **addresses;
	int n_addresses;
};

static const char help[] =
	"usage: podprof inspect symbols [--json] FILE VADDR...\n"
	"       podprof inspect symbols [--json] [--proc-root PATH] --pid PID PC...\n"
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

static int print_json(const struct symbol *sym)
{
	json_t *lines = json_array();
	int r = 0;

	for (size_t i = 0; !r && i < sym->n_lines; i++)
		r = json_array_append_new(lines, line_as_json(&sym->lines[i]));
	if (!r)
		return cmd_print_json(lines);
	json_decref(lines);
	return -ENOMEM;
}

static void print_text(uint64_t address, const struct symbol *sym)
{
	for (size_t i = 0; i < sym->n_lines; i++) {
		const struct symbol_line *line = &sym->lines[i];

		printf("0x%" PRIx64 "  ", address);
		cmd_print(line->function);
		if (line->file[0]) {
			fputs("  ", stdout);
			cmd_print(line->file);
			printf(":%" PRIu32, line->line);
		}
		puts(line->inlined ? "  (inlined)" : "");
	}
}

static int print_symbol(const struct options *o, struct symbolizer *s, uint64_t address,
			const struct frame *frame)
{
	struct symbol sym;
	int r = symbolizer_find(s, frame, &sym);

	if (!r && o->json)
		r = print_json(&sym);
	else if (!r)
		print_text(address, &sym);
	if (r)
		cmd_error("inspect symbols: %s", strerror(-r));
	return r ? CMD_FAILED : CMD_DONE;
}

/* ---------------------------------------------------------------- addresses */

typedef int (*resolve_fn)(void *ctx, uint64_t address, struct frame *ret);

/* @resolve gives each frame a reference of its own. */
static int print_all(const struct options *o, struct symbolizer *s, resolve_fn resolve, void *ctx)
{
	int status = CMD_DONE;

	for (int i = 0; status == CMD_DONE && i < o->n_addresses; i++) {
		struct frame frame = {0};
		uint64_t address;

		if (!strview_address(o->addresses[i], &address))
			continue; /* all were checked before */
		if (resolve(ctx, address, &frame) < 0) {
			cmd_error("inspect symbols: out of memory");
			return CMD_FAILED;
		}
		status = print_symbol(o, s, address, &frame);
		image_unref(frame.image);
	}
	return status;
}

static int resolve_in_file(void *image, uint64_t address, struct frame *ret)
{
	*ret = (struct frame){.image = image_ref(image), .vaddr = address};
	return 0;
}

static int inspect_file(const struct options *o, struct symbolizer *s)
{
	_cleanup_(close_fdp) int fd = -1;
	struct root here = {.fd = AT_FDCWD};
	struct image *image = NULL;
	int elf = 0, status, r = root_open_file(&here, o->file, &fd);

	if (!r)
		r = image_new_file(fd, o->file, &image, &elf);
	if (r) {
		cmd_error("inspect symbols: cannot read %s: %s; give a program or library", o->file,
			  r < 0		   ? strerror(-r)
			  : r == ROOT_GONE ? "no such file"
					   : root_outcome_name(r));
		return CMD_FAILED;
	}
	fd = -1; /* the image's now */
	if (elf) {
		cmd_error("inspect symbols: %s has no symbols: %s; give a 64-bit ELF file", o->file,
			  elf < 0 ? strerror(-elf) : elffile_outcome_name(elf));
		image_unref(image);
		return CMD_FAILED;
	}
	status = print_all(o, s, resolve_in_file, image);
	image_unref(image);
	return status;
}

struct process {
	struct address_space_cache *cache;
	struct pid_id id;
};

static int resolve_in_process(void *ctx, uint64_t address, struct frame *ret)
{
	struct process *p = ctx;

	if (address < INSPECT_KERNEL_START)
		return address_space_cache_resolve(p->cache, &p->id, address, ret);
	address_space_cache_kernel(p->cache, address, ret);
	return 0;
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
	status = print_all(o, s, resolve_in_process, &p);
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
	if (!o->n_addresses)
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
	struct options o = {.proc_root = "/proc"};
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	struct symbolizer_opts opts = {.proc = &proc, .cache_bytes = INSPECT_CACHE_BYTES};
	struct symbolizer *s = NULL;
	int status;

	if (!parse_options(argc, argv, &o, &status))
		return status;
	if (o.by_pid)
		status = cmdline_open_proc("inspect symbols", o.proc_root, &proc);
	if (status != CMD_DONE)
		return status;
	if (symbolizer_new(&opts, &s)) {
		cmd_error("inspect symbols: out of memory");
		return CMD_FAILED;
	}
	status = o.by_pid ? inspect_process(&o, &proc, s) : inspect_file(&o, s);
	symbolizer_free(s);
	return cmdline_finish("inspect symbols", status);
}
