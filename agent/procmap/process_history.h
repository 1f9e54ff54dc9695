/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROCMAP_PROCESS_HISTORY_H
#define PODPROF_PROCMAP_PROCESS_HISTORY_H

/*
 * The event log of processes that forked, executed a program or mapped code since the agent started
 * to listen. A record stays for a grace period after the end of its process, for late samples of
 * the process.
 *
 * A process has programs, counted from 0: program 0 is inherited from the parent, and each exec
 * adds one. For a process that was born while the agent listens, the program's number is the exec
 * id in samples. For an older process the difference between exec id and number is unknown until
 * process_history_learn().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nsec.h"
#include "procmap/maps.h"

struct history_record;
struct process_history;

/* Grace period of a record after the exit. Samples arrive within some seconds. */
#define PROCESS_HISTORY_KEEP_NS	 (20 * NSEC_PER_SEC)
/* The longest time from a process's start time to the event about its birth. The kernel needs some
 * instructions from one to the other, but a virtual CPU may lose its time slice in between. A later
 * event belongs to another birth. */
#define PROCESS_HISTORY_BIRTH_NS (200 * NSEC_PER_MSEC)

/**
 * struct process_event - one event about a process, from the kernel
 * @pid:     process; @tid: the thread that caused the event
 * @time_ns: boot clock. Events arrive in the order of time, except for some late ones
 * @ppid:    for a birth: the parent
 * @map:     for a mapping: the range, offset, device and inode; @name: the mapping's name
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

/* False without memory or above the limit of processes: the event is discarded and counted. The
 * caller must treat this as a loss. */
bool process_history_add(struct process_history *history, const struct process_event *event);
/* Adds the birth of a process that the caller made by fork() and that has executed nothing yet. The
 * exec ids of this process need no confirmation by a sample (history_record_is_learned()). False as
 * process_history_add(). */
bool process_history_add_child(struct process_history *history, uint32_t pid, uint32_t ppid,
			       uint64_t birth_ns);
/* Some events between @since_ns and @now_ns were lost. Discards the records of all processes that
 * lived after @since_ns, and ignores later events with a time before @now_ns. */
void process_history_lost(struct process_history *history, uint64_t since_ns, uint64_t now_ns);
/* Drops records of processes that ended more than PROCESS_HISTORY_KEEP_NS before @now_ns (boot
 * clock): the present, or the time of the oldest sample to come. */
void process_history_sweep(struct process_history *history, uint64_t now_ns);

/**
 * process_history_find() - the record of a process
 * @start_ns: boot clock; the start time, or any time between the start and the event about the
 *            fork; 0: the newest process with this pid
 *
 * Return: borrowed until the next process_history_add() or process_history_sweep(), or NULL.
 */
const struct history_record *process_history_find(struct process_history *history, uint64_t pid,
						  uint64_t start_ns);

/* The record of the process with @pid at @time_ns. If that process ended before, the last one
 * before @time_ns. */
const struct history_record *process_history_find_at(struct process_history *history, uint64_t pid,
						     uint64_t time_ns);

/* The number of the current or last program. */
uint32_t history_record_program(const struct history_record *record);
/* Whether the exec id of the current or last program is known; and this exec id. */
bool history_record_is_counted(const struct history_record *record);
uint64_t history_record_exec_id(const struct history_record *record);
/* The program of a sample with @exec_id. False if unknown. */
bool history_record_program_of(const struct history_record *record, uint64_t exec_id,
			       uint32_t *ret);
/* Records that @program has @exec_id, in a process with this start time (boot clock; 0: not known).
 * The exec ids of other programs follow by counting. */
void process_history_learn(struct process_history *history, const struct history_record *record,
			   uint32_t program, uint64_t exec_id, uint64_t start_ns);
/* Whether a sample or process_history_add_child() has confirmed the exec ids of executed programs.
 * Without a confirmation the exec ids are counted from 0. The count is wrong only after
 * clone(CLONE_PARENT), because the kernel then continues the count of the process that called
 * clone() (lib/task.bpf.h). */
bool history_record_is_learned(const struct history_record *record);
/* Time of the last file mapping or exec. An older list of mappings is out of date. */
uint64_t history_record_changed_ns(const struct history_record *record);
/* Executable memory without a file, and when it was mapped; all 0: none. */
struct history_memory {
	uint64_t start;
	uint64_t limit;
	uint64_t time_ns;
};
/* The newest one of the current program. */
struct history_memory history_record_memory(const struct history_record *record);
uint64_t history_record_exit_ns(const struct history_record *record);
/* Whether the leader ended before a loss of events. Execs and mappings by the other threads after
 * the loss are unknown. */
bool history_record_is_past(const struct process_history *history,
			    const struct history_record *record);
/* The parent; 0 for a process older than the event log. */
uint32_t history_record_parent(const struct history_record *record);

/**
 * history_record_add_maps() - put the known mappings of @program over @maps
 * @since_ns: only mappings made after this time
 * @until_ns: only mappings made until this time
 *
 * A mapping replaces the covered part of an older mapping. There are no events about unmapping.
 *
 * Return: 0; -ENOMEM.
 */
int history_record_add_maps(const struct history_record *record, uint32_t program,
			    uint64_t since_ns, uint64_t until_ns, struct maps *maps);
/* Whether, after @since_ns, a mapping at @pc replaced another mapping of the same program, or may
 * have. A sample of that time may belong to either. */
bool history_record_replaced(const struct history_record *record, uint32_t program, uint64_t pc,
			     uint64_t since_ns);
/* The program of @record at this time. */
uint32_t history_record_program_at(const struct history_record *record, uint64_t time_ns);
/* When @program of @record was executed; 0: not known, or it was not. */
uint64_t history_record_exec_ns(const struct history_record *record, uint32_t program);
/* Whether @record ran only a single program between these times, and its number. */
bool history_record_ran_only(const struct history_record *record, uint64_t since_ns,
			     uint64_t until_ns, uint32_t *ret);
/* Time of birth; 0 for a process older than the event log. */
uint64_t history_record_birth_ns(const struct history_record *record);

struct process_history_stats {
	size_t n;	   /* records */
	size_t bytes;	   /* memory */
	uint64_t n_full;   /* records dropped by the ceiling */
	uint64_t n_maps;   /* mappings dropped by a ceiling */
	uint64_t n_halved; /* processes that lost mappings by the ceiling of memory */
	uint64_t n_memory; /* events dropped for lack of memory */
};
struct process_history_stats process_history_stats(const struct process_history *history);

#endif
