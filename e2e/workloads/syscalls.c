// SPDX-License-Identifier: Apache-2.0
/*
 * Spends nearly all its time in the kernel: it reads zeros. Static, for a container that holds
 * nothing but this file.
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
