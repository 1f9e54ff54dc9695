// SPDX-License-Identifier: Apache-2.0
/*
 * A pc in a sample has a meaning only together with the mappings of that moment. podprof reads the
 * mappings from /proc at the first sample of a process, and again for one of these reasons:
 *
 *	- An event reports a newer file mapping (process_history.h).
 *	- A pc is outside all mappings. This is also the fallback without events: the process has
 *	  loaded or moved a library.
 *	- A sample belongs to another program of the process, after an exec. Callers without an exec
 *	  id (ADDRESS_SPACE_EXEC_ANY) compare /proc/PID/exe. Programs linked to a fixed address all
 *	  have their code there, so a pc need not be outside.
 *	- A window has passed (address_space_cache_sweep()): a mapping may have replaced another.
 *
 * Each read without a change doubles the delay before the next read for such a reason.
 *
 * A pc has no name if its mapping changed within the possible time of the sample. After a loss of
 * events, older mappings give no names until the next read. An ended process cannot be read again,
 * and its last mappings are unknown.
 *
 * A mapping with the same range, offset and inode as before keeps its image without opening the
 * file. The image holds its file open, so the inode cannot belong to another file.
 *
 * /proc shows the present state of a process, perhaps another program or another process. So
 * podprof processes all events before the end of a read before it believes the result.
 *
 * An ended process, or a program that has been replaced, keeps the mappings of the last read plus
 * later events. Without a read, its mappings are those of the events from the exec on. Before its
 * first exec a process has its parent's mappings. The exec id selects the program of a sample.
 *
 * Every resolved pc is counted by outcome.
 *
 * Opening a file can block forever, so the agent's cache does that on a thread (opener.h). A
 * mapping of a file then has an image without file at first (struct image_opening). A sampled pc
 * wants the file. The other files of the process follow in order, up to a ceiling, because
 * stacks pass through them. Each owner (cgroup) has a queue of its processes with wanted files; the
 * owner with the least recent time on the thread is served next. The opened image replaces the
 * first one in the mapping, with a new version. Frames that already have the first image are
 * settled where they get their names (frame_settle()). A pc has its outcome when its file has one.
 *
 * The ceilings of processes, mappings and unopened files are shared among the owners (share.h).
 */
#include "procmap/address_space.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/file_id.h"
#include "base/hash.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/root.h"
#include "procmap/images.h"
#include "procmap/maps.h"
#include "procmap/opener.h"
#include "procmap/process_history.h"
#include "procmap/share.h"

/* Address spaces in the cache, and an owner's share of them; eviction by least recent use, among
 * the owner's own. Reached: `podprof_address_spaces_dropped_total{limit="processes"}`. */
#define ADDRESS_SPACE_TARGETS_MAX     8192
/* Executable mappings of one process. A browser has 300; a JIT with a mapping per function has
 * thousands. Mappings above the limit are discarded, and their pcs count as unmapped. Reached:
 * `podprof_resolved_pcs_total{outcome="unmapped"}`. */
#define ADDRESS_SPACE_TARGET_MAPS_MAX 4096
/* Mappings of all processes together (48 bytes each: 12 MiB), shared as the address spaces are.
 * Reached: `podprof_address_spaces_dropped_total{limit="mappings"}`. */
#define ADDRESS_SPACE_MAPPINGS_MAX    262144
/* Bytes of images that wait to be opened, with their paths; shared by owner. 16 MiB are 50,000
 * usual ones. Reached: `podprof_resolved_pcs_total{outcome="images_full"}`. */
#define ADDRESS_SPACE_UNOPENED_MAX    (16u << 20)
/* Files of one process that are opened without a sample in them. A browser has 300 mappings.
 * Reached: a stack that passes through another file ends there, until that file is opened. */
#define ADDRESS_SPACE_AHEAD_MAX	      256
/* A re-read of a process's mappings waits for this many times the CPU time of its last read (2 % of
 * a CPU), and for a part of it after a read of any other process (5 %). A process with 60,000
 * mappings takes 10 ms a read. */
#define ADDRESS_SPACE_READ_REST	      50
#define ADDRESS_SPACE_READ_REST_ALL   20
/* Until the next read for a pc outside; doubled up to the second each time nothing was found. */
#define ADDRESS_SPACE_REREAD_NS	      NSEC_PER_SEC
#define ADDRESS_SPACE_REREAD_LONG_NS  (64 * NSEC_PER_SEC)
/* The same after an event: a program that loads a hundred libraries does so within a moment. */
#define ADDRESS_SPACE_EVENTS_NS	      (100 * NSEC_PER_MSEC)
/* After a loss of events, a mapping younger than this may have replaced another one meanwhile. */
#define ADDRESS_SPACE_YOUNG_NS	      (20 * NSEC_PER_SEC)
/* Sweeps before the eviction of an unused process. */
#define ADDRESS_SPACE_IDLE_SWEEPS     2
/* Ancestors searched for an inherited address space. */
#define ADDRESS_SPACE_ANCESTORS	      4

_Static_assert(ADDRESS_SPACE_ANCESTORS + 2 == IMAGES_LIKELY_MAX, "and the agent, and itself");

enum address_space_outcome {
	ADDRESS_SPACE_FILE,   /* a file, by its segments */
	ADDRESS_SPACE_NO_ELF, /* an unreadable or non-ELF file: by file offset */
	ADDRESS_SPACE_VDSO,
	ADDRESS_SPACE_ANON,
	ADDRESS_SPACE_UNMAPPED,	  /* outside all executable mappings */
	ADDRESS_SPACE_REPLACED,	  /* something else was mapped there, before or after the sample */
	ADDRESS_SPACE_NO_SEGMENT, /* in a mapping, outside the loaded segments of the file */
	ADDRESS_SPACE_GONE,	  /* the process ended before the first read */
	ADDRESS_SPACE_DENIED,
	ADDRESS_SPACE_IMAGES_FULL,
	ADDRESS_SPACE_SLOW, /* the file system did not answer */
	ADDRESS_SPACE_OUTCOME_MAX,
	ADDRESS_SPACE_LATER = ADDRESS_SPACE_OUTCOME_MAX, /* when the file is opened */
};

enum address_space_dropped { DROP_TARGETS, DROP_MAPPINGS, DROP_HISTORY, DROP_MAX };

/* Where the mappings of a space were had from. */
enum address_space_source { FROM_PROC, FROM_EVENTS, FROM_NOWHERE, SOURCE_MAX };

/* Compared as bytes. */
struct address_space_key {
	struct pid_id pid;
	uint64_t start_ns; /* a tick is long enough for a pid to come back */
	uint64_t exec_id;
};

_Static_assert(sizeof(struct address_space_key) == sizeof(((struct open_batch *)0)->tag),
	       "a batch is tagged with the key");

TAILQ_HEAD(space_queue, address_space);

/* A cgroup with address spaces. */
struct space_owner {
	uint64_t id;
	size_t n_spaces;
	size_t n_mappings;
	size_t unopened_bytes;
	struct space_queue queue; /* spaces with wanted files */
	uint64_t used_ns;	  /* time on the thread; halved in each sweep */
	UT_hash_handle hh;
};

struct address_space {
	struct address_space_key key;
	struct space_owner *owner;
	struct address_space_mapping *items; /* ascending */
	size_t n;
	uint64_t version;
	uint32_t program; /* program number of the mappings, as in process_history.h */
	struct file_id exe;
	uint64_t looked_ns;    /* when the mappings were last read or found unchanged */
	uint64_t read_ns;      /* time of the last read */
	uint64_t read_boot_ns; /* the same by the boot clock */
	uint64_t as_now_ns;    /* time of the last change, same clock */
	uint64_t asked_ns;     /* last loss of events checked for @lasting */
	bool lasting;	       /* the mappings existed throughout that loss */
	uint64_t events_ns;    /* time of the newest included event */
	uint64_t epoch_ns;     /* last loss of events before the mappings were read */
	uint64_t delay_ns;     /* delay before a new read for a pc outside */
	uint64_t used;	       /* tick of the last use */
	unsigned int idle;     /* sweeps since then */
	bool stale;	       /* read again before the next use */
	bool doubtful;	  /* a mapping changed after the earliest possible time of the samples */
	bool unsure;	  /* a mapping may have changed unnoticed */
	bool ended;	  /* the leader has ended */
	bool gone;	  /* nothing to be read any more */
	int outcome;	  /* enum maps_outcome of the last read */
	uint64_t rest_ns; /* monotonic: no re-read because of an event before */
	struct images_way way;
	size_t n_wanted; /* images by state, of the mappings */
	size_t n_asked;
	size_t n_slow;
	size_t n_unknown;      /* of those before: awaited, without a guess */
	size_t n_ahead;	       /* files asked for without a sample */
	size_t n_unopened;     /* IMAGE_UNASKED: to be asked for, as @n_ahead allows */
	size_t unopened_bytes; /* of all images that are not opened */
	bool queued;
	TAILQ_ENTRY(address_space) in_queue;
	UT_hash_handle hh;
};

/* A parent older than the event log; a child inherited its mappings at fork. */
struct parent {
	uint32_t pid;	   /* 0: none */
	uint64_t birth_ns; /* the child's */
};

struct address_space_cache {
	const struct root *proc;
	uint64_t self; /* 0: not known */
	struct images *images;
	struct process_history *history;
	address_space_catch_up_fn catch_up;
	void *catch_up_ctx;
	uint64_t since_ns; /* boot clock: samples are not older */
	uint64_t until_ns; /* ... and not younger */
	uint64_t lost_ns;  /* the same: when events were found to be missing last */
	struct parent read_parent;
	struct address_space *spaces;
	size_t n_mappings;
	size_t unopened_bytes;
	struct space_owner *owners;
	struct opener *opener; /* NULL: files are opened here */
	struct address_space_files files;
	uint64_t rest_ns; /* as that of a space */
	uint64_t tick;
	uint64_t version;
	uint64_t outcomes[ADDRESS_SPACE_OUTCOME_MAX + 1];
	uint64_t dropped[DROP_MAX];
	uint64_t sources[SOURCE_MAX];
};

static const char *const outcome_names[ADDRESS_SPACE_OUTCOME_MAX] = {
	[ADDRESS_SPACE_FILE] = "file",	       [ADDRESS_SPACE_NO_ELF] = "no_elf",
	[ADDRESS_SPACE_VDSO] = "vdso",	       [ADDRESS_SPACE_ANON] = "anon",
	[ADDRESS_SPACE_UNMAPPED] = "unmapped", [ADDRESS_SPACE_NO_SEGMENT] = "no_segment",
	[ADDRESS_SPACE_REPLACED] = "replaced", [ADDRESS_SPACE_GONE] = "gone",
	[ADDRESS_SPACE_DENIED] = "denied",     [ADDRESS_SPACE_IMAGES_FULL] = "images_full",
	[ADDRESS_SPACE_SLOW] = "slow",
};

static const char *const drop_names[DROP_MAX] = {
	[DROP_TARGETS] = "processes",
	[DROP_MAPPINGS] = "mappings",
	[DROP_HISTORY] = "history",
};

static const char *const source_names[SOURCE_MAX] = {
	[FROM_PROC] = "proc",
	[FROM_EVENTS] = "events",
	[FROM_NOWHERE] = "none",
};

DEFINE_CLEANUP(struct address_space_cache *, address_space_cache_freep, address_space_cache_free);

/* ---------------------------------------------------------------- kept mappings */

static void free_items(struct address_space_mapping *items, size_t n)
{
	for (size_t i = 0; i < n; i++)
		image_unref(items[i].image);
	free(items);
}

/* Bytes of an image that is not opened; 0 for any other. */
static size_t unopened_bytes(const struct image *image)
{
	return image->opening ? sizeof(*image) + sizeof(*image->opening) + strlen(image->path) + 1
			      : 0;
}

/* Counts @s in or out of its owner's share and of all. */
static void charge(struct address_space_cache *c, const struct address_space *s, int sign)
{
	const size_t n = sign > 0 ? s->n : -s->n;
	const size_t bytes = sign > 0 ? s->unopened_bytes : -s->unopened_bytes;

	c->n_mappings += n;
	c->unopened_bytes += bytes;
	s->owner->n_mappings += n;
	s->owner->unopened_bytes += bytes;
}

/* Whether nothing is known of a file until it is open. */
static bool is_awaited(const struct image_opening *opening)
{
	return !opening->guess && (opening->state == IMAGE_UNASKED ||
				   opening->state == IMAGE_WANTED || opening->state == IMAGE_ASKED);
}

/* The numbers of @s's images by state. */
static void recount(struct address_space *s)
{
	s->n_wanted = s->n_asked = s->n_slow = s->n_unopened = s->n_unknown = 0;
	s->unopened_bytes = 0;
	for (size_t i = 0; i < s->n; i++) {
		const struct image *image = s->items[i].image;

		if (!image->opening)
			continue;
		s->n_wanted += image->opening->state == IMAGE_WANTED;
		s->n_asked += image->opening->state == IMAGE_ASKED;
		s->n_slow += image->opening->state == IMAGE_SLOW;
		s->n_unopened += image->opening->state == IMAGE_UNASKED;
		s->n_unknown += is_awaited(image->opening);
		s->unopened_bytes += unopened_bytes(image);
	}
}

static void unqueue(struct address_space *s)
{
	if (s->queued)
		TAILQ_REMOVE(&s->owner->queue, s, in_queue);
	s->queued = false;
}

/* The pcs of an image that will not be opened any more have an outcome, too. */
static void give_up_pcs(struct address_space_cache *c, const struct address_space_mapping *items,
			size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct image_opening *opening = items[i].image->opening;

		if (!opening || opening->state != IMAGE_WANTED)
			continue;
		c->outcomes[ADDRESS_SPACE_SLOW] += opening->n_pcs;
		opening->n_pcs = 0;
	}
}

static void clear_mappings(struct address_space_cache *c, struct address_space *s)
{
	charge(c, s, -1);
	free_items(s->items, s->n);
	s->items = NULL;
	s->n = 0;
	recount(s);
}

static struct space_owner *get_owner(struct address_space_cache *c, uint64_t id)
{
	struct space_owner *owner;
	bool hash_oom = false;

	HASH_FIND(hh, c->owners, &id, sizeof(id), owner);
	if (owner)
		return owner;
	owner = calloc(1, sizeof(*owner));
	if (!owner)
		return NULL;
	owner->id = id;
	TAILQ_INIT(&owner->queue);
	HASH_ADD(hh, c->owners, id, sizeof(id), owner);
	if (hash_oom) {
		free(owner);
		return NULL;
	}
	return owner;
}

static void put_owner(struct address_space_cache *c, struct space_owner *owner)
{
	if (owner->n_spaces)
		return;
	HASH_DEL(c->owners, owner);
	free(owner);
}

static void address_space_drop(struct address_space_cache *c, struct address_space *s)
{
	HASH_DEL(c->spaces, s);
	unqueue(s);
	give_up_pcs(c, s->items, s->n);
	clear_mappings(c, s);
	s->owner->n_spaces--;
	put_owner(c, s->owner);
	free(s);
}

/* Drops the least recently used address space of @owner; NULL: of all. @but is not dropped. False
 * if there is none. */
static bool address_space_drop_least_used(struct address_space_cache *c,
					  const struct space_owner *owner,
					  const struct address_space *but,
					  enum address_space_dropped why)
{
	struct address_space *s, *next, *least = NULL;

	HASH_ITER(hh, c->spaces, s, next)
		if (s != but && (!owner || s->owner == owner) && (!least || s->used < least->used))
			least = s;
	if (!least)
		return false;
	c->dropped[why]++;
	address_space_drop(c, least);
	return true;
}

/* The owner with the most mappings, or with the most address spaces. */
static const struct space_owner *largest_owner(const struct address_space_cache *c,
					       enum address_space_dropped why)
{
	const struct space_owner *owner, *largest = NULL;
	size_t most = 0;

	for (owner = c->owners; owner; owner = owner->hh.next) {
		size_t n = why == DROP_TARGETS ? owner->n_spaces : owner->n_mappings;

		if (n > most) {
			most = n;
			largest = owner;
		}
	}
	return largest;
}

/* Whether an owner has more than its share. Without a known owner there are no shares. */
static bool exceeds(const struct space_owner *owner, size_t max, size_t total, size_t own)
{
	return owner->id && own && !share_allows(max, total - 1, own - 1);
}

/* Makes @s, the newest member, fit: its owner gives up the excess of its share, and the largest
 * owner the excess of the ceiling. */
static void keep_shares(struct address_space_cache *c, const struct address_space *s)
{
	const struct space_owner *own = s->owner;

	while (exceeds(own, ADDRESS_SPACE_TARGETS_MAX, HASH_COUNT(c->spaces), own->n_spaces) &&
	       address_space_drop_least_used(c, own, s, DROP_TARGETS))
		;
	while (HASH_COUNT(c->spaces) > ADDRESS_SPACE_TARGETS_MAX &&
	       address_space_drop_least_used(c, largest_owner(c, DROP_TARGETS), s, DROP_TARGETS))
		;
	while (exceeds(own, ADDRESS_SPACE_MAPPINGS_MAX, c->n_mappings, own->n_mappings) &&
	       address_space_drop_least_used(c, own, s, DROP_MAPPINGS))
		;
	while (c->n_mappings > ADDRESS_SPACE_MAPPINGS_MAX &&
	       address_space_drop_least_used(c, largest_owner(c, DROP_MAPPINGS), s, DROP_MAPPINGS))
		;
}

/* NULL if there is none at @pc. */
static const struct address_space_mapping *address_space_find(const struct address_space *s,
							      uint64_t pc)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (pc < s->items[mid].start)
			high = mid;
		else if (pc >= s->items[mid].limit)
			low = mid + 1;
		else
			return &s->items[mid];
	}
	return NULL;
}

/* The image of an unchanged entry from the last read. */
static struct image *kept_image(const struct address_space *s, const struct maps_entry *e)
{
	const struct address_space_mapping *m = address_space_find(s, e->start);

	if (!e->inode || !m || m->start != e->start || m->limit != e->limit ||
	    m->offset != e->offset || m->device != e->device || m->inode != e->inode)
		return NULL;
	return m->image->file || m->image->opening ? image_ref(m->image) : NULL;
}

/* An image for a file that a thread will open. @bytes: of such images in the space so far. */
static int unopened_image(const struct address_space_cache *c, const struct address_space *s,
			  const struct images_way *way, const struct maps_entry *e, size_t *bytes,
			  struct image **ret)
{
	const struct space_owner *owner = s->owner;
	size_t before = s->unopened_bytes; /* is counted already */
	int r;

	if (!share_allows(ADDRESS_SPACE_UNOPENED_MAX, c->unopened_bytes - before + *bytes,
			  owner->id ? owner->unopened_bytes - before + *bytes : 0)) {
		*ret = image_ref(images_full(c->images));
		return 0;
	}
	r = image_new_opening(e->path, e->start, e->offset, ret);
	if (r)
		return r;
	(*ret)->id.device = e->device;
	(*ret)->id.inode = e->inode;
	(*ret)->opening->by_record = !way->via_pid;
	(*ret)->opening->deleted = e->deleted;
	(*ret)->opening->kind = e->kind;
	(*ret)->opening->guess = images_guess(c->images, e);
	*bytes += unopened_bytes(*ret);
	return 0;
}

static int find_image(struct address_space_cache *c, const struct address_space *s,
		      const struct images_way *way, const struct maps_entry *e, size_t *bytes,
		      struct image **ret)
{
	if (c->opener && images_needs_file(e))
		return unopened_image(c, s, way, e, bytes, ret);
	if (way->via_pid)
		return images_of_entry(c->images, way, e, ret);
	return images_of_record(c->images, way, e, ret);
}

/* @items has room for all of @maps; *@n are filled, on a failure too. */
static int fill_items(struct address_space_cache *c, const struct address_space *s,
		      const struct images_way *way, const struct maps *maps,
		      struct address_space_mapping *items, size_t *n)
{
	size_t bytes = 0;

	for (*n = 0; *n < maps->n && *n < ADDRESS_SPACE_TARGET_MAPS_MAX; (*n)++) {
		const struct maps_entry *e = &maps->items[*n];
		struct address_space_mapping *m = &items[*n];
		int r;

		*m = (struct address_space_mapping){.start = e->start,
						    .limit = e->limit,
						    .offset = e->offset,
						    .device = e->device,
						    .inode = e->inode,
						    .image = kept_image(s, e)};
		if (m->image) {
			bytes += unopened_bytes(m->image);
			continue;
		}
		r = find_image(c, s, way, e, &bytes, &m->image);
		if (r)
			return r;
	}
	return 0;
}

static void queue_ahead(struct address_space_cache *c, struct address_space *s);
static bool want_file(struct address_space_cache *c, struct address_space *s,
		      struct image_opening *opening);

/* Of the mappings of @s that are not among @items. */
static void give_up_lost(struct address_space_cache *c, const struct address_space *s,
			 const struct address_space_mapping *items, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < s->n && s->n_wanted; i++) {
		while (k < n && items[k].start < s->items[i].start)
			k++;
		if (k == n || items[k].image != s->items[i].image)
			give_up_pcs(c, &s->items[i], 1);
	}
}

/* Takes the items. */
static void replace_items(struct address_space_cache *c, struct address_space *s,
			  struct address_space_mapping *items, size_t n)
{
	bool same =
		s->version && n == s->n && (!n || memcmp(items, s->items, n * sizeof(*items)) == 0);

	if (!same)
		give_up_lost(c, s, items, n);
	clear_mappings(c, s);
	s->items = items;
	s->n = n;
	recount(s);
	charge(c, s, 1);
	if (!same) {
		s->version = ++c->version;
		s->as_now_ns = nsec_boot();
	}
	keep_shares(c, s);
	queue_ahead(c, s);
}

/* How to open files from now on: a read of a living process tells all, events only of ancestors. */
static void set_way(struct address_space *s, const struct images_way *way)
{
	uint64_t via_pid = way->via_pid ? way->via_pid : s->way.via_pid;

	s->way = *way;
	s->way.via_pid = via_pid;
	s->way.pid = s->key.pid;
	s->way.owner = s->owner->id;
}

/* Replaces the mappings by @maps. 0 or -ENOMEM. */
static int address_space_set(struct address_space_cache *c, struct address_space *s,
			     const struct images_way *way, const struct maps *maps)
{
	size_t room = maps->n < ADDRESS_SPACE_TARGET_MAPS_MAX ? maps->n
							      : ADDRESS_SPACE_TARGET_MAPS_MAX,
	       n;
	struct address_space_mapping *items = calloc(room ? room : 1, sizeof(*items));
	int r;

	if (!items)
		return -ENOMEM;
	set_way(s, way);
	r = fill_items(c, s, way, maps, items, &n);
	if (r)
		free_items(items, n);
	else
		replace_items(c, s, items, n);
	return r;
}

/* A sorted list of all new mappings and of the old ones without overlap. */
static size_t merge(const struct address_space_mapping *old, size_t n_old,
		    const struct address_space_mapping *new, size_t n_new,
		    struct address_space_mapping *ret)
{
	size_t i = 0, n = 0;

	for (size_t k = 0; k < n_new; k++) {
		for (; i < n_old && old[i].limit <= new[k].start; i++)
			ret[n++] = old[i];
		for (; i < n_old && old[i].start < new[k].limit; i++)
			continue;
		ret[n++] = new[k];
	}
	for (; i < n_old; i++)
		ret[n++] = old[i];
	return n;
}

/* Adds @maps over the present mappings. 0 or -ENOMEM. */
static int address_space_add(struct address_space_cache *c, struct address_space *s,
			     const struct images_way *way, const struct maps *maps)
{
	struct address_space_mapping *fresh = calloc(maps->n, sizeof(*fresh));
	struct address_space_mapping *all = calloc(maps->n + s->n, sizeof(*all));
	size_t n_fresh = 0, n;
	int r;

	set_way(s, way);
	r = fresh && all ? fill_items(c, s, way, maps, fresh, &n_fresh) : -ENOMEM;

	if (r) {
		free_items(fresh, n_fresh);
		free(all);
		return r;
	}
	n = merge(s->items, s->n, fresh, n_fresh, all);
	for (size_t i = 0; i < n; i++)
		image_ref(all[i].image);
	free_items(fresh, n_fresh);
	replace_items(c, s, all, n);
	return 0;
}

/* ---------------------------------------------------------------- process history */

/* NULL without events about the process. */
static const struct history_record *address_space_record(const struct address_space_cache *c,
							 const struct address_space *s)
{
	return process_history_find(c->history, s->key.pid.pid,
				    s->key.start_ns ? s->key.start_ns
						    : pid_ns_of_ticks(s->key.pid.start_ticks));
}

/* Whether the samples carry no exec id. */
static bool address_space_is_any(const struct address_space *s)
{
	return s->key.exec_id == ADDRESS_SPACE_EXEC_ANY;
}

/* The program number of these mappings. False if unknown. */
static bool address_space_program(const struct history_record *record,
				  const struct address_space *s, uint32_t *ret)
{
	if (!address_space_is_any(s))
		return history_record_program_of(record, s->key.exec_id, ret);
	*ret = s->program;
	return true;
}

/* Delivers all pending events. */
static void address_space_catch_up(struct address_space_cache *c)
{
	if (c->catch_up)
		c->catch_up(c->catch_up_ctx);
}

/* Handles a new sample of @s: if only a single program is possible, its exec id becomes known. */
static void address_space_learn(struct address_space_cache *c, const struct address_space *s)
{
	const struct history_record *record = address_space_record(c, s);
	uint32_t program;

	if (!record || address_space_is_any(s) || history_record_is_learned(record))
		return;
	if (!s->key.exec_id && history_record_is_counted(record))
		return; /* as any child */
	address_space_catch_up(c);
	record = address_space_record(c, s);
	if (!record || (c->lost_ns > c->since_ns && !history_record_birth_ns(record)))
		return;
	if (history_record_ran_only(record, c->since_ns, c->until_ns, &program))
		process_history_learn(c->history, record, program, s->key.exec_id);
	else if (history_record_birth_ns(record) && s->key.exec_id == 1)
		process_history_learn(c->history, record, 1,
				      1); /* the count includes no maker's execs */
}

/* Whether the process has executed another program, or has ended and its pid is reused: /proc no
 * longer describes @s. */
static bool address_space_was_left(const struct address_space_cache *c,
				   const struct address_space *s)
{
	const struct history_record *record = address_space_record(c, s);
	const struct history_record *newest = process_history_find(c->history, s->key.pid.pid, 0);

	if (record && history_record_is_past(c->history, record))
		return true;
	if (newest && newest != record && s->key.start_ns)
		return record || history_record_birth_ns(newest) > s->key.start_ns;
	return record && !address_space_is_any(s) && history_record_is_counted(record) &&
	       history_record_exec_id(record) > s->key.exec_id;
}

/* The ancestors of @record, likely to have the same root. For a process older than the event log
 * and without a known parent, the agent itself. */
static void find_ancestors(const struct address_space_cache *c, const struct history_record *record,
			   struct images_way *way)
{
	uint64_t time = history_record_birth_ns(record);

	way->likely[ADDRESS_SPACE_ANCESTORS] = c->self;
	for (size_t i = 0; i < ADDRESS_SPACE_ANCESTORS && record && history_record_parent(record);
	     i++) {
		way->likely[i] = history_record_parent(record);
		record = process_history_find_at(c->history, way->likely[i], time);
	}
}

/* The mappings of @record at its birth: its parent's, in their present state if the parent
 * lives. */
static int inherited_maps(struct address_space_cache *c, const struct history_record *record,
			  unsigned int depth, struct maps *maps);

static int program_maps(struct address_space_cache *c, const struct history_record *record,
			uint32_t program, uint64_t until_ns, unsigned int depth, struct maps *maps)
{
	int r = 0;

	if (!program && depth)
		r = inherited_maps(c, record, depth - 1, maps);
	return r ? r : history_record_add_maps(record, program, 0, until_ns, maps);
}

/* Whether no event shows an exec or a changed mapping since the child's birth. */
static bool is_untouched(const struct address_space_cache *c, const struct parent *p)
{
	const struct history_record *record = process_history_find(c->history, p->pid, 0);

	if (c->lost_ns > p->birth_ns)
		return false;
	return !record || (!history_record_birth_ns(record) && !history_record_program(record) &&
			   !history_record_exit_ns(record) &&
			   history_record_changed_ns(record) <= p->birth_ns);
}

/* The mappings of a living parent without events. Its images become known now, or are opened
 * through it (images_way.parent). */
static int parent_maps(struct address_space_cache *c, const struct parent *p, struct maps *maps)
{
	struct images_way way = {0};
	struct image *image;
	struct pid_id id;
	int r = pid_read(c->proc, (pid_t)p->pid, &id);

	/* a parent younger than its child is another process */
	if (r || pid_ns_of_ticks(id.start_ticks) > p->birth_ns)
		return 0;
	c->read_parent = *p;
	maps->only_prot = MAPS_X;
	r = maps_read(c->proc, &id, maps);
	way.via_pid = maps->via_pid;
	for (size_t i = 0; !r && !c->opener && i < maps->n; i++) {
		r = images_of_entry(c->images, &way, &maps->items[i], &image);
		if (!r)
			image_unref(image);
	}
	return r == -ENOMEM ? r : 0;
}

static int inherited_maps(struct address_space_cache *c, const struct history_record *record,
			  unsigned int depth, struct maps *maps)
{
	const struct parent p = {history_record_parent(record), history_record_birth_ns(record)};
	const struct history_record *parent;
	uint32_t program;

	if (!p.pid)
		return 0;
	parent = process_history_find_at(c->history, p.pid, p.birth_ns);
	if (parent && history_record_exit_ns(parent) && history_record_exit_ns(parent) < p.birth_ns)
		return 0; /* another process: nothing is known of the real parent */
	program = parent ? history_record_program_at(parent, p.birth_ns) : 0;
	if (parent && (program || history_record_parent(parent)))
		return program_maps(c, parent, program, p.birth_ns, depth, maps);
	return is_untouched(c, &p) ? parent_maps(c, &p, maps) : 0;
}

/* Tries the mappings of @program: 0 if @pc (0: anything) is in them, 1 if not. */
static int try_program(struct address_space_cache *c, struct address_space *s, uint32_t program,
		       uint64_t pc)
{
	_cleanup_(maps_deinit) struct maps maps = {0};
	const struct history_record *record = address_space_record(c, s);
	struct images_way way = {0};
	int r;

	c->read_parent = (struct parent){0};
	r = record ? program_maps(c, record, program, UINT64_MAX, ADDRESS_SPACE_ANCESTORS, &maps)
		   : 1;
	if (r)
		return r < 0 ? r : 1;
	if (c->read_parent.pid) {
		address_space_catch_up(c); /* as after any read */
		record = address_space_record(c, s);
		if (!record || !is_untouched(c, &c->read_parent))
			return 1;
	}
	if (!maps.n || (pc && !maps_find(&maps, pc)))
		return 1;
	find_ancestors(c, record, &way);
	way.parent = c->read_parent.pid;
	s->program = program;
	s->epoch_ns = c->lost_ns;
	s->events_ns = history_record_changed_ns(record);
	return address_space_set(c, s, &way, &maps);
}

/* Tries programs from @newest down to the inherited program. 0, 1 if none has @pc, -errno. */
static int try_programs(struct address_space_cache *c, struct address_space *s, uint32_t newest,
			uint64_t pc)
{
	for (uint32_t program = newest;; program--) {
		int r = try_program(c, s, program, pc);

		if (r <= 0 || !program)
			return r;
	}
}

/* Adds the mappings made after the last read, for a process that is unreadable or was read a moment
 * ago. */
static int address_space_add_since(struct address_space_cache *c, struct address_space *s,
				   const struct history_record *record)
{
	const uint64_t since = s->events_ns > s->read_boot_ns ? s->events_ns : s->read_boot_ns;
	_cleanup_(maps_deinit) struct maps maps = {0};
	struct images_way way = {0};
	uint32_t program;
	int r;

	if (!address_space_program(record, s, &program))
		return 0;
	r = history_record_add_maps(record, program, since, UINT64_MAX, &maps);
	if (r < 0)
		return r;
	s->events_ns = history_record_changed_ns(record);
	if (!maps.n)
		return 0;
	way.likely[ADDRESS_SPACE_ANCESTORS + 1] = s->gone ? 0 : s->key.pid.pid;
	find_ancestors(c, record, &way);
	return address_space_add(c, s, &way, &maps);
}

/* The process has gone, or has left this program. */
static int address_space_read_events(struct address_space_cache *c, struct address_space *s,
				     uint64_t pc)
{
	const struct history_record *record = address_space_record(c, s);
	uint32_t program;
	int r = 1;

	s->gone = true;
	if (record && s->version)
		r = address_space_add_since(c, s, record);
	else if (record && address_space_is_any(s))
		r = try_programs(c, s, history_record_program(record), pc);
	else if (record && history_record_program_of(record, s->key.exec_id, &program))
		r = try_program(c, s, program, 0);
	if (r < 0)
		return r;
	c->sources[r ? FROM_NOWHERE : FROM_EVENTS]++;
	return 0;
}

/* ---------------------------------------------------------------- reading */

/* Without the right to read the link, only pcs reveal an exec. */
static bool exe_changed(const struct address_space_cache *c, const struct address_space *s)
{
	struct file_id exe;

	if (!address_space_is_any(s))
		return false;
	exe = pid_read_exe(c->proc, s->key.pid.pid);
	return exe.inode && !file_id_same_inode(&exe, &s->exe);
}

/* Whether /proc may show another program than that of the samples. Reasons: missing events from the
 * time of the samples; an exec at that time by a process older than the event log; or a process
 * that continues the exec number of its maker. */
static bool address_space_is_uncertain(const struct address_space_cache *c,
				       const struct address_space *s)
{
	const struct history_record *record = address_space_record(c, s);

	if (address_space_is_any(s))
		return false;
	if (record &&
	    (!history_record_is_counted(record) || history_record_exec_id(record) < s->key.exec_id))
		return true;
	if (record && s->key.exec_id && !history_record_is_learned(record))
		return true;
	if (record &&
	    history_record_is_past(c->history, record)) /* a thread may have outlived its leader */
		return c->until_ns > history_record_exit_ns(record);
	return c->lost_ns > c->since_ns && (!record || !history_record_birth_ns(record));
}

/* Whether the mappings predate a loss of events: later mappings are unknown. */
static bool address_space_is_old(const struct address_space_cache *c, const struct address_space *s)
{
	const struct history_record *record = address_space_record(c, s);

	if (!s->version || s->epoch_ns == c->lost_ns)
		return false;
	return !record ||
	       !history_record_birth_ns(record); /* a process with a known birth is complete */
}

/* Whether all mappings of the last read still exist. */
static bool is_still_there(const struct address_space_cache *c, const struct address_space *s)
{
	_cleanup_(maps_deinit) struct maps maps = {.only_prot = MAPS_X};

	if (maps_read(c->proc, &s->key.pid, &maps))
		return false;
	for (size_t i = 0; i < s->n; i++) {
		const struct address_space_mapping *m = &s->items[i];
		const struct maps_entry *e = maps_find(&maps, m->start);

		if (!e || e->start != m->start || e->limit != m->limit || e->offset != m->offset ||
		    e->device != m->device || e->inode != m->inode)
			return false;
	}
	return true;
}

/* For missing events: a mapping that is old and still exists was there all the time. */
static bool address_space_is_lasting(const struct address_space_cache *c, struct address_space *s)
{
	if (!s->n || c->since_ns < s->as_now_ns + ADDRESS_SPACE_YOUNG_NS)
		return false;
	if (s->asked_ns != c->lost_ns)
		s->lasting = is_still_there(c, s);
	s->asked_ns = c->lost_ns;
	return s->lasting;
}

/* After a read of that cost. */
static void rest(struct address_space_cache *c, struct address_space *s, uint64_t cpu_ns)
{
	uint64_t now_ns = nsec_monotonic();

	s->rest_ns = now_ns + ADDRESS_SPACE_READ_REST * cpu_ns;
	c->rest_ns = now_ns + ADDRESS_SPACE_READ_REST_ALL * cpu_ns;
}

/* Reads the mappings. On a failure the known mappings stay. @now: monotonic. */
static int address_space_read(struct address_space_cache *c, struct address_space *s, uint64_t now,
			      uint64_t pc)
{
	_cleanup_(maps_deinit) struct maps maps = {.only_prot = MAPS_X};
	struct images_way way = {0};
	uint64_t begin_ns = nsec_boot(), begin_cpu_ns = nsec_read(CLOCK_THREAD_CPUTIME_ID);
	const struct history_record *record;
	struct file_id exe;
	int r;

	s->stale = address_space_is_uncertain(c, s);
	if (s->stale)
		return 0;
	s->read_ns = s->looked_ns = now;
	if (address_space_was_left(c, s))
		return address_space_read_events(c, s, pc);
	exe = address_space_is_any(s) ? pid_read_exe(c->proc, s->key.pid.pid) : (struct file_id){0};
	r = maps_read(c->proc, &s->key.pid, &maps);
	if (r == -ENOMEM)
		return r;
	address_space_catch_up(c);
	s->stale = address_space_is_uncertain(c, s);
	if (s->stale)
		return 0;
	/* A zombie has a directory in /proc but no memory. */
	if (!r && (!maps.n || address_space_was_left(c, s)))
		r = MAPS_GONE;
	s->outcome = r < 0 ? MAPS_GONE : r;
	if (r == MAPS_GONE)
		return address_space_read_events(c, s, pc);
	if (r)
		return 0;
	record = address_space_record(c, s);
	s->program = record ? history_record_program(record) : 0;
	s->epoch_ns = c->lost_ns;
	s->read_boot_ns = begin_ns; /* events during the read may or may not be included */
	s->exe = exe;
	/* the process may have ended when its files are opened */
	if (record)
		find_ancestors(c, record, &way);
	way.likely[ADDRESS_SPACE_ANCESTORS + 1] = s->key.pid.pid;
	way.via_pid = maps.via_pid;
	c->sources[FROM_PROC]++;
	r = address_space_set(c, s, &way, &maps);
	rest(c, s, nsec_read(CLOCK_THREAD_CPUTIME_ID) - begin_cpu_ns);
	return r;
}

/* Adds mappings from events after the last read, and reads all again at a limited rate. */
static int add_events(struct address_space_cache *c, struct address_space *s, uint64_t now,
		      uint64_t pc)
{
	const struct history_record *record = address_space_record(c, s);

	if (!record || history_record_changed_ns(record) <= s->read_boot_ns ||
	    address_space_is_uncertain(c, s))
		return 0;
	if (now - s->read_ns >= ADDRESS_SPACE_EVENTS_NS && now >= s->rest_ns && now >= c->rest_ns)
		return address_space_read(c, s, now, pc);
	return history_record_changed_ns(record) > s->events_ns
		       ? address_space_add_since(c, s, record)
		       : 0;
}

/* The same where there is reason to. */
static int address_space_look_again(struct address_space_cache *c, struct address_space *s,
				    uint64_t now, uint64_t pc)
{
	const struct history_record *record;
	int r;

	if (s->gone) { /* its threads may still run */
		record = address_space_record(c, s);
		return record && s->version && history_record_changed_ns(record) > s->events_ns
			       ? address_space_add_since(c, s, record)
			       : 0;
	}
	if (s->stale || address_space_was_left(c, s))
		return address_space_read(c, s, now, pc);
	r = add_events(c, s, now, pc);
	if (r || now - s->looked_ns < ADDRESS_SPACE_REREAD_NS)
		return r;
	s->looked_ns = now;
	return exe_changed(c, s) ? address_space_read(c, s, now, pc) : 0;
}

/* ---------------------------------------------------------------- files on the thread */

static void opened_file(struct address_space_cache *c, struct open_request *request)
{
	static const enum address_space_outcome outcomes[IMAGE_KIND_MAX] = {
		[IMAGE_ANON] = ADDRESS_SPACE_ANON,
		[IMAGE_UNKNOWN] = ADDRESS_SPACE_IMAGES_FULL,
	};
	struct image_opening *opening = request->image->opening;
	struct image *opened = take_ptr(request->opened);
	enum address_space_outcome outcome = outcomes[opened->kind];

	if (opened->kind == IMAGE_FILE)
		outcome = opened->file ? ADDRESS_SPACE_FILE : ADDRESS_SPACE_NO_ELF;
	c->outcomes[outcome] += opening->n_pcs;
	opening->n_pcs = 0;
	image_set_opened(request->image, opened);
}

static void slow_file(struct address_space_cache *c, struct image_opening *opening,
		      uint64_t until_ns)
{
	c->outcomes[ADDRESS_SPACE_SLOW] += opening->n_pcs;
	opening->n_pcs = 0;
	opening->state = IMAGE_SLOW;
	opening->until_ns = until_ns;
}

/* Puts the opened images in place of the first ones. */
static void settle(struct address_space_cache *c, struct address_space *s)
{
	bool changed = false;

	charge(c, s, -1);
	for (size_t i = 0; i < s->n; i++) {
		struct image *image = s->items[i].image;

		if (!image->opening || image->opening->state != IMAGE_OPENED)
			continue;
		changed |= image->opening->opened != image->opening->guess;
		s->items[i].image = image_ref(image->opening->opened);
		image_unref(image);
	}
	recount(s);
	charge(c, s, 1);
	if (changed)
		s->version = ++c->version;
}

static bool may_go_ahead(const struct address_space *s)
{
	return s->n_unopened && s->n_ahead < ADDRESS_SPACE_AHEAD_MAX;
}

static void submit_batches(struct address_space_cache *c);

/* Files of @s are wanted: its owner's queue has it. */
static void enqueue(struct address_space_cache *c, struct address_space *s)
{
	if (!s->queued)
		TAILQ_INSERT_TAIL(&s->owner->queue, s, in_queue);
	s->queued = true;
	submit_batches(c);
}

static void queue_ahead(struct address_space_cache *c, struct address_space *s)
{
	unqueue(s);
	if (c->opener && (s->n_wanted || may_go_ahead(s)))
		enqueue(c, s);
}

/* Whether the file is opened soon. */
static bool want_file(struct address_space_cache *c, struct address_space *s,
		      struct image_opening *opening)
{
	if (opening->state == IMAGE_SLOW && nsec_monotonic() >= opening->until_ns) {
		opening->state = IMAGE_UNASKED;
		s->n_slow--;
		s->n_unopened++;
		s->n_unknown += is_awaited(opening);
	}
	if (opening->state == IMAGE_UNASKED) {
		opening->state = IMAGE_WANTED;
		s->n_unopened--;
		s->n_wanted++;
		enqueue(c, s);
	}
	return opening->state == IMAGE_WANTED || opening->state == IMAGE_ASKED;
}

/* Adds the file of @m to a batch, unless its file system or its owner has a cooldown. */
static void add_request(struct address_space_cache *c, struct address_space *s,
			const struct address_space_mapping *m, struct open_batch *batch)
{
	struct image_opening *opening = m->image->opening;
	uint64_t until_ns = 0;

	if (opener_refuses(c->opener, s->owner->id, m->device, &until_ns)) {
		slow_file(c, opening, until_ns);
		return;
	}
	opening->state = IMAGE_ASKED;
	batch->items[batch->n++] = (struct open_request){
		.image = image_ref(m->image),
		.entry = {.start = m->start,
			  .limit = m->limit,
			  .offset = m->offset,
			  .device = m->device,
			  .inode = m->inode,
			  .prot = MAPS_X,
			  .kind = opening->kind,
			  .path = m->image->path,
			  .deleted = opening->deleted},
	};
}

/* The next files of @s: first those with samples. */
static void fill_batch(struct address_space_cache *c, struct address_space *s,
		       struct open_batch *batch)
{
	batch->way = s->way;
	memcpy(batch->tag, &s->key, sizeof(s->key));
	for (size_t i = 0; i < s->n && s->n_wanted && batch->n < OPENER_BATCH_MAX; i++) {
		const struct image_opening *opening = s->items[i].image->opening;

		if (opening && opening->state == IMAGE_WANTED)
			add_request(c, s, &s->items[i], batch);
	}
	for (size_t i = 0; i < s->n && may_go_ahead(s) && batch->n < OPENER_BATCH_MAX; i++) {
		const struct image_opening *opening = s->items[i].image->opening;

		if (!opening || opening->state != IMAGE_UNASKED)
			continue;
		s->n_ahead++;
		add_request(c, s, &s->items[i], batch);
	}
	recount(s);
}

/* The owner with the least time on the thread, of those with wanted files. */
static struct space_owner *next_owner(const struct address_space_cache *c)
{
	struct space_owner *owner, *next = NULL;

	for (owner = c->owners; owner; owner = owner->hh.next)
		if (!TAILQ_EMPTY(&owner->queue) && (!next || owner->used_ns < next->used_ns))
			next = owner;
	return next;
}

static void submit_batches(struct address_space_cache *c)
{
	struct space_owner *owner;

	while (c->opener && opener_has_room(c->opener) && (owner = next_owner(c))) {
		struct address_space *s = TAILQ_FIRST(&owner->queue);
		struct open_batch *batch = open_batch_new();

		if (!batch)
			return; /* with the next request */
		fill_batch(c, s, batch);
		unqueue(s);
		if (s->n_wanted || may_go_ahead(s)) {
			TAILQ_INSERT_TAIL(&owner->queue, s, in_queue);
			s->queued = true;
		}
		/* with requests there is room for it */
		if (!batch->n || opener_submit(c->opener, batch))
			open_batch_free(batch);
	}
}

static void on_batch(void *ctx, struct open_batch *batch)
{
	struct address_space_cache *c = ctx;
	uint64_t now_ns = nsec_monotonic();
	struct address_space_key key;
	struct space_owner *owner;
	struct address_space *s;

	memcpy(&key, batch->tag, sizeof(key));
	for (size_t i = 0; i < batch->n; i++) {
		struct open_request *request = &batch->items[i];

		if (request->opened)
			opened_file(c, request);
		else if (request->slow)
			slow_file(c, request->image->opening, now_ns + OPENER_COOLDOWN_NS);
		else
			request->image->opening->state = IMAGE_WANTED;
	}
	HASH_FIND(hh, c->owners, &batch->way.owner, sizeof(batch->way.owner), owner);
	if (owner)
		owner->used_ns += batch->took_ns;
	HASH_FIND(hh, c->spaces, &key, sizeof(key), s);
	if (s) {
		settle(c, s);
		queue_ahead(c, s);
	}
	open_batch_free(batch);
	submit_batches(c);
	if (c->opener && c->files.opened)
		c->files.opened(c->files.ctx, key.pid.pid);
}

int address_space_cache_open_behind(struct address_space_cache *c,
				    const struct address_space_files *files)
{
	const struct opener_opts opts = {
		.loop = files->loop,
		.images = c->images,
		.stuck_ns = files->stuck_ns,
		.done = on_batch,
		.ctx = c,
		.hook = files->hook,
		.hook_ctx = files->hook_ctx,
	};

	c->files = *files;
	return opener_new(&opts, &c->opener);
}

size_t address_space_cache_opening(const struct address_space_cache *c)
{
	const struct address_space *s;
	size_t n = 0;

	for (s = c->spaces; c->opener && s; s = s->hh.next)
		n += s->n_wanted + s->n_asked;
	return n;
}

void address_space_cache_wait(struct address_space_cache *c, uint64_t timeout_ns)
{
	if (c->opener)
		opener_wait(c->opener, timeout_ns);
}

bool address_space_opening(const struct address_space *s)
{
	return s->n_unknown && (s->n_wanted || s->n_asked || s->queued);
}

bool address_space_want(struct address_space_cache *c, struct address_space *s, uint64_t pc)
{
	const struct address_space_mapping *m = address_space_find(s, pc);

	return m && m->image->opening && want_file(c, s, m->image->opening) &&
	       !m->image->opening->guess;
}

/* ---------------------------------------------------------------- lookup */

static struct address_space_key key_of(const struct address_space_who *who)
{
	return (struct address_space_key){
		.pid = who->pid, .start_ns = who->start_ns, .exec_id = who->exec_id};
}

static int add_address_space(struct address_space_cache *c, const struct address_space_who *who,
			     struct address_space **ret)
{
	bool hash_oom = false;
	struct address_space *s;

	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->owner = get_owner(c, who->owner);
	if (!s->owner) {
		free(s);
		return -ENOMEM;
	}
	s->key = key_of(who);
	s->delay_ns = ADDRESS_SPACE_REREAD_NS;
	s->stale = true;
	HASH_ADD(hh, c->spaces, key, sizeof(s->key), s);
	if (hash_oom) {
		put_owner(c, s->owner);
		free(s);
		return -ENOMEM;
	}
	s->owner->n_spaces++;
	keep_shares(c, s);
	*ret = s;
	return 0;
}

/* Decides which mappings are credible, by all events so far. */
static void judge(const struct address_space_cache *c, struct address_space *s)
{
	const struct history_record *record = address_space_record(c, s);

	s->ended = record && history_record_exit_ns(record);
	s->doubtful = !address_space_is_any(s) && record &&
		      history_record_changed_ns(record) > c->since_ns;
	s->unsure = (address_space_is_uncertain(c, s) || address_space_is_old(c, s)) &&
		    !address_space_is_lasting(c, s);
}

int address_space_cache_get(struct address_space_cache *c, const struct address_space_who *who,
			    struct address_space **ret)
{
	struct address_space_key key = key_of(who);
	struct address_space *s;
	int r = 0;

	HASH_FIND(hh, c->spaces, &key, sizeof(key), s);
	if (!s)
		r = add_address_space(c, who, &s);
	if (r)
		return r;
	s->used = ++c->tick;
	s->idle = 0;
	address_space_learn(c, s);
	r = address_space_look_again(c, s, nsec_monotonic(), who->pc);
	if (r)
		return r;
	judge(c, s);
	*ret = s;
	return 0;
}

const struct address_space_mapping *address_space_mappings(const struct address_space *s,
							   size_t *ret_n)
{
	*ret_n = s->n;
	return s->items;
}

uint64_t address_space_version(const struct address_space *s)
{
	return s->version;
}

bool address_space_gone(const struct address_space *s)
{
	return s->gone;
}

bool address_space_ended(const struct address_space *s)
{
	return s->ended;
}

int address_space_cache_new(const struct root *proc, struct address_space_cache **ret)
{
	_cleanup_(address_space_cache_freep) struct address_space_cache *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->proc = proc;
	c->until_ns = UINT64_MAX;
	c->self = pid_self(proc);
	r = images_new(proc, &c->images);
	if (!r)
		r = process_history_new(&c->history);
	if (r)
		return r;
	*ret = take_ptr(c);
	return 0;
}

void address_space_cache_free(struct address_space_cache *c)
{
	struct address_space *s, *next;

	if (!c)
		return;
	opener_free(take_ptr(c->opener));
	if (c->files.loop)
		images_leave_open(c->images);
	HASH_ITER(hh, c->spaces, s, next)
		address_space_drop(c, s);
	images_unref(c->images);
	process_history_free(c->history);
	free(c);
}

static enum address_space_outcome unknown_at(struct address_space_cache *c, uint64_t pc,
					     enum address_space_outcome why, struct frame *ret)
{
	*ret = (struct frame){.image = image_ref(images_unknown(c->images)), .vaddr = pc};
	return why;
}

static enum address_space_outcome why_unmapped(const struct address_space *s)
{
	if (!s->n && s->outcome == MAPS_GONE)
		return ADDRESS_SPACE_GONE;
	if (!s->n && s->outcome == MAPS_DENIED)
		return ADDRESS_SPACE_DENIED;
	return ADDRESS_SPACE_UNMAPPED;
}

static enum address_space_outcome frame_at(struct address_space_cache *c, struct address_space *s,
					   const struct address_space_mapping *m, uint64_t pc,
					   struct frame *ret)
{
	struct image *image = m->image;
	uint64_t off, vaddr = pc;

	if (image->opening) {
		*ret = (struct frame){.image = image_ref(image), .vaddr = pc};
		(void)want_file(c, s, image->opening);
		if (image->opening->state == IMAGE_SLOW)
			return ADDRESS_SPACE_SLOW;
		image->opening->n_pcs++;
		return ADDRESS_SPACE_LATER;
	}
	if (image == images_full(c->images))
		return unknown_at(c, pc, ADDRESS_SPACE_IMAGES_FULL, ret);
	if (image->kind == IMAGE_FILE || image->kind == IMAGE_VDSO) {
		if (__builtin_add_overflow(pc - m->start, m->offset, &off) ||
		    !image_vaddr_of_off(image, off, &vaddr))
			return unknown_at(c, pc, ADDRESS_SPACE_NO_SEGMENT, ret);
	}
	*ret = (struct frame){.image = image_ref(image), .vaddr = vaddr};
	if (image->kind == IMAGE_FILE)
		return image->file ? ADDRESS_SPACE_FILE : ADDRESS_SPACE_NO_ELF;
	return image->kind == IMAGE_VDSO ? ADDRESS_SPACE_VDSO : ADDRESS_SPACE_ANON;
}

static bool was_replaced(const struct address_space_cache *c, const struct address_space *s,
			 uint64_t pc)
{
	const struct history_record *record = s->doubtful ? address_space_record(c, s) : NULL;
	uint32_t program;

	if (s->unsure)
		return true;
	return record && address_space_program(record, s, &program) &&
	       history_record_replaced(record, program, pc, c->since_ns);
}

int address_space_resolve(struct address_space_cache *c, struct address_space *s, uint64_t pc,
			  struct frame *ret)
{
	uint64_t now = nsec_monotonic();
	const struct address_space_mapping *m = address_space_find(s, pc);

	if (!m && !s->gone && now - s->read_ns >= s->delay_ns) {
		int r = address_space_read(c, s, now, pc);

		if (r)
			return r;
		judge(c, s);
		m = address_space_find(s, pc);
		s->delay_ns = m ? ADDRESS_SPACE_REREAD_NS : 2 * s->delay_ns;
		if (s->delay_ns > ADDRESS_SPACE_REREAD_LONG_NS)
			s->delay_ns = ADDRESS_SPACE_REREAD_LONG_NS;
	}
	if (!m)
		c->outcomes[unknown_at(c, pc, why_unmapped(s), ret)]++;
	else if (was_replaced(c, s, pc))
		c->outcomes[unknown_at(c, pc, ADDRESS_SPACE_REPLACED, ret)]++;
	else
		c->outcomes[frame_at(c, s, m, pc, ret)]++;
	return 0;
}

int address_space_cache_resolve(struct address_space_cache *c, const struct pid_id *id, uint64_t pc,
				struct frame *ret)
{
	struct address_space_who who = {.pid = *id, .exec_id = ADDRESS_SPACE_EXEC_ANY};
	struct address_space *s;
	int r = address_space_cache_get(c, &who, &s);

	return r ? r : address_space_resolve(c, s, pc, ret);
}

void address_space_cache_kernel(struct address_space_cache *c, uint64_t pc, struct frame *ret)
{
	*ret = (struct frame){.image = image_ref(images_kernel(c->images)), .vaddr = pc};
}

struct image *address_space_cache_vdso(const struct address_space_cache *c)
{
	return images_vdso(c->images);
}

/* The exec id of a process's first exec since the event log began, from samples and without a loss
 * since. 0 if unknown. */
static uint64_t sampled_exec_id(const struct address_space_cache *c, uint32_t pid)
{
	const struct address_space *s, *next;
	uint64_t id = 0;

	HASH_ITER(hh, c->spaces, s, next)
		if (s->key.pid.pid == pid && !s->gone && !address_space_is_any(s) &&
		    s->read_boot_ns > c->lost_ns && s->key.exec_id && s->key.exec_id >= id)
			id = s->key.exec_id + 1;
	return id;
}

/* Whether an event is the first known exec of that process. */
static bool is_first_exec(const struct address_space_cache *c, const struct history_record *record)
{
	return !record || history_record_is_past(c->history, record) ||
	       (!history_record_is_counted(record) && !history_record_program(record));
}

void address_space_cache_event(struct address_space_cache *c, const struct process_event *event)
{
	const struct history_record *record = process_history_find(c->history, event->pid, 0);
	uint64_t id = 0;

	if (event->what == PROCESS_EVENT_EXEC && is_first_exec(c, record))
		id = sampled_exec_id(c, event->pid);
	if (!process_history_add(c->history, event)) {
		address_space_cache_lost(c, 0);
		return;
	}
	record = id ? process_history_find(c->history, event->pid, 0) : NULL;
	if (record)
		process_history_learn(c->history, record, history_record_program(record), id);
}

void address_space_cache_lost(struct address_space_cache *c, uint64_t since_ns)
{
	struct address_space *s, *next;

	c->lost_ns = nsec_boot();
	process_history_lost(c->history, since_ns, c->lost_ns);
	HASH_ITER(hh, c->spaces, s, next)
		s->stale = !s->gone;
}

void address_space_cache_follow(struct address_space_cache *c, address_space_catch_up_fn fn,
				void *ctx)
{
	c->catch_up = fn;
	c->catch_up_ctx = ctx;
}

void address_space_cache_since(struct address_space_cache *c, uint64_t since_ns)
{
	c->since_ns = since_ns;
	c->until_ns = UINT64_MAX;
}

void address_space_cache_at(struct address_space_cache *c, uint64_t time_ns)
{
	c->since_ns = c->until_ns = time_ns;
}

void address_space_cache_invalidate(struct address_space_cache *c, const struct pid_id *id)
{
	struct address_space *s, *next;

	HASH_ITER(hh, c->spaces, s, next)
		if (pid_id_equal(&s->key.pid, id))
			address_space_drop(c, s);
}

void address_space_cache_sweep(struct address_space_cache *c)
{
	struct address_space *s, *next;

	HASH_ITER(hh, c->spaces, s, next) {
		s->stale = !s->gone;
		if (++s->idle > (s->gone ? 1 : ADDRESS_SPACE_IDLE_SWEEPS))
			address_space_drop(c, s);
	}
	for (struct space_owner *owner = c->owners; owner; owner = owner->hh.next)
		owner->used_ns /= 2;
	if (c->opener)
		opener_sweep(c->opener);
	else
		images_sweep(c->images);
	process_history_sweep(c->history, nsec_boot());
}

/* ---------------------------------------------------------------- numbers */

size_t address_space_cache_bytes(const struct address_space_cache *c)
{
	return HASH_COUNT(c->spaces) * sizeof(struct address_space) + c->unopened_bytes +
	       HASH_COUNT(c->owners) * sizeof(struct space_owner) + HASH_OVERHEAD(hh, c->owners) +
	       c->n_mappings * sizeof(struct address_space_mapping) + images_bytes(c->images) +
	       process_history_stats(c->history).bytes + HASH_OVERHEAD(hh, c->spaces);
}

void address_space_cache_collect(void *cache, struct metric_sink *sink)
{
	static const struct metric_family_desc pcs = {
		"podprof_resolved_pcs", METRIC_COUNTER,
		"Run-time addresses of samples, by kind of memory.", NULL};
	static const struct metric_family_desc dropped = {
		"podprof_address_spaces_dropped", METRIC_COUNTER,
		"Processes whose mappings were dropped, by limit.", NULL};
	static const struct metric_family_desc reads = {
		"podprof_address_space_reads", METRIC_COUNTER,
		"Lookups of a process's mappings, by source.", NULL};
	const struct address_space_cache *c = cache;
	uint64_t drops[DROP_MAX], n_slow = 0;

	for (const struct address_space *s = c->spaces; s; s = s->hh.next)
		n_slow += s->n_slow;
	images_collect(c->images, address_space_cache_opening(c), n_slow, sink);
	if (c->opener)
		opener_collect(c->opener, sink);
	metric_by_name(sink, &pcs, "outcome", c->outcomes, outcome_names,
		       ADDRESS_SPACE_OUTCOME_MAX);
	memcpy(drops, c->dropped, sizeof(drops));
	drops[DROP_HISTORY] = process_history_stats(c->history).n_full;
	metric_by_name(sink, &dropped, "limit", drops, drop_names, DROP_MAX);
	metric_by_name(sink, &reads, "source", c->sources, source_names, SOURCE_MAX);
}
