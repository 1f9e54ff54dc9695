// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Lookups in unwind tables by themselves: to be compared with the host's, and to be measured beside
 * another layout. Run with BPF_PROG_TEST_RUN only.
 */
#include "lib/kernel.bpf.h"
#include "lib/table_maps.bpf.h"
#include "bpf/lookup.h"

char lookup_license[] SEC("license") = "Dual BSD/GPL";

#define HASH	     1
#define HASH_OF_MAPS 13
#define INNER_MAP    (1u << 12)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LOOKUP_QUERIES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct lookup_query);
} lookup_queries SEC(".maps");

/* Nanoseconds of the last measured run. */
volatile __u64 lookup_ns = 0;
volatile __u32 lookup_mask = LOOKUP_QUERIES - 1;

static __always_inline int answer(struct lookup_query *q)
{
	const struct table_exe *exe;

	if (!q)
		return 1;
	table_used(q->exe, 1);
	exe = table_descriptor(q->exe);
	if (!exe)
		return 1;
	q->found = table_find((void *)0, exe, q->vaddr, &q->rule);
	return 0;
}

/* Argument: the first query. */
SEC("raw_tp/lookup_some")
int lookup_some(__u64 *args)
{
	__u32 first = args[0];

	for (__u32 i = 0; i < LOOKUP_SOME; i++) {
		__u32 key = (first + i) & (LOOKUP_QUERIES - 1);

		if (answer(bpf_map_lookup_elem(&lookup_queries, &key)))
			return 1;
	}
	return 0;
}

/* ---------------------------------------------------------------- measured */

/* Scattered over the queries, within the mask. */
static __always_inline struct lookup_query *query(__u32 i)
{
	__u32 key = i * 2654435761u >> 16 & lookup_mask & (LOOKUP_QUERIES - 1);

	return bpf_map_lookup_elem(&lookup_queries, &key);
}

static long one_empty(__u32 i, void *ctx)
{
	struct lookup_query *q = query(i);

	if (!q)
		return 1;
	q->found = q->vaddr;
	return 0;
}

static long one_ours(__u32 i, void *ctx)
{
	return answer(query(i));
}

SEC("raw_tp/many_empty")
int many_empty(void *ctx)
{
	__u64 start = bpf_ktime_get_ns();

	bpf_loop(LOOKUP_MANY, one_empty, (void *)0, 0);
	lookup_ns = bpf_ktime_get_ns() - start;
	return 0;
}

SEC("raw_tp/many_ours")
int many_ours(void *ctx)
{
	__u64 start = bpf_ktime_get_ns();

	bpf_loop(LOOKUP_MANY, one_ours, (void *)0, 0);
	lookup_ns = bpf_ktime_get_ns() - start;
	return 0;
}

/* ---------------------------------------------------------------- the other layout */

struct {
	__uint(type, HASH);
	__uint(max_entries, 65536);
	__type(key, struct peer_page_key);
	__type(value, struct peer_page);
} peer_pages SEC(".maps");

struct peer_inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, INNER_MAP);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct peer_row));
};

struct {
	__uint(type, HASH_OF_MAPS);
	__uint(max_entries, 16);
	__type(key, __u64);
	__array(values, struct peer_inner);
} peer_files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct peer_info);
} peer_infos SEC(".maps");

static __always_inline const struct peer_info *peer_find(__u64 vaddr)
{
	struct peer_page_key key = {.file = PEER_FILE, .page = vaddr >> PEER_PAGE_SHIFT};
	struct peer_page *page = bpf_map_lookup_elem(&peer_pages, &key);
	void *rows = bpf_map_lookup_elem(&peer_files, &key.file);
	__u16 low = vaddr;
	struct peer_row *row;
	__u32 left, n, index;

	if (!page || !rows)
		return (void *)0;
	left = page->first;
	n = page->n;
	for (int i = 0; i < 16; i++) {
		if (n <= 1)
			break;
		index = left + n / 2;
		row = bpf_map_lookup_elem(rows, &index);
		if (!row)
			return (void *)0;
		if (row->low <= low)
			left = index;
		else
			index = left;
		n = row->low <= low ? n - n / 2 : n / 2;
	}
	row = bpf_map_lookup_elem(rows, &left);
	if (!row)
		return (void *)0;
	index = row->info;
	return bpf_map_lookup_elem(&peer_infos, &index);
}

static long one_peer(__u32 i, void *ctx)
{
	struct lookup_query *q = query(i);
	const struct peer_info *info;

	if (!q)
		return 1;
	info = peer_find(q->vaddr);
	if (!info)
		return 1;
	q->found = TABLE_FOUND;
	q->rule.cfa_off = info->words[0];
	return 0;
}

SEC("raw_tp/many_peer")
int many_peer(void *ctx)
{
	__u64 start = bpf_ktime_get_ns();

	bpf_loop(LOOKUP_MANY, one_peer, (void *)0, 0);
	lookup_ns = bpf_ktime_get_ns() - start;
	return 0;
}
