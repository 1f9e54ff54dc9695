// SPDX-License-Identifier: Apache-2.0
#include "base/root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/buf.h"
#include "base/cleanup.h"

/* Bytes of one read. procfs and cgroupfs produce their text in pages. Reading single pages would
 * cost a system call for each page of a process with thousands of mappings. */
#define ROOT_READ_STEP 16384

int root_outcome(int err)
{
	switch (err) {
	case ENOENT:
	case ESRCH:
	case ENOTDIR:
	case ENODEV: /* a cgroup file whose directory was removed after the open */
		return ROOT_GONE;
	case EACCES:
	case EPERM:
		return ROOT_DENIED;
	case ENAMETOOLONG: /* a name the target made */
		return ROOT_TOO_LARGE;
	case EISDIR:
	case ENXIO: /* a socket */
	case ELOOP: /* symbolic links without an end */
		return ROOT_NOT_FILE;
	default:
		return -err;
	}
}

const char *root_why(int r)
{
	static const char *const words[ROOT_OUTCOME_MAX] = {
		[ROOT_OK] = "ok",
		[ROOT_GONE] = "no such file or directory",
		[ROOT_DENIED] = "permission denied",
		[ROOT_TOO_LARGE] = "too large",
		[ROOT_NOT_FILE] = "not a file",
	};

	if (r < 0)
		return strerror(-r);
	return r < ROOT_OUTCOME_MAX ? words[r] : "unknown";
}

int root_open(const char *path, struct root *ret)
{
	int fd = open(path, O_DIRECTORY | O_CLOEXEC | O_RDONLY);

	if (fd < 0)
		return root_outcome(errno);
	ret->fd = fd;
	return 0;
}

int root_dup(const struct root *root, struct root *ret)
{
	int fd = fcntl(root->fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	ret->fd = fd;
	return 0;
}

void root_deinit(struct root *root)
{
	if (root->fd >= 0)
		close(root->fd);
	root->fd = -1;
}

#define ROOT_FILE_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

/* @opened: the result of an open, with its errno. */
static int root_take_file(int opened, int *ret_fd)
{
	_cleanup_(close_fdp) int fd = opened;
	struct stat st;

	if (fd < 0)
		return root_outcome(errno);
	if (fstat(fd, &st) < 0)
		return root_outcome(errno);
	if (!S_ISREG(st.st_mode))
		return ROOT_NOT_FILE;
	*ret_fd = take_fd(fd);
	return 0;
}

int root_open_file(const struct root *root, const char *path, int *ret_fd)
{
	return root_take_file(openat(root->fd, path, ROOT_FILE_FLAGS), ret_fd);
}

/* The descriptor, or -1 and errno. */
static int open_inside(const struct root *root, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)flags,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};

	return (int)syscall(SYS_openat2, root->fd, path, &how, sizeof(how));
}

/* Opening a FIFO or a device has effects, so the file is found first and opened when it is known to
 * be regular. */
int root_open_inside(const struct root *root, const char *path, int *ret_fd)
{
	_cleanup_(close_fdp) int found = open_inside(root, path, O_PATH | O_CLOEXEC);
	struct stat st;
	char name[40];

	if (found < 0 || fstat(found, &st) < 0)
		return root_outcome(errno);
	if (!S_ISREG(st.st_mode))
		return ROOT_NOT_FILE;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", found);
	return root_take_file(open(name, ROOT_FILE_FLAGS), ret_fd);
}

int root_open_dir_inside(const struct root *root, const char *path, int *ret_fd)
{
	int fd = open_inside(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return root_outcome(errno);
	*ret_fd = fd;
	return 0;
}

/* One read into @b. *@ret is the number of bytes, 0 at the end of the file. */
static int root_read_step(int fd, struct buf *b, size_t *ret)
{
	/* Near the ceiling, one byte more distinguishes "exactly full" from "too large". */
	size_t room = b->max - b->len, step = room < ROOT_READ_STEP ? room : ROOT_READ_STEP;
	char probe, *to = &probe;
	ssize_t n;
	int r;

	if (step) {
		r = buf_reserve(b, step, &to);
		if (r)
			return r;
	}
	do
		n = read(fd, to, step ? step : 1);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return root_outcome(errno);
	if (n > 0 && !step)
		return ROOT_TOO_LARGE;
	b->len += (size_t)n;
	*ret = (size_t)n;
	return 0;
}

/* @short_ends: a read of less than it could have is the last. */
static int read_all(int fd, bool short_ends, struct buf *b)
{
	size_t old_len = b->len, n = 1;
	bool ended = false;
	int r = 0;

	while (!r && !ended) {
		const size_t room = b->max - b->len;

		r = root_read_step(fd, b, &n);
		ended = !n || (short_ends && n < room && n < ROOT_READ_STEP);
	}
	if (r)
		b->len = old_len;
	if (b->data)
		b->data[b->len] = '\0';
	return r;
}

int root_read_fd(int fd, struct buf *b)
{
	return read_all(fd, false, b);
}

int root_read_whole(const struct root *root, const char *path, struct buf *b)
{
	_cleanup_(close_fdp) int fd = -1;
	int r = root_open_file(root, path, &fd);

	return r ? r : read_all(fd, true, b);
}

int root_read(const struct root *root, const char *path, struct buf *b)
{
	_cleanup_(close_fdp) int fd = -1;
	int r = root_open_file(root, path, &fd);

	if (r)
		return r;
	return root_read_fd(fd, b);
}

int root_read_link(const struct root *root, const char *path, struct buf *b)
{
	char *to;
	ssize_t n;
	int r = buf_reserve(b, PATH_MAX, &to);

	if (r < 0)
		return r;
	if (r > 0)
		return ROOT_TOO_LARGE;
	n = readlinkat(root->fd, path, to, PATH_MAX);
	if (n < 0)
		return root_outcome(errno);
	if (n == PATH_MAX)
		return ROOT_TOO_LARGE;
	b->len += (size_t)n;
	b->data[b->len] = '\0';
	return 0;
}
