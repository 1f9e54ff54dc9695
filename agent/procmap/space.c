// SPDX-License-Identifier: Apache-2.0
/*
 * Samples bring pcs; what they mean depends on what the process had mapped at that moment, which
 * nobody tells us. So the mappings are read when a process is first seen, and again when there is
 * reason to doubt them:
 *
 *	- a pc outside all of them: a library was loaded, or the process did exec;
 *	- /proc/PID/exe is another file: the process did exec. Programs that are linked to a fixed
 *	  address all have their code at the same one, so that no pc need be outside (a container's
 *	  first program, started by a runtime that is itself such a program, is the usual case);
 *	- a window has passed (space_cache_sweep()): a library may have taken another's place.
 *
 * The first two are looked at once a second for each process at most. When a process has gone, the
 * mappings that were read last stay in use until the sweep, since its last samples come after it.
 *
 * What was mapped there before (same range, offset and inode) keeps its image without opening
 * anything: an image holds its file open, so the inode cannot have become another file's.
 *
 * Everything is counted by outcome for each resolved pc.
 */
#include "procmap/space.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/root.h"
#include "procmap/mapped.h"
#include "procmap/maps.h"

/* Processes whose mappings are kept. One more drops the one that was used least recently, which is
 * counted as "targets" in podprof_space_dropped. */
#define SPACE_TARGETS_MAX     8192
/* Executable mappings of one process. A browser has 300; a JIT that maps each function apart has
 * thousands. Those above it are not kept: the pcs there are counted as unmapped. */
#define SPACE_TARGET_MAPS_MAX 4096
/* Mappings of all processes together (48 bytes each: 12 MiB). Above it the least recently used
 * processes are dropped, counted as "mappings". */
#define SPACE_MAPPINGS_MAX    262144
/* Images, each with an open file. Above it a new file has the unknown image; its pcs are counted as
 * "images_full". */
#define SPACE_IMAGES_MAX      8192
/* Between two looks at one process's mappings. */
#define SPACE_REREAD_NS	      NSEC_PER_SEC
/* Sweeps that a process stays without being asked for. */
#define SPACE_IDLE_SWEEPS     2
/* The vDSO of a 64-bit process is above this; a 32-bit one's is another image. */
#define SPACE_VDSO_START_MIN  (1ull << 32)

enum space_outcome {
	SPACE_FILE,   /* a file, by its segments */
	SPACE_NO_ELF, /* a file that could not be opened or read as ELF: by file offset */
	SPACE_VDSO,
	SPACE_ANON,
	SPACE_UNMAPPED,	  /* outside all executable mappings */
	SPACE_NO_SEGMENT, /* in a mapping, outside what the file says is loaded there */
	SPACE_GONE,	  /* the process had left before its mappings were read */
	SPACE_DENIED,
	SPACE_IMAGES_FULL,
	SPACE_OUTCOME_MAX,
};

static const char *const outcome_names[SPACE_OUTCOME_MAX] = {
	[SPACE_FILE] = "file", [SPACE_NO_ELF] = "no_elf",     [SPACE_VDSO] = "vdso",
	[SPACE_ANON] = "anon", [SPACE_UNMAPPED] = "unmapped", [SPACE_NO_SEGMENT] = "no_segment",
	[SPACE_GONE] = "gone", [SPACE_DENIED] = "denied",     [SPACE_IMAGES_FULL] = "images_full",
};

enum space_drop { DROP_TARGETS, DROP_MAPPINGS, DROP_MAX };

static const char *const drop_names[DROP_MAX] = {
	[DROP_TARGETS] = "targets",
	[DROP_MAPPINGS] = "mappings",
};

struct mapping {
	uint64_t start;
	uint64_t limit;
	uint64_t offset;
	uint64_t device; /* as maps shows them */
	uint64_t inode;
	struct image *image; /* owns a reference */
};

struct exe_id {
	uint64_t device;
	uint64_t inode;
};

struct target_space {
	struct pid_id id;
	struct mapping *items; /* ascending */
	size_t n;
	struct exe_id exe;
	uint64_t looked_ns; /* when the mappings were last read or found unchanged */
	uint64_t read_ns;   /* when they were last read */
	uint64_t used;	    /* tick of the last use */
	unsigned int idle;  /* sweeps since then */
	bool stale;	    /* read again before the next use */
	bool gone;	    /* nothing to be read any more */
	int outcome;	    /* enum maps_outcome of the last read */
	UT_hash_handle hh;
};

/* What makes two files one image. Compared as bytes. */
struct image_key {
	uint64_t device;
	uint64_t inode;
	uint64_t size;
	uint64_t mtime_ns;
	uint64_t opened; /* 0: the numbers are those of maps */
};

struct image_entry {
	struct image_key key;
	struct image *image; /* owns a reference */
	UT_hash_handle hh;
};

struct space_cache {
	const struct root *proc;
	struct target_space *targets;
	size_t n_mappings;
	struct image_entry *images;
	struct image *kernel;
	struct image *vdso;
	struct image *anon;
	struct image *unknown;
	struct image *full; /* unknown, too, but counted apart */
	uint64_t tick;
	uint64_t outcomes[SPACE_OUTCOME_MAX];
	uint64_t dropped[DROP_MAX];
};

DEFINE_CLEANUP(struct space_cache *, space_cache_freep, space_cache_free);

/* ---------------------------------------------------------------- images */

static struct image_entry *find_image(struct space_cache *c, const struct image_key *key)
{
	struct image_entry *e;

	HASH_FIND(hh, c->images, key, sizeof(*key), e);
	return e;
}

static void drop_image(struct space_cache *c, struct image_entry *e)
{
	HASH_DEL(c->images, e);
	image_unref(e->image);
	free(e);
}

/* Those that only the table holds: nobody else can come to refer to them but through us. */
static void drop_unused_images(struct space_cache *c)
{
	struct image_entry *e, *next;

	HASH_ITER(hh, c->images, e, next)
		if (__atomic_load_n(&e->image->refs, __ATOMIC_ACQUIRE) == 1)
			drop_image(c, e);
}

/* Takes @image on success. */
static int add_image(struct space_cache *c, const struct image_key *key, struct image *image)
{
	struct image_entry *e = calloc(1, sizeof(*e));
	bool hash_oom = false;

	if (!e)
		return -ENOMEM;
	e->key = *key;
	HASH_ADD(hh, c->images, key, sizeof(e->key), e);
	if (hash_oom) {
		free(e);
		return -ENOMEM;
	}
	e->image = image;
	return 0;
}

static bool images_full(struct space_cache *c)
{
	if (HASH_COUNT(c->images) < SPACE_IMAGES_MAX)
		return false;
	drop_unused_images(c);
	return HASH_COUNT(c->images) >= SPACE_IMAGES_MAX;
}

/* A new image for @key, or the one that says that there is no room. With @fd -1 it has no file. */
static int make_image(struct space_cache *c, const struct image_key *key, const char *path, int fd,
		      struct image **ret)
{
	struct image *image = NULL;
	int elf, r;

	if (images_full(c)) {
		if (fd >= 0)
			close(fd);
		*ret = image_ref(c->full);
		return 0;
	}
	if (fd >= 0)
		r = image_new_file(fd, path, &image, &elf);
	else
		r = image_new(IMAGE_FILE, path, &image);
	if (r < 0) {
		if (fd >= 0)
			close(fd);
		return r;
	}
	if (fd < 0) {
		image->device = key->device;
		image->inode = key->inode;
	}
	r = add_image(c, key, image);
	if (r < 0) {
		image_unref(image);
		return r;
	}
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

/* The image of a file that was found. MAPPED_* where it cannot be opened after all. */
static int image_of_found(struct space_cache *c, int path_fd, const char *path, struct image **ret)
{
	struct image_entry *known;
	struct image_key key;
	struct stat st;
	int fd, r;

	if (fstat(path_fd, &st) < 0)
		return -errno;
	key = key_of_stat(&st);
	known = find_image(c, &key);
	if (known) {
		*ret = image_ref(known->image);
		return 0;
	}
	r = mapped_open(path_fd, &fd);
	if (r)
		return r;
	return make_image(c, &key, path, fd, ret);
}

/* A file that nobody lets us open still has a name and an offset. */
static int image_of_numbers(struct space_cache *c, const struct maps_entry *e, struct image **ret)
{
	struct image_key key = {.device = e->device, .inode = e->inode};
	struct image_entry *known = find_image(c, &key);

	if (known) {
		*ret = image_ref(known->image);
		return 0;
	}
	return make_image(c, &key, e->path, -1, ret);
}

static int image_of_file(struct space_cache *c, uint64_t pid, const struct maps_entry *e,
			 struct image **ret)
{
	_cleanup_(close_fdp) int path_fd = -1;
	int r = mapped_find(c->proc, pid, e, &path_fd);

	if (!r)
		r = image_of_found(c, path_fd, e->path, ret);
	/* Out of descriptors: like a file that is not to be had, and better luck next window. */
	if (r > 0 || r == -EMFILE || r == -ENFILE)
		r = image_of_numbers(c, e, ret);
	return r;
}

/* Shared memory may hold a program that was never on a disk (fexecve of a memfd), or a JIT's code.
 */
static int image_of_shared_memory(struct space_cache *c, uint64_t pid, const struct maps_entry *e,
				  struct image **ret)
{
	struct image *image;
	int r = image_of_file(c, pid, e, &image);

	if (r)
		return r;
	*ret = image->file ? image_ref(image) : image_ref(c->anon);
	image_unref(image);
	return 0;
}

static int image_of_entry(struct space_cache *c, uint64_t pid, const struct maps_entry *e,
			  struct image **ret)
{
	if (e->kind == MAPS_FILE)
		return image_of_file(c, pid, e, ret);
	if (e->kind == MAPS_ANON && e->inode)
		return image_of_shared_memory(c, pid, e, ret);
	if (e->kind == MAPS_VDSO && e->start >= SPACE_VDSO_START_MIN)
		*ret = image_ref(c->vdso);
	else
		*ret = image_ref(c->anon);
	return 0;
}

/* ---------------------------------------------------------------- one target */

static void clear_mappings(struct space_cache *c, struct target_space *t)
{
	for (size_t i = 0; i < t->n; i++)
		image_unref(t->items[i].image);
	free(t->items);
	c->n_mappings -= t->n;
	t->items = NULL;
	t->n = 0;
}

static void drop_target(struct space_cache *c, struct target_space *t)
{
	HASH_DEL(c->targets, t);
	clear_mappings(c, t);
	free(t);
}

static void drop_least_used(struct space_cache *c, const struct target_space *but,
			    enum space_drop why)
{
	struct target_space *t, *next, *least = NULL;

	HASH_ITER(hh, c->targets, t, next)
		if (t != but && (!least || t->used < least->used))
			least = t;
	if (!least)
		return;
	c->dropped[why]++;
	drop_target(c, least);
}

static const struct mapping *find_mapping(const struct target_space *t, uint64_t pc)
{
	size_t low = 0, high = t->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (pc < t->items[mid].start)
			high = mid;
		else if (pc >= t->items[mid].limit)
			low = mid + 1;
		else
			return &t->items[mid];
	}
	return NULL;
}

/* The image that this entry had at the last read, if nothing about it has changed. */
static struct image *kept_image(const struct target_space *t, const struct maps_entry *e)
{
	const struct mapping *m = find_mapping(t, e->start);

	if (!e->inode || !m || m->start != e->start || m->limit != e->limit ||
	    m->offset != e->offset || m->device != e->device || m->inode != e->inode)
		return NULL;
	return m->image->file ? image_ref(m->image) : NULL;
}

/* @items has room for all of @maps; *@n of them are filled, on a failure too. */
static int fill_mappings(struct space_cache *c, const struct target_space *t,
			 const struct maps *maps, struct mapping *items, size_t *n)
{
	for (*n = 0; *n < maps->n && *n < SPACE_TARGET_MAPS_MAX; (*n)++) {
		const struct maps_entry *e = &maps->items[*n];
		struct mapping *m = &items[*n];
		int r;

		*m = (struct mapping){.start = e->start,
				      .limit = e->limit,
				      .offset = e->offset,
				      .device = e->device,
				      .inode = e->inode,
				      .image = kept_image(t, e)};
		if (m->image)
			continue;
		r = image_of_entry(c, maps->via_pid, e, &m->image);
		if (r)
			return r;
	}
	return 0;
}

static int set_mappings(struct space_cache *c, struct target_space *t, const struct maps *maps)
{
	size_t room = maps->n < SPACE_TARGET_MAPS_MAX ? maps->n : SPACE_TARGET_MAPS_MAX, n;
	struct mapping *items = calloc(room ? room : 1, sizeof(*items));
	int r;

	if (!items)
		return -ENOMEM;
	r = fill_mappings(c, t, maps, items, &n);
	if (r) {
		for (size_t i = 0; i < n; i++)
			image_unref(items[i].image);
		free(items);
		return r;
	}
	clear_mappings(c, t);
	t->items = items;
	t->n = n;
	c->n_mappings += n;
	while (c->n_mappings > SPACE_MAPPINGS_MAX && HASH_COUNT(c->targets) > 1)
		drop_least_used(c, t, DROP_MAPPINGS);
	return 0;
}

/* Zeros if it cannot be had: then only pcs tell of an exec. */
static struct exe_id read_exe(const struct space_cache *c, const struct target_space *t)
{
	struct exe_id exe = {0};
	struct stat st;
	char name[48];

	snprintf(name, sizeof(name), "%" PRIu64 "/exe", t->id.pid);
	if (fstatat(c->proc->fd, name, &st, 0) == 0)
		exe = (struct exe_id){.device = st.st_dev, .inode = st.st_ino};
	return exe;
}

static bool exe_changed(const struct space_cache *c, const struct target_space *t)
{
	struct exe_id exe = read_exe(c, t);

	return exe.inode && (exe.inode != t->exe.inode || exe.device != t->exe.device);
}

/* Reads the mappings. Where that fails, those that are known stay. */
static int read_target(struct space_cache *c, struct target_space *t, uint64_t now)
{
	_cleanup_(maps_deinit) struct maps maps = {.only_prot = MAPS_X};
	struct exe_id exe = read_exe(c, t);
	int r;

	t->read_ns = t->looked_ns = now;
	t->stale = false;
	r = maps_read(c->proc, &t->id, &maps);
	if (r == -ENOMEM)
		return r;
	t->outcome = r < 0 ? MAPS_GONE : r;
	if (r) {
		t->gone = r == MAPS_GONE;
		return 0;
	}
	t->exe = exe;
	return set_mappings(c, t, &maps);
}

static int look_again(struct space_cache *c, struct target_space *t, uint64_t now)
{
	if (t->gone)
		return 0;
	if (t->stale)
		return read_target(c, t, now);
	if (now - t->looked_ns < SPACE_REREAD_NS)
		return 0;
	t->looked_ns = now;
	return exe_changed(c, t) ? read_target(c, t, now) : 0;
}

static struct target_space *find_target(struct space_cache *c, const struct pid_id *id)
{
	struct target_space *t;

	HASH_FIND(hh, c->targets, id, sizeof(*id), t);
	return t;
}

static int get_target(struct space_cache *c, const struct pid_id *id, struct target_space **ret)
{
	struct target_space *t = find_target(c, id);
	bool hash_oom = false;

	if (!t) {
		if (HASH_COUNT(c->targets) >= SPACE_TARGETS_MAX)
			drop_least_used(c, NULL, DROP_TARGETS);
		t = calloc(1, sizeof(*t));
		if (!t)
			return -ENOMEM;
		t->id = *id;
		t->stale = true;
		HASH_ADD(hh, c->targets, id, sizeof(t->id), t);
		if (hash_oom) {
			free(t);
			return -ENOMEM;
		}
	}
	t->used = ++c->tick;
	t->idle = 0;
	*ret = t;
	return 0;
}

/* ---------------------------------------------------------------- the cache */

int space_cache_new(const struct root *proc, struct space_cache **ret)
{
	_cleanup_(space_cache_freep) struct space_cache *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->proc = proc;
	r = image_new(IMAGE_KERNEL, "[kernel.kallsyms]", &c->kernel);
	if (!r)
		r = image_new(IMAGE_ANON, "[anon]", &c->anon);
	if (!r)
		r = image_new(IMAGE_UNKNOWN, "[unknown]", &c->unknown);
	if (!r)
		r = image_new(IMAGE_UNKNOWN, "[unknown]", &c->full);
	if (!r)
		r = image_new_vdso(&c->vdso);
	if (r)
		return r;
	*ret = take_ptr(c);
	return 0;
}

void space_cache_free(struct space_cache *c)
{
	struct target_space *t, *next;
	struct image_entry *e, *next_image;

	if (!c)
		return;
	HASH_ITER(hh, c->targets, t, next)
		drop_target(c, t);
	HASH_ITER(hh, c->images, e, next_image)
		drop_image(c, e);
	image_unref(c->kernel);
	image_unref(c->vdso);
	image_unref(c->anon);
	image_unref(c->unknown);
	image_unref(c->full);
	free(c);
}

static enum space_outcome unknown_at(struct space_cache *c, uint64_t pc, enum space_outcome why,
				     struct frame *ret)
{
	*ret = (struct frame){.image = image_ref(c->unknown), .vaddr = pc};
	return why;
}

static enum space_outcome why_unmapped(const struct target_space *t)
{
	if (!t->n && t->outcome == MAPS_GONE)
		return SPACE_GONE;
	if (!t->n && t->outcome == MAPS_DENIED)
		return SPACE_DENIED;
	return SPACE_UNMAPPED;
}

static enum space_outcome frame_at(struct space_cache *c, const struct mapping *m, uint64_t pc,
				   struct frame *ret)
{
	struct image *image = m->image;
	uint64_t off, vaddr = pc;

	if (image == c->full)
		return unknown_at(c, pc, SPACE_IMAGES_FULL, ret);
	if (image->kind == IMAGE_FILE || image->kind == IMAGE_VDSO) {
		if (__builtin_add_overflow(pc - m->start, m->offset, &off) ||
		    !image_vaddr_of_off(image, off, &vaddr))
			return unknown_at(c, pc, SPACE_NO_SEGMENT, ret);
	}
	*ret = (struct frame){.image = image_ref(image), .vaddr = vaddr};
	if (image->kind == IMAGE_FILE)
		return image->file ? SPACE_FILE : SPACE_NO_ELF;
	return image->kind == IMAGE_VDSO ? SPACE_VDSO : SPACE_ANON;
}

int space_cache_resolve(struct space_cache *c, const struct pid_id *id, uint64_t pc,
			struct frame *ret)
{
	uint64_t now = nsec_monotonic();
	const struct mapping *m;
	struct target_space *t;
	int r = get_target(c, id, &t);

	if (!r)
		r = look_again(c, t, now);
	if (r)
		return r;
	m = find_mapping(t, pc);
	if (!m && !t->gone && now - t->read_ns >= SPACE_REREAD_NS) {
		r = read_target(c, t, now);
		if (r)
			return r;
		m = find_mapping(t, pc);
	}
	c->outcomes[m ? frame_at(c, m, pc, ret) : unknown_at(c, pc, why_unmapped(t), ret)]++;
	return 0;
}

void space_cache_kernel(struct space_cache *c, uint64_t pc, struct frame *ret)
{
	*ret = (struct frame){.image = image_ref(c->kernel), .vaddr = pc};
}

void space_cache_invalidate(struct space_cache *c, const struct pid_id *id)
{
	struct target_space *t = find_target(c, id);

	if (t)
		drop_target(c, t);
}

void space_cache_sweep(struct space_cache *c)
{
	struct target_space *t, *next;

	HASH_ITER(hh, c->targets, t, next) {
		t->stale = true;
		if (++t->idle > (t->gone ? 1 : SPACE_IDLE_SWEEPS))
			drop_target(c, t);
	}
	drop_unused_images(c);
}

/* ---------------------------------------------------------------- numbers */

size_t space_cache_bytes(const struct space_cache *c)
{
	return HASH_COUNT(c->targets) * sizeof(struct target_space) +
	       c->n_mappings * sizeof(struct mapping) +
	       HASH_COUNT(c->images) * (sizeof(struct image_entry) + sizeof(struct image)) +
	       HASH_OVERHEAD(hh, c->targets) + HASH_OVERHEAD(hh, c->images);
}

void space_cache_collect(void *cache, struct metric_sink *sink)
{
	static const struct metric_family_desc images = {
		"podprof_images", METRIC_GAUGE,
		"Mapped files known, by whether they could be read.", NULL};
	static const struct metric_family_desc pcs = {
		"podprof_resolved_pcs", METRIC_COUNTER,
		"Run-time addresses of samples by what was found there.", NULL};
	static const struct metric_family_desc dropped = {
		"podprof_space_dropped", METRIC_COUNTER,
		"Processes whose mappings were forgotten, by the ceiling that was reached.", NULL};
	static const char *const states[] = {"elf", "other"};
	const struct space_cache *c = cache;
	uint64_t counts[2] = {0};

	for (const struct image_entry *e = c->images; e; e = e->hh.next)
		counts[e->image->file ? 0 : 1]++;
	metric_by_name(sink, &images, "state", counts, states, array_size(states));
	metric_by_name(sink, &pcs, "outcome", c->outcomes, outcome_names, SPACE_OUTCOME_MAX);
	metric_by_name(sink, &dropped, "ceiling", c->dropped, drop_names, DROP_MAX);
}
