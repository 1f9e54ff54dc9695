/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_LOOKUP_H
#define PODPROF_SYMBOLIZE_LOOKUP_H

/*
 * One batch of addresses of one file, named by the file's sources, on a thread that may block. The
 * lookup owns all that its thread touches. A lookup that blocks is abandoned with its thread, and
 * nobody else misses anything but these names.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/worker.h"
#include "symbolize/symbolizer.h"

struct file_names;
struct image;
struct lookup_thread;
struct symbol_source;

/* Addresses of one batch: some 200 KiB of names. */
#define LOOKUP_BATCH	   1024
/* Bytes of a batch's names: 64 functions of 1 KiB at each address. Reached: the other addresses of
 * the batch are `podprof_symbolized_addresses_total{found="no"}`. */
#define LOOKUP_BYTES_MAX   (64u << 20)
/* Abandoned threads of one lookup thread. Reached: no file is read for names until a thread
 * returns: `podprof_symbolized_addresses_total{found="no"}`. */
#define LOOKUP_BLOCKED_MAX 8

/* The opened sources of one file. Owns a reference to the image. One thread at a time. */
int file_names_new(struct image *image, const struct symbol_source *const *sources, size_t n,
		   struct file_names **ret);
/* NULL is fine. */
void file_names_free(struct file_names *names);
size_t file_names_bytes(const struct file_names *names);

/* The functions at one address; @n is 0 where there is no name. */
struct symbol_lines {
	struct arena *memory;
	struct symbol_line *items;
	size_t n;
	size_t cap;
};

/**
 * struct lookup - one batch
 * @names:   owned; lookup_take_names() gets it back
 * @answers: an entry for each address
 * @result:  0 or -ENOMEM
 */
struct lookup {
	struct work work;
	struct lookup_thread *thread;
	struct file_names *names;
	struct arena memory;
	uint64_t *vaddrs;
	size_t n;
	struct symbol_lines *answers;
	int result;
};

/* Takes @names, on a failure too, and copies @vaddrs. 0 or -ENOMEM. */
int lookup_new(struct file_names *names, const uint64_t *vaddrs, size_t n, struct lookup **ret);
void lookup_free(struct lookup *lookup);
struct file_names *lookup_take_names(struct lookup *lookup);

enum lookup_outcome {
	LOOKUP_OK = 0,
	LOOKUP_BLOCKED, /* the lookup belongs to its thread now, and the image is slow */
};

/* @blocked_ns: 0 is the watchdog's default. */
int lookup_thread_new(uint64_t blocked_ns, struct lookup_thread **ret);
/* NULL is fine. */
void lookup_thread_free(struct lookup_thread *thread);
unsigned int lookup_thread_n_blocked(const struct lookup_thread *thread);
/* Fills the answers, and waits for that. @thread NULL: on the caller's own thread. 0,
 * LOOKUP_BLOCKED or -errno. */
int lookup_run(struct lookup_thread *thread, struct lookup *lookup);

#endif
