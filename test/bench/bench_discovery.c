// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of finding a sample's entity: walks over the cgroups of a small and of a large node
 * (real cgroups, in a directory of the bench in each tree of the node; run as root), a change seen
 * by inotify, a lookup in the table, and the parsing of a path.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/root.h"
#include "discovery/cgroupfs.h"
#include "discovery/discovery.h"
#include "support/figure.h"

#define CONTAINERS 3
#define WALKS	   20
#define LOOKUPS	   2000000u

static const unsigned int pods[] = {110, 500};

static void container_path(char path[256], unsigned int pod, int container)
{
	size_t n = (size_t)snprintf(path, 256, "podprof-bench/kubepods");

	if (container >= -1)
		n += (size_t)snprintf(path + n, 256 - n, "/pod2c48913c-b29f-11e7-9350-%012u", pod);
	if (container >= 0)
		snprintf(path + n, 256 - n, "/%064d", (int)pod * CONTAINERS + container);
}

/* Makes or removes the cgroups of @n pods. */
static int change(const struct root *tree, unsigned int n, bool make)
{
	char path[256];

	if (make && mkdirat(tree->fd, "podprof-bench", 0755))
		return -errno;
	container_path(path, 0, -2);
	if (make && mkdirat(tree->fd, path, 0755))
		return -errno;
	for (unsigned int pod = 0; pod < n; pod++)
		for (int i = make ? -1 : CONTAINERS - 1; make ? i < CONTAINERS : i >= -1;
		     i += make ? 1 : -1) {
			container_path(path, pod, i);
			if (make ? mkdirat(tree->fd, path, 0755)
				 : unlinkat(tree->fd, path, AT_REMOVEDIR))
				return -errno;
		}
	container_path(path, 0, -2);
	if (!make && (unlinkat(tree->fd, path, AT_REMOVEDIR) ||
		      unlinkat(tree->fd, "podprof-bench", AT_REMOVEDIR)))
		return -errno;
	return 0;
}

static int change_all(const struct hierarchy_set *trees, unsigned int n, bool make)
{
	int r = 0;

	for (enum hierarchy h = 0; h < HIERARCHY_MAX && !r; h++)
		if (trees->roots[h].fd >= 0)
			r = change(&trees->roots[h], n, make);
	return r;
}

static void bench_walks(const struct root *proc, unsigned int n)
{
	const struct cgroupfs_opts opts = {.proc = proc, .grace_ns = NSEC_PER_SEC};
	uint64_t start = nsec_monotonic(), first, again;
	struct cgroupdir *dir = NULL;
	struct cgroupfs *fs;
	unsigned int n_dirs = 0;

	if (cgroupfs_new(&opts, &fs) || cgroupfs_walk(fs, CGROUPFS_WALK_START))
		return;
	first = nsec_monotonic() - start;
	start = nsec_monotonic();
	for (int i = 0; i < WALKS; i++)
		(void)cgroupfs_walk(fs, CGROUPFS_WALK_TIMER);
	again = (nsec_monotonic() - start) / WALKS;
	while ((dir = cgroupfs_next(fs, dir)))
		n_dirs++;
	printf("%4u pods %6u directories   first walk %6.2f ms   walk %6.2f ms, %5.2f us each\n", n,
	       n_dirs, (double)first / 1e6, (double)again / 1e6, (double)again / 1e3 / n_dirs);
	figure((double)again / 1e6, "ms", "walk over %u pods", n);
	cgroupfs_free(fs);
}

static int nothing(void *ctx, const struct pid_id *pid, struct entity *entity)
{
	return 0;
}

static void bench_entities(const struct root *proc, const struct hierarchy_set *trees)
{
	const struct discovery_opts opts = {.proc = proc, .node_name = "n"};
	const struct pid_id pid = {.pid = 1, .start_ticks = 1};
	uint64_t id[HIERARCHY_MAX] = {0}, start;
	struct hierarchy_child child;
	struct discovery *d;
	double entity_ns;
	char path[256];

	container_path(path, 50, 1);
	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++)
		if (trees->roots[h].fd >= 0 && !hierarchy_stat(trees->roots[h].fd, path, &child))
			id[h] = child.id;
	if (discovery_new(&opts, &d))
		return;
	start = nsec_monotonic();
	for (unsigned int i = 0; i < LOOKUPS; i++)
		if (!discovery_entity(d, id[HIERARCHY_V2], id[HIERARCHY_V1], &pid, "x"))
			printf("no entity\n");
	entity_ns = (double)(nsec_monotonic() - start) / LOOKUPS;
	printf("entity of a sample, by id            %8.0f ns\n", entity_ns);
	figure(entity_ns, "ns", "entity of a sample");
	start = nsec_monotonic();
	(void)discovery_for_each_process(d, nothing, NULL);
	printf("processes of all containers         %8.2f ms (none in these)\n",
	       (double)(nsec_monotonic() - start) / 1e6);
	discovery_free(d);
}

static void bench_parse(void)
{
	static const char path[] =
		"/kubepods.slice/kubepods-burstable.slice/"
		"kubepods-burstable-pod2942c55e_c9cb_428a_93f4_eaf89c1f3ce0.slice/"
		"crio-49f9e8e5395d57c1083996c09e2e6f042d5fe1ec0310facab32f94912b35ce59.scope/"
		"container";
	uint64_t start = nsec_monotonic();
	struct cgroup_id id;
	unsigned int n = 0;

	for (unsigned int i = 0; i < LOOKUPS; i++) {
		cgroup_parse_path(strview_of(path), &id);
		n += id.kind == CGROUP_KIND_CONTAINER;
	}
	printf("parse a path of %zu characters      %8.0f ns\n", sizeof(path) - 1,
	       (double)(nsec_monotonic() - start) / n);
}

int main(void)
{
	_cleanup_(hierarchy_deinit) struct hierarchy_set trees = {.roots = {ROOT_INIT, ROOT_INIT}};
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	int r;

	if (root_open("/proc", &proc) || hierarchy_find(NULL, &proc, &trees)) {
		fprintf(stderr, "bench_discovery: no cgroups here\n");
		return 1;
	}
	for (size_t i = 0; i < array_size(pods); i++) {
		r = change_all(&trees, pods[i], true);
		if (!r) {
			bench_walks(&proc, pods[i]);
			if (i == array_size(pods) - 1)
				bench_entities(&proc, &trees);
			r = change_all(&trees, pods[i], false);
		}
		if (r) {
			fprintf(stderr, "bench_discovery: cannot make cgroups: %s\n", strerror(-r));
			return 1;
		}
	}
	bench_parse();
	return 0;
}
