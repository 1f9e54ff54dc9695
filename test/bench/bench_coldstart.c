// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of unwind tables for a new agent, when a thousand different programs and libraries of
 * this machine are sampled: CPU time of making the tables and writing them to the kernel's maps,
 * and memory of the maps. Files are in the page cache.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "bpf/lookup.h"
#include "lookup.skel.h"
#include "support/figure.h"
#include "unwind/gorows.h"
#include "unwindtable/compile.h"
#include "unwindtable/tablemaps.h"

#define WANTED 1000
#define BUDGET ((uint64_t)64 << 20)

struct files {
	char **paths;
	size_t n;
};

/* CPU time by purpose. */
struct cost {
	uint64_t open_ns, compile_ns, go_ns, pack_ns, publish_ns;
	size_t n, n_go, rows;
};

struct kernel {
	struct lookup_bpf *skel;
	struct tablemaps *maps;
	struct tables *tables;
};

static uint64_t cpu_ns(void)
{
	return nsec_read(CLOCK_THREAD_CPUTIME_ID);
}

/* Time since @from; updates @from. */
static uint64_t lap(uint64_t *from)
{
	uint64_t now = cpu_ns(), ns = now - *from;

	*from = now;
	return ns;
}

/* ---------------------------------------------------------------- files */

/* Whether the file needs a table. Also brings the file into the page cache. */
static bool has_rows(const char *path)
{
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	_cleanup_(rows_freep) struct rows *rows = NULL;
	struct ehframe_stats stats;
	struct stat st;
	int fd;

	if (lstat(path, &st) || !S_ISREG(st.st_mode))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && elffile_open(fd, &file)) {
		close(fd);
		return false;
	}
	return fd >= 0 && !compile_image(file, &stats, &rows) && rows_count(rows) > 1;
}

static void find_files(struct files *ret)
{
	static const char *const patterns[] = {
		"/usr/bin/*",
		"/usr/sbin/*",
		"/usr/local/bin/*",
		"/usr/lib/*-linux-gnu/lib*.so*",
		"/usr/lib/gcc/*/*/cc1*",
		"/usr/local/go/pkg/tool/*/*",
	};
	size_t kept = 0;
	glob_t found;

	for (size_t i = 0; i < array_size(patterns); i++)
		(void)glob(patterns[i], i ? GLOB_APPEND : 0, NULL, &found);
	ret->paths = calloc(found.gl_pathc + 1, sizeof(*ret->paths));
	for (size_t i = 0; ret->paths && i < found.gl_pathc; i++)
		if (has_rows(found.gl_pathv[i]))
			ret->paths[ret->n++] = strdup(found.gl_pathv[i]);
	globfree(&found);
	/* evenly distributed, for all kinds of files */
	if (ret->n <= WANTED)
		return;
	for (size_t i = 0; i < ret->n; i++) {
		if (i * WANTED / ret->n == (i + 1) * WANTED / ret->n)
			free(ret->paths[i]);
		else
			ret->paths[kept++] = ret->paths[i];
	}
	ret->n = kept;
}

/* ---------------------------------------------------------------- the kernel */

static int kernel_open(struct kernel *k)
{
	struct tables_opts opts = {.budget_bytes = BUDGET};
	int r;

	k->skel = lookup_bpf__open_and_load();
	if (!k->skel)
		return -errno;
	r = tablemaps_new(
		&(struct tablemaps_fds){.slabs = bpf_map__fd(k->skel->maps.table_slabs),
					.exes = bpf_map__fd(k->skel->maps.table_exes),
					.uses = bpf_map__fd(k->skel->maps.table_uses),
					.rules = bpf_map__fd(k->skel->maps.table_rules),
					.rule_runs = bpf_map__fd(k->skel->maps.table_rule_runs)},
		&k->maps);
	if (r)
		return r;
	opts.memory = tablemaps_memory(k->maps);
	return tables_new(&opts, &k->tables);
}

static void kernel_close(struct kernel *k)
{
	tables_free(k->tables);
	tablemaps_free(k->maps);
	lookup_bpf__destroy(k->skel);
}

/* ---------------------------------------------------------------- a start */

/* Go's share of compiling, once more. */
static void add_go(const struct elffile *file, struct cost *cost)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	uint64_t start, end, from;

	if (ehframe_text(file, &start, &end) || rows_new(start, end, &rows))
		return;
	from = cpu_ns();
	cost->n_go += gorows_add_file(file, rows, NULL) == 0;
	cost->go_ns += lap(&from);
}

static int make_table(const struct elffile *file, struct cost *cost, struct table **ret)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	struct ehframe_stats stats;
	uint64_t from = cpu_ns();
	int r = compile_image(file, &stats, &rows);

	cost->compile_ns += lap(&from);
	if (!r)
		r = table_pack(rows, ret);
	cost->pack_ns += lap(&from);
	add_go(file, cost);
	return r;
}

static int start_file(struct kernel *k, const char *path, struct cost *cost)
{
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	struct file_id id = {0};
	uint64_t from = cpu_ns();
	struct table *table;
	uint16_t exe;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || elffile_open(fd, &file))
		return 0;
	cost->open_ns += lap(&from);
	if (make_table(file, cost, &table))
		return 0;
	cost->n++;
	cost->rows += table->n_rows;
	id.inode = cost->n;
	from = cpu_ns();
	if (tables_exe_get(k->tables, &id, nsec_monotonic(), &exe) ||
	    tables_publish(k->tables, exe, table, nsec_monotonic()))
		return -1;
	cost->publish_ns += lap(&from);
	return 0;
}

static void print_cost(const struct kernel *k, const struct cost *c)
{
	struct tables_stats stats = tables_stats(k->tables);
	size_t fixed = tablemaps_fixed_bytes();
	uint64_t all_ns = c->open_ns + c->compile_ns + c->pack_ns + c->publish_ns;

	printf("coldstart: %zu files (%zu Go), %zu rows: %.3f s of CPU: opened %.0f ms, "
	       "compiled %.0f (Go %.0f of it), packed %.0f, published %.0f\n",
	       c->n, c->n_go, c->rows, (double)all_ns / 1e9, (double)c->open_ns / 1e6,
	       (double)c->compile_ns / 1e6, (double)c->go_ns / 1e6, (double)c->pack_ns / 1e6,
	       (double)c->publish_ns / 1e6);
	printf("coldstart: kernel memory %.1f MB: slabs %.1f (filled %.1f), maps of one size "
	       "%.1f\n",
	       (double)(stats.slab_bytes + fixed) / 1e6, (double)stats.slab_bytes / 1e6,
	       (double)stats.table_bytes / 1e6, (double)fixed / 1e6);
	figure((double)all_ns / 1e6, "ms", "tables of %zu files", c->n);
	figure((double)(stats.slab_bytes + fixed), "bytes", "kernel memory of these");
}

static int start(const struct files *files)
{
	struct kernel k = {NULL, NULL, NULL};
	struct cost cost = {0};
	int r = kernel_open(&k);

	for (size_t i = 0; !r && i < files->n; i++)
		r = start_file(&k, files->paths[i], &cost);
	if (!r)
		print_cost(&k, &cost);
	kernel_close(&k);
	return r;
}

int main(void)
{
	struct files files = {NULL, 0};
	int r;

	find_files(&files);
	r = start(&files);
	for (size_t i = 0; i < files.n; i++)
		free(files.paths[i]);
	free(files.paths);
	return r;
}
