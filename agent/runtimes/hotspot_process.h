/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_HOTSPOT_PROCESS_H
#define PODPROF_RUNTIMES_HOTSPOT_PROCESS_H

/* A live process with HotSpot: the walker's record (bpf/shared/hotspot.h), made from the process's
 * description of itself and verified in its memory. */

#include "discovery/pid.h"
#include "runtimes/hotspot_layout.h"

struct memory;
struct root;
struct runtime_files;
struct runtime_probe;

/* Bytes of the path of the image, for people. Reached: cut. */
#define HOTSPOT_PATH_MAX 256

/**
 * struct hotspot_target - HotSpot in a process
 * @path:    of the image; "" if there is none
 * @version: feature, interim, update release: 17, 0, 15; zeros if not known
 * @layout:  of this process
 * @process: the walker's record
 */
struct hotspot_target {
	char path[HOTSPOT_PATH_MAX];
	uint64_t bias;
	uint32_t version[3];
	struct hotspot_layout layout;
	struct hotspot_process process;
};

/* For runtime_files_new(): the result of a probe is a struct hotspot_image. */
extern const struct runtime_probe hotspot_probe;

/**
 * hotspot_process_attach() - make the record of a process
 * @ret: @layout is set; the rest is set with HOTSPOT_OK, the version perhaps also else
 *
 * The record is right if the code heaps lie within the bounds of all code and do not overlap, if
 * their maps and the interpreter lead to blobs of code with plausible frames, and if the blob of
 * the interpreter has its range. The caller checks the identity of the process afterwards.
 *
 * Return: 0; an outcome of the process; -errno.
 */
int hotspot_process_attach(struct memory *m, struct hotspot_target *ret);

/**
 * hotspot_target_find() - find and attach
 * @files: made with hotspot_probe
 * @m:     memory of the process
 * @ret:   all of it with HOTSPOT_OK
 *
 * Opens files and reads memory of the process: both may block. The identity of the process is
 * checked at the end.
 *
 * Return: 0; an outcome of an image or a process; -errno.
 */
int hotspot_target_find(struct runtime_files *files, const struct root *proc,
			const struct pid_id *id, struct memory *m, struct hotspot_target *ret);

#endif
