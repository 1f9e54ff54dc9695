// SPDX-License-Identifier: Apache-2.0
/*
 * The kernel lists all locks in /proc/locks:
 *
 *	3: FLOCK  ADVISORY  WRITE 4711 fd:01:12345 0 EOF
 *	3: -> FLOCK  ADVISORY  WRITE 4712 fd:01:12345 0 EOF
 *
 * An arrow marks a process that waits for the lock. The device and inode are the file system's own
 * numbers. fstat() has other ones on some file systems (btrfs): the holder is unknown there. Locks
 * of processes outside of /proc's pid namespace are not listed.
 */
#include "export/lockdir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/cleanup.h"
#include "base/line_reader.h"

/* Of line_reader_read(): the line was found, or there are too many. */
enum { LINE_FOUND = 1, LINES_FULL };

struct search {
	dev_t dev;
	ino_t ino;
	size_t n_lines;
	pid_t pid;
};

/* "fd:01:12345": two hexadecimal numbers and a decimal one. */
static bool is_file(struct strview word, dev_t dev, ino_t ino)
{
	uint64_t major_number, minor_number, number;

	return strview_u64(&word, 16, &major_number) && strview_char(&word, ':') &&
	       strview_u64(&word, 16, &minor_number) && strview_char(&word, ':') &&
	       strview_only_u64(word, 10, &number) && major_number == major(dev) &&
	       minor_number == minor(dev) && number == ino;
}

bool lockdir_line(struct strview line, dev_t dev, ino_t ino, pid_t *ret_pid)
{
	struct strview number, kind, how, what, pid_word, file;
	uint64_t pid;

	if (!strview_word(&line, &number) || !strview_word(&line, &kind) ||
	    !strview_is(&kind, "FLOCK") || !strview_word(&line, &how) ||
	    !strview_word(&line, &what) || !strview_word(&line, &pid_word) ||
	    !strview_word(&line, &file) || !is_file(file, dev, ino) ||
	    !strview_only_u64(pid_word, 10, &pid) || pid > INT32_MAX)
		return false;
	*ret_pid = (pid_t)pid;
	return true;
}

static int on_line(void *ctx, struct strview line)
{
	struct search *search = ctx;

	if (search->n_lines++ == LOCKDIR_LINES_MAX)
		return LINES_FULL;
	return lockdir_line(line, search->dev, search->ino, &search->pid) ? LINE_FOUND : 0;
}

static pid_t holder_of(int dir_fd)
{
	_cleanup_(close_fdp) int fd = -1;
	struct search search = {0};
	size_t n_skipped;
	struct stat st;

	fd = open("/proc/locks", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(dir_fd, &st))
		return 0;
	search.dev = st.st_dev;
	search.ino = st.st_ino;
	(void)line_reader_read(fd, on_line, &search, &n_skipped);
	return search.pid;
}

pid_t lockdir_holder(const char *path)
{
	_cleanup_(close_fdp) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? 0 : holder_of(fd);
}

int lockdir_open(const char *path, mode_t mode, int *ret_fd, pid_t *ret_holder)
{
	_cleanup_(close_fdp) int fd = -1;
	int r = atomic_file_make_dir(path, mode);

	if (r)
		return r;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		*ret_holder = holder_of(fd);
		return LOCKDIR_BUSY;
	}
	*ret_fd = take_fd(fd);
	return 0;
}
