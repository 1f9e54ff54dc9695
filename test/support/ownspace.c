// SPDX-License-Identifier: Apache-2.0
#include "support/ownspace.h"
#include "support/test.h"

#include <unistd.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "discovery/pid.h"
#include "procmap/address_space.h"

struct address_space *ownspace(struct address_space_cache *spaces, uint64_t owner)
{
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	struct address_space_who who = {.exec_id = ADDRESS_SPACE_EXEC_ANY - owner, .owner = owner};
	struct address_space *space;
	size_t n;

	assert_int_equal(root_open("/proc", &proc), 0);
	assert_int_equal(pid_read(&proc, getpid(), &who.pid), 0);
	assert_int_equal(address_space_cache_get(spaces, &who, &space), 0);
	assert_non_null(address_space_mappings(space, &n));
	assert_true(n > 0);
	assert_int_equal(address_space_owner(space), owner);
	return space;
}
