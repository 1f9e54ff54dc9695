/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOFILE_CODEREFS_H
#define PODPROF_GOFILE_CODEREFS_H

/*
 * Which addresses a piece of machine code names: where a runtime's variables are, when no symbol
 * says so.
 */

#include <stddef.h>
#include <stdint.h>

enum coderef_kind {
	CODEREF_ADDRESS, /* taken, not followed */
	CODEREF_LOAD,
	CODEREF_STORE,
};

/**
 * struct coderef - one address that is a constant of the code
 * @vaddr: what is named
 * @bytes: read or written, 1, 4 or 8; 0 for CODEREF_ADDRESS
 */
struct coderef {
	uint64_t vaddr;
	enum coderef_kind kind;
	uint8_t bytes;
};

/**
 * coderefs_find() - in the order of the code
 * @machine: EM_X86_64 or EM_AARCH64; another has none
 * @vaddr:   where @code lies; its bytes are foreign
 *
 * The code is not followed, only read from front to back, and not all instructions are known: some
 * references may be missing, and bytes that merely look like one may be among them. So whoever asks
 * checks what it gets against what must be there.
 *
 * Return: how many there are, of which the first @max are in @ret.
 */
size_t coderefs_find(unsigned int machine, const uint8_t *code, size_t n, uint64_t vaddr,
		     struct coderef *ret, size_t max);

/* One for each machine; as above. */
size_t coderefs_find_x86(const uint8_t *code, size_t n, uint64_t vaddr, struct coderef *ret,
			 size_t max);
size_t coderefs_find_arm64(const uint8_t *code, size_t n, uint64_t vaddr, struct coderef *ret,
			   size_t max);

#endif
