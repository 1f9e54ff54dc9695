/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_RUNTIME_FILES_H
#define PODPROF_RUNTIMES_RUNTIME_FILES_H

/*
 * The files that a process has mapped as code, probed for one language runtime. Probes are
 * remembered by the identity of the file, so a file is probed once for all processes. Most files
 * have no runtime; nothing else is remembered of these files. For one thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "discovery/pid.h"

struct elffile;
struct file_id;
struct image;
struct maps_entry;
struct root;
struct runtime_files;

/* Files remembered, 100 bytes each and some hundred more for a runtime. Reached: all are probed
 * again. */
#define RUNTIME_FILES_MAX   16384
/* Files mapped as code and probed in one process; a browser has 300. Reached: the others are not
 * probed. */
#define RUNTIME_FILES_TRIED 1024

/* Of a file and of a process: no runtime. Each runtime's own outcomes are other numbers above 0. */
#define RUNTIME_FILES_ABSENT 1

/**
 * struct runtime_probe - the probe of a runtime
 * @probe:     0, RUNTIME_FILES_ABSENT, an outcome of the runtime, -errno. @ret has @bytes zeros
 *             before. May fill it whatever the outcome
 * @bytes:     of the result, @ret of @probe
 * @malformed: the outcome of a search whose work has a ceiling and has reached it
 * @gone:      the outcome of a process that has ended
 * @denied:    the outcome of a process that may not be read
 */
struct runtime_probe {
	int (*probe)(const struct elffile *ef, void *ret);
	size_t bytes;
	int malformed;
	int gone;
	int denied;
};

/* @probe is borrowed. 0 or -ENOMEM. */
int runtime_files_new(const struct runtime_probe *probe, struct runtime_files **ret);
void runtime_files_free(struct runtime_files *files);
DEFINE_CLEANUP(struct runtime_files *, runtime_files_freep, runtime_files_free);

/**
 * struct runtime_file - a mapped file with the runtime
 * @outcome: of the probe
 * @image:   result of the probe; borrowed
 * @path:    as the process sees it, for people
 * @bias:    of the file in the process; set with outcome 0
 */
struct runtime_file {
	int outcome;
	const void *image;
	const char *path;
	uint64_t bias;
};

/* 0 or below: end the search; an outcome of the runtime: try the other files. */
typedef int (*runtime_file_fn)(void *ctx, const struct runtime_file *file);

/**
 * runtime_files_search() - look for the runtime in the files of a process
 * @fn: called for each file that is not RUNTIME_FILES_ABSENT
 *
 * Opens files of the process, which may block. A file that cannot be opened now is not remembered.
 *
 * Return: the last result of @fn; RUNTIME_FILES_ABSENT without a call; an outcome, -errno.
 */
int runtime_files_search(struct runtime_files *files, const struct root *proc,
			 const struct pid_id *id, runtime_file_fn fn, void *ctx);

/* Probes the opened files of @images. Needs no process: most processes end soon, and most files
 * have no runtime. True if none of these files has the runtime. */
bool runtime_files_examine(struct runtime_files *files, struct image *const *images, size_t n);
/* Whether a search has looked into the file and has not found the runtime. False if it is not
 * known, or not any more. */
bool runtime_files_lack(const struct runtime_files *files, const struct file_id *id);
/* The result of the probe for a file with the runtime (outcome 0); NULL: not known, or none.
 * Borrowed until the next call. */
const void *runtime_files_image(const struct runtime_files *files, const struct file_id *id);
/* Files probed since the beginning. */
uint64_t runtime_files_probed(const struct runtime_files *files);

#endif
