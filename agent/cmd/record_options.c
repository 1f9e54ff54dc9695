// SPDX-License-Identifier: Apache-2.0
#include "cmd/record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/quantity.h"
#include "base/strview.h"
#include "cmd/cmd.h"
#include "profile/event.h"
#include "profile/oncpu.h"

/* A prime near 100, the rate of perf and py-spy: a rate that divides a second counts periodic
 * programs wrong. */
#define RECORD_RATE_HZ	    99
/* The clock's shortest period: as many samples as its highest rate. */
#define RECORD_CLOCK_MIN_NS (NSEC_PER_SEC / ONCPU_RATE_MAX)
/* Largest period; the kernel's own ceiling is 2^63, and no event is counted as often. Reached:
 * wrong usage. */
#define RECORD_PERIOD_MAX   (1ull << 48)
#define RECORD_EVENT_NAMES  512

static const char help[] =
	"usage: podprof record --pid PID [OPTIONS]        processes and their children\n"
	"       podprof record --container ID [OPTIONS]   a container\n"
	"       podprof record --all [OPTIONS]            the whole machine\n"
	"       podprof record [OPTIONS] -- COMMAND ...   a command, from its first instruction\n"
	"\n"
	"Samples the running code on all CPUs and writes one profile: CPU time by stack. The\n"
	"programs are not changed or restarted. A recording ends with --duration, with the\n"
	"processes or the command, or with Ctrl-C; then podprof writes the profile.\n"
	"'go tool pprof -http=: FILE' shows it.\n"
	"\n"
	"target\n"
	"  -p, --pid PID            a process with all its threads and its present and later\n"
	"                           children; repeatable, or PID,PID,...\n"
	"      --container ID       all processes of a container; the beginning of the id is "
	"enough\n"
	"  -a, --all                all processes and the kernel\n"
	"sampling\n"
	"  -d, --duration TIME      length: 500ms, 10s, 5m (default: until Ctrl-C or the end of "
	"the\n"
	"                           processes)\n"
	"  -r, --rate HZ            samples per second of CPU time, 1 to 10000 (default 99)\n"
	"  -e, --event EVENT        sample by an event instead of by time; see below\n"
	"      --period N           take a sample each N events, or each N ns of CPU time\n"
	"      --off-cpu SHARE      also sample this share of the task switches, to show where "
	"and\n"
	"                           how long threads wait: 1 for a few processes, 0.05 for a busy\n"
	"                           node; sample types delay and switches\n"
	"      --unwind HOW         unwinding: auto (unwind tables, and frame pointers for code\n"
	"                           without a table; the default), fp, dwarf\n"
	"      --kernel-stacks=BOOL record the kernel's frames (default true)\n"
	"      --thread-names       a label thread: the name of the thread, 15 bytes\n"
	"      --task-names         a label task: the name of Python's asyncio task, 31 bytes\n"
	"      --dwarf=BOOL         lines and inlined functions of native code (default true)\n"
	"      --debuginfod URL     ask this debuginfod server for the debug files of programs\n"
	"                           without names, and wait up to a minute for them; repeatable.\n"
	"                           The server learns the build ids of the recorded programs\n"
	"      --debuginfod-dir DIR keep these files here (default: ~/.cache/podprof/debuginfod)\n"
	"output\n"
	"  -o, --output FILE|-      output file (default: podprof-NAME-DATE-TIME.pb.gz here); '-' "
	"is\n"
	"                           standard output, and a command then writes to standard error\n"
	"  -t, --tag KEY=VALUE      a label of every sample, such as version=1.2; repeatable\n"
	"other\n"
	"      --proc-root PATH     the host's /proc (/proc)\n"
	"      --allow-unsafe-kernel\n"
	"                           sample on kernels that may hang: Linux 5.19 to 6.3 without "
	"the\n"
	"                           fix of 6.1.36, 6.3.10 and 6.4\n"
	"      --help               this text\n"
	"\n"
	"Samples have the labels pid and comm, and container, pod_uid or systemd unit:\n"
	"'go tool pprof -tags FILE' lists them, -tagfocus selects.\n"
	"\n"
	"events\n";

static const char help_end[] =
	"Virtual machines often lack hardware counters.\n\n"
	"Exit status: 0 profile written; 1 failed; 2 wrong usage; 3 nothing to profile: no such\n"
	"process or container. podprof prints the command's own status.\n";

#define RECORD_HELP_SIZE 8192

/* The text, then the events from their table. */
static void make_help(char *ret)
{
	size_t n = (size_t)snprintf(ret, RECORD_HELP_SIZE, "%s", help);

	for (size_t i = 0; i < n_events; i++)
		n += (size_t)snprintf(ret + n, RECORD_HELP_SIZE - n, "  %-18s %s%s\n",
				      events[i].name, events[i].help,
				      events[i].hardware ? " (hardware counter)" : "");
	snprintf(ret + n, RECORD_HELP_SIZE - n, "%s", help_end);
}

/* The values in the spelling of the command line. */
struct raw {
	struct cmdline_values pids;
	struct cmdline_values tags;
	const char *duration;
	const char *event;
	const char *rate;
	const char *period;
	const char *kernel_stacks;
	const char *dwarf;
	const char *off_cpu;
	const char *unwind;
};

void record_options_deinit(struct record_options *o)
{
	labels_deinit(&o->tags);
}

/* A comma requires another pid. */
static int take_pid_list(const struct cmdline *line, const char *list, struct record_options *o)
{
	struct strview rest = strview_of(list);
	uint64_t pid;

	do {
		if (!strview_u64(&rest, 10, &pid) || !pid || pid > INT32_MAX)
			return cmdline_usage(line, "--pid takes a PID, or PID,PID,..., not '%s'",
					     list);
		if (o->n_pids == array_size(o->pids))
			return cmdline_usage(line, "--pid takes %zu processes at most",
					     array_size(o->pids));
		o->pids[o->n_pids++] = (pid_t)pid;
	} while (strview_char(&rest, ','));
	if (!strview_empty(&rest))
		return cmdline_usage(line, "--pid takes a PID, or PID,PID,..., not '%s'", list);
	return CMD_DONE;
}

static int take_pids(const struct cmdline *line, const struct raw *raw, struct record_options *o)
{
	int status = CMD_DONE;

	for (size_t i = 0; i < raw->pids.n && status == CMD_DONE; i++)
		status = take_pid_list(line, raw->pids.items[i], o);
	return status;
}

/* Exactly one kind of target. */
static int take_targets(const struct cmdline *line, const struct raw *raw, struct record_options *o)
{
	int n_kinds;

	if (line->n_operands)
		o->command = line->operands;
	n_kinds = !!raw->pids.n + !!o->container + o->all + !!o->command;
	if (!n_kinds)
		return cmdline_usage(line, "give a target: --pid PID, --container ID, --all, or a "
					   "command after --");
	if (n_kinds > 1)
		return cmdline_usage(line,
				     "give only one of --pid, --container, --all and a command");
	if (o->container && !*o->container)
		return cmdline_usage(line, "--container takes an id");
	return take_pids(line, raw, o);
}

static int take_duration(const struct cmdline *line, const struct raw *raw,
			 struct record_options *o)
{
	if (raw->duration &&
	    (!quantity_duration(raw->duration, &o->duration_ns) || !o->duration_ns))
		return cmdline_usage(line,
				     "--duration takes a time such as 500ms, 10s or 5m, not "
				     "'%s'",
				     raw->duration);
	return CMD_DONE;
}

static int unknown_event(const struct cmdline *line, const char *name)
{
	char names[RECORD_EVENT_NAMES] = "";
	size_t n = 0;

	for (size_t i = 0; i < n_events && n < sizeof(names); i++)
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i ? ", " : "",
				      events[i].name);
	cmd_error("%s: unknown event '%s'; the events are %s", line->command, name, names);
	return CMD_USAGE;
}

static int take_period(const struct cmdline *line, const char *period, struct record_options *o)
{
	if (!strview_only_u64(strview_of(period), 10, &o->period) || !o->period ||
	    o->period > RECORD_PERIOD_MAX)
		return cmdline_usage(line, "--period takes a number of events above 0, not '%s'",
				     period);
	if (o->event->clock && o->period < RECORD_CLOCK_MIN_NS)
		return cmdline_usage(line, "--period of the clock is in ns, %llu at least",
				     RECORD_CLOCK_MIN_NS);
	return CMD_DONE;
}

/* The clock has a rate, from which its period is computed; other events have a period. */
static int take_event(const struct cmdline *line, const struct raw *raw, struct record_options *o)
{
	uint64_t rate = RECORD_RATE_HZ;

	o->event = raw->event ? event_find(raw->event) : event_clock();
	if (!o->event)
		return unknown_event(line, raw->event);
	if (raw->rate && raw->period)
		return cmdline_usage(line, "give only one of --rate and --period");
	if (raw->rate && !o->event->clock)
		return cmdline_usage(line,
				     "--rate is for the clock; give --period N for a sample each N "
				     "%s",
				     o->event->name);
	if (raw->rate &&
	    (!strview_only_u64(strview_of(raw->rate), 10, &rate) || !rate || rate > ONCPU_RATE_MAX))
		return cmdline_usage(line, "--rate takes a number from 1 to %d, not '%s'",
				     ONCPU_RATE_MAX, raw->rate);
	o->rate_hz = (unsigned int)rate;
	o->period = o->event->period;
	return raw->period ? take_period(line, raw->period, o) : CMD_DONE;
}

static int take_tag(const struct cmdline *line, const char *tag, struct record_options *o)
{
	const char *equals = strchr(tag, '=');
	_cleanup_(freep) char *name = NULL;
	int r;

	if (!equals || !equals[1])
		return cmdline_usage(line, "--tag takes KEY=VALUE, not '%s'", tag);
	name = strview_dup(strview_of_bytes(tag, (size_t)(equals - tag)));
	r = name ? labels_set(&o->tags, name, equals + 1) : -ENOMEM;
	if (r == LABELS_BAD_NAME)
		return cmdline_usage(
			line, "--tag: a key consists of letters, digits and _, not '%s'", name);
	if (r)
		return cmdline_usage(line, "too many --tag");
	return CMD_DONE;
}

static int take_unwind(const struct cmdline *line, const struct raw *raw, struct record_options *o)
{
	static const char *const names[] = {
		[SETTINGS_UNWIND_AUTO] = "auto",
		[SETTINGS_UNWIND_FP] = "fp",
		[SETTINGS_UNWIND_DWARF] = "dwarf",
	};

	for (size_t i = 0; i < array_size(names) && raw->unwind; i++)
		if (strcmp(names[i], raw->unwind) == 0) {
			o->unwind = (enum settings_unwind)i;
			return CMD_DONE;
		}
	return raw->unwind ? cmdline_usage(line, "--unwind takes auto, fp or dwarf, not '%s'",
					   raw->unwind)
			   : CMD_DONE;
}

/* True by default. False after a message. */
static bool take_bool(const struct cmdline *line, const char *name, const char *text, bool *ret)
{
	*ret = true;
	if (!text || cmdline_bool(text, ret))
		return true;
	cmdline_usage(line, "--%s takes true or false, not '%s'", name, text);
	return false;
}

static int take_rest(const struct cmdline *line, const struct raw *raw, struct record_options *o)
{
	int status = CMD_DONE;

	if (!take_bool(line, "kernel-stacks", raw->kernel_stacks, &o->kernel_stacks) ||
	    !take_bool(line, "dwarf", raw->dwarf, &o->dwarf))
		return CMD_USAGE;
	if (raw->off_cpu && !quantity_share(raw->off_cpu, &o->off_cpu))
		return cmdline_usage(line,
				     "--off-cpu takes a share from 0 to 1, such as 0.05, not '%s'",
				     raw->off_cpu);
	if (o->off_cpu > 0 && o->period)
		return cmdline_usage(line,
				     "--off-cpu works with the clock only, not with --event or "
				     "--period");
	for (size_t i = 0; i < raw->tags.n && status == CMD_DONE; i++)
		status = take_tag(line, raw->tags.items[i], o);
	if (status != CMD_DONE)
		return status;
	if (o->output && !*o->output)
		return cmdline_usage(line, "--output takes the name of a file, or -");
	if (o->output && strcmp(o->output, "-") == 0 && isatty(STDOUT_FILENO))
		return cmdline_usage(line, "a profile is binary, not for a terminal; redirect "
					   "standard output or give --output FILE");
	return CMD_DONE;
}

static int take(const struct cmdline *line, const struct raw *raw, struct record_options *o)
{
	int (*const steps[])(const struct cmdline *, const struct raw *,
			     struct record_options *) = {take_targets, take_duration, take_event,
							 take_unwind, take_rest};
	int status = CMD_DONE;

	for (size_t i = 0; i < array_size(steps) && status == CMD_DONE; i++)
		status = steps[i](line, raw, o);
	return status;
}

bool record_options_parse(int argc, char **argv, struct record_options *ret, int *ret_exit)
{
	char help_text[RECORD_HELP_SIZE];
	struct raw raw = {0};
	const struct cmdline_option options[] = {
		{.name = "pid", .letter = 'p', .values = &raw.pids},
		{.name = "container", .string = &ret->container},
		{.name = "all", .letter = 'a', .given = &ret->all},
		{.name = "duration", .letter = 'd', .string = &raw.duration},
		{.name = "rate", .letter = 'r', .string = &raw.rate},
		{.name = "event", .letter = 'e', .string = &raw.event},
		{.name = "period", .string = &raw.period},
		{.name = "kernel-stacks", .string = &raw.kernel_stacks},
		{.name = "thread-names", .given = &ret->thread_names},
		{.name = "task-names", .given = &ret->task_names},
		{.name = "dwarf", .string = &raw.dwarf},
		{.name = "unwind", .string = &raw.unwind},
		{.name = "off-cpu", .string = &raw.off_cpu},
		{.name = "output", .letter = 'o', .string = &ret->output},
		{.name = "tag", .letter = 't', .values = &raw.tags},
		{.name = "debuginfod", .values = &ret->debuginfod},
		{.name = "debuginfod-dir", .string = &ret->debuginfod_dir},
		{.name = "proc-root", .string = &ret->proc_root},
		{.name = "allow-unsafe-kernel", .given = &ret->unsafe_kernel},
	};
	struct cmdline line = {
		.command = "record",
		.help = help_text,
		.options = options,
		.n_options = array_size(options),
		.runs = true,
	};

	make_help(help_text);
	ret->proc_root = "/proc";
	if (!cmdline_parse(&line, argc, argv, ret_exit))
		return false;
	*ret_exit = take(&line, &raw, ret);
	return *ret_exit == CMD_DONE;
}
