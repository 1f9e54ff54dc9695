// SPDX-License-Identifier: Apache-2.0
/*
 * Short-lived processes: 200 a second, /bin/true and a program of 2 ms in turns. Measures the
 * delivered share of the timer's samples in these processes, with names and quality of stacks. Only
 * these processes are sampled, so other load is in none of the numbers except the CPU time: the
 * kernel sends events of all processes.
 *
 *   bench_short [SECONDS [RATE]]     (20 97)
 */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "base/root.h"
#include "cpu/sampler.h"
#include "profile/oncpu.h"
#include "profile/pid_filter.h"
#include "shared/sample.h"
#include "support/figure.h"
#include "symbolize/symbolizer.h"

#define PER_SECOND "200"

struct counts {
	uint64_t n;	    /* samples */
	uint64_t right;	    /* in a file of the program or its libraries */
	uint64_t user;	    /* taken in user mode */
	uint64_t whole;	    /* complete stacks among these */
	uint64_t named;	    /* among these, with a function or a file offset for each frame */
	uint64_t by_symbol; /* among these, each frame in the program itself by symbol */
};

struct bench {
	struct root proc, sys;
	struct loop *loop;
	struct cpu_sampler *sampler;
	struct symbolizer *symbolizer;
	pid_t spawner;
	struct counts programs[2];
	uint64_t n_before; /* samples of children before their exec */
};

static const char *const names[2] = {"true", "short"};

static void fail(const char *what)
{
	fprintf(stderr, "bench_short: %s\n", what);
	exit(1);
}

static bool is_right(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');

	return strcmp(slash ? slash + 1 : path, name) == 0 || strstr(path, "/libc.so") ||
	       strstr(path, "/libc-") || strstr(path, "/ld-") || strcmp(path, "[vdso]") == 0;
}

static void look(struct bench *b, struct counts *c, const char *name, const struct sample *sample,
		 const struct cpu_stack *stack)
{
	bool named = true, by_symbol = true, right = true;

	c->n += sample->count;
	for (size_t i = sample->n_kernel; i < stack->n; i++) {
		struct frame frame = stack->frames[i];
		struct symbol symbol;

		frame.vaddr -= stack->return_address[i];
		if (symbolizer_find(b->symbolizer, &frame, &symbol))
			fail("no memory");
		right &= is_right(frame.image->path, name);
		named &= frame.image->file != NULL;
		by_symbol &= symbol.found || strcmp(image_name(frame.image), name) != 0;
	}
	symbolizer_release(b->symbolizer);
	c->right += right ? sample->count : 0;
	if (sample->n_kernel)
		return;
	c->user += sample->count;
	if (sample->end != SAMPLE_END_COMPLETE)
		return;
	c->whole += sample->count;
	c->named += named ? sample->count : 0;
	c->by_symbol += by_symbol ? sample->count : 0;
}

static void take(void *ctx, const struct sample *sample)
{
	struct cpu_stack stack = {.n = 0};
	struct bench *b = ctx;
	size_t which = strcmp(sample->comm, names[1]) == 0;

	if (sample->pid.pid == (uint64_t)b->spawner)
		return;
	if (strcmp(sample->comm, "spawner") == 0) {
		b->n_before += sample->count;
		return;
	}
	if (cpu_sampler_resolve(b->sampler, sample, &stack))
		fail("no memory");
	look(b, &b->programs[which], names[which], sample, &stack);
	cpu_stack_deinit(&stack);
}

static void start_sampler(struct bench *b, unsigned int rate_hz)
{
	const struct cpu_sampler_opts opts = {
		.loop = b->loop,
		.proc = &b->proc,
		.sys = &b->sys,
		.rate_hz = rate_hz,
		.scope = SETTINGS_SCOPE_PROCESSES,
		.kernel_stacks = true,
		.interval_ns = NSEC_PER_SEC,
		.fn = take,
		.ctx = b,
	};
	struct bpfobj_why why = {""};

	if (cpu_sampler_new(&opts, &why, &b->sampler))
		fail(why.text);
}

/* build/test/fixtures/short, from build/test/bench/bench_short. */
static const char *short_path(char ret[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 32);

	if (n < 0)
		fail("no /proc");
	ret[n] = '\0';
	strcpy(strstr(ret, "/bench/") ? strstr(ret, "/bench/") : ret + n, "/fixtures/short");
	if (access(ret, X_OK) < 0)
		fail("no build/test/fixtures/short");
	return ret;
}

/* Stopped until selected. */
static void start_spawner(struct bench *b, const char *seconds)
{
	char buf[PATH_MAX];
	const char *path = short_path(buf);

	b->spawner = fork();
	if (b->spawner == 0) {
		raise(SIGSTOP);
		execl(path, "spawner", "spawn", PER_SECOND, seconds, "/bin/true", path, NULL);
		_exit(127);
	}
	waitpid(b->spawner, NULL, WUNTRACED);
	if (pid_filter_add(oncpu_pid_filter(cpu_sampler_oncpu(b->sampler)), b->spawner))
		fail("cannot follow the programs");
	kill(b->spawner, SIGCONT);
}

static void on_child(void *ctx, int signo)
{
	struct bench *b = ctx;

	(void)signo;
	if (waitpid(b->spawner, NULL, WNOHANG) == b->spawner)
		loop_stop(b->loop);
}

/* Of all samples of the timer, and the lost ones. */
static void show_taken(const struct bench *b, uint64_t cpu_ns, uint64_t wall_ns)
{
	uint64_t stats[SAMPLE_STAT_MAX], taken = 0, delivered = 0;

	if (oncpu_stats(cpu_sampler_oncpu(b->sampler), stats, SAMPLE_STAT_MAX))
		fail("no statistics");
	for (unsigned int i = 0; i < SAMPLE_STAT_MAX; i++) {
		bool own = i != SAMPLE_STAT_OUTSIDE && i != SAMPLE_STAT_FILTERED &&
			   i != SAMPLE_STAT_IDLE;

		taken += own ? stats[i] : 0;
		delivered += sample_stat_delivered(i) ? stats[i] : 0;
	}
	printf("short: %llu samples taken, %llu handed over; %llu of children before their exec\n",
	       (unsigned long long)taken, (unsigned long long)delivered,
	       (unsigned long long)b->n_before);
	printf("short: sampler's CPU %.2f %% of one, with the events of all processes\n",
	       100 * (double)cpu_ns / (double)wall_ns);
	figure(100 * (double)cpu_ns / (double)wall_ns, "%", "sampler's CPU");
}

static double percent(uint64_t part, uint64_t of)
{
	return of ? 100 * (double)part / (double)of : 0;
}

static void show(const char *name, const struct counts *c)
{
	printf("short: %s: %llu samples, %.1f %% all in its own files; %llu in user mode: %.1f %% "
	       "whole, %.1f %% with a place in a file for each frame, %.1f %% with a symbol for "
	       "each of the program's own\n",
	       name, (unsigned long long)c->n, percent(c->right, c->n), (unsigned long long)c->user,
	       percent(c->whole, c->user), percent(c->named, c->user),
	       percent(c->by_symbol, c->user));
}

int main(int argc, char **argv)
{
	static struct bench b;
	const struct symbolizer_opts symbols = {.proc = &b.proc, .cache_bytes = 32u << 20};
	const char *seconds = argc > 1 ? argv[1] : "20";
	struct loop_source *child;
	uint64_t cpu_ns, wall_ns;

	if (root_open("/proc", &b.proc) || root_open("/sys", &b.sys) || loop_new(&b.loop) ||
	    symbolizer_new(&symbols, &b.symbolizer) ||
	    loop_add_signal(b.loop, SIGCHLD, on_child, &b, &child))
		fail("cannot begin");
	start_sampler(&b, argc > 2 ? (unsigned int)atoi(argv[2]) : 97);
	start_spawner(&b, seconds);
	cpu_ns = nsec_read(CLOCK_PROCESS_CPUTIME_ID);
	wall_ns = nsec_monotonic();
	(void)loop_run(b.loop);
	cpu_ns = nsec_read(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
	wall_ns = nsec_monotonic() - wall_ns;
	cpu_sampler_finish(b.sampler);
	show_taken(&b, cpu_ns, wall_ns);
	for (size_t i = 0; i < 2; i++)
		show(names[i], &b.programs[i]);
	cpu_sampler_free(b.sampler);
	symbolizer_free(b.symbolizer);
	loop_free(b.loop);
	root_deinit(&b.proc);
	root_deinit(&b.sys);
	return 0;
}
