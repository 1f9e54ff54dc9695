// SPDX-License-Identifier: Apache-2.0
/*
 * The files are the truth; what is in memory is their names in the order of use, which a file's
 * modification time tells the next start. Whatever is wrong with one costs a compilation.
 *
 * Who may write to the directory decides how other programs' stacks look, so it must be ours alone;
 * and files are under a secret (tablefile.h) that was made with the directory, so that one which
 * was put there by somebody else, or came from another machine, is taken for damaged.
 *
 * Another program makes other tables, so what it has left is not used. Which program this is says
 * its own build id: nobody has to remember to count a version up.
 */
#include "unwindtable/tablecache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/root.h"
#include "unwindtable/contents.h"
#include "unwindtable/tablefile.h"

/* What a file takes at least on the usual file systems. */
#define BLOCK_BYTES	4096u
#define SECRET		"secret"
#define SUFFIX		".table"
#define HEX		"0123456789abcdef"
#define NO_BUILD_ID	"none"
/* Digits of the build id in a name: GNU's are 40. It is for people, the contents tell. */
#define NAME_BUILD_ID	40u
#define CONTENTS_DIGITS 16u
/* Files looked at when the cache is opened. More cannot be ours; they stay where they are. Reached:
 * they stay where they are. */
#define SCAN_FILES_MAX	((size_t)4 * TABLECACHE_FILES_MAX)

/* In the hash by name, from the least to the most recently used. */
struct file {
	char name[64];
	uint64_t bytes;
	uint64_t used_ns; /* when the cache was opened */
	UT_hash_handle hh;
};

struct tablecache {
	struct root root;
	uint64_t max_bytes;
	uint64_t maker;
	struct digest_key secret;
	struct file *files;
	struct tablecache_stats stats;
};

DEFINE_CLEANUP(struct tablecache *, tablecache_freep, tablecache_free);
DEFINE_CLEANUP(struct elffile *, elffile_freep, elffile_free);

/* An errno of writing. */
static int write_outcome(int err)
{
	switch (err) {
	case ENOMEM:
		return -ENOMEM;
	case ENOSPC:
	case EDQUOT:
		return TABLECACHE_DISK_FULL;
	case EROFS:
	case EACCES:
	case EPERM:
		return TABLECACHE_READ_ONLY;
	default:
		return TABLECACHE_FAILED;
	}
}

static uint64_t disk_bytes(uint64_t size)
{
	return (size + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
}

/* ---------------------------------------------------------------- what is there */

static struct file *find(const struct tablecache *c, const char *name)
{
	struct file *f;

	HASH_FIND_STR(c->files, name, f);
	return f;
}

/* The most recently used one from now on. */
static int add(struct tablecache *c, struct file *f)
{
	bool hash_oom = false;

	HASH_ADD_STR(c->files, name, f);
	if (hash_oom)
		return -ENOMEM;
	c->stats.bytes += f->bytes;
	c->stats.n_files++;
	return 0;
}

static void forget(struct tablecache *c, struct file *f)
{
	HASH_DEL(c->files, f);
	c->stats.bytes -= f->bytes;
	c->stats.n_files--;
	free(f);
}

static void remove_file(struct tablecache *c, const char *name)
{
	struct file *f = find(c, name);

	(void)unlinkat(c->root.fd, name, 0); /* if not, it is found at the next start again */
	if (f)
		forget(c, f);
}

/* So that @n more files with @bytes fit. */
static void make_room(struct tablecache *c, uint64_t bytes, size_t n)
{
	while (c->files && (c->stats.bytes > c->max_bytes - bytes ||
			    c->stats.n_files + n > TABLECACHE_FILES_MAX)) {
		remove_file(c, c->files->name);
		c->stats.removed++;
	}
}

static int note(struct tablecache *c, const char *name, uint64_t size)
{
	struct file *f = find(c, name);

	if (f)
		forget(c, f);
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	snprintf(f->name, sizeof(f->name), "%s", name);
	f->bytes = disk_bytes(size);
	if (add(c, f)) {
		free(f);
		return -ENOMEM;
	}
	return 0;
}

/* The time to the nanosecond: what the kernel would put there is the time of its last tick. */
static void stamp(const struct tablecache *c, const char *name)
{
	struct timespec times[2];

	(void)clock_gettime(CLOCK_REALTIME, &times[0]);
	times[1] = times[0];
	(void)utimensat(c->root.fd, name, times, AT_SYMLINK_NOFOLLOW);
}

static void touch(struct tablecache *c, struct file *f)
{
	bool hash_oom = false;

	stamp(c, f->name);
	HASH_DEL(c->files, f);
	HASH_ADD_STR(c->files, name, f);
	if (!hash_oom)
		return;
	/* its file is found at the next start again */
	c->stats.bytes -= f->bytes;
	c->stats.n_files--;
	free(f);
}

/* ---------------------------------------------------------------- names */

static void name_of(const struct elffile *image, uint64_t contents, struct tablecache_key *ret)
{
	char build_id[2 * ELFFILE_BUILD_ID_MAX + 1] = NO_BUILD_ID;
	uint8_t bytes[ELFFILE_BUILD_ID_MAX];
	size_t n = 0;

	if (!elffile_build_id(image, bytes, &n) && n)
		for (size_t i = 0; i < n; i++)
			snprintf(build_id + 2 * i, 3, "%02x", bytes[i]);
	ret->contents = contents;
	snprintf(ret->name, sizeof(ret->name), "%.*s-%016llx" SUFFIX, (int)NAME_BUILD_ID, build_id,
		 (unsigned long long)contents);
}

static bool is_ours(const char *name)
{
	size_t n = strspn(name, HEX), digits;

	if (strncmp(name, NO_BUILD_ID "-", strlen(NO_BUILD_ID "-")) == 0)
		n = strlen(NO_BUILD_ID);
	if (!n || n > NAME_BUILD_ID || name[n] != '-')
		return false;
	digits = strspn(name + n + 1, HEX);
	return digits == CONTENTS_DIGITS && strcmp(name + n + 1 + digits, SUFFIX) == 0;
}

/* When the image was last written to, or anything else was changed of its file; 0 for one in
 * memory. Nobody but the kernel's clock sets it. */
static uint64_t changed_ns(const struct elffile *image)
{
	struct stat st;

	if (elffile_stat(image, &st))
		return 0;
	return (uint64_t)st.st_ctim.tv_sec * 1000000000u + (uint64_t)st.st_ctim.tv_nsec;
}

/* ---------------------------------------------------------------- reading */

/* A regular file of ours. */
static int open_file(const struct tablecache *c, const char *name, int *ret)
{
	_cleanup_(close_fdp) int fd =
		openat(c->root.fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? TABLECACHE_MISS : TABLECACHE_UNREADABLE;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return TABLECACHE_UNREADABLE;
	*ret = take_fd(fd);
	return 0;
}

static int read_table(struct tablecache *c, const struct tablecache_key *key, struct table **ret)
{
	const struct tablefile_id id = {.contents = key->contents, .maker = c->maker};
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(TABLEFILE_BYTES_MAX);
	_cleanup_(close_fdp) int fd = -1;
	int r = open_file(c, key->name, &fd);

	if (r)
		return r;
	r = root_read_fd(fd, &bytes);
	if (r == ROOT_TOO_LARGE)
		return TABLECACHE_DAMAGED;
	if (r)
		return r == -ENOMEM ? r : TABLECACHE_UNREADABLE;
	r = tablefile_read(bytes.data, bytes.len, &id, &c->secret, ret);
	if (r > 0)
		r = r == TABLEFILE_FOREIGN ? TABLECACHE_FOREIGN : TABLECACHE_DAMAGED;
	return r;
}

int tablecache_get(struct tablecache *c, const struct elffile *image,
		   struct tablecache_key *ret_key, struct table **ret)
{
	struct file *f;
	uint64_t contents;
	int r;

	ret_key->changed_ns = changed_ns(image);
	r = contents_digest(image, &c->secret, &contents);
	if (r)
		return r < 0 ? r : -EIO;
	name_of(image, contents, ret_key);
	r = read_table(c, ret_key, ret);
	if (r < 0)
		return r;
	c->stats.reads[r]++;
	f = find(c, ret_key->name);
	if (r == TABLECACHE_DAMAGED || r == TABLECACHE_FOREIGN)
		remove_file(c, ret_key->name);
	else if (!r && f)
		touch(c, f);
	else if (f)
		forget(c, f);
	return r;
}

/* ---------------------------------------------------------------- writing */

static int put(struct tablecache *c, const struct elffile *image, const struct tablecache_key *key,
	       const struct table *table)
{
	const struct tablefile_id id = {.contents = key->contents, .maker = c->maker};
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(TABLEFILE_BYTES_MAX);
	int r = tablefile_write(table, &id, &c->secret, &bytes);

	if (r)
		return r == BUF_FULL ? TABLECACHE_TOO_LARGE : r;
	if (disk_bytes(bytes.len) > c->max_bytes)
		return TABLECACHE_TOO_LARGE;
	/* what was compiled may be of bytes that came after those that were counted */
	if (changed_ns(image) != key->changed_ns)
		return TABLECACHE_CHANGED;
	make_room(c, disk_bytes(bytes.len), 1);
	r = atomic_file_write(c->root.fd, key->name, 0600, bytes.data, bytes.len);
	if (r)
		return write_outcome(-r);
	stamp(c, key->name);
	return note(c, key->name, bytes.len);
}

int tablecache_put(struct tablecache *c, const struct elffile *image,
		   const struct tablecache_key *key, const struct table *table)
{
	int r = put(c, image, key, table);

	c->stats.writes[r < 0 ? TABLECACHE_FAILED : r]++;
	return r;
}

/* ---------------------------------------------------------------- opening */

/* The secret that the files are under, made with the directory. What is no secret of ours makes all
 * files damaged; then there is a new one. */
static int read_secret(struct tablecache *c)
{
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(sizeof(c->secret));
	_cleanup_(close_fdp) int fd = -1;
	int r = open_file(c, SECRET, &fd);

	if (!r)
		r = root_read_fd(fd, &bytes);
	if (r == -ENOMEM)
		return r;
	if (!r && bytes.len == sizeof(c->secret)) {
		memcpy(&c->secret, bytes.data, sizeof(c->secret));
		return 0;
	}
	if (getrandom(&c->secret, sizeof(c->secret), 0) != (ssize_t)sizeof(c->secret))
		return TABLECACHE_FAILED;
	r = atomic_file_write(c->root.fd, SECRET, 0600, &c->secret, sizeof(c->secret));
	return r ? write_outcome(-r) : 0;
}

static int by_use(const void *a, const void *b)
{
	const struct file *left = *(const struct file *const *)a;
	const struct file *right = *(const struct file *const *)b;

	if (left->used_ns != right->used_ns)
		return left->used_ns < right->used_ns ? -1 : 1;
	return strcmp(left->name, right->name);
}

static int scan_file(struct tablecache *c, const char *name)
{
	struct stat st;
	int r;

	if (atomic_file_unfinished(name)) {
		(void)unlinkat(c->root.fd, name, 0);
		return 0;
	}
	if (!is_ours(name) || c->stats.n_files >= SCAN_FILES_MAX ||
	    fstatat(c->root.fd, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return 0;
	r = note(c, name, (uint64_t)st.st_size);
	if (!r)
		find(c, name)->used_ns =
			(uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
	return r;
}

/* uthash keeps the order in which things are added. */
static int order_by_use(struct tablecache *c)
{
	_cleanup_(freep) struct file **all = calloc(c->stats.n_files + 1, sizeof(struct file *));
	struct file *f, *next;
	bool hash_oom = false;
	size_t n = 0;

	if (!all)
		return -ENOMEM;
	HASH_ITER(hh, c->files, f, next)
		all[n++] = f;
	qsort(all, n, sizeof(struct file *), by_use);
	for (size_t i = 0; i < n; i++) {
		HASH_DEL(c->files, all[i]);
		HASH_ADD_STR(c->files, name, all[i]);
		if (hash_oom) {
			free(all[i]);
			return -ENOMEM;
		}
	}
	return 0;
}

static int scan(struct tablecache *c)
{
	_cleanup_(closedirp) DIR *dir = NULL;
	struct dirent *entry;
	int fd = openat(c->root.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;

	if (fd < 0)
		return write_outcome(errno);
	dir = fdopendir(fd); /* takes it */
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while (!r && (entry = readdir(dir)))
		r = scan_file(c, entry->d_name);
	return r ? r : order_by_use(c);
}

static int open_dir(struct tablecache *c, const char *path)
{
	struct stat st;
	int r = atomic_file_make_dir(path, 0700);

	if (r)
		return write_outcome(-r);
	c->root.fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (c->root.fd < 0 || fstat(c->root.fd, &st))
		return write_outcome(errno);
	if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return TABLECACHE_UNSAFE;
	if (flock(c->root.fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	/* some file systems have no locks: then the user has to see to it */
	return errno == EWOULDBLOCK ? TABLECACHE_BUSY : 0;
}

static int open_self(struct elffile **ret)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return write_outcome(errno);
	if (elffile_open(fd, ret) == 0)
		return 0;
	close(fd);
	errno = ENOEXEC;
	return TABLECACHE_FAILED;
}

/* This program, as far as anybody can tell it from another. */
static int find_maker(struct tablecache *c, const char *maker)
{
	_cleanup_(elffile_freep) struct elffile *self = NULL;
	uint8_t id[ELFFILE_BUILD_ID_MAX];
	struct digest d;
	size_t n = 0;
	int r;

	digest_init(&d, &c->secret);
	if (maker) {
		digest_add(&d, maker, strlen(maker));
		c->maker = digest_end(&d);
		return 0;
	}
	r = open_self(&self);
	if (r)
		return r;
	if (elffile_build_id(self, id, &n)) {
		errno = ENOEXEC;
		return TABLECACHE_FAILED;
	}
	digest_add(&d, id, n);
	c->maker = digest_end(&d);
	return 0;
}

int tablecache_open(const struct tablecache_opts *opts, struct tablecache **ret)
{
	_cleanup_(tablecache_freep) struct tablecache *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->root = (struct root)ROOT_INIT;
	c->max_bytes = opts->max_bytes;
	r = open_dir(c, opts->dir);
	if (!r)
		r = read_secret(c);
	if (!r)
		r = find_maker(c, opts->maker);
	if (!r)
		r = scan(c);
	if (r)
		return r;
	make_room(c, 0, 0);
	*ret = take_ptr(c);
	return 0;
}

void tablecache_free(struct tablecache *c)
{
	struct file *f, *next;

	if (!c)
		return;
	HASH_ITER(hh, c->files, f, next)
		forget(c, f);
	root_deinit(&c->root);
	free(c);
}

struct tablecache_stats tablecache_stats(const struct tablecache *c)
{
	return c->stats;
}

const char *tablecache_outcome_name(int outcome)
{
	static const char *const names[TABLECACHE_OUTCOME_MAX] = {
		[TABLECACHE_OK] = "ok",
		[TABLECACHE_MISS] = "miss",
		[TABLECACHE_DAMAGED] = "corrupt",
		[TABLECACHE_FOREIGN] = "other_version",
		[TABLECACHE_UNREADABLE] = "unreadable",
		[TABLECACHE_DISK_FULL] = "disk_full",
		[TABLECACHE_READ_ONLY] = "read_only",
		[TABLECACHE_TOO_LARGE] = "too_large",
		[TABLECACHE_CHANGED] = "changed",
		[TABLECACHE_FAILED] = "failed",
		[TABLECACHE_UNSAFE] = "unsafe",
		[TABLECACHE_BUSY] = "busy",
	};

	return outcome >= 0 && outcome < TABLECACHE_OUTCOME_MAX ? names[outcome] : "failed";
}
