/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_NAMING_META_LABELS_H
#define PODPROF_NAMING_META_LABELS_H

/* What is known of an entity, as labels that relabelling rules can read: those of Prometheus'
 * discovery of pods (kubernetes_sd_configs, role pod), and __meta_container_ and
 * __meta_process_. */

struct entity;
struct labels;
struct names;

/* Adds them to @labels, which has to have room: {.max = LABELS_META_MAX}. What is beyond is left
 * out. 0 or -ENOMEM. */
int meta_labels_add(const struct names *names, const struct entity *entity, struct labels *labels);

#endif
