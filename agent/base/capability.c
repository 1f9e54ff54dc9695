// SPDX-License-Identifier: Apache-2.0
#include "base/capability.h"

#include <sys/syscall.h>
#include <unistd.h>

bool capabilities_here(uint64_t *ret)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	*ret = (uint64_t)data[1].effective << 32 | data[0].effective;
	return true;
}
