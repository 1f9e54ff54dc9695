// SPDX-License-Identifier: Apache-2.0
#include "cpu/young_processes.h"

#include <stdbool.h>
#include <string.h>

#include "base/nsec.h"
#include "profile/drain.h"

/* At this age the time between drains is the longest. */
#define SLOW_NS ((uint64_t)DRAIN_SOON_PART * DRAIN_SOON_LAST_NS)

static void drop(struct young_processes *young, size_t i)
{
	young->n--;
	memmove(&young->items[i], &young->items[i + 1], (young->n - i) * sizeof(young->items[0]));
}

/* Whether a process of @owner may cause the shortest times. */
static bool take_quick(struct young_processes *young, uint64_t owner, uint64_t now_ns)
{
	size_t n = 0;

	if (now_ns - young->second_ns >= NSEC_PER_SEC) {
		young->second_ns = now_ns;
		young->n_quick = 0;
	}
	for (size_t i = 0; i < young->n_quick; i++)
		n += young->quick[i] == owner;
	if (young->n_quick == YOUNG_PROCESSES_PER_SECOND || n == YOUNG_PROCESSES_PER_OWNER)
		return false;
	young->quick[young->n_quick++] = owner;
	return true;
}

void young_processes_add(struct young_processes *young, uint64_t pid, uint64_t owner,
			 uint64_t now_ns)
{
	const bool is_quick = take_quick(young, owner, now_ns);

	young_processes_end(young, pid); /* an earlier program */
	if (young->n == YOUNG_PROCESSES_MAX)
		drop(young, 0);
	young->items[young->n++] = (struct young_process){
		.pid = pid,
		.since_ns = is_quick ? now_ns : now_ns - SLOW_NS,
	};
}

void young_processes_end(struct young_processes *young, uint64_t pid)
{
	for (size_t i = 0; i < young->n; i++)
		if (young->items[i].pid == pid) {
			drop(young, i);
			return;
		}
}

uint64_t young_processes_since_ns(struct young_processes *young, uint64_t now_ns)
{
	uint64_t since_ns = 0;
	size_t i = 0;

	while (i < young->n) {
		if (now_ns - young->items[i].since_ns >= DRAIN_SOON_NS) {
			drop(young, i);
			continue;
		}
		if (young->items[i].since_ns > since_ns)
			since_ns = young->items[i].since_ns;
		i++;
	}
	return since_ns;
}
