// SPDX-License-Identifier: Apache-2.0
/*
 * The test program for each kernel: the first and only process of a virtual machine, or a process
 * on the machine itself. The guest loads the BPF programs, samples programs with known stacks, lets
 * the agent write a profile, and ends with a line for test/kernels/check.sh:
 *
 *	RESULT ok kernel=5.10.0-32-cloud-amd64 verified=oncpu_sample:13604 load_ms=66 samples=...
 *
 *	guest PODPROF RUNTIMES
 *	guest burn SECONDS	(as the target of 'podprof record')
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <net/if.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/root.h"
#include "base/strview.h"
#include "profile/offcpu.h"
#include "profile/oncpu.h"
#include "profile/pid_filter.h"
#include "profile/stack_dump.h"
#include "profile/verifier.h"
#include "shared/sample.h"
#include "support/burn.h"

#include "entities.h"
#include "plain.h"

/* High enough for some hundred samples of a short run, low enough for an emulated CPU. */
#define PYTHON	    "/usr/bin/python3"
#define NODE	    "/usr/bin/node"
#define JAVA	    "/jvm/bin/java"
#define RATE	    199
#define BURN_CPU_NS (NSEC_PER_SEC / 2)
/* Of a recorded function. */
#define ENOUGH_NS   100e6
/* Of an emulated or shared CPU's time. */
#define PATIENCE_NS (60 * NSEC_PER_SEC)

/* One run of a child under the sampler. */
struct run {
	struct oncpu *oc;
	uint64_t load_cpu_ns;	   /* the loading, without waiting for the CPU */
	struct stack_dumps *dumps; /* NULL: nothing is copied out */
	uint64_t dumped;
	pid_t child;
	uint64_t all;	 /* samples of everybody */
	uint64_t mine;	 /* of the child, and so on */
	uint64_t nested; /* middle and outer behind the innermost frame */
	uint64_t in_kernel;
	uint64_t away_ns;
	bool thread_names; /* requested */
	uint64_t named;	   /* samples with the name of the child's thread, which is the guest's */
	bool odd;	   /* a frame where none can be */
};

struct guest {
	struct root proc, sys;
	const char *podprof;  /* path of the program */
	const char *runtimes; /* of runtimes.c */
	const char *self;     /* and of this program */
	char line[2048];      /* further text of the result */
	bool failed;
};

static void fail(struct guest *g, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("FAILED ", stdout);
	vprintf(format, args);
	putchar('\n');
	va_end(args);
	g->failed = true;
}

static void say(struct guest *g, const char *format, ...)
{
	const size_t at = strlen(g->line);
	va_list args;

	va_start(args, format);
	vsnprintf(g->line + at, sizeof(g->line) - at, format, args);
	va_end(args);
}

/* ---------------------------------------------------------------- the sampler */

static bool nested(const struct sample *s)
{
	return s->n_user > 2 && burn_in(burn_middle_range(), s->user[1]) &&
	       burn_in(burn_outer_range(), s->user[2]);
}

static bool is_named(const struct sample *s)
{
	char own[PID_COMM_MAX] = "";

	prctl(PR_GET_NAME, own);
	return strcmp(s->thread, own) == 0;
}

static void take(void *ctx, const struct sample *s)
{
	struct run *run = ctx;

	run->all += s->count;
	if ((pid_t)s->pid.pid != run->child)
		return;
	run->mine += s->count;
	run->nested += nested(s) ? s->count : 0;
	run->in_kernel += s->n_kernel ? s->count : 0;
	run->away_ns += s->total;
	run->named += is_named(s) ? s->count : 0;
	for (size_t i = 0; i < s->n_kernel; i++)
		run->odd |= !(s->kernel[i] >> 63);
	for (size_t i = 0; i < s->n_user; i++)
		run->odd |= s->user[i] >> 63;
}

/* A stack dump, because these programs have no process records. */
static void take_dump(void *ctx, struct stack_dump_copy *taken)
{
	_cleanup_(freep) struct stack_dump_copy *copy = taken;
	struct run *run = ctx;
	struct stack_dump dump;

	run->dumped++;
	if (stack_dump_decode(copy->record, copy->size, &dump)) {
		run->odd = true;
		return;
	}
	if ((pid_t)dump.sample.pid.pid != run->child)
		return;
	run->mine++;
	run->in_kernel += dump.sample.n_kernel ? 1 : 0;
	run->named += is_named(&dump.sample);
	for (size_t i = 0; i < dump.sample.n_kernel; i++)
		run->odd |= !(dump.sample.kernel[i] >> 63);
	run->odd |= regs_pc(dump.regs) >> 63 || dump.at >> 63 || !dump.n_bytes;
}

static bool tick(struct run *run)
{
	return oncpu_tick(run->oc, take, run) == 0 &&
	       (!run->dumps || stack_dumps_drain(run->dumps, take_dump, run) == 0);
}

/* Until the child has this CPU time, at any speed. */
static bool burn(struct run *run)
{
	const uint64_t until_ns = nsec_monotonic() + PATIENCE_NS;
	clockid_t clock;

	if (clock_getcpuclockid(run->child, &clock))
		return false;
	burn_go(run->child);
	while (nsec_read(clock) < BURN_CPU_NS) {
		usleep(20000);
		if (!tick(run) || nsec_monotonic() > until_ns)
			return false;
	}
	return true;
}

/* Each sample stored by the kernel arrives, and none is lost. */
static void check_counts(struct guest *g, const struct run *run)
{
	uint64_t stats[SAMPLE_STAT_MAX], delivered = 0;

	if (oncpu_stats(run->oc, stats, SAMPLE_STAT_MAX)) {
		fail(g, "no statistics");
		return;
	}
	for (unsigned int i = 0; i < SAMPLE_STAT_MAX; i++) {
		delivered += sample_stat_delivered(i) ? stats[i] : 0;
		if (stats[i])
			printf("  %s %" PRIu64 "\n", sample_stat_name(i), stats[i]);
	}
	if (stats[SAMPLE_STAT_DUMPED] != run->dumped)
		fail(g, "%" PRIu64 " copies came of %" PRIu64, run->dumped,
		     stats[SAMPLE_STAT_DUMPED]);
	if (run->all != delivered)
		fail(g, "%" PRIu64 " samples came of %" PRIu64, run->all, delivered);
	if (stats[SAMPLE_STAT_LOST_FULL] + stats[SAMPLE_STAT_LOST_BUSY] +
	    stats[SAMPLE_STAT_LOST_INTERNAL])
		fail(g, "samples were lost");
}

static void say_verified(struct guest *g, const struct verifier *v, const char *between)
{
	for (size_t i = 0; i < v->n; i++) {
		say(g, "%s%s:%u", between, v->programs[i].name, v->programs[i].insns);
		if (!v->programs[i].insns)
			fail(g, "the verifier did not say what it looked at");
		between = ",";
	}
}

static void report_load(struct guest *g, const struct run *run)
{
	const struct bpfobj *object = oncpu_object(run->oc);
	struct bpfobj_runtime loaded;

	say(g, " verified=");
	say_verified(g, bpfobj_verifier(object), "");
	for (uint32_t i = FRAME_RUNTIME_NONE + 1; i < FRAME_RUNTIME_MAX; i++) {
		if (bpfobj_load_runtime(object, i, &loaded)) {
			printf("  %s\n", loaded.why);
			fail(g, "the kernel refuses a runtime");
			continue;
		}
		say_verified(g, &loaded.verifier, ",");
		bpfobj_runtime_deinit(&loaded);
	}
	say(g, " load_ms=%.0f load_cpu_ms=%.0f map_kib=%" PRIu64,
	    (double)bpfobj_load_ns(object) / 1e6, (double)run->load_cpu_ns / 1e6,
	    oncpu_map_bytes(run->oc) / 1024);
}

/* Sample a child of this kind, with everybody else or alone. False if there is no sampler. */
static bool sample(struct guest *g, enum burn_kind kind, enum settings_scope scope,
		   enum settings_unwind unwind, struct run *run)
{
	const struct oncpu_opts opts = {.rate_hz = RATE,
					.scope = scope,
					.kernel_stacks = true,
					.unwind = unwind,
					.thread_names = run->thread_names,
					.task_names = run->thread_names,
					.stack_dumps = unwind == SETTINGS_UNWIND_AUTO,
					.offcpu = unwind == SETTINGS_UNWIND_AUTO,
					.proc = &g->proc,
					.sys = &g->sys};
	const uint64_t before_ns = nsec_read(CLOCK_PROCESS_CPUTIME_ID);
	struct bpfobj_why why = {""};
	int r = oncpu_new(&opts, &why, &run->oc);

	run->load_cpu_ns = nsec_read(CLOCK_PROCESS_CPUTIME_ID) - before_ns;

	if (r >= 0 && opts.stack_dumps) {
		const struct bpfobj_stack_dumps dumps = oncpu_stack_dumps(run->oc);

		r = stack_dumps_new(&dumps, &run->dumps);
	}
	if (r < 0) {
		fail(g, "no sampler: %s (%s)", why.text, strerror(-r));
		return false;
	}
	run->child = burn_start(kind);
	if (scope == SETTINGS_SCOPE_PROCESSES &&
	    pid_filter_add(oncpu_pid_filter(run->oc), run->child))
		fail(g, "the child cannot be named");
	if (!burn(run))
		fail(g, "the child came to nothing");
	burn_end(run->child);
	if (oncpu_finish(run->oc, take, run) ||
	    (run->dumps && stack_dumps_drain(run->dumps, take_dump, run)))
		fail(g, "the last samples could not be read");
	check_counts(g, run);
	return true;
}

static void check_user(struct guest *g)
{
	struct run run = {0};

	puts("user stacks");
	if (!sample(g, BURN_USER, SETTINGS_SCOPE_ALL, SETTINGS_UNWIND_FP, &run))
		return;
	say(g, " samples=%" PRIu64 " right=%.1f%%", run.mine,
	    100.0 * (double)run.nested / (double)(run.mine ? run.mine : 1));
	/* An emulated machine's clock comes late, and then counts less. */
	if (run.mine < RATE / 40)
		fail(g, "%" PRIu64 " samples in half a second", run.mine);
	if (run.nested * 2 < run.mine || run.odd)
		fail(g, "%" PRIu64 " stacks right of %" PRIu64, run.nested, run.mine);
	oncpu_free(run.oc);
}

/* Load all programs, with all their parts. Long system calls: in short ones the kernel is hardly
 * ever interrupted at work. Interrupts are off on the way in and out, nearly all of an emulated
 * CPU's time, so a sample is taken at the end of one of these ways, in the kernel or behind it, and
 * which of them depends on the turns of QEMU's threads. */
static void check_kernel(struct guest *g)
{
	struct run run = {0};

	puts("kernel stacks, of one process alone");
	if (!sample(g, BURN_READ, SETTINGS_SCOPE_PROCESSES, SETTINGS_UNWIND_AUTO, &run))
		return;
	report_load(g, &run);
	if (run.all + run.dumped != run.mine)
		fail(g, "%" PRIu64 " samples of others", run.all + run.dumped - run.mine);
	say(g, " kernel_samples=%" PRIu64 " copied=%" PRIu64, run.in_kernel, run.dumped);
	if (!run.dumped)
		fail(g, "no stack was copied out");
	if (run.in_kernel * 2 < run.mine || run.odd)
		fail(g, "%" PRIu64 " stacks in the kernel of %" PRIu64, run.in_kernel, run.mine);
	stack_dumps_free(run.dumps);
	oncpu_free(run.oc);
}

/* Place and duration of a child's sleep: all of its time except its CPU time. The child's stop
 * before burn_go() may be one of the waits, so the longest time begins before the child does. */
static void let_sleep(struct guest *g, struct offcpu *off, struct run *run)
{
	uint64_t least_ns, most_ns; /* without the child's short CPU time */
	int r = 0;

	most_ns = nsec_monotonic();
	run->child = burn_start(BURN_SLEEP);
	burn_go(run->child);
	least_ns = nsec_monotonic();
	for (int i = 0; !r && i < 10; i++) {
		usleep(150000);
		r = offcpu_tick(off, take, run);
	}
	least_ns = nsec_monotonic() - least_ns;
	least_ns -= burn_end(run->child);
	most_ns = nsec_monotonic() - most_ns;
	if (r || offcpu_finish(off, take, run))
		fail(g, "the waits could not be read");
	say(g, " waits=%" PRIu64 " right=%.1f%% time=%.1f%%", run->mine,
	    100.0 * (double)run->nested / (double)(run->mine ? run->mine : 1),
	    100.0 * (double)run->away_ns / (double)least_ns);
	if (run->nested * 10 < run->mine * 9 || run->in_kernel != run->mine || run->odd)
		fail(g, "%" PRIu64 " stacks right of %" PRIu64, run->nested, run->mine);
	/* An emulated CPU delays the sleep, and is shared with this program. */
	if (run->away_ns * 10 < least_ns * 7 || run->away_ns > most_ns)
		fail(g, "away for %" PRIu64 " ns, not within %" PRIu64 " to %" PRIu64, run->away_ns,
		     least_ns * 7 / 10, most_ns);
}

/* All programs once more, with names of threads and tasks. */
static void check_thread_names(struct guest *g)
{
	struct run run = {.thread_names = true};
	struct bpfobj_runtime loaded;

	puts("names of threads");
	if (!sample(g, BURN_USER, SETTINGS_SCOPE_PROCESSES, SETTINGS_UNWIND_AUTO, &run))
		return;
	for (uint32_t i = FRAME_RUNTIME_NONE + 1; i < FRAME_RUNTIME_MAX; i++) {
		if (bpfobj_load_runtime(oncpu_object(run.oc), i, &loaded)) {
			printf("  %s\n", loaded.why);
			fail(g, "the kernel refuses a runtime with names of threads");
			continue;
		}
		bpfobj_runtime_deinit(&loaded);
	}
	say(g, " named=%" PRIu64, run.named);
	if (!run.dumped || !run.mine || run.named != run.mine)
		fail(g, "%" PRIu64 " of %" PRIu64 " samples have a name", run.named, run.mine);
	stack_dumps_free(run.dumps);
	oncpu_free(run.oc);
}

static void check_off_cpu(struct guest *g)
{
	const struct oncpu_opts opts = {.rate_hz = 1,
					.kernel_stacks = true,
					.unwind = SETTINGS_UNWIND_FP,
					.offcpu = true,
					.proc = &g->proc,
					.sys = &g->sys};
	struct bpfobj_why why = {""};
	struct offcpu *off = NULL;
	struct run run = {0};

	puts("time off the CPU");
	if (oncpu_new(&opts, &why, &run.oc) ||
	    offcpu_new(oncpu_object(run.oc), 1, UINT_MAX, &why, &off))
		fail(g, "no sampler: %s", why.text);
	else
		let_sleep(g, off, &run);
	offcpu_free(off);
	oncpu_free(run.oc);
}

/* ---------------------------------------------------------------- the program */

/* Run a program, with its output in @ret. Returns the exit status, or -1. */
static int run_program(char *const argv[], struct buf *ret)
{
	int ends[2], status, r;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	pid = fork();
	if (pid == 0) {
		dup2(ends[1], STDOUT_FILENO);
		execv(argv[0], argv);
		_exit(127);
	}
	close(ends[1]);
	r = root_read_fd(ends[0], ret);
	close(ends[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || r || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

/* The time in a function and its callees, from @profile in the form of 'inspect profile --json'. */
static double time_in(const json_t *profile, const char *function)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(json_object_get(profile, "top"), "cum"), i, row) {
		const char *name = json_string_value(json_object_get(row, "function"));

		if (name && strcmp(name, function) == 0)
			return json_number_value(json_object_get(row, "cum"));
	}
	return 0;
}

/* A program whose last argument is the seconds of CPU time that it takes, and its function @inner
 * with the caller @outer: their times in its profile. With @off_cpu the program waits for these
 * seconds instead. With @most the function must have more than half of the time. */
struct recorded {
	bool off_cpu, most;
	const char *program, *script; /* the program's first argument */
	const char *inner, *outer;
	double inner_ns, outer_ns;
};

/* 'podprof record' of the program, like a user. False without a profile. */
static bool record(struct guest *g, unsigned int cpu_s, struct buf *said, struct recorded *r)
{
	char file[] = "/tmp/podprof-guest.pb.gz", seconds[16];
	char *const record[] = {(char *)g->podprof,
				(char *)"record",
				(char *)"--off-cpu",
				(char *)(r->off_cpu ? "1" : "0"),
				(char *)"--output",
				file,
				(char *)"--",
				(char *)r->program,
				(char *)r->script,
				seconds,
				NULL};
	char *const inspect[] = {(char *)g->podprof,
				 (char *)"inspect",
				 (char *)"profile",
				 (char *)"--json",
				 (char *)"--sample-type",
				 (char *)(r->off_cpu ? "delay" : "cpu"),
				 (char *)"--top",
				 (char *)"0",
				 file,
				 NULL};
	json_t *profile;

	snprintf(seconds, sizeof(seconds), "%u", cpu_s);
	if (run_program(record, said))
		return false;
	buf_reset(said);
	if (run_program(inspect, said) || !said->data)
		return false;
	unlink(file);
	profile = json_loads(said->data, 0, NULL);
	r->inner_ns = time_in(profile, r->inner);
	r->outer_ns = time_in(profile, r->outer);
	json_decref(profile);
	return true;
}

static bool is_enough(const struct recorded *r, unsigned int cpu_s)
{
	return r->inner_ns >= ENOUGH_NS && r->outer_ns * 5 >= r->inner_ns &&
	       (!r->most || r->inner_ns * 2 > cpu_s * 1e9);
}

/* The unwind tables are made during the recording. An emulated CPU needs seconds for this, and only
 * later samples have callers. */
static void check_callers(struct guest *g, const char *what, struct recorded *r)
{
	_cleanup_(buf_deinit) struct buf said = BUF_INIT(1 << 20);
	const unsigned int most_s = r->most ? 10 : 100;
	unsigned int cpu_s = 3;

	while (record(g, cpu_s, &said, r) && !is_enough(r, cpu_s) && cpu_s < most_s) {
		buf_reset(&said);
		cpu_s *= 4;
	}
	say(g, " %s_ms=%.0f with_callers=%.1f%%", what, r->inner_ns / 1e6,
	    r->inner_ns > 0 ? 100.0 * r->outer_ns / r->inner_ns : 0);
	if (!is_enough(r, cpu_s))
		fail(g, "functions or callers are missing, in:\n%s",
		     said.data ? said.data : "nothing");
}

/* A program without frame pointers. */
static void check_record(struct guest *g)
{
	struct recorded r = {.program = g->self,
			     .script = "burn",
			     .inner = "plain_inner",
			     .outer = "plain_outer"};

	puts("podprof record");
	check_callers(g, "recorded", &r);
}

/* ---------------------------------------------------------------- language runtimes */

static void check_runtimes(struct guest *g)
{
	_cleanup_(buf_deinit) struct buf said = BUF_INIT(1 << 16);
	char *const runtimes[] = {(char *)g->runtimes, NULL};
	int r;

	puts("frames of a language runtime");
	r = run_program(runtimes, &said);
	if (r || !said.len)
		fail(g, "exits with %d: %.*s", r, (int)said.len, (const char *)said.data);
	else
		say(g, " runtime=%.*s", (int)said.len - 1, (const char *)said.data);
}

/* CPython and Node, where the guest has them. Children that end soon have no names but those that
 * come with their samples; a whole command takes longer to start on an emulated CPU than podprof to
 * know it. */
static void check_languages(struct guest *g)
{
	static const struct {
		const char *name, *program, *script;
		bool most;
	} rows[] = {{"python", PYTHON, "/burn.py", false},
		    {"children", PYTHON, "/children.py", true},
		    {"node", NODE, "/burn.js", false}};

	for (size_t i = 0; i < array_size(rows); i++) {
		struct recorded r = {.most = rows[i].most,
				     .program = rows[i].program,
				     .script = rows[i].script,
				     .inner = "inner",
				     .outer = "outer"};

		if (access(r.program, X_OK) || access(r.script, R_OK))
			continue;
		printf("podprof record of %s\n", rows[i].name);
		check_callers(g, rows[i].name, &r);
	}
}

/* The options of a way to run java, from the file with its name. They are in the environment,
 * because 8 takes no file of them. */
static bool set_java_options(const char *way)
{
	_cleanup_(buf_deinit) struct buf options = BUF_INIT(1 << 12);
	_cleanup_(root_deinit) struct root root = ROOT_INIT;

	if (root_open("/burn", &root) || root_read(&root, way, &options) || !options.len)
		return false;
	options.data[options.len - 1] = '\0'; /* the end of the line */
	return setenv("JAVA_TOOL_OPTIONS", (const char *)options.data, 1) == 0 &&
	       setenv("CLASSPATH", "/burn", 1) == 0;
}

/* Whether this OpenJDK knows the options. */
static bool takes_options(void)
{
	_cleanup_(buf_deinit) struct buf said = BUF_INIT(1 << 16);
	char *const version[] = {(char *)JAVA, (char *)"-version", NULL};

	return run_program(version, &said) == 0;
}

struct java_row {
	const char *way, *class;
	bool of_some; /* not every OpenJDK has this collector */
	const char *inner, *outer;
};

static void check_java_row(struct guest *g, const struct java_row *row)
{
	struct recorded r = {.off_cpu = strcmp(row->class, "Wait") == 0,
			     .program = JAVA,
			     .script = row->class,
			     .inner = row->inner,
			     .outer = row->outer};
	char what[32];

	printf("podprof record of Java, %s %s\n", row->way, row->class);
	if (!set_java_options(row->way)) {
		fail(g, "no options for Java, %s", row->way);
		return;
	}
	if (row->of_some && !takes_options()) {
		printf("this OpenJDK has no %s\n", row->way);
		return;
	}
	snprintf(what, sizeof(what), "%s%s", row->way, row->class);
	check_callers(g, what, &r);
	if (r.outer_ns * 100 < r.inner_ns * 99)
		fail(g, "of %.0f ms in Java's %s, %.0f have its caller", r.inner_ns / 1e6, r.inner,
		     r.outer_ns / 1e6);
}

#define JAVA_ROW(way, class, of_some)                                           \
	{                                                                       \
		way, class, of_some, class ".inner(long)", class ".outer(long)" \
	}

/* OpenJDK, where there is one for the guest: interpreted and with each compiler, at work, in waits,
 * in methods that an exception leaves, and called by code that is no longer valid; and with what
 * each garbage collector adds to code. */
static void check_java(struct guest *g)
{
	static const struct java_row rows[] = {
		JAVA_ROW("int", "Burn", false),
		JAVA_ROW("c1", "Burn", false),
		JAVA_ROW("c2", "Burn", false),
		JAVA_ROW("int", "Wait", false),
		JAVA_ROW("c1", "Wait", false),
		JAVA_ROW("c2", "Wait", false),
		JAVA_ROW("int", "Throw", false),
		JAVA_ROW("c1", "Throw", false),
		JAVA_ROW("c2", "Throw", false),
		{"c1", "Deopt", false, "Deopt$Turn.inner(long)", "Deopt$Turn.outer(long)"},
		{"c2", "Deopt", false, "Deopt$Turn.inner(long)", "Deopt$Turn.outer(long)"},
		JAVA_ROW("parallel", "Heap", false),
		JAVA_ROW("g1", "Heap", false),
		JAVA_ROW("shenandoah", "Heap", true),
		JAVA_ROW("z", "Heap", true),
	};

	for (size_t i = 0; i < array_size(rows) && access(JAVA, X_OK) == 0; i++)
		check_java_row(g, &rows[i]);
}

/* ---------------------------------------------------------------- doctor */

/* An expected finding of 'podprof doctor'. */
struct verdict {
	const char *check;
	const char *outcomes[2]; /* one of these outcomes */
	const char *found;	 /* a part of the finding */
	bool seen;
};

static const char *string_of(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

static bool is_one_of(const char *s, const char *const of[2])
{
	return strcmp(s, of[0]) == 0 || (of[1] && strcmp(s, of[1]) == 0);
}

static void check_line(struct guest *g, const char *line, struct verdict *verdicts, size_t n)
{
	json_t *finding = json_loads(line, 0, NULL);
	const char *found = string_of(finding, "found"), *check = string_of(finding, "check");

	for (size_t i = 0; i < n; i++) {
		if (strcmp(check, verdicts[i].check) != 0)
			continue;
		verdicts[i].seen = true;
		if (!is_one_of(string_of(finding, "outcome"), verdicts[i].outcomes) ||
		    !strstr(found, verdicts[i].found))
			fail(g, "doctor is wrong: %s", line);
	}
	json_decref(finding);
}

/* doctor loads the agent's programs, with all rights and on a supported kernel. */
static void check_doctor(struct guest *g, const char *release)
{
	_cleanup_(buf_deinit) struct buf said = BUF_INIT(1 << 20);
	char *const doctor[] = {(char *)g->podprof, (char *)"doctor", (char *)"--json", NULL};
	unsigned int major = 0, minor = 0;
	const bool loops = sscanf(release, "%u.%u", &major, &minor) == 2 &&
			   (major > 5 || (major == 5 && minor >= 17));
	char version[32];
	struct verdict verdicts[] = {
		{"capabilities", {"ok"}, "BPF PERFMON", false},
		{"kernel", {"ok"}, version, false},
		{"BTF", {"ok"}, "", false},
		{"CPU profiles",
		 {loops ? "ok" : "degraded"},
		 loops ? "on the CPUs" : "in parts",
		 false},
		{"cgroups", {"ok", "degraded"}, "version ", false},
		{"kernel symbols", {"ok"}, "", false},
	};
	struct strview lines, line;

	puts("podprof doctor");
	snprintf(version, sizeof(version), "Linux %u.%u.", major, minor);
	if (run_program(doctor, &said) < 0 || !said.data) {
		fail(g, "doctor says nothing");
		return;
	}
	lines = strview_of_bytes(said.data, said.len);
	while (strview_line(&lines, &line)) {
		_cleanup_(freep) char *s = strview_dup(line);

		check_line(g, s ? s : "", verdicts, array_size(verdicts));
		puts(s ? s : "");
	}
	for (size_t i = 0; i < array_size(verdicts); i++)
		if (!verdicts[i].seen)
			fail(g, "doctor does not tell of %s", verdicts[i].check);
}

/* 'podprof inspect targets' has us among the processes. */
static void check_targets(struct guest *g)
{
	_cleanup_(buf_deinit) struct buf said = BUF_INIT(1 << 20);
	char *const targets[] = {(char *)g->podprof, (char *)"inspect", (char *)"targets", NULL};
	char us[48] = "", comm[16] = "";

	puts("podprof inspect targets");
	prctl(PR_GET_NAME, comm);
	snprintf(us, sizeof(us), " %d %s", (int)getpid(), comm);
	if (run_program(targets, &said) || !said.data || !strstr(said.data, us))
		fail(g, "there is no%s in\n%s", us, said.data ? said.data : "nothing");
}

/* ---------------------------------------------------------------- entities */

static void check_entities(struct guest *g)
{
	struct entities_seen seen;

	puts("entities");
	entities_check(&g->proc, &g->sys, &seen);
	say(g, " entities%s%s%s=%" PRIu64, seen.v2 ? "_v2" : "", seen.v1 ? "_" : "",
	    seen.v1 ? controller_name(seen.v1) : "", seen.right);
	if (seen.failed)
		fail(g, "entities: %s", seen.failed);
	if (seen.wrong || seen.unknown)
		fail(g, "%" PRIu64 " samples went to others, %" PRIu64 " to nobody, of %" PRIu64,
		     seen.wrong, seen.unknown, seen.right + seen.wrong + seen.unknown);
}

/* A node has version 2 alone, version 1 alone, or both as the machine this was built on may. */
static void check_all_entities(struct guest *g, bool first)
{
	check_entities(g);
	if (!first)
		return;
	if (entities_mount_v1())
		check_entities(g);
	else
		puts("no cgroups of version 1");
}

/* ---------------------------------------------------------------- as first process */

static int bring_up_loopback(void)
{
	_cleanup_(close_fdp) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

	return ioctl(fd, SIOCSIFFLAGS, &request);
}

static void set_up(void)
{
	static const struct {
		const char *type, *at;
	} mounts[] = {
		{"proc", "/proc"},
		{"sysfs", "/sys"},
		{"cgroup2", "/sys/fs/cgroup"},
		{"devtmpfs", "/dev"},
		{"tracefs", "/sys/kernel/tracing"},
		{"securityfs", "/sys/kernel/security"},
		{"tmpfs", "/tmp"},
	};

	for (size_t i = 0; i < array_size(mounts); i++) {
		mkdir(mounts[i].at, 0755);
		if (mount(mounts[i].type, mounts[i].at, mounts[i].type, 0, NULL))
			printf("no %s: %s\n", mounts[i].at, strerror(errno));
	}
	if (bring_up_loopback())
		printf("no loopback: %s\n", strerror(errno));
	setenv("PATH", "/bin", 1);
	setenv("HOME", "/tmp", 1);
}

/* Seconds of CPU time from now on. */
static int burn_plain(const char *seconds)
{
	const uint64_t cpu_ns = strtoull(seconds, NULL, 10) * NSEC_PER_SEC;

	return plain_outer(nsec_read(CLOCK_PROCESS_CPUTIME_ID) + cpu_ns) == 0;
}

int main(int argc, char **argv)
{
	const bool first = getpid() == 1;
	struct guest g = {.podprof = argc > 1 ? argv[1] : "/bin/podprof",
			  .runtimes = argc > 2 ? argv[2] : "/bin/runtimes",
			  .self = argv[0]};
	struct utsname name;

	if (argc > 1 && strcmp(argv[1], "burn") == 0)
		return burn_plain(argc > 2 ? argv[2] : "1");

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (first)
		set_up();
	uname(&name);
	if (root_open("/proc", &g.proc) || root_open("/sys", &g.sys)) {
		fail(&g, "no /proc or no /sys");
	} else {
		check_user(&g);
		check_kernel(&g);
		check_thread_names(&g);
		check_off_cpu(&g);
		check_record(&g);
		check_runtimes(&g);
		check_languages(&g);
		check_java(&g);
		check_doctor(&g, name.release);
		check_targets(&g);
		check_all_entities(&g, first);
	}
	printf("RESULT %s kernel=%s%s\n", g.failed ? "failed" : "ok", name.release, g.line);
	if (first) {
		sync();
		reboot(RB_POWER_OFF);
	}
	return g.failed;
}
