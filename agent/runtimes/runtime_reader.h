/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_RUNTIME_READER_H
#define PODPROF_RUNTIMES_RUNTIME_READER_H

/*
 * The common part of readers (struct runtime) that read files and memory of processes: a thread
 * with a watchdog, the processes with their records for the walker, and the functions that frames
 * belong to. A language runtime adds a struct runtime_reader_kind, whose functions run on the
 * thread and may block, except where the member says "loop".
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes/runtimes.h"

struct memory;
struct pid_id;
struct root;
struct runtime_files;
struct runtime_probe;
struct runtime_reader;

/* Words of a process's memory that stay as they are while a function at its place does. */
#define RUNTIME_PROOF_WORDS 3
struct runtime_proof {
	size_t n; /* 0: no other function comes there */
	struct {
		uint64_t at;
		uint64_t word;
	} words[RUNTIME_PROOF_WORDS];
};

/* Bytes of a release as text, for metrics. Reached: cut. */
#define RUNTIME_VERSION_BYTES 16

/**
 * struct runtime_reader_kind - a language runtime
 * @name:       of the thread and in metrics
 * @runtime:    enum frame_runtime
 * @records:    entries of the walker's map
 * @states:     number of outcomes; 0 is success
 * @unreadable: the outcome for an error of our side
 * @state_name: of an outcome, for metrics. Loop
 * @may_change: whether a process with this outcome is tried again. Loop
 * @is_expected: whether a process with this outcome has mapped the runtime and is about to run it;
 *              NULL: never. Loop
 * @is_partial: whether a process with outcome 0 is tried again, because the target lacks a part;
 *              NULL: never. Loop
 * @probe:      of the files in a process; its outcome of an ended process is the runtime's
 * @target_bytes: of a target: what the runtime knows of a process; copied with memcpy()
 * @find:       look for the runtime in a process. @files are the thread's, made with @probe. @ret
 *              has @target_bytes zeros before. An outcome, -errno
 * @record:     the walker's record in a target, for a process with outcome 0. Loop
 * @version:    release of a target as text; "": not known. Loop
 * @any_place:  whether the function of a frame is read for each place, not once for all. Then @ret
 *              stands for the function at any place; it is no frame's words. NULL: never. Loop
 * @function_bytes: of a function; all zeros is empty
 * @read:       read the function of a frame. @words are the frame's; unless @any_place(), the
 * place (bits 31..0 of the second) is 0. @ret stays empty on failure. 0, an outcome, -errno
 * @is_cached:  @read may have memory from a cache (procmap/memory_cache.h) that begins after the
 *              samples of the frames, and checks with memory_beneath() or memory_forget() that the
 *              function is still the frame's
 * @function_deinit: loop
 * @function_size: bytes of memory behind the function. Loop
 * @proof:      by what a function is known to be still the one that was read. NULL: the words of a
 *              frame are never another function's. Loop
 * @proof_ns:   from a reading or proof until the next samples of the function wait for a proof
 * @place:      the place @place of a frame in its function, borrowed from the function. Loop
 *
 * For a runtime with excerpts (bpf/shared/stack_dump.h), else NULL. Loop:
 *
 * @exe_bytes:      of the walker's value for a program
 * @exe:            that value, from the probe's result and a target with it, or NULL. False: not
 *                  enough is known
 * @excerpt_target: of a process, by the probe's result for a file at @bias, and an excerpt. False:
 *                  not enough is known
 * @excerpt_next:   words of the next function of an excerpt, as in @read. *@at is 0 at first.
 *                  False: no more
 */
struct runtime_reader_kind {
	const char *name;
	uint32_t runtime;
	size_t records;
	int states;
	int unreadable;
	const char *(*state_name)(int outcome);
	bool (*may_change)(int outcome);
	bool (*is_expected)(int outcome);
	bool (*is_partial)(const void *target);
	const struct runtime_probe *probe;
	size_t target_bytes;
	int (*find)(struct runtime_files *files, const struct root *proc, const struct pid_id *id,
		    void *ret);
	const void *(*record)(const void *target);
	void (*version)(const void *target, char ret[RUNTIME_VERSION_BYTES]);
	size_t exe_bytes;
	bool (*exe)(const void *image, const void *target, void *ret);
	bool (*excerpt_target)(const void *image, uint64_t bias, const uint8_t *bytes, size_t n,
			       void *ret);
	bool (*excerpt_next)(const void *target, const uint8_t *bytes, size_t n, uint64_t *at,
			     uint64_t ret_words[2]);
	uint32_t excerpt_memory; /* the kind of parts that are memory */
	bool (*any_place)(const uint64_t words[2], uint64_t ret[2]);
	size_t function_bytes;
	bool is_cached;
	int (*read)(struct memory *m, const void *target, const uint64_t words[2], void *ret);
	void (*function_deinit)(void *function);
	size_t (*function_size)(const void *function);
	void (*proof)(const void *function, struct runtime_proof *ret);
	uint64_t proof_ns;
	void (*place)(const void *function, uint32_t place, struct runtime_place *ret);
};

/* 0 or -errno. */
int runtime_reader_new(const struct runtime_reader_kind *kind, const struct runtime_host *host,
		       void **ret);

/* The members of struct runtime with the same names; @reader is a struct runtime_reader. */
void runtime_reader_free(void *reader);
bool runtime_reader_runs(void *reader, const struct address_space_who *who,
			 const struct address_space *space);
void runtime_reader_saw(void *reader, const struct address_space_who *who);
const void *runtime_reader_record(void *reader, const struct address_space_who *who);
const void *runtime_reader_exe(void *reader, const struct address_space *space, size_t *ret_n);
const void *runtime_reader_excerpt(void *reader, const struct address_space_who *who,
				   const struct address_space *space, const uint8_t *bytes,
				   size_t n);
int runtime_reader_frame_name(void *reader, const struct address_space_who *who,
			      const struct frame_record *frame, struct runtime_place *ret);
bool runtime_reader_wants(void *reader, const struct address_space_who *who,
			  const struct frame_record *frame);
void runtime_reader_flush(void *reader);
size_t runtime_reader_pending(void *reader);
void runtime_reader_wait(void *reader, uint64_t timeout_ns);
void runtime_reader_sweep(void *reader);
void runtime_reader_collect(void *reader, enum runtime_family family, struct metric_sink *sink);

/* The members of a struct runtime whose @new calls runtime_reader_new(). */
#define RUNTIME_READER                                                                             \
	.free = runtime_reader_free, .runs = runtime_reader_runs, .record = runtime_reader_record, \
	.wants = runtime_reader_wants, .flush = runtime_reader_flush, .exe = runtime_reader_exe,   \
	.saw = runtime_reader_saw, .excerpt = runtime_reader_excerpt,                              \
	.frame_name = runtime_reader_frame_name, .pending = runtime_reader_pending,                \
	.wait = runtime_reader_wait, .sweep = runtime_reader_sweep,                                \
	.collect = runtime_reader_collect

#endif
