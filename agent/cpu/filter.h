/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CPU_FILTER_H
#define PODPROF_CPU_FILTER_H

/* Whose samples the kernel's programs leave out, and whose they take in part: from what is decided
 * of entities to the table of shares. */

struct cgroup_sampling;
struct discovery;
struct entity;

/* The setting of an entity that says how many samples a second are wanted: a number; 0 for none. */
#define CPU_FILTER_SETTING "cpu_rate"

/* Samples a second and CPU that are to be taken of an entity, where @rate_hz is what the clocks
 * give: from 0, where it is left out or wants none, to @rate_hz, which is also what a wish that is
 * no number means. */
unsigned int cpu_filter_rate(const struct entity *entity, unsigned int rate_hz);

/* Tell the kernel's side of all entities, as they are now. Once a second. 0 or -errno: then it is
 * not told all. */
int cpu_filter_apply(struct discovery *discovery, unsigned int rate_hz,
		     struct cgroup_sampling *cgroup_sampling);

#endif
