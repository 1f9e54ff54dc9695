// SPDX-License-Identifier: Apache-2.0
/*
 * Frames of virtual threads of each Java virtual machine of this machine.
 * test/data/java/Virtual.java waits below many calls, so the virtual machine moves frames to the
 * heap of objects, and moves them back one after the other when it returns to them. A stack must
 * have the functions that have not returned, or the outer ones are one frame with the name for
 * frozen frames; the frames of the carrier thread follow. Before 21, the program uses a thread
 * without frozen frames.
 */
#include "support/test.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/report.h"
#include "procmap/address_space.h"
#include "runtimes/runtimes.h"
#include "shared/sample.h"
#include "support/javas.h"
#include "support/javasampling.h"

#define RATE  997
#define WANT  250
/* Virtual.DEPTH. */
#define DEPTH 60

struct mode {
	const char *name;
	const char *options[3];
};

static const struct mode modes[] = {
	{"interpreted", {"-Xint"}},
	{"without inlining", {"-XX:-Inline"}},
	{"defaults", {NULL}},
};

struct bench {
	struct javasampling js;
	uint64_t n;	    /* samples of the program's functions */
	uint64_t n_frozen;  /* ... with frozen frames */
	uint64_t n_partial; /* ... some of the program's */
	uint64_t n_mounted; /* ... of a virtual thread */
	uint64_t cut;
	uint64_t odd;
};

/* Of the carrier, outermost first. */
static const char *const carrier[] = {
	"java.util.concurrent.ForkJoinWorkerThread.run(",
	"java.lang.VirtualThread.runContinuation(",
	"jdk.internal.vm.Continuation.run(",
};

#define ENTER  "jdk.internal.vm.Continuation.enterSpecial("
#define FROZEN "(frozen frames)"

static bool starts(const char *name, const char *with)
{
	return strncmp(name, with, strlen(with)) == 0;
}

/* The names of a stack's functions, outermost first; "" is another frame. Without those that are a
 * guess: the place of interruption can lack debug information, and then the next one in the code is
 * that of another function inlined there (docs/design/hotspot.md, "next"). */
static size_t list_names(const struct cpu_stack *stack, const char *ret[JAVA_CALLED_MAX])
{
	struct java_called called[JAVA_CALLED_MAX];
	const size_t n_all = javasampling_called(stack, called);
	size_t n = 0;

	for (size_t i = 0; i < n_all; i++)
		if (!called[i].is_guess)
			ret[n++] = called[i].name;
	return n;
}

/* The place of a function behind @from, or @n. */
static size_t find(const char *const *names, size_t n, size_t from, const char *want)
{
	while (from < n && !starts(names[from], want))
		from++;
	return from;
}

/* Whether the program's functions are a part of turns(), deep() 60 times, leaf(), burn(), from
 * names[*@at] on; from turns() on if @whole. */
static bool is_chain(const char *const *names, size_t n, size_t at, bool whole)
{
	size_t deep = 0;

	if (whole && (at == n || !starts(names[at++], "Virtual.turns(")))
		return false;
	for (; at < n && starts(names[at], "Virtual.deep("); at++)
		deep++;
	if (deep > DEPTH)
		return false;
	if (at < n && starts(names[at], "Virtual.leaf(")) {
		if (whole && deep != DEPTH)
			return false;
		at++;
	}
	if (at < n && starts(names[at], "Virtual.burn("))
		at++;
	for (; at < n; at++) /* the library's functions, and native ones */
		if (starts(names[at], "Virtual."))
			return false;
	return true;
}

/* Whether the frames outside of the program's are those of a carrier. */
static bool is_carried(const char *const *names, size_t n, size_t *ret)
{
	size_t at = 0;

	for (size_t i = 0; i < array_size(carrier); i++)
		at = find(names, n, at, carrier[i]);
	*ret = at + 1;
	return at + 1 < n;
}

static bool is_right(struct bench *b, const char *const *names, size_t n, uint64_t count)
{
	size_t at, first = find(names, n, 0, "Virtual.");

	if (find(names, n, 0, carrier[0]) == n) /* no carrier */
		return find(names, n, 0, FROZEN) == n && is_chain(names, n, first, true);
	if (!is_carried(names, n, &at))
		return false;
	b->n_mounted += count;
	if (strcmp(names[at], FROZEN) == 0) {
		b->n_frozen += count;
		b->n_partial += starts(names[first], "Virtual.t") ? 0 : count;
		return first == at + 1 &&
		       is_chain(names, n, first, starts(names[first], "Virtual.t"));
	}
	return starts(names[at], ENTER) && is_chain(names, n, first, true);
}

static void show(uint32_t end, const char *const *names, size_t n)
{
	print_message("end %u:", end);
	for (size_t i = 0; i < n; i++)
		print_message(" %s;", *names[i] ? names[i] : "-");
	print_message("\n");
}

static void take(void *ctx, const struct sample *sample)
{
	struct cpu_stack stack = {.n = 0};
	const char *names[JAVA_CALLED_MAX];
	struct bench *b = ctx;
	size_t n;

	if (b->js.ended || sample->pid.pid != b->js.process.id.pid || !sample->n_runtime ||
	    sample->end == SAMPLE_END_NO_TABLE)
		return;
	assert_int_equal(cpu_sampler_resolve(b->js.on.sampler, sample, &stack), 0);
	n = list_names(&stack, names);
	if (find(names, n, 0, "Virtual.") < n && find(names, n, 0, "Virtual.main(") == n) {
		b->n += sample->count;
		if (sample->end != SAMPLE_END_COMPLETE) {
			b->cut += sample->count;
			show(sample->end, names, n);
		} else if (!is_right(b, names, n, sample->count)) {
			b->odd += sample->count;
			show(sample->end, names, n);
		}
	}
	cpu_stack_deinit(&stack);
}

static bool enough(void *ctx)
{
	const struct bench *b = ctx;

	return b->n >= WANT;
}

static void run(struct bench *b, const struct javas *javas, const char *path,
		const struct mode *mode)
{
	const struct javasampling_program program = {javas, path, mode->options, "Virtual", NULL};

	javasampling_run(&b->js, &program,
			 (struct cpu_sampler_opts){.rate_hz = RATE, .fn = take, .ctx = b}, enough);
	print_message("%s, %s: %" PRIu64 " samples, %" PRIu64 " of virtual threads, %" PRIu64
		      " with frozen frames, %" PRIu64 " with frozen ones of the program, %" PRIu64
		      " cut, %" PRIu64 " odd\n",
		      path, mode->name, b->n, b->n_mounted, b->n_frozen, b->n_partial, b->cut,
		      b->odd);
	sampling_close(&b->js.on);
}

static void check(const struct bench *b)
{
	assert_int_equal(b->odd, 0);
	assert_true(b->cut * 100 <= b->n);
	assert_true(b->n_mounted == 0 || b->n_mounted + b->cut == b->n);
}

static void test_virtual(void **state)
{
	uint64_t n_mounted = 0, n_partial = 0;
	struct javas javas;

	(void)state;
	javas_find(&javas);
	for (size_t i = 0; i < javas.n; i++)
		for (size_t k = 0; k < array_size(modes); k++) {
			struct bench b = {.n = 0};

			run(&b, &javas, javas.paths[i], &modes[k]);
			check(&b);
			n_mounted += b.n_mounted;
			n_partial += b.n_partial;
		}
	javas_deinit(&javas);
	/* the frames of deep() are more than the virtual machine moves at once */
	assert_true(n_partial * 10 >= n_mounted && n_partial * 10 <= n_mounted * 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_virtual),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
