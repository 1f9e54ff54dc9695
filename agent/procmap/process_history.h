/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROCMAP_PROCESS_HISTORY_H
#define PODPROF_PROCMAP_PROCESS_HISTORY_H

/*
 * What the kernel told of processes that were born, executed something or mapped code since we
 * listen, kept for a while after their end: what a sample of one that has gone is explained by.
 *
 * A process has programs, counted from 0: what it inherited from its parent, then one for each
 * exec. For one that was born while we listen that is the exec id that samples carry, for others it
 * is not known before somebody says so (process_history_learn()).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmap/maps.h"

struct history_record;
struct process_history;

/* How long a life is known after its end: samples are handed over within some seconds. */
#define PROCESS_HISTORY_KEEP_NS	 20000000000ull
/* Between a process's start time and the event that tells of its birth; they are some instructions
 * apart, in which a virtual CPU may be taken away. A later event is of another one's birth. */
#define PROCESS_HISTORY_BIRTH_NS 200000000ull

/**
 * struct process_event - one thing that happened, as the kernel told it
 * @pid:     process; @tid: the thread that did it
 * @time_ns: boot clock. Events come in the order of time, but for some that may be late
 * @ppid:    of a birth
 * @map:     of a mapping: the range, offset, device and inode; @name is its name
 */
struct process_event {
	enum process_event_kind {
		PROCESS_EVENT_BIRTH,
		PROCESS_EVENT_EXEC,
		PROCESS_EVENT_MAP,
		PROCESS_EVENT_EXIT
	} what;
	uint32_t pid;
	uint32_t tid;
	uint32_t ppid;
	uint64_t time_ns;
	struct maps_entry map;
	const char *name;
};

int process_history_new(struct process_history **ret);
void process_history_free(struct process_history *history);

/* Without memory, or where too many live, what is told is forgotten and counted: false. That is as
 * if it had been lost. */
bool process_history_add(struct process_history *history, const struct process_event *event);
/* Some events of between @since_ns and @now_ns were lost: what is told of those that lived then is
 * not all there is. They are forgotten, and what comes later and is of before @now_ns is not taken.
 */
void process_history_lost(struct process_history *history, uint64_t since_ns, uint64_t now_ns);
/* Forget those that ended longer ago than PROCESS_HISTORY_KEEP_NS before @now_ns (boot clock). */
void process_history_sweep(struct process_history *history, uint64_t now_ns);

/**
 * process_history_find() - the life of a process
 * @start_ns: boot clock; when it was started, or any time between that and its fork's event; 0: the
 *            newest one that has that pid
 *
 * Return: borrowed until the next process_history_add() or process_history_sweep(), or NULL.
 */
const struct history_record *process_history_find(const struct process_history *history,
						  uint64_t pid, uint64_t start_ns);

/* The life that had @pid at @time_ns; for one that ended before, the last one before it. */
const struct history_record *process_history_find_at(const struct process_history *history,
						     uint64_t pid, uint64_t time_ns);

/* The number of the program that it runs, or ran last. */
uint32_t history_record_program(const struct history_record *record);
/* Whether that program's exec id is known; and which it is then. */
bool history_record_is_counted(const struct history_record *record);
uint64_t history_record_exec_id(const struct history_record *record);
/* Of which program a sample with @exec_id is. False if that is not known. */
bool history_record_program_of(const struct history_record *record, uint64_t exec_id,
			       uint32_t *ret);
/* @exec_id is that of @program. Others' are counted from there. */
void process_history_learn(struct process_history *history, const struct history_record *record,
			   uint32_t program, uint64_t exec_id);
/* Whether a sample has said that of one that it has executed. What is counted from what it was born
 * with is right without it, except for who was made by clone(CLONE_PARENT): those count on from
 * their maker (lib/task.bpf.h). */
bool history_record_is_learned(const struct history_record *record);
/* When a file was last mapped, or it executed one: a list of mappings that was read before is old.
 */
uint64_t history_record_changed_ns(const struct history_record *record);
uint64_t history_record_exit_ns(const struct history_record *record);
/* Whether its leader had ended before something was lost: what its other threads did since is not
 * known. */
bool history_record_is_past(const struct process_history *history,
			    const struct history_record *record);
/* Who made it; 0 if that was before we listened. */
uint32_t history_record_parent(const struct history_record *record);

/**
 * history_record_add_maps() - put what @program is known to have mapped over @maps
 * @since_ns: only what was mapped after that time, and
 * @until_ns: not after that one
 *
 * A mapping that covers an older one replaces that part of it. What was unmapped is not told.
 *
 * Return: 0; -ENOMEM.
 */
int history_record_add_maps(const struct history_record *record, uint32_t program,
			    uint64_t since_ns, uint64_t until_ns, struct maps *maps);
/* Whether, after @since_ns, something was mapped at @pc where the same program had mapped something
 * else, or may have: a sample from then may be of either. */
bool history_record_replaced(const struct history_record *record, uint32_t program, uint64_t pc,
			     uint64_t since_ns);
/* Which program @record ran at that time. */
uint32_t history_record_program_at(const struct history_record *record, uint64_t time_ns);
/* Whether it ran one program only between these times; which one. */
bool history_record_ran_only(const struct history_record *record, uint64_t since_ns,
			     uint64_t until_ns, uint32_t *ret);
/* When it was born; 0 if that was before we listened. */
uint64_t history_record_birth_ns(const struct history_record *record);

struct process_history_stats {
	size_t n;	   /* lives */
	size_t bytes;	   /* memory */
	uint64_t n_full;   /* lives dropped by the ceiling */
	uint64_t n_maps;   /* mappings dropped by a ceiling */
	uint64_t n_memory; /* events forgotten without memory */
};
struct process_history_stats process_history_stats(const struct process_history *history);

#endif
