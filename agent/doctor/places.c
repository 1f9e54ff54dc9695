// SPDX-License-Identifier: Apache-2.0
#include "doctor/places.h"

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

/* Less than this share of what may be wanted is no room: the files of a run before count in it. */
#define PLACE_ROOM_SHARE 8

/* ---------------------------------------------------------------- looking */

/* The path itself, or of those above it the first that there is. */
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

static void look_at(const char *path, int mode, uint64_t bytes, struct place *ret)
{
	char at[PATH_MAX];
	struct statvfs fs;
	struct stat st;

	*ret = (struct place){.path = path, .bytes = bytes};
	if (!path)
		return;
	if (!find_existing(path, at)) {
		ret->result = -ENAMETOOLONG;
		return;
	}
	ret->there = strcmp(path, at) == 0;
	if (faccessat(AT_FDCWD, at, mode, AT_EACCESS) || stat(at, &st) || statvfs(at, &fs)) {
		ret->result = -errno;
		return;
	}
	if (!S_ISDIR(st.st_mode)) {
		ret->result = -ENOTDIR;
		return;
	}
	ret->unsafe = ret->there && (st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH));
	ret->free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
}

void places_look(const struct config *config, struct place ret[PLACE_MAX])
{
	look_at(config->store_dir, W_OK | X_OK, config->store_bytes, &ret[PLACE_STORE]);
	look_at(config->cpu_rate ? config->cache_dir : NULL, W_OK | X_OK, config->cache_bytes,
		&ret[PLACE_CACHE]);
	look_at(config->cpu_rate ? config->unwind_rows : NULL, R_OK | X_OK, 0, &ret[PLACE_ROWS]);
	if (ret[PLACE_ROWS].path && !ret[PLACE_ROWS].there)
		ret[PLACE_ROWS].result = -ENOENT;
}

/* ---------------------------------------------------------------- checks */

/* What goes wrong without it; a directory of the store that cannot be made ends the agent. */
static const struct {
	const char *check;
	enum finding_outcome without;
	const char *means;
	const char *remedy;
} texts[PLACE_MAX] = {
	{"store", FINDING_MISSING, "no profile is kept on the node, and its page has none",
	 "--store-dir names a directory that podprof may write to; with --destination none is "
	 "needed"},
	{"cache", FINDING_DEGRADED, "unwind tables are made anew at each start",
	 "--cache-dir names a directory that podprof alone may write to"},
	{"unwind rows", FINDING_DEGRADED, "it goes on without the row files until they are there",
	 "--unwind-rows names a directory that podprof may read"},
};

static void check_place(const struct place *place, size_t i, struct findings *ret)
{
	struct finding *finding;

	if (place->result || (i == PLACE_CACHE && place->unsafe)) {
		finding = findings_add(ret, texts[i].check, texts[i].without, "%s: %s", place->path,
				       place->result ? strerror(-place->result)
						     : "others own it, or may write to it");
		finding_say(finding,
			    i == PLACE_STORE && !place->there ? "the agent does not start"
							      : texts[i].means,
			    texts[i].remedy);
	} else if (place->free_bytes < place->bytes / PLACE_ROOM_SHARE) {
		finding = findings_add(ret, texts[i].check, FINDING_DEGRADED,
				       "%s: %" PRIu64 " MiB are free, of %" PRIu64
				       " that may be wanted",
				       place->path, place->free_bytes >> 20, place->bytes >> 20);
		finding_say(finding, "what finds no room is left out",
			    "make room, or lower the "
			    "ceiling");
	} else {
		findings_add(ret, texts[i].check, FINDING_OK, "%s%s", place->path,
			     place->there ? "" : ", which will be made");
	}
}

void places_check(const struct probe_results *results, struct findings *ret)
{
	for (size_t i = 0; i < PLACE_MAX; i++)
		if (results->places[i].path)
			check_place(&results->places[i], i, ret);
}
