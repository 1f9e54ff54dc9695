// SPDX-License-Identifier: Apache-2.0
/*
 * A pod sees the host's files through /proc/1/root. So links in their paths (/var/run, a
 * /var/lib/docker on another disk) must resolve as on the host, and must not leave the host's root.
 * A file must belong to the host's root user and be writable by no other user: containers may write
 * to mounted directories of the host, and a forged file could give a container another one's name.
 *
 * A container's state holds the environment, including passwords. So the file is split while it is
 * read, and only wanted members are ever assembled.
 */
#include "metadata/statefile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/json_splitter.h"
#include "metadata/pod.h"

/* Bytes of one read, on the stack. */
#define STATEFILE_STEP 16384

struct missing_folder {
	const char *folder; /* borrowed; NULL: free */
	uint64_t until_ns;
};

const char *statefile_outcome_name(int outcome)
{
	static const char *const names[STATEFILE_OUTCOME_MAX] = {
		[STATEFILE_OK] = "ok",
		[STATEFILE_GONE] = "not_found",
		[STATEFILE_DENIED] = "denied",
		[STATEFILE_ODD] = "invalid",
	};

	return outcome >= 0 && outcome < STATEFILE_OUTCOME_MAX ? names[outcome] : "error";
}

static int outcome_of_root(int r)
{
	switch (r) {
	case ROOT_OK:
		return STATEFILE_OK;
	case ROOT_GONE:
		return STATEFILE_GONE;
	case ROOT_DENIED:
	case -ENOSYS: /* from openat2(): a seccomp profile older than Linux 5.6 */
		return STATEFILE_DENIED;
	default:
		return r < 0 ? r : STATEFILE_ODD;
	}
}

int statefiles_open(const char *path, struct statefiles *ret)
{
	_cleanup_(root_deinit) struct root root = ROOT_INIT;
	int r = outcome_of_root(root_open(path, &root));
	struct stat st;

	if (r)
		return r;
	if (fstat(root.fd, &st) < 0)
		return -errno;
	ret->missing = calloc(STATEFILES_MISSING_MAX, sizeof(*ret->missing));
	if (!ret->missing)
		return -ENOMEM;
	ret->root.fd = take_fd(root.fd);
	ret->owner = st.st_uid;
	return 0;
}

void statefiles_deinit(struct statefiles *s)
{
	root_deinit(&s->root);
	free(s->missing);
	s->missing = NULL;
}

/* Its entry, or a free one. NULL: all are of other folders. */
static struct missing_folder *find_missing(const struct statefiles *s, const char *folder)
{
	for (size_t i = 0; i < STATEFILES_MISSING_MAX; i++)
		if (!s->missing[i].folder || strcmp(s->missing[i].folder, folder) == 0)
			return &s->missing[i];
	return NULL;
}

bool statefiles_miss(const struct statefiles *s, const char *folder)
{
	struct missing_folder *entry = find_missing(s, folder);
	_cleanup_(close_fdp) int fd = -1;
	const uint64_t now_ns = nsec_monotonic();

	if (entry && now_ns < entry->until_ns)
		return true;
	if (root_open_dir_inside(&s->root, folder, &fd) != ROOT_GONE)
		return false;
	if (entry)
		*entry = (struct missing_folder){folder, now_ns + STATEFILES_MISSING_NS};
	return true;
}

int statefile_open(const struct statefiles *s, const char *path, int *ret_fd)
{
	_cleanup_(close_fdp) int fd = -1;
	int r = outcome_of_root(root_open_inside(&s->root, path, &fd));
	struct stat st;

	if (r)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != s->owner || (st.st_mode & (S_IWGRP | S_IWOTH)) ||
	    st.st_size > (off_t)STATEFILE_BYTES_MAX)
		return STATEFILE_ODD;
	*ret_fd = take_fd(fd);
	return 0;
}

/* ---------------------------------------------------------------- members */

/* @r: the result of @fn, to tell it from the splitter's own. */
struct reading {
	statefile_fn fn;
	void *ctx;
	int r;
};

static int cut_value(void *ctx, const char *key, const char *json, size_t n)
{
	_cleanup_(json_decrefp) json_t *value = NULL;
	struct reading *reading = ctx;

	reading->r = pod_parse_json(json, n, &value);
	if (reading->r > 0)
		reading->r = STATEFILE_ODD;
	if (!reading->r)
		reading->r = reading->fn(reading->ctx, key, value);
	return reading->r;
}

/* Reads the file up to the ceiling, because it may grow during the read, or be larger than its size
 * says. */
static int feed_file(struct json_splitter *cut, int fd)
{
	size_t total = 0;
	char bytes[STATEFILE_STEP];

	for (;;) {
		ssize_t n = read(fd, bytes, sizeof(bytes));
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return outcome_of_root(root_outcome(errno));
		total += (size_t)n;
		if (n == 0 || total > STATEFILE_BYTES_MAX)
			return n ? STATEFILE_ODD : 0;
		r = json_splitter_feed(cut, bytes, (size_t)n);
		if (r)
			return r < 0 ? r : STATEFILE_ODD;
	}
}

/* @before, @after: text that makes the file an object. */
static int read_cut(int fd, const char *const *wanted, const char *before, const char *after,
		    struct reading *reading)
{
	struct json_splitter cut;
	int r;

	json_splitter_init(&cut, JSON_SPLITTER_MEMBERS, STATEFILE_VALUE_MAX, cut_value, reading);
	cut.wanted = wanted;
	r = json_splitter_feed(&cut, before, strlen(before));
	if (!r)
		r = feed_file(&cut, fd);
	if (!r)
		r = json_splitter_feed(&cut, after, strlen(after));
	if (!r)
		r = json_splitter_end(&cut);
	if (r > 0 || (!r && cut.n_too_large))
		r = STATEFILE_ODD;
	json_splitter_deinit(&cut);
	return reading->r ? reading->r : r;
}

int statefile_read(const struct statefiles *s, const char *path, const char *const *wanted,
		   statefile_fn fn, void *ctx)
{
	struct reading reading = {.fn = fn, .ctx = ctx};
	_cleanup_(close_fdp) int fd = -1;
	int r = statefile_open(s, path, &fd);

	return r ? r : read_cut(fd, wanted, "", "", &reading);
}

int statefile_read_array(const struct statefiles *s, const char *path, statefile_fn fn, void *ctx)
{
	static const char *const wanted[] = {"", NULL};
	struct reading reading = {.fn = fn, .ctx = ctx};
	_cleanup_(close_fdp) int fd = -1;
	int r = statefile_open(s, path, &fd);

	return r ? r : read_cut(fd, wanted, "{\"\":", "}", &reading);
}
