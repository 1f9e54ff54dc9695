// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of the rows of a Go program, for large programs of the machine (or for the arguments):
 * CPU time to read the tables and to make rows; the number of rows and distinct rules, and the rows
 * covered by the commonest 250 rules; memory during the run.
 */
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "unwind/gorows.h"
#include "elf/elffile.h"
#include "gofile/gopcsp.h"
#include "support/figure.h"
#include "unwind/rows.h"

#define COMMON 250

DEFINE_CLEANUP(struct gopcsp *, gopcsp_freep, gopcsp_free);

static uint64_t cpu_ns(void)
{
	return nsec_read(CLOCK_THREAD_CPUTIME_ID);
}

static int descending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x > y ? -1 : x < y;
}

/* Rows in 1,000 with one of the commonest rules. */
static uint64_t common_share(const struct rows *rows)
{
	_cleanup_(freep) uint64_t *uses = calloc(rows_n_rules(rows), sizeof(*uses));
	uint64_t sum = 0;

	if (!uses || rows_count(rows) == 0)
		return 0;
	for (size_t i = 0; i < rows_count(rows); i++)
		uses[rows_at(rows, i).rule]++;
	qsort(uses, rows_n_rules(rows), sizeof(*uses), descending);
	for (size_t i = 0; i < rows_n_rules(rows) && i < COMMON; i++)
		sum += uses[i];
	return sum * 1000 / rows_count(rows);
}

static size_t heap_bytes(void)
{
	const struct mallinfo2 heap = mallinfo2();

	return heap.uordblks + heap.hblkhd;
}

static int read_tables(const struct elffile *file, uint64_t *ret_ns, size_t *ret_bytes)
{
	_cleanup_(gopcsp_freep) struct gopcsp *tables = NULL;
	struct gocode_func func;
	const size_t before = heap_bytes();
	uint64_t t0 = cpu_ns();
	int r = gopcsp_open(file, &tables);

	if (r)
		return r;
	while (gopcsp_next(tables, &func) != GOPCSP_END)
		;
	*ret_ns = cpu_ns() - t0;
	*ret_bytes = heap_bytes() - before;
	return 0;
}

static int make_rows(const struct elffile *file, const char *path)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	uint64_t t0, t1, t2, tables_ns;
	struct gorows_stats stats;
	size_t bytes, before;
	int r = read_tables(file, &tables_ns, &bytes);

	if (r) {
		printf("gorows: %s: outcome %d\n", path, r);
		return 0;
	}
	before = heap_bytes();
	t0 = cpu_ns();
	r = rows_new(1, UINT64_C(1) << 40, &rows);
	if (!r)
		r = gorows_add_file(file, rows, &stats);
	t1 = cpu_ns();
	if (!r)
		bytes += heap_bytes() - before;
	if (!r)
		r = rows_finish(rows);
	t2 = cpu_ns();
	if (r)
		return r;
	printf("gorows: %s (%llu MB): %llu functions (%llu framed, %llu special, %llu without, "
	       "%llu odd), tables %.1f ms, rows %.1f ms, order %.1f ms; %zu rows, %zu rules "
	       "(%d: %.1f %%), %.1f MB\n",
	       path, (unsigned long long)elffile_size(file) / 1000000,
	       (unsigned long long)stats.n_funcs, (unsigned long long)stats.n_framed,
	       (unsigned long long)stats.n_special, (unsigned long long)stats.n_without_table,
	       (unsigned long long)stats.n_odd, (double)tables_ns / 1e6, (double)(t1 - t0) / 1e6,
	       (double)(t2 - t1) / 1e6, rows_count(rows), rows_n_rules(rows), COMMON,
	       (double)common_share(rows) / 10, (double)bytes / 1e6);
	figure((double)(tables_ns + t2 - t0) / 1e6, "ms", "%s", path);
	return 0;
}

static int bench_file(const char *path)
{
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || elffile_open(fd, &file)) {
		printf("gorows: %s: cannot be read\n", path);
		return 0;
	}
	return make_rows(file, path);
}

int main(int argc, char **argv)
{
	static const char *const usual[] = {"/usr/bin/containerd", "/usr/bin/runc",
					    "/usr/lib/go-1.19/bin/go", "/usr/local/go/bin/go"};
	int r = 0;

	for (int i = 1; i < argc && !r; i++)
		r = bench_file(argv[i]);
	for (size_t i = 0; argc == 1 && i < array_size(usual) && !r; i++)
		r = bench_file(usual[i]);
	return r ? 1 : 0;
}
