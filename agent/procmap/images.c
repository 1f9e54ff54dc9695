// SPDX-License-Identifier: Apache-2.0
/*
 * A file has two identities. The image's own comes from fstat() of the opened file: device, inode,
 * size and time of the last change. The other comes from the kernel's view of a mapping
 * (/proc/PID/maps and MMAP2 records): device and inode. On overlayfs and btrfs the two differ.
 *
 * The second identity finds an image without opening a file; for an ended process there is no other
 * way. The inode cannot belong to another file, because the image holds its file open. A write in
 * place is possible, and fstat() of the open file detects it.
 */
#include "procmap/images.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "procmap/mapped.h"

/* Images, each with an open file. A new file above the limit shares a stand-in image. Reached:
 * `podprof_resolved_pcs_total{outcome="images_full"}`. */
#define IMAGES_MAX	      8192
/* The vDSO of a 64-bit process is above this; 32-bit processes have another image. */
#define IMAGES_VDSO_START_MIN (1ull << 32)

/* The identity of an image. Compared as bytes. */
struct image_key {
	uint64_t device;
	uint64_t inode;
	uint64_t size;
	uint64_t mtime_ns;
	uint64_t opened; /* 0: the numbers are the kernel's */
};

struct shown_key {
	uint64_t device;
	uint64_t inode;
};

struct image_entry {
	struct image_key key;
	struct shown_key shown;
	bool is_shown;	     /* also found by the kernel's numbers: the newest image with these */
	struct image *image; /* owns a reference */
	UT_hash_handle hh;
	UT_hash_handle hh_shown;
};

struct images {
	const struct root *proc;
	struct image_entry *by_key;
	struct image_entry *by_shown;
	struct image *kernel;
	struct image *vdso;
	struct image *anon;
	struct image *unknown;
	struct image *full;
};

DEFINE_CLEANUP(struct images *, images_freep, images_free);

/* ---------------------------------------------------------------- the table */

static struct image_entry *find(struct images *t, const struct image_key *key)
{
	struct image_entry *e;

	HASH_FIND(hh, t->by_key, key, sizeof(*key), e);
	return e;
}

static struct image_entry *find_shown(struct images *t, const struct maps_entry *entry)
{
	struct shown_key key = {.device = entry->device, .inode = entry->inode};
	struct image_entry *e;

	HASH_FIND(hh_shown, t->by_shown, &key, sizeof(key), e);
	return e;
}

static void hide(struct images *t, struct image_entry *e)
{
	if (e->is_shown)
		HASH_DELETE(hh_shown, t->by_shown, e);
	e->is_shown = false;
}

/* Registers the kernel's numbers of @entry for @e. Without memory, later lookups open the file. */
static void show(struct images *t, struct image_entry *e, const struct maps_entry *entry)
{
	struct image_entry *other = find_shown(t, entry);
	bool hash_oom = false;

	if (other == e)
		return;
	if (other)
		hide(t, other);
	hide(t, e);
	e->shown = (struct shown_key){.device = entry->device, .inode = entry->inode};
	HASH_ADD(hh_shown, t->by_shown, shown, sizeof(e->shown), e);
	e->is_shown = !hash_oom;
}

static void drop(struct images *t, struct image_entry *e)
{
	hide(t, e);
	HASH_DEL(t->by_key, e);
	image_unref(e->image);
	free(e);
}

/* Nobody can take a reference to an image that only the table holds, except through this module. */
void images_sweep(struct images *t)
{
	struct image_entry *e, *next;

	HASH_ITER(hh, t->by_key, e, next)
		if (__atomic_load_n(&e->image->refs, __ATOMIC_ACQUIRE) == 1)
			drop(t, e);
}

/* Takes @image on success. */
static int add(struct images *t, const struct image_key *key, struct image *image,
	       struct image_entry **ret)
{
	struct image_entry *e = calloc(1, sizeof(*e));
	bool hash_oom = false;

	if (!e)
		return -ENOMEM;
	e->key = *key;
	HASH_ADD(hh, t->by_key, key, sizeof(e->key), e);
	if (hash_oom) {
		free(e);
		return -ENOMEM;
	}
	e->image = image;
	*ret = e;
	return 0;
}

/* ---------------------------------------------------------------- making */

static int new_image(const struct image_key *key, const char *path, int fd, struct image **ret)
{
	int elf, r;

	if (fd >= 0)
		return image_new_file(fd, path, ret, &elf);
	r = image_new(IMAGE_FILE, path, ret);
	if (r)
		return r;
	(*ret)->device = key->device;
	(*ret)->inode = key->inode;
	return 0;
}

/* A new image for @key, or the stand-in above the limit. Takes @fd; with -1 the image has no
 * file. */
static int make(struct images *t, const struct image_key *key, const struct maps_entry *entry,
		int fd, struct image **ret)
{
	struct image_entry *e;
	struct image *image;
	int r;

	if (HASH_COUNT(t->by_key) >= IMAGES_MAX)
		images_sweep(t);
	if (HASH_COUNT(t->by_key) >= IMAGES_MAX) {
		if (fd >= 0)
			close(fd);
		*ret = image_ref(t->full);
		return 0;
	}
	r = new_image(key, entry->path, fd, &image);
	if (r) {
		if (fd >= 0)
			close(fd);
		return r;
	}
	r = add(t, key, image, &e);
	if (r) {
		image_unref(image);
		return r;
	}
	if (key->opened)
		show(t, e, entry);
	*ret = image_ref(image);
	return 0;
}

static struct image_key key_of_stat(const struct stat *st)
{
	return (struct image_key){
		.device = st->st_dev,
		.inode = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_ns =
			(uint64_t)st->st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st->st_mtim.tv_nsec,
		.opened = 1,
	};
}

/* The image of a found file. MAPPED_* if opening it fails. */
static int of_found(struct images *t, int path_fd, const struct maps_entry *entry,
		    struct image **ret)
{
	struct image_entry *known;
	struct image_key key;
	struct stat st;
	int fd, r;

	if (fstat(path_fd, &st) < 0)
		return -errno;
	key = key_of_stat(&st);
	known = find(t, &key);
	if (known) {
		show(t, known, entry);
		*ret = image_ref(known->image);
		return 0;
	}
	r = mapped_open(path_fd, &fd);
	if (r)
		return r;
	return make(t, &key, entry, fd, ret);
}

/* A file without permission to open still has a name and an offset. */
static int of_numbers(struct images *t, const struct maps_entry *entry, struct image **ret)
{
	struct image_key key = {.device = entry->device, .inode = entry->inode};
	struct image_entry *known = find(t, &key);

	if (known) {
		*ret = image_ref(known->image);
		return 0;
	}
	return make(t, &key, entry, -1, ret);
}

/* Without free descriptors the file counts as unavailable until the next window. */
static bool make_do(int r)
{
	return r > 0 || r == -EMFILE || r == -ENFILE;
}

/* Shared memory may hold a program without a file on disk (fexecve of a memfd), or a JIT's code. */
static struct image *program_or_anon(struct images *t, struct image *image)
{
	if (image->file)
		return image;
	image_unref(image);
	return image_ref(t->anon);
}

/* The image of a mapping without a file. */
static struct image *of_memory(struct images *t, const struct maps_entry *entry)
{
	if (entry->kind == MAPS_VDSO && entry->start >= IMAGES_VDSO_START_MIN)
		return image_ref(t->vdso);
	return image_ref(t->anon);
}

static bool has_inode(const struct maps_entry *entry)
{
	return entry->kind == MAPS_FILE || (entry->kind == MAPS_ANON && entry->inode);
}

int images_of_entry(struct images *t, uint64_t pid, const struct maps_entry *entry,
		    struct image **ret)
{
	_cleanup_(close_fdp) int path_fd = -1;
	struct image *image;
	int r;

	if (!has_inode(entry)) {
		*ret = of_memory(t, entry);
		return 0;
	}
	r = mapped_find(t->proc, pid, entry, &path_fd);
	if (!r)
		r = of_found(t, path_fd, entry, &image);
	if (make_do(r))
		r = of_numbers(t, entry, &image);
	if (r)
		return r;
	*ret = entry->kind == MAPS_FILE ? image : program_or_anon(t, image);
	return 0;
}

/* ---------------------------------------------------------------- by records */

static int below_roots(struct images *t, const struct maps_entry *entry, const uint64_t *pids,
		       size_t n_pids, struct image **ret)
{
	int r = MAPPED_GONE;

	for (size_t i = 0; i < n_pids && r > 0; i++) {
		_cleanup_(close_fdp) int path_fd = -1;

		if (!pids[i])
			continue;
		r = mapped_find_below(t->proc, pids[i], entry, &path_fd);
		if (!r)
			r = of_found(t, path_fd, entry, ret);
	}
	return r;
}

int images_of_record(struct images *t, const struct maps_entry *entry, const uint64_t *pids,
		     size_t n_pids, struct image **ret)
{
	struct image_entry *known;
	struct image *image;
	int r;

	if (!has_inode(entry)) {
		*ret = of_memory(t, entry);
		return 0;
	}
	known = find_shown(t, entry);
	if (known && !image_unchanged(known->image))
		known = NULL;
	/* a file that failed to open is not retried while the image has references */
	if (!known)
		known = find(t,
			     &(struct image_key){.device = entry->device, .inode = entry->inode});
	if (known) {
		*ret = image_ref(known->image);
		return 0;
	}
	r = below_roots(t, entry, pids, n_pids, &image);
	if (make_do(r))
		r = of_numbers(t, entry, &image);
	if (r)
		return r;
	*ret = entry->kind == MAPS_FILE ? image : program_or_anon(t, image);
	return 0;
}

/* ---------------------------------------------------------------- life */

int images_new(const struct root *proc, struct images **ret)
{
	_cleanup_(images_freep) struct images *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->proc = proc;
	r = image_new(IMAGE_KERNEL, "[kernel.kallsyms]", &t->kernel);
	if (!r)
		r = image_new(IMAGE_ANON, "[anon]", &t->anon);
	if (!r)
		r = image_new(IMAGE_UNKNOWN, "[unknown]", &t->unknown);
	if (!r)
		r = image_new(IMAGE_UNKNOWN, "[unknown]", &t->full);
	if (!r)
		r = image_new_vdso(&t->vdso);
	if (r)
		return r;
	*ret = take_ptr(t);
	return 0;
}

void images_free(struct images *t)
{
	struct image_entry *e, *next;

	if (!t)
		return;
	HASH_ITER(hh, t->by_key, e, next)
		drop(t, e);
	image_unref(t->kernel);
	image_unref(t->vdso);
	image_unref(t->anon);
	image_unref(t->unknown);
	image_unref(t->full);
	free(t);
}

struct image *images_kernel(const struct images *t)
{
	return t->kernel;
}

struct image *images_vdso(const struct images *t)
{
	return t->vdso;
}

struct image *images_unknown(const struct images *t)
{
	return t->unknown;
}

struct image *images_full(const struct images *t)
{
	return t->full;
}

size_t images_bytes(const struct images *t)
{
	return HASH_COUNT(t->by_key) * (sizeof(struct image_entry) + sizeof(struct image)) +
	       HASH_OVERHEAD(hh, t->by_key) + HASH_OVERHEAD(hh_shown, t->by_shown);
}

void images_collect(void *images, struct metric_sink *sink)
{
	static const struct metric_family_desc family = {"podprof_images", METRIC_GAUGE,
							 "Known mapped files, by state.", NULL};
	static const char *const states[] = {"elf", "not_elf"};
	const struct images *t = images;
	uint64_t counts[2] = {0};

	for (const struct image_entry *e = t->by_key; e; e = e->hh.next)
		counts[e->image->file ? 0 : 1]++;
	metric_by_name(sink, &family, "state", counts, states, array_size(states));
}
