/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_FUSEWIRE_H
#define PODPROF_TEST_SUPPORT_FUSEWIRE_H

/* The kernel's FUSE protocol, as far as the file servers of tests share it. Without a library: one
 * of the servers is a static program in a container. */

#include <fcntl.h>
#include <linux/fuse.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/uio.h>
#include <unistd.h>

#define FUSEWIRE_REQUEST_BYTES (256 << 10)

struct fusewire_request {
	struct fuse_in_header header;
	char body[FUSEWIRE_REQUEST_BYTES];
};

/* Mounts @path, named @name in the list of mounts. The descriptor of the server, or -1 with errno.
 */
static inline int fusewire_mount(const char *name, const char *path)
{
	char options[96];
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fuse < 0)
		return -1;
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 fuse);
	if (mount(name, path, "fuse", MS_NODEV | MS_NOSUID, options) == 0)
		return fuse;
	close(fuse);
	return -1;
}

static inline void fusewire_reply(int fuse, uint64_t unique, int error, const void *body, size_t n)
{
	struct fuse_out_header header = {
		.len = (uint32_t)(sizeof(header) + n), .error = -error, .unique = unique};
	struct iovec parts[] = {{&header, sizeof(header)}, {(void *)body, n}};

	/* fails for a request whose caller was killed */
	(void)!writev(fuse, parts, n ? 2 : 1);
}

/* The answer to FUSE_INIT. */
static inline void fusewire_init(int fuse, const struct fusewire_request *r)
{
	const struct fuse_init_in *in = (const void *)r->body;
	struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = in->max_readahead,
		.max_write = 128 << 10,
		.max_background = 16,
		.congestion_threshold = 12,
	};

	fusewire_reply(fuse, r->header.unique, 0, &out, sizeof(out));
}

#endif
