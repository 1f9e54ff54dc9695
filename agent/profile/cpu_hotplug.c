// SPDX-License-Identifier: Apache-2.0
/*
 * The kernel multicasts an uevent for each change of a device, to sockets of all network namespaces
 * of the first user namespace. A message begins with the action and the device's path, as in
 * "online@/devices/system/cpu/cpu3". A filter keeps the other messages away: a new container brings
 * some dozens.
 */
#include "profile/cpu_hotplug.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

/* The multicast group of the kernel's messages; the other is udev's. */
#define UEVENTS_OF_KERNEL 1

/* The first four bytes of a message. */
#define STARTS(a, b, c, d) \
	((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

/* Besides CPUs only blocks of memory go online and offline. */
static int keep_online_and_offline(int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, STARTS('o', 'n', 'l', 'i'), 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, STARTS('o', 'f', 'f', 'l'), 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog filter = {.len = array_size(code), .filter = code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) < 0 ? -errno
											 : 0;
}

int cpu_hotplug_open(void)
{
	const struct sockaddr_nl address = {.nl_family = AF_NETLINK,
					    .nl_groups = UEVENTS_OF_KERNEL};
	_cleanup_(close_fdp) int fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
	int r;

	if (fd < 0)
		return -errno;
	r = keep_online_and_offline(fd);
	if (r)
		return r;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return take_fd(fd);
}

bool cpu_hotplug_read(int fd)
{
	bool changed = false;
	char byte;

	/* the filter has read the rest; ENOBUFS: there were more messages than room */
	while (read(fd, &byte, sizeof(byte)) >= 0 || errno == ENOBUFS)
		changed = true;
	return changed;
}
