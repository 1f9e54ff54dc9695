// SPDX-License-Identifier: Apache-2.0
/*
 * Writing: to a hidden name in the same folder, then rename(), so a name never stands for part of a
 * profile. The next start removes hidden files left by a crash. There is no fsync(): a power cut
 * may cost the last minute's profiles, and a write costs less. store_name.c makes all names. Names
 * are relative to the store's directory, one folder deep, and opened without following symbolic
 * links.
 */
#include "export/store_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/atomic_file.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "export/lockdir.h"
#include "export/store_name.h"
#include "export/store_table.h"

#define LABELS_FILE	     "labels.json"
/* LABELS_MAX values of LABELS_VALUE_MAX, six bytes for each when escaped, and their names. Reached:
 * the folder is not ours. */
#define LABELS_FILE_SIZE_MAX (512u << 10)

/* An errno of the file system; ENOMEM is ours. */
static int fs_outcome(int err)
{
	switch (err) {
	case ENOMEM:
		return -ENOMEM;
	case ENOSPC:
	case EDQUOT:
		return STORE_DISK_FULL;
	case EROFS:
	case EACCES:
	case EPERM:
		return STORE_READ_ONLY;
	default:
		return STORE_FAILED;
	}
}

DEFINE_CLEANUP(struct store_disk *, store_disk_freep, store_disk_free);

int store_disk_new(const char *path, struct store_disk **ret)
{
	_cleanup_(store_disk_freep) struct store_disk *disk = calloc(1, sizeof(*disk));

	if (!disk)
		return -ENOMEM;
	disk->root = (struct root)ROOT_INIT;
	disk->path = strdup(path);
	if (!disk->path)
		return -ENOMEM;
	*ret = take_ptr(disk);
	return 0;
}

void store_disk_free(struct store_disk *disk)
{
	if (!disk)
		return;
	root_deinit(&disk->root);
	free(disk->path);
	free(disk);
}

static int folder_open(const struct root *root, const char *name, int *ret_fd)
{
	int fd = openat(root->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

/* ---- removing */

void store_disk_remove(const struct store_disk *disk, const struct store_file *file)
{
	_cleanup_(close_fdp) int fd = -1;

	if (!folder_open(&disk->root, file->folder, &fd))
		(void)unlinkat(fd, file->name, 0);
}

void store_disk_remove_folder(const struct store_disk *disk, const char *folder)
{
	_cleanup_(close_fdp) int fd = -1;

	if (folder_open(&disk->root, folder, &fd))
		return;
	(void)unlinkat(fd, LABELS_FILE, 0);
	(void)unlinkat(disk->root.fd, folder, AT_REMOVEDIR);
}

/* ---- writing */

/* A file appears under its name completely or not at all. */
static int write_file(int folder_fd, const char *name, const char *data, size_t n)
{
	int r = atomic_file_write(folder_fd, name, 0640, data, n);

	return r ? fs_outcome(-r) : 0;
}

static int write_labels(int folder_fd, const struct labels *labels)
{
	_cleanup_(json_decrefp) json_t *object = json_object();
	_cleanup_(buf_deinit) struct buf line = BUF_INIT(LABELS_FILE_SIZE_MAX);
	_cleanup_(freep) char *text = NULL;

	if (faccessat(folder_fd, LABELS_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	for (size_t i = 0; i < labels->n; i++)
		if (json_object_set_new(object, labels->items[i].name,
					json_string(labels->items[i].value)))
			return -ENOMEM;
	text = json_dumps(object, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	if (!text || buf_printf(&line, "%s\n", text))
		return -ENOMEM;
	return write_file(folder_fd, LABELS_FILE, line.data, line.len);
}

/* The folder on disk, created if missing, even if somebody removed an earlier one. */
static int folder_make(const struct store_disk *disk, const char *name, const struct labels *labels,
		       int *ret_fd)
{
	int r = folder_open(&disk->root, name, ret_fd);

	if (r == -ENOENT) {
		if (mkdirat(disk->root.fd, name, 0750) && errno != EEXIST)
			return fs_outcome(errno);
		r = folder_open(&disk->root, name, ret_fd);
	}
	if (r)
		return fs_outcome(-r);
	return write_labels(*ret_fd, labels);
}

int store_disk_write(const struct store_disk *disk, const struct store_file *file,
		     const struct labels *labels, const void *data, size_t n)
{
	_cleanup_(close_fdp) int fd = -1;
	int r = folder_make(disk, file->folder, labels, &fd);

	return r ? r : write_file(fd, file->name, data, n);
}

/* ---- opening */

/* One reading of the directory. */
struct scan {
	const struct store_disk *disk;
	struct store_table *table;
	void (*alive)(void *ctx);
	void *ctx;
};

static int labels_of_json(const json_t *object, struct labels *ret)
{
	_cleanup_(labels_deinit) struct labels labels = {0};
	const char *name;
	json_t *value;
	int r;

	/* the macro requires a non-const object but does not change the object */
	json_object_foreach((json_t *)object, name, value) {
		if (!json_is_string(value))
			return STORE_FAILED;
		r = labels_set(&labels, name, json_string_value(value));
		if (r)
			return r < 0 ? r : STORE_FAILED;
	}
	*ret = labels;
	labels = (struct labels){0};
	return 0;
}

/* A folder with unreadable labels keeps at least its name. */
static int read_labels(int folder_fd, const char *folder, struct labels *ret)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(LABELS_FILE_SIZE_MAX);
	_cleanup_(json_decrefp) json_t *object = NULL;
	struct root root = {.fd = folder_fd};
	int r = root_read(&root, LABELS_FILE, &text);

	if (r == -ENOMEM)
		return r;
	if (!r)
		object = json_loadb(text.data ? text.data : "", text.len, 0, NULL);
	r = json_is_object(object) ? labels_of_json(object, ret) : STORE_FAILED;
	return r > 0 ? labels_set(ret, "service_name", folder) : r;
}

static int scan_file(const struct scan *scan, struct store_folder *folder, int fd, const char *file)
{
	struct store_profile row = {.folder = folder};
	struct store_name name;
	struct stat st;

	scan->alive(scan->ctx);
	if (atomic_file_unfinished(file)) {
		(void)unlinkat(fd, file, 0);
		return 0;
	}
	if (!store_name_parse(file, &name) || fstatat(fd, file, &st, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISREG(st.st_mode))
		return 0;
	if (!st.st_size) { /* after a power cut */
		(void)unlinkat(fd, file, 0);
		return 0;
	}
	row.kind = name.kind;
	row.start_ns = name.start_ns;
	row.duration_ns = name.duration_ns;
	row.bytes = store_table_disk_bytes((uint64_t)st.st_size);
	return store_table_append(scan->table, &row, SCAN_PROFILES_MAX);
}

/* Takes @fd, also on failure. 0 or -ENOMEM. */
static int dir_of_fd(int fd, DIR **ret)
{
	*ret = fdopendir(fd);
	if (*ret)
		return 0;
	close(fd);
	return -ENOMEM;
}

static int scan_folder(const struct scan *scan, const char *name)
{
	_cleanup_(labels_deinit) struct labels labels = {0};
	_cleanup_(closedirp) DIR *dir = NULL;
	struct store_folder *folder;
	struct dirent *entry;
	int fd = -1, r;

	scan->alive(scan->ctx);
	if (!store_name_is_folder(name) || folder_open(&scan->disk->root, name, &fd))
		return 0;
	r = dir_of_fd(fd, &dir);
	if (r)
		return r;
	r = read_labels(fd, name, &labels);
	if (!r)
		r = store_table_add_folder(scan->table, name, &labels, &folder);
	if (r)
		return r < 0 ? r : 0;
	while (!r && (entry = readdir(dir)))
		r = scan_file(scan, folder, fd, entry->d_name);
	if (!r && !folder->n_profiles) {
		store_disk_remove_folder(scan->disk, name);
		store_table_drop_folder(scan->table, folder);
	}
	return r;
}

static int scan_all(const struct scan *scan)
{
	_cleanup_(closedirp) DIR *dir = NULL;
	struct dirent *entry;
	int fd, r;

	fd = openat(scan->disk->root.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fs_outcome(errno);
	r = dir_of_fd(fd, &dir);
	while (!r && (entry = readdir(dir)))
		r = scan_folder(scan, entry->d_name);
	store_table_sort(scan->table);
	return r;
}

static int open_dir(struct store_disk *disk)
{
	int r = lockdir_open(disk->path, 0750, &disk->root.fd, &disk->holder);

	return r < 0 ? fs_outcome(-r) : r ? STORE_BUSY : 0;
}

int store_disk_open(struct store_disk *disk, void (*alive)(void *ctx), void *ctx,
		    struct store_table *table)
{
	const struct scan scan = {disk, table, alive, ctx};
	int r = open_dir(disk);

	if (!r)
		r = scan_all(&scan);
	if (r) {
		store_table_deinit(table);
		root_deinit(&disk->root);
	}
	return r;
}

/* ---- reading */

int store_read_file(const struct root *dir, const struct store_file *file, struct buf *ret)
{
	_cleanup_(root_deinit) struct root folder = ROOT_INIT;
	_cleanup_(close_fdp) int fd = -1;
	struct stat st;
	int r;

	r = folder_open(dir, file->folder, &folder.fd);
	if (r)
		return r == -ENOENT ? STORE_GONE : fs_outcome(-r);
	fd = openat(folder.fd, file->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? STORE_GONE : fs_outcome(errno);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return STORE_FAILED;
	r = root_read_fd(fd, ret);
	if (r == ROOT_TOO_LARGE)
		return STORE_TOO_LARGE;
	return r == -ENOMEM ? r : r ? STORE_FAILED : 0;
}
