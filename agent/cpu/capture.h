/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CPU_CAPTURE_H
#define PODPROF_CPU_CAPTURE_H

/*
 * A second fold of samples that are taken anyway: samples of selected entities, over a span that
 * begins after a request. A span begins and ends with drains (profile/drain.h), so the length is
 * exact, and a little longer than wished.
 *
 *	capture_new() -> capture_drained(): begun -> capture_add() ... -> capture_drained(): ended
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nsec.h"
#include "cpu/report.h"

struct capture;
struct cpu_stack;
struct entity;
struct selection;

/* Bytes of the stacks of a capture: about 100,000 frames of distinct stacks with 30 frames, as a
 * node of 64 busy CPUs has in 30 s. Reached: further samples are lost, and a comment in the
 * profile tells how many; `podprof_cpu_pulls_total{outcome="dropped"}`. */
#define CAPTURE_BYTES_MAX ((size_t)8 << 20)
/* Entities of a capture, far more than a node's containers. Reached: the same. */
#define CAPTURE_PARTS_MAX 1024

/* A drain so long before the wished begin or end counts as this drain: it may be under way. */
#define CAPTURE_SLACK_NS (50 * NSEC_PER_MSEC)

enum capture_state {
	CAPTURE_WAITING, /* for the drain that begins the span */
	CAPTURE_RUNNING,
	CAPTURE_ENDED,
};

/* Takes the contents of @selection. @now_ns: boot clock. 0 or -ENOMEM. */
int capture_new(struct selection *selection, bool off_cpu, uint64_t now_ns, uint64_t duration_ns,
		struct capture **ret);
void capture_free(struct capture *c);

enum capture_state capture_state(const struct capture *c);
const struct selection *capture_selection(const struct capture *c);
/* A stack of @entity, if selected. For any entity in any state. */
void capture_add(struct capture *c, bool off_cpu, struct entity *entity,
		 const struct cpu_stack *stack, uint64_t count, uint64_t value);
/* All samples until @until_ns (boot clock) of a kind are there. The new state. */
enum capture_state capture_drained(struct capture *c, bool off_cpu, uint64_t until_ns);
/* End with the stacks so far: no drain has come. */
void capture_end(struct capture *c, uint64_t now_ns);
/* Nanoseconds from @now_ns (boot clock) to the wished end, of the wait for the begin if that is not
 * there; 0: past. */
uint64_t capture_rest_ns(const struct capture *c, uint64_t now_ns);

/**
 * struct capture_result - owned by the ended capture
 * @parts:   by entity, with copies of their labels at this time
 * @since_ns: boot clock
 * @n, @value: samples and their total value
 * @n_lost:  samples beyond a ceiling, or without memory; @n_unfolded of these are in no fold's
 *           totals, and have @unfolded_value
 */
struct capture_result {
	const struct cpu_report_part *parts;
	size_t n_parts;
	uint64_t since_ns;
	uint64_t duration_ns;
	uint64_t n;
	uint64_t value;
	uint64_t n_lost;
	uint64_t n_unfolded;
	uint64_t unfolded_value;
};

/* Once, after the end: entities whose names have arrived and do not match are left out. 0 or
 * -ENOMEM. After it the folds may be read by another thread. */
int capture_finish(struct capture *c, struct capture_result *ret);
/* Settles the frames (fold_settle()), on the thread that reads the folds. */
void capture_settle(struct capture *c);

#endif
