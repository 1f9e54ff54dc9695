// SPDX-License-Identifier: Apache-2.0
/*
 * The library has two roots, for persistent data and for data of this boot. In each root,
 * containers are in directories named after the driver of their file systems:
 *
 *	/var/lib/containers/storage/overlay-containers/containers.json
 *	/var/lib/containers/storage/overlay-containers/<id>/userdata/config.json
 *	/run/containers/storage/overlay-containers/<id>/userdata/...
 *
 * The program and its settings determine the root of each file. Other roots are in
 *
 *	/etc/containers/storage.conf
 *
 *	[storage]
 *	graphroot = "/srv/containers"
 *
 * The parser reads only lines of this form: no multi-line strings, no escapes. Roots in arguments
 * and in files of storage.conf.d are not found.
 *
 * Source: the containers/storage project's types/options.go, store.go, containers-storage.conf(5).
 */
#include "metadata/storage.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "base/line_reader.h"
#include "metadata/runtime.h"

#define SETTINGS_FOLDER "etc/containers"
#define SETTINGS	SETTINGS_FOLDER "/storage.conf"

static const char *const roots[] = {"run/containers/storage", "var/lib/containers/storage"};

/* The most common driver comes first. The library's other drivers also make a directory for
 * overlay, or belong to other systems. */
static const char *const drivers[] = {"overlay", "vfs", "btrfs", "zfs"};

struct search {
	const struct statefiles *files;
	storage_fn fn;
	void *ctx;
	int r;
};

static void look_below(struct search *search, const char *root)
{
	char folder[RUNTIME_PATH_MAX];

	for (size_t i = 0; i < array_size(drivers) && search->r == STATEFILE_GONE; i++) {
		int n = snprintf(folder, sizeof(folder), "%s/%s-containers", root, drivers[i]);

		if (n < (int)sizeof(folder))
			search->r = search->fn(search->ctx, search->files, folder);
	}
}

/* KEY = "VALUE" */
static bool parse_setting(struct strview line, struct strview *ret_key, struct strview *ret_value)
{
	struct strview key, value;
	char quote;

	if (!strview_until(&line, '=', &key) || !strview_word(&key, ret_key))
		return false;
	strview_skip_blanks(&line);
	if (strview_empty(&line) || (*line.p != '"' && *line.p != '\''))
		return false;
	quote = *line.p++;
	if (!strview_until(&line, quote, &value))
		return false;
	*ret_value = value;
	return true;
}

static int look_at_line(void *ctx, struct strview line)
{
	struct search *search = ctx;
	char root[RUNTIME_PATH_MAX];
	struct strview key, value;
	int n;

	if (!parse_setting(line, &key, &value))
		return 0;
	if (!strview_is(&key, "graphroot") && !strview_is(&key, "runroot"))
		return 0;
	while (strview_char(&value, '/'))
		;
	n = snprintf(root, sizeof(root), "%.*s", (int)strview_len(&value), value.p);
	if (n > 0 && n < (int)sizeof(root))
		look_below(search, root);
	return search->r != STATEFILE_GONE;
}

int storage_search(const struct statefiles *files, storage_fn fn, void *ctx)
{
	struct search search = {.files = files, .fn = fn, .ctx = ctx, .r = STATEFILE_GONE};
	_cleanup_(close_fdp) int fd = -1;
	size_t n_skipped = 0;
	int r;

	for (size_t i = 0; i < array_size(roots) && search.r == STATEFILE_GONE; i++)
		if (!statefiles_miss(files, roots[i]))
			look_below(&search, roots[i]);
	if (search.r != STATEFILE_GONE || statefiles_miss(files, SETTINGS_FOLDER))
		return search.r;
	r = statefile_open(files, SETTINGS, &fd);
	if (r)
		return r;
	r = line_reader_read(fd, look_at_line, &search, &n_skipped);
	return r < 0 ? r : search.r;
}
