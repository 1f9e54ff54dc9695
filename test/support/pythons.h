/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_PYTHONS_H
#define PODPROF_TEST_SUPPORT_PYTHONS_H

/* The Python interpreters of this machine, and what they say of their own frames. */

#include <stddef.h>
#include <stdint.h>

#include "support/goprocess.h"

#define PYTHONS_MAX	   32
#define PYTHONS_THREADS	   32
#define PYTHONS_FRAMES_MAX 8192

struct pythons {
	char *paths[PYTHONS_MAX];
	size_t n;
};

/* Debian's interpreter, which test/setup.sh installs, and the interpreters of pyenv (~/.pyenv).
 * Owned. */
void pythons_find(struct pythons *ret);
void pythons_deinit(struct pythons *pythons);
/* The minor version: python3 is a link to the file with the version in its name. */
unsigned int pythons_minor(const char *path);

/* A frame of sys._current_frames(). */
struct pythons_frame {
	char *name;
	char *file;
	uint32_t line;
};

struct pythons_thread {
	uint64_t id; /* threading.get_ident() */
	struct pythons_frame *frames;
	size_t n;
};

/* The answer of test/data/python/frames.py. */
struct pythons_truth {
	struct pythons_thread threads[PYTHONS_THREADS];
	size_t n;
	char *text;
	struct pythons_frame frames[PYTHONS_FRAMES_MAX];
	size_t n_frames;
};

/* Runs frames.py until all its threads are parked. */
void pythons_start(const char *path, struct goprocess *p, struct pythons_truth **ret);
void pythons_truth_free(struct pythons_truth *truth);
/* Runs a script of test/data/python until it prints "ready". @ret_answer: the file it has written,
 * owned. */
void pythons_run(const char *path, const char *script, struct goprocess *p, char **ret_answer);
/* With one more argument. */
void pythons_run_with(const char *path, const char *script, const char *arg, struct goprocess *p,
		      char **ret_answer);

/* The line, from 1, of the first @text in a script's @source. */
uint64_t pythons_line_of(const char *source, const char *text);

#endif
