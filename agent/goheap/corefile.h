/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_COREFILE_H
#define PODPROF_GOHEAP_COREFILE_H

/*
 * An ELF core: the memory of a process at one moment, as written by the kernel or gcore(1), and the
 * list of its mapped files.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmap/memory.h"

struct corefile;
struct elffile;

enum corefile_outcome {
	COREFILE_OK = 0,
	COREFILE_NOT_CORE,    /* not an ELF file, or an ELF file of another type */
	COREFILE_UNSUPPORTED, /* not 64-bit little-endian, or without the list of mapped files */
	COREFILE_MALFORMED,   /* the tables are inconsistent */
	COREFILE_TRUNCATED,   /* shorter than the tables require */
	COREFILE_TOO_LARGE,   /* above the ceilings in corefile.c */
	COREFILE_OUTCOME_MAX,
};

/**
 * struct corefile_mapping - one of the mapped files
 * @offset: of @start in the file
 * @path:   as the process saw it; owned by the core
 * @code:   executable, or unknown
 */
struct corefile_mapping {
	uint64_t start;
	uint64_t limit;
	uint64_t offset;
	const char *path;
	bool code;
};

/* Takes @fd on success. 0, an outcome, -errno. */
int corefile_open(int fd, struct corefile **ret);
/* The same over @n borrowed bytes. */
int corefile_open_memory(const void *data, size_t n, struct corefile **ret);
void corefile_free(struct corefile *core);

/* Ascending, not overlapping; borrowed. */
const struct corefile_mapping *corefile_mappings(const struct corefile *core, size_t *ret_n);

/* Read bytes of mapping @i of corefile_mappings() from @file if the core does not contain them:
 * a core omits unchanged pages of files. @file is borrowed and must be the file that was mapped. */
void corefile_attach(struct corefile *core, size_t i, const struct elffile *file);

/* Borrowed. Reads only from the core and the attached files. */
struct memory *corefile_memory(struct corefile *core);

const char *corefile_outcome_name(int outcome);

#endif
