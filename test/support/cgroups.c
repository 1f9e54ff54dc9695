// SPDX-License-Identifier: Apache-2.0
#include "support/cgroups.h"

#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/root.h"
#include "support/tree.h"

/* The test's directories are removed at the end, with any processes left in them. */
#define REMOVE_ATTEMPTS 500
#define REMOVE_GAP_US	10000

const char *cgroups_container_id(unsigned int number, char ret[65])
{
	snprintf(ret, 65, "%048x%08x%08x", 0xc0de, (unsigned int)getpid(), number);
	return ret;
}

void cgroups_open(struct cgroups *c, const struct root *proc)
{
	assert_int_equal(hierarchy_find(NULL, proc, &c->trees), 0);
	snprintf(c->top, sizeof(c->top), "podprof-test-%d", (int)getpid());
}

/* Make each part of @path below @fd. Returns the inode number, 0 on failure. */
static uint64_t make_all(int fd, const char *path)
{
	char part[sizeof(((struct cgroup *)NULL)->path)];
	struct stat st;

	for (size_t i = 1; i <= strlen(path); i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdirat(fd, part, 0755) && errno != EEXIST)
			return 0;
	}
	return fstatat(fd, path, &st, 0) ? 0 : st.st_ino;
}

/* @ret contains the path. */
static bool make(const struct cgroups *c, struct cgroup *ret)
{
	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++) {
		if (c->trees.roots[h].fd < 0)
			continue;
		ret->id[h] = make_all(c->trees.roots[h].fd, ret->path);
		if (!ret->id[h])
			return false;
	}
	return true;
}

static void name(const struct cgroups *c, struct cgroup *ret, const char *format, va_list args)
{
	int n;

	memset(ret, 0, sizeof(*ret));
	n = snprintf(ret->path, sizeof(ret->path), "%s/", c->top);
	vsnprintf(ret->path + n, sizeof(ret->path) - (size_t)n, format, args);
}

bool cgroups_try_make(const struct cgroups *c, struct cgroup *ret, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	name(c, ret, format, args);
	va_end(args);
	return make(c, ret);
}

static bool write_pid(int fd, const char *dir, pid_t pid)
{
	char file[sizeof(((struct cgroup *)NULL)->path) + 16], text[24];
	ssize_t n = snprintf(text, sizeof(text), "%d", (int)pid);
	int procs;
	bool done;

	snprintf(file, sizeof(file), "%s/cgroup.procs", dir);
	procs = openat(fd, file, O_WRONLY | O_CLOEXEC);
	if (procs < 0)
		return false;
	done = write(procs, text, (size_t)n) == n;
	close(procs);
	return done;
}

bool cgroups_try_enter(const struct cgroups *c, const struct cgroup *cgroup, pid_t pid)
{
	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++)
		if (c->trees.roots[h].fd >= 0 &&
		    !write_pid(c->trees.roots[h].fd, cgroup->path, pid))
			return false;
	return true;
}

bool cgroups_try_remove(const struct cgroups *c, const struct cgroup *cgroup)
{
	bool done = true;

	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++)
		if (c->trees.roots[h].fd >= 0)
			done &= !unlinkat(c->trees.roots[h].fd, cgroup->path, AT_REMOVEDIR);
	return done;
}

void cgroups_make(const struct cgroups *c, struct cgroup *ret, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	name(c, ret, format, args);
	va_end(args);
	if (!make(c, ret))
		fail_msg("cannot make %s: %s", ret->path, strerror(errno));
}

void cgroups_enter(const struct cgroups *c, const struct cgroup *cgroup, pid_t pid)
{
	if (!cgroups_try_enter(c, cgroup, pid))
		fail_msg("cannot enter %s: %s", cgroup->path, strerror(errno));
}

void cgroups_remove(const struct cgroups *c, const struct cgroup *cgroup)
{
	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++)
		if (c->trees.roots[h].fd >= 0)
			tree_rmdir(c->trees.roots[h].fd, cgroup->path);
}

/* ---- the end ---- */

static void kill_all(const char *dir)
{
	char file[4096 + 16];
	FILE *procs;
	int pid;

	snprintf(file, sizeof(file), "%s/cgroup.procs", dir);
	procs = fopen(file, "re");
	if (!procs)
		return;
	while (fscanf(procs, "%d", &pid) == 1) // NOLINT(cert-err34-c)
		if (pid > 0)
			kill(pid, SIGKILL);
	(void)fclose(procs);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	if (type != FTW_DP)
		return 0;
	for (int i = 0; rmdir(path) && errno == EBUSY && i < REMOVE_ATTEMPTS; i++) {
		kill_all(path);
		usleep(REMOVE_GAP_US);
	}
	return 0;
}

static void remove_tree(int fd, const char *top)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", fd, top);
	(void)nftw(path, remove_one, 64, FTW_DEPTH | FTW_PHYS);
}

void cgroups_close(struct cgroups *c)
{
	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++)
		if (c->trees.roots[h].fd >= 0)
			remove_tree(c->trees.roots[h].fd, c->top);
	hierarchy_deinit(&c->trees);
}
