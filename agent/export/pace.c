// SPDX-License-Identifier: Apache-2.0
/*
 * Each request is followed by a pause in proportion to its profiles, so that the profiles of one
 * window take 3/4 of a window. Two things shorten the pauses:
 *
 *	a backlog	more than one window waits, after a failure of the backend: the pauses
 *			become shorter in proportion; with more than two windows there are none
 *	memory		above half of the ceiling the pauses become shorter, down to none at the
 *			ceiling: only a burst of half of the ceiling within one pause loses profiles
 */
#include "export/pace.h"

/* Steps of the scale from half of the ceiling to all of it. */
#define STEPS 1024

void pace_arrived(struct pace *p, uint64_t n, uint64_t now_ns)
{
	const uint64_t passed_ns = now_ns - p->since_ns;

	if (passed_ns >= p->window_ns) {
		p->n_last = passed_ns < 2 * p->window_ns ? p->n_now : 0;
		p->n_now = 0;
		p->since_ns = now_ns;
	}
	p->n_now += n;
}

void pace_taken(struct pace *p, uint64_t n, uint64_t now_ns)
{
	p->taken_ns = now_ns;
	p->n_taken = n;
}

/* The time for the profiles of a window. */
static uint64_t spread_ns(const struct pace *p, const struct pace_load *load)
{
	const uint64_t all_ns = p->window_ns / 4 * 3, half = load->max_bytes / 2;
	const uint64_t spare =
		load->used_bytes < load->max_bytes ? load->max_bytes - load->used_bytes : 0;

	return spare >= half ? all_ns : all_ns / STEPS * (spare / (half / STEPS + 1));
}

uint64_t pace_wait_ns(const struct pace *p, const struct pace_load *load, uint64_t now_ns)
{
	const uint64_t window_n = p->n_last > p->n_now ? p->n_last : p->n_now;
	const uint64_t n = load->n > window_n ? load->n : window_n;
	const uint64_t passed_ns = now_ns - p->taken_ns;
	uint64_t pause_ns;

	if (!p->window_ns || window_n <= PACE_PROFILES || load->n > 2 * window_n)
		return 0;
	pause_ns = spread_ns(p, load) / n * p->n_taken;
	return pause_ns > passed_ns ? pause_ns - passed_ns : 0;
}
