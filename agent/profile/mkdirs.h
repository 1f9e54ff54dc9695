/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_MKDIRS_H
#define PODPROF_PROFILE_MKDIRS_H

/* What cgroup directories were called that may have gone by now (bpf/shared/mkdir.h). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "discovery/hierarchy.h"
#include "shared/mkdir.h"

struct bpfobj_mkdirs;
struct metric_sink;
struct mkdirs;

/* @bpf: copied; its descriptors are borrowed. 0 or -errno: the kernel does not tell. */
int mkdirs_new(const struct bpfobj_mkdirs *bpf, struct mkdirs **ret);
void mkdirs_free(struct mkdirs *m);

/* A discovery_made_fn: the path of a directory that is among the last MKDIR_ENTRIES that were made.
 * Looks at all of them: for ids that nobody else knows. @mkdirs may be NULL: none is known. */
bool mkdirs_find(void *mkdirs, enum hierarchy hierarchy, uint64_t id, char *ret, size_t size);

/* A metric_collect_fn: podprof_cgroup_mkdirs. */
void mkdirs_collect(void *mkdirs, struct metric_sink *sink);

#endif
