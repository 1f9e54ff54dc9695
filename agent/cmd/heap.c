// SPDX-License-Identifier: Apache-2.0
/*
 * The current state of a profile of Go's runtime, as the program's /debug/pprof would show; of a
 * process, or of all processes of a container.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/root.h"
#include "cmd/cmdline.h"
#include "cmd/heap_explain.h"
#include "cmd/output.h"
#include "discovery/discovery.h"
#include "discovery/pid.h"
#include "gofile/goversion.h"
#include "goheap/gocore.h"
#include "goprofile/heap.h"
#include "goprofile/oneshot.h"
#include "pprof/pprof.h"

#define HEAP_OUTPUT_BYTES  PPROF_BYTES_MAX
/* Memory of a reading, made on a user's request. */
#define HEAP_RECORDS_BYTES (512u << 20)
#define HEAP_SYMBOLS_BYTES (64u << 20)
/* "container " and an id. */
#define HEAP_WHO_BYTES	   (16 + CGROUP_ID_MAX)

struct options {
	pid_t pid;
	const char *container;
	const char *output;
	const char *proc_root;
	const char *cgroupfs_root;
	const char *core;
	const char *executable;
	const char *sysroot;
	const char *kind_name;
	enum go_profile_kind kind;
	bool force;
};

static const char help[] =
	"usage: podprof heap PID --output FILE|- [OPTIONS]\n"
	"       podprof heap --container ID --output FILE|- [OPTIONS]\n"
	"       podprof heap --core FILE --output FILE|- [OPTIONS]\n"
	"\n"
	"Reads a profile that a running Go program keeps of itself, from outside, and writes it "
	"as\n"
	"pprof, like the program's own runtime/pprof: 'go tool pprof FILE' shows allocations and\n"
	"memory in use. podprof does not stop the process and, without --force, does not change "
	"it.\n"
	"Go " GOVERSION_RANGE ", stripped or not. All Go processes of a container go into one\n"
	"profile. A core of a Go program, written by the kernel or gcore, is read like the "
	"program.\n"
	"\n"
	"  -o, --output FILE|-   output file; '-' is standard output\n"
	"      --kind KIND       heap (default);\n"
	"                        mutex: holders of mutexes that others waited for;\n"
	"                        block: waits and their places. The program itself must have "
	"turned\n"
	"                        mutex and block on; podprof never does;\n"
	"                        goroutine: the stack of each goroutine and the reason of its "
	"wait\n"
	"      --container ID    all processes of a container; the beginning of the id is enough\n"
	"      --core FILE       an ELF core; podprof opens the mapped files by their paths\n"
	"      --executable FILE the program of the core, if it is not at its path\n"
	"      --sysroot PATH    root of the paths in a core (/)\n"
	"      --force           if the program's memory profiler is off, turn it on by setting\n"
	"                        runtime.MemProfileRate to its default, 524288. Earlier\n"
	"                        allocations stay unknown. Run the command again later.\n"
	"      --proc-root PATH  the host's /proc (/proc)\n"
	"      --cgroupfs-root PATH  the host's cgroup file system (/sys/fs/cgroup)\n"
	"      --help            this text\n"
	"\n"
	"Exit status: 0 written; 1 failed; 2 wrong usage; 3 no profile to read (not a Go program,\n"
	"profiler off, or no records yet)\n";

static int failed(const char *who, int r)
{
	cmd_error("heap: cannot read %s: %s", who, strerror(-r));
	return CMD_FAILED;
}

/* ---- targets */

/* Exit status; prints errors. */
static int read_process(struct go_profile_oneshot *s, pid_t pid, const char *who)
{
	struct pid_id id;
	int r = pid_read(s->proc, pid, &id);

	if (r > 0) {
		cmd_error("heap: no %s; 'ps' lists the processes", who);
		return CMD_FAILED;
	}
	if (!r)
		r = go_profile_oneshot_process(s, &id);
	return r ? failed(who, r) : CMD_DONE;
}

/* The processes of a container, read when the list is complete. */
struct members {
	char container[CGROUP_ID_MAX];
	struct pid_id ids[GO_PROFILE_ONESHOT_PROCESSES_MAX];
	size_t n;
	size_t n_left_out;
};

static int on_process(void *ctx, const struct pid_id *pid, struct entity *entity)
{
	struct members *members = ctx;

	if (!discovery_in_container(entity, members->container))
		return 0;
	if (members->n == array_size(members->ids))
		members->n_left_out++;
	else
		members->ids[members->n++] = *pid;
	return 0;
}

/* Exit status; prints errors. */
static int find_members(struct go_profile_oneshot *s, const struct options *o, struct members *ret)
{
	const struct discovery_opts opts = {
		.proc = s->proc,
		.cgroupfs_root = o->cgroupfs_root,
		.node_name = "",
	};
	struct discovery *d;
	enum discovery_find found;
	int r = discovery_new(&opts, &d);

	if (r) {
		cmd_error(
			"heap: cannot find containers without a cgroup file system; give a PID, or "
			"set --cgroupfs-root");
		return CMD_FAILED;
	}
	found = discovery_find_container(d, o->container, ret->container);
	if (found == DISCOVERY_FOUND)
		r = discovery_for_each_process(d, on_process, ret);
	discovery_free(d);
	if (found == DISCOVERY_NO_SUCH) {
		cmd_error("heap: no container %s here; 'podprof inspect cgroup' lists the "
			  "containers",
			  o->container);
		return CMD_NOTHING;
	}
	if (found == DISCOVERY_AMBIGUOUS) {
		cmd_error("heap: the ids of several containers begin with %s; give a longer part",
			  o->container);
		return CMD_USAGE;
	}
	return r ? failed("the container's processes", r) : CMD_DONE;
}

static int read_container(struct go_profile_oneshot *s, const struct options *o, const char *who)
{
	_cleanup_(freep) struct members *members = calloc(1, sizeof(*members));
	int status, r = 0;

	if (!members)
		return failed(who, -ENOMEM);
	status = find_members(s, o, members);
	if (status != CMD_DONE)
		return status;
	for (size_t i = 0; !r && i < members->n; i++)
		r = go_profile_oneshot_process(s, &members->ids[i]);
	if (r)
		return failed(who, r);
	if (members->n_left_out)
		cmd_error("heap: left out %zu more processes of %s", members->n_left_out, who);
	return CMD_DONE;
}

/* ---------------------------------------------------------------- output */

static int write_output(const char *name, const struct buf *profile)
{
	_cleanup_(output_deinit) struct output file = OUTPUT_INIT;
	int status = output_open("heap", name, &file);

	return status == CMD_DONE ? output_write("heap", &file, profile->data, profile->len)
				  : status;
}

static void print_summary(const struct go_profile_oneshot *s, const char *output)
{
	printf("%s: %s, ", output, s->version[0] ? s->version : "Go of an unknown version");
	if (s->n_snaps > 1)
		printf("%zu processes, ", s->n_snaps);
	if (s->kind == GO_PROFILE_GOROUTINE)
		printf("%zu goroutines, %" PRIu64 " more changed during the read", s->n_records,
		       s->n_changed);
	else if (s->kind == GO_PROFILE_HEAP)
		printf("%zu records, %" PRId64 " bytes allocated, %" PRId64 " bytes in use",
		       s->n_records, s->totals.alloc.bytes, s->totals.inuse.bytes);
	else
		printf("%zu records, %" PRId64 " contentions, %.3f s of delay", s->n_records,
		       s->contentions, (double)s->delay_ns / 1e9);
	printf("; 'go tool pprof %s' shows the profile\n", output);
}

static int report(struct go_profile_oneshot *s, const struct options *options, const char *who)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(HEAP_OUTPUT_BYTES);
	const struct go_profile_report_opts opts = {
		.time_ns = nsec_wall(),
		.max_samples = PPROF_SAMPLES_MAX,
		.max_bytes = PPROF_BYTES_MAX,
	};
	uint64_t n_left_out = 0;
	int status, r;

	if (!s->n_snaps)
		return heap_explain(s, who);
	r = go_profile_oneshot_encode(s, &opts, &out, &n_left_out);
	if (r) {
		cmd_error("heap: cannot make a profile of %s: %s", who,
			  r < 0 ? strerror(-r) : "too large");
		return CMD_FAILED;
	}
	status = write_output(options->output, &out);
	if (status != CMD_DONE)
		return status;
	if (n_left_out)
		cmd_error("heap: %" PRIu64 " of %zu records did not fit into the profile",
			  n_left_out, s->n_records);
	if (s->n_more)
		cmd_error("heap: left out %" PRIu64 " more goroutines", s->n_more);
	if (strcmp(options->output, "-") != 0)
		print_summary(s, options->output);
	return CMD_DONE;
}

/* ---------------------------------------------------------------- a core */

/* Exit status. */
static int explain_core(const char *path, int r)
{
	switch (r) {
	case COREFILE_NOT_CORE:
		cmd_error("heap: %s is not a core; gcore writes a core of a running process", path);
		break;
	case COREFILE_UNSUPPORTED:
		cmd_error("heap: %s is a core of another architecture, or has no list of mapped "
			  "files",
			  path);
		break;
	case COREFILE_TRUNCATED:
		cmd_error("heap: %s is truncated: memory listed in its headers is missing; perhaps "
			  "a disk was full, or 'ulimit -c' too low",
			  path);
		break;
	default:
		cmd_error("heap: cannot read %s: %s", path,
			  r < 0 ? strerror(-r) : corefile_outcome_name(r));
	}
	return CMD_FAILED;
}

/* Reports mapped files that are missing or different here. If no runtime was found, the first such
 * file may be the program, and the result is CMD_FAILED. */
static int check_files(const struct go_profile_oneshot *s, const struct gocore *core)
{
	enum gocore_file_state state;
	const char *path;

	for (size_t i = 0; (path = gocore_file(core, i, &state)); i++) {
		if (state == GOCORE_FILE_OK)
			continue;
		cmd_error("heap: the mapped file %s is %s here; set --executable or --sysroot%s",
			  path, state == GOCORE_FILE_OTHER ? "another file" : "missing",
			  s->n_snaps ? "; its functions have no names" : "");
		if (!s->n_snaps)
			return CMD_FAILED;
	}
	return CMD_DONE;
}

static int read_core(struct go_profile_oneshot *s, const struct options *o, const char *who)
{
	_cleanup_(root_deinit) struct root sysroot = ROOT_INIT;
	_cleanup_(close_fdp) int fd = open(o->core, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct gocore_opts opts = {
		.fd = fd,
		.sysroot = &sysroot,
		.executable = o->executable,
	};
	struct gocore *core;
	int status, r;

	if (fd < 0)
		return explain_core(o->core, -errno);
	if (root_open(o->sysroot ? o->sysroot : "/", &sysroot)) {
		cmd_error("heap: no such directory: %s", o->sysroot ? o->sysroot : "/");
		return CMD_FAILED;
	}
	r = gocore_open(&opts, &core);
	if (r)
		return explain_core(o->core, r);
	r = go_profile_oneshot_core(s, core);
	status = r ? failed(who, r) : check_files(s, core);
	if (status == CMD_DONE)
		status = report(s, o, who);
	gocore_free(core);
	return status;
}

/* ---------------------------------------------------------------- command */

/* Exit status; prints errors. */
static int take_operands(const struct cmdline *line, struct options *o)
{
	if (!!o->container + !!o->core + !!line->n_operands > 1)
		return cmdline_usage(line, "give only one of PID, --container and --core");
	if (o->container && !*o->container)
		return cmdline_usage(line, "--container takes an id");
	if (!o->container && !o->core &&
	    (line->n_operands != 1 || !cmdline_pid(line->operands[0], &o->pid)))
		return cmdline_usage(line, "give one PID (a number), --container ID or --core "
					   "FILE");
	if (o->core && o->force)
		return cmdline_usage(line, "--force needs a running process, not a core");
	if (!o->core && (o->executable || o->sysroot))
		return cmdline_usage(line, "--executable and --sysroot need --core");
	o->kind = go_profile_kind_parse(o->kind_name);
	if (o->kind == GO_PROFILE_KIND_MAX)
		return cmdline_usage(line, "--kind takes heap, mutex, block or goroutine");
	if (o->force && o->kind != GO_PROFILE_HEAP)
		return cmdline_usage(line, "--force turns on heap profiles only, no other kind");
	if (!o->output)
		return cmdline_usage(line, "give --output FILE or --output -");
	if (strcmp(o->output, "-") == 0 && isatty(STDOUT_FILENO))
		return cmdline_usage(line, "a profile is binary, not for a terminal; redirect "
					   "standard output or give --output FILE");
	return CMD_DONE;
}

/* True to go on; else *@ret_exit is the status to leave with. */
static bool parse_options(int argc, char **argv, struct options *o, int *ret_exit)
{
	const struct cmdline_option options[] = {
		{.name = "output", .letter = 'o', .string = &o->output},
		{.name = "kind", .string = &o->kind_name},
		{.name = "container", .string = &o->container},
		{.name = "core", .string = &o->core},
		{.name = "executable", .string = &o->executable},
		{.name = "sysroot", .string = &o->sysroot},
		{.name = "force", .given = &o->force},
		{.name = "proc-root", .string = &o->proc_root},
		{.name = "cgroupfs-root", .string = &o->cgroupfs_root},
	};
	struct cmdline line = {
		.command = "heap",
		.help = help,
		.options = options,
		.n_options = array_size(options),
	};

	if (!cmdline_parse(&line, argc, argv, ret_exit))
		return false;
	*ret_exit = take_operands(&line, o);
	return *ret_exit == CMD_DONE;
}

static int read_profile(struct go_profile_oneshot *s, const struct options *o, struct root *proc)
{
	char who[HEAP_WHO_BYTES];
	int status, r;

	if (o->container)
		snprintf(who, sizeof(who), "container %s", o->container);
	else if (o->core)
		snprintf(who, sizeof(who), "the core");
	else
		snprintf(who, sizeof(who), "process %d", (int)o->pid);
	if (cmdline_open_proc("heap", o->proc_root, proc) != CMD_DONE)
		return CMD_FAILED;
	s->proc = proc;
	s->kind = o->kind;
	s->force = o->force;
	r = go_profile_oneshot_init(s);
	if (r)
		return failed(who, r);
	if (o->core)
		return read_core(s, o, who);
	status = o->container ? read_container(s, o, who) : read_process(s, o->pid, who);
	return status == CMD_DONE ? report(s, o, who) : status;
}

static int run(void *ctx)
{
	const struct options *options = ctx;
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	_cleanup_(go_profile_oneshot_deinit) struct go_profile_oneshot session = {
		.max_bytes = HEAP_RECORDS_BYTES,
		.symbol_bytes = HEAP_SYMBOLS_BYTES,
	};

	return cmdline_finish("heap", read_profile(&session, options, &proc));
}

int cmd_heap(int argc, char **argv)
{
	struct options options = {.proc_root = "/proc", .kind_name = "heap"};
	int status;

	if (!parse_options(argc, argv, &options, &status))
		return status;
	return cmd_run_apart("heap", run, &options, CMD_INTERRUPTED_NS);
}
