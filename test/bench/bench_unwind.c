// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of compiling an image's unwind table, for large programs of the machine (or for the
 * arguments), on one thread: reading tables and making rows, the same with sorting, and the whole
 * table with the code scan and the packing; bytes of table and functions a second; memory. Go's
 * tables are counted by themselves, because only a part of them is for stacks. Best of several
 * runs, the file in the page cache.
 */
#include <fcntl.h>
#include <glob.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/heap.h"
#include "base/nsec.h"
#include "elf/elffile.h"
#include "support/figure.h"
#include "unwindtable/compile.h"
#include "unwindtable/table.h"

#define RUNS 7

static uint64_t cpu_ns(void)
{
	return nsec_read(CLOCK_THREAD_CPUTIME_ID);
}

DEFINE_CLEANUP(struct table *, table_freep, table_free);

struct cost {
	uint64_t add_ns;   /* tables to ranges */
	uint64_t all_ns;   /* with rows_finish() */
	uint64_t whole_ns; /* the packed table, from the open file */
	size_t n_rows;
	size_t n_rules;
	size_t bytes;	   /* held at the end of collecting */
	uint64_t go_bytes; /* of .gopclntab */
	struct ehframe_stats stats;
};

static size_t heap_bytes(void)
{
	const struct mallinfo2 heap = mallinfo2();

	return heap.uordblks + heap.hblkhd;
}

static int run_once(const struct elffile *file, struct cost *best)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	const struct described none = {0};
	struct cost cost = {0};
	uint64_t start, end, t0;
	const size_t before = heap_bytes();

	t0 = cpu_ns();
	if (ehframe_text(file, &start, &end) || rows_new(start, end, &rows) ||
	    ehframe_add(file, rows, &cost.stats) ||
	    ehframe_add_debug(file, &none, rows, &cost.stats))
		return -1;
	cost.add_ns = cpu_ns() - t0;
	cost.bytes = heap_bytes() - before;
	if (rows_finish(rows))
		return -1;
	cost.all_ns = cpu_ns() - t0;
	cost.n_rows = rows_count(rows);
	cost.n_rules = rows_n_rules(rows);
	cost.whole_ns = best->whole_ns;
	if (!best->all_ns || cost.all_ns < best->all_ns)
		*best = cost;
	return 0;
}

static int run_whole(const struct elffile *file, struct cost *best)
{
	_cleanup_(table_freep) struct table *table = NULL;
	_cleanup_(rows_freep) struct rows *rows = NULL;
	struct ehframe_stats stats;
	const uint64_t t0 = cpu_ns();
	uint64_t ns;

	if (compile_image(file, &stats, &rows) || table_pack(rows, &table))
		return -1;
	ns = cpu_ns() - t0;
	if (!best->whole_ns || ns < best->whole_ns)
		best->whole_ns = ns;
	return 0;
}

static uint64_t go_bytes(const struct elffile *file)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};
	struct elffile_section section;

	for (size_t i = 0; i < array_size(names); i++)
		if (!elffile_section(file, names[i], &section))
			return section.size;
	return 0;
}

static double per_second(uint64_t n, uint64_t ns)
{
	return (double)n * 1e9 / (double)(ns ? ns : 1);
}

static void print_cost(const char *name, const struct cost *c)
{
	printf("unwind: %s: %.1f MB of tables, %llu functions, %zu rows, %zu rules: tables %.1f ms "
	       "(%.0f MB/s, %.2f M functions/s), with sorting %.1f ms (%.0f MB/s, %.2f M "
	       "functions/s), %.1f MB; whole table %.1f ms (%.0f MB/s)\n",
	       name, (double)c->stats.bytes / 1e6, (unsigned long long)c->stats.fdes, c->n_rows,
	       c->n_rules, (double)c->add_ns / 1e6, per_second(c->stats.bytes, c->add_ns) / 1e6,
	       per_second(c->stats.fdes, c->add_ns) / 1e6, (double)c->all_ns / 1e6,
	       per_second(c->stats.bytes, c->all_ns) / 1e6,
	       per_second(c->stats.fdes, c->all_ns) / 1e6, (double)c->bytes / 1e6,
	       (double)c->whole_ns / 1e6, per_second(c->stats.bytes, c->whole_ns) / 1e6);
	if (c->go_bytes)
		printf("unwind: %s: and %.1f MB of Go's tables (with these %.0f MB/s)\n", name,
		       (double)c->go_bytes / 1e6,
		       per_second(c->stats.bytes + c->go_bytes, c->whole_ns) / 1e6);
	figure((double)c->whole_ns / 1e6, "ms", "%s", name);
}

static int bench_file(const char *path, struct cost *total)
{
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct cost best = {0};

	if (fd < 0 || elffile_open(fd, &file)) {
		printf("unwind: %s: cannot be read\n", path);
		return 0;
	}
	for (int i = 0; i < RUNS; i++)
		if (run_once(file, &best) || run_whole(file, &best))
			return -1;
	best.go_bytes = go_bytes(file);
	print_cost(path, &best);
	total->add_ns += best.add_ns;
	total->all_ns += best.all_ns;
	total->whole_ns += best.whole_ns;
	total->n_rows += best.n_rows;
	total->go_bytes += best.go_bytes;
	total->stats.bytes += best.stats.bytes;
	total->stats.fdes += best.stats.fdes;
	return 0;
}

static int bench_pattern(const char *pattern, struct cost *total)
{
	glob_t found;
	int r = 0;

	if (glob(pattern, 0, NULL, &found))
		return 0;
	for (size_t i = 0; i < found.gl_pathc && !r; i++)
		r = bench_file(found.gl_pathv[i], total);
	globfree(&found);
	return r;
}

int main(int argc, char **argv)
{
	/* as the agent: blocks above a megabyte are new memory for each file */
	static const char *const usual[] = {
		"/usr/lib/x86_64-linux-gnu/libLLVM-*.so.1",
		"/usr/lib/llvm-*/lib/libclang-cpp.so.*",
		"/root/.rustup/toolchains/*/lib/librustc_driver-*.so",
		"/usr/lib/x86_64-linux-gnu/libc.so.6",
		"/usr/lib/aarch64-linux-gnu/libc.so.6",
		"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
		"/usr/lib/gcc/x86_64-linux-gnu/*/cc1plus",
		"/usr/bin/node",
		"/usr/local/bin/node",
	};
	struct cost total = {0};
	int r = 0;

	heap_keep_little();
	for (int i = 1; i < argc && !r; i++)
		r = bench_file(argv[i], &total);
	for (size_t i = 0; argc == 1 && i < array_size(usual) && !r; i++)
		r = bench_pattern(usual[i], &total);
	if (!r && total.all_ns)
		print_cost("all of them", &total);
	return r ? 1 : 0;
}
