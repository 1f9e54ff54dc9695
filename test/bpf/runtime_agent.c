// SPDX-License-Identifier: Apache-2.0
#define FRAME_RUNTIMES_TEST "bpf/runtime_test.bpf.h"
#include "bpf/runtime_agent.h"

#include "shared/offcpu.h"
#include "shared/settings.h"
#include "podprof_runtime.skel.h"

static bool in_parts, refused;
static size_t test_map; /* its place among the object's maps */

static void note_test_map(const struct podprof_bpf *skel)
{
	const struct bpf_map *map;
	size_t i = 0;

	bpf_object__for_each_map(map, skel->obj)
	{
		if (map == skel->maps.runtime_test_map)
			test_map = i;
		i++;
	}
}

/* Refuses programs with bpf_loop(), as an older kernel does. */
static int load_unless_old(struct podprof_bpf *skel)
{
	note_test_map(skel);
	if (in_parts && bpf_program__autoload(skel->progs.oncpu_walk))
		return -EINVAL;
	/* the program of an interrupt must not sleep */
	if (refused && bpf_program__set_flags(skel->progs.oncpu_walk_test, BPF_F_SLEEPABLE))
		return -EDOM;
	return podprof_bpf__load(skel);
}

/* Both skeletons have the same include guard, so bpfobj.c gets the first one. */
#define podprof_bpf__load load_unless_old
#include "profile/bpfobj.c"	  // NOLINT(bugprone-suspicious-include)
#include "unwindtable/dumpwalk.c" // NOLINT(bugprone-suspicious-include)

_Static_assert(RUNTIME_AGENT_TEST == FRAME_RUNTIME_TEST, "its number");

static struct runtime_test test_where;
static uint64_t n_copied;

WALK_INLINE const struct runtime_test *runtime_test_of(const struct table_space *space)
{
	(void)space;
	n_copied++;
	return &test_where;
}

void runtime_agent_in_parts(bool yes)
{
	in_parts = yes;
}

void runtime_agent_refused(bool yes)
{
	refused = yes;
}

int runtime_agent_set(const struct bpfobj *obj, const struct runtime_test *where)
{
	const uint32_t zero = 0;

	test_where = *where;
	return bpf_map_update_elem(obj->maps[test_map], &zero, where, BPF_ANY);
}

uint64_t runtime_agent_copied(void)
{
	return n_copied;
}
