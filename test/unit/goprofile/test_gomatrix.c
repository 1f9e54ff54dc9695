// SPDX-License-Identifier: Apache-2.0
/*
 * The oracle of Go's heaps: a program with all kinds of allocations that look different in a
 * profile (test/fixtures/go/heap), built by several releases of Go in all variants. At rest each
 * process writes its own heap profile and memory statistics. The values read from outside must be
 * equal, record by record: stacks with names, files, lines and inlining, the label, and all four
 * values; and the allocator's counters within 0.02 %.
 *
 * Each cell of the table, release by variant, is a process of its own. A table is printed at the
 * end; "make check-go" runs it with all releases and all variants.
 */
#include "support/test.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/root.h"
#include "support/gofixture.h"
#include "support/heapoutside.h"
#include "support/samelines.h"

#define FIXTURE	     "test/fixtures/go/heap"
#define FAILURES_MAX 20000 /* shown bytes of a failed cell's output */

static const char *const types[] = {"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"};

/* ---------------------------------------------------------------- releases and variants */

/* Releases of each variant in the short form. Each way of compiling Go's library takes 14 s of CPU
 * for each release, the first time. "make check-go", with $PODPROF_TEST_GO, tests all combinations.
 */
enum releases {
	ALL,	/* with the default's library */
	NEWEST, /* compiles the library again */
	NONE,	/* with the default's library, or without its tools in the tests */
};

/* @name: as in build-go.sh. */
static const struct variant {
	const char *name;
	const char *shown;
	enum releases releases;
	unsigned int since;
} variants[] = {
	{"default", "default", ALL, 0},
	{"stripped", "-s -w", ALL, 0},
	{"strip", "binutils' strip", ALL, 0},
	{"sectionless", "no section headers", ALL, 0},
	{"stripped-sectionless", "-s -w, no section headers", ALL, 0},
	{"trimpath", "-trimpath", NEWEST, 0},
	{"pie", "PIE, Go's linker", NEWEST, 0},
	{"pie-stripped", "PIE, Go's linker, -s -w", NEWEST, 0},
	{"cgo-internal", "cgo, Go's linker", ALL, 0},
	{"cgo", "cgo, C linker", ALL, 0},
	{"cgo-pie", "cgo, C linker, PIE", NEWEST, 0},
	{"cgo-pie-stripped", "cgo, C linker, PIE, -s -w", NEWEST, 0},
	{"cgo-static", "cgo, static", ALL, 0},
	{"cgo-static-pie", "cgo, static PIE", NEWEST, 21},
	{"plugin", "plugin in a Go program", NEWEST, 0},
	{"c-shared", "c-shared in a C program", NEWEST, 0},
	{"c-shared-stripped", "c-shared in a C program, -s -w", NEWEST, 0},
	{"c-shared-python", "c-shared in Python", NEWEST, 0},
	{"packed", "unpacked into anonymous memory", ALL, 0},
	{"upx", "packed by UPX", NONE, 0},
	{"upx-pie", "PIE, packed by UPX", NONE, 0},
	{"race", "-race", NONE, 0},
	{"noopt", "-gcflags='all=-N -l'", NONE, 0},
	{"noinline", "-gcflags=all=-l", NONE, 0},
	{"amd64v3", "GOAMD64=v3", NONE, 18},
	{"experiment", "a GOEXPERIMENT turned over", NONE, 0},
	{"devel", "version \"devel +...\"", ALL, 0},
	{"vendor", "version \"go1.N.99-vendor.2 X:...\"", ALL, 0},
	{"unversioned", "version that says nothing", ALL, 0},
};

#define N_VARIANTS array_size(variants)

/* Without GC nothing is published. GODEBUG=profstackdepth exists since 1.23. Its maximum, 1024,
 * makes Go 1.26 and later fail: they add two and then reject the sum. */
static const struct run {
	const char *env;
	const char *parts[2];
	unsigned int since;
	bool default_only; /* in the short form, of the default variant alone */
} runs[] = {
	{"HEAP_RATE=524288", {"all"}, 0, true},
	{"HEAP_RATE=4096", {"all"}, 0, false},
	{"HEAP_RATE=1", {"all"}, 0, true},
	{"HEAP_RATE=64;HEAP_GC=0", {"large", "inline"}, 0, true},
	{"HEAP_RATE=512;GODEBUG=profstackdepth=7", {"limits", "closures"}, 23, true},
	{"HEAP_RATE=512;GODEBUG=profstackdepth=1000", {"limits", "closures"}, 23, true},
};

/* "make check-go". */
static bool everything(void)
{
	return getenv("PODPROF_TEST_GO") != NULL;
}

static bool is_tried(const struct variant *variant, bool newest)
{
	return everything() || variant->releases == ALL || (variant->releases == NEWEST && newest);
}

/* The tests do not install UPX: $PODPROF_UPX names the path. */
static bool is_missing(const char *variant)
{
	return strncmp(variant, "upx", 3) == 0 && !getenv("PODPROF_UPX");
}

/* ---------------------------------------------------------------- one process */

struct cell {
	const char *go;
	const struct variant *variant;
	pid_t pid;
	FILE *output;
	bool left_out;
	bool failed;
	/* results of the process, in shared memory */
	struct found {
		struct samelines_tally tally;
		unsigned int minor;
		bool totals;
	} * found;
};

static void read_file(const char *path, struct buf *ret)
{
	const struct root here = {.fd = AT_FDCWD};

	ret->len = 0;
	assert_int_equal(root_read(&here, path, ret), 0);
}

/* The first read is complete; later reads fetch counters and new records. */
static void compare_profiles(struct heapoutside *o, const char *file, struct samelines_tally *tally)
{
	_cleanup_(buf_deinit) struct buf own = BUF_INIT(HEAPOUTSIDE_BYTES_MAX);
	_cleanup_(buf_deinit) struct buf ours = BUF_INIT(HEAPOUTSIDE_BYTES_MAX);
	_cleanup_(samelines_deinit) struct samelines own_lines = {0}, our_lines = {0};
	struct go_profile_report_stats stats = {0};
	struct goheap_totals totals;

	assert_int_equal(
		heapoutside_read(o, &heapoutside_cumulative, false, &ours, &stats, &totals), 0);
	assert_int_equal(stats.n_left_out, 0);
	assert_int_equal(stats.n_unnamed, 0);
	read_file(file, &own);
	samelines_of(&own, types, array_size(types), &own_lines);
	samelines_of(&ours, types, array_size(types), &our_lines);
	samelines_compare(&own_lines, &our_lines, tally);
}

/* @now was read after @then; meanwhile the program only allocated to write its file. Go 1.17
 * and 1.18 count the spans of processors in advance (gototals.h).
 */
static void assert_near(const char *what, uint64_t now, uint64_t then, uint64_t ahead)
{
	if (now < then || now - then > then / 5000 + 4096 + ahead)
		fail_msg("%s: %" PRIu64 " from outside, after %" PRIu64, what, now, then);
}

static void compare_totals(struct heapoutside *o, const char *file, unsigned int minor)
{
	uint64_t ahead_bytes = minor < 19 ? 256 << 10 : 0, ahead_objects = minor < 19 ? 16384 : 0;
	char path[4096 + sizeof(".stats")];
	struct gototals now;
	uint64_t total, mallocs, heap, frees;
	FILE *f;

	goprocess_order(&o->process, "stats");
	snprintf(path, sizeof(path), "%s.stats", file);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &total, &mallocs,
				&heap, &frees),
			 4); // NOLINT(cert-err34-c): our own fixture's
	fclose(f);
	remove(path);
	assert_int_equal(goheap_exact(o->heap, &now), 0);
	assert_near("allocated bytes", now.alloc_bytes, total, ahead_bytes);
	assert_near("allocated objects", now.alloc_objects, mallocs, ahead_objects);
	assert_near("freed bytes", now.free_bytes, total - heap, ahead_bytes);
	assert_near("freed objects", now.free_objects, frees, ahead_objects);
}

/* Whether podprof can find the allocator's counters. Up to 1.18 the release must be known, because
 * only the sum tells the counters apart, and 1.16 has different ones. */
static bool has_totals(const struct cell *cell, unsigned int minor)
{
	bool told = strcmp(cell->variant->name, "devel") != 0 &&
		    strcmp(cell->variant->name, "unversioned") != 0;

	return minor >= 19 || (minor >= 17 && told && !strstr(cell->variant->name, "sectionless"));
}

static void check_run(const struct cell *cell, const char *path, const struct run *run)
{
	_cleanup_(heapoutside_deinit) struct heapoutside o = HEAPOUTSIDE_INIT;
	struct samelines_tally tally = {0};
	char file[4096];
	const char *const args[] = {file, run->parts[0], run->parts[1], NULL};

	row_begin(run->env);
	snprintf(file, sizeof(file), "%s.own.%d", path, (int)getpid());
	heapoutside_start(&o, path, args, run->env);
	compare_profiles(&o, file, &tally);
	goprocess_order(&o.process, "again");
	compare_profiles(&o, file, &tally);
	if (has_totals(cell, gofixture_minor(path))) {
		compare_totals(&o, file, gofixture_minor(path));
		cell->found->totals = true;
	}
	remove(file);
	assert_true(tally.n_lines > 10);
	print_message("  %zu records, %zu one off, %zu frames\n", tally.n_lines, tally.n_one_off,
		      tally.n_frames);
	cell->found->tally.n_lines += tally.n_lines;
	cell->found->tally.n_exact += tally.n_exact;
	cell->found->tally.n_one_off += tally.n_one_off;
	cell->found->tally.n_frames += tally.n_frames;
}

static void equal_to_own(void **state)
{
	const struct cell *cell = *state;
	_cleanup_(freep) char *path = gofixture_build(FIXTURE, cell->go, cell->variant->name);
	unsigned int minor = gofixture_minor(path);

	cell->found->minor = minor;
	for (size_t i = 0; i < array_size(runs); i++)
		if (minor >= runs[i].since &&
		    (everything() || !runs[i].default_only || cell->variant == &variants[0]))
			check_run(cell, path, &runs[i]);
}

/* ---------------------------------------------------------------- all cells */

static struct cell *this_cell;

static int set_cell(void **state)
{
	*state = this_cell;
	return 0;
}

static void start_cell(struct cell *cell)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(equal_to_own)};

	cell->output = tmpfile();
	assert_non_null(cell->output);
	fflush(NULL);
	cell->pid = fork();
	assert_true(cell->pid >= 0);
	if (cell->pid)
		return;
	this_cell = cell;
	dup2(fileno(cell->output), STDOUT_FILENO);
	dup2(fileno(cell->output), STDERR_FILENO);
	exit(cmocka_run_group_tests(tests, set_cell, NULL));
}

static void wait_for_cell(struct cell *cells, size_t n)
{
	int status;
	pid_t pid = wait(&status);

	assert_true(pid > 0);
	for (size_t i = 0; i < n; i++)
		if (cells[i].pid == pid)
			cells[i].failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static void run_cells(struct cell *cells, size_t n)
{
	size_t n_running = 0, n_cpus = (size_t)sysconf(_SC_NPROCESSORS_ONLN);

	for (size_t i = 0; i < n; i++) {
		if (cells[i].left_out)
			continue;
		if (n_running >= n_cpus)
			wait_for_cell(cells, n);
		else
			n_running++;
		start_cell(&cells[i]);
	}
	while (n_running-- > 0)
		wait_for_cell(cells, n);
}

/* Without the leak checker's later output. */
static void show_failure(const struct cell *cell)
{
	char text[FAILURES_MAX + 1], *end;

	rewind(cell->output);
	text[fread(text, 1, FAILURES_MAX, cell->output)] = '\0';
	end = strstr(text, "ERROR: LeakSanitizer");
	if (end)
		*end = '\0';
	printf("---- %s, %s:\n%s\n", cell->go, cell->variant->shown, text);
}

static const char *mark_of(const struct cell *cell)
{
	if (cell->left_out)
		return "";
	return cell->failed ? "**no**" : "yes";
}

/* For the documentation: variant by release. */
static void show_table(const struct cell *cells, const char *const *gos, size_t n_gos)
{
	struct samelines_tally all = {0};

	print_message("| %-36s |", "");
	for (size_t i = 0; i < n_gos; i++)
		print_message(" %s |", gos[i]);
	print_message("\n|---|");
	for (size_t i = 0; i < n_gos; i++)
		print_message("---|");
	print_message("\n");
	for (size_t k = 0; k < N_VARIANTS; k++) {
		print_message("| %-36s |", variants[k].shown);
		for (size_t i = 0; i < n_gos; i++)
			print_message(" %s |", mark_of(&cells[i * N_VARIANTS + k]));
		print_message("\n");
	}
	for (size_t i = 0; i < n_gos * N_VARIANTS; i++) {
		all.n_lines += cells[i].found->tally.n_lines;
		all.n_one_off += cells[i].found->tally.n_one_off;
		all.n_frames += cells[i].found->tally.n_frames;
	}
	print_message("%zu records of %zu frames compared; %zu have a value that is one off\n",
		      all.n_lines, all.n_frames, all.n_one_off);
}

/* Whether @name is among the words, separated by spaces; NULL means all. */
static bool is_wanted(const char *words, const char *name)
{
	size_t n = strlen(name);

	while (words && *words) {
		size_t len = strcspn(words, " ");

		if (len == n && strncmp(words, name, n) == 0)
			return true;
		words += len + (words[len] == ' ');
	}
	return !words;
}

static void matrix(void **state)
{
	const char *gos[GOFIXTURE_GOS_MAX] = {NULL};
	const char *only = getenv("PODPROF_TEST_VARIANT");
	size_t n_gos = gofixture_releases(gos), n = n_gos * N_VARIANTS, n_failed = 0;
	_cleanup_(freep) struct cell *cells = calloc(n, sizeof(*cells));
	struct found *found = mmap(NULL, n * sizeof(*found), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_non_null(cells);
	assert_true(found != MAP_FAILED);
	for (size_t i = 0; i < n; i++) {
		const struct variant *variant = &variants[i % N_VARIANTS];
		const char *go = gos[i / N_VARIANTS];
		unsigned int minor = strncmp(go, "1.", 2) == 0 ? (unsigned int)atoi(go + 2) : 99;

		cells[i] = (struct cell){.go = go, .variant = variant, .found = &found[i]};
		cells[i].left_out = is_missing(variant->name) ||
				    !is_tried(variant, i / N_VARIANTS + 1 == n_gos) ||
				    variant->since > minor || !is_wanted(only, variant->name);
	}
	run_cells(cells, n);
	for (size_t i = 0; i < n; i++) {
		if (cells[i].failed)
			show_failure(&cells[i]);
		n_failed += cells[i].failed;
		if (cells[i].output)
			fclose(cells[i].output);
	}
	show_table(cells, gos, n_gos);
	munmap(found, n * sizeof(*found));
	assert_int_equal(n_failed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(matrix)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
