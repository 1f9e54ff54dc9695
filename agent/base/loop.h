/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_LOOP_H
#define PODPROF_BASE_LOOP_H

#include <stdint.h>

/*
 * The event loop: descriptors, timers and signals over epoll. The loop's thread owns all mutable
 * state. Callbacks may add and remove any source, including their own.
 */

struct loop;
struct loop_source;

int loop_new(struct loop **ret);
/* Frees the remaining sources. Their descriptors stay open, except descriptors made by the loop. */
void loop_free(struct loop *loop);

/* Run until loop_stop(). 0 or -errno of epoll. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

typedef void (*loop_fd_fn)(void *ctx, int fd, uint32_t events);
typedef void (*loop_timer_fn)(void *ctx);
typedef void (*loop_signal_fn)(void *ctx, int signo);

/* Watch @fd for @events (EPOLLIN, EPOLLOUT; level-triggered). Does not take the descriptor. */
int loop_add_fd(struct loop *loop, int fd, uint32_t events, loop_fd_fn fn, void *ctx,
		struct loop_source **ret);
int loop_change_fd(struct loop_source *source, uint32_t events);

/* A timer, not armed yet. */
int loop_add_timer(struct loop *loop, loop_timer_fn fn, void *ctx, struct loop_source **ret);
/* Fire once, @delay_ns from now, and then, if @period_ns is not 0, once each period. Replaces an
 * earlier setting. */
int loop_arm(struct loop_source *timer, uint64_t delay_ns, uint64_t period_ns);
int loop_disarm(struct loop_source *timer);

/* Blocks the signal and delivers it here instead. Call before any thread is started. */
int loop_add_signal(struct loop *loop, int signo, loop_signal_fn fn, void *ctx,
		    struct loop_source **ret);

/* NULL is fine. */
void loop_remove(struct loop_source *source);

#endif
