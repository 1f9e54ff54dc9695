// SPDX-License-Identifier: Apache-2.0
/*
 * Reads zeros, so nearly all time passes in the kernel. Static, for a container with this file
 * only.
 */
#include <fcntl.h>
#include <unistd.h>

static char buffer[1 << 16];

int main(void)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 1;
	while (read(fd, buffer, sizeof(buffer)) > 0)
		;
	return 1;
}
