/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOFILE_GOMODULE_H
#define PODPROF_GOFILE_GOMODULE_H

/*
 * Where an ELF file keeps the tables of its Go code, and at which addresses that code is linked.
 * gopclntab reads the tables; here they are only found and their bounds checked.
 */

#include <stdint.h>

struct elffile;

enum gomodule_outcome {
	GOMODULE_OK = 0,
	GOMODULE_ABSENT,      /* no line table: not Go */
	GOMODULE_UNSUPPORTED, /* an unknown magic, or the code's address cannot be known */
	GOMODULE_MALFORMED,   /* a part of the table leaves it */
	GOMODULE_OUTCOME_MAX,
};

/* The three forms of the table; each is named by the first Go release that wrote it. */
enum gomodule_form { GOMODULE_1_16, GOMODULE_1_18, GOMODULE_1_20 };

/**
 * struct gomodule - the line table and what goes with it
 * @form:    of the table
 * @quantum: bytes by which code addresses are counted: 1, or 4 where instructions have 4 bytes
 * @vaddr:   of the table
 * @off:     the same in the file
 * @size:    bytes of the table; where the file has no section for it, to the end of the segment
 * @n_funcs: functions
 * @names:   begin of the parts inside the table, in this order and each at most @size:
 * @cus:     file numbers of the compilation units
 * @files:   file names
 * @pcs:     tables from code addresses to values
 * @funcs:   function table and functions, to the end
 * @text:    vaddr that function offsets count from; 0 in GOMODULE_1_16, which has addresses
 * @gofunc:  vaddr that offsets of function data count from; 0 when not known, and in GOMODULE_1_16
 * @data:    vaddr of the runtime's moduledata; 0 where a linker has left it for the loader to fill
 */
struct gomodule {
	enum gomodule_form form;
	uint8_t quantum;
	uint64_t vaddr;
	uint64_t off;
	uint64_t size;
	uint64_t n_funcs;
	uint64_t names;
	uint64_t cus;
	uint64_t files;
	uint64_t pcs;
	uint64_t funcs;
	uint64_t text;
	uint64_t gofunc;
	uint64_t data;
};

/* 0, an outcome, -errno. */
int gomodule_find(const struct elffile *file, struct gomodule *ret);

#endif
