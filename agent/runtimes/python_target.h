/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_PYTHON_TARGET_H
#define PODPROF_RUNTIMES_PYTHON_TARGET_H

/* The interpreter of a live process: its image, by the process's mappings, and its record. */

#include <stdbool.h>
#include <stdint.h>

#include "discovery/pid.h"
#include "runtimes/python_image.h"
#include "runtimes/python_threads.h"

struct memory;
struct root;
struct runtime_files;
struct runtime_probe;

/* Bytes of the path of the image, for people. Reached: cut. */
#define PYTHON_TARGET_PATH_MAX 256

/**
 * struct python_target - an interpreter in a process
 * @image:   the layout's release is known even if the process is refused
 * @path:    of the image; "" if there is none
 * @bias:    of the image
 * @process: the walker's record
 * @tasks:   outcome of python_tasks_find()
 */
struct python_target {
	struct python_image image;
	char path[PYTHON_TARGET_PATH_MAX];
	uint64_t bias;
	struct python_process process;
	int tasks;
};

/* For runtime_files_new(): the result of a probe is a struct python_image. */
extern const struct runtime_probe python_probe;

/**
 * python_target_find() - find and attach
 * @files:       made with python_probe
 * @m:           memory of the process
 * @ret:         all of it with PYTHON_OK
 * @ret_threads: the thread states; may be NULL
 *
 * Opens files and reads memory of the process: both may block. The identity of the process is
 * checked at the end. With two interpreters in a process the first readable one counts.
 *
 * Return: 0; an outcome of an image or a process; -errno.
 */
int python_target_find(struct runtime_files *files, const struct root *proc,
		       const struct pid_id *id, struct memory *m, struct python_target *ret,
		       struct python_threads *ret_threads);

#endif
