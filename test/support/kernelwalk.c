// SPDX-License-Identifier: Apache-2.0
#include "support/kernelwalk.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stddef.h>

#include "base/cleanup.h"

/* A slab, from the first page. */
static int publish_slab(int slabs, const struct hostwalk_space *space, uint32_t slab)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	_cleanup_(close_fdp) int fd =
		bpf_map_create(BPF_MAP_TYPE_ARRAY, NULL, sizeof(uint32_t),
			       sizeof(struct table_page), TABLE_SLAB_PAGES, &opts);
	int r = fd;

	for (uint32_t i = 0; r >= 0 && i < TABLE_SLAB_PAGES; i++) {
		const size_t number = (size_t)slab * TABLE_SLAB_PAGES + i;

		if (number < space->n_table_pages)
			r = bpf_map_update_elem(fd, &i, &space->table_pages[number], BPF_ANY);
	}
	return r < 0 ? r : bpf_map_update_elem(slabs, &slab, &fd, BPF_ANY);
}

static int publish_array(int map, const void *values, size_t n, size_t size)
{
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < n; i++)
		r = bpf_map_update_elem(map, &i, (const char *)values + i * size, BPF_ANY);
	return r;
}

int kernelwalk_publish(const struct bpfobj_unwind *to, const struct hostwalk_space *space)
{
	int r = 0;

	for (uint32_t slab = 0; r >= 0 && slab * TABLE_SLAB_PAGES < space->n_table_pages; slab++)
		r = publish_slab(to->slabs, space, slab);
	if (r >= 0)
		r = publish_array(to->rules, space->rules, space->n_rules, sizeof(*space->rules));
	if (r >= 0)
		r = publish_array(to->rule_runs, space->rule_runs, space->n_rule_runs,
				  sizeof(*space->rule_runs));
	if (r >= 0)
		r = publish_array(to->exes, space->exes, space->n_exes, sizeof(*space->exes));
	return r;
}

int kernelwalk_record(const struct bpfobj_unwind *to, const struct hostwalk_space *space,
		      uint32_t tgid, uint64_t start_boottime_ns, uint64_t exec_id)
{
	const struct process p = {.start_boottime_ns = start_boottime_ns,
				  .exec_id = exec_id,
				  .n_mappings = space->n_mappings};

	return bpf_map_update_elem(to->records, &tgid, &p, BPF_ANY);
}
