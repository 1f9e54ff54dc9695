/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_COREFILE_H
#define PODPROF_GOHEAP_COREFILE_H

/*
 * An ELF core: the memory of a process at one moment, as the kernel or gcore(1) has written it, and
 * which files were mapped in it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "goheap/memory.h"

struct corefile;
struct elffile;

enum corefile_outcome {
	COREFILE_OK = 0,
	COREFILE_NOT_CORE,    /* no ELF file, or another kind of it */
	COREFILE_UNSUPPORTED, /* not 64-bit little-endian, or without the list of mapped files */
	COREFILE_MALFORMED,   /* its tables contradict themselves */
	COREFILE_TRUNCATED,   /* shorter than its tables say */
	COREFILE_TOO_LARGE,   /* above the ceilings in corefile.c */
	COREFILE_OUTCOME_MAX,
};

/**
 * struct corefile_mapping - one of the mapped files
 * @offset: of @start in the file
 * @path:   as the process saw it; owned by the core
 * @code:   it was executable, or that is not told
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
/* The same over @n bytes that are borrowed. */
int corefile_open_memory(const void *data, size_t n, struct corefile **ret);
void corefile_free(struct corefile *core);

/* Ascending, not overlapping; borrowed. */
const struct corefile_mapping *corefile_mappings(const struct corefile *core, size_t *ret_n);

/* A core leaves out what is in files and was never changed: where a mapping's bytes are not in the
 * core they are read from @file from now on, which is borrowed and must be the file that was
 * mapped.
 * @i: of corefile_mappings(). */
void corefile_attach(struct corefile *core, size_t i, const struct elffile *file);

/* Borrowed. Only what is in the core, or in the attached files, can be read. */
struct memory *corefile_memory(struct corefile *core);

uint32_t corefile_pid(const struct corefile *core);	   /* 0 where it is not told */
const char *corefile_command(const struct corefile *core); /* the process's name, "" */
const char *corefile_outcome_name(int outcome);

#endif
