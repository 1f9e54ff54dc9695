/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_COMPLEXITY_ELF_H
#define PODPROF_TEST_COMPLEXITY_ELF_H

#include "support/test.h"

#include "elf/elffile.h"
#include "support/elfmake.h"

/* The finished file, owned; borrows the bytes of @m. */
static inline struct elffile *open_made(struct elfmake *m)
{
	struct elffile *file;

	elfmake_finish(m);
	assert_int_equal(elffile_open_memory(m->data, m->n, &file), 0);
	return file;
}

#endif
