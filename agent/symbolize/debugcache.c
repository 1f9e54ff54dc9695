// SPDX-License-Identifier: Apache-2.0
/*
 * An unfinished file is "BUILD-ID.part". The file "servers" tells whose marks "BUILD-ID.absent"
 * are. Nothing else is in the directory; other names are left alone and do not count.
 */
#include "symbolize/debugcache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/root.h"

#define ID_TEXT_MIN  16
/* Hexadecimal digits of a build id. Reached: the debug file is not asked for. */
#define ID_TEXT_MAX  128
#define NAME_BYTES   (ID_TEXT_MAX + sizeof(".absent"))
/* Bytes of the text of servers. Reached: the marks are not kept for the next start. */
#define SERVERS_MAX  (64u << 10)
/* A download arrives in pieces of 1 KiB. */
#define WRITE_BUFFER ((size_t)128 << 10)

struct debugcache {
	int fd;
	uint64_t max_bytes;
	uint64_t absent_ns;
	bool has_marks;	 /* they can be kept, and are of the same servers */
	size_t n_absent; /* marks */
};

struct debugcache_file {
	struct debugcache *cache;
	FILE *stream;
	uint64_t bytes;
	char name[NAME_BYTES], part[NAME_BYTES];
};

DEFINE_CLEANUP(struct debugcache *, debugcache_freep, debugcache_free);
DEFINE_CLEANUP(struct debugcache_file *, debugcache_filep, debugcache_abandon);

bool debugcache_id_ok(const char *build_id)
{
	size_t n = strspn(build_id, "0123456789abcdef");

	return !build_id[n] && n >= ID_TEXT_MIN && n <= ID_TEXT_MAX && n % 2 == 0;
}

/* The build id's part of a name with this ending, or 0. */
static bool has_ending(const char *name, const char *ending)
{
	size_t n = strspn(name, "0123456789abcdef");

	return n >= ID_TEXT_MIN && n <= ID_TEXT_MAX && strcmp(name + n, ending) == 0;
}

/* ---------------------------------------------------------------- the directory */

/* The files of the directory, during a listing. */
struct entry {
	char name[NAME_BYTES];
	uint64_t bytes;
	uint64_t used_ns;
};

struct listing {
	struct entry *entries;
	size_t n;
	size_t cap;
	uint64_t bytes;
};

static void listing_deinit(struct listing *l)
{
	free(l->entries);
}

static int listing_add(struct listing *l, const char *name, const struct stat *st)
{
	struct entry *more;

	if (l->n == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 64;
		more = reallocarray(l->entries, l->cap, sizeof(*more));
		if (!more)
			return -ENOMEM;
		l->entries = more;
	}
	snprintf(l->entries[l->n].name, NAME_BYTES, "%s", name);
	l->entries[l->n].bytes = (uint64_t)st->st_size;
	l->entries[l->n].used_ns = nsec_of(&st->st_mtim);
	l->bytes += (uint64_t)st->st_size;
	l->n++;
	return 0;
}

/* @fn: with each name. */
static int each_name(const struct debugcache *c, int (*fn)(void *ctx, const char *name), void *ctx)
{
	_cleanup_(closedirp) DIR *dir = NULL;
	const struct dirent *entry;
	int r = 0, fd = openat(c->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		r = -errno;
		close(fd);
		return r;
	}
	while (!r && (entry = readdir(dir)))
		r = fn(ctx, entry->d_name);
	return r;
}

static int remove_unfinished(void *ctx, const char *name)
{
	const struct debugcache *c = ctx;

	if (has_ending(name, ".part"))
		(void)unlinkat(c->fd, name, 0);
	return 0;
}

struct list_ctx {
	const struct debugcache *cache;
	struct listing *listing;
};

static int list_one(void *ctx, const char *name)
{
	const struct list_ctx *l = ctx;
	struct stat st;

	if (!has_ending(name, ".debug") ||
	    fstatat(l->cache->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return 0;
	return listing_add(l->listing, name, &st);
}

static int by_use(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->used_ns < y->used_ns ? -1 : x->used_ns > y->used_ns;
}

/* Removes the least recently used files, but not @but. */
static int evict(const struct debugcache *c, const char *but)
{
	_cleanup_(listing_deinit) struct listing l = {0};
	struct list_ctx ctx = {c, &l};
	size_t left;
	int r = each_name(c, list_one, &ctx);

	if (r)
		return r;
	if (l.n)
		qsort(l.entries, l.n, sizeof(*l.entries), by_use);
	left = l.n;
	for (size_t i = 0; i < l.n && (l.bytes > c->max_bytes || left > DEBUGCACHE_FILES_MAX);
	     i++) {
		if (strcmp(l.entries[i].name, but) == 0)
			continue;
		if (unlinkat(c->fd, l.entries[i].name, 0) < 0 && errno != ENOENT)
			return -errno;
		l.bytes -= l.entries[i].bytes;
		left--;
	}
	return 0;
}

/* ---------------------------------------------------------------- marks */

static void absent_name(const char *build_id, char ret[NAME_BYTES])
{
	snprintf(ret, NAME_BYTES, "%s.absent", build_id);
}

/* A mark of the future is as old as the clock was wrong, and so useless. */
static bool is_fresh(const struct debugcache *c, const char *name)
{
	const uint64_t now = nsec_wall();
	struct stat st;

	if (fstatat(c->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	return nsec_of(&st.st_mtim) <= now && now - nsec_of(&st.st_mtim) < c->absent_ns;
}

static int remove_mark(void *ctx, const char *name)
{
	struct debugcache *c = ctx;

	if (has_ending(name, ".absent"))
		(void)unlinkat(c->fd, name, 0);
	return 0;
}

static int count_mark(void *ctx, const char *name)
{
	struct debugcache *c = ctx;

	if (!has_ending(name, ".absent"))
		return 0;
	if (is_fresh(c, name))
		c->n_absent++;
	else
		(void)unlinkat(c->fd, name, 0);
	return 0;
}

static bool has_marks_of(const struct debugcache *c, const char *servers)
{
	_cleanup_(close_fdp) int fd =
		openat(c->fd, "servers", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	_cleanup_(buf_deinit) struct buf text;

	buf_init(&text, SERVERS_MAX);
	return fd >= 0 && root_read_fd(fd, &text) == 0 && text.len == strlen(servers) &&
	       memcmp(text.data, servers, text.len) == 0;
}

/* The marks stay if they are answers of @servers. A directory that is mounted read-only has none.
 */
static void open_marks(struct debugcache *c, const char *servers)
{
	if (has_marks_of(c, servers))
		c->has_marks = !each_name(c, count_mark, c);
	else
		c->has_marks = !each_name(c, remove_mark, c) &&
			       !atomic_file_write(c->fd, "servers", 0600, servers, strlen(servers));
}

bool debugcache_is_absent(const struct debugcache *c, const char *build_id)
{
	char name[NAME_BYTES];

	if (!c->has_marks || !debugcache_id_ok(build_id))
		return false;
	absent_name(build_id, name);
	return is_fresh(c, name);
}

int debugcache_set_absent(struct debugcache *c, const char *build_id)
{
	_cleanup_(close_fdp) int fd = -1;
	char name[NAME_BYTES];
	bool is_new;

	if (!c->has_marks)
		return 0;
	absent_name(build_id, name);
	is_new = faccessat(c->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
	if (is_new && c->n_absent >= DEBUGCACHE_ABSENT_MAX) {
		c->n_absent = 0;
		(void)each_name(c, remove_mark, c);
	}
	c->n_absent += is_new;
	fd = openat(c->fd, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	return fd < 0 || futimens(fd, NULL) < 0 ? -errno : 0;
}

/* ---------------------------------------------------------------- files */

int debugcache_get(const struct debugcache *c, const char *build_id, int *ret_fd)
{
	char name[NAME_BYTES];
	int fd;

	if (!debugcache_id_ok(build_id))
		return DEBUGCACHE_ABSENT;
	snprintf(name, sizeof(name), "%s.debug", build_id);
	fd = openat(c->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? DEBUGCACHE_ABSENT : -errno;
	(void)futimens(fd, NULL); /* fails in a directory mounted read-only */
	*ret_fd = fd;
	return 0;
}

int debugcache_begin(struct debugcache *c, const char *build_id, struct debugcache_file **ret)
{
	_cleanup_(debugcache_filep) struct debugcache_file *file = calloc(1, sizeof(*file));
	int fd;

	if (!file)
		return -ENOMEM;
	if (!debugcache_id_ok(build_id))
		return -EINVAL;
	file->cache = c;
	snprintf(file->name, sizeof(file->name), "%s.debug", build_id);
	snprintf(file->part, sizeof(file->part), "%s.part", build_id);
	fd = openat(c->fd, file->part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	file->stream = fdopen(fd, "w");
	if (!file->stream) {
		close(fd);
		return -ENOMEM;
	}
	(void)setvbuf(file->stream, NULL, _IOFBF, WRITE_BUFFER);
	*ret = take_ptr(file);
	return 0;
}

int debugcache_write(struct debugcache_file *file, const void *data, size_t n)
{
	file->bytes += n;
	if (file->bytes > DEBUGCACHE_FILE_MAX)
		return DEBUGCACHE_TOO_LARGE;
	errno = EIO;
	return fwrite(data, 1, n, file->stream) == n ? 0 : -errno;
}

int debugcache_commit(struct debugcache_file *f)
{
	_cleanup_(debugcache_filep) struct debugcache_file *file = f;
	struct debugcache *c = file->cache;

	errno = EIO;
	if (fclose(take_ptr(file->stream)) != 0 ||
	    renameat(c->fd, file->part, c->fd, file->name) < 0)
		return -errno;
	return evict(c, file->name);
}

void debugcache_abandon(struct debugcache_file *file)
{
	if (!file)
		return;
	if (file->stream)
		(void)fclose(file->stream);
	if (file->part[0])
		(void)unlinkat(file->cache->fd, file->part, 0);
	free(file);
}

/* ---------------------------------------------------------------- life */

int debugcache_new(const char *dir, uint64_t max_bytes, const char *servers, uint64_t absent_ns,
		   struct debugcache **ret)
{
	_cleanup_(debugcache_freep) struct debugcache *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->max_bytes = max_bytes;
	c->absent_ns = absent_ns;
	c->fd = -1;
	r = atomic_file_make_dir(dir, 0700);
	if (r)
		return r;
	c->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->fd < 0)
		return -errno;
	r = each_name(c, remove_unfinished, c);
	if (!r)
		r = evict(c, "");
	if (r)
		return r;
	open_marks(c, servers);
	*ret = take_ptr(c);
	return 0;
}

void debugcache_free(struct debugcache *c)
{
	if (!c)
		return;
	close_fdp(&c->fd);
	free(c);
}
