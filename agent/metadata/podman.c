// SPDX-License-Identifier: Apache-2.0
/*
 * Podman's names are in the list of the containers/storage library,
 *
 *	<root>/overlay-containers/containers.json
 *
 *	[{"id": "0123...", "names": ["web"], "metadata": "{\"image-name\": \"shop\", ...}"}, ...]
 *
 * and beside it in volatile-containers.json, for containers that end with their process. Labels,
 * including Compose's, and the names of Podman's pods are only in a database (bbolt, SQLite since
 * Podman 4.8). No file about a container has them, except for a log of events on systems without a
 * journal. podprof does not read the directories of users without root: the users may write any
 * file there and mount any file system.
 *
 * The list also has CRI-O's containers, but CRI-O's own files say more.
 *
 * Source: the containers/storage project's containers.go.
 */
#include "metadata/runtime.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "metadata/storage.h"

static const char *const lists[] = {"containers.json", "volatile-containers.json"};

/* Ends the reading. */
#define FOUND STATEFILE_OUTCOME_MAX

struct search {
	const char *id;
	struct container *c;
	int worst; /* outcome of the unreadable lists */
};

/* The image is in JSON inside a text. */
static int set_image(struct container *c, const json_t *entry)
{
	const char *text = pod_text(entry, "metadata");
	_cleanup_(json_decrefp) json_t *metadata = NULL;
	int r = pod_parse_json(text, strlen(text), &metadata);

	return r < 0 ? r : container_set_image(c, pod_text(metadata, "image-name"));
}

static int look_at(void *ctx, const char *key, const json_t *entry)
{
	const json_t *name = json_array_get(json_object_get(entry, "names"), 0);
	struct search *search = ctx;
	int r;

	(void)key;
	if (strcmp(pod_text(entry, "id"), search->id) != 0)
		return 0;
	if (!json_is_string(name) || json_string_length(name) > POD_TEXT_MAX)
		return STATEFILE_ODD;
	r = container_set_name(search->c, json_string_value(name));
	if (!r)
		r = set_image(search->c, entry);
	return r ? r : FOUND;
}

static int look_through_lists(void *ctx, const struct statefiles *files, const char *folder)
{
	struct search *search = ctx;
	char path[RUNTIME_PATH_MAX];

	for (size_t i = 0; i < array_size(lists); i++) {
		int n = snprintf(path, sizeof(path), "%s/%s", folder, lists[i]);
		int r = n < (int)sizeof(path) ? statefile_read_array(files, path, look_at, search)
					      : STATEFILE_GONE;

		if (r < 0 || r == FOUND)
			return r;
		search->worst = r > search->worst ? r : search->worst;
	}
	return STATEFILE_GONE;
}

static int read_container(const struct statefiles *files, const char *id, const char *pod_uid,
			  struct container **ret)
{
	_cleanup_(container_freep) struct container *c = NULL;
	struct search search = {.id = id, .worst = STATEFILE_GONE};
	int r = container_new(podman_source.name, &c);

	(void)pod_uid;
	if (r)
		return r;
	search.c = c;
	r = storage_search(files, look_through_lists, &search);
	if (r == FOUND) {
		*ret = take_ptr(c);
		return 0;
	}
	return r < 0 || r > search.worst ? r : search.worst;
}

const struct runtime_source podman_source = {.name = "podman", .read = read_container};
