// SPDX-License-Identifier: Apache-2.0
/*
 * The setting gives the permissions on this node, the annotation the wish of a pod. A pod can
 * always ask for less. A pod can have sampling turned on if the setting allows the choice. A pod
 * cannot make podprof write to a process if the setting forbids writes.
 */
#include "goprofile/policy.h"

#include <string.h>

#include "discovery/entity.h"

enum go_profile_wish go_profile_wish_parse(const char *annotation)
{
	static const char *const words[GO_PROFILE_WISH_MAX] = {
		[GO_PROFILE_WISH_DISABLED] = "disabled",
		[GO_PROFILE_WISH_ENABLED] = "enabled",
		[GO_PROFILE_WISH_FORCE] = "force",
	};

	for (int i = 0; annotation && i < GO_PROFILE_WISH_MAX; i++)
		if (words[i] && strcmp(annotation, words[i]) == 0)
			return (enum go_profile_wish)i;
	return GO_PROFILE_WISH_NONE;
}

struct go_profile_want go_profile_policy(enum go_profile_mode mode, enum go_profile_wish wish)
{
	bool read = mode != GO_PROFILE_MODE_DISABLED && wish != GO_PROFILE_WISH_DISABLED;
	bool force =
		mode == GO_PROFILE_MODE_FORCE
			? wish == GO_PROFILE_WISH_NONE || wish == GO_PROFILE_WISH_FORCE
			: mode == GO_PROFILE_MODE_FORCE_ANNOTATED && wish == GO_PROFILE_WISH_FORCE;

	return (struct go_profile_want){.read = read, .force = read && force};
}

struct go_profile_want go_profile_policy_of(enum go_profile_mode mode, go_profile_wish_fn wish,
					    void *ctx, const struct entity *entity)
{
	if (entity->left_out)
		return (struct go_profile_want){.read = false};
	return go_profile_policy(mode, wish ? wish(ctx, entity) : GO_PROFILE_WISH_NONE);
}
