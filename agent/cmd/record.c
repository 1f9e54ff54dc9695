// SPDX-License-Identifier: Apache-2.0
/*
 * A recording by hand. All checks precede the recording: the output is open, the command exists,
 * the machine supports the event. The recording ends at the first of: the time is over, Ctrl-C or
 * SIGTERM, all target processes have ended, the command has ended. Then the profile is written, for
 * every reason. podprof waits for a command that goes on, since the command may do valuable work; a
 * second Ctrl-C ends the wait.
 */
#include "cmd/record.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "base/open_files.h"
#include "base/root.h"
#include "base/strview.h"
#include "base/supervise.h"
#include "cmd/cmd.h"
#include "cmd/debugservers.h"
#include "cmd/output.h"
#include "cmd/record_warm.h"
#include "cpu/recorder.h"
#include "discovery/pid.h"
#include "profile/event.h"
#include "profile/sample.h"
#include "symbolize/debuginfod.h"
#include "version.h"

/* Interval of checking for live processes, and of progress lines. */
#define RECORD_LOOK_NS	    (250 * NSEC_PER_MSEC)
/* A process keeps its place for one to two intervals after the exit. */
#define RECORD_SWEEP_NS	    NSEC_PER_SEC
#define RECORD_WARM_LOOK_NS (50 * NSEC_PER_MSEC)
/* A longer warm-up is a line of the summary. */
#define RECORD_WARM_SAID_NS NSEC_PER_SEC
#define RECORD_COMMENTS	    (2 + LABELS_MAX)
#define RECORD_COMMENT_SIZE 1024

/* The reason of the end. */
enum record_end {
	RECORD_GOES_ON,
	RECORD_TIME,
	RECORD_SIGNAL,
	RECORD_NOBODY,
	RECORD_COMMAND,
};

struct recording {
	const struct record_options *options;
	struct record_child child;
	struct output output;
	char made_up_name[64];
	struct root proc;
	struct root sys;
	struct loop *loop;
	struct debugservers servers;
	struct recorder *recorder;
	bool shows; /* progress, on a terminal */
	uint64_t warm_since_ns;
	struct record_warm warm;
	enum record_end end;
	uint64_t start_wall_ns;
	uint64_t start_ns;
	uint64_t duration_ns; /* until the end */
	uint64_t sweep_ns;
	uint64_t fetch_until_ns; /* the end of the wait for debug files */
	int fetch_result;
};

static void recording_deinit(struct recording *rec)
{
	recorder_free(rec->recorder);
	debugservers_deinit(&rec->servers);
	loop_free(rec->loop);
	record_child_deinit(&rec->child);
	output_deinit(&rec->output);
	root_deinit(&rec->proc);
	root_deinit(&rec->sys);
}

static int failed(const char *what, int err)
{
	cmd_error("record: %s: %s", what, strerror(-err));
	return CMD_FAILED;
}

/* ---- during the recording */

static void clear_line(const struct recording *rec)
{
	if (rec->shows)
		fputs("\r\033[K", stderr);
}

static void show_progress(const struct recording *rec)
{
	struct recorder_stats stats;
	double seconds = (double)(nsec_monotonic() - rec->start_ns) / NSEC_PER_SEC;

	if (!rec->shows || !rec->start_ns)
		return;
	recorder_stats(rec->recorder, &stats);
	fprintf(stderr, "\r\033[Krecording: %.0f s", seconds);
	if (rec->options->duration_ns)
		fprintf(stderr, " of %.0f s", (double)rec->options->duration_ns / NSEC_PER_SEC);
	fprintf(stderr, ", %" PRIu64 " samples; Ctrl-C ends%s", stats.n_samples,
		rec->options->duration_ns ? " early" : "");
	fflush(stderr);
}

static void end(struct recording *rec, enum record_end why)
{
	if (rec->end == RECORD_GOES_ON)
		rec->end = why;
	loop_stop(rec->loop);
}

static void on_time(void *ctx)
{
	end(ctx, RECORD_TIME);
}

static void on_signal(void *ctx, int signo)
{
	struct recording *rec = ctx;

	/* The terminal sends Ctrl-C to the command itself; SIGTERM is for us alone. */
	if (signo == SIGTERM && rec->child.pid > 0)
		kill(rec->child.pid, SIGTERM);
	if (rec->end != RECORD_SIGNAL) /* the first one may arrive twice */
		end(rec, RECORD_SIGNAL);
}

static void on_stop_at_once(void *ctx, int signo)
{
	(void)signo;
	end(ctx, RECORD_SIGNAL);
}

static void on_child(void *ctx, int signo)
{
	struct recording *rec = ctx;

	(void)signo;
	if (record_child_ended(&rec->child))
		end(rec, RECORD_COMMAND);
}

/* The end of the command comes from waitpid(), since podprof is the parent; the command's children
 * may go on. */
static void on_look(void *ctx)
{
	struct recording *rec = ctx;
	uint64_t now = nsec_monotonic();

	on_child(rec, SIGCHLD);
	if (now - rec->sweep_ns >= RECORD_SWEEP_NS) {
		rec->sweep_ns = now;
		if (recorder_sweep(rec->recorder) == 0 && !rec->options->command)
			end(rec, RECORD_NOBODY);
	}
	show_progress(rec);
}

/* ---------------------------------------------------------------- start */

static int check_event(const struct event *event)
{
	char names[256] = "";
	size_t n = 0;
	int r = event_probe(event);

	if (!event->hardware || (r != -ENOENT && r != -EOPNOTSUPP && r != -ENODEV))
		return CMD_DONE; /* the open on each CPU finds other errors */
	for (size_t i = 0; i < n_events && n < sizeof(names); i++)
		if (!events[i].hardware && event_probe(&events[i]) >= 0)
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "",
					      events[i].name);
	cmd_error(
		"record: this machine has no hardware counter for %s (virtual machines often have "
		"none); the events that work here are %s",
		event->name, names);
	return CMD_FAILED;
}

/* The target as part of a file's name: letters, digits and few others. */
static void name_of_targets(struct recording *rec, char *ret, size_t n)
{
	const struct record_options *o = rec->options;
	char comm[PID_COMM_MAX] = "";
	const char *name = o->all ? "all" : o->container;
	struct pid_id id;

	if (o->command)
		name = strview_after_last(strview_of(o->command[0]), '/').p;
	else if (o->n_pids && pid_read(&rec->proc, o->pids[0], &id) == 0 &&
		 pid_read_comm(&rec->proc, &id, comm) == 0)
		name = comm;
	snprintf(ret, n, "%s", name ? name : "pid");
	for (char *c = ret; *c; c++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-",
			    *c))
			*c = '-';
}

static const char *output_name(struct recording *rec)
{
	time_t now = time(NULL);
	char name[24], when[24];
	struct tm tm;

	if (rec->options->output)
		return rec->options->output;
	name_of_targets(rec, name, sizeof(name));
	localtime_r(&now, &tm);
	strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &tm);
	snprintf(rec->made_up_name, sizeof(rec->made_up_name), "podprof-%s-%s.pb.gz", name, when);
	return rec->made_up_name;
}

static int start_roots(struct recording *rec)
{
	int status = cmdline_open_proc("record", rec->options->proc_root, &rec->proc);
	int r;

	if (status != CMD_DONE)
		return status;
	r = root_open("/sys", &rec->sys);
	if (r) {
		cmd_error("record: cannot open /sys: %s", root_why(r));
		return CMD_FAILED;
	}
	return CMD_DONE;
}

static int start_output(struct recording *rec)
{
	return output_open("record", output_name(rec), &rec->output);
}

static int start_child(struct recording *rec)
{
	const char *output = rec->options->output;
	int r;

	if (!rec->options->command)
		return CMD_DONE;
	r = record_child_start(rec->options->command, output && strcmp(output, "-") == 0,
			       &rec->child);
	return r ? failed("cannot make a process for the command", r) : CMD_DONE;
}

static int start_loop(struct recording *rec)
{
	struct loop_source *timer, *source;
	int r = loop_new(&rec->loop);

	open_files_raise();
	if (!r)
		r = loop_add_signal(rec->loop, SIGINT, on_signal, rec, &source);
	if (!r)
		r = loop_add_signal(rec->loop, SIGTERM, on_signal, rec, &source);
	if (!r)
		r = loop_add_signal(rec->loop, SUPERVISE_AT_ONCE, on_stop_at_once, rec, &source);
	if (!r)
		r = loop_add_signal(rec->loop, SIGCHLD, on_child, rec, &source);
	if (!r)
		r = loop_add_timer(rec->loop, on_look, rec, &timer);
	if (!r)
		r = loop_arm(timer, RECORD_LOOK_NS, RECORD_LOOK_NS);
	return r ? failed("cannot make the event loop", r) : CMD_DONE;
}

static int start_servers(struct recording *rec)
{
	return debugservers_open("record", &rec->options->debuginfod, rec->options->debuginfod_dir,
				 &rec->servers);
}

static int start_recorder(struct recording *rec)
{
	const struct record_options *o = rec->options;
	const struct recorder_opts opts = {
		.loop = rec->loop,
		.proc = &rec->proc,
		.sys = &rec->sys,
		.event = o->period ? o->event : NULL,
		.period = o->period,
		.rate_hz = o->rate_hz,
		.off_cpu = o->off_cpu,
		.kernel_stacks = o->kernel_stacks,
		.thread_names = o->thread_names,
		.task_names = o->task_names,
		.dwarf = o->dwarf,
		.debuginfod = rec->servers.servers,
		.unwind = o->unwind,
		.unsafe_kernel = o->unsafe_kernel,
		.scope = o->all		? SETTINGS_SCOPE_ALL
			 : o->container ? SETTINGS_SCOPE_CGROUPS
					: SETTINGS_SCOPE_PROCESSES,
		.tags = &o->tags,
	};
	struct bpfobj_why why = {""};
	int r = recorder_new(&opts, &why, &rec->recorder);

	if (r && why.text[0])
		cmd_error("record: %s", why.text);
	else if (r)
		return failed("cannot record", r);
	return r ? CMD_FAILED : CMD_DONE;
}

static int explain_process(pid_t pid, int r)
{
	if (r == RECORDER_GONE) {
		cmd_error("record: no process %d; 'ps' lists the processes", (int)pid);
		return CMD_NOTHING;
	}
	if (r == RECORDER_FULL) {
		cmd_error("record: process %d has too many descendants to follow; use --all",
			  (int)pid);
		return CMD_FAILED;
	}
	return failed("cannot follow the processes", r);
}

static int explain_container(const char *id, int r)
{
	switch (r) {
	case RECORDER_GONE:
		cmd_error("record: no container %s here; 'podprof inspect cgroup' lists the "
			  "containers",
			  id);
		return CMD_NOTHING;
	case RECORDER_AMBIGUOUS:
		cmd_error("record: the ids of several containers begin with %s; give a longer part",
			  id);
		return CMD_USAGE;
	case RECORDER_NO_CGROUPS:
		cmd_error("record: cannot find containers without a cgroup file system; use --pid "
			  "or --all");
		return CMD_FAILED;
	default:
		return failed("cannot follow the container", r);
	}
}

static int start_targets(struct recording *rec)
{
	const struct record_options *o = rec->options;
	int r;

	for (size_t i = 0; i < o->n_pids; i++) {
		r = recorder_add_process(rec->recorder, o->pids[i], true);
		if (r)
			return explain_process(o->pids[i], r);
	}
	if (o->container) {
		r = recorder_add_container(rec->recorder, o->container);
		if (r)
			return explain_container(o->container, r);
	}
	if (o->command) {
		r = recorder_add_child(rec->recorder, rec->child.pid);
		if (r)
			return explain_process(rec->child.pid, r);
	}
	return CMD_DONE;
}

/* The command's process is forked before the loop blocks signals and before our limits are raised.
 * The file follows, so Ctrl-C leaves no file behind. */
static int start(struct recording *rec)
{
	int (*const steps[])(struct recording *) = {
		start_roots,   start_child,    start_loop,    start_output,
		start_servers, start_recorder, start_targets,
	};
	int status = check_event(rec->options->event);

	for (size_t i = 0; i < array_size(steps) && status == CMD_DONE; i++)
		status = steps[i](rec);
	return status;
}

/* ---------------------------------------------------------------- the recording */

static int let_command_run(struct recording *rec)
{
	int r;

	if (!rec->options->command)
		return CMD_DONE;
	r = record_child_go(&rec->child);
	if (!r)
		return CMD_DONE;
	(void)waitpid(rec->child.pid, NULL, 0);
	rec->child.pid = 0;
	cmd_error("record: cannot run %s: %s", rec->options->command[0], strerror(-r));
	return CMD_FAILED;
}

/* Whether a process of --pid wants the CPU and has no sample yet. */
static bool is_late(const struct recording *rec)
{
	const struct record_options *o = rec->options;
	bool runs = false;

	if (recorder_seen(rec->recorder))
		return false;
	for (size_t i = 0; !runs && i < o->n_pids; i++)
		runs = record_warm_runs(&rec->proc, o->pids[i]);
	return runs;
}

static void on_warm_look(void *ctx)
{
	struct recording *rec = ctx;
	const struct record_look look = {
		.ns = nsec_monotonic() - rec->warm_since_ns,
		.n_drains = recorder_drains(rec->recorder),
		.n_missing = {[RECORD_NEEDS_TABLES] = recorder_missing(rec->recorder),
			      [RECORD_NEEDS_WALKS] = recorder_loading(rec->recorder),
			      [RECORD_NEEDS_READS] = recorder_reading(rec->recorder),
			      [RECORD_NEEDS_SAMPLES] = is_late(rec)},
	};

	if (record_warm_is_over(&rec->warm, &look))
		loop_stop(rec->loop);
}

/* Skipped for a command, which has no stacks before its first instruction. */
static int warm_up(struct recording *rec)
{
	struct loop_source *timer;
	int r;

	if (rec->options->command || rec->options->unwind == SETTINGS_UNWIND_FP)
		return CMD_DONE;
	if (rec->shows)
		fputs("\r\033[Kpreparing the recording", stderr);
	rec->warm_since_ns = nsec_monotonic();
	r = loop_add_timer(rec->loop, on_warm_look, rec, &timer);
	if (!r)
		r = loop_arm(timer, RECORD_WARM_LOOK_NS, RECORD_WARM_LOOK_NS);
	if (!r)
		r = loop_run(rec->loop);
	loop_remove(timer);
	return r ? failed("cannot begin", r) : CMD_DONE;
}

static int record(struct recording *rec)
{
	struct loop_source *timer;
	int r = loop_add_timer(rec->loop, on_time, rec, &timer), status;

	if (!r && rec->options->duration_ns)
		r = loop_arm(timer, rec->options->duration_ns, 0);
	if (r)
		return failed("cannot set the timer", r);
	rec->start_wall_ns = nsec_wall();
	rec->start_ns = nsec_monotonic();
	rec->sweep_ns = rec->start_ns;
	recorder_begin(rec->recorder);
	status = let_command_run(rec);
	if (status != CMD_DONE)
		return status;
	show_progress(rec);
	if (rec->end == RECORD_GOES_ON) /* a signal may have ended the recording before its start */
		r = loop_run(rec->loop);
	rec->duration_ns = nsec_monotonic() - rec->start_ns;
	loop_remove(timer);
	clear_line(rec);
	return r ? failed("cannot continue", r) : CMD_DONE;
}

/* ---------------------------------------------------------------- debug files */

/* When no download is under way, the files above the queue's limit are asked for. */
static void on_fetch_look(void *ctx)
{
	struct recording *rec = ctx;

	if (!debuginfod_pending(rec->servers.servers))
		rec->fetch_result = recorder_ask(rec->recorder);
	if (rec->fetch_result || !debuginfod_pending(rec->servers.servers) ||
	    nsec_monotonic() >= rec->fetch_until_ns)
		loop_stop(rec->loop);
}

/* Until all downloads have ended, for a bounded time, or until a signal. */
static int fetch_debug_files(struct recording *rec)
{
	struct loop_source *timer = NULL;
	int r;

	if (!rec->servers.servers)
		return CMD_DONE;
	r = recorder_ask(rec->recorder);
	if (rec->shows)
		fputs("\r\033[Kwaiting for debug files; Ctrl-C stops waiting", stderr);
	rec->fetch_until_ns = nsec_monotonic() + DEBUGSERVERS_WAIT_NS;
	if (!r)
		r = loop_add_timer(rec->loop, on_fetch_look, rec, &timer);
	if (!r)
		r = loop_arm(timer, DEBUGSERVERS_LOOK_NS, DEBUGSERVERS_LOOK_NS);
	if (!r)
		r = loop_run(rec->loop);
	loop_remove(timer);
	clear_line(rec);
	r = r ? r : rec->fetch_result;
	return r ? failed("cannot get debug files", r) : CMD_DONE;
}

/* ---------------------------------------------------------------- the profile */

/* The description and the tags. */
struct comments {
	char text[RECORD_COMMENTS][RECORD_COMMENT_SIZE];
	const char *items[RECORD_COMMENTS];
	size_t n;
};

static void comment(struct comments *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void comment(struct comments *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(c->text[c->n], sizeof(c->text[c->n]), format, args);
	va_end(args);
	c->items[c->n] = c->text[c->n];
	c->n++;
}

static void make_comments(const struct recording *rec, struct comments *ret)
{
	const struct record_options *o = rec->options;
	char host[256] = "";

	(void)gethostname(host, sizeof(host) - 1);
	comment(ret, "podprof %s record on %s", PODPROF_VERSION, host);
	if (o->command)
		comment(ret, "command: %s", o->command[0]);
	for (size_t i = 0; i < o->tags.n; i++)
		comment(ret, "%s=%s", o->tags.items[i].name, o->tags.items[i].value);
}

static int write_profile(struct recording *rec, size_t *ret_bytes)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(RECORDER_PPROF_MAX);
	_cleanup_(freep) struct comments *comments = calloc(1, sizeof(*comments));
	uint64_t left_out = 0;
	int r = -ENOMEM;

	if (comments) {
		make_comments(rec, comments);
		r = recorder_report(rec->recorder, rec->start_wall_ns, rec->duration_ns,
				    comments->items, comments->n, &out, &left_out);
	}
	if (r > 0)
		cmd_error(
			"record: the profile is larger than %u MiB; use a shorter --duration or a "
			"lower --rate",
			RECORDER_PPROF_MAX >> 20);
	else if (r)
		return failed("cannot make the profile", r);
	if (left_out)
		cmd_error("record: %" PRIu64 " samples did not fit into the profile", left_out);
	*ret_bytes = out.len;
	return r ? CMD_FAILED : output_write("record", &rec->output, out.data, out.len);
}

/* ---------------------------------------------------------------- the summary */

static double cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

/* The reasons of truncated stacks, the most frequent first. */
static void show_ends(const struct recorder_stats *s)
{
	uint64_t left[SAMPLE_END_MAX];
	const char *between = "truncated: ";

	memcpy(left, s->n_ends, sizeof(left));
	left[SAMPLE_END_COMPLETE] = left[SAMPLE_END_NO_USER] = 0;
	for (;;) {
		unsigned int most = 0;

		for (unsigned int i = 0; i < SAMPLE_END_MAX; i++)
			if (left[i] > left[most])
				most = i;
		if (!left[most])
			break;
		fprintf(stderr, "%s%" PRIu64 " %s", between, left[most],
			sample_stat_name(most) + strlen("truncated_"));
		between = ", ";
		left[most] = 0;
	}
	if (between[0] == ',')
		fputc('\n', stderr);
}

static void show_samples(const struct recording *rec, const struct recorder_stats *s)
{
	const struct record_options *o = rec->options;

	fprintf(stderr, "%" PRIu64 " samples of %" PRIu64 " program%s in %.1f s", s->n_samples,
		s->n_processes, s->n_processes == 1 ? "" : "s",
		(double)rec->duration_ns / NSEC_PER_SEC);
	if (!o->period)
		fprintf(stderr, ", by the clock at %u Hz", o->rate_hz);
	else
		fprintf(stderr, ", one for %" PRIu64 " %s", o->period,
			o->event->clock ? "ns of CPU time" : o->event->name);
	fprintf(stderr, "; %.1f %% with complete stacks, %" PRIu64 " lost\n",
		percent(s->n_complete, s->n_samples), s->n_lost);
	show_ends(s);
	if (s->n_refused)
		fprintf(stderr, "%" PRIu64 " processes not recorded: too many processes\n",
			s->n_refused);
	if (o->off_cpu > 0)
		fprintf(stderr, "%" PRIu64 " waits, from at most one in %.0f task switches\n",
			s->n_off_cpu, 1 / o->off_cpu);
	if (!s->n_samples && !s->n_off_cpu)
		fprintf(stderr, o->event->clock
					? "no samples: no target thread ran on a CPU (waiting "
					  "threads are not sampled)\n"
					: "no samples: the event did not occur\n");
}

static void show_warm_up(const struct recording *rec)
{
	if (rec->warm.last.ns >= RECORD_WARM_SAID_NS)
		record_warm_show(&rec->warm, stderr);
}

static void show_cost(const struct recorder_stats *s)
{
	fprintf(stderr, "cost: %.2f s of CPU time in podprof", cpu_seconds());
	if (s->bpf_ns)
		fprintf(stderr, ", %.3f s for sampling in the kernel",
			(double)s->bpf_ns / NSEC_PER_SEC);
	fputc('\n', stderr);
}

static void show_command(const struct recording *rec)
{
	const int status = rec->child.status;

	if (!rec->options->command)
		return;
	if (!rec->child.ended)
		fprintf(stderr, "%s still runs\n", rec->options->command[0]);
	else if (WIFSIGNALED(status))
		fprintf(stderr, "%s was killed by signal %d (%s)\n", rec->options->command[0],
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		fprintf(stderr, "%s ended with status %d\n", rec->options->command[0],
			WEXITSTATUS(status));
}

static void show_summary(const struct recording *rec, size_t bytes)
{
	const char *name = rec->output.name;
	struct recorder_stats stats;

	recorder_stats(rec->recorder, &stats);
	show_samples(rec, &stats);
	show_warm_up(rec);
	debugservers_summary(&rec->servers);
	show_cost(&stats);
	if (strcmp(name, "-") != 0)
		fprintf(stderr, "wrote %s (%zu KiB); 'go tool pprof -http=: %s' shows it\n", name,
			(bytes + 1023) / 1024, name);
}

/* ---------------------------------------------------------------- command */

/* The profile is written. The user's command stays in the foreground until its end. */
static void wait_for_command(struct recording *rec)
{
	if (!rec->options->command || record_child_ended(&rec->child))
		return;
	fprintf(stderr, "waiting for %s to end; Ctrl-C stops waiting\n", rec->options->command[0]);
	(void)loop_run(rec->loop);
}

static int finish(struct recording *rec)
{
	size_t bytes = 0;
	int status;

	recorder_finish(rec->recorder);
	status = fetch_debug_files(rec);
	if (status == CMD_DONE)
		status = write_profile(rec, &bytes);
	if (status != CMD_DONE)
		return status;
	show_summary(rec, bytes);
	wait_for_command(rec);
	show_command(rec);
	return CMD_DONE;
}

static int run(void *ctx)
{
	const struct record_options *options = ctx;
	_cleanup_(recording_deinit) struct recording rec = {
		.options = options,
		.child = RECORD_CHILD_INIT,
		.output = OUTPUT_INIT,
		.proc = ROOT_INIT,
		.sys = ROOT_INIT,
		.servers = DEBUGSERVERS_INIT,
		.shows = isatty(STDERR_FILENO) && !options->command,
	};
	int status = start(&rec);

	if (status == CMD_DONE)
		status = warm_up(&rec);
	if (status == CMD_DONE)
		status = record(&rec);
	if (status == CMD_DONE)
		status = finish(&rec);
	return status;
}

int cmd_record(int argc, char **argv)
{
	_cleanup_(record_options_deinit) struct record_options options = {0};
	int status;

	if (!record_options_parse(argc, argv, &options, &status))
		return status;
	return cmd_run_apart("record", run, &options, 0);
}
