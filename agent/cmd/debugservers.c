// SPDX-License-Identifier: Apache-2.0
#include "cmd/debugservers.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/atomic_file.h"
#include "base/cleanup.h"
#include "base/nsec.h"
#include "cmd/cmd.h"
#include "cmd/cmdline.h"
#include "symbolize/debuginfod.h"

/* As the XDG Base Directory Specification says; /var/cache for a daemon without a home. */
static int default_dir(char ret[PATH_MAX])
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int n;

	if (cache && cache[0] == '/')
		n = snprintf(ret, PATH_MAX, "%s/podprof/debuginfod", cache);
	else if (home && home[0] == '/')
		n = snprintf(ret, PATH_MAX, "%s/.cache/podprof/debuginfod", home);
	else
		n = snprintf(ret, PATH_MAX, "/var/cache/podprof/debuginfod-commands");
	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int lock_dir(const char *dir, int *ret)
{
	_cleanup_(close_fdp) int fd = -1;
	int r = atomic_file_make_dir(dir, 0700);

	if (r)
		return r;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	*ret = take_fd(fd);
	return 0;
}

static int open_servers(const struct cmdline_values *urls, const char *dir,
			struct debugservers *ret)
{
	const struct debuginfod_opts opts = {
		.urls = (const char *const *)urls->items,
		.n_urls = urls->n,
		.dir = dir,
		.max_bytes = DEBUGSERVERS_BYTES_MAX,
		.total_ns = DEBUGSERVERS_WAIT_NS,
	};
	int r = lock_dir(dir, &ret->lock);

	return r ? r : debuginfod_new(&opts, &ret->servers);
}

int debugservers_open(const char *command, const struct cmdline_values *urls, const char *dir,
		      struct debugservers *ret)
{
	char own[PATH_MAX];
	int r = 0;

	for (size_t i = 0; i < urls->n; i++)
		if (strncmp(urls->items[i], "http://", 7) != 0 &&
		    strncmp(urls->items[i], "https://", 8) != 0) {
			cmd_error("%s: --debuginfod takes http://HOST[:PORT], not '%s'; see "
				  "'podprof %s --help'",
				  command, urls->items[i], command);
			return CMD_USAGE;
		}
	if (!urls->n)
		return CMD_DONE;
	if (!dir) {
		r = default_dir(own);
		dir = own;
	}
	if (!r)
		r = open_servers(urls, dir, ret);
	if (!r)
		return CMD_DONE;
	cmd_error("%s: cannot keep debug files in %s: %s; set --debuginfod-dir", command, dir,
		  r == -EWOULDBLOCK ? "another podprof uses it" : strerror(-r));
	return CMD_FAILED;
}

void debugservers_deinit(struct debugservers *d)
{
	debuginfod_unref(take_ptr(d->servers));
	close_fdp(&d->lock);
	d->lock = -1;
}

void debugservers_summary(const struct debugservers *d)
{
	uint64_t ends[DEBUGINFOD_END_MAX];
	uint64_t n_failed;
	size_t n_pending;

	if (!d->servers)
		return;
	debuginfod_counts(d->servers, ends);
	n_failed = ends[DEBUGINFOD_END_FAILED] + ends[DEBUGINFOD_END_TOO_LARGE] +
		   ends[DEBUGINFOD_END_NOT_STORED];
	n_pending = debuginfod_pending(d->servers);
	fprintf(stderr, "debug files: %" PRIu64 " downloaded, %" PRIu64 " on no server",
		ends[DEBUGINFOD_END_OK], ends[DEBUGINFOD_END_NOT_FOUND]);
	if (n_failed)
		fprintf(stderr, ", %" PRIu64 " failed", n_failed);
	if (n_pending)
		fprintf(stderr, ", %zu not waited for", n_pending);
	fputc('\n', stderr);
}
