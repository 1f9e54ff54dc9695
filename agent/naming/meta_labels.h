/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_NAMING_META_LABELS_H
#define PODPROF_NAMING_META_LABELS_H

/* The meta labels of an entity, for relabelling rules: the labels of Prometheus' pod discovery
 * (kubernetes_sd_configs, role pod), __meta_container_ and __meta_process_. */

struct entity;
struct labels;
struct names;

/* Adds the meta labels to @labels, made with {.max = LABELS_META_MAX}. Labels beyond the ceiling
 * are left out. 0 or -ENOMEM. */
int meta_labels_add(const struct names *names, const struct entity *entity, struct labels *labels);

#endif
