// SPDX-License-Identifier: Apache-2.0
#include "support/javasampling.h"

#include "base/loop.h"
#include "base/nsec.h"
#include "procmap/address_space.h"
#include "runtimes/runtimes.h"
#include "shared/sample.h"
#include "support/test.h"
#include "support/until.h"

/* Whether the walker has no record of the process's virtual machine. */
static bool is_forgotten(void *ctx)
{
	struct javasampling *js = ctx;

	return sampling_forgot(&js->on, FRAME_RUNTIME_HOTSPOT, (pid_t)js->process.id.pid);
}

void javasampling_run(struct javasampling *js, const struct javasampling_program *program,
		      struct cpu_sampler_opts opts, bool (*enough)(void *ctx))
{
	javas_run(program->javas, program->path, program->options, program->name, program->arg,
		  &js->process);
	assert_int_equal(sampling_open(&js->on), 0);
	opts.scope = SETTINGS_SCOPE_PROCESSES;
	opts.interval_ns = 100 * NSEC_PER_MSEC;
	sampling_start(&js->on, opts);
	sampling_load(&js->on, FRAME_RUNTIME_HOTSPOT);
	sampling_want(&js->on, (pid_t)js->process.id.pid);
	loop_until(js->on.loop, enough, opts.ctx);
	assert_false(is_forgotten(js));
	js->ended = true;
	goprocess_stop(&js->process);
	loop_until(js->on.loop, is_forgotten, js);
	cpu_sampler_finish(js->on.sampler);
}

/* Whether a frame was interrupted, and is not in a call. */
static bool is_innermost(const struct cpu_stack *stack, size_t i)
{
	while (i-- > 0)
		if (stack->frames[i].image->kind != IMAGE_KERNEL)
			return false;
	return true;
}

static struct java_called called_of(const struct frame *frame)
{
	const struct image *image = frame->image;

	if (image->kind != IMAGE_RUNTIME || !image->function.name)
		return (struct java_called){.name = "", .file = ""};
	return (struct java_called){.name = image->function.name,
				    .file = image->function.file,
				    .line = (uint32_t)frame->vaddr};
}

size_t javasampling_called(const struct cpu_stack *stack, struct java_called ret[JAVA_CALLED_MAX])
{
	size_t n = 0;

	for (size_t i = stack->n; i-- > 0;) {
		const struct frame *frame = &stack->frames[i];
		const struct frame *places = frame->image->n_places ? frame->image->places : frame;
		const size_t n_places = frame->image->n_places ? frame->image->n_places : 1;
		const bool innermost = is_innermost(stack, i);

		assert_true(n + n_places <= JAVA_CALLED_MAX);
		for (size_t k = n_places; k-- > 0;) {
			ret[n] = called_of(&places[k]);
			ret[n].is_guess = innermost && k != n_places - 1;
			ret[n++].line_is_guess = innermost;
		}
	}
	return n;
}
