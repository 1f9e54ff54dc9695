// SPDX-License-Identifier: Apache-2.0
/*
 * One Go process's heap profile, now, as its own /debug/pprof/heap would give it.
 */
#include "cmd/cmd.h"

#include <errno.h>
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
#include "cmd/output.h"
#include "goheap/goheap.h"
#include "pprof/pprof.h"
#include "procmap/space.h"
#include "report/heap.h"
#include "report/heapsnap.h"
#include "symbolize/symbolizer.h"

/* Memory that one reading may take. It is one process, read on somebody's demand. */
#define HEAP_RECORDS_BYTES (512u << 20)
#define HEAP_SYMBOLS_BYTES (64u << 20)
#define HEAP_OUTPUT_BYTES  PPROF_BYTES_MAX

struct options {
	pid_t pid;
	const char *output;
	const char *proc_root;
	bool force;
};

/* All that is needed to name a process's addresses. */
struct session {
	struct root proc;
	struct pid_id id;
	struct goheap *heap;
	struct space_cache *space;
	struct symbolizer *symbolizer;
};

static const char help[] =
	"usage: podprof heap PID --output FILE|- [--force] [--proc-root PATH]\n\n"
	"Reads the heap profile of a running Go process from outside and writes it as pprof:\n"
	"the same as the process's own runtime/pprof would write, so 'go tool pprof FILE' shows\n"
	"who allocated what and who holds what. The process is not stopped and, without --force,\n"
	"not changed. Go 1.16 to 1.27, not stripped.\n\n"
	"  -o, --output FILE|-   where to write; '-' is standard output\n"
	"      --force           if the program's memory profiler is off, turn it on, once, by\n"
	"                        setting runtime.MemProfileRate to its default, 524288. What was\n"
	"                        allocated before stays unknown. Run the command again later.\n"
	"      --proc-root PATH  where the host's /proc is (/proc)\n"
	"      --help            this text\n\n"
	"Exit status: 0 written; 1 failed; 2 wrong usage; 3 there is no profile to read (not a Go\n"
	"program, stripped, profiler off, or nothing sampled yet).\n";

/* ---------------------------------------------------------------- session */

static void session_deinit(struct session *s)
{
	goheap_free(s->heap);
	symbolizer_free(s->symbolizer);
	space_cache_free(s->space);
	root_deinit(&s->proc);
}

/* Exit status; says what is wrong. */
static int session_init(struct session *s, const struct options *options)
{
	struct goheap_opts heap = {.proc = &s->proc, .max_bytes = HEAP_RECORDS_BYTES};
	const struct symbolizer_opts symbols = {
		.proc = &s->proc,
		.cache_bytes = HEAP_SYMBOLS_BYTES,
	};
	int r;

	if (cmdline_open_proc("heap", options->proc_root, &s->proc) != CMD_DONE)
		return CMD_FAILED;
	r = pid_read(&s->proc, options->pid, &s->id);
	if (r > 0) {
		cmd_error("heap: no process %d in %s; see 'ps'", (int)options->pid,
			  options->proc_root);
		return CMD_FAILED;
	}
	heap.id = s->id;
	heap.force = options->force;
	if (!r)
		r = space_cache_new(&s->proc, &s->space);
	if (!r)
		r = symbolizer_new(&symbols, &s->symbolizer);
	if (!r)
		r = goheap_new(&heap, &s->heap);
	if (r < 0) {
		cmd_error("heap: cannot read process %d: %s", (int)options->pid, strerror(-r));
		return CMD_FAILED;
	}
	return CMD_DONE;
}

static const char *version_of(const struct session *s)
{
	const struct goruntime *rt = goheap_runtime(s->heap);

	return rt && rt->file.version[0] ? rt->file.version : "of an unknown version";
}

/* Why there is nothing to write, and what to do about it. Exit status. */
static int explain(const struct session *s, enum goruntime_state state)
{
	int pid = (int)s->id.pid;

	switch (state) {
	case GORUNTIME_NO_RUNTIME:
		cmd_error("heap: process %d is not a Go program; only Go keeps a heap profile "
			  "that can be read",
			  pid);
		return CMD_NOTHING;
	case GORUNTIME_DISABLED_BY_LINKER:
		cmd_error("heap: process %d (Go %s) has its memory profiler off, since nothing in "
			  "it asks for heap profiles; import net/http/pprof, or turn it on with "
			  "--force",
			  pid, version_of(s));
		return CMD_NOTHING;
	case GORUNTIME_DISABLED_BY_PROGRAM:
		cmd_error("heap: process %d (Go %s) has set runtime.MemProfileRate to 0; turn "
			  "sampling on there, or with --force",
			  pid, version_of(s));
		return CMD_NOTHING;
	case GORUNTIME_NO_SAMPLES_YET:
		cmd_error("heap: process %d (Go %s) has sampled no allocation yet; try again when "
			  "it has worked for a while",
			  pid, version_of(s));
		return CMD_NOTHING;
	case GORUNTIME_FORCED:
		cmd_error("heap: sampling in process %d (Go %s) is on from now; run the command "
			  "again when it has worked for a while",
			  pid, version_of(s));
		return CMD_NOTHING;
	case GORUNTIME_DENIED:
		cmd_error("heap: reading process %d is not permitted; run as root, or with "
			  "CAP_SYS_PTRACE",
			  pid);
		return CMD_FAILED;
	case GORUNTIME_GONE:
		cmd_error("heap: process %d has ended or started another program", pid);
		return CMD_FAILED;
	case GORUNTIME_TOO_LARGE:
		cmd_error("heap: process %d has more than %u MiB of heap records", pid,
			  HEAP_RECORDS_BYTES >> 20);
		return CMD_FAILED;
	default:
		cmd_error("heap: process %d (Go %s) keeps its profile in a form that is not known "
			  "here; see 'podprof inspect goruntime %d'",
			  pid, version_of(s), pid);
		return CMD_FAILED;
	}
}

/* ---------------------------------------------------------------- output */

static int write_output(const char *name, const struct buf *profile)
{
	_cleanup_(output_deinit) struct output file = OUTPUT_INIT;
	int status = output_open("heap", name, &file);

	return status == CMD_DONE ? output_write("heap", &file, profile->data, profile->len)
				  : status;
}

static int resolve(void *ctx, uint64_t pc, struct frame *ret)
{
	struct session *s = ctx;

	return space_cache_resolve(s->space, &s->id, pc, ret);
}

static int encode(struct session *s, const struct goheap_profile *profile, struct buf *ret,
		  struct heap_report_stats *ret_stats)
{
	const struct heapsnap_opts snap_opts = {
		.space = {resolve, s},
		.forced = goheap_was_forced(s->heap),
	};
	const struct heap_report_opts opts = {
		.time_ns = nsec_wall(),
		.max_samples = PPROF_SAMPLES_MAX,
		.max_bytes = PPROF_BYTES_MAX,
	};
	struct heapsnap *snap;
	int r = heapsnap_new(profile, &snap_opts, &snap);

	if (!r) {
		r = heap_report(&snap, 1, s->symbolizer, &opts, ret, ret_stats);
		heapsnap_free(snap);
	}
	if (r)
		cmd_error("heap: cannot make a profile of process %d: %s", (int)s->id.pid,
			  r < 0 ? strerror(-r) : "it is too large");
	return r ? CMD_FAILED : CMD_DONE;
}

static int report(struct session *s, const struct options *options)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(HEAP_OUTPUT_BYTES);
	struct heap_report_stats stats = {0};
	struct goheap_profile profile;
	struct goheap_totals totals;
	int r = goheap_read(s->heap, &profile), status;

	if (r < 0) {
		cmd_error("heap: cannot read process %d: %s", (int)s->id.pid, strerror(-r));
		return CMD_FAILED;
	}
	if (r != GORUNTIME_OK && (r != GORUNTIME_FORCED || profile.n_records == 0))
		return explain(s, (enum goruntime_state)r);
	status = encode(s, &profile, &out, &stats);
	if (status == CMD_DONE)
		status = write_output(options->output, &out);
	if (status != CMD_DONE)
		return status;
	if (stats.n_left_out)
		cmd_error("heap: %" PRIu64 " of %zu records had no room in the profile",
			  stats.n_left_out, profile.n_records);
	goheap_totals(&profile, &totals);
	if (strcmp(options->output, "-") != 0)
		printf("%s: %s, %zu records, %" PRId64 " bytes allocated, %" PRId64
		       " bytes in use; look at it with 'go tool pprof %s'\n",
		       options->output, version_of(s), profile.n_records, totals.alloc.bytes,
		       totals.inuse.bytes, options->output);
	return CMD_DONE;
}

/* ---------------------------------------------------------------- command */

/* Exit status; says what is wrong. */
static int take_operands(const struct cmdline *line, struct options *o)
{
	if (line->n_operands != 1 || !cmdline_pid(line->operands[0], &o->pid))
		return cmdline_usage(line, "give one PID, a number");
	if (!o->output)
		return cmdline_usage(line, "say where to write: --output FILE, or --output -");
	if (strcmp(o->output, "-") == 0 && isatty(STDOUT_FILENO))
		return cmdline_usage(line, "a profile is no text for a terminal; redirect standard "
					   "output or give --output FILE");
	return CMD_DONE;
}

/* True to go on; else *@ret_exit is the status to leave with. */
static bool parse_options(int argc, char **argv, struct options *o, int *ret_exit)
{
	const struct cmdline_option options[] = {
		{.name = "output", .letter = 'o', .string = &o->output},
		{.name = "force", .given = &o->force},
		{.name = "proc-root", .string = &o->proc_root},
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

int cmd_heap(int argc, char **argv)
{
	struct options options = {.proc_root = "/proc"};
	_cleanup_(session_deinit) struct session session = {.proc = ROOT_INIT};
	int status;

	if (!parse_options(argc, argv, &options, &status))
		return status;
	status = session_init(&session, &options);
	if (status == CMD_DONE)
		status = report(&session, &options);
	return cmdline_finish("heap", status);
}
