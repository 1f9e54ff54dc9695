// SPDX-License-Identifier: Apache-2.0
/*
 * Explains a missing heap profile: the Go version, the location of the profiler's variables, the
 * method of finding them, and, for a process, their values.
 */
#include "cmd/inspect.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "cmd/cmd.h"
#include "cmd/cmdline.h"
#include "cmd/view.h"
#include "elf/elffile.h"
#include "gofile/goversion.h"
#include "goheap/goheap.h"
#include "goheap/goimages.h"
#include "goheap/goruntimes.h"
#include "procmap/memory.h"

struct options {
	bool json;
	const char *proc_root;
	const char *what; /* FILE or PID */
};

/* A runtime. A file has no rate and no run-time address. */
struct finding {
	struct goruntime rt;
	bool live;
	bool has_now;
	struct goruntime_now now;
	enum goruntime_state state;
};

/* The output. Without a runtime the state gives the reason. */
struct findings {
	struct finding items[GORUNTIMES_MAX];
	size_t n;
	enum goruntime_state state;
};

static const char help[] =
	"usage: podprof inspect goruntime [--json] [--proc-root PATH] FILE|PID\n"
	"\n"
	"Shows the Go runtimes of a file or a process. A process has one of its executable and "
	"one\n"
	"of each library written in Go. For each runtime: the Go version, the addresses of the\n"
	"memory profiler's variables and their source, the sampling rate, and whether a heap\n"
	"profile can be read. A name of digits only is a PID; write ./123 for a file.\n"
	"\n"
	"states: ok; no_samples_yet; disabled_by_linker (nothing in the program asks for heap\n"
	"profiles); disabled_by_program (the program has set runtime.MemProfileRate to 0); forced\n"
	"(podprof has turned sampling on after the linker had turned it off); unknown_layout (a "
	"Go\n"
	"program with another layout than Go " GOVERSION_RANGE
	"); no_runtime (not Go); denied; gone;\n"
	"too_large. For a file the state only says whether the variables were found: in the "
	"symbol\n"
	"table, or in the code of a stripped file.\n"
	"certain: the process's memory agrees with the file; --force writes only then.\n"
	"\n"
	"  --json            one JSON object: "
	"{\"state\",\"runtimes\":[{\"name\",\"version\",\"state\",\n"
	"                    "
	"\"rate\",\"cycle\",\"bias\",\"certain\",\"variables\":[{\"name\",\"source\",\n"
	"                    \"section\",\"vaddr\",\"address\"}]}]}; null for unknown values\n"
	"  --proc-root PATH  the host's /proc (/proc)\n"
	"  --help            this text\n";

/* ---------------------------------------------------------------- output */

static json_t *json_of_var(const struct finding *f, enum goruntime_var var)
{
	const struct goruntime_place *place = &f->rt.file.vars[var];
	bool known = place->source != GORUNTIME_FROM_NOWHERE;

	return json_pack("{s:s, s:s?, s:o, s:o, s:o}", "name", goruntime_var_name(var), "source",
			 known ? goruntime_source_name(place->source) : NULL, "section",
			 known ? json_string(place->section) : json_null(), "vaddr",
			 known ? view_hex(place->vaddr) : json_null(), "address",
			 known && f->live ? view_hex(goruntime_addr(&f->rt, var)) : json_null());
}

static json_t *json_of_finding(const struct finding *f)
{
	json_t *vars = json_array();

	for (int i = 0; i < GORUNTIME_VAR_MAX; i++)
		json_array_append_new(vars, json_of_var(f, (enum goruntime_var)i));
	return json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "name", view_text(f->rt.name),
			 "version", view_text(f->rt.file.version), "state",
			 goruntime_state_name(f->state), "rate",
			 f->has_now ? json_integer(f->now.rate) : json_null(), "cycle",
			 f->has_now ? json_integer(f->now.cycle) : json_null(), "bias",
			 f->live ? view_hex(f->rt.bias) : json_null(), "certain",
			 f->live ? json_boolean(f->rt.certain) : json_null(), "variables", vars);
}

static json_t *json_of_all(const struct findings *all)
{
	json_t *runtimes = json_array();

	for (size_t i = 0; i < all->n; i++)
		json_array_append_new(runtimes, json_of_finding(&all->items[i]));
	return json_pack("{s:s, s:o}", "state", goruntime_state_name(all->state), "runtimes",
			 runtimes);
}

static bool has(const json_t *object, const char *key)
{
	return !json_is_null(json_object_get(object, key));
}

static void print_runtime(const json_t *rt)
{
	const json_t *var;
	size_t i;

	if (has(rt, "name"))
		view_print_text(rt, "name     {name}\n");
	view_print_text(rt, "version  {version|not recorded}\nstate    {state}\n");
	if (has(rt, "rate"))
		view_print_text(rt, "rate     {rate}\ncycle    {cycle}\n");
	if (has(rt, "bias"))
		view_print_text(rt, "bias     {bias}\ncertain  {certain}\n");
	printf("\n%-32s %-8s %-12s %-18s %s\n", "variable", "source", "section", "vaddr",
	       has(rt, "bias") ? "address" : "");
	json_array_foreach(json_object_get(rt, "variables"), i, var)
		if (has(var, "source"))
			view_print_text(var, "{name:-32} {source:-8} {section:-12|} {vaddr:-18} "
					     "{address|}\n");
}

static int print(json_t *all, bool json)
{
	const json_t *runtimes = json_object_get(all, "runtimes"), *rt;
	size_t i;

	if (json || !json_array_size(runtimes))
		return view_print(all, json, "state    {state}\n");
	json_array_foreach(runtimes, i, rt) {
		if (i > 0)
			putchar('\n');
		print_runtime(rt);
	}
	json_decref(all);
	return 0;
}

/* ---------------------------------------------------------------- finding */

static int find_in_file(const char *name, struct findings *all)
{
	struct finding *f = &all->items[0];
	_cleanup_(elffile_freep) struct elffile *ef = NULL;
	_cleanup_(close_fdp) int fd = -1;
	int r;

	if (cmdline_open_elf("inspect goruntime", name, &fd))
		return CMD_FAILED;
	r = elffile_open(fd, &ef);
	if (r)
		return cmdline_not_elf("inspect goruntime", name, r);
	fd = -1; /* taken */
	r = goruntime_file_read(ef, &f->rt.file);
	if (r < 0) {
		cmd_error("inspect goruntime: cannot read %s: %s", name, strerror(-r));
		return CMD_FAILED;
	}
	all->state = f->state = (enum goruntime_state)r;
	all->n = r == GORUNTIME_OK || r == GORUNTIME_UNKNOWN_LAYOUT;
	return CMD_DONE;
}

/* Read the current values. Any failure becomes the state. */
static int look(const struct root *proc, const struct pid_id *id, struct finding *f)
{
	_cleanup_(process_memory_deinit) struct process_memory pm = {.fd = -1};
	int r = process_memory_init(&pm, proc, id);

	if (!r)
		r = goruntime_read_now(&f->rt, &pm.memory, &f->now);
	if (!r)
		r = memory_check(&pm.memory);
	if (r < 0)
		return r;
	f->has_now = r == 0;
	if (r == 0)
		f->state = goruntime_state_now(&f->now);
	else
		f->state = r == MEMORY_GONE	? GORUNTIME_GONE
			   : r == MEMORY_DENIED ? GORUNTIME_DENIED
						: GORUNTIME_UNKNOWN_LAYOUT;
	return 0;
}

/* All runtimes. A process that executes another program meanwhile shows as "gone" or odd; the user
 * can repeat the command. */
static int find_runtimes(const struct root *proc, const struct pid_id *id, struct findings *all)
{
	_cleanup_(process_memory_deinit) struct process_memory pm = {.fd = -1};
	_cleanup_(goimages_freep) struct goimages *images = NULL;
	struct goruntimes found = {0};
	int denied = process_memory_init(&pm, proc, id), r = denied;

	if (r >= 0)
		r = goimages_new(&images);
	if (!r)
		r = goruntimes_find(images, proc, id, denied ? NULL : &pm.memory, 0, &found);
	if (r < 0)
		return r;
	all->state = (enum goruntime_state)r;
	if (r != GORUNTIME_OK && r != GORUNTIME_UNKNOWN_LAYOUT)
		return 0;
	for (all->n = 0; r >= 0 && all->n < found.n; all->n++) {
		struct finding *f = &all->items[all->n];

		*f = (struct finding){.rt = found.items[all->n], .live = true};
		f->state = f->rt.state;
		r = f->state == GORUNTIME_OK ? look(proc, id, f) : 0;
	}
	if (r >= 0)
		all->state = all->items[0].state;
	return r;
}

static int find_in_process(const char *proc_root, pid_t pid, struct findings *all)
{
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	struct pid_id id;
	int r;

	if (cmdline_open_proc("inspect goruntime", proc_root, &proc) != CMD_DONE)
		return CMD_FAILED;
	r = pid_read(&proc, pid, &id);
	if (r > 0) {
		cmd_error("inspect goruntime: no process %d in %s; 'ps' lists the processes",
			  (int)pid, proc_root);
		return CMD_FAILED;
	}
	if (!r)
		r = find_runtimes(&proc, &id, all);
	if (r < 0) {
		cmd_error("inspect goruntime: cannot read process %d: %s", (int)pid, strerror(-r));
		return CMD_FAILED;
	}
	return CMD_DONE;
}

/* ---------------------------------------------------------------- command */

/* True to go on; else *@ret_exit is the status to leave with. */
static bool parse_options(int argc, char **argv, struct options *o, int *ret_exit)
{
	const struct cmdline_option options[] = {
		{.name = "json", .given = &o->json},
		{.name = "proc-root", .string = &o->proc_root},
	};
	struct cmdline line = {
		.command = "inspect goruntime",
		.help = help,
		.options = options,
		.n_options = array_size(options),
	};

	if (!cmdline_parse(&line, argc, argv, ret_exit))
		return false;
	if (line.n_operands != 1) {
		*ret_exit = cmdline_usage(&line, "give one FILE or PID");
		return false;
	}
	o->what = line.operands[0];
	return true;
}

int inspect_goruntime(int argc, char **argv)
{
	struct options options = {.proc_root = "/proc"};
	struct findings found = {0};
	pid_t pid;
	int status;

	if (!parse_options(argc, argv, &options, &status))
		return status;
	if (cmdline_pid(options.what, &pid))
		status = find_in_process(options.proc_root, pid, &found);
	else
		status = find_in_file(options.what, &found);
	if (status == CMD_DONE && print(json_of_all(&found), options.json)) {
		cmd_error("inspect goruntime: out of memory");
		status = CMD_FAILED;
	}
	return cmdline_finish("inspect goruntime", status);
}
