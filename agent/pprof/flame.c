// SPDX-License-Identifier: Apache-2.0
/*
 * Turns samples into a call tree. A node is a path of function names from the root. Its key
 * (parent, name) is in an intern table, like all other keys. Two limits bound the tree: during
 * growth, samples without room count as their parent's "cut"; in the output, small nodes are left
 * out. Both values end up in the "(other)" child of the node above.
 *
 * Stacks come from foreign files with any depth, so this file does not use recursion.
 */
#include "pprof/flame.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/strview.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "pprof/tables.h"
#include "pprof/unnamed.h"

/* Bytes of names and node keys; above, flame_add() returns FLAME_FULL. Reached: what was added
 * stays. */
#define ARENA_BYTES_MAX (64u << 20)
/* Functions of all stacks of one profile, for each location in them, and more for a small profile:
 * a location can have as many inlined functions as it likes, in each stack again. Go's deepest have
 * some 20, most locations have one. Reached: FLAME_FULL, what was added stays. */
#define LOCATION_STEPS	16u
#define PROFILE_STEPS	((uint64_t)1 << 16)
/* "name+0x0123456789abcdef"; a longer name is cut. Reached: cut. */
#define PLACE_MAX	256

/* The origin of a name's code, shown as a colour. */
enum name_kind {
	NAME_UNKNOWN,
	NAME_NATIVE,
	NAME_GO,
	NAME_PYTHON,
	NAME_JAVA,
	NAME_JAVASCRIPT,
	NAME_KERNEL,
	NAME_PYTHON_LIBRARY,
	NAME_JAVA_LIBRARY,
	NAME_JAVASCRIPT_LIBRARY,
};

static const char *const name_kinds[] = {
	[NAME_UNKNOWN] = "unknown",
	[NAME_NATIVE] = "native",
	[NAME_GO] = "go",
	[NAME_PYTHON] = "python",
	[NAME_JAVA] = "java",
	[NAME_JAVASCRIPT] = "javascript",
	[NAME_KERNEL] = "kernel",
	[NAME_PYTHON_LIBRARY] = "python_library",
	[NAME_JAVA_LIBRARY] = "java_library",
	[NAME_JAVASCRIPT_LIBRARY] = "javascript_library",
};

struct name {
	const char *text;
	enum name_kind kind; /* of the first code with this name */
	int64_t flat;
	int64_t cum;
	uint64_t seen; /* the last sample with this function on its stack */
};

struct node {
	int64_t value;
	int64_t self;
	int64_t cut; /* value of stacks that continue from here without room */
	uint32_t parent;
	uint32_t name;
	uint32_t depth;
};

/* The key of a node. */
struct edge {
	uint32_t parent;
	uint32_t name;
};

/* An image without names, and the value of its samples. */
struct nameless {
	struct strview reason, path; /* in the arena */
	double value;
};

struct flame {
	struct arena arena;
	struct intern name_numbers, edges;
	struct name *names; /* [0] is the root's, "" */
	size_t n_names, cap_names;
	struct node *nodes; /* [0] is the root; a parent precedes its children */
	size_t n_nodes, cap_nodes;
	const char *type, *unit;
	uint64_t n_samples;
	uint64_t n_profiles;
	uint64_t n_cut, n_negative;
	struct nameless nameless[FLAME_UNNAMED_MAX];
	size_t n_nameless;
};

/* The state of flame_add() for one profile. */
struct adding {
	struct flame *f;
	const struct pprof_tables *t;
	size_t type;
	uint64_t steps;	     /* left */
	uint32_t *functions; /* their names' numbers by row; 0: not looked up yet */
	uint32_t *locations; /* the same, for locations without functions */
};

DEFINE_CLEANUP(struct flame *, flame_freep, flame_free);

int flame_new(struct flame **ret)
{
	_cleanup_(flame_freep) struct flame *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	arena_init(&f->arena, ARENA_BYTES_MAX);
	r = vec_grow(&f->names, &f->cap_names, 1, sizeof(*f->names), SIZE_MAX);
	if (!r)
		r = vec_grow(&f->nodes, &f->cap_nodes, 1, sizeof(*f->nodes), SIZE_MAX);
	if (r)
		return r;
	f->names[f->n_names++] = (struct name){.text = ""};
	f->nodes[f->n_nodes++] = (struct node){0};
	f->type = f->unit = "";
	*ret = take_ptr(f);
	return 0;
}

void flame_free(struct flame *f)
{
	if (!f)
		return;
	intern_deinit(&f->name_numbers);
	intern_deinit(&f->edges);
	arena_deinit(&f->arena);
	free(f->names);
	free(f->nodes);
	free(f);
}

/* ---- names */

static int name_number(struct flame *f, const char *text, enum name_kind kind, uint32_t *ret)
{
	size_t n = strlen(text);
	uint32_t number = intern_find(&f->name_numbers, text, n);
	const void *copy;
	int r;

	if (number) {
		*ret = number;
		return 0;
	}
	number = (uint32_t)f->n_names;
	r = vec_grow(&f->names, &f->cap_names, f->n_names + 1, sizeof(*f->names), UINT32_MAX);
	if (!r)
		r = intern_add(&f->name_numbers, &f->arena, text, n, number, &copy);
	if (r)
		return r < 0 ? r : FLAME_FULL;
	f->names[f->n_names++] = (struct name){.text = copy, .kind = kind};
	*ret = number;
	return 0;
}

static int place_name(struct adding *a, const struct pprof_location_row *row, uint32_t *ret)
{
	const char *path = "?", *slash;
	char place[PLACE_MAX];

	if (row->mapping)
		path = a->t->strings[a->t->mappings[row->mapping - 1].path];
	slash = strrchr(path, '/');
	snprintf(place, sizeof(place), "%.*s+0x%" PRIx64, PLACE_MAX - 20, slash ? slash + 1 : path,
		 row->address);
	utf8_repair(place, strlen(place)); /* the cut may have split a character */
	return name_number(a->f, place, NAME_UNKNOWN, ret);
}

static int location_name(struct adding *a, uint32_t location, uint32_t *ret)
{
	uint32_t *known = &a->locations[location - 1];
	int r = *known ? 0 : place_name(a, &a->t->locations[location - 1], known);

	*ret = *known;
	return r;
}

/* The standard library: /usr/lib/python3.11/json/decoder.py, but no installed package; and the
 * modules inside of the interpreter. */
static enum name_kind python_kind(const char *file)
{
	if (strncmp(file, "<frozen ", 8) == 0 ||
	    (strstr(file, "/python3.") && !strstr(file, "/site-packages/") &&
	     !strstr(file, "/dist-packages/")))
		return NAME_PYTHON_LIBRARY;
	return NAME_PYTHON;
}

/* The class library of the JDK. Packages of javax are everybody's. */
static enum name_kind java_kind(const char *file)
{
	static const char *const packages[] = {"java/", "jdk/", "sun/", "com/sun/"};

	for (size_t i = 0; i < array_size(packages); i++)
		if (strncmp(file, packages[i], strlen(packages[i])) == 0)
			return NAME_JAVA_LIBRARY;
	return NAME_JAVA;
}

/* Node's own modules. */
static enum name_kind javascript_kind(const char *file)
{
	return strncmp(file, "node:", 5) == 0 ? NAME_JAVASCRIPT_LIBRARY : NAME_JAVASCRIPT;
}

/* Kernel code is mapped from the symbol table or from a module's file. Functions of Go's compiler
 * and assembler have source files; functions of other languages have none here. */
static enum name_kind function_kind(const struct pprof_tables *t,
				    const struct pprof_function_row *row, uint32_t mapping)
{
	struct strview path = strview_of(mapping ? t->strings[t->mappings[mapping - 1].path] : "");
	const char *source = t->strings[row->file];
	struct strview file = strview_of(source);

	if (strview_starts(&path, "[kernel") || strview_suffix(&path, ".ko"))
		return NAME_KERNEL;
	if (strview_is(&path, "[python]"))
		return python_kind(source);
	if (strview_is(&path, "[java]"))
		return java_kind(source);
	if (strview_is(&path, "[v8]"))
		return javascript_kind(source);
	if (strview_suffix(&file, ".go") || strview_suffix(&file, ".s"))
		return NAME_GO;
	return NAME_NATIVE;
}

static int function_name(struct adding *a, uint32_t function, uint32_t mapping, uint32_t *ret)
{
	const struct pprof_function_row *row = &a->t->functions[function - 1];
	uint32_t *known = &a->functions[function - 1];
	const char *text = a->t->strings[row->name ? row->name : row->system_name];
	int r = *known ? 0
		       : name_number(a->f, *text ? text : "?", function_kind(a->t, row, mapping),
				     known);

	*ret = *known;
	return r;
}

/* ---- the walk along one stack */

struct walk {
	int64_t value;
	uint32_t node;
	uint32_t leaf; /* the last name */
	bool cut;
};

/* The child of @parent, created if missing. FLAME_FULL without room. */
static int child(struct flame *f, uint32_t parent, uint32_t name, uint32_t *ret)
{
	struct edge edge = {parent, name};
	uint32_t number = intern_find(&f->edges, &edge, sizeof(edge));
	const void *copy;
	int r;

	if (number) {
		*ret = number;
		return 0;
	}
	if (f->nodes[parent].depth == FLAME_DEPTH_MAX)
		return FLAME_FULL;
	number = (uint32_t)f->n_nodes;
	r = vec_grow(&f->nodes, &f->cap_nodes, f->n_nodes + 1, sizeof(*f->nodes), FLAME_NODES_MAX);
	if (!r)
		r = intern_add(&f->edges, &f->arena, &edge, sizeof(edge), number, &copy);
	if (r)
		return r < 0 ? r : FLAME_FULL;
	f->nodes[f->n_nodes++] = (struct node){
		.parent = parent,
		.name = name,
		.depth = f->nodes[parent].depth + 1,
	};
	*ret = number;
	return 0;
}

static int walk_step(struct flame *f, struct walk *w, uint32_t name)
{
	struct name *n = &f->names[name];
	int r;

	w->leaf = name;
	if (n->seen != f->n_samples) {
		n->seen = f->n_samples;
		tables_add(&n->cum, w->value);
	}
	if (w->cut)
		return 0;
	r = child(f, w->node, name, &w->node);
	if (r == FLAME_FULL) {
		w->cut = true;
		f->n_cut++;
		tables_add(&f->nodes[w->node].cut, w->value);
		return 0;
	}
	if (!r)
		tables_add(&f->nodes[w->node].value, w->value);
	return r;
}

static int walk_location(struct adding *a, struct walk *w, uint32_t location)
{
	const struct pprof_location_row *row = &a->t->locations[location - 1];
	uint32_t name;
	int r;

	if (!row->n_lines) {
		r = location_name(a, location, &name);
		return r ? r : walk_step(a->f, w, name);
	}
	if (row->n_lines > a->steps)
		return FLAME_FULL;
	a->steps -= row->n_lines;
	for (size_t i = row->n_lines; i-- > 0;) {
		r = function_name(a, row->lines[i].function, row->mapping, &name);
		if (!r)
			r = walk_step(a->f, w, name);
		if (r)
			return r;
	}
	return 0;
}

static int add_sample(struct adding *a, size_t i)
{
	const struct pprof_sample_row *row = &a->t->samples[i];
	struct walk w = {.value = a->t->values[i * a->t->n_types + a->type]};
	struct flame *f = a->f;
	int r;

	if (w.value <= 0) {
		f->n_negative += w.value < 0;
		return 0;
	}
	f->n_samples++;
	tables_add(&f->nodes[0].value, w.value);
	for (size_t j = row->n_locations; j-- > 0;) {
		r = walk_location(a, &w, row->locations[j]);
		if (r)
			return r;
	}
	tables_add(&f->names[w.leaf].flat, w.value);
	if (!w.cut)
		tables_add(&f->nodes[w.node].self, w.value);
	return 0;
}

static int keep_text(struct flame *f, const char *text, const char **ret)
{
	size_t n = strlen(text) + 1;
	char *copy;
	int r = arena_alloc(&f->arena, n, &copy);

	if (r)
		return r < 0 ? r : FLAME_FULL;
	memcpy(copy, text, n);
	*ret = copy;
	return 0;
}

/* The first profile's type applies to all. */
static int choose_type(struct flame *f, const struct pprof_tables *t, const char *type, size_t *ret)
{
	int r;

	if (!tables_type(t, f->n_profiles ? f->type : type, ret))
		return FLAME_NO_TYPE;
	if (f->n_profiles)
		return 0;
	r = keep_text(f, t->strings[t->types[*ret].type], &f->type);
	return r ? r : keep_text(f, t->strings[t->types[*ret].unit], &f->unit);
}

static bool is_same(const struct strview *a, const struct strview *b)
{
	return strview_len(a) == strview_len(b) && memcmp(a->p, b->p, strview_len(a)) == 0;
}

static int copy_view(struct flame *f, const struct strview *from, struct strview *ret)
{
	char *to;
	int r = arena_alloc(&f->arena, strview_len(from) + 1, &to);

	if (!r)
		*ret = strview_of_bytes(memcpy(to, from->p, strview_len(from)), strview_len(from));
	return r;
}

/* @value: of the profile. 0 or -ENOMEM; without room the image is left out. */
static int add_unnamed(struct flame *f, const struct unnamed *u, int64_t value)
{
	const double part = (double)value * u->per_mille / 1000;
	struct nameless *to;
	int r;

	for (size_t i = 0; i < f->n_nameless; i++) {
		to = &f->nameless[i];
		if (is_same(&to->reason, &u->reason) && is_same(&to->path, &u->path)) {
			to->value += part;
			return 0;
		}
	}
	if (f->n_nameless == FLAME_UNNAMED_MAX)
		return 0;
	to = &f->nameless[f->n_nameless];
	r = copy_view(f, &u->reason, &to->reason);
	if (!r)
		r = copy_view(f, &u->path, &to->path);
	to->value = part;
	f->n_nameless += !r;
	return r < 0 ? r : 0;
}

/* The comments are of podprof's own profiles; those of others are nothing to it. */
static int add_all_unnamed(struct flame *f, const struct pprof_tables *t, size_t type)
{
	struct unnamed u;
	int r = 0;

	for (size_t i = 0, n = 0; i < t->n_comments && n < UNNAMED_COMMENTS_MAX && !r; i++) {
		if (!unnamed_parse(t->strings[t->comments[i]], &u))
			continue;
		n++;
		r = add_unnamed(f, &u, tables_total(t, type));
	}
	return r;
}

int flame_add(struct flame *f, const struct pprof_tables *t, const char *type)
{
	_cleanup_(freep) uint32_t *functions = calloc(t->n_functions + 1, sizeof(*functions));
	_cleanup_(freep) uint32_t *locations = calloc(t->n_locations + 1, sizeof(*locations));
	struct adding a = {.f = f, .t = t, .functions = functions, .locations = locations};
	int r;

	if (!functions || !locations)
		return -ENOMEM;
	r = choose_type(f, t, type, &a.type);
	if (r)
		return r;
	f->n_profiles++;
	a.steps = PROFILE_STEPS;
	for (size_t i = 0; i < t->n_samples; i++)
		a.steps += LOCATION_STEPS * (uint64_t)t->samples[i].n_locations;
	for (size_t i = 0; !r && i < t->n_samples; i++)
		r = add_sample(&a, i);
	return r ? r : add_all_unnamed(f, t, a.type);
}

/* ---- the visible tree */

/* @order: visible nodes, by parent and then by name. @first, @n_children: position of a node's
 *         children in @order. @other: value of a node's "(other)". All but @order are indexed by
 *         node number. */
struct shown {
	const struct flame *f;
	uint32_t *order;
	uint32_t n;
	uint32_t *first;
	uint32_t *n_children;
	int64_t *other;
};

static void shown_deinit(struct shown *s)
{
	free(s->order);
	free(s->first);
	free(s->n_children);
	free(s->other);
}

static int by_value(const void *a, const void *b, void *ctx)
{
	const struct node *nodes = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (nodes[x].value != nodes[y].value)
		return nodes[x].value > nodes[y].value ? -1 : 1;
	return x < y ? -1 : x > y; /* a parent before its only child */
}

static int by_place(const void *a, const void *b, void *ctx)
{
	const struct flame *f = ctx;
	const struct node *x = &f->nodes[*(const uint32_t *)a];
	const struct node *y = &f->nodes[*(const uint32_t *)b];

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	return strcmp(f->names[x->name].text, f->names[y->name].text);
}

/* Choose the largest nodes. Each chosen node's parent is also chosen, since its value is at least
 * equal and its number lower. */
static int shown_choose(const struct flame *f, size_t max_nodes, struct shown *s)
{
	s->f = f;
	s->order = calloc(f->n_nodes, sizeof(*s->order));
	s->first = calloc(f->n_nodes, sizeof(*s->first));
	s->n_children = calloc(f->n_nodes, sizeof(*s->n_children));
	s->other = calloc(f->n_nodes, sizeof(*s->other));
	if (!s->order || !s->first || !s->n_children || !s->other)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->n_nodes; i++) {
		s->order[i] = i;
		s->other[i] = f->nodes[i].cut;
	}
	qsort_r(s->order, f->n_nodes, sizeof(*s->order), by_value, f->nodes);
	s->n = (uint32_t)(f->n_nodes < max_nodes ? f->n_nodes : max_nodes);
	if (!s->n)
		s->n = 1;
	for (size_t i = s->n; i < f->n_nodes; i++)
		tables_add(&s->other[f->nodes[s->order[i]].parent], f->nodes[s->order[i]].value);
	return 0;
}

/* ---- JSON */

struct writer {
	json_t *names, *kinds, *name, *depth, *value, *self; /* borrowed from the result */
	uint32_t *numbers; /* in @names by name, + 1; 0: not there yet */
	uint32_t n_numbers;
	uint32_t other; /* the same for "(other)" */
	bool failed;
};

static void put_number(struct writer *w, json_t *array, int64_t value)
{
	if (json_array_append_new(array, json_integer(value)))
		w->failed = true;
}

static uint32_t put_name(struct writer *w, const char *text, enum name_kind kind, uint32_t *number)
{
	if (!*number) {
		if (json_array_append_new(w->names, json_string(text)) ||
		    json_array_append_new(w->kinds, json_string(name_kinds[kind])))
			w->failed = true;
		*number = ++w->n_numbers;
	}
	return *number - 1;
}

static void put_row(struct writer *w, uint32_t name, uint32_t depth, int64_t value, int64_t self)
{
	put_number(w, w->name, name);
	put_number(w, w->depth, depth);
	put_number(w, w->value, value);
	put_number(w, w->self, self);
}

static void put_node(struct writer *w, const struct flame *f, uint32_t i)
{
	const struct node *node = &f->nodes[i];
	const struct name *n = &f->names[node->name];
	uint32_t name = put_name(w, n->text, n->kind, &w->numbers[node->name]);

	put_row(w, name, node->depth, node->value, node->self);
}

static void put_other(struct writer *w, const struct shown *s, uint32_t parent)
{
	if (s->other[parent])
		put_row(w, put_name(w, "(other)", NAME_UNKNOWN, &w->other),
			s->f->nodes[parent].depth + 1, s->other[parent], 0);
}

/* Depth first. The stack holds unwritten nodes, and, with OTHER, nodes whose children are done. */
#define OTHER 0x80000000u

static int put_nodes(struct writer *w, const struct shown *s)
{
	_cleanup_(freep) uint32_t *stack = calloc(2 * (size_t)s->n, sizeof(*stack));
	size_t depth = 0;

	if (!stack)
		return -ENOMEM;
	stack[depth++] = 0;
	while (depth) {
		uint32_t i = stack[--depth];

		if (i & OTHER) {
			put_other(w, s, i & ~OTHER);
			continue;
		}
		put_node(w, s->f, i);
		stack[depth++] = i | OTHER;
		for (uint32_t j = s->n_children[i]; j-- > 0;)
			stack[depth++] = s->order[s->first[i] + j];
	}
	return w->failed ? -ENOMEM : 0;
}

static int by_share(const void *a, const void *b)
{
	const struct nameless *x = a, *y = b;

	return x->value > y->value ? -1 : x->value < y->value;
}

static int put_unnamed(const struct flame *f, json_t *list)
{
	struct nameless sorted[FLAME_UNNAMED_MAX];

	memcpy(sorted, f->nameless, f->n_nameless * sizeof(*sorted));
	qsort(sorted, f->n_nameless, sizeof(*sorted), by_share);
	for (size_t i = 0; i < f->n_nameless && i < FLAME_UNNAMED_SHOWN; i++) {
		const struct nameless *n = &sorted[i];
		const double total = (double)f->nodes[0].value;

		if (json_array_append_new(list,
					  json_pack("{s:f, s:s%, s:s%}", "share",
						    total > 0 ? n->value / total : 0, "reason",
						    n->reason.p, strview_len(&n->reason), "path",
						    n->path.p, strview_len(&n->path))))
			return -ENOMEM;
	}
	return 0;
}

int flame_json(const struct flame *f, size_t max_nodes, json_t **ret)
{
	_cleanup_(shown_deinit) struct shown s = {0};
	_cleanup_(freep) uint32_t *numbers = calloc(f->n_names, sizeof(*numbers));
	_cleanup_(json_decrefp) json_t *root = NULL;
	struct writer w = {.numbers = numbers};
	json_t *unnamed;
	int r;

	if (!numbers)
		return -ENOMEM;
	root = json_pack(
		"{s:s, s:s, s:I, s:I, s:I, s:I, s:[], s:[], s:[], s:{s:[], s:[], s:[], s:[]}}",
		"type", f->type, "unit", f->unit, "total", (json_int_t)f->nodes[0].value,
		"profiles", (json_int_t)f->n_profiles, "cut", (json_int_t)f->n_cut, "negative",
		(json_int_t)f->n_negative, "unnamed", "names", "kinds", "nodes", "name", "depth",
		"value", "self");
	if (!root || json_unpack(root, "{s:o, s:o, s:o, s:{s:o, s:o, s:o, s:o}}", "unnamed",
				 &unnamed, "names", &w.names, "kinds", &w.kinds, "nodes", "name",
				 &w.name, "depth", &w.depth, "value", &w.value, "self", &w.self))
		return -ENOMEM;
	r = put_unnamed(f, unnamed);
	if (!r)
		r = shown_choose(f, max_nodes, &s);
	if (r)
		return r;
	/* the root is its own parent 0: not sorted, always in front */
	qsort_r(s.order + 1, s.n - 1, sizeof(*s.order), by_place, (void *)s.f);
	for (uint32_t i = s.n; i-- > 1;) {
		uint32_t parent = s.f->nodes[s.order[i]].parent;

		s.first[parent] = i;
		s.n_children[parent]++;
	}
	r = put_nodes(&w, &s);
	if (r)
		return r;
	*ret = take_ptr(root);
	return 0;
}

/* ---- functions */

static int by_flat(const void *a, const void *b)
{
	const struct flame_function *x = a, *y = b;

	if (x->flat != y->flat)
		return x->flat > y->flat ? -1 : 1;
	return x->cum != y->cum ? (x->cum > y->cum ? -1 : 1) : strcmp(x->name, y->name);
}

static int by_cum(const void *a, const void *b)
{
	const struct flame_function *x = a, *y = b;

	return x->cum != y->cum ? (x->cum > y->cum ? -1 : 1) : by_flat(a, b);
}

int flame_functions(const struct flame *f, enum flame_order order, struct flame_function **ret,
		    size_t *ret_n)
{
	size_t n = f->n_names - 1;
	struct flame_function *list = calloc(n + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct name *name = &f->names[i + 1];

		list[i] = (struct flame_function){name->text, name->flat, name->cum};
	}
	qsort(list, n, sizeof(*list), order == FLAME_BY_FLAT ? by_flat : by_cum);
	*ret = list;
	*ret_n = n;
	return 0;
}

int64_t flame_total(const struct flame *f)
{
	return f->nodes[0].value;
}

const char *flame_type(const struct flame *f)
{
	return f->type;
}

const char *flame_unit(const struct flame *f)
{
	return f->unit;
}
