/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_KIND_H
#define PODPROF_GOHEAP_KIND_H

/* The profiles of Go's runtime that podprof reads. */

enum go_profile_kind {
	GO_PROFILE_HEAP,
	GO_PROFILE_MUTEX, /* holders of a mutex while others wait */
	GO_PROFILE_BLOCK, /* waiting stacks */
	GO_PROFILE_GOROUTINE,
	GO_PROFILE_KIND_MAX,
};

const char *go_profile_kind_name(enum go_profile_kind kind);
/* GO_PROFILE_KIND_MAX for an unknown name. */
enum go_profile_kind go_profile_kind_parse(const char *name);

#endif
