/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROCMAP_ADDRESS_SPACE_STATE_H
#define PODPROF_PROCMAP_ADDRESS_SPACE_STATE_H

/*
 * What the parts of procmap/address_space.h share, and nobody else includes: address_space.c finds
 * and resolves; address_space_read.c reads mappings from /proc and knows when to;
 * address_space_events.c has them from what the kernel told; address_space_mappings.c keeps them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/nsec.h"
#include "discovery/pid.h"
#include "procmap/address_space.h"
#include "procmap/maps.h"
#include "procmap/process_history.h"

/* Until the next read for a pc outside; doubled up to the second each time nothing was found. */
#define ADDRESS_SPACE_REREAD_NS NSEC_PER_SEC

/* Ancestors through whom an inherited space is looked for. */
#define ADDRESS_SPACE_ANCESTORS 4

enum address_space_outcome {
	ADDRESS_SPACE_FILE,   /* a file, by its segments */
	ADDRESS_SPACE_NO_ELF, /* a file that could not be opened or read as ELF: by file offset */
	ADDRESS_SPACE_VDSO,
	ADDRESS_SPACE_ANON,
	ADDRESS_SPACE_UNMAPPED,	  /* outside all executable mappings */
	ADDRESS_SPACE_REPLACED,	  /* something else was mapped there, before or after the sample */
	ADDRESS_SPACE_NO_SEGMENT, /* in a mapping, outside what the file says is loaded there */
	ADDRESS_SPACE_GONE,	  /* the process had left before its mappings were read */
	ADDRESS_SPACE_DENIED,
	ADDRESS_SPACE_IMAGES_FULL,
	ADDRESS_SPACE_OUTCOME_MAX,
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

struct address_space {
	struct address_space_key key;
	struct address_space_mapping *items; /* ascending */
	size_t n;
	uint64_t version;
	uint32_t program; /* whose mappings these are, as process_history.h counts */
	struct pid_exe exe;
	uint64_t looked_ns;    /* when the mappings were last read or found unchanged */
	uint64_t read_ns;      /* when they were last read */
	uint64_t read_boot_ns; /* the same by the boot clock */
	uint64_t as_now_ns;    /* since when they are as they are, the same clock */
	uint64_t asked_ns;     /* the time of the loss after which it was seen whether they ... */
	bool lasting;	       /* ... have stayed */
	uint64_t events_ns;    /* up to when what was told since is in it */
	uint64_t epoch_ns;     /* the last loss of events when they were had */
	uint64_t delay_ns;     /* until they are read again for a pc that is outside */
	uint64_t used;	       /* tick of the last use */
	unsigned int idle;     /* sweeps since then */
	bool stale;	       /* read again before the next use */
	bool doubtful;	       /* something was mapped since the time that samples are from */
	bool unsure;	       /* ... or may have been */
	bool ended;	       /* its leader has */
	bool gone;	       /* nothing to be read any more */
	int outcome;	       /* enum maps_outcome of the last read */
	UT_hash_handle hh;
};

/* A process that was there before we listened, by whose mappings now a child's were told. */
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
	uint64_t tick;
	uint64_t version;
	uint64_t outcomes[ADDRESS_SPACE_OUTCOME_MAX];
	uint64_t dropped[DROP_MAX];
	uint64_t sources[SOURCE_MAX];
};

/* How images are found for entries: by a living process, or for one that may have gone. */
struct finder {
	uint64_t via_pid;			      /* 0: by records */
	uint64_t likely[ADDRESS_SPACE_ANCESTORS + 2]; /* processes that may have the same root */
};

/* ---- address_space_mappings.c ---- */

/* NULL if there is none at @pc. */
const struct address_space_mapping *address_space_find(const struct address_space *s, uint64_t pc);
/* @maps are its mappings from now on. 0 or -ENOMEM. */
int address_space_set(struct address_space_cache *c, struct address_space *s,
		      const struct finder *f, const struct maps *maps);
/* @maps are so too, over those that were there. 0 or -ENOMEM. */
int address_space_add(struct address_space_cache *c, struct address_space *s,
		      const struct finder *f, const struct maps *maps);
void address_space_drop(struct address_space_cache *c, struct address_space *s);
/* @but is not dropped. */
void address_space_drop_least_used(struct address_space_cache *c, const struct address_space *but,
				   enum address_space_dropped why);

/* ---- address_space_events.c ---- */

/* NULL if nothing was told of it. */
const struct history_record *address_space_record(const struct address_space_cache *c,
						  const struct address_space *s);
/* Whether its samples do not tell which of its programs they are of. */
bool address_space_is_any(const struct address_space *s);
/* Which of the life's programs has these mappings. False if that is not known (any more). */
bool address_space_program(const struct history_record *record, const struct address_space *s,
			   uint32_t *ret);
/* All that has happened up to now is told. */
void address_space_catch_up(struct address_space_cache *c);
/* A sample of @s has come: if there is only one program that it can be of, that is its exec id. */
void address_space_learn(struct address_space_cache *c, const struct address_space *s);
/* Whether the process has executed another program, or has ended and its pid has come back: what
 * /proc has is not of @s. */
bool address_space_was_left(const struct address_space_cache *c, const struct address_space *s);
/* What was mapped after the last read, of a process that cannot be read any more or was read a
 * moment ago. */
int address_space_add_since(struct address_space_cache *c, struct address_space *s,
			    const struct history_record *record);
/* The process has gone, or has left this program. */
int address_space_read_events(struct address_space_cache *c, struct address_space *s, uint64_t pc);

/* ---- address_space_read.c ---- */

/* Whether /proc shows the same program is not known. */
bool address_space_is_uncertain(const struct address_space_cache *c, const struct address_space *s);
/* Whether the mappings are of before a loss: nobody told what was mapped meanwhile. */
bool address_space_is_old(const struct address_space_cache *c, const struct address_space *s);
/* Where events are missing: what has been mapped for long and still is was there all the time. */
bool address_space_is_lasting(const struct address_space_cache *c, struct address_space *s);
/* Reads the mappings. Where that fails, those that are known stay. @now: monotonic. */
int address_space_read(struct address_space_cache *c, struct address_space *s, uint64_t now,
		       uint64_t pc);
/* The same where there is reason to. */
int address_space_look_again(struct address_space_cache *c, struct address_space *s, uint64_t now,
			     uint64_t pc);

#endif
