/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CPU_FILTER_H
#define PODPROF_CPU_FILTER_H

/* From decisions about entities to cgroup sampling: BPF excludes an entity's samples or takes a
 * share. */

struct cgroup_sampling;
struct cpu_filter;
struct discovery;
struct entity;

/* The setting of an entity for its sampling rate: samples per second; 0: none. */
#define CPU_FILTER_SETTING "cpu_rate"

/* The sampling rate of an entity, per second and CPU, from 0 to the clocks' @rate_hz. 0: the entity
 * is excluded or has the setting 0. A setting other than a number gives @rate_hz. Exported for the
 * test of these rules. */
unsigned int cpu_filter_rate(const struct entity *entity, unsigned int rate_hz);

/* @discovery and @cgroup_sampling are borrowed. 0 or -ENOMEM. */
int cpu_filter_new(struct discovery *discovery, unsigned int rate_hz,
		   struct cgroup_sampling *cgroup_sampling, struct cpu_filter **ret);
/* Before the discovery, whose entity it may hold. NULL is fine. */
void cpu_filter_free(struct cpu_filter *filter);

enum cpu_filter_outcome {
	CPU_FILTER_DONE = 0,
	CPU_FILTER_MORE,
};

/* Write the rates of all entities to the map, after changes of these: the next step of an update,
 * or the first one of a new update. A step visits one entity or one directory. A change during the
 * update may be missing from it, and needs another one. CPU_FILTER_MORE; 0 at the end; -errno: the
 * update has ended, and is incomplete. */
int cpu_filter_step(struct cpu_filter *filter);

#endif
