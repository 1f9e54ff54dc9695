// SPDX-License-Identifier: Apache-2.0
/*
 * From the decision about an entity to its samples: real cgroups with the path of a container and
 * of a systemd unit, a burning process inside, and the agent's CPU profiler.
 */
#include "support/test.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "base/root.h"
#include "cpu/filter.h"
#include "cpu/profiler.h"
#include "discovery/discovery.h"
#include "pprof/reader.h"
#include "cpu/series.h"
#include "support/burn.h"
#include "support/metrics.h"
#include "support/tree.h"
#include "support/until.h"

#define ID	  "9d1f7ad4a5a34f1c8a3a6f0f7f2c7e5d1b6f4c30bc8d69923d37ee698f5cfcce"
#define INNER	  "3b0a1c5de2f94d6788c1b2a3948576e0f1d2c3b4a5968778695a4b3c2d1e0f9a"
#define UID	  "5d59024d-c3a0-12f8-a461-131a79258807"
#define POD	  "podprof-filter-%d/kubepods/pod" UID
#define CONTAINER POD "/" ID
#define UNIT	  "podprof-filter-%d.service"
#define RATE	  97
#define WISH	  19
#define PATIENCE  1200 /* tenths of a second */

struct bench {
	struct root proc, sys;
	struct hierarchy_set trees;
	struct loop *loop;
	struct discovery *discovery;
	struct cpu_profiler *profiler;
	char dir[256], sub[340];
	pid_t pid;
	uint64_t cpu_until;
	const char *family, *labels; /* an awaited metric */
	uint64_t above;
	bool only_v2;
	size_t n_profiles; /* of the container */
	int64_t period, samples, cpu_ns;
};

static struct bench bench;

/* ---------------------------------------------------------------- the bench */

static void make_dir(struct bench *b, const char *path)
{
	for (int h = 0; h < (b->only_v2 ? 1 : HIERARCHY_MAX); h++)
		if (b->trees.roots[h].fd >= 0)
			tree_mkdir(b->trees.roots[h].fd, path);
}

static void remove_dir(struct bench *b, const char *path)
{
	for (int h = 0; h < HIERARCHY_MAX; h++)
		if (*path && b->trees.roots[h].fd >= 0 &&
		    faccessat(b->trees.roots[h].fd, path, F_OK, 0) == 0)
			tree_rmdir(b->trees.roots[h].fd, path);
}

static void enter(struct bench *b, const char *path)
{
	char file[360], text[24];

	snprintf(file, sizeof(file), "%s/cgroup.procs", path);
	snprintf(text, sizeof(text), "%d\n", b->pid);
	for (int h = 0; h < (b->only_v2 ? 1 : HIERARCHY_MAX); h++)
		if (b->trees.roots[h].fd >= 0)
			tree_write(b->trees.roots[h].fd, file, text);
}

/* The sums of the container's profile. */
static void on_profile(void *ctx, struct profile *profile)
{
	struct bench *b = ctx;
	const char *why, *id = labels_get(&profile->labels, "container");
	struct reader *reader;

	if (profile->kind == PROFILE_CPU && id && strcmp(id, ID) == 0) {
		assert_int_equal(
			reader_new(profile->pprof, profile->pprof_len, 64u << 20, &reader, &why),
			0);
		b->n_profiles++;
		b->period = reader_tables(reader)->period;
		b->samples = tables_total(reader_tables(reader), 0);
		b->cpu_ns = tables_total(reader_tables(reader), 1);
		reader_free(reader);
	}
	profile_free(profile);
}

static int setup(void **state)
{
	struct bench *b = &bench;

	*b = (struct bench){.proc = ROOT_INIT, .sys = ROOT_INIT};
	*state = b;
	if (root_open("/proc", &b->proc) || root_open("/sys", &b->sys) || loop_new(&b->loop))
		return -1;
	return hierarchy_find(NULL, &b->proc, &b->trees);
}

static int teardown(void **state)
{
	struct bench *b = *state;

	if (b->pid > 0)
		burn_end(b->pid);
	cpu_profiler_free(b->profiler);
	discovery_free(b->discovery);
	loop_free(b->loop);
	remove_dir(b, b->sub);
	remove_dir(b, b->dir);
	hierarchy_deinit(&b->trees);
	root_deinit(&b->proc);
	root_deinit(&b->sys);
	return 0;
}

/* A burning process in a new cgroup with this path, and the profiler. With @host_processes, a
 * window has the profiles of all programs of the machine, which take a while. */
static void start(struct bench *b, const char *path, bool host_processes)
{
	const struct discovery_opts discovery = {
		.proc = &b->proc,
		.host_processes = host_processes,
		.node_name = "n",
		.grace_ns = 60 * NSEC_PER_SEC,
		.loop = b->loop,
	};
	struct cpu_profiler_opts opts = {
		.loop = b->loop,
		.proc = &b->proc,
		.sys = &b->sys,
		.rate_hz = RATE,
		.unwind = SETTINGS_UNWIND_FP,
		.symbol_bytes = 16u << 20,
		.out = on_profile,
		.ctx = b,
	};
	struct bpfobj_why why = {""};

	snprintf(b->dir, sizeof(b->dir), path, getpid()); /* NOLINT: constants of this file */
	make_dir(b, b->dir);
	b->pid = burn_start(BURN_USER);
	assert_true(b->pid > 0);
	enter(b, b->dir);
	assert_int_equal(discovery_new(&discovery, &b->discovery), 0);
	opts.discovery = b->discovery;
	if (cpu_profiler_new(&opts, &why, &b->profiler))
		fail_msg("no profiler: %s", why.text);
	burn_go(b->pid);
}

static struct entity *find(struct bench *b, enum entity_kind kind, const char *label,
			   const char *value)
{
	struct entity *entity = NULL;

	while ((entity = discovery_next_entity(b->discovery, entity))) {
		const char *has = labels_get(&entity->labels, label);

		if (entity->kind == kind && has && strcmp(has, value) == 0)
			return entity;
	}
	return NULL;
}

/* The pod's annotation. */
static void wish(struct bench *b, const char *rate)
{
	struct entity *entity = find(b, ENTITY_CONTAINER, "container", ID);
	struct labels labels = {0}, settings = {0};

	assert_non_null(entity);
	assert_int_equal(labels_copy(&entity->labels, &labels), 0);
	assert_int_equal(labels_set(&settings, CPU_FILTER_SETTING, rate), 0);
	entity_set_labels(entity, &labels, &settings);
	labels_deinit(&labels);
	labels_deinit(&settings);
}

/* ---------------------------------------------------------------- waiting */

static uint64_t cpu_of(pid_t pid)
{
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	return nsec_read(clock);
}

static bool has_run(void *ctx)
{
	const struct bench *b = ctx;

	return cpu_of(b->pid) >= b->cpu_until;
}

static void run_for(struct bench *b, uint64_t cpu_ns)
{
	b->cpu_until = cpu_of(b->pid) + cpu_ns;
	loop_until(b->loop, has_run, b);
}

static uint64_t metric(struct bench *b, const char *family, const char *labels)
{
	return metrics_get(cpu_profiler_collect, b->profiler, family, labels);
}

static bool is_above(void *ctx)
{
	struct bench *b = ctx;

	return metric(b, b->family, b->labels) > b->above;
}

/* find(), when discovery has found it: on a busy machine it takes its time. */
static struct entity *await(struct bench *b, enum entity_kind kind, const char *label,
			    const char *value)
{
	struct entity *entity = NULL;

	for (int i = 0; i < PATIENCE && !entity; i++) {
		run_for(b, NSEC_PER_SEC / 10);
		entity = find(b, kind, label, value);
	}
	assert_non_null(entity);
	return entity;
}

static void wait_above(struct bench *b, const char *family, const char *labels, uint64_t above)
{
	b->family = family;
	b->labels = labels;
	b->above = above;
	loop_until(b->loop, is_above, b);
}

static uint64_t left_out(struct bench *b)
{
	return metric(b, "podprof_samples", "cpu,filtered_excluded");
}

/* Wait until the kernel filters and earlier samples are drained. */
static void wait_left_out(struct bench *b)
{
	wait_above(b, "podprof_samples", "cpu,filtered_excluded", left_out(b) + 5);
	run_for(b, NSEC_PER_SEC);
}

static uint64_t n_samples(struct bench *b, const struct entity *entity)
{
	const struct series *series = cpu_profiler_series(b->profiler, entity->key);

	return series ? series->n_window : 0;
}

static void wait_samples(struct bench *b, const struct entity *entity)
{
	for (int i = 0; i < PATIENCE && !n_samples(b, entity); i++)
		run_for(b, NSEC_PER_SEC / 10);
	assert_true(n_samples(b, entity) > 0);
}

static bool is_out(void *ctx)
{
	const struct bench *b = ctx;

	return !cpu_profiler_pending(b->profiler);
}

static void end_window(struct bench *b)
{
	cpu_profiler_end_window(b->profiler, 1, NSEC_PER_SEC);
	loop_until(b->loop, is_out, b);
}

/* ---------------------------------------------------------------- tests */

static const struct {
	const char *name, *wish, *left_out;
	unsigned int want;
} rate_rows[] = {
	{"no wish", NULL, NULL, 97}, {"a part", "19", NULL, 19},
	{"none", "0", NULL, 0},	     {"all", "97", NULL, 97},
	{"more", "98", NULL, 97},    {"too much", "99999999999999999999", NULL, 97},
	{"odd", "19Hz", NULL, 97},   {"negative", "-1", NULL, 97},
	{"empty", "", NULL, 97},     {"left out", NULL, "so", 0},
	{"left out", "19", "so", 0},
};

static void test_rate(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(rate_rows); i++) {
		struct entity entity = {.left_out = (char *)rate_rows[i].left_out};

		row_begin(rate_rows[i].name);
		if (rate_rows[i].wish)
			assert_int_equal(
				labels_set(&entity.settings, CPU_FILTER_SETTING, rate_rows[i].wish),
				0);
		assert_int_equal(cpu_filter_rate(&entity, RATE), rate_rows[i].want);
		labels_deinit(&entity.settings);
	}
}

/* The whole profile, with all samples of the window. */
static void take_window(struct bench *b)
{
	end_window(b);
	print_message("period %jd, %jd samples, %jd ms\n", (intmax_t)b->period,
		      (intmax_t)b->samples, (intmax_t)b->cpu_ns / 1000000);
}

/* The period is the mean weight of the samples, rounded to whole nanoseconds. */
static void assert_mean(const struct bench *b)
{
	assert_true(llabs(b->cpu_ns - b->period * b->samples) <= b->samples);
}

static void assert_period(const struct bench *b, double want)
{
	assert_true(fabs((double)b->period - want) < want / 10000);
	assert_mean(b);
}

/* A profile of samples with weight five has this period. If the rate changes in the window, the
 * period is the mean, and the values are exact. test_cgroup_sampling.c checks the time. */
static void test_wish(void **state)
{
	struct bench *b = *state;

	start(b, CONTAINER, false);
	wait_above(b, "podprof_profiled_samples", "folded", 0);
	wish(b, "19");
	wait_above(b, "podprof_samples", "cpu,filtered_subsampled", 20);
	run_for(b, NSEC_PER_SEC);
	take_window(b);
	assert_true(b->period > (int64_t)NSEC_PER_SEC / RATE + 1000);
	assert_true(b->period < (int64_t)NSEC_PER_SEC / WISH - 1000);
	assert_mean(b);
	run_for(b, NSEC_PER_SEC);
	take_window(b);
	assert_period(b, 1e9 / WISH);
	wish(b, "1000"); /* all, and no more */
	while (metric(b, "podprof_cgroup_sampling_entries", "reduced"))
		run_for(b, NSEC_PER_SEC / 10);
	run_for(b, NSEC_PER_SEC);
	take_window(b);
	run_for(b, NSEC_PER_SEC);
	take_window(b);
	assert_period(b, 1e9 / RATE);
}

/* Frees the profiler. The samples of which its log says that they are lost. */
static uint64_t free_and_read_log(struct bench *b)
{
	static const char line[] = "no time for the last profiles, losing their samples";
	const char *number, *said;
	char text[4096];
	FILE *log = tmpfile();
	int saved = dup(STDERR_FILENO);
	size_t n;

	assert_non_null(log);
	assert_true(saved >= 0);
	assert_true(dup2(fileno(log), STDERR_FILENO) >= 0);
	cpu_profiler_free(b->profiler);
	b->profiler = NULL;
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	close(saved);
	rewind(log);
	n = fread(text, 1, sizeof(text) - 1, log);
	text[n] = '\0';
	fclose(log);
	said = strstr(text, line);
	number = said ? strstr(said, "samples=") : NULL;
	assert_true(!said == !number);
	return number ? strtoull(number + strlen("samples="), NULL, 10) : 0;
}

/* An end that does not wait for the window's profiles tells of the samples of all that were not
 * made in time (usually of each one), and an end that waits tells nothing. */
static void test_unreported(void **state)
{
	struct bench *b = *state;
	struct entity *entity;
	uint64_t n, lost;

	start(b, CONTAINER, false);
	entity = find(b, ENTITY_CONTAINER, "container", ID);
	assert_non_null(entity);
	wait_samples(b, entity);
	n = n_samples(b, entity);
	cpu_profiler_end_window(b->profiler, 1, NSEC_PER_SEC);
	lost = free_and_read_log(b);
	assert_true(lost + (b->n_profiles ? (uint64_t)b->samples : 0) >= n);
}

static void test_reported(void **state)
{
	struct bench *b = *state;

	start(b, CONTAINER, false);
	wait_above(b, "podprof_profiled_samples", "folded", 0);
	end_window(b);
	assert_int_equal(free_and_read_log(b), 0);
}

static uint64_t cgroups(struct bench *b)
{
	return metric(b, "podprof_cgroup_sampling_entries", "off");
}

static void check_nothing(struct bench *b, const struct entity *entity)
{
	wait_left_out(b);
	end_window(b);
	run_for(b, NSEC_PER_SEC / 5);
	assert_int_equal(n_samples(b, entity), 0);
}

/* With a cgroup made by the container itself, until the container is profiled again. */
static void test_left_out(void **state)
{
	struct bench *b = *state;
	struct entity *entity;
	uint64_t n;

	start(b, CONTAINER, true);
	entity = find(b, ENTITY_CONTAINER, "container", ID);
	assert_non_null(entity);
	wait_above(b, "podprof_profiled_samples", "folded", 0);
	assert_int_equal(entity_leave_out(entity, "the test says so"), 0);
	check_nothing(b, entity);
	n = cgroups(b);
	assert_true(n > 0);
	snprintf(b->sub, sizeof(b->sub), "%s/inner", b->dir);
	make_dir(b, b->sub);
	enter(b, b->sub);
	wait_above(b, "podprof_cgroup_sampling_entries", "off", n);
	check_nothing(b, entity);

	n = b->n_profiles;
	assert_int_equal(entity_leave_out(entity, NULL), 0);
	wait_samples(b, entity);
	assert_int_equal(cgroups(b), 0);
	end_window(b);
	assert_true(b->n_profiles > n);
}

static void test_unit(void **state)
{
	struct entity *entity;
	struct bench *b = *state;
	char unit[64];

	snprintf(unit, sizeof(unit), UNIT, getpid());
	start(b, "system.slice/" UNIT, true);
	entity = await(b, ENTITY_UNIT, "unit", unit);
	assert_int_equal(entity_leave_out(entity, "the test says so"), 0);
	check_nothing(b, entity);
	assert_int_equal(cgroups(b), 1);
}

/* Processes of a pod outside of its containers do not belong to the host, and are excluded like a
 * container; also if they are in the unified tree only. */
static void test_pod(void **state)
{
	struct bench *b = *state;
	struct entity *entity;

	b->only_v2 = b->trees.roots[HIERARCHY_V1].fd >= 0;
	start(b, POD, false);
	entity = await(b, ENTITY_POD, "pod_uid", UID);
	wait_above(b, "podprof_cgroup_sampling_entries", "off", 0); /* the host's */
	wait_samples(b, entity);
	assert_int_equal(entity_leave_out(entity, "the test says so"), 0);
	check_nothing(b, entity);
}

/* Where the host is not profiled it is left out in the kernel; containers are not. */
static void test_no_host(void **state)
{
	struct bench *b = *state;
	struct entity *entity;

	start(b, CONTAINER, false);
	entity = find(b, ENTITY_CONTAINER, "container", ID);
	assert_non_null(entity);
	wait_above(b, "podprof_cgroup_sampling_entries", "off", 0);
	wait_samples(b, entity);
	remove_dir(b, b->sub);
	snprintf(b->sub, sizeof(b->sub), "system.slice/" UNIT, getpid());
	make_dir(b, b->sub);
	enter(b, b->sub);
	wait_left_out(b);
	end_window(b);
	run_for(b, NSEC_PER_SEC / 5);
	assert_int_equal(n_samples(b, entity), 0);
}

/* A container in the unified tree only is a container, even with its tasks in trees of version 1.
 */
static void test_no_host_but_unified(void **state)
{
	struct bench *b = *state;
	struct entity *entity;

	if (b->trees.roots[HIERARCHY_V1].fd >= 0)
		b->only_v2 = true;
	start(b, CONTAINER, false);
	entity = find(b, ENTITY_CONTAINER, "container", ID);
	assert_non_null(entity);
	wait_left_out(b); /* any other process */
	end_window(b);
	wait_samples(b, entity);
}

/* Docker in a pod, on a node with both trees: the inner container has the version 1 trees alone. */
static struct entity *start_inner(struct bench *b, bool host_processes)
{
	struct entity *entity;
	char file[380], text[24];

	start(b, CONTAINER, host_processes);
	snprintf(b->sub, sizeof(b->sub), "%s/docker/" INNER, b->dir);
	snprintf(file, sizeof(file), "%s/cgroup.procs", b->sub);
	snprintf(text, sizeof(text), "%d\n", b->pid);
	for (int h = HIERARCHY_MAX - 1; h >= 0; h--) {
		if (b->trees.roots[h].fd < 0)
			continue;
		tree_mkdir(b->trees.roots[h].fd, b->sub);
		tree_write(b->trees.roots[h].fd, file, text);
		if (h == HIERARCHY_V1)
			break;
	}
	entity = await(b, ENTITY_CONTAINER, "container", INNER);
	wait_samples(b, entity);
	return entity;
}

static void check_inner(struct bench *b, bool host_processes)
{
	struct entity *outer, *inner = start_inner(b, host_processes);

	assert_int_equal(entity_leave_out(inner, "the test says so"), 0);
	check_nothing(b, inner);
	assert_int_equal(entity_leave_out(inner, NULL), 0);
	wait_samples(b, inner);
	end_window(b);
	outer = find(b, ENTITY_CONTAINER, "container", ID);
	assert_non_null(outer);
	assert_int_equal(entity_leave_out(outer, "the test says so"), 0);
	wait_above(b, "podprof_cgroup_sampling_entries", "off", 0);
	end_window(b);
	wait_samples(b, inner);
}

static void test_inner(void **state)
{
	check_inner(*state, true);
}

static void test_inner_no_host(void **state)
{
	check_inner(*state, false);
}

static bool has_entity(void *ctx)
{
	struct bench *b = ctx;

	return find(b, ENTITY_CONTAINER, "container", ID);
}

static uint64_t n_of_container(struct bench *b)
{
	return n_samples(b, find(b, ENTITY_CONTAINER, "container", ID));
}

/* The host may take the virtual CPU away. */
static bool has_half(void *ctx)
{
	return n_of_container(ctx) >= RATE / 4;
}

/* A container that starts after the filter's update, of the unified tree only: its tasks are in
 * trees of version 1 where the host's are. The loop does not run before the tasks of the container
 * have ended, so neither discovery nor the filter has seen the container. */
static void test_new_but_unified(void **state)
{
	struct bench *b = *state;
	uint64_t cpu_ns;

	b->only_v2 = b->trees.roots[HIERARCHY_V1].fd >= 0;
	start(b, "podprof-filter-%d", false);
	wait_left_out(b);
	snprintf(b->sub, sizeof(b->sub), "%s/" ID, b->dir);
	make_dir(b, b->sub);
	enter(b, b->sub);
	for (uint64_t until = cpu_of(b->pid) + NSEC_PER_SEC / 2; cpu_of(b->pid) < until;)
		usleep(10000);
	cpu_ns = burn_end(b->pid);
	b->pid = 0;
	loop_until(b->loop, has_entity, b);
	/* several drains may deliver the samples */
	loop_until(b->loop, has_half, b);
	print_message("%ju samples of %ju ms\n", (uintmax_t)n_of_container(b),
		      (uintmax_t)(cpu_ns / NSEC_PER_MSEC));
}

/* ---------------------------------------------------------------- slices */

#define SLICES_DIRS 40

/**
 * struct slices - what changes from one turn of the loop to the next
 * @n_last: directories that the kernel excludes
 * @most:   directories of one turn
 * @n_want: the last turn has so many, if @is_up, or so few
 */
struct slices {
	struct bench *b;
	uint64_t n_last, most, n_want;
	bool is_up;
};

static void on_turn(void *ctx, int fd, uint32_t events)
{
	struct slices *s = ctx;
	const uint64_t n = cgroups(s->b);
	const uint64_t by = n > s->n_last ? n - s->n_last : s->n_last - n;

	(void)fd;
	(void)events;
	s->most = by > s->most ? by : s->most;
	s->n_last = n;
}

static bool has_wanted(void *ctx)
{
	const struct slices *s = ctx;

	return s->is_up ? s->n_last >= s->n_want : s->n_last <= s->n_want;
}

static void leave_out_all(struct bench *b, const char *why)
{
	struct entity *entity = find(b, ENTITY_CONTAINER, "container", ID);

	assert_non_null(entity);
	assert_int_equal(entity_leave_out(entity, why), 0);
}

/* An update of the filter visits one directory a turn, in both directions. A directory that goes
 * meanwhile does no harm. */
static void test_slices(void **state)
{
	struct bench *b = *state;
	struct slices s = {.b = b};
	int fd = eventfd(1, EFD_CLOEXEC);
	struct loop_source *turn;
	char path[400];

	start(b, CONTAINER, true);
	snprintf(b->sub, sizeof(b->sub), "%s/many", b->dir);
	make_dir(b, b->sub);
	for (int i = 0; i < SLICES_DIRS; i++) {
		snprintf(path, sizeof(path), "%s/%d", b->sub, i);
		make_dir(b, path);
	}
	wait_above(b, "podprof_profiled_samples", "folded", 0);
	run_for(b, 3 * NSEC_PER_SEC); /* the first updates */
	loop_set_slice(b->loop, 0);
	assert_int_equal(loop_add_fd(b->loop, fd, EPOLLIN, on_turn, &s, &turn), 0);
	s.n_last = cgroups(b);
	s.n_want = s.n_last + SLICES_DIRS;
	s.is_up = true;
	leave_out_all(b, "the test says so");
	loop_until(b->loop, has_wanted, &s);
	assert_int_equal(s.most, 1);
	s.is_up = false;
	s.n_want = 0;
	for (int i = 0; i < SLICES_DIRS; i++) {
		snprintf(path, sizeof(path), "%s/%d", b->sub, i);
		remove_dir(b, path);
	}
	leave_out_all(b, NULL);
	loop_until(b->loop, has_wanted, &s);
	assert_int_equal(s.most, 1);
	leave_out_all(b, "the test says so");
	cpu_profiler_free(b->profiler); /* in the middle of an update */
	b->profiler = NULL;
	loop_remove(turn);
	close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rate),
		TEST(test_unreported),
		TEST(test_reported),
		TEST(test_wish),
		TEST(test_left_out),
		TEST(test_slices),
		TEST(test_unit),
		TEST(test_no_host),
		TEST(test_no_host_but_unified),
		TEST(test_new_but_unified),
		TEST(test_pod),
		TEST(test_inner),
		TEST(test_inner_no_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
