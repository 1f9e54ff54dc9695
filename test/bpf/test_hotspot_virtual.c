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

#include "base/loop.h"
#include "base/nsec.h"
#include "cpu/report.h"
#include "procmap/address_space.h"
#include "runtimes/runtimes.h"
#include "shared/sample.h"
#include "support/javas.h"
#include "support/sampling.h"
#include "support/until.h"

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
	struct sampling on;
	struct goprocess process;
	uint64_t n;	    /* samples of the program's functions */
	uint64_t n_frozen;  /* ... with frozen frames */
	uint64_t n_partial; /* ... some of the program's */
	uint64_t n_mounted; /* ... of a virtual thread */
	uint64_t cut;
	uint64_t odd;
	bool ended; /* no more names can be read */
};

/* Of the carrier, outermost first. */
static const char *const carrier[] = {
	"java.util.concurrent.ForkJoinWorkerThread.run(",
	"java.lang.VirtualThread.runContinuation(",
	"jdk.internal.vm.Continuation.run(",
};

#define ENTER  "jdk.internal.vm.Continuation.enterSpecial("
#define FROZEN "(frozen frames)"

static const char *name_of(const struct image *image)
{
	return image->kind == IMAGE_RUNTIME && image->function.name ? image->function.name : "";
}

static bool starts(const char *name, const char *with)
{
	return strncmp(name, with, strlen(with)) == 0;
}

#define NAMES_MAX (CPU_STACK_FRAMES_MAX * 4)

/* The functions of a stack, outermost first, with the inlined ones; "" is another frame. */
static size_t list_names(const struct cpu_stack *stack, const char *ret[NAMES_MAX])
{
	size_t n = 0;

	for (size_t i = stack->n; i-- > 0;) {
		const struct image *image = stack->frames[i].image;

		assert_true(n + image->n_places + 1 <= NAMES_MAX);
		if (!image->n_places)
			ret[n++] = name_of(image);
		for (size_t k = image->n_places; k-- > 0;)
			ret[n++] = name_of(image->places[k].image);
	}
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
	const char *names[NAMES_MAX];
	struct bench *b = ctx;
	size_t n;

	if (b->ended || sample->pid.pid != b->process.id.pid || !sample->n_runtime ||
	    sample->end == SAMPLE_END_NO_TABLE)
		return;
	assert_int_equal(cpu_sampler_resolve(b->on.sampler, sample, &stack), 0);
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

static bool is_forgotten(void *ctx)
{
	struct bench *b = ctx;

	return sampling_forgot(&b->on, FRAME_RUNTIME_HOTSPOT, (pid_t)b->process.id.pid);
}

static void run(struct bench *b, const struct javas *javas, const char *path,
		const struct mode *mode)
{
	javas_run(javas, path, mode->options, "Virtual", NULL, &b->process);
	assert_int_equal(sampling_open(&b->on), 0);
	sampling_start(&b->on, (struct cpu_sampler_opts){
				       .rate_hz = RATE,
				       .scope = SETTINGS_SCOPE_PROCESSES,
				       .interval_ns = 100 * NSEC_PER_MSEC,
				       .fn = take,
				       .ctx = b,
			       });
	sampling_want(&b->on, (pid_t)b->process.id.pid);
	loop_until(b->on.loop, enough, b);
	b->ended = true;
	goprocess_stop(&b->process);
	loop_until(b->on.loop, is_forgotten, b);
	cpu_sampler_finish(b->on.sampler);
	print_message("%s, %s: %" PRIu64 " samples, %" PRIu64 " of virtual threads, %" PRIu64
		      " with frozen frames, %" PRIu64 " with frozen ones of the program, %" PRIu64
		      " cut, %" PRIu64 " odd\n",
		      path, mode->name, b->n, b->n_mounted, b->n_frozen, b->n_partial, b->cut,
		      b->odd);
	sampling_close(&b->on);
}

static void check(const struct bench *b)
{
	/* One sample of some 10,000 has leaf() below too few deep(): at the place of interruption,
	 * the compiled deep() has no debug information, and the next one in its code is that of
	 * leaf(), inlined (docs/design/hotspot.md, "next"). */
	assert_true(b->odd * 200 <= b->n);
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
