/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_RUNTIME_PROCESS_H
#define PODPROF_RUNTIMES_RUNTIME_PROCESS_H

/*
 * The processes of a runtime's reader, and the functions that are known of each. All on the loop.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/hash.h"
#include "discovery/pid.h"
#include "runtimes/runtime_budget.h"

struct address_space_who;
struct frame_record;
struct runtime_life;
struct runtime_reader_kind;
struct share_holder;

struct runtime_process_key {
	uint64_t pid;
	uint64_t start_ns;
	uint64_t exec_id;
};

/* A frame's words; without the place, unless functions are read by place. Or the words for any
 * place (runtime_reader_kind.any_place). */
struct runtime_function_key {
	uint64_t words[2];
};

/* Sweeps without a sample after which a function is not in use. */
#define RUNTIME_FUNCTION_IDLE 2

/* A function; without a value if the function is gone, and for any place. */
struct runtime_function {
	struct runtime_function_key key;
	uint64_t read_place; /* for any place: the second word of the one read last */
	void *value;	     /* owned; NULL: not read, or gone */
	uint64_t proved_ns;  /* monotonic: of the last reading or proof */
	bool is_wanted;	     /* to read or to prove: in the process's @wanted */
	bool is_gone;
	uint8_t n_idle; /* sweeps since the last sample, up to RUNTIME_FUNCTION_IDLE */
	TAILQ_ENTRY(runtime_function) in_wanted;
	UT_hash_handle hh;
};

TAILQ_HEAD(runtime_function_queue, runtime_function);

struct runtime_process {
	struct runtime_process_key key;
	struct runtime_life *life;
	struct pid_id pid;
	uint64_t inode;	  /* pid_check_inode() */
	void *target;	  /* owned; NULL: not probed yet */
	int outcome;	  /* of @target */
	uint64_t version; /* of the probed mappings */
	unsigned int n_attempts;
	unsigned int n_quick; /* attempts before these */
	uint64_t retry_ns;    /* monotonic; 0: no attempt is due */
	bool is_probing;
	bool is_naming;
	bool is_hung;
	bool is_full;
	bool is_over; /* since the last sweep */
	struct runtime_function *functions;
	struct runtime_function_queue wanted;
	size_t n_wanted;
	struct share_holder *owner;  /* of the process */
	struct share_holder *walked; /* ... and of its record; NULL: no record */
	struct share_holder *quick;  /* ... and of a quick attempt; NULL: none is ahead */
	bool is_queued;		     /* in @unread */
	TAILQ_ENTRY(runtime_process) in_unread;
	bool is_copied; /* known by excerpts alone: in @copied */
	TAILQ_ENTRY(runtime_process) in_copied;
	UT_hash_handle hh;
};

TAILQ_HEAD(runtime_process_queue, runtime_process);

struct runtime_processes {
	const struct runtime_reader_kind *kind;
	struct runtime_process *items;
	struct runtime_life *lives;
	struct runtime_process_queue unread; /* functions are wanted, and no job reads them */
	struct runtime_process_queue copied; /* the oldest first */
	size_t n_copied;
	struct share_holder *owners;  /* of @items */
	struct share_holder *walkers; /* of @n_records */
	size_t n_records;
	struct share_holder *quick; /* of @n_quick */
	size_t n_quick;
	struct runtime_budget *budget;
	struct runtime_budget_member in_budget;
	size_t name_bytes;  /* of all functions */
	uint64_t n_evicted; /* functions that gave way to others */
	uint64_t n_refused;
};

/* @budget is borrowed. */
void runtime_processes_init(struct runtime_processes *m, const struct runtime_reader_kind *kind,
			    struct runtime_budget *budget);
void runtime_processes_deinit(struct runtime_processes *m);

struct runtime_process_key runtime_process_key_of(const struct address_space_who *who);
struct runtime_process *runtime_process_find(const struct runtime_processes *m,
					     const struct runtime_process_key *key);
/* NULL: above the share of @owner, or no memory; counted in @n_refused. */
struct runtime_process *runtime_process_new(struct runtime_processes *m,
					    const struct address_space_who *who, uint64_t owner);
void runtime_process_drop(struct runtime_processes *m, struct runtime_process *p);

/* The process runs the program of @key; those before it have ended. */
void runtime_process_saw(struct runtime_processes *m, const struct runtime_process_key *key);
/* Whether the process has run a later program. */
bool runtime_process_is_past(const struct runtime_process *p);

/* Puts the process into @unread, or takes it out. */
void runtime_process_queue(struct runtime_processes *m, struct runtime_process *p);
void runtime_process_unqueue(struct runtime_processes *m, struct runtime_process *p);

/* Whether the process is known by excerpts alone. Before setting it, call
 * runtime_processes_make_room(). */
void runtime_process_set_copied(struct runtime_processes *m, struct runtime_process *p, bool is);
/* Drops the oldest of @copied until one more has room. */
void runtime_processes_make_room(struct runtime_processes *m);

/* Whether the walker has a record of the process. */
bool runtime_process_has_record(const struct runtime_process *p);
/* Takes a record within the owner's share of @kind's; @is_full tells the failure. */
void runtime_process_take_record(struct runtime_processes *m, struct runtime_process *p);
void runtime_process_drop_record(struct runtime_processes *m, struct runtime_process *p);

/* Takes a place among the processes with a quick attempt ahead. False: above the owner's share. */
bool runtime_process_take_quick(struct runtime_processes *m, struct runtime_process *p);
/* Gives it back; without one, does nothing. */
void runtime_process_put_quick(struct runtime_processes *m, struct runtime_process *p);

/* The function of a frame; NULL: not known. */
struct runtime_function *runtime_function_find(const struct runtime_processes *m,
					       const struct runtime_process *p,
					       const struct frame_record *frame);
/* The function of the key; NULL: not known. */
struct runtime_function *runtime_function_find_key(const struct runtime_process *p,
						   const struct runtime_function_key *key);
/* The function of a frame whose place is not known, read at another place: with the same check, so
 * the same function. NULL: not known. */
struct runtime_function *runtime_function_elsewhere(const struct runtime_processes *m,
						    const struct runtime_process *p,
						    const struct frame_record *frame);
/* A function to read, not known before; the process goes into @unread. NULL without memory. */
struct runtime_function *runtime_function_new(struct runtime_processes *m,
					      struct runtime_process *p,
					      const struct frame_record *frame);
/* The function is read: takes @value, or is gone with NULL. A value before stays if this one is
 * NULL. */
void runtime_function_set(struct runtime_processes *m, struct runtime_process *p,
			  struct runtime_function *f, void *value);
/* A function that is known, to prove again; the process goes into @unread. */
void runtime_function_prove(struct runtime_processes *m, struct runtime_process *p,
			    struct runtime_function *f);
/* The function is as it was read, or nothing more is known of it. */
void runtime_function_keep(struct runtime_process *p, struct runtime_function *f);
/* The function is another one, and could not be read. */
void runtime_function_lose(struct runtime_processes *m, struct runtime_process *p,
			   struct runtime_function *f);
/* A sample has the function. */
void runtime_function_use(struct runtime_function *f);
/* Once a window: drops the functions of the process that are gone, and ages the others. */
void runtime_functions_sweep(struct runtime_processes *m, struct runtime_process *p);

/* Frees what runtime_reader_kind.read() has made; NULL is fine. */
void runtime_value_free(const struct runtime_reader_kind *kind, void *value);

#endif
