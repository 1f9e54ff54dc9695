// SPDX-License-Identifier: Apache-2.0
/*
 * Memory that grows with the possible CPUs, by map and by array: docs/cost.md has it as a table,
 * and the table is right. Maps whose size follows the sampling rate are not in it.
 */
#include "support/test.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "profile/oncpu.h"
#include "profile/sideband.h"
#include "shared/sample.h"
#include "shared/settings.h"

#define DOC		     "docs/cost.md"
#define HEADER		     "| bytes a possible CPU | default | with `--off-cpu` |\n"
/* Smaller maps are in the sum alone. */
#define ROW_MIN		     1024
/* A page of control fields before each ring of process events. */
#define RING_PAGE_BYTES	     4096
/* struct htab_elem before key and value (kernel/bpf/hashtab.c). */
#define HASH_ELEMENT_BYTES   48
#define HASH_LOCK_BYTES	     32
/* The kernel allocates a room by kmalloc(), in a power of two. */
#define ROOM_ALLOCATED_BYTES 16384

#define KINDS	 2
#define ROWS_MAX 64

struct row {
	char name[32];
	uint64_t bytes[KINDS];
};

struct table {
	struct row rows[ROWS_MAX];
	size_t n;
};

static void add(struct table *t, const char *name, int kind, uint64_t bytes)
{
	size_t i = 0;

	while (i < t->n && strcmp(t->rows[i].name, name) != 0)
		i++;
	if (i == t->n) {
		assert_true(t->n < ROWS_MAX);
		snprintf(t->rows[t->n++].name, sizeof(t->rows[0].name), "%s", name);
	}
	t->rows[i].bytes[kind] += bytes;
}

static uint64_t round_up(uint64_t n)
{
	return (n + 7) & ~7ull;
}

/* What the kernel allocates for each possible CPU. */
static uint64_t map_bytes(const struct bpf_map_info *m)
{
	switch (m->type) {
	case BPF_MAP_TYPE_PERCPU_ARRAY:
		return round_up(m->value_size) * m->max_entries;
	case BPF_MAP_TYPE_HASH: /* a spare element */
		return HASH_LOCK_BYTES + HASH_ELEMENT_BYTES + round_up(m->key_size) +
		       round_up(m->value_size);
	case BPF_MAP_TYPE_ARRAY_OF_MAPS:
		return strstr(m->name, "_rooms") ? sizeof(uint64_t) + ROOM_ALLOCATED_BYTES : 0;
	default:
		return 0;
	}
}

/* All maps of this process. */
static void add_maps(struct table *t, int kind)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		struct bpf_map_info info = {0};
		__u32 n = sizeof(info);

		if (bpf_obj_get_info_by_fd(atoi(entry->d_name), &info, &n) == 0 &&
		    info.max_entries && map_bytes(&info))
			add(t, info.name, kind, map_bytes(&info));
	}
	closedir(dir);
}

/* As the agent loads them. */
static void measure(struct table *t, int kind)
{
	_cleanup_(root_deinit) struct root proc = ROOT_INIT, sys = ROOT_INIT;
	const struct oncpu_opts opts = {.rate_hz = 97,
					.scope = SETTINGS_SCOPE_ALL,
					.kernel_stacks = true,
					.unwind = SETTINGS_UNWIND_AUTO,
					.stack_dumps = true,
					.offcpu = kind == 1,
					.proc = &proc,
					.sys = &sys};
	struct bpfobj_why why = {""};
	struct oncpu *oc;

	assert_int_equal(root_open("/proc", &proc), 0);
	assert_int_equal(root_open("/sys", &sys), 0);
	if (oncpu_new(&opts, &why, &oc))
		fail_msg("%s", why.text);
	add_maps(t, kind);
	oncpu_free(oc);
	/* Of the process. */
	add(t, "ring of process events", kind, SIDEBAND_RING_BYTES + RING_PAGE_BYTES);
	add(t, "copies of counters", kind, (kind + 1) * 2 * sizeof(struct sample_stats));
}

static int largest_first(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->bytes[1] != y->bytes[1])
		return x->bytes[1] < y->bytes[1] ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* The table, as the page has it. */
static void format(struct table *t, char *ret, size_t size)
{
	uint64_t sum[KINDS] = {0}, small[KINDS] = {0};
	size_t n = (size_t)snprintf(ret, size, HEADER "|---|---|---|\n");

	qsort(t->rows, t->n, sizeof(t->rows[0]), largest_first);
	for (size_t i = 0; i < t->n; i++) {
		const struct row *row = &t->rows[i];

		for (int k = 0; k < KINDS; k++) {
			sum[k] += row->bytes[k];
			small[k] += row->bytes[KINDS - 1] < ROW_MIN ? row->bytes[k] : 0;
		}
		if (row->bytes[KINDS - 1] >= ROW_MIN)
			n += (size_t)snprintf(ret + n, size - n, "| %s | %ju | %ju |\n", row->name,
					      (uintmax_t)row->bytes[0], (uintmax_t)row->bytes[1]);
		assert_true(n < size);
	}
	snprintf(ret + n, size - n, "| all others | %ju | %ju |\n| all | %ju | %ju |\n",
		 (uintmax_t)small[0], (uintmax_t)small[1], (uintmax_t)sum[0], (uintmax_t)sum[1]);
}

static void test_documented(void **state)
{
	static char page[1 << 20];
	struct table t = {0};
	char want[8192];
	FILE *f = fopen(DOC, "r");

	(void)state;
	assert_non_null(f);
	page[fread(page, 1, sizeof(page) - 1, f)] = '\0';
	fclose(f);
	for (int kind = 0; kind < KINDS; kind++)
		measure(&t, kind);
	format(&t, want, sizeof(want));
	if (!strstr(page, want))
		fail_msg(DOC " should have this table:\n%s", want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_documented)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
