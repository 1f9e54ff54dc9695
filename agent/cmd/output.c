// SPDX-License-Identifier: Apache-2.0
#include "cmd/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/cleanup.h"
#include "cmd/cmd.h"

static int failed(const char *command, const char *name, int err)
{
	cmd_error("%s: cannot write %s: %s", command, name, strerror(err));
	return CMD_FAILED;
}

int output_open(const char *command, const char *name, struct output *ret)
{
	const int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY;
	bool created = false;
	int fd;

	if (strcmp(name, "-") == 0) {
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	} else {
		fd = open(name, flags | O_CREAT | O_EXCL, 0644);
		created = fd >= 0;
		if (fd < 0 && errno == EEXIST)
			fd = open(name, flags);
	}
	if (fd < 0)
		return failed(command, name, errno);
	*ret = (struct output){.name = name, .fd = fd, .created = created};
	return CMD_DONE;
}

/* Only a file can have old contents; standard output belongs to the user, who may append. */
static int empty(const struct output *o)
{
	struct stat st;

	if (o->created || strcmp(o->name, "-") == 0)
		return 0;
	if (fstat(o->fd, &st) < 0)
		return errno;
	return S_ISREG(st.st_mode) && ftruncate(o->fd, 0) < 0 ? errno : 0;
}

int output_write(const char *command, struct output *o, const char *data, size_t n)
{
	int err = empty(o);

	if (!err)
		err = -atomic_file_write_all(o->fd, data, n);
	if (!err && close(take_fd(o->fd)) < 0)
		err = errno;
	if (err)
		return failed(command, o->name, err);
	o->created = false;
	return CMD_DONE;
}

void output_deinit(struct output *o)
{
	close_fdp(&o->fd);
	o->fd = -1;
	if (o->created)
		unlink(o->name);
	o->created = false;
}
