/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_ROOT_H
#define PODPROF_BASE_ROOT_H

#include <stddef.h>

struct buf;

/**
 * struct root - an open directory below which a module reads
 * @fd: the directory
 *
 * Every reader of /proc, /sys or a cgroup tree takes a root, so a test can pass a directory of its
 * own. Paths are relative ("123/maps"). Owns @fd.
 */
struct root {
	int fd;
};

enum root_outcome {
	ROOT_OK = 0,
	ROOT_GONE,   /* no such file, or its process has ended (ENOENT, ESRCH, ENOTDIR, ENODEV) */
	ROOT_DENIED, /* EACCES, EPERM */
	ROOT_TOO_LARGE, /* longer than the caller's ceiling; a path longer than the kernel's */
	ROOT_NOT_FILE,	/* a directory, FIFO, socket, device or loop of links instead of a file */
	ROOT_OUTCOME_MAX,
};

#define ROOT_INIT        \
	{                \
		.fd = -1 \
	}

/* 0, ROOT_GONE, ROOT_DENIED, or another -errno. */
int root_open(const char *path, struct root *ret);
/* The same directory, for a user that may outlive @root: a thread that a watchdog abandons. 0 or
 * -errno. */
int root_dup(const struct root *root, struct root *ret);
void root_deinit(struct root *root);

/*
 * Open a regular file (procfs and cgroupfs files are) for reading, with O_CLOEXEC | O_NONBLOCK |
 * O_NOCTTY: a FIFO in its place does not block. The caller owns the descriptor. This function and
 * those below return 0, a root_outcome or another -errno.
 */
int root_open_file(const struct root *root, const char *path, int *ret_fd);

/* root_open_file() for a @root of another file system (a container's, the host's). Links in @path
 * resolve as if @root were our root, and cannot leave it. Linux 5.6. */
int root_open_inside(const struct root *root, const char *path, int *ret_fd);
/* A directory there. */
int root_open_dir_inside(const struct root *root, const char *path, int *ret_fd);

/* Append a whole file to @b; the ceiling of @b is the limit. On failure @b keeps its old length. */
int root_read(const struct root *root, const char *path, struct buf *b);
/* The same for a file of procfs whose text the kernel makes as a whole, such as /proc/PID/stat: a
 * read of less than it could have is the last. */
int root_read_whole(const struct root *root, const char *path, struct buf *b);
/* As root_read(), from an open descriptor's current position. */
int root_read_fd(int fd, struct buf *b);

/* Append the target of a symbolic link. */
int root_read_link(const struct root *root, const char *path, struct buf *b);

/* Converts a positive errno to an outcome, or to -errno if the failure is ours. */
int root_outcome(int err);

/* The words for an outcome or -errno, for the end of a message. */
const char *root_why(int r);

#endif
