// SPDX-License-Identifier: Apache-2.0
/*
 * The files are the truth; the table in memory is what was found when the store was opened, kept up
 * by what we write and remove since. A file that someone takes away is noticed when it is read or
 * its turn to be removed comes.
 *
 * Writing: to a hidden name in the same folder, then rename(), so that a name never stands for part
 * of a profile; what a crash leaves behind under a hidden name is removed at the next start. There
 * is no fsync(): a power cut may cost the last minute's profiles, waiting for the disk would hold
 * up the loop. All names are made by store_name.c and used relative to the store's directory, one
 * folder deep, without following symbolic links.
 *
 * A full disk, a directory that may not be written: the profile is lost and counted, the next one
 * is tried again.
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

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/root.h"
#include "base/vec.h"
#include "export/store_name.h"

/* What a file takes at least on the usual file systems. */
#define BLOCK_BYTES	     4096u
/* Folders that are tried for one label set when its name is taken: each is another's with the same
 * 32 bits of hash. */
#define FOLDER_ATTEMPTS_MAX  16
#define LABELS_FILE	     "labels.json"
/* LABELS_MAX values of LABELS_VALUE_MAX, six bytes for each when escaped, and their names. */
#define LABELS_FILE_SIZE_MAX (512u << 10)
#define HIDDEN_PREFIX	     ".new-"
/* Files looked at when the store is opened, from which the newest STORE_PROFILES_MAX are kept. More
 * cannot be ours; they stay where they are. */
#define SCAN_PROFILES_MAX    ((size_t)4 * STORE_PROFILES_MAX)

struct folder {
	struct store_folder pub; /* name points to @name */
	UT_hash_handle hh;
	char name[STORE_NAME_MAX];
};

enum removal { REMOVAL_BYTES, REMOVAL_AGE, REMOVAL_COUNT, REMOVAL_MAX };

/* @profiles: [first, end), by start and id. */
struct store {
	struct root root;
	uint64_t max_bytes;
	uint64_t max_age_ns;
	struct folder *folders;
	struct store_profile *profiles;
	size_t first, end, cap;
	uint64_t bytes;
	uint64_t counts[STORE_OUTCOME_MAX];
	uint64_t removed[REMOVAL_MAX];
};

DEFINE_CLEANUP(struct store *, store_freep, store_free);
DEFINE_CLEANUP(json_t *, json_freep, json_decref);

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

/* ---- the table of folders */

static struct folder *folder_find(const struct store *s, const char *name)
{
	struct folder *folder;

	HASH_FIND_STR(s->folders, name, folder);
	return folder;
}

static void folder_free(struct folder *folder)
{
	labels_deinit(&folder->pub.labels);
	free(folder);
}

/* Takes the contents of @labels on success. */
static int folder_add(struct store *s, const char *name, struct labels *labels, struct folder **ret)
{
	bool hash_oom = false;
	struct folder *folder;

	if (HASH_COUNT(s->folders) >= STORE_FOLDERS_MAX)
		return STORE_FOLDERS;
	folder = calloc(1, sizeof(*folder));
	if (!folder)
		return -ENOMEM;
	snprintf(folder->name, sizeof(folder->name), "%s", name);
	folder->pub.name = folder->name;
	HASH_ADD_STR(s->folders, name, folder);
	if (hash_oom) {
		free(folder);
		return -ENOMEM;
	}
	folder->pub.labels = *labels;
	*labels = (struct labels){0};
	*ret = folder;
	return 0;
}

/* The folder of a label set, which is new if nothing of it is stored yet. */
static int folder_of(struct store *s, const struct labels *labels, struct folder **ret)
{
	_cleanup_(labels_deinit) struct labels copy = {0};
	char name[STORE_NAME_MAX];
	int r;

	for (uint32_t i = 0; i < FOLDER_ATTEMPTS_MAX; i++) {
		store_name_folder(labels, i, name);
		*ret = folder_find(s, name);
		if (*ret && labels_equal(&(*ret)->pub.labels, labels))
			return 0;
		if (*ret)
			continue;
		r = labels_copy(labels, &copy);
		return r < 0 ? r : folder_add(s, name, &copy, ret);
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
static void folder_drop_empty(struct store *s, struct folder *folder)
{
	_cleanup_(close_fdp) int fd = -1;

	if (folder->pub.n_profiles)
		return;
	if (!folder_open(s, folder->name, &fd)) {
		/* whatever fails here leaves a file, and is tried again after the next start */
		(void)unlinkat(fd, LABELS_FILE, 0);
		(void)unlinkat(s->root.fd, folder->name, AT_REMOVEDIR);
	}
	HASH_DEL(s->folders, folder);
	folder_free(folder);
}

/* ---- the table of profiles */

static bool same_file(const struct store_profile *a, const struct store_profile *b)
{
	return a->folder == b->folder && a->kind == b->kind && a->start_ns == b->start_ns &&
	       a->duration_ns == b->duration_ns;
}

static bool older(const struct store_profile *a, const struct store_profile *b)
{
	return a->start_ns != b->start_ns ? a->start_ns < b->start_ns : a->id < b->id;
}

/* Close the gap that removing from the front leaves, when it is half of the array. */
static void profiles_compact(struct store *s)
{
	if (s->first < 64 || s->first < s->end / 2)
		return;
	memmove(s->profiles, s->profiles + s->first, store_n_profiles(s) * sizeof(*s->profiles));
	s->end -= s->first;
	s->first = 0;
}

static int profiles_reserve(struct store *s)
{
	profiles_compact(s);
	return vec_grow(&s->profiles, &s->cap, s->end + 1, sizeof(*s->profiles), SIZE_MAX);
}

static void profiles_insert_at(struct store *s, size_t at, const struct store_profile *profile)
{
	memmove(&s->profiles[at + 1], &s->profiles[at], (s->end - at) * sizeof(*s->profiles));
	s->profiles[at] = *profile;
	s->end++;
	s->bytes += profile->bytes;
	((struct folder *)profile->folder)->pub.n_profiles++;
}

/* There is room. Most come in order: search from the end. */
static void profiles_insert(struct store *s, const struct store_profile *profile)
{
	size_t at = s->end;

	while (at > s->first && older(profile, &s->profiles[at - 1]))
		at--;
	profiles_insert_at(s, at, profile);
}

static struct store_profile *profiles_find(const struct store *s, uint64_t id)
{
	for (size_t i = s->first; i < s->end; i++)
		if (s->profiles[i].id == id)
			return &s->profiles[i];
	return NULL;
}

/* Hashes of names that containers choose may be equal: then the later one gets another id. */
static uint64_t free_id(const struct store *s, const char *folder, const char *file)
{
	uint64_t id = store_name_id(folder, file);

	while (!id || profiles_find(s, id))
		id++;
	return id;
}

/* From the table only; the folder stays. */
static struct folder *profiles_remove(struct store *s, struct store_profile *profile)
{
	struct folder *folder = (struct folder *)profile->folder;
	size_t at = (size_t)(profile - s->profiles);

	s->bytes -= profile->bytes;
	folder->pub.n_profiles--;
	if (at == s->first) {
		s->first++;
	} else {
		s->end--;
		memmove(profile, profile + 1, (s->end - at) * sizeof(*profile));
	}
	return folder;
}

static void file_name(const struct store_profile *p, char ret[STORE_NAME_MAX])
{
	const struct store_name name = {p->kind, p->start_ns, p->duration_ns};

	store_name_file(&name, ret);
}

static void remove_oldest(struct store *s, enum removal why)
{
	struct store_profile *oldest = &s->profiles[s->first];
	_cleanup_(close_fdp) int fd = -1;
	char name[STORE_NAME_MAX];

	file_name(oldest, name);
	if (!folder_open(s, oldest->folder->name, &fd))
		(void)unlinkat(fd, name, 0); /* if not, it is found at the next start again */
	s->removed[why]++;
	folder_drop_empty(s, profiles_remove(s, oldest));
}

/* So that @bytes more, and @n more files, fit. */
static void make_room(struct store *s, uint64_t bytes, size_t n)
{
	while (s->first < s->end && s->bytes > s->max_bytes - bytes)
		remove_oldest(s, REMOVAL_BYTES);
	while (s->first < s->end && store_n_profiles(s) + n > STORE_PROFILES_MAX)
		remove_oldest(s, REMOVAL_COUNT);
}

void store_trim(struct store *s, uint64_t now_ns)
{
	while (s->first < s->end && now_ns > s->max_age_ns &&
	       s->profiles[s->first].start_ns < now_ns - s->max_age_ns)
		remove_oldest(s, REMOVAL_AGE);
	make_room(s, 0, 0);
}

/* ---- writing */

static int write_all(int fd, const char *data, size_t n)
{
	while (n) {
		ssize_t done = write(fd, data, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return fs_outcome(errno);
		data += done;
		n -= (size_t)done;
	}
	return 0;
}

/* A file appears under its name as a whole or not at all. */
static int write_file(int folder_fd, const char *name, const char *data, size_t n)
{
	char hidden[STORE_NAME_MAX + sizeof(HIDDEN_PREFIX)];
	int fd, r;

	snprintf(hidden, sizeof(hidden), HIDDEN_PREFIX "%s", name);
	(void)unlinkat(folder_fd, hidden, 0); /* of a start that ended while writing */
	fd = openat(folder_fd, hidden, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (fd < 0)
		return fs_outcome(errno);
	r = write_all(fd, data, n);
	/* network file systems tell about a full disk only now */
	if (close(fd) && !r)
		r = fs_outcome(errno);
	if (!r && renameat(folder_fd, hidden, folder_fd, name))
		r = fs_outcome(errno);
	if (r)
		(void)unlinkat(folder_fd, hidden, 0);
	return r;
}

static int write_labels(int folder_fd, const struct labels *labels)
{
	_cleanup_(json_freep) json_t *object = json_object();
	_cleanup_(freep) char *text = NULL;

	if (faccessat(folder_fd, LABELS_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	for (size_t i = 0; i < labels->n; i++)
		if (json_object_set_new(object, labels->items[i].name,
					json_string(labels->items[i].value)))
			return -ENOMEM;
	text = json_dumps(object, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	if (!text)
		return -ENOMEM;
	return write_file(folder_fd, LABELS_FILE, text, strlen(text));
}

/* The folder on disk, made if it is not there (any more). */
static int folder_make(const struct store *s, const struct folder *folder, int *ret_fd)
{
	int r;

	if (mkdirat(s->root.fd, folder->name, 0750) && errno != EEXIST)
		return fs_outcome(errno);
	r = folder_open(s, folder->name, ret_fd);
	if (r)
		return fs_outcome(-r);
	return write_labels(*ret_fd, &folder->pub.labels);
}

static int put_file(struct store *s, struct folder *folder, const struct profile *profile)
{
	const struct store_name name = {
		.kind = profile->kind,
		.start_ns = profile->start_ns / NSEC_PER_MSEC * NSEC_PER_MSEC,
		.duration_ns = profile->duration_ns / NSEC_PER_MSEC * NSEC_PER_MSEC,
	};
	struct store_profile row = {
		.folder = &folder->pub,
		.kind = name.kind,
		.start_ns = name.start_ns,
		.duration_ns = name.duration_ns,
		.bytes = disk_bytes(profile->pprof_len),
	};
	_cleanup_(close_fdp) int fd = -1;
	char file[STORE_NAME_MAX];
	int r;

	r = profiles_reserve(s);
	if (r)
		return r;
	r = folder_make(s, folder, &fd);
	if (r)
		return r;
	store_name_file(&name, file);
	r = write_file(fd, file, profile->pprof, profile->pprof_len);
	if (r)
		return r;
	for (size_t i = s->end; i-- > s->first;) {
		if (same_file(&s->profiles[i], &row)) { /* it has been replaced on disk */
			profiles_remove(s, &s->profiles[i]);
			break;
		}
	}
	row.id = free_id(s, folder->name, file);
	profiles_insert(s, &row);
	return 0;
}

static int put(struct store *s, const struct profile *profile)
{
	uint64_t bytes = disk_bytes(profile->pprof_len);
	struct folder *folder;
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

/* ---- opening: what is there */

static int labels_of_json(const json_t *object, struct labels *ret)
{
	_cleanup_(labels_deinit) struct labels labels = {0};
	const char *name;
	json_t *value;
	int r;

	/* the macro wants what is not const and does not change it */
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

/* A folder whose labels cannot be read keeps its name, at least. */
static int read_labels(int folder_fd, const char *folder, struct labels *ret)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(LABELS_FILE_SIZE_MAX);
	_cleanup_(json_freep) json_t *object = NULL;
	struct root root = {.fd = folder_fd};
	int r = root_read(&root, LABELS_FILE, &text);

	if (r == -ENOMEM)
		return r;
	if (!r)
		object = json_loadb(text.data ? text.data : "", text.len, 0, NULL);
	r = json_is_object(object) ? labels_of_json(object, ret) : STORE_FAILED;
	return r > 0 ? labels_set(ret, "service_name", folder) : r;
}

static int scan_file(struct store *s, struct folder *folder, int fd, const char *file)
{
	struct store_profile row = {.folder = &folder->pub};
	struct store_name name;
	struct stat st;
	int r;

	if (strncmp(file, HIDDEN_PREFIX, strlen(HIDDEN_PREFIX)) == 0) {
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
	row.id = store_name_id(folder->name, file);
	r = vec_grow(&s->profiles, &s->cap, s->end + 1, sizeof(row), SCAN_PROFILES_MAX);
	if (!r)
		profiles_insert_at(s, s->end, &row);
	return r < 0 ? r : 0;
}

static int scan_folder(struct store *s, const char *name)
{
	_cleanup_(labels_deinit) struct labels labels = {0};
	_cleanup_(closedirp) DIR *dir = NULL;
	struct folder *folder;
	struct dirent *entry;
	int fd = -1, r;

	if (!store_name_is_folder(name) || folder_open(s, name, &fd))
		return 0;
	dir = fdopendir(fd); /* takes it */
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	r = read_labels(fd, name, &labels);
	if (!r)
		r = folder_add(s, name, &labels, &folder);
	if (r)
		return r < 0 ? r : 0;
	while (!r && (entry = readdir(dir)))
		r = scan_file(s, folder, fd, entry->d_name);
	if (!r)
		folder_drop_empty(s, folder);
	return r;
}

static int by_id(const void *a, const void *b)
{
	const struct store_profile *x = a, *y = b;

	return x->id != y->id ? (x->id < y->id ? -1 : 1) : older(x, y) ? -1 : 1;
}

static int by_age(const void *a, const void *b)
{
	return older(a, b) ? -1 : 1;
}

/* Unique ids, then the order the table is kept in. */
static void scan_finish(struct store *s)
{
	struct store_profile *p = s->profiles;

	if (!s->end)
		return;
	qsort(p, s->end, sizeof(*p), by_id);
	for (size_t i = 1; i < s->end; i++)
		if (p[i].id <= p[i - 1].id)
			p[i].id = p[i - 1].id + 1;
	qsort(p, s->end, sizeof(*p), by_age);
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
	scan_finish(s);
	return r;
}

/* mkdir -p */
static int make_parents(const char *path)
{
	_cleanup_(freep) char *copy = strdup(path);

	if (!copy)
		return -ENOMEM;
	for (char *slash = *copy ? strchr(copy + 1, '/') : NULL; slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(copy, 0755) && errno != EEXIST)
			return fs_outcome(errno);
		*slash = '/';
	}
	return mkdir(copy, 0750) && errno != EEXIST ? fs_outcome(errno) : 0;
}

static int open_dir(struct store *s, const char *path)
{
	int r = make_parents(path);

	if (r)
		return r;
	s->root.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->root.fd < 0)
		return fs_outcome(errno);
	if (flock(s->root.fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	/* some file systems have no locks: then the user has to see to it */
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
	struct folder *folder, *next;

	if (!s)
		return;
	HASH_ITER(hh, s->folders, folder, next) {
		HASH_DEL(s->folders, folder);
		folder_free(folder);
	}
	free(s->profiles);
	root_deinit(&s->root);
	free(s);
}

/* ---- looking */

size_t store_n_profiles(const struct store *s)
{
	return s->end - s->first;
}

const struct store_profile *store_at(const struct store *s, size_t i)
{
	return &s->profiles[s->first + i];
}

const struct store_profile *store_find(const struct store *s, uint64_t id)
{
	return profiles_find(s, id);
}

int store_read(const struct store *s, uint64_t id, struct buf *ret)
{
	const struct store_profile *profile = store_find(s, id);
	_cleanup_(root_deinit) struct root folder = ROOT_INIT;
	_cleanup_(close_fdp) int fd = -1;
	char name[STORE_NAME_MAX];
	struct stat st;
	int r;

	if (!profile)
		return STORE_GONE;
	file_name(profile, name);
	r = folder_open(s, profile->folder->name, &folder.fd);
	if (r)
		return r == -ENOENT ? STORE_GONE : fs_outcome(-r);
	fd = openat(folder.fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
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
		[STORE_OK] = "stored",		 [STORE_DISK_FULL] = "disk_full",
		[STORE_READ_ONLY] = "read_only", [STORE_TOO_LARGE] = "too_large",
		[STORE_FOLDERS] = "folders",	 [STORE_FAILED] = "failed",
		[STORE_GONE] = "gone",		 [STORE_BUSY] = "busy",
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
	static const struct metric_family_desc removed = {
		"podprof_store_removed", METRIC_COUNTER,
		"Stored profiles removed by reason: too many bytes, too old, too many.", NULL};
	static const char *const reasons[] = {"bytes", "age", "count"};
	const struct store *s = store;
	const char *names[STORE_GONE];

	for (int i = 0; i < STORE_GONE; i++)
		names[i] = store_outcome_name(i);
	metric_family(sink, &bytes);
	metric_u64(sink, s->bytes, NULL, 0);
	metric_family(sink, &files);
	metric_u64(sink, store_n_profiles(s), NULL, 0);
	metric_by_name(sink, &profiles, "outcome", s->counts, names, STORE_GONE);
	metric_by_name(sink, &removed, "reason", s->removed, reasons, REMOVAL_MAX);
}
