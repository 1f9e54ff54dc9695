/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_FORCE_H
#define PODPROF_GOHEAP_FORCE_H

#include <stdint.h>

#include "discovery/pid.h"

struct goruntime;
struct root;

/* Go's default rate. It differs from 0 in a single byte, so a program never sees
 * half of the write. */
#define FORCE_RATE 524288

enum force_outcome {
	FORCE_OK = 0,
	FORCE_GONE,
	FORCE_DENIED,
	FORCE_NOT_ZERO,	 /* the rate is not 0 or no longer 0; nothing was written */
	FORCE_UNCERTAIN, /* the address may not be the rate's; nothing was written */
	FORCE_FAILED,	 /* written, but reading back gives another value */
	FORCE_WAS_ON,	 /* sampling was on before and the program turned it off (goheap.h) */
	FORCE_OUTCOME_MAX,
};

/**
 * force_sampling() - write FORCE_RATE to a process's runtime.MemProfileRate, if it is 0
 *
 * podprof writes nothing else to any process. The caller ensures at most one such write per
 * process: the runtime scales counters by the rate at the time of reading, so podprof must not
 * interfere with a program that turns its profiler off.
 *
 * Return: 0, an outcome, -errno.
 */
int force_sampling(const struct root *proc, const struct pid_id *id, const struct goruntime *rt);

const char *force_outcome_name(int outcome);

#endif
