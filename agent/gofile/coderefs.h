/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOFILE_CODEREFS_H
#define PODPROF_GOFILE_CODEREFS_H

/*
 * The data addresses in a piece of machine code. They locate a runtime's variables without symbols.
 */

#include <stddef.h>
#include <stdint.h>

enum coderef_kind {
	CODEREF_ADDRESS, /* taken, not accessed */
	CODEREF_LOAD,
	CODEREF_STORE,
};

/**
 * struct coderef - an address that is a constant of the code
 * @vaddr: the address
 * @bytes: read or written, 1, 4 or 8; 0 for CODEREF_ADDRESS
 */
struct coderef {
	uint64_t vaddr;
	enum coderef_kind kind;
	uint8_t bytes;
};

/**
 * coderefs_find() - list the references, in the order of the code
 * @machine: EM_X86_64 or EM_AARCH64; none for other machines
 * @vaddr:   address of @code; the bytes of @code are untrusted
 *
 * The scan runs from front to back, does not follow branches, and does not know all instructions.
 * So some references may be missing, and bytes that only look like a reference may be included. The
 * caller must check each reference.
 *
 * Return: the number of references; the first @max are in @ret.
 */
size_t coderefs_find(unsigned int machine, const uint8_t *code, size_t n, uint64_t vaddr,
		     struct coderef *ret, size_t max);

#endif
