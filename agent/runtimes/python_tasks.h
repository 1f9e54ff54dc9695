/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_PYTHON_TASKS_H
#define PODPROF_RUNTIMES_PYTHON_TASKS_H

/* The running tasks of asyncio in a live process with CPython 3.8 to 3.14, for the walker
 * (bpf/shared/python.h). */

#include "runtimes/python_threads.h"
#include "shared/python.h"

struct memory;
struct python_layout;

/* Entries of a dict that are searched, with those taken away: a large program has imported some
 * thousand modules. Reached: the process has no names of tasks. */
#define PYTHON_TASKS_ENTRIES_MAX 16384

/**
 * python_tasks_find() - look for the module _asyncio and its objects
 * @threads: of the process, not empty
 * @ret:     set with PYTHON_OK, else zeros
 *
 * Each object is verified by the name of its type, and the tasks by the size of theirs. The program
 * runs on, so its dicts may change during a search: then the outcome may be any of these, and the
 * caller tries again. Takes two reads for 64 modules.
 *
 * Return: 0; PYTHON_NOT_READY: the program has not imported asyncio; PYTHON_VERSION: the tasks of
 * this release or build are not known; PYTHON_ODD, PYTHON_UNREADABLE and so on; -errno.
 */
int python_tasks_find(struct memory *m, const struct python_layout *layout,
		      const struct python_threads *threads, struct python_tasks *ret);

#endif
