/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_KIND_H
#define PODPROF_GOHEAP_KIND_H

/* The profiles that Go's runtime keeps of itself, and that are read. */

enum go_profile_kind {
	GO_PROFILE_HEAP,
	GO_PROFILE_MUTEX, /* who has kept a mutex that others waited for */
	GO_PROFILE_BLOCK, /* who has waited, and where */
	GO_PROFILE_GOROUTINE,
	GO_PROFILE_KIND_MAX,
};

const char *go_profile_kind_name(enum go_profile_kind kind);
/* GO_PROFILE_KIND_MAX if there is none of that name. */
enum go_profile_kind go_profile_kind_parse(const char *name);

#endif
