// SPDX-License-Identifier: Apache-2.0
/*
 * The kubelet makes a link to each container's log, with any runtime:
 *
 *	/var/log/containers/<pod>_<namespace>_<container>-<id>.log
 *		-> /var/log/pods/<namespace>_<pod>_<uid>/<container>/<restart>.log
 *
 * The id leads to the link by the link's name. The target of the link has all names, and no name
 * can contain the separators. The link appears just after the container's start; a sandbox has
 * none. The link's name is cut at 251 characters and ".log", and this may cut the id. Then a prefix
 * of the id must suffice: PREFIX_MIN digits are unique on a node.
 *
 * If no container has an id (gVisor, Kata), a pod's directory still has the names.
 *
 * Only the two directories are opened. A pod with a mount of the host's /var/log may put links
 * there. Links and directories of other users than the host's root user are ignored, but a pod that
 * runs as this user can forge a container's name. So this source comes last.
 *
 * Source: the Kubernetes project's pkg/kubelet/kuberuntime/legacy.go and kuberuntime_container.go.
 */
#include "metadata/runtime.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/strview.h"

#define LINKS_FOLDER	    "var/log/containers"
#define PODS_FOLDER	    "var/log/pods"
/* Entries of a directory: a node has thousands of present and former containers. Reached: not
 * found. */
#define PODLOGS_ENTRIES_MAX 16384
/* Bytes after which the kubelet cuts a link's name, without ".log". */
#define CUT_AT		    251
#define PREFIX_MIN	    12

/* The names from a link, or from a pod's directory. */
struct names {
	char namespace[NAME_MAX + 1];
	char pod[NAME_MAX + 1];
	char uid[NAME_MAX + 1];
	char container[NAME_MAX + 1];
};

static int open_folder(const struct statefiles *files, const char *path, DIR **ret)
{
	_cleanup_(close_fdp) int fd = -1;
	int r = statefiles_miss(files, path) ? ROOT_GONE
					     : root_open_dir_inside(&files->root, path, &fd);

	if (r)
		return r == ROOT_DENIED || r == -ENOSYS ? STATEFILE_DENIED : STATEFILE_GONE;
	*ret = fdopendir(fd);
	if (!*ret)
		return -ENOMEM;
	(void)take_fd(fd);
	return 0;
}

/* ---------------------------------------------------------------- names */

static bool take_name(struct strview *t, char sep, char ret[NAME_MAX + 1])
{
	struct strview part;

	if (!strview_until(t, sep, &part) || strview_empty(&part) || strview_len(&part) > NAME_MAX)
		return false;
	memcpy(ret, part.p, strview_len(&part));
	ret[strview_len(&part)] = '\0';
	return true;
}

/* "namespace_pod_uid" */
static bool split_folder(struct strview t, struct names *ret)
{
	return take_name(&t, '_', ret->namespace) && take_name(&t, '_', ret->pod) &&
	       take_name(&t, '_', ret->uid) && strview_empty(&t);
}

/* True if the link's name has the container id @id. */
static bool is_link_of(const char *name, const char *id)
{
	struct strview t = strview_of(name), tail;
	size_t n;

	if (!strview_suffix(&t, ".log"))
		return false;
	tail = strview_after_last(t, '-');
	n = strview_len(&tail);
	if (n < PREFIX_MIN || n > strlen(id) || strncmp(tail.p, id, n) != 0)
		return false;
	return n == strlen(id) || strview_len(&t) == CUT_AT;
}

/* ---------------------------------------------------------------- directories */

static bool is_owners(const struct statefiles *files, DIR *folder, const char *name)
{
	struct stat st;

	return fstatat(dirfd(folder), name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_uid == files->owner;
}

/* "/var/log/pods/namespace_pod_uid/container/0.log", with anything before "pods". */
static bool read_target(DIR *folder, const char *name, struct names *ret)
{
	struct strview t, part;
	char target[PATH_MAX];
	const char *at;
	ssize_t n = readlinkat(dirfd(folder), name, target, sizeof(target) - 1);

	if (n < 0 || n == (ssize_t)sizeof(target) - 1)
		return false;
	target[n] = '\0';
	at = strstr(target, "/pods/");
	if (!at)
		return false;
	t = strview_of(at + strlen("/pods/"));
	return strview_until(&t, '/', &part) && split_folder(part, ret) &&
	       take_name(&t, '/', ret->container) && !strview_empty(&t);
}

static int find_link(const struct statefiles *files, const char *id, struct names *ret)
{
	_cleanup_(closedirp) DIR *folder = NULL;
	int r = open_folder(files, LINKS_FOLDER, &folder);
	const struct dirent *entry;

	if (r)
		return r;
	for (int i = 0; i < PODLOGS_ENTRIES_MAX && (entry = readdir(folder)); i++)
		if (is_link_of(entry->d_name, id) && is_owners(files, folder, entry->d_name))
			return read_target(folder, entry->d_name, ret) ? 0 : STATEFILE_ODD;
	return STATEFILE_GONE;
}

static int find_pod(const struct statefiles *files, const char *uid, struct names *ret)
{
	_cleanup_(closedirp) DIR *folder = NULL;
	int r = *uid ? open_folder(files, PODS_FOLDER, &folder) : STATEFILE_GONE;
	const struct dirent *entry;

	if (r)
		return r;
	for (int i = 0; i < PODLOGS_ENTRIES_MAX && (entry = readdir(folder)); i++)
		if (split_folder(strview_of(entry->d_name), ret) && strcmp(ret->uid, uid) == 0 &&
		    is_owners(files, folder, entry->d_name))
			return 0;
	return STATEFILE_GONE;
}

/* ---------------------------------------------------------------- a container */

static int make(const struct names *names, const char *id, struct container **ret)
{
	_cleanup_(container_freep) struct container *c = NULL;
	int r = container_new(podlogs_source.name, &c);

	if (!r)
		r = pod_make(names->namespace, names->pod, names->uid, &c->pod);
	if (!r && *names->container)
		r = pod_add_container(c->pod, POD_CONTAINER_ORDINARY, names->container, id, "");
	if (r)
		return r < 0 ? r : STATEFILE_ODD;
	*ret = take_ptr(c);
	return 0;
}

static int read_container(const struct statefiles *files, const char *id, const char *pod_uid,
			  struct container **ret)
{
	struct names names = {0};
	int r = *id ? find_link(files, id, &names) : STATEFILE_GONE;

	if (r == STATEFILE_GONE) {
		names = (struct names){0};
		r = find_pod(files, pod_uid, &names);
	}
	return r ? r : make(&names, id, ret);
}

const struct runtime_source podlogs_source = {.name = "podlogs", .read = read_container};
