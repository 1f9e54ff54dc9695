/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_PYTHON_IMAGE_H
#define PODPROF_RUNTIMES_PYTHON_IMAGE_H

/*
 * CPython in an ELF file: a program, a library, or a program that embeds the interpreter. The
 * contents decide, not the file's name.
 */

#include <stddef.h>
#include <stdint.h>

#include "runtimes/python_layout.h"

struct elffile;

/* Why frames of a process have no names. The first rows are an image's, the others a process's. */
enum python_outcome {
	PYTHON_OK = 0,
	PYTHON_ABSENT,	      /* no CPython */
	PYTHON_VERSION,	      /* an unknown release, or no final one */
	PYTHON_FREE_THREADED, /* a build without GIL, of 3.15 */
	PYTHON_OFFSETS,	      /* its description of itself is wrong */
	PYTHON_NO_RUNTIME,    /* the list of interpreters was not found */
	PYTHON_NO_LOOP,	      /* the evaluation loop was not found */
	PYTHON_MACHINE,	      /* not supported */
	PYTHON_MALFORMED,     /* the file's tables, or its budget of work has ended */
	PYTHON_NOT_READY,     /* no thread of the process runs Python yet */
	PYTHON_ODD,	      /* the process's memory contradicts the layout */
	PYTHON_NO_STATE,      /* the pointer to a thread's state was not found */
	PYTHON_UNREADABLE,    /* memory that the layout leads to is not mapped */
	PYTHON_GONE,	      /* the process has ended, or runs another program */
	PYTHON_DENIED,
	PYTHON_OUTCOME_MAX,
};

const char *python_outcome_name(int outcome);

/**
 * struct python_image - an interpreter; addresses are vaddrs
 * @runtime: _PyRuntime; of 3.6 the list of interpreters
 * @loops:   parts of the evaluation loop, [begin, end)
 */
struct python_image {
	struct python_layout layout;
	uint16_t machine;
	uint64_t runtime;
	uint64_t loops[PYTHON_LOOPS_MAX][2];
	size_t n_loops;
};

/**
 * python_image_probe() - look for an interpreter in a file
 * @ret: set with PYTHON_OK; else only @layout.version and @layout.release, if known
 *
 * Reads the symbol tables, the loop's code and its entries in the index of .eh_frame. May run on
 * any thread.
 *
 * Return: an outcome of the image, -errno.
 */
int python_image_probe(const struct elffile *ef, struct python_image *ret);

#endif
