/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_LOOP_H
#define PODPROF_BASE_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nsec.h"

/*
 * The event loop: descriptors, timers and signals over epoll. The loop's thread owns all mutable
 * state. Callbacks may add and remove any source, including their own.
 */

struct loop;
struct loop_source;
struct metric_sink;

/* Names of callbacks; the code has some thirty. Reached: the others are counted as "other". */
#define LOOP_NAMES_MAX 64
/* Nanoseconds from the start of a turn: afterwards each source of steps makes one step only. */
#define LOOP_SLICE_NS  (4 * NSEC_PER_MSEC)

int loop_new(struct loop **ret);
/* Frees the remaining sources. Their descriptors stay open, except descriptors made by the loop. */
void loop_free(struct loop *loop);

/* Replaces LOOP_SLICE_NS. 0: each source makes one step a turn. */
void loop_set_slice(struct loop *loop, uint64_t slice_ns);

/* Run until loop_stop(), called by a callback. 0 or -errno of epoll. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

typedef void (*loop_fd_fn)(void *ctx, int fd, uint32_t events);
typedef void (*loop_timer_fn)(void *ctx);
typedef void (*loop_signal_fn)(void *ctx, int signo);
typedef bool (*loop_step_fn)(void *ctx);

/* A callback's name in the metrics: its place in the code. */
#define LOOP_NAME(fn) (__FILE__ ":" #fn)

/* Watch @fd for @events (EPOLLIN, EPOLLOUT; level-triggered). Does not take the descriptor. */
#define loop_add_fd(loop, fd, events, fn, ctx, ret) \
	loop_add_fd_as(loop, LOOP_NAME(fn), fd, events, fn, ctx, ret)
/* @name: constant. */
int loop_add_fd_as(struct loop *loop, const char *name, int fd, uint32_t events, loop_fd_fn fn,
		   void *ctx, struct loop_source **ret);
int loop_change_fd(struct loop_source *source, uint32_t events);

/* A timer, not armed yet. */
#define loop_add_timer(loop, fn, ctx, ret) loop_add_timer_as(loop, LOOP_NAME(fn), fn, ctx, ret)
int loop_add_timer_as(struct loop *loop, const char *name, loop_timer_fn fn, void *ctx,
		      struct loop_source **ret);
/* Fire once, @delay_ns from now (0 or 1: in the next turn), and then, if @period_ns is not 0, once
 * each period; missed periods are a single call. Replaces an earlier setting. Any thread, as long
 * as the source exists. */
int loop_arm(struct loop_source *timer, uint64_t delay_ns, uint64_t period_ns);
/* Fire once, in the first turn that begins at least @delay_ns from now, and at the latest @slack_ns
 * after it, to a millisecond. Without a system call, and without a wake-up if there is another one
 * within the slack. For the loop's thread only. Replaces an earlier setting. */
int loop_arm_within(struct loop_source *timer, uint64_t delay_ns, uint64_t slack_ns);
int loop_disarm(struct loop_source *timer);
/* Timers that loop_arm_within() has armed. */
size_t loop_n_within(const struct loop *loop);

/* Longer work in slices: a timer, not armed yet, whose callback makes one small step and returns
 * whether more are to come. The loop repeats the step until the slice is used up, and goes on in
 * the next turn, after the other events. The loop's state may change between two steps. */
#define loop_add_steps(loop, fn, ctx, ret) loop_add_steps_as(loop, LOOP_NAME(fn), fn, ctx, ret)
int loop_add_steps_as(struct loop *loop, const char *name, loop_step_fn fn, void *ctx,
		      struct loop_source **ret);

/* Blocks the signal and delivers it here instead. Call before any thread is started. */
#define loop_add_signal(loop, signo, fn, ctx, ret) \
	loop_add_signal_as(loop, LOOP_NAME(fn), signo, fn, ctx, ret)
int loop_add_signal_as(struct loop *loop, const char *name, int signo, loop_signal_fn fn, void *ctx,
		       struct loop_source **ret);

/* NULL is fine. */
void loop_remove(struct loop_source *source);

/* A metric_collect_fn: podprof_loop_turn_seconds, podprof_loop_longest_callback_seconds. A turn is
 * the time between two waits for events: all that happens meanwhile waits for its end. */
void loop_collect(void *ctx, struct metric_sink *sink);

#endif
