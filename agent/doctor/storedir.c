// SPDX-License-Identifier: Apache-2.0
#include "doctor/storedir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "config/config.h"
#include "doctor/finding.h"
#include "doctor/probe_results.h"
#include "export/lockdir.h"

/* Required free space, as a share of the maximum use: files of an earlier run also count towards
 * the maximum. */
#define STOREDIR_ROOM_SHARE 8

/* The path itself, or its nearest existing parent. */
static bool find_existing(const char *path, char ret[PATH_MAX])
{
	struct stat st;
	char *slash;

	if (snprintf(ret, PATH_MAX, "%s", path) >= PATH_MAX)
		return false;
	while (stat(ret, &st) && errno == ENOENT) {
		slash = strrchr(ret, '/');
		if (!slash)
			snprintf(ret, PATH_MAX, ".");
		else if (slash == ret)
			ret[1] = '\0';
		else
			*slash = '\0';
	}
	return true;
}

static void look(const char *path, uint64_t bytes, struct storedir *ret)
{
	char at[PATH_MAX];
	struct statvfs fs;
	struct stat st;

	*ret = (struct storedir){.path = path, .bytes = bytes};
	if (!ret->path)
		return;
	if (!find_existing(ret->path, at)) {
		ret->result = -ENAMETOOLONG;
		return;
	}
	ret->there = strcmp(ret->path, at) == 0;
	if (faccessat(AT_FDCWD, at, W_OK | X_OK, AT_EACCESS) || stat(at, &st) || statvfs(at, &fs))
		ret->result = -errno;
	else if (!S_ISDIR(st.st_mode))
		ret->result = -ENOTDIR;
	else
		ret->free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (ret->there)
		ret->holder = lockdir_holder(at);
}

void storedir_look(const struct config *config, struct storedir *ret)
{
	look(config->store_dir, config->store_bytes, ret);
}

/* Only destinations need a spool. */
void storedir_look_spool(const struct config *config, struct storedir *ret)
{
	look(config->destinations.n ? config->spool_dir : NULL, config->spool_bytes, ret);
}

/* The texts about one of the directories. @unwritable: the effect if the directory is there. */
struct words {
	const char *name;
	const char *unwritable;
	const char *remedy;
	const char *full;
};

/* A directory that cannot be created ends the agent. */
static void check(const struct storedir *dir, const struct words *words, struct findings *ret)
{
	struct finding *finding;

	if (!dir->path)
		return;
	if (dir->result) {
		finding = findings_add(ret, words->name, FINDING_MISSING, "%s: %s", dir->path,
				       strerror(-dir->result));
		finding_say(finding, dir->there ? words->unwritable : "the agent does not start",
			    words->remedy);
	} else if (dir->free_bytes < dir->bytes / STOREDIR_ROOM_SHARE) {
		finding =
			findings_add(ret, words->name, FINDING_DEGRADED,
				     "%s: %" PRIu64 " MiB free, of %" PRIu64 " that may be needed",
				     dir->path, dir->free_bytes >> 20, dir->bytes >> 20);
		finding_say(finding, words->full, "make room, or lower the ceiling");
	} else if (dir->holder) {
		findings_add(ret, words->name, FINDING_OK, "%s; process %d has its lock", dir->path,
			     (int)dir->holder);
	} else {
		findings_add(ret, words->name, FINDING_OK, "%s%s", dir->path,
			     dir->there ? "" : "; podprof will create it");
	}
}

void storedir_check(const struct probe_results *results, struct findings *ret)
{
	static const struct words store = {
		"store",
		"no profiles on the node and its page",
		"set --store-dir to a writable directory, or send profiles to a --destination",
		"profiles without room are dropped",
	};
	static const struct words spool = {
		"spool",
		"profiles for destinations wait in memory only, and end with the agent",
		"set --spool-dir to a writable directory, or to none",
		"profiles without room wait in memory only",
	};

	check(&results->storedir, &store, ret);
	check(&results->spooldir, &spool, ret);
}
