/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROCMAP_SPACE_H
#define PODPROF_PROCMAP_SPACE_H

/*
 * The state of the cache of address spaces, for its parts alone: address_space.c and space_*.c.
 * A part calls only the parts that are listed below its own; results of the threads come back by
 * address_space_cache.use_list.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/file_id.h"
#include "base/hash.h"
#include "base/nsec.h"
#include "base/prioq.h"
#include "discovery/pid.h"
#include "procmap/address_space.h"
#include "procmap/images.h"
#include "procmap/maps.h"
#include "procmap/opener.h"

struct history_record;
struct process_history;
struct root;

/* Ancestors searched for an inherited address space. */
#define ADDRESS_SPACE_ANCESTORS 4
/* Until the next read for a pc outside; doubled up to a ceiling each time nothing was found. A JIT
 * compiler maps more memory with each second, and no event tells. */
#define ADDRESS_SPACE_SEEK_NS	(100 * NSEC_PER_MSEC)

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
	ADDRESS_SPACE_SLOW, /* the file system, or the process's mapping list, did not answer */
	ADDRESS_SPACE_OUTCOME_MAX,
	ADDRESS_SPACE_LATER = ADDRESS_SPACE_OUTCOME_MAX, /* when the file is opened */
};

enum address_space_dropped {
	DROP_TARGETS,
	DROP_MAPPINGS,
	DROP_HISTORY,
	DROP_HISTORY_BYTES,
	DROP_MAX
};

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

/* Orders of the owners. A node has thousands of owners, and each batch, list and eviction asks for
 * the first one. */
enum space_order {
	ORDER_BATCHES,	/* of those with wanted files, the least time on the threads */
	ORDER_LISTS,	/* of those with wanted lists, the same */
	ORDER_SPACES,	/* the most address spaces */
	ORDER_MAPPINGS, /* the most mappings */
	ORDER_MAX,
};

/* An owner with address spaces. */
struct space_owner {
	uint64_t id;
	struct prioq_item places[ORDER_MAX];
	struct space_queue spaces; /* all, the least recently used first */
	size_t n_spaces;
	size_t n_mappings;
	size_t unopened_bytes;
	size_t n_lists;		  /* with the thread */
	size_t n_batches;	  /* the same, of files */
	struct space_queue queue; /* spaces with wanted files */
	struct space_queue lists; /* ... whose list is wanted */
	uint64_t used_ns;	  /* time on the threads; halved in each sweep */
	uint64_t rest_ns;	  /* as that of a space */
	UT_hash_handle hh;
};

/* A pid with address spaces: those of the processes and programs that had it. */
struct space_pid {
	uint64_t pid;
	struct space_queue spaces;
	UT_hash_handle hh;
};

struct address_space {
	struct address_space_key key;
	struct space_owner *owner;
	struct space_pid *pid;
	struct address_space_mapping *items; /* ascending */
	size_t n;
	uint64_t version;
	uint32_t program;  /* program number of the mappings, as in process_history.h */
	uint64_t began_ns; /* boot clock: when the program began, by its exec; 0: not known */
	struct file_id exe;
	uint64_t looked_ns;    /* when the mappings were last read or found unchanged */
	uint64_t read_ns;      /* time of the last read */
	uint64_t read_boot_ns; /* the same by the boot clock */
	uint64_t listed_ns;    /* same clock: since when lists show the mappings; 0: no list did */
	uint64_t seen_ns;      /* boot clock: begin of the last list that shows the mappings */
	uint64_t events_ns;    /* time of the newest included event */
	uint64_t epoch_ns;     /* last loss of events before the mappings were read */
	uint64_t delay_ns;     /* delay before a new read for a pc outside */
	uint64_t unused_ns;    /* boot clock: the first expiry since then; 0: none */
	bool replaces;	       /* a file was in the place of another one, or is gone */
	bool stale;	       /* read again before the next use */
	unsigned int sweeps;   /* since the last list */
	unsigned int wait;     /* sweeps from a list to the next, while events are complete; 0: no
				  list yet */
	bool doubtful;	  /* a mapping changed after the earliest possible time of the samples */
	bool unsure;	  /* a mapping may have changed unnoticed */
	bool ended;	  /* the leader has ended */
	bool gone;	  /* nothing to be read any more */
	int outcome;	  /* enum maps_outcome of the last read */
	uint64_t rest_ns; /* monotonic: no re-read because of an event before */
	struct pid_id list_of;	  /* the list that is read: its own, or a parent's; {0}: none */
	uint64_t list_since_ns;	  /* boot clock: of the samples that need it */
	uint64_t list_refused_ns; /* monotonic: the thread was blocked, no list before */
	uint64_t sought_pc;	  /* outside all mappings, reason of the read; 0: none */
	bool list_queued;
	TAILQ_ENTRY(address_space) in_lists;
	struct images_way way;
	size_t n_wanted; /* images by state, of the mappings */
	size_t n_asked;
	size_t n_slow;
	size_t n_unknown;      /* of those before: awaited, without a guess */
	size_t n_ahead;	       /* files asked for without a sample */
	size_t n_unopened;     /* IMAGE_UNASKED: to be asked for, as @n_ahead allows */
	size_t unopened_bytes; /* of all images that are not opened */
	size_t n_full;	       /* mappings with the stand-in for files without room */
	bool queued;
	TAILQ_ENTRY(address_space) in_queue;
	TAILQ_ENTRY(address_space) in_owner;
	TAILQ_ENTRY(address_space) in_pid;
	UT_hash_handle hh;
};

/* A parent older than the event log; a child inherited its mappings at fork. */
struct space_parent {
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
	struct space_parent read_parent;
	struct address_space *spaces;
	struct space_pid *pids;
	size_t n_mappings;
	size_t unopened_bytes;
	struct space_owner *owners;
	struct prioq orders[ORDER_MAX]; /* of the owners */
	struct opener *opener;		/* NULL: files are opened here, and lists read here */
	struct opener *lister;
	struct address_space_files files;
	/* space_use_list(): space_threads.c does not call the parts above it */
	void (*use_list)(struct address_space_cache *c, struct address_space *s,
			 struct open_list *list);
	size_t n_reading;      /* spaces with a list that is read */
	size_t n_opening;      /* files wanted or asked for, of all spaces */
	struct pid_id read_of; /* {0}: there is no such list */
	struct maps read;      /* of this process, by the thread; until it is taken */
	int read_outcome;
	uint64_t version;
	uint64_t outcomes[ADDRESS_SPACE_OUTCOME_MAX + 1];
	uint64_t dropped[DROP_MAX];
	uint64_t sources[SOURCE_MAX];
};

/* Whether the samples carry no exec id. */
static inline bool space_is_any(const struct address_space *s)
{
	return s->key.exec_id == ADDRESS_SPACE_EXEC_ANY;
}

/* Whether a list is read for @s. */
static inline bool space_is_reading(const struct address_space *s)
{
	return s->list_of.pid;
}

/* ---------------------------------------------------------------- space_reading.c */

/* Before samples are resolved: reads again if there is reason to, and decides which mappings are
 * credible. @pc: as in address_space_who. 0 or -ENOMEM. */
int space_refresh(struct address_space_cache *c, struct address_space *s, uint64_t pc);
/* Once each window: whether the mappings have to be read again although no event tells of a change.
 */
bool space_is_due(const struct address_space_cache *c, struct address_space *s);
/* Reads again for @pc outside all mappings, if it is time. 0 or -ENOMEM. */
int space_seek(struct address_space_cache *c, struct address_space *s, uint64_t pc);
/* The same for memory that an event has reported since the last read. */
int space_seek_memory(struct address_space_cache *c, struct address_space *s);
/* Repeats the read of @s, with the list; takes the mappings of @list. */
void space_use_list(struct address_space_cache *c, struct address_space *s, struct open_list *list);

/* ---------------------------------------------------------------- space_history.c */

/* NULL without events about the process. */
const struct history_record *space_record(const struct address_space_cache *c,
					  const struct address_space *s);
/* The program number of these mappings. False if unknown. */
bool space_program(const struct history_record *record, const struct address_space *s,
		   uint32_t *ret);
/* Sets the time when the program of @s began. */
void space_find_beginning(struct address_space_cache *c, struct address_space *s);
/* Delivers all pending events. */
void space_catch_up(struct address_space_cache *c);
/* Handles a new sample of @s: if only a single program is possible, its exec id becomes known. */
void space_learn(struct address_space_cache *c, const struct address_space *s);
/* Whether the process has executed another program, or has ended and its pid is reused: /proc no
 * longer describes @s. */
bool space_was_left(const struct address_space_cache *c, const struct address_space *s);
/* The ancestors of @record, likely to have the same root. For a process older than the event log
 * and without a known parent, the agent itself. */
void space_find_ancestors(const struct address_space_cache *c, const struct history_record *record,
			  struct images_way *way);
/* The mappings of events after the newest one in @s. @ret must be empty. 0; 1: the program is not
 * known; -ENOMEM. */
int space_get_news(const struct address_space *s, const struct history_record *record,
		   struct maps *ret);
/* Adds the mappings made after the last read, for a process that is unreadable or was read a moment
 * ago. 0 or -ENOMEM. */
int space_add_since(struct address_space_cache *c, struct address_space *s,
		    const struct history_record *record);
/* The process has gone, or has left this program: its mappings are those of the events. 0, -ENOMEM;
 * -EINPROGRESS as space_get_list(). */
int space_read_events(struct address_space_cache *c, struct address_space *s, uint64_t pc);

/* ---------------------------------------------------------------- space_threads.c */

/* The mappings of the process @id, for @s. 0, enum maps_outcome, -errno; -EINPROGRESS: the thread
 * reads them, and the caller's work is repeated with them. @ret must be empty. */
int space_get_list(struct address_space_cache *c, struct address_space *s, const struct pid_id *id,
		   struct maps *ret);
/* Puts @s in the owner's queue if @s has files to open, and removes @s otherwise. */
void space_queue_ahead(struct address_space_cache *c, struct address_space *s);
/* Wants the file. Whether it is opened soon. */
bool space_want_file(struct address_space_cache *c, struct address_space *s,
		     struct image_opening *opening);

/* ---------------------------------------------------------------- space_mappings.c */

/* A new address space without mappings, within its owner's share. 0 or -ENOMEM. */
int space_new(struct address_space_cache *c, const struct address_space_key *key, uint64_t owner,
	      struct address_space **ret);
/* @s is now the most recently used of its owner. */
void space_use(struct address_space *s);
/* Frees @s, and the owner if @s was the last of the owner. */
void space_drop(struct address_space_cache *c, struct address_space *s);
/* Replaces the mappings by @maps; space_queue_ahead() is the caller's next step. @news: mappings of
 * events since the last call; NULL: none. 0 or -ENOMEM. */
int space_set_mappings(struct address_space_cache *c, struct address_space *s,
		       const struct images_way *way, const struct maps *maps,
		       const struct maps *news);
/* Adds @maps over the present mappings; the rest is as above. */
int space_add_mappings(struct address_space_cache *c, struct address_space *s,
		       const struct images_way *way, const struct maps *maps);
/* NULL if there is none at @pc. */
const struct address_space_mapping *space_find(const struct address_space *s, uint64_t pc);
/* Puts the opened images in place of the first ones. */
void space_settle(struct address_space_cache *c, struct address_space *s);
/* Whether files of @s were without room, and there is room now. */
bool space_has_room(const struct address_space_cache *c, const struct address_space *s);
/* The numbers of @s's images by state. */
void space_recount(struct address_space_cache *c, struct address_space *s);
/* No list is read for @s any more. */
void space_end_list(struct address_space_cache *c, struct address_space *s);

/* ---------------------------------------------------------------- space_owners.c */

/* The owner with this id, made if it is not there. 0 or -ENOMEM. */
int space_get_owner(struct address_space_cache *c, uint64_t id, struct space_owner **ret);
/* Frees @owner if it has no spaces, and nothing with the threads. */
void space_put_owner(struct address_space_cache *c, struct space_owner *owner);
/* After a change of its numbers or queues: the places of @owner in all orders. */
void space_order_owner(struct address_space_cache *c, struct space_owner *owner);
/* The first of @order. NULL if there is none. */
struct space_owner *space_first_owner(const struct address_space_cache *c, enum space_order order);
/* Adds @s to its owner's queue of wanted files; nothing if it is there. */
void space_enqueue(struct address_space_cache *c, struct address_space *s);
void space_unqueue(struct address_space_cache *c, struct address_space *s);
/* The same for wanted lists. */
void space_enqueue_list(struct address_space_cache *c, struct address_space *s);
void space_unqueue_list(struct address_space_cache *c, struct address_space *s);

#endif
