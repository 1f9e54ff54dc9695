// SPDX-License-Identifier: Apache-2.0
/*
 * Values of a container's Go processes while they start, end and execute each other, compared with
 * the processes' own values. The container is a directory with a list of processes.
 */
#include "support/test.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "discovery/discovery.h"
#include "goprofile/profiler.h"
#include "pprof/reader.h"
#include "support/gofixture.h"
#include "support/goprocess.h"
#include "support/tree.h"
#include "support/until.h"

#define COUNTS	  "test/fixtures/go/counts"
#define CONTAINER "docker/6c1bd2c0a2d7f8f7ba5aa6a8f17e1f2b6c1bd2c0a2d7f8f7ba5aa6a8f17e1f2b"

#define CONTAINER2 "docker/17b3d1f0f6a2f8f7ba5aa6a8f17e1f2b6c1bd2c0a2d7f8f7ba5aa6a8f17e1f2b"

/* alloc_objects, alloc_space, inuse_objects, inuse_space */
#define N_TYPES 4

/* ---------------------------------------------------------------- a wall clock that is set */

static _Atomic int64_t wall_step_s;

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name)
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *ret)
{
	const int r = (int)syscall(SYS_clock_gettime, clock, ret);

	if (clock == CLOCK_REALTIME)
		ret->tv_sec += wall_step_s;
	return r;
}

/* ---------------------------------------------------------------- a node with one container */

struct node {
	struct root proc;
	struct tree tree;
	struct loop *loop;
	struct discovery *discovery;
	struct go_profiler *profiler;
	enum go_profile_wish wish;
	size_t n_profiles;
	int64_t window_sums[N_TYPES]; /* of all windows */
	int64_t last[N_TYPES];	      /* of the last profile since the start */
	/* of these, the objects that "hold" keeps. A garbage collection has published them; a
	 * window also has what the program allocated after the collection, and the profile has not.
	 */
	int64_t held_in_windows[N_TYPES], held_in_last[N_TYPES];
};

/* Bytes of an object that "hold" keeps. */
#define HELD_BYTES 1024

/* Each sample has the size of its objects, except for records without a published allocation, as in
 * Go's own profile. */
static void check_sample(const struct pprof_tables *t, size_t i)
{
	const struct pprof_sample_row *sample = &t->samples[i];
	const int64_t *values = t->values + i * N_TYPES;

	if (!sample->n_labels) {
		assert_int_equal(values[0], 0);
		return;
	}
	assert_int_equal(sample->n_labels, 1);
	assert_string_equal(t->strings[sample->labels[0].key], "bytes");
	assert_true(sample->labels[0].num > 0);
	for (size_t k = 0; k < N_TYPES; k++)
		assert_true(values[k] >= 0);
	/* objects have this size; both are rounded down */
	for (size_t k = 0; k < N_TYPES; k += 2)
		assert_true(llabs(values[k + 1] / sample->labels[0].num - values[k]) <= 1);
}

/* Adds the values of the held objects. */
static void add_held(const struct pprof_tables *t, int64_t sums[N_TYPES])
{
	for (size_t i = 0; i < t->n_samples; i++)
		if (t->samples[i].n_labels && t->samples[i].labels[0].num == HELD_BYTES)
			for (size_t k = 0; k < N_TYPES; k++)
				sums[k] += t->values[i * N_TYPES + k];
}

/* The sums of the values in the sent bytes. Adds those of the held objects to @held. */
static void read_bytes(const char *bytes, size_t n, int64_t ret[N_TYPES], int64_t held[N_TYPES])
{
	const struct pprof_tables *t;
	struct reader *reader;
	const char *why;

	assert_int_equal(reader_new(bytes, n, 64u << 20, &reader, &why), 0);
	t = reader_tables(reader);
	assert_int_equal(t->n_types, N_TYPES);
	assert_int_equal(t->n_comments, 2); /* the version, and one comment for all processes */
	assert_non_null(strstr(t->strings[t->comments[1]], "turned sampling on"));
	for (size_t i = 0; i < t->n_samples; i++)
		check_sample(t, i);
	for (size_t k = 0; k < N_TYPES; k++)
		ret[k] = tables_total(t, k);
	add_held(t, held);
	reader_free(reader);
}

static void on_profile(void *ctx, struct profile *profile)
{
	struct node *node = ctx;
	int64_t window[N_TYPES];

	node->n_profiles++;
	read_bytes(profile->pprof_delta, profile->pprof_delta_len, window, node->held_in_windows);
	memset(node->held_in_last, 0, sizeof(node->held_in_last));
	read_bytes(profile->pprof, profile->pprof_len, node->last, node->held_in_last);
	for (size_t k = 0; k < N_TYPES; k++)
		node->window_sums[k] += window[k];
	profile_free(profile);
}

static enum go_profile_wish on_wish(void *ctx, const struct entity *entity)
{
	const struct node *node = ctx;

	assert_non_null(labels_get(&entity->labels, "container"));
	return node->wish;
}

static void node_start_agent(struct node *node, enum go_profile_mode mode)
{
	const struct discovery_opts discovery = {
		.proc = &node->proc,
		.cgroupfs_root = node->tree.path,
		.node_name = "n",
		.grace_ns = NSEC_PER_SEC,
	};
	struct go_profiler_opts opts = {
		.loop = node->loop,
		.proc = &node->proc,
		.mode = mode,
		.wish = on_wish,
		.heap_bytes = 64u << 20,
		.symbol_bytes = 16u << 20,
		.stuck_ns = 3600 * NSEC_PER_SEC,
		.out = on_profile,
		.ctx = node,
	};

	assert_int_equal(discovery_new(&discovery, &node->discovery), 0);
	opts.discovery = node->discovery;
	assert_int_equal(go_profiler_new(&opts, &node->profiler), 0);
}

static void node_stop_agent(struct node *node)
{
	go_profiler_free(node->profiler);
	discovery_free(node->discovery);
}

static void node_init(struct node *node, enum go_profile_mode mode)
{
	*node = (struct node){.proc = ROOT_INIT};
	tree_init(&node->tree);
	tree_mkdir(node->tree.fd, CONTAINER);
	tree_write(node->tree.fd, "cgroup.controllers", "");
	assert_int_equal(root_open("/proc", &node->proc), 0);
	assert_int_equal(loop_new(&node->loop), 0);
	node_start_agent(node, mode);
}

static void node_deinit(struct node *node)
{
	node_stop_agent(node);
	loop_free(node->loop);
	root_deinit(&node->proc);
	tree_deinit(&node->tree);
}

/* Set the container's processes; NULL for none. */
static void node_set(struct node *node, const struct goprocess *a, const struct goprocess *b)
{
	char text[64] = "";

	if (a)
		snprintf(text, sizeof(text), "%" PRIu64 "\n", a->id.pid);
	if (b)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%" PRIu64 "\n",
			 b->id.pid);
	tree_write(node->tree.fd, CONTAINER "/cgroup.procs", text);
}

static bool is_done(void *ctx)
{
	return go_profiler_pending(ctx) == 0;
}

static void node_round_begin(struct node *node)
{
	/* long enough for all processes to begin in the window: earlier allocations count for the
	 * first one */
	const uint64_t window_ns = 3600 * NSEC_PER_SEC;

	go_profiler_end_window(node->profiler, nsec_wall() - window_ns, window_ns);
}

static void node_round(struct node *node)
{
	node_round_begin(node);
	loop_until(node->loop, is_done, node->profiler);
}

/* ---------------------------------------------------------------- values shown */

struct sum {
	struct metric_sink sink;
	const char *family;
	const char *label; /* a value required among the labels; NULL: any */
	bool on;
	uint64_t value;
	size_t n;
};

static void sum_family(struct metric_sink *sink, const struct metric_family_desc *family)
{
	struct sum *s = (struct sum *)sink;

	s->on = strcmp(family->name, s->family) == 0;
}

static void sum_value(struct metric_sink *sink, const struct metric_value *value)
{
	struct sum *s = (struct sum *)sink;
	bool match = !s->label;

	for (size_t i = 0; i < value->n_labels; i++)
		match |= s->label && strcmp(value->labels[i].value, s->label) == 0;
	if (!s->on || !match)
		return;
	s->value += value->u;
	s->n++;
}

static struct sum shown(const struct node *node, const char *family, const char *label)
{
	struct sum s = {.sink = {sum_family, sum_value}, .family = family, .label = label};

	for (size_t part = 0; part < GO_PROFILER_PARTS; part++)
		go_profiler_collect(node->profiler, &s.sink, part);
	return s;
}

static uint64_t value_of(const struct node *node, const char *family)
{
	struct sum s = shown(node, family, NULL);

	assert_int_equal(s.n, 1);
	return s.value;
}

static void assert_info(const struct node *node, const char *label, size_t n)
{
	assert_int_equal(shown(node, "container_go_heap_profile", label).n, n);
}

/* ---------------------------------------------------------------- the programs' own values */

struct truth {
	uint64_t goroutines;
	uint64_t next_gc;
	uint64_t cycles;
	uint64_t alloc_bytes;
	uint64_t alloc_objects;
	unsigned int minor;
};

struct program {
	struct goprocess process;
	char file[32];
	const char *args[2];
	unsigned int minor;
};

static void program_start_with(struct program *p, pid_t pid, const char *path, const char *env)
{
	snprintf(p->file, sizeof(p->file), "/tmp/podprof-counts-XXXXXX");
	close(mkstemp(p->file));
	p->minor = gofixture_minor(path);
	p->args[0] = p->file;
	p->args[1] = NULL;
	assert_true(goprocess_start_as(&p->process, pid, path, p->args, env));
}

static void program_start(struct program *p, pid_t pid, const char *path)
{
	program_start_with(p, pid, path, NULL);
}

static void program_stop(struct program *p)
{
	goprocess_stop(&p->process);
	unlink(p->file);
}

static struct truth program_says(const struct program *p)
{
	struct truth t = {.minor = p->minor};
	FILE *f = fopen(p->file, "re");

	assert_non_null(f);
	// NOLINTNEXTLINE(cert-err34-c): our own fixture's
	assert_int_equal(
		fscanf(f,
		       "%" SCNu64 " %" SCNu64 " %*s %*s %*s %*s %" SCNu64 " %" SCNu64 " %" SCNu64,
		       &t.goroutines, &t.next_gc, &t.cycles, &t.alloc_bytes, &t.alloc_objects),
		5);
	fclose(f);
	return t;
}

static struct truth add(struct truth a, struct truth b)
{
	return (struct truth){
		.goroutines = a.goroutines + b.goroutines,
		.next_gc = a.next_gc + b.next_gc,
		.cycles = a.cycles + b.cycles,
		.alloc_bytes = a.alloc_bytes + b.alloc_bytes,
		.alloc_objects = a.alloc_objects + b.alloc_objects,
		.minor = a.minor,
	};
}

/* No more than the program's own output needs. */
static void assert_near(uint64_t now, uint64_t then, uint64_t slack)
{
	assert_true(now >= then && now - then <= slack);
}

/* @now: present processes; @ever: also ended ones. */
static void assert_shown(const struct node *node, struct truth now, struct truth ever)
{
	if (now.goroutines) {
		assert_int_equal(value_of(node, "container_go_goroutines"), now.goroutines);
		assert_int_equal(value_of(node, "container_go_next_gc_bytes"), now.next_gc);
	} else {
		assert_int_equal(shown(node, "container_go_goroutines", NULL).n, 0);
	}
	assert_int_equal(value_of(node, "container_go_gc_cycles"), ever.cycles);
	assert_near(value_of(node, "container_go_alloc_bytes"), ever.alloc_bytes, 512 << 10);
	assert_near(value_of(node, "container_go_alloc_objects"), ever.alloc_objects, 16384);
	/* up to 1.18 a processor's span counts as allocated at once, until a later correction */
	if (now.minor >= 19)
		assert_int_equal(value_of(node, "podprof_go_decreases"), 0);
}

static const char *a_go(size_t i)
{
	const char *gos[GOFIXTURE_GOS_MAX];

	return gos[i % gofixture_gos(gos)];
}

/* ---------------------------------------------------------------- tests */

static const struct truth nothing;

static void adds_up(void **state)
{
	_cleanup_(freep) char *path = gofixture_build(COUNTS, a_go(0), "default");
	_cleanup_(freep) char *other = gofixture_build(COUNTS, a_go(1), "stripped");
	struct program a, b;
	struct truth ended, last;
	char exec[4096];
	struct node node;

	(void)state;
	if (gofixture_minor(path) < 17)
		return; /* no own counters */
	node_init(&node, GO_PROFILE_MODE_ENABLED);
	program_start(&a, 0, path);
	program_start(&b, 0, path);
	goprocess_order(&a.process, "hold 2000");
	node_set(&node, &a.process, &b.process);
	node_round(&node);
	last = add(program_says(&a), program_says(&b));
	assert_shown(&node, last, last);
	assert_info(&node, "disabled_by_linker", 1); /* the same series for both */
	assert_int_equal(shown(&node, "podprof_go_processes", "disabled_by_linker").value, 2);

	goprocess_order(&a.process, "go 100");
	goprocess_order(&a.process, "hold 3000");
	goprocess_order(&b.process, "hold 100");
	node_round(&node);
	last = add(program_says(&a), program_says(&b));
	assert_shown(&node, last, last);

	/* the first process ends */
	ended = program_says(&a);
	program_stop(&a);
	node_set(&node, &b.process, NULL);
	goprocess_order(&b.process, "go 7");
	node_round(&node);
	assert_shown(&node, program_says(&b), add(ended, program_says(&b)));

	/* another program in the same process */
	ended = add(ended, program_says(&b));
	snprintf(exec, sizeof(exec), "exec %s", other);
	goprocess_order(&b.process, exec);
	node_round(&node);
	assert_shown(&node, program_says(&b), add(ended, program_says(&b)));
	node_round(&node);
	assert_shown(&node, program_says(&b), add(ended, program_says(&b)));

	/* a round without the process, after which the reader does not know of the first program */
	node.wish = GO_PROFILE_WISH_DISABLED;
	node_round(&node);
	node.wish = GO_PROFILE_WISH_NONE;
	node_round(&node);
	assert_shown(&node, program_says(&b), add(ended, program_says(&b)));

	/* a new agent counts the present allocations */
	node_stop_agent(&node);
	node_start_agent(&node, GO_PROFILE_MODE_ENABLED);
	node_round(&node);
	assert_shown(&node, program_says(&b), program_says(&b));
	node_deinit(&node);
	program_stop(&b);
}

/* The container lives on without Go, and with Go again, as the same process number. */
static void comes_back(void **state)
{
	_cleanup_(freep) char *path = gofixture_build(COUNTS, a_go(0), "default");
	static const char *const sleep_args[] = {"-c", "echo ready; exec sleep 1000", NULL};
	struct goprocess shell;
	struct truth ended;
	struct program a;
	struct node node;
	pid_t pid;

	(void)state;
	if (gofixture_minor(path) < 17)
		return;
	node_init(&node, GO_PROFILE_MODE_ENABLED);
	goprocess_start(&shell, "sh", sleep_args, NULL);
	program_start(&a, 0, path);
	goprocess_order(&a.process, "hold 5000");
	node_set(&node, &a.process, &shell);
	node_round(&node);
	assert_shown(&node, program_says(&a), program_says(&a));
	assert_int_equal(shown(&node, "podprof_go_processes", "no_runtime").value, 1);

	ended = program_says(&a);
	pid = (pid_t)a.process.id.pid;
	program_stop(&a);
	node_set(&node, &shell, NULL);
	for (int i = 0; i < 6; i++) {
		node_round(&node);
		assert_shown(&node, nothing, ended);
		assert_info(&node, "gone", 1);
		assert_info(&node, NULL, 1);
	}
	program_start(&a, pid, path);
	node_set(&node, &a.process, &shell);
	node_round(&node);
	assert_shown(&node, program_says(&a), add(ended, program_says(&a)));
	assert_info(&node, "gone", 0);

	/* both end: the container has no process any more */
	program_stop(&a);
	goprocess_stop(&shell);
	node_set(&node, NULL, NULL);
	for (int i = 0; i < 4; i++)
		node_round(&node);
	assert_info(&node, NULL, 0);
	node_deinit(&node);
}

/* The pod's annotation. */
static void wishes(void **state)
{
	_cleanup_(freep) char *path = gofixture_build(COUNTS, a_go(0), "stripped");
	struct program a;
	struct node node;

	(void)state;
	if (gofixture_minor(path) < 17)
		return; /* the linker turns nothing off */
	program_start(&a, 0, path);
	node_init(&node, GO_PROFILE_MODE_FORCE);
	node_set(&node, &a.process, NULL);
	node.wish = GO_PROFILE_WISH_DISABLED;
	node_round(&node);
	assert_info(&node, NULL, 0);
	assert_int_equal(shown(&node, "podprof_go_heap_reads", "processes_opted_out").value, 1);
	node.wish = GO_PROFILE_WISH_PENDING;
	node_round(&node);
	assert_info(&node, "disabled_by_linker", 1);
	assert_int_equal(shown(&node, "podprof_go_forced", NULL).value, 0);
	node.wish = GO_PROFILE_WISH_NONE;
	node_round(&node);
	assert_info(&node, "forced", 1);
	assert_int_equal(shown(&node, "podprof_go_forced", "ok").value, 1);
	goprocess_order(&a.process, "hold 10000");
	node_round(&node);
	node_round(&node);
	assert_int_equal(shown(&node, "podprof_go_forced", NULL).value, 1);
	assert_true(node.n_profiles > 0);
	/* another agent without force sees the state too */
	node_stop_agent(&node);
	node_start_agent(&node, GO_PROFILE_MODE_ENABLED);
	node_round(&node);
	assert_info(&node, "forced", 1);
	assert_int_equal(shown(&node, "podprof_go_forced", NULL).value, 0);
	node_deinit(&node);
	program_stop(&a);
}

static void assert_no_trace(struct node *node)
{
	for (int round = 0; round < 2; round++) {
		node_round(node);
		assert_info(node, NULL, 0);
		assert_int_equal(shown(node, "container_go_alloc_bytes", NULL).n, 0);
		assert_int_equal(shown(node, "podprof_go_processes", NULL).value, 1);
		assert_int_equal(shown(node, "podprof_go_processes", "no_runtime").value, 1);
	}
}

/* runc's process in the container, before it executes @script. */
static void be_runc(struct node *node, struct program *program, const char *path,
		    const char *script)
{
	char file[128], exec[160];

	program_start_with(program, 0, path, "GOMAXPROCS=;_LIBCONTAINER_INITPIPE=3");
	node_init(node, GO_PROFILE_MODE_ENABLED);
	node_set(node, &program->process, NULL);
	assert_no_trace(node);
	snprintf(file, sizeof(file), "%s/script", node->tree.path);
	tree_write(node->tree.fd, "script", script);
	assert_int_equal(chmod(file, 0755), 0);
	snprintf(exec, sizeof(exec), "exec %s", file);
	goprocess_order(&program->process, exec);
}

/* runc's process is not one of the container's Go processes; the executed program may be. */
static void set_up(void **state)
{
	_cleanup_(freep) char *path = gofixture_build(COUNTS, a_go(0), "default");
	char script[300];
	struct program a;
	struct node node;

	(void)state;
	be_runc(&node, &a, path, "#!/bin/sh\necho ready\nexec env -i sleep 1000\n");
	assert_no_trace(&node);
	node_deinit(&node);
	program_stop(&a);

	snprintf(script, sizeof(script), "#!/bin/sh\nexec env -i %s \"$1\"\n", path);
	be_runc(&node, &a, path, script);
	node_round(&node);
	assert_info(&node, NULL, 1);
	node_deinit(&node);
	program_stop(&a);
}

static struct entity *node_entity(const struct node *node, const char *id)
{
	struct entity *entity = NULL;

	while ((entity = discovery_next_entity(node->discovery, entity)))
		if (strncmp(entity->id.container_id, id, strlen(id)) == 0)
			return entity;
	fail_msg("no container %s", id);
	return NULL;
}

static void name(struct entity *entity, const char *container)
{
	_cleanup_(labels_deinit) struct labels labels = {0}, settings = {0};

	assert_int_equal(labels_set(&labels, "container", container), 0);
	entity_set_labels(entity, &labels, &settings);
	entity->pending = false;
}

/* A container each. */
static void node_init_two(struct node *node, const struct program *a, const struct program *b)
{
	char text[32];

	node_init(node, GO_PROFILE_MODE_FORCE);
	node_stop_agent(node);
	tree_mkdir(node->tree.fd, CONTAINER2);
	snprintf(text, sizeof(text), "%" PRIu64 "\n", b->process.id.pid);
	tree_write(node->tree.fd, CONTAINER2 "/cgroup.procs", text);
	node_set(node, &a->process, NULL);
	node_start_agent(node, GO_PROFILE_MODE_FORCE);
	name(node_entity(node, "6c1bd2c0a2d7"), "web");
}

static uint64_t unnamed(const struct node *node)
{
	return shown(node, "podprof_go_heap_reads", "processes_pending_names").value;
}

/* Runs of one container, or containers with equal labels, are one series. A new container is in no
 * series before its name is known, because the name may be the same. */
static void names(void **state)
{
	_cleanup_(freep) char *path = gofixture_build(COUNTS, a_go(0), "stripped");
	struct entity *second;
	struct program a, b;
	struct truth both;
	struct node node;

	(void)state;
	if (gofixture_minor(path) < 17)
		return; /* the linker turns nothing off */
	program_start(&a, 0, path);
	program_start(&b, 0, path);
	node_init_two(&node, &a, &b);
	second = node_entity(&node, "17b3d1f0f6a2");
	second->pending = true;
	node_round(&node);
	assert_info(&node, "forced", 1);
	assert_int_equal(unnamed(&node), 1);
	name(second, "web");
	goprocess_order(&a.process, "hold 40000");
	node_round(&node);
	goprocess_order(&b.process, "hold 40000");
	node.n_profiles = 0;
	node_round(&node);
	assert_info(&node, "forced", 1);
	assert_int_equal(node.n_profiles, 1);
	both = add(program_says(&a), program_says(&b));
	assert_shown(&node, both, both);
	name(second, "db");
	node_round(&node);
	assert_int_equal(node.n_profiles, 3);
	/* not wanted any more */
	assert_int_equal(entity_leave_out(second, "rule"), 0);
	node_round(&node);
	assert_int_equal(node.n_profiles, 4);
	assert_int_equal(shown(&node, "podprof_go_heap_reads", "processes_opted_out").value, 1);
	for (int i = 0; i < 3; i++)
		node_round(&node);
	assert_info(&node, "db", 0);
	assert_info(&node, "web", 1);
	node_deinit(&node);
	program_stop(&a);
	program_stop(&b);
}

/* A program that has allocated with sampling on, and a new agent that has read nothing of it. */
static void start_under_new_agent(struct node *node, struct program *a, const char *path)
{
	program_start(a, 0, path);
	node_init(node, GO_PROFILE_MODE_FORCE);
	node_set(node, &a->process, NULL);
	node_round(node); /* sampling is on */
	goprocess_order(&a->process, "hold 40000");
	node_stop_agent(node);
	node_start_agent(node, GO_PROFILE_MODE_FORCE);
	node->n_profiles = 0;
	memset(node->window_sums, 0, sizeof(node->window_sums));
	memset(node->held_in_windows, 0, sizeof(node->held_in_windows));
}

/* Allocations of an unnamed container, made before the end of its first window, go into the next
 * profile. Allocations of an older container from before the agent go into no profile. */
static void names_and_windows(void **state)
{
	static const struct {
		uint64_t after_s; /* from the process's start to the second window's */
		bool counts;
	} rows[] = {{8, true}, {60, false}};
	_cleanup_(freep) char *path = gofixture_build(COUNTS, a_go(0), "stripped");

	(void)state;
	if (gofixture_minor(path) < 17)
		return; /* the linker turns nothing off */
	for (size_t i = 0; i < array_size(rows); i++) {
		struct entity *entity;
		struct program a;
		struct node node;
		uint64_t began_ns;

		start_under_new_agent(&node, &a, path);
		entity = node_entity(&node, "6c1bd2c0a2d7");
		entity->pending = true;
		node_round(&node);
		assert_int_equal(node.n_profiles, 0);
		name(entity, "web");
		began_ns = nsec_wall() - nsec_boot() + pid_ns_of_ticks(a.process.id.start_ticks);
		go_profiler_end_window(node.profiler, began_ns + rows[i].after_s * NSEC_PER_SEC,
				       NSEC_PER_SEC);
		loop_until(node.loop, is_done, node.profiler);
		assert_int_equal(node.n_profiles, 1);
		assert_true(node.held_in_last[0] > 0);
		if (rows[i].counts)
			assert_int_equal(node.held_in_windows[0], node.held_in_last[0]);
		else
			assert_int_equal(node.window_sums[0], 0);
		node_deinit(&node);
		program_stop(&a);
	}
}

/* The round of a window is skipped, because the round before still runs. The next round has the
 * allocations of a process that began in the skipped window, as it has those of older processes. */
static void skipped(void **state)
{
	_cleanup_(freep) char *path = gofixture_build(COUNTS, a_go(0), "stripped");
	const uint64_t window_ns = 60 * NSEC_PER_SEC;
	struct program a;
	struct node node;
	uint64_t began_ns;

	(void)state;
	if (gofixture_minor(path) < 17)
		return; /* the linker turns nothing off */
	start_under_new_agent(&node, &a, path);
	name(node_entity(&node, "6c1bd2c0a2d7"), "web");
	began_ns = nsec_wall() - nsec_boot() + pid_ns_of_ticks(a.process.id.start_ticks);
	node_set(&node, NULL, NULL);
	go_profiler_end_window(node.profiler, began_ns - 2 * window_ns, window_ns);
	go_profiler_end_window(node.profiler, began_ns - window_ns, 2 * window_ns);
	assert_int_equal(shown(&node, "podprof_go_heap_reads", "round_skipped").value, 1);
	loop_until(node.loop, is_done, node.profiler);
	assert_int_equal(node.n_profiles, 0);
	node_set(&node, &a.process, NULL);
	go_profiler_end_window(node.profiler, began_ns + window_ns, window_ns);
	loop_until(node.loop, is_done, node.profiler);
	assert_int_equal(node.n_profiles, 1);
	assert_true(node.held_in_last[0] > 0);
	assert_int_equal(node.held_in_windows[0], node.held_in_last[0]);
	node_deinit(&node);
	program_stop(&a);
}

/* An agent that replaces another agent: the first window of an older process has the allocations in
 * this window, and the agent finds the processes, whether their names arrive at once or late. */
static void baseline(void **state)
{
	static const struct {
		const char *name;
		bool begins, is_late, too_late;
	} rows[] = {
		{"no baseline", false, false, false},
		{"a baseline", true, false, false},
		{"names come late", true, true, false},
		{"names come too late", true, true, true},
	};
	_cleanup_(freep) char *path = gofixture_build(COUNTS, a_go(0), "stripped");

	(void)state;
	if (gofixture_minor(path) < 17)
		return; /* the linker turns nothing off */
	for (size_t i = 0; i < array_size(rows); i++) {
		struct entity *entity;
		struct program a;
		struct node node;
		uint64_t begin_ns;
		int64_t before;

		row_begin(rows[i].name);
		program_start(&a, 0, path);
		node_init(&node, GO_PROFILE_MODE_FORCE);
		node_set(&node, &a.process, NULL);
		node_round(&node); /* sampling is on */
		goprocess_order(&a.process, "hold 40000");
		node_round(&node);
		before = node.held_in_last[0];
		assert_true(before > 0);
		node_stop_agent(&node);

		node_start_agent(&node, GO_PROFILE_MODE_FORCE);
		entity = node_entity(&node, "6c1bd2c0a2d7");
		entity->pending = rows[i].is_late;
		node.n_profiles = 0;
		memset(node.window_sums, 0, sizeof(node.window_sums));
		memset(node.held_in_windows, 0, sizeof(node.held_in_windows));
		/* such a window that the process is older than the longest wait for names */
		begin_ns = nsec_wall() - nsec_boot() + pid_ns_of_ticks(a.process.id.start_ticks) +
			   60 * NSEC_PER_SEC;
		if (rows[i].begins)
			go_profiler_begin(node.profiler, begin_ns, 3600 * NSEC_PER_SEC);
		if (!rows[i].too_late)
			name(entity, "web");
		if (rows[i].begins && !rows[i].too_late)
			loop_until(node.loop, is_done, node.profiler);
		assert_int_equal(node.n_profiles, 0);
		goprocess_order(&a.process, "hold 30000");
		name(entity, "web");
		go_profiler_end_window(node.profiler, begin_ns, NSEC_PER_SEC);
		loop_until(node.loop, is_done, node.profiler);
		assert_int_equal(node.n_profiles, 1);
		if (rows[i].begins && !rows[i].too_late)
			assert_int_equal(node.held_in_windows[0], node.held_in_last[0] - before);
		else
			assert_int_equal(node.window_sums[0], 0);
		assert_true(node.held_in_last[0] > before);
		assert_int_equal(shown(&node, "podprof_go_heap_reads", "round_skipped").value, 0);
		node_deinit(&node);
		program_stop(&a);
	}
}

/* The wall clock is set back after the start: new processes are new ones none the less. */
static void clock_set_back(void **state)
{
	_cleanup_(freep) char *path = gofixture_build(COUNTS, a_go(0), "stripped");
	struct program a;
	struct node node;
	uint64_t age_ns;

	(void)state;
	if (gofixture_minor(path) < 17)
		return; /* the linker turns nothing off */
	start_under_new_agent(&node, &a, path);
	name(node_entity(&node, "6c1bd2c0a2d7"), "web");
	/* the process is younger than this agent */
	age_ns = nsec_boot() - pid_ns_of_ticks(a.process.id.start_ticks) + NSEC_PER_SEC;
	go_profiler_begin(node.profiler, nsec_wall() - age_ns, 3600 * NSEC_PER_SEC);
	loop_until(node.loop, is_done, node.profiler);
	wall_step_s = -3600;
	go_profiler_end_window(node.profiler, nsec_wall() - age_ns, age_ns);
	loop_until(node.loop, is_done, node.profiler);
	wall_step_s = 0;
	assert_int_equal(node.n_profiles, 1);
	assert_true(node.held_in_last[0] > 0);
	assert_int_equal(node.held_in_windows[0], node.held_in_last[0]);
	node_deinit(&node);
	program_stop(&a);
}

/* At the end of the run there is no next round: names are waited for, but not for long. */
static void names_at_the_end(void **state)
{
	_cleanup_(freep) char *path = gofixture_build(COUNTS, a_go(0), "stripped");
	struct program a, b;
	struct entity *second;
	struct node node;

	(void)state;
	if (gofixture_minor(path) < 17)
		return; /* the linker turns nothing off */
	program_start(&a, 0, path);
	program_start(&b, 0, path);
	node_init_two(&node, &a, &b);
	second = node_entity(&node, "17b3d1f0f6a2");
	second->pending = true;
	go_profiler_finish(node.profiler, 3600 * NSEC_PER_SEC);
	node_round_begin(&node);
	assert_int_equal(go_profiler_pending(node.profiler), 1);
	name(second, "db");
	loop_until(node.loop, is_done, node.profiler);
	assert_info(&node, "forced", 2);
	assert_info(&node, "db", 1);
	second->pending = true;
	go_profiler_finish(node.profiler, 0);
	node_round(&node);
	assert_info(&node, "forced", 2);
	assert_int_equal(unnamed(&node), 0);
	node_deinit(&node);
	program_stop(&a);
	program_stop(&b);
}

/* The sum at a backend equals the process's total at the end: nothing twice, nothing missing. */
static void windows(void **state)
{
	static const char *const orders[] = {"hold 40000", "gc", "hold 1000", "drop", "gc", "gc"};
	_cleanup_(freep) char *path = gofixture_build(COUNTS, a_go(0), "stripped");
	struct program a;
	struct node node;

	(void)state;
	if (gofixture_minor(path) < 17)
		return; /* the linker turns nothing off */
	program_start(&a, 0, path);
	node_init(&node, GO_PROFILE_MODE_FORCE);
	node_set(&node, &a.process, NULL);
	for (size_t i = 0; i < array_size(orders); i++) {
		node_round(&node);
		goprocess_order(&a.process, orders[i]);
	}
	node_round(&node);
	node_round(&node);
	/* 80 samples are expected; 40 are 4.5 standard deviations away */
	assert_true(node.held_in_last[1] > 20 << 20);
	assert_int_equal(node.held_in_windows[0], node.held_in_last[0]);
	assert_int_equal(node.held_in_windows[1], node.held_in_last[1]);
	node_deinit(&node);
	program_stop(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows),	    cmocka_unit_test(adds_up),
		cmocka_unit_test(comes_back),	    cmocka_unit_test(wishes),
		cmocka_unit_test(set_up),	    cmocka_unit_test(names),
		cmocka_unit_test(names_at_the_end), cmocka_unit_test(names_and_windows),
		cmocka_unit_test(baseline),	    cmocka_unit_test(clock_set_back),
		cmocka_unit_test(skipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
