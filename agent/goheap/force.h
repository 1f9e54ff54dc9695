/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_FORCE_H
#define PODPROF_GOHEAP_FORCE_H

#include <stdint.h>

#include "discovery/pid.h"

struct goruntime;
struct root;

/* Go's default rate. Its eight bytes differ from those of 0 in one only, so that a program never
 * sees half of the write. */
#define FORCE_RATE 524288

enum force_outcome {
	FORCE_OK = 0,
	FORCE_GONE,
	FORCE_DENIED,
	FORCE_NOT_ZERO,	 /* the rate is set already, or by now: nothing was written */
	FORCE_UNCERTAIN, /* the address is not surely the rate's: nothing was written */
	FORCE_FAILED,	 /* written, but it does not read back */
	FORCE_WAS_ON,	 /* sampling was on before, and the program has turned it off (goheap.h) */
	FORCE_OUTCOME_MAX,
};

/**
 * force_sampling() - write FORCE_RATE to a process's runtime.MemProfileRate, if it is 0
 *
 * The only write podprof ever makes to a process. The caller sees to it that no process gets a
 * second one: counters are scaled by the rate at the time of reading, so a program that turns its
 * profiler off has to be left alone.
 *
 * Return: 0, an outcome, -errno.
 */
int force_sampling(const struct root *proc, const struct pid_id *id, const struct goruntime *rt);

const char *force_outcome_name(int outcome);

#endif
