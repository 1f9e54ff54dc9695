/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CPU_FILTER_H
#define PODPROF_CPU_FILTER_H

/* From decisions about entities to cgroup sampling: BPF excludes an entity's samples or takes a
 * share. */

struct cgroup_sampling;
struct discovery;
struct entity;

/* The setting of an entity for its sampling rate: samples per second; 0: none. */
#define CPU_FILTER_SETTING "cpu_rate"

/* The sampling rate of an entity, per second and CPU, from 0 to the clocks' @rate_hz. 0: the entity
 * is excluded or has the setting 0. A setting other than a number gives @rate_hz. Exported for the
 * test of these rules. */
unsigned int cpu_filter_rate(const struct entity *entity, unsigned int rate_hz);

/* Write the present rates of all entities to the map, after changes of these. 0, or -errno after an
 * incomplete update. */
int cpu_filter_apply(struct discovery *discovery, unsigned int rate_hz,
		     struct cgroup_sampling *cgroup_sampling);

#endif
