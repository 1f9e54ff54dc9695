// SPDX-License-Identifier: Apache-2.0
/*
 * No sample goes to a wrong container. Processes burn CPU time in functions that belong to one
 * container each ("places"), in real cgroups with the paths of kubelets and runtimes. The test
 * compares discovery's result for each sample with the place in the sample's stack.
 *
 * Half of the processes are hard cases: processes of 5 ms, 200 a second; processes that move
 * between containers, and between cgroups made and removed by the same processes; containers in
 * containers; pid and cgroup namespaces of their own; containers removed before the agent reads
 * their samples. A process in a pod's own cgroup, like gVisor's kernel, belongs to the pod.
 *
 * PODPROF_TEST_SECONDS is the shortest duration; `make check-entities` runs for a minute. A node
 * has one of the two kinds of trees, or both; test/kernels/guest.c covers the others.
 */
#include "support/test.h"

#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "discovery/discovery.h"
#include "profile/cgroup_events.h"
#include "profile/oncpu.h"
#include "support/cgroups.h"
#include "support/metrics.h"
#include "support/sampling.h"
#include "support/until.h"

#define RATE	    997
#define INTERVAL_NS (200 * NSEC_PER_MSEC)
#define LONG	    UINT64_C(3600000000000)
#define BURN_NS	    (5 * NSEC_PER_MSEC)
#define SHOWN	    20 /* wrong samples printed in full */
/* Samples, in the short form: of each place, and of all. */
#define WANT_EACH   20
#define WANT_ALL    3000

/* ---------------------------------------------------------------- places */

static volatile uint64_t sink;

/* As in burn.c: a section of its own, with bounds from the linker. The function must not end with a
 * tail call. */
#define PLACE(n)                                                                        \
	extern const char __start_place_##n[];                                          \
	extern const char __stop_place_##n[];                                           \
	__attribute__((noinline, section("place_" #n))) static void burn_##n(void)      \
	{                                                                               \
		const uint64_t until_ns = nsec_read(CLOCK_THREAD_CPUTIME_ID) + BURN_NS; \
                                                                                        \
		while (nsec_read(CLOCK_THREAD_CPUTIME_ID) < until_ns)                   \
			for (int i = 0; i < 20000; i++)                                 \
				sink = sink * 3 + (n);                                  \
		sink++;                                                                 \
	}
#define ROW(n)                                                \
	{                                                     \
		burn_##n, __start_place_##n, __stop_place_##n \
	}

/* clang-format off */
PLACE(0) PLACE(1) PLACE(2) PLACE(3) PLACE(4) PLACE(5) PLACE(6) PLACE(7) PLACE(8) PLACE(9)
PLACE(10) PLACE(11) PLACE(12) PLACE(13) PLACE(14) PLACE(15) PLACE(16) PLACE(17) PLACE(18)
	/* clang-format on */

	enum { CGROUPFS,      /* the cgroupfs driver's path */
	       SYSTEMD,	      /* the systemd driver's */
	       POD,	      /* in the pod of that container, */
	       POD_SLICE,     /* also in that pod, and in no container */
	       SUBGROUPS,     /* moves between cgroups that it makes in the container */
	       NAMESPACES,    /* is the first of a pid namespace, with a cgroup namespace */
	       OUTER,	      /* a node in a container */
	       INNER,	      /* a pod on the inner node */
	       SHORT,	      /* 200 processes a second */
	       SHORT_SYSTEMD, /* so many more, in cgroups of their own below a scope */
	       MOVES_HERE,    /* one process, alternately in two containers */
	       MOVES_THERE,   /* and in none, */
	       MOVES_OUT,     /* this container */
	       SERVICE,	      /* of the host */
	       RUNAWAY,	      /* in a container younger than 5 ms and removed afterwards */
	       DIES,	      /* and the next ones: containers removed once seen */
	       PLACES = DIES + 4,
	};

static const struct {
	void (*burn)(void);
	const char *start, *limit;
} places[PLACES] = {ROW(0),  ROW(1),  ROW(2),  ROW(3),	ROW(4),	 ROW(5),  ROW(6),
		    ROW(7),  ROW(8),  ROW(9),  ROW(10), ROW(11), ROW(12), ROW(13),
		    ROW(14), ROW(15), ROW(16), ROW(17), ROW(18)};

struct tally {
	uint64_t right;
	uint64_t unknown;
	uint64_t wrong;
};

/* Generations whose late samples are recognized, by pid. */
#define GENERATIONS 256

/* The container currently living and dying. */
struct dying {
	unsigned int place;
	unsigned int generation;
	pid_t pids[GENERATIONS]; /* by generation */
	bool made;
	pid_t pid;
	struct cgroup cgroup;
};

struct bench {
	struct sampling on;
	struct cgroups cgroups;
	struct discovery *discovery;
	char id[PLACES][CGROUP_ID_MAX]; /* container or pod of each place; "": none */
	struct tally tally[PLACES];
	struct dying dying;
	pid_t children[32];
	size_t n_children;
	uint64_t n_unknown; /* questions without an answer */
	uint64_t until_ns;  /* end of the test, and of a part */
	uint64_t turn_ns;
};

/* As in struct bench. */
static const char *id_of(const struct entity *entity)
{
	if (!entity)
		return "";
	return entity->kind == ENTITY_POD ? entity->id.pod_uid : entity->id.container_id;
}

static int place_of(const struct sample *s)
{
	for (size_t i = 0; i < s->n_user; i++)
		for (int place = 0; place < PLACES; place++) {
			/* all but the first are return addresses */
			const uint64_t pc = s->user[i] - (i > 0);

			if (pc >= (uintptr_t)places[place].start &&
			    pc < (uintptr_t)places[place].limit)
				return place;
		}
	return -1;
}

/* The right container or pod of a sample. A sample may wait for the mappings of the process, while
 * the place passes to the next containers. */
static const char *id_at(const struct bench *b, int place, const struct sample *s,
			 char ret[CGROUP_ID_MAX])
{
	const struct dying *d = &b->dying;

	for (unsigned int i = 0; place >= DIES && i < GENERATIONS && i <= d->generation; i++) {
		const unsigned int generation = d->generation - i;

		if (d->pids[generation % GENERATIONS] == (pid_t)s->pid.pid)
			return cgroups_container_id(PLACES + generation, ret);
	}
	return b->id[place];
}

static void show(const struct bench *b, const struct sample *s, int place,
		 const struct entity *entity)
{
	print_message("place %d (%s) went to %s %s: pid %llu, cgroups %llu and %llu\n", place,
		      b->id[place], entity ? entity_kind_name(entity->kind) : "nobody",
		      id_of(entity), (unsigned long long)s->pid.pid,
		      (unsigned long long)s->cgroup_id, (unsigned long long)s->cgroup_v1_id);
}

static void take(void *ctx, const struct sample *s)
{
	const int place = place_of(s);
	const struct entity *entity;
	char id[CGROUP_ID_MAX];
	struct bench *b = ctx;
	struct tally *tally;

	if (place < 0)
		return; /* between two places */
	tally = &b->tally[place];
	entity = discovery_entity(b->discovery, s->cgroup_id, s->cgroup_v1_id, &s->pid, s->comm);
	if (entity && entity->kind == ENTITY_UNKNOWN) {
		tally->unknown += s->count;
		b->n_unknown++;
	} else if (strcmp(id_of(entity), id_at(b, place, s, id)) == 0) {
		tally->right += s->count;
	} else {
		if (tally->wrong < SHOWN)
			show(b, s, place, entity);
		tally->wrong += s->count;
	}
}

/* ---------------------------------------------------------------- contents of the containers */

#define UID	  "2c48913c-b29f-11e7-9350-0209681477"
#define UID_SLICE "2c48913c_b29f_11e7_9350_0209681477"

/* The path above a container's own directory; each container has a pod of its own. */
static void pod_path(int place, bool systemd, char *ret, size_t size)
{
	if (systemd)
		snprintf(ret, size,
			 "kubepods.slice/kubepods-besteffort.slice/"
			 "kubepods-besteffort-pod" UID_SLICE "%02d.slice",
			 place);
	else
		snprintf(ret, size, "kubepods/burstable/pod" UID "%02d", place);
}

static void container_path(const struct bench *b, int place, bool systemd, char *ret, size_t size)
{
	char pod[256];

	pod_path(place, systemd, pod, sizeof(pod));
	snprintf(ret, size, systemd ? "%s/cri-containerd-%s.scope" : "%s/%s", pod, b->id[place]);
}

/* In a child: must succeed, unless the machine is broken. */
static void must(bool done)
{
	if (!done)
		_exit(3);
}

static void nap(uint64_t ns)
{
	const struct timespec ts = {.tv_nsec = (long)ns};

	nanosleep(&ts, NULL);
}

/* A child in this cgroup that calls @run for ever. */
static void start(struct bench *b, const struct cgroup *cgroup,
		  void (*run)(struct bench *b, int place), int place)
{
	const pid_t parent = getpid();
	pid_t pid = fork();

	assert_true(pid >= 0 && b->n_children < 32);
	if (pid) {
		b->children[b->n_children++] = pid;
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	must(getppid() == parent);
	must(cgroups_try_enter(&b->cgroups, cgroup, getpid()));
	for (;;)
		run(b, place);
}

static void burn_and_nap(struct bench *b, int place)
{
	places[place].burn();
	nap(3 * BURN_NS);
}

static void start_container(struct bench *b, int place, bool systemd,
			    void (*run)(struct bench *b, int place))
{
	struct cgroup cgroup;
	char path[512];

	container_path(b, place, systemd, path, sizeof(path));
	cgroups_make(&b->cgroups, &cgroup, "%s", path);
	start(b, &cgroup, run, place);
}

/* Each turn in another cgroup; the former one is removed. */
static void run_subgroups(struct bench *b, int place)
{
	static struct cgroup here;
	static unsigned int turn;
	struct cgroup next;
	char path[512], below[600];

	container_path(b, place, false, path, sizeof(path));
	snprintf(below, sizeof(below), "%s/%u/system.slice/x.service", path, turn++ / 10);
	if (turn % 10 == 1) {
		must(cgroups_try_make(&b->cgroups, &next, "%s", below));
		must(cgroups_try_enter(&b->cgroups, &next, getpid()));
		if (here.path[0])
			must(cgroups_try_remove(&b->cgroups, &here));
		here = next;
	}
	burn_and_nap(b, place);
}

/* Once: become the first of a new pid namespace, see only the own cgroup, burn in there. */
static void run_namespaces(struct bench *b, int place)
{
	struct clone_args args = {.flags = CLONE_NEWPID, .exit_signal = SIGCHLD};
	pid_t pid;

	must(unshare(CLONE_NEWCGROUP) == 0);
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	must(pid >= 0);
	if (pid) {
		waitpid(pid, NULL, 0);
		_exit(4);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		burn_and_nap(b, place);
}

static void run_short(struct bench *b, int place)
{
	pid_t pid = fork();

	must(pid >= 0);
	if (pid == 0) {
		places[place].burn();
		_exit(0);
	}
	nap(BURN_NS);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* Between containers, outside of all, and into one that is removed at once. */
static void run_moves(struct bench *b, int place)
{
	static struct cgroup cgroups[4];
	static const int stations[] = {MOVES_HERE, MOVES_THERE, MOVES_OUT};
	char path[512];

	for (size_t i = 0; i < array_size(stations); i++) {
		if (!cgroups[i].path[0]) {
			container_path(b, stations[i], i & 1, path, sizeof(path));
			must(cgroups_try_make(&b->cgroups, &cgroups[i], "%s",
					      i == 2 ? "nothing" : path));
		}
		must(cgroups_try_enter(&b->cgroups, &cgroups[i], getpid()));
		burn_and_nap(b, stations[i]);
	}
	container_path(b, RUNAWAY, true, path, sizeof(path));
	must(cgroups_try_make(&b->cgroups, &cgroups[3], "%s", path));
	must(cgroups_try_enter(&b->cgroups, &cgroups[3], getpid()));
	burn_and_nap(b, RUNAWAY);
	must(cgroups_try_enter(&b->cgroups, &cgroups[0], getpid()));
	must(cgroups_try_remove(&b->cgroups, &cgroups[3]));
}

/* Like kind: a kubelet's tree below docker's container. */
static void start_node(struct bench *b)
{
	struct cgroup cgroup;
	char path[512];
	int n;

	n = snprintf(path, sizeof(path), "docker/%s", b->id[OUTER]);
	cgroups_make(&b->cgroups, &cgroup, "%s", path);
	start(b, &cgroup, burn_and_nap, OUTER);
	snprintf(path + n, sizeof(path) - (size_t)n,
		 "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UID_SLICE
		 "%02d.slice/cri-containerd-%s.scope",
		 INNER, b->id[INNER]);
	cgroups_make(&b->cgroups, &cgroup, "%s", path);
	start(b, &cgroup, burn_and_nap, INNER);
}

static void start_others(struct bench *b)
{
	struct cgroup cgroup;
	char path[512];

	container_path(b, SHORT_SYSTEMD, true, path, sizeof(path) - 16);
	strcat(path, "/init.scope");
	cgroups_make(&b->cgroups, &cgroup, "%s", path);
	start(b, &cgroup, run_short, SHORT_SYSTEMD);
	cgroups_make(&b->cgroups, &cgroup, "system.slice/x.service");
	start(b, &cgroup, burn_and_nap, SERVICE);
}

/* ---------------------------------------------------------------- dying containers */

static bool seen(const struct bench *b, const char *container_id)
{
	const struct entity *entity = NULL;

	while ((entity = discovery_next_entity(b->discovery, entity)))
		if (strcmp(entity->id.container_id, container_id) == 0 && entity_alive(entity))
			return true;
	return false;
}

static void dying_make(struct bench *b, struct dying *d)
{
	char path[512];

	d->place = DIES + d->generation % (PLACES - DIES);
	cgroups_container_id(PLACES + d->generation, b->id[d->place]);
	container_path(b, (int)d->place, d->generation & 1, path, sizeof(path));
	cgroups_make(&b->cgroups, &d->cgroup, "%s", path);
	d->pid = fork();
	assert_true(d->pid >= 0);
	d->pids[d->generation % GENERATIONS] = d->pid;
	if (d->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		must(cgroups_try_enter(&b->cgroups, &d->cgroup, getpid()));
		for (;;)
			places[d->place].burn();
	}
}

/* The container was seen and has run; samples of its last moments are still in the kernel. */
static void dying_end(struct bench *b, struct dying *d)
{
	kill(d->pid, SIGKILL);
	assert_int_equal(waitpid(d->pid, NULL, 0), d->pid);
	cgroups_remove(&b->cgroups, &d->cgroup);
	d->pid = 0;
	d->generation++;
}

static bool has_run(pid_t pid)
{
	clockid_t clock;

	return !clock_getcpuclockid(pid, &clock) && nsec_read(clock) > 4 * BURN_NS;
}

static void on_tick(void *ctx)
{
	struct bench *b = ctx;
	struct dying *d = &b->dying;
	int status;
	pid_t pid = waitpid(-1, &status, WNOHANG);

	if (pid > 0)
		fail_msg("a burning process has ended: %x", status);
	if (!d->pid)
		dying_make(b, d);
	else if (has_run(d->pid) && seen(b, b->id[d->place]))
		dying_end(b, d);
}

/* ---------------------------------------------------------------- the test */

static bool enough(void *ctx)
{
	const struct bench *b = ctx;
	uint64_t all = 0, least = UINT64_MAX;

	for (int i = 0; i < PLACES; i++) {
		const uint64_t n = b->tally[i].right + b->tally[i].unknown + b->tally[i].wrong;

		all += n;
		if (n < least)
			least = n;
	}
	return all >= WANT_ALL && least >= WANT_EACH;
}

static bool turn_over(void *ctx)
{
	const struct bench *b = ctx;

	return nsec_monotonic() > b->turn_ns;
}

/* For as long as the long form wants, and until there is enough. */
static void run(struct bench *b)
{
	while (nsec_monotonic() < b->until_ns) {
		b->turn_ns = nsec_monotonic() + NSEC_PER_SEC;
		loop_until(b->on.loop, turn_over, b);
	}
	loop_until(b->on.loop, enough, b);
}

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	const char *seconds = getenv("PODPROF_TEST_SECONDS");

	assert_non_null(b);
	*state = b;
	if (sampling_open(&b->on))
		return -1;
	cgroups_open(&b->cgroups, &b->on.proc);
	for (int i = 0; i < PLACES; i++)
		if (i != MOVES_OUT && i != SERVICE && i != POD && i != POD_SLICE)
			cgroups_container_id((unsigned int)i, b->id[i]);
	b->until_ns = nsec_monotonic() + (seconds ? strtoull(seconds, NULL, 10) : 0) * NSEC_PER_SEC;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	if (b->dying.pid)
		b->children[b->n_children++] = b->dying.pid;
	for (size_t i = 0; i < b->n_children; i++)
		kill(b->children[i], SIGKILL);
	for (size_t i = 0; i < b->n_children; i++)
		waitpid(b->children[i], NULL, 0);
	discovery_free(b->discovery);
	sampling_close(&b->on);
	cgroups_close(&b->cgroups);
	free(b);
	return 0;
}

/* In the pod of this place's container. */
static void start_in_pod(struct bench *b, int place, int container, bool systemd)
{
	struct cgroup cgroup;
	char path[256];

	pod_path(container, systemd, path, sizeof(path));
	cgroups_make(&b->cgroups, &cgroup, "%s", path);
	snprintf(b->id[place], CGROUP_ID_MAX, UID "%02d", container);
	start(b, &cgroup, burn_and_nap, place);
}

static void start_all(struct bench *b)
{
	start_container(b, CGROUPFS, false, burn_and_nap);
	start_container(b, SYSTEMD, true, burn_and_nap);
	start_in_pod(b, POD, CGROUPFS, false);
	start_in_pod(b, POD_SLICE, SYSTEMD, true);
	start_container(b, SUBGROUPS, false, run_subgroups);
	start_container(b, NAMESPACES, true, run_namespaces);
	start_container(b, SHORT, false, run_short);
	start_container(b, MOVES_HERE, false, run_moves);
	start_node(b);
	start_others(b);
}

/* Nothing may be wrong; and all must be right but for one of a thousand. */
static void judge(const struct bench *b)
{
	uint64_t right = 0, unknown = 0, wrong = 0;

	for (int i = 0; i < PLACES; i++) {
		const struct tally *t = &b->tally[i];

		print_message("place %2d: %6llu right, %4llu unknown, %4llu wrong\n", i,
			      (unsigned long long)t->right, (unsigned long long)t->unknown,
			      (unsigned long long)t->wrong);
		wrong += t->wrong;
		right += t->right;
		unknown += t->unknown;
	}
	print_message("%llu right, %llu unknown, %llu wrong; %u containers died\n",
		      (unsigned long long)right, (unsigned long long)unknown,
		      (unsigned long long)wrong, b->dying.generation);
	assert_int_equal(wrong, 0);
	assert_true(right * 1000 >= (right + unknown) * 999);
}

static uint64_t counted(const struct bench *b, const char *outcome)
{
	return metrics_get(discovery_collect, b->discovery, "podprof_entity_lookups", outcome);
}

static void test_entities(void **state)
{
	struct bench *b = *state;
	struct discovery_opts opts = {
		.proc = &b->on.proc, .node_name = "", .grace_ns = LONG, .loop = b->on.loop};
	struct loop_source *timer;

	assert_int_equal(discovery_new(&opts, &b->discovery), 0);
	sampling_start(&b->on, (struct cpu_sampler_opts){
				       .rate_hz = RATE,
				       .v1 = discovery_v1_controller(b->discovery),
				       .unwind = SETTINGS_UNWIND_FP,
				       .interval_ns = INTERVAL_NS,
				       .fn = take,
				       .ctx = b,
			       });
	discovery_ask(b->discovery, cgroup_events_find,
		      oncpu_cgroup_events(cpu_sampler_oncpu(b->on.sampler)));
	start_all(b);
	assert_int_equal(loop_add_timer(b->on.loop, on_tick, b, &timer), 0);
	assert_int_equal(loop_arm(timer, 0, 20 * NSEC_PER_MSEC), 0);
	run(b);
	loop_remove(timer);
	cpu_sampler_finish(b->on.sampler);
	judge(b);
	/* unknown samples are counted */
	assert_int_equal(counted(b, "unknown_exited") + counted(b, "unknown_moved") +
				 counted(b, "unknown_unreadable") + counted(b, "unknown_limit"),
			 b->n_unknown);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_entities, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
