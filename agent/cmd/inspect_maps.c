// SPDX-License-Identifier: Apache-2.0
/*
 * The mappings of a process in podprof's view, with the build id of each mapped program or
 * library; or the meaning of an address.
 */
#include "cmd/inspect.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "cmd/cmd.h"
#include "cmd/cmdline.h"
#include "cmd/view.h"
#include "procmap/address_space.h"
#include "procmap/image.h"
#include "procmap/mapped.h"
#include "procmap/maps.h"

struct options {
	bool json;
	bool by_address;
	uint64_t address;
	pid_t pid;
	const char *proc_root;
};

/* The file behind the last printed mapping: the next mapping mostly has the same file. */
struct last_file {
	uint64_t device;
	uint64_t inode;
	char build_id[2 * ELFFILE_BUILD_ID_MAX + 1];
};

static const char help[] =
	"usage: podprof inspect maps PID [--json] [--address HEX] [--proc-root PATH]\n"
	"\n"
	"Shows the mappings of a process and the build ids of the mapped files; with --address, "
	"the\n"
	"meaning of one address.\n"
	"\n"
	"  --json            one JSON object a line instead of a table:\n"
	"                    "
	"{\"start\",\"limit\",\"offset\",\"path\",\"build_id\",\"device\",\"inode\",\n"
	"                    \"executable\"}; start and limit are strings in hex\n"
	"  --address HEX     resolve this address to the image, the ELF virtual address and the\n"
	"                    file offset; with --json "
	"{\"address\",\"kind\",\"path\",\"build_id\",\"vaddr\",\n"
	"                    \"offset\"}\n"
	"  --proc-root PATH  mount point of procfs (/proc)\n"
	"  --help            this text\n";

static void failed(const struct options *o, const char *outcome)
{
	const char *todo = "check the number";

	if (strcmp(outcome, "denied") == 0)
		todo = "run as root, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH";
	cmd_error("inspect maps: cannot read process %d: %s; %s", (int)o->pid, outcome, todo);
}

/* The build id goes to @last; "" if there is none or the file is not to be had. */
static void find_build_id(const struct root *proc, uint64_t pid, const struct maps_entry *e,
			  struct last_file *last)
{
	_cleanup_(close_fdp) int path_fd = -1;
	struct image *image = NULL;
	int fd = -1, elf;

	if (last->inode == e->inode && last->device == e->device)
		return;
	*last = (struct last_file){.device = e->device, .inode = e->inode};
	if (e->kind != MAPS_FILE || mapped_find(proc, pid, e, &path_fd) ||
	    mapped_open(path_fd, &fd))
		return;
	if (image_new_file(fd, e->path, &image, &elf)) {
		close(fd);
		return;
	}
	memcpy(last->build_id, image->build_id, sizeof(last->build_id));
	image_unref(image);
}

static int print_row(const struct maps_entry *e, const struct last_file *file, bool json)
{
	char device[32];

	snprintf(device, sizeof(device), "%x:%x", major(e->device), minor(e->device));
	return view_print(
		json_pack("{s:o, s:o, s:I, s:o, s:o, s:s, s:I, s:b}", "start", view_hex(e->start),
			  "limit", view_hex(e->limit), "offset", (json_int_t)e->offset, "path",
			  view_text(e->path), "build_id", view_text(file->build_id), "device",
			  device, "inode", (json_int_t)e->inode, "executable",
			  (e->prot & MAPS_X) != 0),
		json,
		"{start:16x} {limit:16x} {executable:m} {offset:10x} {build_id:-40} {path}\n");
}

static int print_maps(const struct options *o, const struct root *proc, const struct pid_id *id)
{
	_cleanup_(maps_deinit) struct maps maps = {0};
	struct last_file file = {0};
	int r = maps_read(proc, id, &maps);

	if (r) {
		failed(o, r < 0 ? strerror(-r) : maps_outcome_name(r));
		return CMD_FAILED;
	}
	if (!o->json)
		printf("%16s %16s x %10s %-40s %s\n", "START", "LIMIT", "OFFSET", "BUILD ID",
		       "PATH");
	for (size_t i = 0; !r && i < maps.n; i++) {
		find_build_id(proc, maps.via_pid, &maps.items[i], &file);
		r = print_row(&maps.items[i], &file, o->json);
	}
	if (r)
		cmd_error("inspect maps: out of memory");
	return r ? CMD_FAILED : CMD_DONE;
}

/* ---- an address */

/* Find the address's position in its file; false for an address outside of all files. */
static bool find_offset(const struct options *o, const struct root *proc, const struct pid_id *id,
			uint64_t *ret)
{
	_cleanup_(maps_deinit) struct maps maps = {.only_prot = MAPS_X};
	const struct maps_entry *e;

	if (maps_read(proc, id, &maps))
		return false;
	e = maps_find(&maps, o->address);
	return e && e->kind == MAPS_FILE &&
	       !__builtin_add_overflow(o->address - e->start, e->offset, ret);
}

static int print_frame(const struct options *o, const struct frame *frame, const uint64_t *off)
{
	const struct image *image = frame->image;

	return view_print(json_pack("{s:o, s:s, s:o, s:o, s:o, s:o}", "address",
				    view_hex(o->address), "kind", image_kind_name(image->kind),
				    "path", view_text(image->path), "build_id",
				    view_text(image->build_id), "vaddr", view_hex(frame->vaddr),
				    "offset", off ? json_integer((json_int_t)*off) : json_null()),
			  o->json,
			  "address   {address}\nkind      {kind}\npath      {path}\n"
			  "build id  {build_id}\nvaddr     {vaddr}\noffset    {offset:X}\n");
}

static int print_address(const struct options *o, const struct root *proc, const struct pid_id *id)
{
	struct address_space_cache *cache = NULL;
	struct frame frame = {0};
	uint64_t off;
	bool known;
	int r = address_space_cache_new(proc, &cache);

	if (!r)
		r = address_space_cache_resolve(cache, id, o->address, &frame);
	known = !r && frame.image->kind != IMAGE_UNKNOWN;
	if (known)
		r = print_frame(o, &frame, find_offset(o, proc, id, &off) ? &off : NULL);
	if (r)
		cmd_error("inspect maps: %s", strerror(-r));
	else if (!known)
		cmd_error("inspect maps: process %d has no code at 0x%" PRIx64
			  "; 'podprof inspect maps %d' lists its mappings",
			  (int)o->pid, o->address, (int)o->pid);
	image_unref(frame.image);
	address_space_cache_free(cache);
	return known && !r ? CMD_DONE : CMD_FAILED;
}

/* ---------------------------------------------------------------- the command */

/* True to go on; else *@ret_exit is the status to leave with. */
static bool parse_options(int argc, char **argv, struct options *o, int *ret_exit)
{
	const struct cmdline_option options[] = {
		{.name = "json", .given = &o->json},
		{.name = "address", .address = &o->address, .given = &o->by_address},
		{.name = "proc-root", .string = &o->proc_root},
	};
	struct cmdline line = {
		.command = "inspect maps",
		.help = help,
		.options = options,
		.n_options = array_size(options),
	};

	if (!cmdline_parse(&line, argc, argv, ret_exit))
		return false;
	if (line.n_operands == 0)
		*ret_exit = cmdline_usage(&line, "give the PID of a process");
	else if (line.n_operands > 1)
		*ret_exit = cmdline_usage(&line, "give one PID; unexpected '%s'", line.operands[1]);
	else if (!cmdline_pid(line.operands[0], &o->pid))
		*ret_exit = cmdline_usage(&line, "not a PID: '%s'", line.operands[0]);
	else
		return true;
	return false;
}

int inspect_maps(int argc, char **argv)
{
	struct options o = {.proc_root = "/proc"};
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	struct pid_id id;
	int r, status;

	if (!parse_options(argc, argv, &o, &status))
		return status;
	status = cmdline_open_proc("inspect maps", o.proc_root, &proc);
	if (status != CMD_DONE)
		return status;
	r = pid_read(&proc, o.pid, &id);
	if (r) {
		failed(&o, r < 0 ? strerror(-r) : r == PID_DENIED ? "denied" : "no such process");
		return CMD_FAILED;
	}
	status = o.by_address ? print_address(&o, &proc, &id) : print_maps(&o, &proc, &id);
	return cmdline_finish("inspect maps", status);
}
