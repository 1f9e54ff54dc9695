// SPDX-License-Identifier: Apache-2.0
/*
 * What has been read of a container that has just started. A list in the order of coming, which is
 * that of the ends of waiting; it is short, since only containers that are some seconds old are in
 * it.
 */
#include "lateprofiles.h"

#include <errno.h>
#include <stdlib.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "discovery/owner.h"

/* How often it is looked whether names have come. */
#define LATE_PROFILES_PERIOD_NS (250 * NSEC_PER_MSEC)

struct late_profile {
	struct late_profile *next;
	struct owner *owner;
	struct profile *profile;
	uint64_t deadline_ns; /* monotonic */
};

struct late_profiles {
	struct late_profiles_opts opts;
	struct late_profile *first;
	struct late_profile **last;
	struct loop_source *timer;
	uint64_t wait_ns;
	size_t n;
	size_t bytes;
};

static size_t profile_bytes(const struct profile *profile)
{
	return profile->pprof_len + profile->pprof_delta_len;
}

static struct late_profile *unlink_one(struct late_profiles *late, struct late_profile **at)
{
	struct late_profile *one = *at;

	*at = one->next;
	if (late->last == &one->next)
		late->last = at;
	late->n--;
	late->bytes -= profile_bytes(one->profile);
	return one;
}

/* 0 or -ENOMEM; takes the profile whatever happens. */
static int release(struct late_profiles *late, const struct owner *owner, struct profile *profile)
{
	if (owner->left_out) {
		profile_free(profile);
		return 0;
	}
	if (labels_copy(&owner->labels, &profile->labels)) {
		profile_free(profile);
		return -ENOMEM;
	}
	late->opts.out(late->opts.ctx, profile);
	return 0;
}

static void release_one(struct late_profiles *late, struct late_profile **at)
{
	struct late_profile *one = unlink_one(late, at);

	(void)release(late, one->owner, one->profile);
	owner_unref(one->owner);
	free(one);
}

static void on_timer(void *ctx)
{
	struct late_profiles *late = ctx;
	struct late_profile **at = &late->first;
	uint64_t now = nsec_monotonic();

	while (*at)
		if (!(*at)->owner->pending || now >= (*at)->deadline_ns)
			release_one(late, at);
		else
			at = &(*at)->next;
	if (!late->first)
		(void)loop_disarm(late->timer);
}

int late_profiles_new(const struct late_profiles_opts *opts, struct late_profiles **ret)
{
	struct late_profiles *late = calloc(1, sizeof(*late));
	int r;

	if (!late)
		return -ENOMEM;
	late->opts = *opts;
	late->last = &late->first;
	late->wait_ns = OWNER_PENDING_NS;
	r = loop_add_timer(opts->loop, on_timer, late, &late->timer);
	if (r)
		late_profiles_free(late);
	else
		*ret = late;
	return r;
}

void late_profiles_free(struct late_profiles *late)
{
	if (!late)
		return;
	loop_remove(late->timer);
	while (late->first) {
		struct late_profile *one = unlink_one(late, &late->first);

		profile_free(one->profile);
		owner_unref(one->owner);
		free(one);
	}
	free(late);
}

int late_profiles_add(struct late_profiles *late, struct owner *owner, struct profile *profile)
{
	struct late_profile *one;
	int r;

	if (!owner->pending)
		return release(late, owner, profile);
	one = calloc(1, sizeof(*one));
	r = one ? loop_arm(late->timer, LATE_PROFILES_PERIOD_NS, LATE_PROFILES_PERIOD_NS) : -ENOMEM;
	if (r) {
		free(one);
		profile_free(profile);
		return r;
	}
	*one = (struct late_profile){
		.owner = owner_ref(owner),
		.profile = profile,
		.deadline_ns = nsec_monotonic() + late->wait_ns,
	};
	*late->last = one;
	late->last = &one->next;
	late->n++;
	late->bytes += profile_bytes(profile);
	while (late->bytes > LATE_PROFILES_BYTES_MAX)
		release_one(late, &late->first);
	return 0;
}

void late_profiles_hurry(struct late_profiles *late, uint64_t wait_ns)
{
	uint64_t end_ns = nsec_monotonic() + wait_ns;

	late->wait_ns = wait_ns;
	for (struct late_profile *one = late->first; one; one = one->next)
		if (one->deadline_ns > end_ns)
			one->deadline_ns = end_ns;
}

size_t late_profiles_pending(const struct late_profiles *late)
{
	return late->n;
}
