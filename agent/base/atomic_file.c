// SPDX-License-Identifier: Apache-2.0
/* Written to a hidden name in the same directory, then renamed. */
#include "base/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define HIDDEN_PREFIX ".new-"

int atomic_file_write_all(int fd, const void *data, size_t n)
{
	const char *at = data;

	while (n) {
		ssize_t done = write(fd, at, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		at += done;
		n -= (size_t)done;
	}
	return 0;
}

int atomic_file_write(int dir_fd, const char *name, mode_t mode, const void *data, size_t n)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	char hidden[NAME_MAX + 1];
	int fd, r;

	if ((size_t)snprintf(hidden, sizeof(hidden), HIDDEN_PREFIX "%s", name) >= sizeof(hidden))
		return -ENAMETOOLONG;
	fd = openat(dir_fd, hidden, flags, mode);
	if (fd < 0 && errno == EEXIST && !unlinkat(dir_fd, hidden, 0)) /* of an interrupted write */
		fd = openat(dir_fd, hidden, flags, mode);
	if (fd < 0)
		return -errno;
	r = atomic_file_write_all(fd, data, n);
	/* network file systems report a full disk only here */
	if (close(fd) && !r)
		r = -errno;
	if (!r && renameat(dir_fd, hidden, dir_fd, name))
		r = -errno;
	if (r)
		(void)unlinkat(dir_fd, hidden, 0);
	return r;
}

bool atomic_file_unfinished(const char *name)
{
	return strncmp(name, HIDDEN_PREFIX, strlen(HIDDEN_PREFIX)) == 0;
}

int atomic_file_make_dir(const char *path, mode_t mode)
{
	_cleanup_(freep) char *copy = strdup(path);

	if (!copy)
		return -ENOMEM;
	for (char *slash = *copy ? strchr(copy + 1, '/') : NULL; slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(copy, 0755) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return mkdir(copy, mode) && errno != EEXIST ? -errno : 0;
}
