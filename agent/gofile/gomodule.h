/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOFILE_GOMODULE_H
#define PODPROF_GOFILE_GOMODULE_H

/*
 * Finds the tables of Go code in an ELF file and the link addresses of the code, and checks the
 * tables' bounds. gopclntab reads the tables.
 */

#include <stdint.h>

struct elffile;

enum gomodule_outcome {
	GOMODULE_OK = 0,
	GOMODULE_ABSENT,      /* no line table: not Go */
	GOMODULE_UNSUPPORTED, /* an unknown magic, or an unknown address of the code */
	GOMODULE_MALFORMED,   /* a part is outside of the table */
	GOMODULE_OUTCOME_MAX,
};

/* The three forms of the table, each named after the first Go release with it. */
enum gomodule_form { GOMODULE_1_16, GOMODULE_1_18, GOMODULE_1_20 };

/**
 * struct gomodule - the line table and related addresses
 * @form:    of the table
 * @quantum: unit of code addresses in bytes: 1, or 4 on machines with instructions of 4 bytes
 * @vaddr:   of the table
 * @off:     the same in the file
 * @size:    bytes of the table; without a section for the table, up to the end of the segment
 * @n_funcs: functions
 * @names:   begin of the parts inside the table, in this order and each at most @size:
 * @cus:     file numbers of the compilation units
 * @files:   file names
 * @pcs:     tables from code addresses to values
 * @funcs:   function table and functions, to the end
 * @text:    base vaddr of function offsets; 0 in GOMODULE_1_16, which has addresses
 * @gofunc:  base vaddr of offsets of function data; 0 if unknown, and in GOMODULE_1_16
 * @data:    vaddr of the runtime's moduledata; 0 if the linker leaves its content to the loader
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
