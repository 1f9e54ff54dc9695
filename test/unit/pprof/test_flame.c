// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "base/buf.h"
#include "base/root.h"
#include "pprof/flame.h"
#include "pprof/pprof.h"
#include "pprof/reader.h"
#include "support/allocfail.h"

DEFINE_CLEANUP(struct pprof *, pprof_freep, pprof_free);
DEFINE_CLEANUP(struct flame *, flame_freep, flame_free);

static void pclosep(FILE **f)
{
	if (*f)
		pclose(*f);
}

static struct pprof *make(void)
{
	const struct pprof_opts opts = {
		.types = {{"samples", "count"}, {"cpu", "nanoseconds"}},
		.n_types = 2,
		.period_type = {"cpu", "nanoseconds"},
		.max_samples = PPROF_SAMPLES_MAX,
		.max_bytes = PPROF_BYTES_MAX,
	};
	struct pprof *p = NULL;

	assert_int_equal(pprof_new(&opts, &p), 0);
	return p;
}

/* "root;caller;leaf" with a value. A name that ends in '+' is inlined into the name before. */
static void add(struct pprof *p, const char *stack, int64_t value)
{
	_cleanup_(freep) char *copy = strdup(stack);
	uint32_t locations[PPROF_DEPTH_MAX];
	size_t first = PPROF_DEPTH_MAX;
	struct pprof_line lines[8];
	size_t n_lines = 0;
	char *save = NULL;

	for (char *name = strtok_r(copy, ";", &save); name;) {
		char *next = strtok_r(NULL, ";", &save);
		bool inlined_next = next && next[strlen(next) - 1] == '+';
		struct pprof_line *line = &lines[7 - n_lines++];

		if (name[strlen(name) - 1] == '+')
			name[strlen(name) - 1] = '\0';
		assert_int_equal(pprof_function(p, name, name, "f.c", 0, &line->function), 0);
		line->line = 1;
		if (!inlined_next) {
			assert_in_range(first, 1, PPROF_DEPTH_MAX);
			assert_int_equal(pprof_location(p, 0, 16, &lines[8 - n_lines], n_lines,
							&locations[--first]),
					 0);
			n_lines = 0;
		}
		name = next;
	}
	assert_int_equal(pprof_sample(p, locations + first, PPROF_DEPTH_MAX - first,
				      (int64_t[]){1, value}, NULL, 0),
			 0);
}

static struct flame *flame_of(const struct pprof *p, const char *type)
{
	struct flame *f = NULL;

	assert_int_equal(flame_new(&f), 0);
	assert_int_equal(flame_add(f, pprof_tables(p), type), 0);
	return f;
}

static long at(const json_t *array, size_t i)
{
	return (long)json_integer_value(json_array_get(array, i));
}

/* The tree as lines of "depth name value self". */
static void check_tree(const struct flame *f, size_t max_nodes, const char *want)
{
	_cleanup_(buf_deinit) struct buf got = BUF_INIT(1u << 20);
	json_t *json = NULL, *nodes, *names;

	assert_int_equal(flame_json(f, max_nodes, &json), 0);
	nodes = json_object_get(json, "nodes");
	names = json_object_get(json, "names");
	for (size_t i = 0; i < json_array_size(json_object_get(nodes, "name")); i++) {
		long name = at(json_object_get(nodes, "name"), i);

		assert_int_equal(buf_printf(&got, "%ld %s %ld %ld\n",
					    at(json_object_get(nodes, "depth"), i),
					    json_string_value(json_array_get(names, (size_t)name)),
					    at(json_object_get(nodes, "value"), i),
					    at(json_object_get(nodes, "self"), i)),
				 0);
	}
	assert_string_equal(got.data, want);
	json_decref(json);
}

/* Images without names of all profiles, by their share of the value. */
static void test_unnamed(void **state)
{
	static const char *const comments[2][3] = {
		{"unnamed 50.0% a /lib/x", "command: sh", "unnamed 20.0% b /lib/y"},
		{"unnamed 10.0% a /lib/z", "unnamed 40.0% b /lib/y", "unnamed 5.0% b /lib/x"},
	};
	const int64_t values[] = {100, 300};
	const char *reason, *path;
	struct flame *f = NULL;
	double share;
	json_t *json;

	(void)state;
	assert_int_equal(flame_new(&f), 0);
	for (size_t i = 0; i < 2; i++) {
		struct pprof *p = make();

		add(p, "a", values[i]);
		for (size_t k = 0; k < 3; k++)
			assert_int_equal(pprof_comment(p, comments[i][k]), 0);
		assert_int_equal(flame_add(f, pprof_tables(p), NULL), 0);
		pprof_free(p);
	}
	assert_int_equal(flame_json(f, 10, &json), 0);
	/* 20 + 120 of 400, then 50, then 30 */
	assert_int_equal(json_array_size(json_object_get(json, "unnamed")), FLAME_UNNAMED_SHOWN);
	assert_int_equal(json_unpack(json_array_get(json_object_get(json, "unnamed"), 0),
				     "{s:f, s:s, s:s}", "share", &share, "reason", &reason, "path",
				     &path),
			 0);
	assert_true(share > 0.3499 && share < 0.3501);
	assert_string_equal(reason, "b");
	assert_string_equal(path, "/lib/y");
	assert_int_equal(json_unpack(json_array_get(json_object_get(json, "unnamed"), 2),
				     "{s:f, s:s}", "share", &share, "path", &path),
			 0);
	assert_true(share > 0.0749 && share < 0.0751);
	assert_string_equal(path, "/lib/z");
	json_decref(json);
	flame_free(f);
}

struct tree_row {
	const char *name;
	struct {
		const char *stack;
		int64_t value;
	} samples[6];
	size_t max_nodes;
	const char *want;
};

static const struct tree_row tree_rows[] = {
	{"nothing", {{NULL, 0}}, 100, "0  0 0\n"},
	{"one stack", {{"a;b;c", 5}}, 100, "0  5 0\n1 a 5 0\n2 b 5 0\n3 c 5 5\n"},
	{"ends within another", {{"a;b", 5}, {"a", 2}}, 100, "0  7 0\n1 a 7 2\n2 b 5 5\n"},
	{"children by name",
	 {{"a;z", 5}, {"a;b", 1}, {"a;m", 9}},
	 100,
	 "0  15 0\n1 a 15 0\n2 b 1 1\n2 m 9 9\n2 z 5 5\n"},
	{"same name in two places",
	 {{"a;x", 1}, {"b;x", 2}},
	 100,
	 "0  3 0\n1 a 1 0\n2 x 1 1\n1 b 2 0\n2 x 2 2\n"},
	{"inlined", {{"a;b+;c+", 4}, {"a;b", 1}}, 100, "0  5 0\n1 a 5 0\n2 b 5 1\n3 c 4 4\n"},
	{"recursion", {{"a;a;a", 4}}, 100, "0  4 0\n1 a 4 0\n2 a 4 0\n3 a 4 4\n"},
	{"no stack", {{"", 4}, {"a", 1}}, 100, "0  5 4\n1 a 1 1\n"},
	{"nothing and less are left out",
	 {{"a", 0}, {"b", -1}, {"c", 1}},
	 100,
	 "0  1 0\n1 c 1 1\n"},
	{"small ones are together",
	 {{"a;b", 10}, {"a;c;d", 2}, {"a;e", 1}, {"f", 4}},
	 4,
	 "0  17 0\n1 a 13 0\n2 b 10 10\n2 (other) 3 0\n1 f 4 4\n"},
	{"a chain is cut at its end",
	 {{"a;b;c;d", 10}},
	 3,
	 "0  10 0\n1 a 10 0\n2 b 10 0\n3 (other) 10 0\n"},
	{"only the root", {{"a;b", 10}}, 1, "0  10 0\n1 (other) 10 0\n"},
	{"not even that", {{"a;b", 10}}, 0, "0  10 0\n1 (other) 10 0\n"},
};

static void test_tree(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(tree_rows); i++) {
		const struct tree_row *row = &tree_rows[i];
		_cleanup_(pprof_freep) struct pprof *p = make();
		_cleanup_(flame_freep) struct flame *f = NULL;

		row_begin(row->name);
		for (size_t j = 0; j < 6 && row->samples[j].stack; j++)
			add(p, row->samples[j].stack, row->samples[j].value);
		f = flame_of(p, NULL);
		check_tree(f, row->max_nodes, row->want);
	}
}

static void test_head(void **state)
{
	_cleanup_(pprof_freep) struct pprof *p = make();
	_cleanup_(flame_freep) struct flame *f = NULL;
	_cleanup_(freep) char *text = NULL;
	json_t *json = NULL;

	(void)state;
	add(p, "a;\xc3\xa9\"\x01", 7);
	add(p, "b", -7);
	f = flame_of(p, "cpu");
	assert_string_equal(flame_type(f), "cpu");
	assert_string_equal(flame_unit(f), "nanoseconds");
	assert_int_equal(flame_total(f), 7);
	assert_int_equal(flame_json(f, 10, &json), 0);
	text = json_dumps(json, JSON_COMPACT | JSON_PRESERVE_ORDER);
	json_decref(json);
	assert_string_equal(
		text,
		"{\"type\":\"cpu\",\"unit\":\"nanoseconds\",\"total\":7,\"profiles\":1,\"cut\":0,"
		"\"negative\":1,\"unnamed\":[],\"names\":[\"\",\"a\",\"\xc3\xa9\\\"\\u0001\"],"
		"\"kinds\":["
		"\"unknown\",\"native\",\"native\"],\"nodes\":{\"name\":"
		"[0,1,2],\"depth\":[0,1,2],\"value\":[7,7,7],\"self\":[0,0,7]}}");
}

static void test_profiles_add_up(void **state)
{
	_cleanup_(pprof_freep) struct pprof *p = make(), *q = make();
	_cleanup_(flame_freep) struct flame *f = NULL;

	(void)state;
	add(p, "a;b", 5);
	add(q, "x", 100);
	add(q, "a;b", 7);
	add(q, "a;c", 1);
	f = flame_of(p, "cpu");
	assert_int_equal(flame_add(f, pprof_tables(q), "samples"), 0); /* stays cpu */
	check_tree(f, 100, "0  113 0\n1 a 13 0\n2 b 12 12\n2 c 1 1\n1 x 100 100\n");
}

static void test_types(void **state)
{
	_cleanup_(pprof_freep) struct pprof *p = make();
	_cleanup_(flame_freep) struct flame *f = NULL, *none = NULL;

	(void)state;
	add(p, "a", 5);
	f = flame_of(p, "samples");
	assert_int_equal(flame_total(f), 1);
	assert_int_equal(flame_new(&none), 0);
	assert_int_equal(flame_add(none, pprof_tables(p), "heap"), FLAME_NO_TYPE);
	assert_string_equal(flame_type(none), "");
}

static void test_places_without_names(void **state)
{
	_cleanup_(pprof_freep) struct pprof *p = make();
	_cleanup_(flame_freep) struct flame *f = NULL;
	const struct pprof_mapping mapping = {.path = "/usr/bin/odd", .limit = 0x1000};
	uint32_t map, stack[2];

	(void)state;
	assert_int_equal(pprof_mapping(p, &mapping, &map), 0);
	assert_int_equal(pprof_location(p, map, 0x12f, NULL, 0, &stack[0]), 0);
	assert_int_equal(pprof_location(p, 0, 0xffffffffffffffff, NULL, 0, &stack[1]), 0);
	assert_int_equal(pprof_sample(p, stack, 2, (int64_t[]){1, 1}, NULL, 0), 0);
	f = flame_of(p, NULL);
	check_tree(f, 10, "0  1 0\n1 ?+0xffffffffffffffff 1 0\n2 odd+0x12f 1 1\n");
}

static void test_kinds(void **state)
{
	static const struct {
		const char *mapping, *file, *kind;
	} rows[] = {
		{"[kernel.kallsyms]", "", "kernel"},
		{"/lib/modules/6.1/kernel/net/tls.ko", "tls.go", "kernel"},
		{"/usr/bin/a", "/usr/lib/go/src/runtime/proc.go", "go"},
		{"/usr/bin/a", "/usr/lib/go/src/runtime/asm_amd64.s", "go"},
		{"/usr/bin/a", "main.c", "native"},
		{"/usr/bin/a.go", "", "native"},
		{"[python]", "a.py", "python"},
		{"[java]", "a/B.java", "java"},
		{"[v8]", "/srv/a.js", "javascript"},
		{"/srv/[python]", "a.py", "native"},
		{"[python]", "/usr/lib/python3.11/json/decoder.py", "python_library"},
		{"[python]", "<frozen importlib._bootstrap>", "python_library"},
		{"[python]", "<string>", "python"},
		{"[python]", "/venv/lib/python3.11/site-packages/django/urls.py", "python"},
		{"[python]", "/usr/lib/python3/dist-packages/yaml/reader.py", "python"},
		{"[java]", "java/util/HashMap.java", "java_library"},
		{"[java]", "jdk/internal/misc/Unsafe.java", "java_library"},
		{"[java]", "javax/servlet/Filter.java", "java"},
		{"[java]", "com/sunny/A.java", "java"},
		{"[java]", "", "java"},
		{"[v8]", "node:internal/timers", "javascript_library"},
		{"[v8]", "node_modules/a.js", "javascript"},
		{"/usr/lib/python3.11/lib.so", "java/a.c", "native"},
		{NULL, "", "native"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(pprof_freep) struct pprof *p = make();
		_cleanup_(flame_freep) struct flame *f = NULL;
		struct pprof_mapping mapping = {.path = rows[i].mapping, .limit = 0x1000};
		struct pprof_line line = {.line = 1};
		uint32_t map = 0, location;
		json_t *json = NULL;

		row_begin(rows[i].file);
		if (rows[i].mapping)
			assert_int_equal(pprof_mapping(p, &mapping, &map), 0);
		assert_int_equal(pprof_function(p, "f", "f", rows[i].file, 0, &line.function), 0);
		assert_int_equal(pprof_location(p, map, 16, &line, 1, &location), 0);
		assert_int_equal(pprof_sample(p, &location, 1, (int64_t[]){1, 1}, NULL, 0), 0);
		f = flame_of(p, NULL);
		assert_int_equal(flame_json(f, 10, &json), 0);
		assert_string_equal(
			json_string_value(json_array_get(json_object_get(json, "kinds"), 1)),
			rows[i].kind);
		json_decref(json);
	}
}

/* A path longer than the limit by a node, and a path as deep as a dropped path. */
static void test_ceilings(void **state)
{
	_cleanup_(pprof_freep) struct pprof *p = make();
	_cleanup_(flame_freep) struct flame *f = NULL;
	struct flame_function *functions = NULL;
	struct pprof_line lines[PPROF_LINES_MAX];
	uint32_t stack[5];
	size_t n = 0;
	char name[32];
	json_t *json = NULL;

	(void)state;
	for (size_t i = 0; i < array_size(lines); i++) {
		snprintf(name, sizeof(name), "f%03zu", i);
		assert_int_equal(pprof_function(p, name, name, "", 0, &lines[i].function), 0);
		lines[i].line = 0;
	}
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(pprof_location(p, 0, i, lines, PPROF_LINES_MAX, &stack[i]), 0);
	assert_int_equal(pprof_sample(p, stack, 4, (int64_t[]){1, 10}, NULL, 0), 0);
	assert_int_equal(pprof_sample(p, stack, 5, (int64_t[]){1, 1}, NULL, 0), 0);
	for (int i = 0; i < FLAME_NODES_MAX; i++) {
		snprintf(name, sizeof(name), "g%d", i);
		add(p, name, 1);
	}
	f = flame_of(p, NULL);
	assert_int_equal(flame_json(f, FLAME_SHOWN_MAX, &json), 0);
	assert_int_equal(json_integer_value(json_object_get(json, "total")), FLAME_NODES_MAX + 11);
	assert_int_equal(json_integer_value(json_object_get(json, "cut")), 1 + 1 + FLAME_DEPTH_MAX);
	json_decref(json);
	/* functions are counted, whether their node fits or not */
	assert_int_equal(flame_functions(f, FLAME_BY_CUM, &functions, &n), 0);
	assert_int_equal(n, FLAME_NODES_MAX + PPROF_LINES_MAX);
	assert_string_equal(functions[0].name, "f000");
	assert_int_equal(functions[0].cum, 11);
	assert_int_equal(functions[0].flat, 11);
	free(functions);
}

static void test_functions(void **state)
{
	_cleanup_(pprof_freep) struct pprof *p = make();
	_cleanup_(flame_freep) struct flame *f = NULL;
	struct flame_function *list = NULL;
	size_t n = 0;

	(void)state;
	add(p, "main;work;work;leaf", 6);
	add(p, "main;work", 3);
	add(p, "main;idle+", 3);
	f = flame_of(p, NULL);
	assert_int_equal(flame_functions(f, FLAME_BY_FLAT, &list, &n), 0);
	assert_int_equal(n, 4);
	assert_string_equal(list[0].name, "leaf");
	assert_string_equal(list[1].name, "work"); /* as flat as idle, but cum is more */
	assert_int_equal(list[1].flat, 3);
	assert_int_equal(list[1].cum, 9);
	assert_string_equal(list[2].name, "idle");
	assert_string_equal(list[3].name, "main");
	free(list);
	assert_int_equal(flame_functions(f, FLAME_BY_CUM, &list, &n), 0);
	assert_string_equal(list[0].name, "main");
	assert_int_equal(list[0].cum, 12);
	assert_string_equal(list[1].name, "work");
	free(list);
}

/* ---- against go tool pprof */

static struct reader *read_file(const char *path)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(1u << 20);
	_cleanup_(root_deinit) struct root here = ROOT_INIT;
	struct reader *rd = NULL;
	const char *why;

	assert_int_equal(root_open(".", &here), 0);
	assert_int_equal(root_read(&here, path, &b), 0);
	assert_int_equal(reader_new(b.data, b.len, 1u << 20, &rd, &why), 0);
	return rd;
}

static const struct flame_function *find(const struct flame_function *list, size_t n,
					 const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i].name, name) == 0)
			return &list[i];
	return NULL;
}

/* Compare with each line "FLAT FLAT% SUM% CUM CUM% NAME" of -top; returns their number. */
static size_t compare_top(FILE *top, const struct flame_function *list, size_t n)
{
	char line[1024], flat[64], share[64], cum[64], name[512];
	size_t n_lines = 0;

	while (fgets(line, sizeof(line), top)) {
		const struct flame_function *got;
		char *end;

		if (sscanf(line, "%63s %63s %*s %63s %*s %511[^\n]", flat, share, cum, name) != 4 ||
		    !strchr(share, '%') || flat[0] < '0' || flat[0] > '9')
			continue;
		end = strstr(name, " (");
		if (end && (strcmp(end, " (inline)") == 0 || strcmp(end, " (partial-inline)") == 0))
			*end = '\0';
		got = find(list, n, name);
		if (!got) {
			fail_msg("go tool pprof has %s and we have not", name);
			return 0;
		}
		/* a unit may follow the digits */
		if (got->flat != strtoll(flat, &end, 10) || got->cum != strtoll(cum, &end, 10))
			fail_msg("%s: %lld %lld, not %s %s", name, (long long)got->flat,
				 (long long)got->cum, flat, cum);
		n_lines++;
	}
	return n_lines;
}

struct go_row {
	const char *file;
	const char *type;
	const char *unit;
	size_t min_lines;
};

static const struct go_row go_rows[] = {
	{"go_cpu", "cpu", "ns", 8},	     {"go_cpu", "samples", "count", 8},
	{"go_heap", "alloc_space", "B", 50}, {"go_heap", "inuse_objects", "count", 30},
	{"go_mutex", "delay", "ns", 2},	     {"go_block", "contentions", "count", 3},
};

static void test_go_top(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(go_rows); i++) {
		const struct go_row *row = &go_rows[i];
		_cleanup_(reader_freep) struct reader *rd = NULL;
		_cleanup_(flame_freep) struct flame *f = NULL;
		_cleanup_(freep) struct flame_function *list = NULL;
		_cleanup_(pclosep) FILE *top = NULL;
		char path[128], command[512];
		size_t n = 0;

		row_begin(row->type);
		snprintf(path, sizeof(path), "test/data/pprof/%s.pb.gz", row->file);
		snprintf(command, sizeof(command),
			 "ASAN_OPTIONS= go tool pprof -symbolize=none -top -nodefraction=0 "
			 "-nodecount=0 -unit=%s -sample_index=%s %s 2>/dev/null",
			 row->unit, row->type, path);
		rd = read_file(path);
		assert_int_equal(flame_new(&f), 0);
		assert_int_equal(flame_add(f, reader_tables(rd), row->type), 0);
		assert_int_equal(flame_functions(f, FLAME_BY_FLAT, &list, &n), 0);
		top = popen(command, "re");
		assert_non_null(top);
		assert_in_range(compare_top(top, list, n), row->min_lines, n);
	}
}

/* ---- memory */

static int add_and_show(void *ctx)
{
	_cleanup_(flame_freep) struct flame *f = NULL;
	struct flame_function *list = NULL;
	json_t *json = NULL;
	size_t n;
	int r = flame_new(&f);

	if (!r)
		r = flame_add(f, reader_tables(ctx), NULL);
	if (!r)
		r = flame_json(f, 10, &json);
	json_decref(json);
	if (!r)
		r = flame_functions(f, FLAME_BY_CUM, &list, &n);
	free(list);
	return r;
}

static void test_without_memory(void **state)
{
	_cleanup_(reader_freep) struct reader *rd = read_file("test/data/pprof/go_cpu.pb.gz");

	(void)state;
	assert_in_range(allocfail_each(add_and_show, rd), 10, 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_head),
		cmocka_unit_test(test_profiles_add_up),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_places_without_names),
		cmocka_unit_test(test_unnamed),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_ceilings),
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_go_top),
		cmocka_unit_test(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
