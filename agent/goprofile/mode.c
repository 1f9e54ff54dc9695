// SPDX-License-Identifier: Apache-2.0
/*
 * The setting says what podprof may do on this node, the annotation what a pod wants of that. So a
 * pod can always ask for less; it can have sampling turned on where the setting leaves that to it;
 * and it cannot make podprof write to a process where the setting says that none is written to.
 */
#include "goprofile/mode.h"

#include <string.h>

#include "discovery/owner.h"

enum heap_wish heap_wish_parse(const char *annotation)
{
	static const char *const words[HEAP_WISH_MAX] = {
		[HEAP_WISH_DISABLED] = "disabled",
		[HEAP_WISH_ENABLED] = "enabled",
		[HEAP_WISH_FORCE] = "force",
	};

	for (int i = 0; annotation && i < HEAP_WISH_MAX; i++)
		if (words[i] && strcmp(annotation, words[i]) == 0)
			return (enum heap_wish)i;
	return HEAP_WISH_NONE;
}

struct heap_want heap_mode_want(enum heap_mode mode, enum heap_wish wish)
{
	bool read = mode != HEAP_MODE_DISABLED && wish != HEAP_WISH_DISABLED;
	bool force = mode == HEAP_MODE_FORCE
			     ? wish == HEAP_WISH_NONE || wish == HEAP_WISH_FORCE
			     : mode == HEAP_MODE_FORCE_ANNOTATED && wish == HEAP_WISH_FORCE;

	return (struct heap_want){.read = read, .force = read && force};
}

struct heap_want heap_mode_want_of(enum heap_mode mode, heap_wish_fn wish, void *ctx,
				   const struct owner *owner)
{
	if (owner->left_out)
		return (struct heap_want){.read = false};
	return heap_mode_want(mode, wish ? wish(ctx, owner) : HEAP_WISH_NONE);
}
