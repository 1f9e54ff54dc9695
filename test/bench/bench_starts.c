// SPDX-License-Identifier: Apache-2.0
/*
 * Samples of a command and its descendants, as the agent takes them: a line of text for each
 * distinct stack. starts.py starts programs of language runtimes and reads the lines.
 *
 *   bench_starts COMMAND ...
 */
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

/* As the agent's (cpu/profiler.c). */
#define INTERVAL_NS NSEC_PER_SEC
#define IDLE_NS	    (3 * NSEC_PER_SEC)
#define RATE	    97

struct bench {
	struct root proc, sys;
	struct loop *loop;
	struct cpu_sampler *sampler;
	pid_t child;
};

static void fail(const char *what)
{
	fprintf(stderr, "bench_starts: %s\n", what);
	exit(1);
}

static const struct image_function *function_of(const struct frame *frame)
{
	const struct image *image =
		frame->image->n_places ? frame->image->places[0].image : frame->image;

	return image->kind == IMAGE_RUNTIME || image->kind == IMAGE_BROKEN ? &image->function
									   : NULL;
}

/* The function of an age: a0, a1 ... */
static int age_of(const char *name)
{
	const char *dot = strrchr(name, '.');
	int age = -1;

	if (dot)
		name = dot + 1;
	return sscanf(name, "a%d", &age) == 1 ? age : -1;
}

static void take(void *ctx, const struct sample *sample)
{
	struct cpu_stack stack = {.n = 0};
	const struct image_function *innermost = NULL;
	struct bench *b = ctx;
	size_t n_named = 0, n_unnamed = 0;
	int age = -1;

	if (cpu_sampler_resolve(b->sampler, sample, &stack))
		fail("no memory");
	for (size_t i = 0; i < stack.n; i++) {
		const struct frame *frame = &stack.frames[i];
		const size_t n = frame->image->n_places ? frame->image->n_places : 1;
		const struct image_function *f = function_of(frame);

		if (!f)
			continue;
		if (!innermost)
			innermost = f;
		*(f->name[0] == '[' ? &n_unnamed : &n_named) += 1;
		for (size_t k = 0; k < n && age < 0; k++)
			age = age_of(frame->image->n_places
					     ? frame->image->places[k].image->function.name
					     : f->name);
	}
	printf("%llu\t%s\t%s\t%llu\t%u\t%zu\t%zu\t%zu\t%zu\t%d\t%s\n",
	       (unsigned long long)sample->pid.pid, sample->comm, stack.thread,
	       (unsigned long long)sample->count, sample->end, sample->n_user, sample->n_runtime,
	       n_named, n_unnamed, age, innermost ? innermost->name : "");
	cpu_stack_deinit(&stack);
}

static void on_child(void *ctx, int signo)
{
	struct bench *b = ctx;

	(void)signo;
	if (waitpid(b->child, NULL, WNOHANG) == b->child)
		loop_stop(b->loop);
}

int main(int argc, char **argv)
{
	static struct bench b;
	const struct cpu_sampler_opts opts = {
		.loop = NULL,
		.proc = &b.proc,
		.sys = &b.sys,
		.rate_hz = RATE,
		.scope = SETTINGS_SCOPE_PROCESSES,
		.kernel_stacks = true,
		.thread_names = true,
		.interval_ns = INTERVAL_NS,
		.idle_ns = IDLE_NS,
		.fn = take,
		.ctx = &b,
	};
	struct cpu_sampler_opts o = opts;
	struct bpfobj_why why = {""};
	struct loop_source *child;
	uint64_t cpu_ns, wall_ns;

	if (argc < 2)
		fail("no command");
	if (root_open("/proc", &b.proc) || root_open("/sys", &b.sys) || loop_new(&b.loop) ||
	    loop_add_signal(b.loop, SIGCHLD, on_child, &b, &child))
		fail("cannot begin");
	o.loop = b.loop;
	if (cpu_sampler_new(&o, &why, &b.sampler))
		fail(why.text);
	b.child = fork();
	if (b.child == 0) {
		sigset_t none;

		sigemptyset(&none);
		raise(SIGSTOP);
		sigprocmask(SIG_SETMASK, &none, NULL);
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	waitpid(b.child, NULL, WUNTRACED);
	if (pid_filter_add(oncpu_pid_filter(cpu_sampler_oncpu(b.sampler)), b.child))
		fail("cannot follow the programs");
	kill(b.child, SIGCONT);
	cpu_ns = nsec_read(CLOCK_PROCESS_CPUTIME_ID);
	wall_ns = nsec_monotonic();
	(void)loop_run(b.loop);
	cpu_sampler_finish(b.sampler);
	cpu_ns = nsec_read(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
	wall_ns = nsec_monotonic() - wall_ns;
	printf("cpu\t%.1f\t%.1f\n", (double)cpu_ns / 1e6, (double)wall_ns / 1e6);
	cpu_sampler_free(b.sampler);
	loop_free(b.loop);
	root_deinit(&b.proc);
	root_deinit(&b.sys);
	return 0;
}
