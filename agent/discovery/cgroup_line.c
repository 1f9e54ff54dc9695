// SPDX-License-Identifier: Apache-2.0
#include "discovery/cgroup_line.h"

static bool line_parse(struct strview line, struct cgroup_line *ret)
{
	struct strview number;
	uint64_t hierarchy;
	struct cgroup_line l;

	if (!strview_until(&line, ':', &number) || !strview_only_u64(number, 10, &hierarchy))
		return false;
	if (!strview_until(&line, ':', &l.controllers) || !strview_starts(&line, "/"))
		return false;
	l.path = line;
	(void)!strview_suffix(&l.path, " (deleted)");
	l.unified = hierarchy == 0;
	*ret = l;
	return true;
}

bool cgroup_line_next(struct strview *proc_cgroup, struct cgroup_line *ret)
{
	struct strview line;

	while (strview_line(proc_cgroup, &line))
		if (line_parse(line, ret))
			return true;
	return false;
}
