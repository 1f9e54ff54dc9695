/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_ELF_ELFFILE_H
#define PODPROF_ELF_ELFFILE_H

/*
 * One 64-bit little-endian ELF file, read with bounds. libelf finds the headers. Contents are read
 * with pread(), never mapped: the file's owner may truncate the file meanwhile, and a read from a
 * lost page of a mapping raises SIGBUS. Every number in the file is foreign.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/* Bytes of a build id; GNU ids have 20, Go's note is separate. Reached: no build id. */
#define ELFFILE_BUILD_ID_MAX 64

enum elffile_outcome {
	ELFFILE_OK = 0,
	ELFFILE_NOT_ELF,     /* no magic, or shorter than a header */
	ELFFILE_UNSUPPORTED, /* 32-bit or big-endian */
	ELFFILE_MALFORMED,   /* a header or table leaves the file */
	ELFFILE_TOO_LARGE,   /* more segments, sections or bytes than the ceilings in elffile.c */
	ELFFILE_ABSENT,	     /* there is no such section, segment or note */
	ELFFILE_TRUNCATED,   /* the file is shorter than its headers say */
	ELFFILE_ABANDONED,   /* the budget of work has ended (elffile_budgeted()) */
	ELFFILE_OUTCOME_MAX,
};

/* A PT_LOAD segment. */
struct elffile_segment {
	uint64_t vaddr;
	uint64_t memsz;
	uint64_t off;
	uint64_t filesz;
	uint32_t flags; /* PF_X, PF_W, PF_R */
};

struct elffile_section {
	uint64_t vaddr;
	uint64_t off;
	uint64_t size;
	uint64_t entsize;
	uint32_t type;	/* SHT_* */
	uint32_t flags; /* SHF_*, the low 32 bits */
	uint32_t link;	/* index of the linked section */
	uint32_t index;
};

struct elffile;
struct stat;
struct work_budget;

/* Takes @fd on success. 0, an outcome, -errno. */
int elffile_open(int fd, struct elffile **ret);
/* The same over @n bytes of borrowed memory (the vDSO; tests; fuzzers). */
int elffile_open_memory(const void *data, size_t n, struct elffile **ret);
/* A program in the memory of a process, without a file. @fd is the process's /proc/PID/mem, taken
 * on success; offsets are addresses. The program has these segments, copied, and no sections.
 * Unreadable memory is ELFFILE_TRUNCATED. 0, ELFFILE_TOO_LARGE, -errno. */
int elffile_open_process(int fd, uint16_t machine, const struct elffile_segment *segments, size_t n,
			 struct elffile **ret);
/* Another handle of @ef: its reads are charged to @work, and are ELFFILE_ABANDONED when @work has
 * ended. Borrows both. For the parsers of one job; @ef stays without a budget, for other threads.
 * If @ef has one, it becomes the outer budget of @work. 0 or -ENOMEM. */
int elffile_budgeted(const struct elffile *ef, struct work_budget *work, struct elffile **ret);
/* Reads of @ef are charged to the budget of @payer, if it has one: for a file beside a file. */
void elffile_charge(struct elffile *ef, const struct elffile *payer);
void elffile_free(struct elffile *ef);
DEFINE_CLEANUP(struct elffile *, elffile_freep, elffile_free);
/* elffile_free() will not close the file: closing may wait for a file system's server. */
void elffile_leave_open(struct elffile *ef);
/* Charges work on bytes in memory. False when the budget has ended; always true without one. */
bool elffile_spend(const struct elffile *ef, uint64_t units);

bool elffile_is_process(const struct elffile *ef);  /* made by elffile_open_process() */
uint16_t elffile_type(const struct elffile *ef);    /* ET_EXEC, ET_DYN, ... */
uint16_t elffile_machine(const struct elffile *ef); /* EM_X86_64, ... */
uint64_t elffile_entry(const struct elffile *ef);   /* vaddr where a process begins; 0: none */
uint64_t elffile_size(const struct elffile *ef);
/* fstat() of the opened file, in its present state. 0 or -errno; -EBADF for a program in memory. */
int elffile_stat(const struct elffile *ef, struct stat *ret);

/* The descriptor, borrowed; -1 for a program in memory. */
int elffile_fd(const struct elffile *ef);

/* The PT_LOADs in file order, borrowed. */
const struct elffile_segment *elffile_segments(const struct elffile *ef, size_t *ret_n);
/* The index of the unwind table, from PT_GNU_EH_FRAME. 0 or ELFFILE_ABSENT. */
int elffile_eh_frame_hdr(const struct elffile *ef, struct elffile_segment *ret);
/* The range of PT_GNU_RELRO, read-only after dynamic linking. 0 or ELFFILE_ABSENT. */
int elffile_relro(const struct elffile *ef, struct elffile_segment *ret);
/* The first section of this name. 0 or ELFFILE_ABSENT. */
int elffile_section(const struct elffile *ef, const char *name, struct elffile_section *ret);
int elffile_section_at(const struct elffile *ef, uint32_t index, struct elffile_section *ret);

/* The GNU build id's bytes; *@ret_n is their number. 0 or ELFFILE_ABSENT. */
int elffile_build_id(const struct elffile *ef, uint8_t ret[ELFFILE_BUILD_ID_MAX], size_t *ret_n);
/* The same in lower-case hex; "" without one. */
#define ELFFILE_BUILD_ID_TEXT (2 * ELFFILE_BUILD_ID_MAX + 1)
void elffile_build_id_text(const struct elffile *ef, char ret[ELFFILE_BUILD_ID_TEXT]);

/* All of @n bytes from @off. 0, ELFFILE_TRUNCATED, ELFFILE_ABANDONED, -errno. */
int elffile_read(const struct elffile *ef, uint64_t off, void *ret, size_t n);
/* A section's bytes, owned by the caller (free()); above @max ELFFILE_TOO_LARGE. A section without
 * bytes in the file (SHT_NOBITS) is ELFFILE_ABSENT. */
int elffile_read_section(const struct elffile *ef, const struct elffile_section *section,
			 size_t max, void **ret);

/* The string at @off of a string table, in a few reads: most are short. Cut at @size - 1 bytes, and
 * at the end of the table. False without one, or if it is empty. */
bool elffile_read_string(const struct elffile *ef, const struct elffile_section *strings,
			 uint64_t off, char *ret, size_t size);

/* Converts between file offsets and virtual addresses, by PT_LOAD. False outside all segments. */
bool elffile_vaddr_of_off(const struct elffile *ef, uint64_t off, uint64_t *ret_vaddr);
bool elffile_off_of_vaddr(const struct elffile *ef, uint64_t vaddr, uint64_t *ret_off);

const char *elffile_outcome_name(int outcome);

#endif
