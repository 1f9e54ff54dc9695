// SPDX-License-Identifier: Apache-2.0
/*
 * A file has two identities. The image's own comes from fstat() of the opened file
 * (base/file_id.h). The other comes from the kernel's view of a mapping (/proc/PID/maps and MMAP2
 * records): device and inode. On overlayfs and btrfs the two differ.
 *
 * The second identity finds an image without opening a file; for an ended process there is no other
 * way. The inode cannot belong to another file, because the image holds its file open. A write in
 * place is possible, and fstat() of the open file detects it.
 *
 * The table holds a reference to each image, and drops the image after all other references are
 * gone. So the last reference goes, and the file is closed, in images_sweep() or with
 * images_take_unused(). Closing a file can block as long as opening it.
 */
#include "procmap/images.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file_id.h"
#include "base/hash.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/root.h"
#include "base/share.h"
#include "base/wall.h"
#include "procmap/jitdump_file.h"
#include "procmap/mapped.h"
#include "procmap/perf_map_file.h"

/* Images, each with an open file; an owner may have a share of them (base/share.h). A new file
 * above the limit shares a stand-in image. Reached:
 * `podprof_resolved_pcs_total{outcome="images_full"}`. */
#define IMAGES_MAX	      8192
/* The vDSO of a 64-bit process is above this; 32-bit processes have another image. */
#define IMAGES_VDSO_START_MIN (1ull << 32)

/* Of images of memory: no file system has this number. */
#define IMAGES_MEMORY_DEVICE UINT64_MAX

/* The identity of an image. Compared as bytes. */
struct image_key {
	struct file_id id;
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
	struct share_holder *owner; /* the first one; NULL: no one's share */
	STAILQ_ENTRY(image_entry) in_unused;
	UT_hash_handle hh;
	UT_hash_handle hh_shown;
};

struct images {
	struct root proc; /* own descriptor: a blocked thread may outlive the caller */
	int refs;
	pthread_mutex_t lock; /* guards all below but the shared images */
	struct image_entry *by_key;
	struct image_entry *by_shown;
	STAILQ_HEAD(, image_entry) unused; /* out of both tables */
	struct share_holder *owners;	   /* of images */
	struct image *kernel;
	struct image *vdso;
	struct image *anon;
	struct image *unknown;
	struct image *full;
};

DEFINE_CLEANUP(struct images *, images_unrefp, images_unref);

/* ---------------------------------------------------------------- the table */

/* All functions of this part need the lock. */

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

/* Moves @e out of the tables to the unused entries. */
static void evict(struct images *t, struct image_entry *e)
{
	hide(t, e);
	HASH_DEL(t->by_key, e);
	if (e->owner) {
		e->owner->held--;
		share_holder_put(&t->owners, e->owner);
	}
	e->owner = NULL;
	STAILQ_INSERT_HEAD(&t->unused, e, in_unused);
}

/* Evicts all images that only the table holds; of @owner alone if that is not NULL. No one else can
 * take a reference to such an image, except through this module. */
static void evict_unused(struct images *t, const struct share_holder *owner)
{
	struct image_entry *e, *next;

	HASH_ITER(hh, t->by_key, e, next)
		if ((!owner || e->owner == owner) &&
		    __atomic_load_n(&e->image->refs, __ATOMIC_ACQUIRE) == 1)
			evict(t, e);
}

static struct share_holder *find_owner(struct images *t, uint64_t id)
{
	return id ? share_holder_find(t->owners, id) : NULL;
}

/* Whether the ceiling and the share of @owner_id allow one more image. */
static bool has_room(struct images *t, uint64_t owner_id)
{
	const struct share_holder *owner = find_owner(t, owner_id);
	const size_t n = HASH_COUNT(t->by_key);

	return n < IMAGES_MAX && (!owner || share_allows(IMAGES_MAX, n, owner->held));
}

/* The same after an eviction of unused images, where necessary. */
static bool make_room(struct images *t, uint64_t owner_id)
{
	struct share_holder *owner;

	if (HASH_COUNT(t->by_key) >= IMAGES_MAX)
		evict_unused(t, NULL);
	if (has_room(t, owner_id))
		return true;
	owner = find_owner(t, owner_id);
	if (!owner || HASH_COUNT(t->by_key) >= IMAGES_MAX)
		return false;
	owner->held++; /* so that it stays */
	evict_unused(t, owner);
	owner->held--;
	share_holder_put(&t->owners, owner);
	return has_room(t, owner_id);
}

/* Takes @image on success. */
static int add(struct images *t, const struct image_key *key, uint64_t owner, struct image *image,
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
	e->owner = owner ? share_holder_get(&t->owners, owner) : NULL;
	if (e->owner)
		e->owner->held++;
	e->image = image;
	*ret = e;
	return 0;
}

static void drop_unused(struct images *t)
{
	struct image *image;

	while ((image = images_take_unused(t, NULL, 0)))
		image_unref(image);
}

bool images_have_room(struct images *t, uint64_t owner)
{
	bool room;

	pthread_mutex_lock(&t->lock);
	room = has_room(t, owner);
	pthread_mutex_unlock(&t->lock);
	return room;
}

void images_evict_unused(struct images *t)
{
	pthread_mutex_lock(&t->lock);
	evict_unused(t, NULL);
	pthread_mutex_unlock(&t->lock);
}

void images_sweep(struct images *t)
{
	images_evict_unused(t);
	drop_unused(t);
}

static bool is_among(uint64_t device, const uint64_t *devices, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (devices[i] == device)
			return true;
	return false;
}

/* Skipped images move to the end of the list, so the next call does not pass them again. */
struct image *images_take_unused(struct images *t, const uint64_t *devices, size_t n)
{
	struct image_entry *e, *skipped = NULL;
	struct image *image = NULL;

	pthread_mutex_lock(&t->lock);
	while ((e = STAILQ_FIRST(&t->unused)) && e != skipped &&
	       is_among(e->image->id.device, devices, n)) {
		STAILQ_REMOVE_HEAD(&t->unused, in_unused);
		STAILQ_INSERT_TAIL(&t->unused, e, in_unused);
		if (!skipped)
			skipped = e;
	}
	e = e == skipped ? NULL : e;
	if (e) {
		STAILQ_REMOVE_HEAD(&t->unused, in_unused);
		image = e->image;
	}
	pthread_mutex_unlock(&t->lock);
	free(e);
	return image;
}

/* ---------------------------------------------------------------- making */

static int new_image(const struct image_key *key, const char *path, int fd, enum image_fault fault,
		     struct image **ret)
{
	bool is_memory = key->id.device == IMAGES_MEMORY_DEVICE;
	int elf, r;

	if (fd >= 0)
		return image_new_file(fd, path, ret, &elf);
	r = image_new(is_memory ? IMAGE_ANON : IMAGE_FILE, path[0] ? path : "[anon]", ret);
	if (r)
		return r;
	(*ret)->id = key->id;
	(*ret)->fault = fault;
	return 0;
}

/* The image of @key if it is known; a reference. Without @entry the kernel's numbers stay. */
static struct image *known_image(struct images *t, const struct image_key *key,
				 const struct maps_entry *entry)
{
	struct image *image = NULL;
	struct image_entry *known;

	pthread_mutex_lock(&t->lock);
	known = find(t, key);
	if (known) {
		image = image_ref(known->image);
		if (entry)
			show(t, known, entry);
	}
	pthread_mutex_unlock(&t->lock);
	return image;
}

/* Adds @image, or finds that another thread has added one. Takes @image on success. */
static int enter(struct images *t, const struct image_key *key, uint64_t owner,
		 const struct maps_entry *entry, struct image *image, struct image **ret)
{
	struct image *needless = NULL;
	struct image_entry *e;
	int r = 0;

	pthread_mutex_lock(&t->lock);
	e = find(t, key);
	if (e)
		needless = image;
	else
		r = add(t, key, owner, image, &e);
	if (!r) {
		if (key->opened)
			show(t, e, entry);
		*ret = image_ref(e->image);
	}
	pthread_mutex_unlock(&t->lock);
	image_unref(needless);
	return r;
}

/* A new image for @key, or the stand-in above the limit. Takes @fd; with -1 the image has no
 * file, because of @fault. */
static int make(struct images *t, const struct image_key *key, const struct images_way *way,
		const struct maps_entry *entry, int fd, enum image_fault fault, struct image **ret)
{
	struct image *image;
	bool room;
	int r;

	pthread_mutex_lock(&t->lock);
	room = make_room(t, way->owner);
	pthread_mutex_unlock(&t->lock);
	if (!room) {
		if (fd >= 0)
			close(fd);
		*ret = image_ref(t->full);
		return 0;
	}
	r = new_image(key, entry->path, fd, fault, &image);
	if (r) {
		if (fd >= 0)
			close(fd);
		return r;
	}
	image->mapped_by = way->pid;
	image->began_ns = way->began_ns;
	image->wall_at_boot_ns = wall_at_boot();
	r = enter(t, key, way->owner, entry, image, ret);
	if (r)
		image_unref(image);
	return r;
}

/* The image of a found file. MAPPED_* if opening it fails. */
static int of_found(struct images *t, int path_fd, const struct images_way *way,
		    const struct maps_entry *entry, struct image **ret)
{
	const uint64_t at_ns = nsec_boot();
	struct image *known;
	struct image_key key;
	struct stat st;
	int fd, r;

	if (fstat(path_fd, &st) < 0)
		return -errno;
	key = (struct image_key){.id = file_id_of_stat(&st), .opened = 1};
	known = known_image(t, &key, entry);
	if (known) {
		image_set_checked(known, at_ns);
		*ret = known;
		return 0;
	}
	r = mapped_open(path_fd, &fd);
	if (!r)
		r = make(t, &key, way, entry, fd, IMAGE_NO_FAULT, ret);
	if (!r)
		image_set_checked(*ret, at_ns);
	return r;
}

/* A file without permission to open still has a name and an offset. */
static int of_numbers(struct images *t, const struct images_way *way,
		      const struct maps_entry *entry, enum image_fault fault, struct image **ret)
{
	struct image_key key = {.id = {.device = entry->device, .inode = entry->inode}};
	struct image *known = known_image(t, &key, NULL);

	if (known) {
		*ret = known;
		return 0;
	}
	return make(t, &key, way, entry, -1, fault, ret);
}

/* Without free descriptors the file counts as unavailable until the next window. */
static bool make_do(int r)
{
	return r > 0 || r == -EMFILE || r == -ENFILE;
}

bool images_needs_file(const struct maps_entry *entry)
{
	return entry->kind == MAPS_FILE || (entry->kind == MAPS_ANON && entry->inode);
}

/* An image for each program of a process, and name: addresses in memory mean nothing in another
 * process, or after an exec. */
static struct image_key memory_key(const struct images_way *way, const char *name)
{
	return (struct image_key){
		.id = {.device = IMAGES_MEMORY_DEVICE,
		       .inode = hash_words(hash_words(way->pid.pid, way->pid.start_ticks),
					   way->exec_id),
		       .size = way->pid.pid,
		       .mtime_ns = way->pid.start_ticks,
		       .ctime_ns = hash_bytes(name, strlen(name))},
	};
}

/* Without memory, or above the limit, the image is of no process. */
static struct image *memory_of(struct images *t, const struct images_way *way,
			       const struct maps_entry *entry)
{
	const char *name = entry->path[0] ? entry->path : t->anon->path;
	const struct image_key key = memory_key(way, name);
	struct image *image = known_image(t, &key, NULL);

	if (image)
		return image;
	if (make(t, &key, way, entry, -1, IMAGE_NO_FAULT, &image))
		return image_ref(t->anon);
	if (image == t->full) {
		image_unref(image);
		image = image_ref(t->anon);
	}
	return image;
}

/* Shared memory may hold a program without a file on disk (fexecve of a memfd), or a JIT's code. */
static struct image *program_or_memory(struct images *t, const struct images_way *way,
				       const struct maps_entry *entry, struct image *image)
{
	if (image->file)
		return image;
	image_unref(image);
	return memory_of(t, way, entry);
}

struct image *images_of_memory(struct images *t, const struct images_way *way,
			       const struct maps_entry *entry)
{
	static const struct images_way nobody;

	if (entry->kind == MAPS_VDSO && entry->start >= IMAGES_VDSO_START_MIN)
		return image_ref(t->vdso);
	/* the kernel's, such as [vsyscall], which each process has */
	return memory_of(t, entry->kind == MAPS_ANON ? way : &nobody, entry);
}

void images_open_memory(struct images *t, const struct images_way *way,
			const struct maps_entry *entry, struct image **ret)
{
	struct image *image = memory_of(t, way, entry);
	int fd;

	/* the symbolizer tells why there is no perf map: it asks again */
	if (image->mapped_by.pid && image_perf_map(image) < 0 &&
	    perf_map_file_open(&t->proc, &way->pid, way->began_ns, image->wall_at_boot_ns, &fd) ==
		    0)
		image_set_perf_map(image, fd);
	*ret = image;
}

void images_open_jitdump(struct images *t, const struct images_way *way, const struct maps *maps,
			 struct image *const *memory, size_t n)
{
	_cleanup_(close_fdp) int fd = -1;

	for (size_t i = 0; i < n; i++) {
		int copy;

		if (!memory[i]->mapped_by.pid || image_jitdump(memory[i]) >= 0)
			continue;
		if (fd < 0 && jitdump_file_open(&t->proc, &way->pid, maps, &fd))
			return;
		copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (copy >= 0)
			image_set_jitdump(memory[i], copy);
	}
}

/* Through the directory of the process @pid in /proc. */
static int via(struct images *t, uint64_t pid, const struct images_way *way,
	       const struct maps_entry *entry, struct image **ret)
{
	_cleanup_(close_fdp) int path_fd = -1;
	int r = mapped_find(&t->proc, pid, entry, &path_fd);
	uint64_t inode = way->inode;

	/* by now another process may have the pid */
	if (!r && pid == way->via_pid && way->pid.pid &&
	    pid_check_inode(&t->proc, &way->pid, &inode))
		r = MAPPED_GONE;
	return r ? r : of_found(t, path_fd, way, entry, ret);
}

/* The result @r of a search, or a stand-in without a file. */
static int finish(struct images *t, int r, const struct images_way *way,
		  const struct maps_entry *entry, struct image *image, struct image **ret)
{
	if (make_do(r))
		r = of_numbers(t, way, entry, r == MAPPED_DENIED ? IMAGE_DENIED : IMAGE_GONE,
			       &image);
	if (r)
		return r;
	*ret = entry->kind == MAPS_FILE ? image : program_or_memory(t, way, entry, image);
	return 0;
}

int images_of_entry(struct images *t, const struct images_way *way, const struct maps_entry *entry,
		    struct image **ret)
{
	struct image *image = NULL;
	int r;

	if (!images_needs_file(entry)) {
		*ret = images_of_memory(t, way, entry);
		return 0;
	}
	r = via(t, way->via_pid, way, entry, &image);
	return finish(t, r, way, entry, image, ret);
}

/* ---------------------------------------------------------------- by records */

static int below_roots(struct images *t, const struct images_way *way,
		       const struct maps_entry *entry, struct image **ret)
{
	int r = MAPPED_GONE;

	for (size_t i = 0; i < IMAGES_LIKELY_MAX && r > 0; i++) {
		_cleanup_(close_fdp) int path_fd = -1;

		if (!way->likely[i])
			continue;
		r = mapped_find_below(&t->proc, way->likely[i], entry, &path_fd);
		if (!r)
			r = of_found(t, path_fd, way, entry, ret);
	}
	return r;
}

struct image *images_guess(struct images *t, const struct maps_entry *entry)
{
	struct image *image = NULL;
	struct image_entry *known;

	pthread_mutex_lock(&t->lock);
	known = find_shown(t, entry);
	if (known)
		image = image_ref(known->image);
	pthread_mutex_unlock(&t->lock);
	return image;
}

int images_of_record(struct images *t, const struct images_way *way, const struct maps_entry *entry,
		     struct image **ret)
{
	const struct image_key key = {.id = {.device = entry->device, .inode = entry->inode}};
	struct image *shown, *image = NULL;
	enum image_change change;
	int r = MAPPED_GONE;

	if (!images_needs_file(entry)) {
		*ret = images_of_memory(t, way, entry);
		return 0;
	}
	shown = images_guess(t, entry);
	change = shown ? image_change(shown) : IMAGE_WRITTEN;
	/* a file that failed to open is not retried while the image has references */
	*ret = change == IMAGE_SAME ? image_ref(shown) : known_image(t, &key, NULL);
	if (*ret) {
		image_unref(shown);
		return 0;
	}
	if (way->parent)
		r = via(t, way->parent, way, entry, &image);
	if (r > 0)
		r = below_roots(t, way, entry, &image);
	/* most programs without a path are deleted ones: touched, but with the same content */
	if (make_do(r) && change == IMAGE_TOUCHED) {
		*ret = shown;
		return 0;
	}
	image_unref(shown);
	return finish(t, r, way, entry, image, ret);
}

int images_find(struct images *t, const struct images_way *way, const struct maps_entry *entry,
		struct image **ret)
{
	struct image *image = NULL;
	int r = MAPPED_GONE;

	if (way->via_pid)
		r = via(t, way->via_pid, way, entry, &image);
	if (r == MAPPED_GONE)
		return images_of_record(t, way, entry, ret);
	return finish(t, r, way, entry, image, ret);
}

/* ---------------------------------------------------------------- life */

int images_new(const struct root *proc, struct images **ret)
{
	_cleanup_(images_unrefp) struct images *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->refs = 1;
	STAILQ_INIT(&t->unused);
	pthread_mutex_init(&t->lock, NULL);
	t->proc = (struct root)ROOT_INIT;
	r = root_dup(proc, &t->proc);
	if (r)
		return r;
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

struct images *images_ref(struct images *t)
{
	__atomic_add_fetch(&t->refs, 1, __ATOMIC_RELAXED);
	return t;
}

void images_unref(struct images *t)
{
	struct image_entry *e, *next;

	if (!t || __atomic_sub_fetch(&t->refs, 1, __ATOMIC_ACQ_REL))
		return;
	HASH_ITER(hh, t->by_key, e, next)
		evict(t, e);
	drop_unused(t);
	image_unref(t->kernel);
	image_unref(t->vdso);
	image_unref(t->anon);
	image_unref(t->unknown);
	image_unref(t->full);
	pthread_mutex_destroy(&t->lock);
	root_deinit(&t->proc);
	free(t);
}

const struct root *images_proc(const struct images *t)
{
	return &t->proc;
}

void images_leave_open(struct images *t)
{
	pthread_mutex_lock(&t->lock);
	for (struct image_entry *e = t->by_key; e; e = e->hh.next)
		image_leave_open(e->image);
	for (struct image_entry *e = STAILQ_FIRST(&t->unused); e; e = STAILQ_NEXT(e, in_unused))
		image_leave_open(e->image);
	pthread_mutex_unlock(&t->lock);
}

struct image *images_kernel(const struct images *t)
{
	return t->kernel;
}

struct image *images_unknown(const struct images *t)
{
	return t->unknown;
}

struct image *images_full(const struct images *t)
{
	return t->full;
}

size_t images_bytes(struct images *t)
{
	size_t bytes;

	pthread_mutex_lock(&t->lock);
	bytes = HASH_COUNT(t->by_key) * (sizeof(struct image_entry) + sizeof(struct image)) +
		HASH_COUNT(t->owners) * sizeof(struct share_holder) + HASH_OVERHEAD(hh, t->by_key) +
		HASH_OVERHEAD(hh, t->owners) + HASH_OVERHEAD(hh_shown, t->by_shown);
	pthread_mutex_unlock(&t->lock);
	return bytes;
}

void images_collect(struct images *t, uint64_t n_opening, uint64_t n_slow, struct metric_sink *sink)
{
	static const struct metric_family_desc family = {"podprof_images", METRIC_GAUGE,
							 "Known mapped files, by state.", NULL};
	static const char *const states[] = {"elf", "not_elf", "opening", "slow", "memory"};
	uint64_t counts[] = {0, 0, n_opening, n_slow, 0};

	pthread_mutex_lock(&t->lock);
	for (const struct image_entry *e = t->by_key; e; e = e->hh.next)
		counts[e->image->kind == IMAGE_ANON ? 4 : e->image->file ? 0 : 1]++;
	pthread_mutex_unlock(&t->lock);
	metric_by_name(sink, &family, "state", counts, states, array_size(states));
}
