// SPDX-License-Identifier: Apache-2.0
/*
 * The line table compared with two other readers: the Go runtime itself, asked inside a program
 * about each of its addresses (test/fixtures/go/lines), and Go's debug/gosym for foreign files
 * (test/support/gotruth). Both print the same lines, described in lines/main.go.
 */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strview.h"
#include "elf/elffile.h"
#include "support/gofixture.h"
#include "gofile/gofuncs.h"
#include "gofile/gomodule.h"
#include "gofile/gopclntab.h"

#define LINES_SRC "test/fixtures/go/lines"
#define TRUTH_SRC "test/support/gotruth"

DEFINE_CLEANUP(struct gopclntab *, gopclntab_freep, gopclntab_free);

/* A file with its table, and the compared values. */
struct subject {
	struct elffile *file;
	struct gopclntab *table;
	unsigned int minor;  /* of the Go release */
	uint8_t wrapper_id;  /* 0 where the release is not known */
	bool outermost_only; /* the truth has functions' own names, without inlined frames */
	uint64_t bias;	     /* run-time address minus vaddr */
	size_t n_checked;
	size_t n_inlined;
	size_t n_wrong;
};

static void subject_deinit(struct subject *s)
{
	gopclntab_free(s->table);
	elffile_free(s->file);
}

/* Each release's number for wrappers (cmd/internal/objabi/funcid.go, later internal/abi/symtab.go).
 */
static uint8_t wrapper_id(unsigned int minor)
{
	static const uint8_t ids[] = {
		[16] = 22, [17] = 22, [18] = 21, [19] = 21, [20] = 21, [21] = 21,
		[22] = 22, [23] = 22, [24] = 22, [25] = 23, [26] = 23, [27] = 23,
	};

	assert_in_range(minor, 16, array_size(ids) - 1);
	return ids[minor];
}

static void subject_open(struct subject *s, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(elffile_open(fd, &s->file), 0);
	assert_int_equal(gopclntab_open(s->file, &s->table), 0);
	assert_true(gopclntab_has_inlining(s->table));
}

static void subject_open_fixture(struct subject *s, const char *path)
{
	subject_open(s, path);
	s->minor = gofixture_minor(path);
	s->wrapper_id = wrapper_id(s->minor);
}

static void set_bias(struct subject *s, uint64_t anchor)
{
	static const char *const names[] = {"main.anchor"};
	struct gomodule module;
	struct gofuncs_one found;

	assert_int_equal(gomodule_find(s->file, &module), 0);
	assert_int_equal(gofuncs_find(s->file, &module, names, 1, &found), 0);
	assert_true(found.entry);
	s->bias = anchor - found.entry;
}

/* ---------------------------------------------------------------- one line of truth */

struct level {
	struct strview function;
	struct strview file;
	uint64_t line;
	uint64_t start_line;
};

static bool next_level(struct strview *t, struct level *ret)
{
	struct strview line, start_line;

	return strview_until(t, '\t', &ret->function) && strview_until(t, '\t', &ret->file) &&
	       strview_until(t, '\t', &line) && strview_until(t, '\t', &start_line) &&
	       strview_only_u64(line, 10, &ret->line) &&
	       strview_only_u64(start_line, 10, &ret->start_line);
}

/* The string, up to the length limit. */
static bool same_text(struct strview t, const char *s)
{
	size_t n = strview_len(&t);

	if (n > GOPCLNTAB_NAME_MAX - 1)
		n = GOPCLNTAB_NAME_MAX - 1;
	return strlen(s) == n && memcmp(t.p, s, n) == 0;
}

static bool same_function(const struct gopclntab_line *line, const struct level *level)
{
	/* the runtime has no name for the first function name in the table */
	return strview_empty(&level->function) || same_text(level->function, line->function);
}

static bool same_place(const struct gopclntab_line *line, const struct level *level)
{
	if (strview_is(&level->file, "*")) /* debug/gosym does not know */
		return true;
	/* unknown to the runtime: "?", line 0 */
	if (level->line == 0)
		return line->line == 0 && line->file[0] == '\0';
	return line->line == level->line && same_text(level->file, line->file);
}

static bool same_level(const struct gopclntab_line *line, const struct level *level)
{
	return same_function(line, level) && same_place(line, level) &&
	       (int32_t)line->start_line == (int32_t)level->start_line;
}

static void wrong(struct subject *s, uint64_t vaddr, const struct level *want,
		  const struct gopclntab_line *got)
{
	if (s->n_wrong++ < 10)
		print_error("at %#llx: want %.*s %.*s:%llu (%llu), got %s %s:%u (%u)\n",
			    (unsigned long long)vaddr, (int)strview_len(&want->function),
			    want->function.p, (int)strview_len(&want->file), want->file.p,
			    (unsigned long long)want->line, (unsigned long long)want->start_line,
			    got->function, got->file, got->line, got->start_line);
}

static void find(struct subject *s, uint64_t vaddr, struct gopclntab_line *ret)
{
	int r = gopclntab_find(s->table, vaddr, ret);

	if (r)
		fail_msg("at %#llx: outcome %d", (unsigned long long)vaddr, r);
	if (s->wrapper_id && ret->line && ret->wrapper != (ret->func_id == s->wrapper_id) &&
	    s->n_wrong++ < 10)
		print_error("%s: id %u taken for %s\n", ret->function, ret->func_id,
			    ret->wrapper ? "a wrapper" : "none");
}

/* The next enclosing function. The runtime skips wrappers there; up to 1.20 only inlined wrappers.
 */
static bool find_parent(struct subject *s, struct gopclntab_line *line)
{
	do {
		if (line->parent_pc < 0)
			return false;
		find(s, line->entry + (uint64_t)line->parent_pc, line);
		s->n_inlined++;
	} while (line->wrapper && (s->minor > 20 || line->parent_pc >= 0));
	return true;
}

static void check_levels(struct subject *s, uint64_t vaddr, struct strview levels)
{
	struct gopclntab_line line;
	struct level want;

	find(s, vaddr, &line);
	s->n_checked++;
	assert_true(next_level(&levels, &want));
	for (;;) {
		if (!same_level(&line, &want)) {
			wrong(s, vaddr, &want, &line);
			return;
		}
		if (!next_level(&levels, &want))
			break;
		if (!find_parent(s, &line)) {
			wrong(s, vaddr, &want, &line);
			return;
		}
	}
	want = (struct level){.function = strview_of("(no more)"), .file = strview_of("")};
	if (find_parent(s, &line))
		wrong(s, vaddr, &want, &line);
}

/* The truth has the place of the innermost function under the name of the outermost. */
static void check_physical(struct subject *s, uint64_t vaddr, struct strview levels)
{
	struct gopclntab_line line;
	struct level want;
	bool ok;

	find(s, vaddr, &line);
	s->n_checked++;
	assert_true(next_level(&levels, &want));
	ok = same_place(&line, &want);
	for (size_t depth = 0; line.parent_pc >= 0; depth++) {
		assert_true(depth < 64);
		find(s, line.entry + (uint64_t)line.parent_pc, &line);
		s->n_inlined++;
	}
	if (!ok || !same_function(&line, &want))
		wrong(s, vaddr, &want, &line);
}

/* False at the last line. */
static bool check_line(struct subject *s, struct strview t)
{
	uint64_t first = 0, last = 0, anchor = 0;
	struct strview range;

	if (strview_is(&t, "end"))
		return false;
	if (strview_prefix(&t, "anchor ")) {
		assert_true(strview_only_u64(t, 16, &anchor));
		set_bias(s, anchor);
		return true;
	}
	assert_true(strview_until(&t, '\t', &range) && strview_u64(&range, 16, &first) &&
		    strview_char(&range, ' ') && strview_only_u64(range, 16, &last));
	if (s->outermost_only) {
		check_physical(s, first - s->bias, t);
		check_physical(s, last - s->bias, t);
	} else {
		check_levels(s, first - s->bias, t);
		check_levels(s, last - s->bias, t);
	}
	return true;
}

static void check_output(struct subject *s, const char *command)
{
	FILE *out = popen(command, "r"); // NOLINT(bugprone-command-processor,cert-env33-c)
	_cleanup_(freep) char *line = NULL;
	bool more = true;
	size_t cap = 0;
	ssize_t n;

	assert_non_null(out);
	while ((n = getline(&line, &cap, out)) > 0) {
		assert_true(more);
		more = check_line(s, strview_of_bytes(line, (size_t)n - 1));
	}
	assert_int_equal(pclose(out), 0);
	assert_false(more);
	print_message("  %zu addresses, %zu enclosing functions, %llu reads, %zu bytes\n",
		      s->n_checked, s->n_inlined, (unsigned long long)gopclntab_reads(s->table),
		      gopclntab_bytes(s->table));
	assert_int_equal(s->n_wrong, 0);
	assert_true(s->n_checked > 10000 && s->n_inlined > 1000);
}

/* ---------------------------------------------------------------- tests */

/* Every run tests the first variants; "make check-go" tests the others too. */
static size_t n_variants(size_t n_usual, size_t n_all)
{
	return getenv("PODPROF_TEST_GO") ? n_all : n_usual;
}

/* $PODPROF_TEST_VARIANT is the only variant. */
static bool is_left_out(const char *variant)
{
	const char *only = getenv("PODPROF_TEST_VARIANT");

	return only && strcmp(only, variant) != 0;
}

static void runtime_agrees(void **state)
{
	static const char *const variants[] = {"stripped", "pie", "cgo-pie",
					       "default",  "cgo", "pie-stripped"};
	const char *gos[GOFIXTURE_GOS_MAX];
	size_t n = gofixture_gos(gos), n_each = n_variants(3, array_size(variants));

	for (size_t i = 0; i < n * n_each; i++) {
		const char *variant = variants[i % array_size(variants)];
		_cleanup_(freep) char *path = NULL;
		_cleanup_(subject_deinit) struct subject s = {0};

		if (is_left_out(variant))
			continue;
		path = gofixture_build(LINES_SRC, gos[i / array_size(variants)], variant);
		row_begin(path);
		subject_open_fixture(&s, path);
		check_output(&s, path);
	}
}

static void check_gosym(struct subject *s, const char *path, unsigned int step)
{
	_cleanup_(freep) char *truth = gofixture_build(TRUTH_SRC, "go", "default");
	char command[4096];

	s->outermost_only = true;
	assert_true(snprintf(command, sizeof(command), "%s %s %u", truth, path, step) <
		    (int)sizeof(command));
	check_output(s, command);
}

static void gosym_agrees_for_another_machine(void **state)
{
	static const char *const variants[] = {"arm64", "arm64-pie"};
	const char *gos[GOFIXTURE_GOS_MAX];
	size_t n = gofixture_gos(gos), n_each = n_variants(1, array_size(variants));

	for (size_t i = 0; i < n * n_each; i++) {
		const char *variant = variants[i % array_size(variants)];
		_cleanup_(freep) char *path = NULL;
		_cleanup_(subject_deinit) struct subject s = {0};

		if (is_left_out(variant))
			continue;
		path = gofixture_build(LINES_SRC, gos[i / array_size(variants)], variant);
		row_begin(path);
		subject_open_fixture(&s, path);
		check_gosym(&s, path, 4);
	}
}

/* Other programs on the machine: Debian's containerd, as built by Debian, and Go's own compiler.
 * $PODPROF_TEST_GO_FILES adds files and then tests each byte; this takes minutes. */
/* The same for any tested releases. */
static void gosym_agrees_for_large_programs(void **state)
{
	static const char *const found = "/usr/bin/containerd $(go env GOTOOLDIR)/compile";
	const char *named = getenv("PODPROF_TEST_GO_FILES");
	char command[4096], path[4096];
	FILE *list;

	if (getenv("PODPROF_TEST_GO") && !named) {
		print_message("once is enough: without PODPROF_TEST_GO\n");
		return;
	}
	assert_true(snprintf(command, sizeof(command), "printf '%%s\n' %s", named ? named : found) <
		    (int)sizeof(command));
	list = popen(command, "r"); // NOLINT(bugprone-command-processor,cert-env33-c)
	assert_non_null(list);
	while (fgets(path, sizeof(path), list)) {
		_cleanup_(subject_deinit) struct subject s = {0};

		path[strcspn(path, "\n")] = '\0';
		row_begin(path);
		subject_open(&s, path);
		check_gosym(&s, path, named ? 1 : 1009);
	}
	assert_int_equal(pclose(list), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runtime_agrees),
		cmocka_unit_test(gosym_agrees_for_another_machine),
		cmocka_unit_test(gosym_agrees_for_large_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
