// SPDX-License-Identifier: Apache-2.0
/*
 * The files are authoritative. The table in memory is the result of the scan at opening, updated by
 * our own writes and removals. The store notices a file removed by somebody else when it reads or
 * removes the file.
 *
 * Writing: to a hidden name in the same folder, then rename(), so a name never stands for part of a
 * profile. The next start removes hidden files left by a crash. There is no fsync(): a power cut
 * may cost the last minute's profiles, but waiting for the disk would block the loop. store_name.c
 * makes all names. Names are relative to the store's directory, one folder deep, and opened without
 * following symbolic links.
 *
 * On a full disk or a directory without write permission the profile is lost and counted, and the
 * next profile is tried again.
 */
#include "export/store.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/atomic_file.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/root.h"
#include "export/store_name.h"
#include "export/store_table.h"

/* Minimum space of a file on the usual file systems. */
#define BLOCK_BYTES	     4096u
/* Folder names tried for one label set: each tried folder belongs to another label set with the
 * same 32 bits of hash. Reached: `podprof_store_profiles_total{outcome="failed"}`. */
#define FOLDER_ATTEMPTS_MAX  16
#define LABELS_FILE	     "labels.json"
/* LABELS_MAX values of LABELS_VALUE_MAX, six bytes for each when escaped, and their names. Reached:
 * the folder is not ours. */
#define LABELS_FILE_SIZE_MAX (512u << 10)
/* Files examined at opening; the newest STORE_PROFILES_MAX are kept. More files cannot be ours.
 * Reached: they stay where they are. */
#define SCAN_PROFILES_MAX    ((size_t)4 * STORE_PROFILES_MAX)

enum removal { REMOVAL_BYTES, REMOVAL_AGE, REMOVAL_COUNT, REMOVAL_MAX };

struct store {
	struct root root;
	uint64_t max_bytes;
	uint64_t max_age_ns;
	struct store_table table;
	uint64_t counts[STORE_OUTCOME_MAX];
	uint64_t removed[REMOVAL_MAX];
};

DEFINE_CLEANUP(struct store *, store_freep, store_free);

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

static uint64_t disk_bytes(uint64_t size)
{
	return (size + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
}

/* ---- folders */

/* The folder of a label set; a new folder if the set has no stored profile yet. */
static int folder_of(struct store *s, const struct labels *labels, struct store_folder **ret)
{
	_cleanup_(labels_deinit) struct labels copy = {0};
	char name[STORE_NAME_MAX];
	int r;

	for (uint32_t i = 0; i < FOLDER_ATTEMPTS_MAX; i++) {
		store_name_folder(labels, i, name);
		*ret = store_table_folder(&s->table, name);
		if (*ret && labels_equal(&(*ret)->labels, labels))
			return 0;
		if (*ret)
			continue;
		r = labels_copy(labels, &copy);
		return r < 0 ? r : store_table_add_folder(&s->table, name, &copy, ret);
	}
	return STORE_FOLDERS;
}

static int folder_open(const struct store *s, const char *name, int *ret_fd)
{
	int fd = openat(s->root.fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

/* A folder without profiles goes, from the table and from disk. */
static void folder_drop_empty(struct store *s, struct store_folder *folder)
{
	_cleanup_(close_fdp) int fd = -1;

	if (folder->n_profiles)
		return;
	if (!folder_open(s, folder->name, &fd)) {
		/* after a failure a file remains, and the next start tries again */
		(void)unlinkat(fd, LABELS_FILE, 0);
		(void)unlinkat(s->root.fd, folder->name, AT_REMOVEDIR);
	}
	store_table_drop_folder(&s->table, folder);
}

/* ---- removing */

static void remove_oldest(struct store *s, enum removal why)
{
	const struct store_profile *oldest = store_at(s, 0);
	_cleanup_(close_fdp) int fd = -1;
	char name[STORE_NAME_MAX];

	store_table_file(oldest, name);
	if (!folder_open(s, oldest->folder->name, &fd))
		(void)unlinkat(fd, name, 0); /* on failure the next start finds the file again */
	s->removed[why]++;
	folder_drop_empty(s, store_table_remove_oldest(&s->table));
}

/* Make room for @bytes more and @n more files. */
static void make_room(struct store *s, uint64_t bytes, size_t n)
{
	while (store_n_profiles(s) && s->table.bytes > s->max_bytes - bytes)
		remove_oldest(s, REMOVAL_BYTES);
	while (store_n_profiles(s) && store_n_profiles(s) + n > STORE_PROFILES_MAX)
		remove_oldest(s, REMOVAL_COUNT);
}

void store_trim(struct store *s, uint64_t now_ns)
{
	while (store_n_profiles(s) && now_ns > s->max_age_ns &&
	       store_at(s, 0)->start_ns < now_ns - s->max_age_ns)
		remove_oldest(s, REMOVAL_AGE);
	make_room(s, 0, 0);
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
static int folder_make(const struct store *s, const struct store_folder *folder, int *ret_fd)
{
	int r;

	if (mkdirat(s->root.fd, folder->name, 0750) && errno != EEXIST)
		return fs_outcome(errno);
	r = folder_open(s, folder->name, ret_fd);
	if (r)
		return fs_outcome(-r);
	return write_labels(*ret_fd, &folder->labels);
}

static int put_file(struct store *s, struct store_folder *folder, const struct profile *profile)
{
	const struct store_profile row = {
		.folder = folder,
		.kind = profile->kind,
		.start_ns = profile->start_ns / NSEC_PER_MSEC * NSEC_PER_MSEC,
		.duration_ns = store_name_duration(profile->duration_ns),
		.bytes = disk_bytes(profile->pprof_len),
	};
	_cleanup_(close_fdp) int fd = -1;
	char file[STORE_NAME_MAX];
	int r;

	r = store_table_reserve(&s->table);
	if (r)
		return r;
	r = folder_make(s, folder, &fd);
	if (r)
		return r;
	store_table_file(&row, file);
	r = write_file(fd, file, profile->pprof, profile->pprof_len);
	if (r)
		return r;
	store_table_insert(&s->table, &row);
	return 0;
}

static int put(struct store *s, const struct profile *profile)
{
	uint64_t bytes = disk_bytes(profile->pprof_len);
	struct store_folder *folder;
	int r;

	if (bytes > s->max_bytes || profile->pprof_len > STORE_PROFILE_SIZE_MAX)
		return STORE_TOO_LARGE;
	make_room(s, bytes, 1);
	r = folder_of(s, &profile->labels, &folder);
	if (r)
		return r;
	r = put_file(s, folder, profile);
	if (r)
		folder_drop_empty(s, folder);
	return r;
}

int store_put(struct store *s, const struct profile *profile)
{
	int r;

	store_trim(s, nsec_wall());
	r = put(s, profile);
	s->counts[r < 0 ? STORE_FAILED : r]++;
	return r;
}

/* ---- opening */

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

static int scan_file(struct store *s, struct store_folder *folder, int fd, const char *file)
{
	struct store_profile row = {.folder = folder};
	struct store_name name;
	struct stat st;

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
	row.bytes = disk_bytes((uint64_t)st.st_size);
	return store_table_append(&s->table, &row, SCAN_PROFILES_MAX);
}

static int scan_folder(struct store *s, const char *name)
{
	_cleanup_(labels_deinit) struct labels labels = {0};
	_cleanup_(closedirp) DIR *dir = NULL;
	struct store_folder *folder;
	struct dirent *entry;
	int fd = -1, r;

	if (!store_name_is_folder(name) || folder_open(s, name, &fd))
		return 0;
	dir = fdopendir(fd); /* takes the descriptor */
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	r = read_labels(fd, name, &labels);
	if (!r)
		r = store_table_add_folder(&s->table, name, &labels, &folder);
	if (r)
		return r < 0 ? r : 0;
	while (!r && (entry = readdir(dir)))
		r = scan_file(s, folder, fd, entry->d_name);
	if (!r)
		folder_drop_empty(s, folder);
	return r;
}

static int scan(struct store *s)
{
	_cleanup_(closedirp) DIR *dir = NULL;
	struct dirent *entry;
	int fd, r = 0;

	fd = openat(s->root.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fs_outcome(errno);
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while (!r && (entry = readdir(dir)))
		r = scan_folder(s, entry->d_name);
	store_table_sort(&s->table);
	return r;
}

static int open_dir(struct store *s, const char *path)
{
	int r = atomic_file_make_dir(path, 0750);

	if (r)
		return fs_outcome(-r);
	s->root.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->root.fd < 0)
		return fs_outcome(errno);
	if (flock(s->root.fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	/* without locks in the file system, the user must prevent a second agent */
	return errno == EWOULDBLOCK ? STORE_BUSY : 0;
}

int store_open(const struct store_opts *opts, struct store **ret)
{
	_cleanup_(store_freep) struct store *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->root = (struct root)ROOT_INIT;
	s->max_bytes = opts->max_bytes;
	s->max_age_ns = opts->max_age_ns;
	r = open_dir(s, opts->dir);
	if (!r)
		r = scan(s);
	if (r)
		return r;
	store_trim(s, nsec_wall());
	*ret = take_ptr(s);
	return 0;
}

void store_free(struct store *s)
{
	if (!s)
		return;
	store_table_deinit(&s->table);
	root_deinit(&s->root);
	free(s);
}

/* ---- looking */

size_t store_n_profiles(const struct store *s)
{
	return store_table_n(&s->table);
}

const struct store_profile *store_at(const struct store *s, size_t i)
{
	return &s->table.profiles[s->table.first + i];
}

const struct store_profile *store_find(const struct store *s, uint64_t id)
{
	return store_table_find(&s->table, id);
}

void store_file_of(const struct store_profile *profile, struct store_file *ret)
{
	snprintf(ret->folder, sizeof(ret->folder), "%s", profile->folder->name);
	store_table_file(profile, ret->name);
}

int store_read_file(const struct store *s, const struct store_file *file, struct buf *ret)
{
	_cleanup_(root_deinit) struct root folder = ROOT_INIT;
	_cleanup_(close_fdp) int fd = -1;
	struct stat st;
	int r;

	r = folder_open(s, file->folder, &folder.fd);
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

/* ---- metrics */

const char *store_outcome_name(int outcome)
{
	static const char *const names[STORE_OUTCOME_MAX] = {
		[STORE_OK] = "stored",
		[STORE_DISK_FULL] = "disk_full",
		[STORE_READ_ONLY] = "read_only",
		[STORE_TOO_LARGE] = "too_large",
		[STORE_FOLDERS] = "too_many_folders",
		[STORE_FAILED] = "failed",
		[STORE_GONE] = "gone",
		[STORE_BUSY] = "busy",
	};

	return outcome >= 0 && outcome < STORE_OUTCOME_MAX ? names[outcome] : "failed";
}

void store_collect(void *store, struct metric_sink *sink)
{
	static const struct metric_family_desc bytes = {
		"podprof_store_bytes", METRIC_GAUGE,
		"Disk space of the stored profiles, in whole blocks.", "bytes"};
	static const struct metric_family_desc files = {"podprof_store_files", METRIC_GAUGE,
							"Stored profiles.", NULL};
	static const struct metric_family_desc profiles = {"podprof_store_profiles", METRIC_COUNTER,
							   "Profiles for the store by outcome.",
							   NULL};
	static const struct metric_family_desc removed = {"podprof_store_removed", METRIC_COUNTER,
							  "Stored profiles removed, by reason.",
							  NULL};
	static const char *const reasons[] = {"bytes", "age", "count"};
	const struct store *s = store;
	const char *names[STORE_GONE];

	for (int i = 0; i < STORE_GONE; i++)
		names[i] = store_outcome_name(i);
	metric_family(sink, &bytes);
	metric_u64(sink, s->table.bytes, NULL, 0);
	metric_family(sink, &files);
	metric_u64(sink, store_n_profiles(s), NULL, 0);
	metric_by_name(sink, &profiles, "outcome", s->counts, names, STORE_GONE);
	metric_by_name(sink, &removed, "reason", s->removed, reasons, REMOVAL_MAX);
}
