/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_V8_PROCESS_H
#define PODPROF_RUNTIMES_V8_PROCESS_H

/* A live process with V8: the walker's record (bpf/shared/v8.h). */

#include "discovery/pid.h"
#include "runtimes/v8_layout.h"

struct memory;
struct root;
struct runtime_files;
struct runtime_probe;

/* Bytes of the path of the image, for people. Reached: cut. */
#define V8_PATH_MAX 256

/**
 * struct v8_target - V8 in a process
 * @path:    of the image; "" if there is none
 * @process: the walker's record
 */
struct v8_target {
	char path[V8_PATH_MAX];
	uint64_t bias;
	struct v8_image image;
	struct v8_process process;
};

/* For runtime_files_new(): the result of a probe is a struct v8_image. */
extern const struct runtime_probe v8_probe;

/**
 * v8_process_attach() - make the record of a process
 * @ret: @bias and @image are set; @process is set with V8_OK
 *
 * The record is right if the builtins are where the image's code is, as far as the memory tells.
 * The objects of a function are proved when its name is read (v8_function.h).
 *
 * Return: 0; an outcome of the process; -errno.
 */
int v8_process_attach(struct memory *m, struct v8_target *ret);

/**
 * v8_target_find() - find and attach
 * @files: made with v8_probe
 * @m:     memory of the process
 * @ret:   all of it with V8_OK
 *
 * Opens files and reads memory of the process: both may block. The identity of the process is
 * checked at the end.
 *
 * Return: 0; an outcome of an image or a process; -errno.
 */
int v8_target_find(struct runtime_files *files, const struct root *proc, const struct pid_id *id,
		   struct memory *m, struct v8_target *ret);

#endif
