// SPDX-License-Identifier: Apache-2.0
/* What is at an address: of a file, or of a process as it runs. */
#include "cmd/inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "procmap/image.h"
#include "procmap/space.h"
#include "symbolize/symbolizer.h"

/* Bytes of symbol tables kept, while the command runs. */
#define INSPECT_CACHE_BYTES  (64u << 20)
/* User programs are below. */
#define INSPECT_KERNEL_START (1ull << 63)

enum { OPTION_JSON = 256, OPTION_PID, OPTION_PROC, OPTION_HELP };

struct options {
	bool json;
	bool by_pid;
	uint64_t pid;
	const char *proc_root;
	const char *file;
	char **addresses;
	int n_addresses;
};

static const char help[] =
	"usage: podprof inspect symbols [--json] FILE VADDR...\n"
	"       podprof inspect symbols [--json] [--proc-root PATH] --pid PID PC...\n\n"
	"The functions at addresses in hex: ELF virtual addresses of a program or library, or\n"
	"run-time addresses of a process (kernel addresses too). Inlined functions come first,\n"
	"each inlined into the next.\n\n"
	"  --json            one JSON array a line for each address, innermost first, of\n"
	"                    {\"function\",\"file\",\"line\",\"inlined\"}; file and line are null\n"
	"                    where they are not known\n"
	"  --pid PID         addresses are of this process\n"
	"  --proc-root PATH  where procfs is mounted (/proc)\n"
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
	_cleanup_(freep) char *text = NULL;
	json_t *lines = json_array();
	int r = 0;

	for (size_t i = 0; !r && i < sym->n_lines; i++)
		r = json_array_append_new(lines, line_as_json(&sym->lines[i]));
	if (!r)
		text = json_dumps(lines, JSON_COMPACT);
	json_decref(lines);
	if (!text)
		return -ENOMEM;
	puts(text);
	return 0;
}

static void print_text(uint64_t address, const struct symbol *sym)
{
	for (size_t i = 0; i < sym->n_lines; i++) {
		const struct symbol_line *line = &sym->lines[i];

		printf("0x%" PRIx64 "  %s", address, line->function);
		if (line->file[0])
			printf("  %s:%" PRIu32, line->file, line->line);
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

		if (!text_address(o->addresses[i], &address))
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
	struct space_cache *cache;
	struct pid_id id;
};

static int resolve_in_process(void *ctx, uint64_t address, struct frame *ret)
{
	struct process *p = ctx;

	if (address < INSPECT_KERNEL_START)
		return space_cache_resolve(p->cache, &p->id, address, ret);
	space_cache_kernel(p->cache, address, ret);
	return 0;
}

static int inspect_process(const struct options *o, const struct root *proc, struct symbolizer *s)
{
	struct process p = {0};
	int status, r = pid_read(proc, (pid_t)o->pid, &p.id);

	if (r) {
		cmd_error("inspect symbols: cannot read process %" PRIu64 ": %s; %s", o->pid,
			  r < 0		    ? strerror(-r)
			  : r == PID_DENIED ? "denied"
					    : "no such process",
			  r == PID_DENIED ? "run as root" : "check the number");
		return CMD_FAILED;
	}
	if (space_cache_new(proc, &p.cache)) {
		cmd_error("inspect symbols: out of memory");
		return CMD_FAILED;
	}
	status = print_all(o, s, resolve_in_process, &p);
	space_cache_free(p.cache);
	return status;
}

/* ---------------------------------------------------------------- the command */

static bool usage_error(const char *what, const char *on)
{
	cmd_error("inspect symbols: %s '%s'; see 'podprof inspect symbols --help'", what, on);
	return false;
}

static bool parse_option(int c, char **argv, struct options *o)
{
	switch (c) {
	case OPTION_JSON:
		o->json = true;
		return true;
	case OPTION_PID:
		o->by_pid = true;
		return (text_only_u64(text_of(optarg), 10, &o->pid) && o->pid <= INT32_MAX) ||
		       usage_error("not a PID:", optarg);
	case OPTION_PROC:
		o->proc_root = optarg;
		return true;
	case ':':
		return usage_error("a value is missing behind", argv[optind - 1]);
	default:
		return usage_error("unknown option", argv[optind - 1]);
	}
}

static bool parse_arguments(int argc, char **argv, struct options *o)
{
	uint64_t address;

	if (!o->by_pid && optind < argc)
		o->file = argv[optind++];
	if (!o->by_pid && !o->file) {
		cmd_error("inspect symbols: of what? give FILE and addresses, or --pid PID and "
			  "addresses");
		return false;
	}
	o->addresses = argv + optind;
	o->n_addresses = argc - optind;
	if (!o->n_addresses) {
		cmd_error("inspect symbols: which addresses? give them in hex");
		return false;
	}
	for (int i = 0; i < o->n_addresses; i++)
		if (!text_address(o->addresses[i], &address))
			return usage_error("not a hex address:", o->addresses[i]);
	return true;
}

/* True to go on; else *@ret_exit is the status to leave with. */
static bool parse_options(int argc, char **argv, struct options *o, int *ret_exit)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, OPTION_JSON},
		{"pid", required_argument, NULL, OPTION_PID},
		{"proc-root", required_argument, NULL, OPTION_PROC},
		{"help", no_argument, NULL, OPTION_HELP},
		{NULL, 0, NULL, 0},
	};
	int c;

	optind = 0; /* from the start, whatever was parsed before */
	opterr = 0;
	*ret_exit = CMD_USAGE;
	while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		if (c == OPTION_HELP) {
			fputs(help, stdout);
			*ret_exit = CMD_DONE;
			return false;
		}
		if (!parse_option(c, argv, o))
			return false;
	}
	return parse_arguments(argc, argv, o);
}

int inspect_symbols(int argc, char **argv)
{
	struct options o = {.proc_root = "/proc"};
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	struct symbolizer_opts opts = {.proc = &proc, .cache_bytes = INSPECT_CACHE_BYTES};
	struct symbolizer *s = NULL;
	int r, status;

	if (!parse_options(argc, argv, &o, &status))
		return status;
	r = o.by_pid ? root_open(o.proc_root, &proc) : 0;
	if (r) {
		cmd_error("inspect symbols: cannot open %s: %s; give the mounted procfs with "
			  "--proc-root",
			  o.proc_root, r < 0 ? strerror(-r) : root_outcome_name(r));
		return CMD_FAILED;
	}
	if (symbolizer_new(&opts, &s)) {
		cmd_error("inspect symbols: out of memory");
		return CMD_FAILED;
	}
	status = o.by_pid ? inspect_process(&o, &proc, s) : inspect_file(&o, s);
	symbolizer_free(s);
	if (fflush(stdout) && status == CMD_DONE) {
		cmd_error("inspect symbols: cannot write: %s", strerror(errno));
		status = CMD_FAILED;
	}
	return status;
}
