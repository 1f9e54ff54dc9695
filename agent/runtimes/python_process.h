/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_PYTHON_PROCESS_H
#define PODPROF_RUNTIMES_PYTHON_PROCESS_H

/*
 * A live process with CPython: the walker's record (bpf/shared/python.h), made from the image and
 * verified in the memory of the process.
 */

#include <stdint.h>

#include "runtimes/python_image.h"
#include "runtimes/python_threads.h"

struct memory;

/* Whether the type at @type has the name @name, of 15 bytes at most. 0; PYTHON_ODD and so on;
 * -errno. */
int python_type_check(struct memory *m, const struct python_layout *layout, uint64_t type,
		      const char *name);
/* The same of the type of the object at @object. */
int python_object_check(struct memory *m, const struct python_layout *layout, uint64_t object,
			const char *name);

/* The walker's record of a process with @image at @bias. @way is not verified. */
struct python_process python_process_of_image(const struct python_image *image, uint64_t bias,
					      struct python_way way);

/**
 * python_process_attach() - make the record of a process
 * @bias:        of the image in the process
 * @ret:         set with PYTHON_OK
 * @ret_threads: the thread states
 *
 * The record is right if the lists of interpreters and threads are as the layout says, if the
 * innermost frame of a thread has a code object with a readable name, and if each thread's pointer
 * to its state is in the same place of the thread's own block. Reads at most some hundred bytes a
 * thread, and some kilobytes of PYTHON_PROBED_THREADS threads. Does not stop the process, so an
 * attempt may fail at a wrong moment. After three attempts the last outcome stands. The caller
 * checks the identity of the process afterwards (memory_check()).
 *
 * Return: 0; an outcome of the process; -errno.
 */
int python_process_attach(struct memory *m, const struct python_image *image, uint64_t bias,
			  struct python_process *ret, struct python_threads *ret_threads);

#endif
