/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_LOOKUP_H
#define PODPROF_SYMBOLIZE_LOOKUP_H

/*
 * A batch of addresses of a file, and their names from the file's symbol sources. The lookup runs
 * on a thread that may block, and owns all data in use there. A blocked lookup is abandoned with
 * its thread: only the names of this batch are lost.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/worker.h"
#include "symbolize/linecache.h"
#include "symbolize/symbolizer.h"

struct debuginfod;
struct dwarfreader;
struct file_names;
struct image;
struct lookup_thread;
struct root;
struct symbol_source;

/* Addresses of a batch: some 200 KiB of names. */
#define LOOKUP_BATCH	   1024
/* Bytes of a batch's names: 64 functions of 1 KiB at each address. Reached: the other addresses of
 * the batch are `podprof_symbolized_addresses_total{found="no"}`. */
#define LOOKUP_BYTES_MAX   (64u << 20)
/* Abandoned threads of a lookup thread. Reached: no file is read for names until a thread
 * returns: `podprof_symbolized_addresses_total{found="no"}`. */
#define LOOKUP_BLOCKED_MAX 8

/* A /proc with a reference count, because abandoned threads may use it after the symbolizer's end.
 */
struct shared_root;
/* Duplicates the descriptor of @proc. 0 or -errno. */
int shared_root_new(const struct root *proc, struct shared_root **ret);
/* NULL is fine. */
void shared_root_unref(struct shared_root *root);

/**
 * struct file_names_opts - where sources read, besides the file; each may be NULL
 * @sources: @n_sources in number, for files; NULL: the usual ones. Code in memory has its own
 */
struct file_names_opts {
	struct shared_root *proc;
	struct dwarfreader *dwarf;
	struct debuginfod *debuginfod;
	const struct symbol_source *const *sources;
	size_t n_sources;
};

/* The opened sources of a file, or of the memory of a process, and the work budget. Owns references
 * to the image and to the objects of @opts. Only one thread at a time may use them. */
int file_names_new(struct image *image, const struct file_names_opts *opts,
		   struct file_names **ret);
/* NULL is fine. */
void file_names_free(struct file_names *names);
size_t file_names_bytes(const struct file_names *names);
/**
 * struct kept_answers - answers of a file that will not change
 * @missing: why an address without a name has none
 * @next, @is_held: for the holder of a reference beside the file's
 *
 * A lookup adds answers, and only linecache_age() removes some. So answers stay where they are
 * until then, even if the file's names go with an abandoned thread.
 */
struct kept_answers {
	atomic_int refs;
	struct linecache cache;
	enum symbol_missing missing;
	struct kept_answers *next;
	bool is_held;
};

/* Borrowed. Between lookups only. */
struct kept_answers *file_names_kept(const struct file_names *names);
struct kept_answers *kept_answers_ref(struct kept_answers *kept);
/* NULL is fine. */
void kept_answers_unref(struct kept_answers *kept);
/* Whether a source has names. */
bool file_names_any(const struct file_names *names);
/* Adds the counters to @perf_map (by enum perf_map_event) and @jitdump (by enum jitdump_event), and
 * sets them to 0. */
void file_names_take_events(struct file_names *names, uint64_t *perf_map, uint64_t *jitdump);
/* After a lookup. 0, or the first result of @fn that is not 0. */
int file_names_sources(const struct file_names *names, symbolizer_source_fn fn, void *ctx);

/* After a lookup: the separate debug file, borrowed; -1 without one. */
int file_names_debug_fd(const struct file_names *names);
/* After a lookup: its path; "" without one. */
void file_names_debug_file(const struct file_names *names, char ret[PATH_MAX]);

/* The functions at an address; @n is 0 without a name. Then @start is the function's start, if
 * @has_start. @rename: symbol_lines_rename() was called, and no later source had a name so far.
 * @may_change: the answer of a source is not final (is_final()), or a source is not opened yet
 * (SOURCE_LATER). @cache: takes the strings; NULL: none. @is_copied: a string is elsewhere: in
 * @memory, or of the source. @kept: the answer in the cache; NULL: not kept. */
struct symbol_lines {
	struct arena *memory;
	struct linecache *cache;
	const struct linecache_answer *kept;
	struct symbol_line *items;
	size_t n;
	size_t cap;
	uint64_t start;
	bool has_start;
	bool rename;
	bool may_change;
	bool is_copied;
};

struct lookup_group;

/**
 * struct lookup - a batch
 * @names:   owned; lookup_take_names() gives the names back
 * @answers: an entry for each address; the strings, valid UTF-8, live until lookup_take_names() or
 *           lookup_free()
 * @group:   of the thread that runs it, during the run
 * @stop:    set by another thread: the lookup ends with the answers so far
 * @has_run: the answers are there
 * @spent:   the file is over the work budget: no further read for a while
 * @is_over: so are its addresses
 * @is_overwritten: the file has another content than the image: no answers
 * @missing: why addresses without an answer have none
 * @cpu_ns:  CPU time
 * @result:  0 or -ENOMEM
 */
struct lookup {
	struct lookup_group *group;
	struct file_names *names;
	struct arena memory;
	uint64_t *vaddrs;
	size_t n;
	struct symbol_lines *answers;
	atomic_bool stop;
	bool has_run;
	bool spent;
	bool is_over;
	bool is_overwritten;
	enum symbol_missing missing;
	uint64_t cpu_ns;
	int result;
};

/* Takes @names, on a failure too, and copies @vaddrs. 0 or -ENOMEM. */
int lookup_new(struct file_names *names, const uint64_t *vaddrs, size_t n, struct lookup **ret);
void lookup_free(struct lookup *lookup);
/* Ends the answers. */
struct file_names *lookup_take_names(struct lookup *lookup);

/* @blocked_ns: 0 is the watchdog's default. */
int lookup_thread_new(uint64_t blocked_ns, struct lookup_thread **ret);
/* NULL is fine. */
void lookup_thread_free(struct lookup_thread *thread);
unsigned int lookup_thread_n_blocked(const struct lookup_thread *thread);
/* From any thread: this and all later lookups end soon, with the answers so far. */
void lookup_thread_stop(struct lookup_thread *thread);
/*
 * Fill the answers of the @n lookups and wait, with a single exchange with the thread. @thread
 * NULL: on the caller's own thread. The thread keeps a lookup at which it blocks; @lookups then has
 * NULL there, and the image counts as slow. The lookups behind it do not run. No lookup begins
 * after @cpu_ns of CPU time, or with LOOKUP_BYTES_MAX of answers. 0 or -errno, with @result of
 * each.
 */
int lookup_run(struct lookup_thread *thread, struct lookup **lookups, size_t n, uint64_t cpu_ns);

#endif
