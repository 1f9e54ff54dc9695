// SPDX-License-Identifier: Apache-2.0
#include "export/profile.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

const struct profile_limits profile_limits_max = {PROFILE_SAMPLES_MAX, PROFILE_BYTES_MAX};

static size_t within(size_t value, size_t all)
{
	return value && value < all ? value : all;
}

struct profile_limits profile_limits_within(struct profile_limits value, struct profile_limits all)
{
	return (struct profile_limits){
		.samples = within(value.samples, all.samples),
		.bytes = within(value.bytes, all.bytes),
	};
}

void profile_free(struct profile *profile)
{
	if (!profile)
		return;
	labels_deinit(&profile->labels);
	free(profile->pprof);
	free(profile->pprof_delta);
	free(profile);
}

/* A copy, not realloc(): the rest behind each of many profiles would be of no use for a buffer. */
static void fit(char **bytes, size_t n)
{
	char *copy;

	if (!*bytes || malloc_usable_size(*bytes) - n <= n / 8)
		return;
	copy = malloc(n ? n : 1);
	if (!copy)
		return;
	memcpy(copy, *bytes, n);
	free(*bytes);
	*bytes = copy;
}

void profile_fit(struct profile *profile)
{
	fit(&profile->pprof, profile->pprof_len);
	fit(&profile->pprof_delta, profile->pprof_delta_len);
}

const char *profile_kind_name(enum profile_kind kind)
{
	static const char *const names[PROFILE_KIND_MAX] = {
		[PROFILE_CPU] = "cpu",		 [PROFILE_OFF_CPU] = "offcpu",
		[PROFILE_GO_HEAP] = "go_heap",	 [PROFILE_GO_MUTEX] = "go_mutex",
		[PROFILE_GO_BLOCK] = "go_block",
	};

	return names[kind];
}

bool profile_kind_is_cumulative(enum profile_kind kind)
{
	return kind == PROFILE_GO_HEAP || kind == PROFILE_GO_MUTEX || kind == PROFILE_GO_BLOCK;
}
