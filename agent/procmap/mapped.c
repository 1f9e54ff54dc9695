// SPDX-License-Identifier: Apache-2.0
/*
 * The path in /proc/PID/maps is relative to the process: to its root and its mounts. The file there
 * may since have been replaced. Three ways lead to the file, in this order:
 *
 *	/proc/PID/map_files/START-LIMIT   the mapped file itself: deleted, upgraded, of another
 *	                                  mount namespace or root. Requires CAP_CHECKPOINT_RESTORE
 *	                                  (Linux 5.9) or CAP_SYS_ADMIN.
 *	/proc/PID/exe                     as good, but only for the program.
 *	/proc/PID/root + path             by name, for files that are not deleted. The process
 *	                                  controls this path, so openat2() resolves links as the
 *	                                  process would (RESOLVE_IN_ROOT, Linux 5.6) and follows
 *	                                  no magic links.
 *
 * Opening a device or a FIFO can have effects. So an O_PATH descriptor comes first, and only a
 * regular file is opened, through the agent's own /proc/self/fd, a path without other targets.
 *
 * The process may have another file at the path by now, or a name that maps shows otherwise: maps
 * escapes a newline, and not the four characters of the escape. The file becomes an image that is
 * named by the mapping's device and inode, also for other processes. So a file found by path is
 * accepted only if the numbers agree with fstat(), or with the kernel's view of a mapping of the
 * agent's own: fstat() shows other numbers on overlayfs and btrfs. For an ended process the first
 * two ways are closed.
 */
#include "procmap/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "base/strview.h"
#include "discovery/pid.h"
#include "procmap/maps.h"

/* Bytes of the links /proc/PID/exe and /proc/self. Reached: a longer link is not accepted as the
 * mapping's file. */
#define MAPPED_LINK_MAX 8192

static int outcome_of_errno(int err)
{
	int r = root_outcome(err);

	switch (r) {
	case ROOT_GONE:
		return MAPPED_GONE;
	case ROOT_DENIED:
		return MAPPED_DENIED;
	default:
		break;
	}
	/* A limit of the agent's own is its failure; all other errors (loops of links, a broken
	 * disk, names that are too long) are the file's. */
	if (err == EMFILE || err == ENFILE || err == ENOMEM)
		return -err;
	return MAPPED_GONE;
}

/* Whether @link is how @entry's path is shown. */
static bool same_path(const struct buf *link, const struct maps_entry *entry)
{
	static const char mark[] = " (deleted)";
	size_t n = strlen(entry->path), n_mark = entry->deleted ? strlen(mark) : 0;

	return link->len == n + n_mark && memcmp(link->data, entry->path, n) == 0 &&
	       memcmp(link->data + n, mark, n_mark) == 0;
}

/* Opens the link @name if it still leads to @entry's file. The process may have executed another
 * program at the same address. Both names are the kernel's, but maps escapes a newline: such paths
 * use the other ways. */
static int find_link(const struct root *proc, const char *name, const struct maps_entry *entry,
		     int *ret)
{
	_cleanup_(buf_deinit) struct buf link = BUF_INIT(MAPPED_LINK_MAX);
	_cleanup_(close_fdp) int fd = openat(proc->fd, name, O_PATH | O_CLOEXEC);
	static const struct root cwd = {.fd = AT_FDCWD};
	char own[40];
	int r;

	if (fd < 0)
		return outcome_of_errno(errno);
	snprintf(own, sizeof(own), "/proc/self/fd/%d", fd);
	r = root_read_link(&cwd, own, &link);
	if (r < 0)
		return r;
	if (r > 0 || !same_path(&link, entry))
		return MAPPED_GONE;
	*ret = take_fd(fd);
	return 0;
}

static int find_path(const struct root *proc, uint64_t pid, const struct maps_entry *entry,
		     int *ret)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	_cleanup_(root_deinit) struct root root = ROOT_INIT;
	int fd, r;

	if (entry->deleted || entry->path[0] != '/')
		return MAPPED_GONE;
	r = pid_open_root(proc, pid, &root);
	if (r)
		return outcome_of_errno(-r);
	fd = (int)syscall(SYS_openat2, root.fd, entry->path, &how, sizeof(how));
	if (fd < 0)
		return outcome_of_errno(errno);
	*ret = fd;
	return 0;
}

/* The kernel's view of the agent's own mapping at @at. */
static bool find_own(const struct root *proc, const void *at, struct maps_entry *ret)
{
	_cleanup_(buf_deinit) struct buf link = BUF_INIT(MAPPED_LINK_MAX);
	_cleanup_(maps_deinit) struct maps maps = {0};
	const struct maps_entry *e;
	struct pid_id self;
	uint64_t pid;

	if (root_read_link(proc, "self", &link) ||
	    !strview_only_u64(strview_of_bytes(link.data, link.len), 10, &pid) ||
	    pid_read(proc, (pid_t)pid, &self) || maps_read(proc, &self, &maps))
		return false;
	e = maps_find(&maps, (uint64_t)(uintptr_t)at);
	if (e)
		*ret = *e;
	return e;
}

/* Whether the kernel shows a mapping of @fd with the numbers of @entry. The mapped bytes are not
 * read. */
static bool is_shown_as(const struct root *proc, int fd, const struct maps_entry *entry)
{
	long page = sysconf(_SC_PAGESIZE);
	struct maps_entry own = {0};
	void *at = mmap(NULL, (size_t)page, PROT_READ, MAP_PRIVATE, fd, 0);
	bool is;

	if (at == MAP_FAILED)
		return false;
	is = find_own(proc, at, &own) && own.device == entry->device && own.inode == entry->inode;
	munmap(at, (size_t)page);
	return is;
}

/* On overlayfs and btrfs fstat() says other numbers than the kernel shows of a mapping. */
static bool is_file_of(const struct root *proc, int path_fd, const struct stat *st,
		       const struct maps_entry *entry)
{
	_cleanup_(close_fdp) int fd = -1;

	if (st->st_dev == entry->device && st->st_ino == entry->inode)
		return true;
	return mapped_open(path_fd, &fd) == 0 && is_shown_as(proc, fd, entry);
}

static int check_regular(int fd, struct stat *ret)
{
	if (fstat(fd, ret) < 0)
		return outcome_of_errno(errno);
	return S_ISREG(ret->st_mode) ? 0 : MAPPED_NOT_FILE;
}

int mapped_find_below(const struct root *proc, uint64_t pid, const struct maps_entry *entry,
		      int *ret_fd)
{
	_cleanup_(close_fdp) int fd = -1;
	struct stat st;
	int r = find_path(proc, pid, entry, &fd);

	if (!r)
		r = check_regular(fd, &st);
	if (r)
		return r;
	if (!is_file_of(proc, fd, &st, entry))
		return MAPPED_GONE;
	*ret_fd = take_fd(fd);
	return 0;
}

int mapped_find(const struct root *proc, uint64_t pid, const struct maps_entry *entry, int *ret_fd)
{
	_cleanup_(close_fdp) int fd = -1;
	struct stat st;
	char name[96];
	int r, first;

	snprintf(name, sizeof(name), "%" PRIu64 "/map_files/%" PRIx64 "-%" PRIx64, pid,
		 entry->start, entry->limit);
	r = first = find_link(proc, name, entry, &fd);
	if (r > 0) {
		snprintf(name, sizeof(name), "%" PRIu64 "/exe", pid);
		r = find_link(proc, name, entry, &fd);
	}
	if (r > 0) {
		r = mapped_find_below(proc, pid, entry, ret_fd);
		return r == MAPPED_GONE && first == MAPPED_DENIED ? first : r;
	}
	if (!r)
		r = check_regular(fd, &st);
	if (!r)
		*ret_fd = take_fd(fd);
	return r;
}

int mapped_open(int path_fd, int *ret_fd)
{
	char name[40];
	int fd;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", path_fd);
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return outcome_of_errno(errno);
	*ret_fd = fd;
	return 0;
}
