// SPDX-License-Identifier: Apache-2.0
/*
 * Memory and cost of packed unwind tables, for the programs and libraries of this machine (or the
 * arguments):
 *
 *  - bytes a row, index, lists and slack included, and the same rows in other layouts: 48 bytes a
 *    row (A), 8 bytes a row and an entry of a hash for each 64 KiB (B), and B's pages with 4 bytes
 *    a row, rounded up to 8 by the kernel, steps of 8 bytes no more than 2 apart joined, in arrays
 *    of a power of two (C). These are computed, not measured; podprof's row is the unit.
 *  - all in the kernel at once: memory of the maps, and time of the largest table
 *  - a lookup in the largest one, in BPF, compared with layout C, made of the same rows. Best of
 *    many runs, without the loop's own cost.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "bpf/lookup.h"
#include "lookup.skel.h"
#include "support/figure.h"
#include "unwindtable/compile.h"
#include "unwindtable/tablemaps.h"

#define RUNS	    30
/* Of a hash's entry: the kernel's own part, and the pointer in the bucket. */
#define HASH_ENTRY  (48 + 16 + 8 + 16)
#define BUDGET	    (1ull << 30)
#define EXECUTABLES 1000.0

struct sums {
	uint64_t files, rows, bytes, cut, rule_runs, pack_ns;
	uint64_t peer_a, peer_b, peer_c;
};

struct bench {
	struct lookup_bpf *skel;
	struct tablemaps *maps;
	struct tables *tables;
	struct lookup_query *queries;
	struct sums sums;
	/* The largest of all. */
	struct rows *rows;
	char path[4096];
	uint16_t exe;
	uint64_t publish_ns;
};

/* ---------------------------------------------------------------- others' layouts */

static bool joined(const struct rows *rows, size_t i)
{
	struct row a = rows_at(rows, i), b = rows_at(rows, i + 1);
	const struct unwind_rule *from = rows_rule(rows, a.rule), *to = rows_rule(rows, b.rule);

	return b.vaddr - a.vaddr <= 2 && from->cfa == UNWIND_CFA_REG && to->cfa == UNWIND_CFA_REG &&
	       from->cfa_reg == to->cfa_reg && from->fp == to->fp && from->fp_off == to->fp_off &&
	       abs(from->cfa_off - to->cfa_off) == 8;
}

static void add_peers(struct sums *sums, const struct rows *rows)
{
	uint64_t n = rows_count(rows), left = 0, pages = 0, last = UINT64_MAX, slots = 256;

	for (size_t i = 0; i < n; i++) {
		pages += rows_at(rows, i).vaddr >> PEER_PAGE_SHIFT != last;
		last = rows_at(rows, i).vaddr >> PEER_PAGE_SHIFT;
		left++;
		i += i + 1 < n && joined(rows, i);
	}
	while (slots < left)
		slots *= 2;
	sums->peer_a += 48 * n;
	sums->peer_b += 8 * n + pages * HASH_ENTRY;
	sums->peer_c += 8 * slots + pages * HASH_ENTRY;
}

/* ---------------------------------------------------------------- all files */

static void keep_largest(struct bench *b, struct rows **rows, const char *path, uint16_t exe,
			 uint64_t ns)
{
	if (b->rows && rows_count(b->rows) >= rows_count(*rows))
		return;
	rows_free(b->rows);
	b->rows = take_ptr(*rows);
	b->exe = exe;
	b->publish_ns = ns;
	snprintf(b->path, sizeof(b->path), "%s", path);
}

static int publish(struct bench *b, struct table *table, uint16_t *ret, uint64_t *ret_ns)
{
	const struct file_id file = {.inode = b->sums.files};
	uint64_t start_ns;
	int r;

	r = tables_exe_get(b->tables, &file, nsec_monotonic(), ret);
	start_ns = nsec_monotonic();
	if (!r)
		r = tables_publish(b->tables, *ret, table, start_ns);
	*ret_ns = nsec_monotonic() - start_ns;
	return r;
}

static int bench_file(struct bench *b, const char *path)
{
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	_cleanup_(rows_freep) struct rows *rows = NULL;
	struct table *table;
	struct ehframe_stats stats;
	uint64_t start_ns, ns;
	uint16_t exe;
	struct stat st;
	int fd;

	if (lstat(path, &st) || !S_ISREG(st.st_mode))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || elffile_open(fd, &file) || compile_image(file, &stats, &rows))
		return 0;
	start_ns = nsec_read(CLOCK_THREAD_CPUTIME_ID);
	if (table_pack(rows, &table))
		return 0;
	b->sums.pack_ns += nsec_read(CLOCK_THREAD_CPUTIME_ID) - start_ns;
	b->sums.files++;
	b->sums.rows += table->n_rows;
	b->sums.bytes += table->n_bytes;
	b->sums.cut += table->n_cut;
	b->sums.rule_runs += table->n_rule_runs;
	add_peers(&b->sums, rows);
	if (publish(b, table, &exe, &ns))
		return -1;
	keep_largest(b, &rows, path, exe, ns);
	return 0;
}

static int bench_pattern(struct bench *b, const char *pattern)
{
	glob_t found;
	int r = 0;

	if (glob(pattern, GLOB_TILDE, NULL, &found))
		return 0;
	for (size_t i = 0; i < found.gl_pathc && !r; i++)
		r = bench_file(b, found.gl_pathv[i]);
	globfree(&found);
	return r;
}

static void print_sums(const struct bench *b)
{
	const struct sums *s = &b->sums;
	struct tables_stats stats = tables_stats(b->tables);
	double rows = (double)s->rows, files = (double)s->files;
	size_t fixed = tablemaps_fixed_bytes();

	printf("table: %" PRIu64 " files, %" PRIu64 " rows: %.3f bytes a row, %.1f MB; layout A "
	       "%.1f, %.1f MB; B %.2f, %.1f MB; C %.2f, %.1f MB\n",
	       s->files, s->rows, (double)s->bytes / rows, (double)s->bytes / 1e6,
	       (double)s->peer_a / rows, (double)s->peer_a / 1e6, (double)s->peer_b / rows,
	       (double)s->peer_b / 1e6, (double)s->peer_c / rows, (double)s->peer_c / 1e6);
	figure_beside((double)s->bytes / rows, (double)s->peer_a / rows, "layout A", "bytes",
		      "a row");
	printf("table: packed in %.0f ms of CPU, %.0f ns a row; %" PRIu64 " rows cut\n",
	       (double)s->pack_ns / 1e6, (double)s->pack_ns / rows, s->cut);
	printf("table: in the kernel: slabs %.1f MB (%.3f bytes a row), %u rules and %u rule runs "
	       "of "
	       "all files (%.1f KB)\n",
	       (double)stats.slab_bytes / 1e6, (double)stats.slab_bytes / rows, stats.rules,
	       stats.rule_runs,
	       (stats.rules * (double)sizeof(struct unwind_rule) +
		stats.rule_runs * (double)sizeof(struct table_rule_run)) /
		       1e3);
	printf("table: %.0f executables of the mean size: %.1f MB and %.2f MB of fixed maps; rows "
	       "alone in layout A %.0f MB, B %.0f MB, C %.0f MB\n",
	       EXECUTABLES, (double)stats.slab_bytes / files * EXECUTABLES / 1e6,
	       (double)fixed / 1e6, (double)s->peer_a / files * EXECUTABLES / 1e6,
	       (double)s->peer_b / files * EXECUTABLES / 1e6,
	       (double)s->peer_c / files * EXECUTABLES / 1e6);
	printf("table: the largest, %s, %zu rows: into the kernel in %.2f ms\n", b->path,
	       rows_count(b->rows), (double)b->publish_ns / 1e6);
}

/* Again, into existing slabs. */
static int bench_publish(struct bench *b)
{
	uint64_t best_ns = UINT64_MAX, ns, now_ns = nsec_monotonic();
	const struct file_id file = {.device = 1}; /* no file has it */

	for (int i = 0; i < RUNS; i++) {
		struct table *table;

		/* nobody's any more, then gone, then free */
		tables_exe_put(b->tables, b->exe, now_ns);
		for (int tick = 0; tick < 2; tick++) {
			now_ns += 2 * NSEC_PER_SEC;
			tables_tick(b->tables, now_ns);
		}
		if (table_pack(b->rows, &table) ||
		    tables_exe_get(b->tables, &file, now_ns, &b->exe))
			return -1;
		ns = nsec_monotonic();
		if (tables_publish(b->tables, b->exe, table, now_ns))
			return -1;
		ns = nsec_monotonic() - ns;
		best_ns = ns < best_ns ? ns : best_ns;
	}
	printf("table: the same into slabs that are there: %.2f ms, best of %d\n",
	       (double)best_ns / 1e6, RUNS);
	return 0;
}

/* ---------------------------------------------------------------- lookups */

static int fill_page(const struct bench *b, size_t first, size_t n)
{
	struct peer_page_key key = {PEER_FILE, rows_at(b->rows, first).vaddr >> PEER_PAGE_SHIFT};
	struct peer_page page = {(uint32_t)first, (uint32_t)n};

	return bpf_map_update_elem(bpf_map__fd(b->skel->maps.peer_pages), &key, &page, BPF_ANY);
}

static int fill_infos(const struct bench *b)
{
	for (uint32_t i = 0; i < rows_n_rules(b->rows); i++) {
		struct peer_info info = {{rows_rule(b->rows, i)->cfa_off}};
		int r = bpf_map_update_elem(bpf_map__fd(b->skel->maps.peer_infos), &i, &info,
					    BPF_ANY);

		if (r)
			return r;
	}
	return 0;
}

/* Layout C's maps for the largest file. */
static int fill_peer(const struct bench *b)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_INNER_MAP);
	uint32_t n = (uint32_t)rows_count(b->rows), first = 0;
	_cleanup_(close_fdp) int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "peer_rows", 4,
						     sizeof(struct peer_row), n, &opts);
	uint64_t file = PEER_FILE;
	int r = fd < 0 ? fd : fill_infos(b);

	for (uint32_t i = 0; !r && i < n; i++) {
		struct row row = rows_at(b->rows, i);
		struct peer_row peer = {(uint16_t)row.vaddr, (uint16_t)row.rule};

		r = bpf_map_update_elem(fd, &i, &peer, BPF_ANY);
		if (i + 1 == n || rows_at(b->rows, i + 1).vaddr >> PEER_PAGE_SHIFT !=
					  row.vaddr >> PEER_PAGE_SHIFT) {
			r = r ? r : fill_page(b, first, i + 1 - first);
			first = i + 1;
		}
	}
	return r ? r : bpf_map_update_elem(bpf_map__fd(b->skel->maps.peer_files), &file, &fd, 0);
}

/* Addresses of code, each in some row of its page, so both layouts answer. */
static void fill_queries(const struct bench *b)
{
	size_t n = rows_count(b->rows);
	uint64_t seed = 7;

	for (size_t i = 0; i < LOOKUP_QUERIES;) {
		struct row row, next;
		size_t at;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		at = (seed >> 20) % (n - 1);
		row = rows_at(b->rows, at);
		next = rows_at(b->rows, at + 1);
		if (row.vaddr >> PEER_PAGE_SHIFT != (next.vaddr - 1) >> PEER_PAGE_SHIFT)
			continue;
		b->queries[i++] = (struct lookup_query){
			.vaddr = row.vaddr + (seed >> 8) % (next.vaddr - row.vaddr),
			.exe = b->exe,
		};
	}
}

static double best_ns(const struct bench *b, const struct bpf_program *program)
{
	uint64_t args[12] = {0}, best = UINT64_MAX;
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	for (int i = 0; i < RUNS; i++) {
		if (bpf_prog_test_run_opts(bpf_program__fd(program), &opts))
			return -1;
		if (b->skel->bss->lookup_ns < best)
			best = b->skel->bss->lookup_ns;
	}
	return (double)best / LOOKUP_MANY;
}

/* Both must say the same, or the comparison is worth nothing. */
static size_t different(const struct bench *b)
{
	static int32_t ours[LOOKUP_QUERIES];
	size_t n = 0;

	for (size_t i = 0; i < LOOKUP_QUERIES; i++)
		ours[i] = b->queries[i].rule.cfa_off;
	best_ns(b, b->skel->progs.many_peer);
	for (size_t i = 0; i < LOOKUP_QUERIES; i++)
		n += b->queries[i].rule.cfa_off != ours[i];
	return n;
}

static void bench_lookups(const struct bench *b)
{
	static const uint32_t sets[] = {LOOKUP_QUERIES, 256, 16};

	for (size_t i = 0; i < array_size(sets); i++) {
		double empty, ours, peer;

		b->skel->data->lookup_mask = sets[i] - 1;
		empty = best_ns(b, b->skel->progs.many_empty);
		ours = best_ns(b, b->skel->progs.many_ours) - empty;
		peer = best_ns(b, b->skel->progs.many_peer) - empty;
		printf("table: lookup among %u addresses: %.1f ns, layout C %.1f ns (%.1f times)\n",
		       sets[i], ours, peer, peer / ours);
		figure_beside(ours, peer, "layout C", "ns", "lookup among %u", sets[i]);
	}
	b->skel->data->lookup_mask = LOOKUP_QUERIES - 1;
	best_ns(b, b->skel->progs.many_ours);
	printf("table: %zu answers differ between the layouts\n", different(b));
}

/* ---------------------------------------------------------------- all measurements */

static int bench_open(struct bench *b)
{
	struct tables_opts opts = {.budget_bytes = BUDGET};
	void *queries;
	int r;

	b->skel = lookup_bpf__open_and_load();
	if (!b->skel)
		return -errno;
	queries = mmap(NULL, sizeof(struct lookup_query) * LOOKUP_QUERIES, PROT_READ | PROT_WRITE,
		       MAP_SHARED, bpf_map__fd(b->skel->maps.lookup_queries), 0);
	if (queries == MAP_FAILED)
		return -errno;
	b->queries = queries;
	r = tablemaps_new(
		&(struct tablemaps_fds){.slabs = bpf_map__fd(b->skel->maps.table_slabs),
					.exes = bpf_map__fd(b->skel->maps.table_exes),
					.uses = bpf_map__fd(b->skel->maps.table_uses),
					.rules = bpf_map__fd(b->skel->maps.table_rules),
					.rule_runs = bpf_map__fd(b->skel->maps.table_rule_runs)},
		&b->maps);
	if (r)
		return r;
	opts.memory = tablemaps_memory(b->maps);
	return tables_new(&opts, &b->tables);
}

static void bench_close(struct bench *b)
{
	rows_free(b->rows);
	tables_free(b->tables);
	tablemaps_free(b->maps);
	if (b->queries)
		munmap(b->queries, sizeof(struct lookup_query) * LOOKUP_QUERIES);
	lookup_bpf__destroy(b->skel);
}

static int run(struct bench *b, int argc, char **argv)
{
	static const char *const usual[] = {
		"/usr/lib/*-linux-gnu/lib*.so*",
		"/usr/bin/*",
		"/usr/sbin/*",
		"/usr/lib/gcc/*/*/cc1*",
		"/usr/lib/chromium/chromium",
		"/usr/lib/jvm/*/lib/server/libjvm.so",
		"/usr/lib/postgresql/*/bin/postgres",
		"~/.rustup/toolchains/stable*/lib/lib*.so*",
	};
	int r = bench_open(b);

	for (int i = 1; i < argc && !r; i++)
		r = bench_file(b, argv[i]);
	for (size_t i = 0; argc == 1 && i < array_size(usual) && !r; i++)
		r = bench_pattern(b, usual[i]);
	if (r)
		return r;
	if (!b->rows || rows_count(b->rows) < 2) {
		printf("table: no file with rows\n");
		return 0;
	}
	print_sums(b);
	r = bench_publish(b);
	if (!r)
		r = fill_peer(b);
	if (r)
		return r;
	fill_queries(b);
	bench_lookups(b);
	return 0;
}

int main(int argc, char **argv)
{
	_cleanup_(bench_close) struct bench b = {0};
	int r = run(&b, argc, argv);

	if (r)
		fprintf(stderr, "bench_table: %s\n", r < 0 ? strerror(-r) : "no room for a table");
	return r != 0;
}
