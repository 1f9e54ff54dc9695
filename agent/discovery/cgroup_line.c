// SPDX-License-Identifier: Apache-2.0
#include "discovery/cgroup_line.h"

static bool line_parse(struct text line, struct cgroup_line *ret)
{
	struct text number;
	uint64_t hierarchy;
	struct cgroup_line l;

	if (!text_until(&line, ':', &number) || !text_only_u64(number, 10, &hierarchy))
		return false;
	if (!text_until(&line, ':', &l.controllers) || !text_starts(&line, "/"))
		return false;
	l.path = line;
	(void)!text_suffix(&l.path, " (deleted)");
	l.unified = hierarchy == 0;
	*ret = l;
	return true;
}

bool cgroup_line_next(struct text *proc_cgroup, struct cgroup_line *ret)
{
	struct text line;

	while (text_line(proc_cgroup, &line))
		if (line_parse(line, ret))
			return true;
	return false;
}
