// SPDX-License-Identifier: Apache-2.0
/*
 * Each start of the agent begins a new segment, so nothing is ever written behind a torn record. A
 * write that fails half way is undone by ftruncate(); if that fails too, the spool continues in a
 * new segment.
 *
 * The page cache survives the end of the process: write() suffices against a kill. A power cut may
 * cost the writes since the last fdatasync(), which the spool requests some seconds after a write.
 */
#include "export/spool_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "export/lockdir.h"

#define NAME_FORMAT    "%016" PRIx64 ".segment"
#define NAME_LEN       24
/* A larger number is not ours: the numbers would overflow. 0 is no segment. */
#define NUMBER_END     (UINT64_MAX / 2)
/* Files examined at the start. Reached: the others stay where they are. */
#define SCAN_FILES_MAX 65536
/* Bytes of one file that are read at the start: the largest segment (spool.c) and a record.
 * Reached: the rest of the file is unreadable. */
#define SCAN_BYTES_MAX (16u << 20)

/* @fd: the open segment, or -1. */
struct spool_disk {
	char *path;
	int dir_fd;
	int fd;
};

const char *spool_outcome_name(int outcome)
{
	static const char *const names[SPOOL_OUTCOME_MAX] = {
		[SPOOL_OK] = "stored",		 [SPOOL_DISK_FULL] = "disk_full",
		[SPOOL_READ_ONLY] = "read_only", [SPOOL_FAILED] = "failed",
		[SPOOL_TOO_LARGE] = "too_large", [SPOOL_BLOCKED] = "blocked",
		[SPOOL_BUSY] = "busy",
	};

	return outcome >= 0 && outcome < SPOOL_OUTCOME_MAX ? names[outcome] : "failed";
}

static int outcome_of(int err)
{
	switch (err) {
	case ENOMEM: /* our side: says nothing about the file */
	case EMFILE:
	case ENFILE:
		return -err;
	case ENOSPC:
	case EDQUOT:
		return SPOOL_DISK_FULL;
	case EROFS:
	case EACCES:
	case EPERM:
		return SPOOL_READ_ONLY;
	default:
		return SPOOL_FAILED;
	}
}

DEFINE_CLEANUP(struct spool_disk *, spool_disk_freep, spool_disk_free);

int spool_disk_new(const char *dir, struct spool_disk **ret)
{
	_cleanup_(spool_disk_freep) struct spool_disk *disk = calloc(1, sizeof(*disk));

	if (!disk)
		return -ENOMEM;
	disk->dir_fd = disk->fd = -1;
	disk->path = strdup(dir);
	if (!disk->path)
		return -ENOMEM;
	*ret = take_ptr(disk);
	return 0;
}

int spool_disk_open(struct spool_disk *disk, pid_t *ret_holder)
{
	int r = lockdir_open(disk->path, 0700, &disk->dir_fd, ret_holder);

	return r < 0 ? outcome_of(-r) : r ? SPOOL_BUSY : 0;
}

void spool_disk_free(struct spool_disk *disk)
{
	if (!disk)
		return;
	close_fdp(&disk->fd);
	close_fdp(&disk->dir_fd);
	free(disk->path);
	free(disk);
}

/* ---- reading */

static void segment_name(uint64_t number, char ret[NAME_LEN + 1])
{
	snprintf(ret, NAME_LEN + 1, NAME_FORMAT, number);
}

static bool name_parse(const char *name, uint64_t *ret)
{
	char same[NAME_LEN + 1];

	if (strspn(name, "0123456789abcdef") != 16)
		return false;
	*ret = strtoull(name, NULL, 16);
	segment_name(*ret, same);
	return strcmp(same, name) == 0 && *ret && *ret <= NUMBER_END;
}

static int segment_open(const struct spool_disk *disk, uint64_t number, int *ret_fd)
{
	char name[NAME_LEN + 1];
	struct stat st;
	int fd;

	segment_name(number, name);
	fd = openat(disk->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return outcome_of(errno);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return SPOOL_FAILED;
	}
	*ret_fd = fd;
	return 0;
}

/* Up to @len bytes. */
static int read_some(int fd, uint64_t off, size_t len, struct buf *ret)
{
	char *at;
	int r = buf_reserve(ret, len, &at);

	if (r)
		return r < 0 ? r : SPOOL_FAILED;
	while (len) {
		ssize_t n = pread(fd, at, len, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return outcome_of(errno);
		if (n == 0)
			return 0;
		at += n;
		off += (uint64_t)n;
		len -= (size_t)n;
		ret->len += (size_t)n;
	}
	return 0;
}

int spool_disk_read(const struct spool_disk *disk, uint64_t number, uint32_t off, size_t len,
		    struct buf *ret)
{
	_cleanup_(close_fdp) int fd = -1;
	size_t before = ret->len;
	int r = segment_open(disk, number, &fd);

	if (!r)
		r = read_some(fd, off, len, ret);
	return r ? r : ret->len - before == len ? 0 : SPOOL_FAILED;
}

/* ---- reading everything */

struct scan {
	const uint64_t *destinations;
	unsigned int n_destinations;
	struct spool_contents *contents;
};

/* False for a destination that is no longer configured. */
static bool find_destination(const struct scan *scan, uint64_t id, unsigned int *ret)
{
	for (*ret = 0; *ret < scan->n_destinations; (*ret)++)
		if (scan->destinations[*ret] == id)
			return true;
	return false;
}

static int scan_profile(const struct scan *scan, struct spool_segment *segment,
			const struct spool_record *record, uint32_t off)
{
	struct spool_place place = {off, record->pprof_len, record->delta_len, 0};
	unsigned int d;
	int r = spool_index_reserve(segment, 1);

	if (r)
		return r;
	for (unsigned int i = 0; i < record->n_destinations; i++)
		if (find_destination(scan, record->destinations[i], &d))
			place.live |= (uint8_t)(1u << d);
	spool_index_add(&scan->contents->index, segment, &place, record->start_ns);
	return 0;
}

static void scan_acks(const struct scan *scan, const struct spool_record *record)
{
	struct spool_ack ack;
	struct cursor c;
	unsigned int d;

	cursor_init(&c, record->body, record->body_len);
	while (!spool_ack_next(&c, &ack))
		if (find_destination(scan, ack.destination, &d))
			(void)spool_index_acknowledge(&scan->contents->index, &ack, d);
}

/* SPOOL_FORMAT_END, SPOOL_FORMAT_INVALID or -errno. */
static int scan_bytes(const struct scan *scan, struct spool_segment *segment,
		      const struct buf *bytes)
{
	struct spool_record record;
	struct cursor c;
	int r;

	cursor_init(&c, bytes->data ? bytes->data : "", bytes->len);
	r = spool_magic_read(&c);
	while (!r) {
		uint32_t off = (uint32_t)cursor_pos(&c);

		r = spool_record_next(&c, &record);
		if (!r && record.type == SPOOL_PROFILE)
			r = scan_profile(scan, segment, &record, off);
		else if (!r)
			scan_acks(scan, &record);
	}
	return r;
}

static int scan_segment(const struct spool_disk *disk, const struct scan *scan, uint64_t number)
{
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(SCAN_BYTES_MAX);
	_cleanup_(close_fdp) int fd = -1;
	struct spool_segment *segment;
	struct stat st = {0};
	int end, r = spool_index_add_segment(&scan->contents->index, number, &segment);

	if (r)
		return r;
	r = segment_open(disk, number, &fd);
	if (!r && !fstat(fd, &st))
		r = read_some(fd, 0,
			      st.st_size < SCAN_BYTES_MAX ? (size_t)st.st_size : SCAN_BYTES_MAX,
			      &bytes);
	spool_index_add_bytes(&scan->contents->index, segment, (uint64_t)st.st_size);
	if (r < 0)
		return r; /* without its profiles the segment would be removed as done */
	end = scan_bytes(scan, segment, &bytes);
	if (end < 0)
		return end;
	scan->contents->n_damaged += r || end == SPOOL_FORMAT_INVALID;
	return 0;
}

static int compare_numbers(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static int list_numbers(const struct spool_disk *disk, uint64_t **ret, size_t *ret_n)
{
	_cleanup_(closedirp) DIR *dir = NULL;
	_cleanup_(freep) uint64_t *numbers = calloc(SCAN_FILES_MAX, sizeof(*numbers));
	int fd = openat(disk->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	size_t n = 0;

	dir = fd < 0 ? NULL : fdopendir(fd); /* takes the descriptor */
	if (!dir) {
		int err = errno;

		close_fdp(&fd);
		return outcome_of(err);
	}
	if (!numbers)
		return -ENOMEM;
	for (errno = 0; n < SCAN_FILES_MAX && (entry = readdir(dir)); errno = 0)
		n += name_parse(entry->d_name, &numbers[n]);
	if (errno)
		return outcome_of(errno); /* numbers are missing */
	qsort(numbers, n, sizeof(*numbers), compare_numbers);
	*ret = take_ptr(numbers);
	*ret_n = n;
	return 0;
}

int spool_disk_read_all(struct spool_disk *disk, const uint64_t *destinations,
			unsigned int n_destinations, uint8_t deltas, struct spool_contents *ret)
{
	struct scan scan = {destinations, n_destinations, ret};
	_cleanup_(freep) uint64_t *numbers = NULL;
	size_t n = 0;
	int r = list_numbers(disk, &numbers, &n);

	*ret = (struct spool_contents){.index.deltas = deltas};
	for (size_t i = 0; !r && i < n; i++)
		r = scan_segment(disk, &scan, numbers[i]);
	if (r)
		spool_index_deinit(&ret->index);
	else
		ret->next_number = n ? numbers[n - 1] + 1 : 1;
	return r;
}

/* ---- writing */

int spool_disk_sync(struct spool_disk *disk)
{
	return disk->fd >= 0 && fdatasync(disk->fd) ? outcome_of(errno) : 0;
}

bool spool_disk_is_open(const struct spool_disk *disk)
{
	return disk->fd >= 0;
}

static int write_at(int fd, uint64_t off, const char *at, size_t n)
{
	while (n) {
		ssize_t done = pwrite(fd, at, n, (off_t)off);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return outcome_of(errno);
		at += done;
		off += (uint64_t)done;
		n -= (size_t)done;
	}
	return 0;
}

int spool_disk_begin(struct spool_disk *disk, uint64_t number)
{
	char name[NAME_LEN + 1];
	int fd, r;

	(void)spool_disk_sync(disk); /* the loss is the earlier segment's, and stays the same */
	close_fdp(&disk->fd);
	disk->fd = -1;
	segment_name(number, name);
	/* never an existing file: the list of numbers may have missed a segment with profiles */
	fd = openat(disk->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return outcome_of(errno);
	r = write_at(fd, 0, SPOOL_MAGIC, SPOOL_MAGIC_LEN);
	if (r) {
		close(fd);
		(void)unlinkat(disk->dir_fd, name, 0);
		return r;
	}
	(void)fsync(disk->dir_fd); /* the name; some file systems refuse */
	disk->fd = fd;
	return 0;
}

void spool_disk_cut(struct spool_disk *disk, uint64_t off)
{
	if (disk->fd >= 0 && ftruncate(disk->fd, (off_t)off)) {
		close(disk->fd);
		disk->fd = -1;
	}
}

int spool_disk_write(struct spool_disk *disk, uint64_t off, const void *data, size_t n)
{
	int r = disk->fd < 0 ? SPOOL_FAILED : write_at(disk->fd, off, data, n);

	if (r)
		spool_disk_cut(disk, off);
	return r;
}

int spool_disk_remove(struct spool_disk *disk, uint64_t number)
{
	char name[NAME_LEN + 1];

	segment_name(number, name);
	return unlinkat(disk->dir_fd, name, 0) && errno != ENOENT ? outcome_of(errno) : 0;
}
