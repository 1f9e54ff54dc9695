/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_FUZZ_RUNTIMES_PYTHON_FUNCTION_H
#define PODPROF_FUZZ_RUNTIMES_PYTHON_FUNCTION_H

/* What both sources of Python functions share, a process's memory and an excerpt. */

#include <stdlib.h>
#include <string.h>

#include "runtimes/python_code.h"

/* Reads the code object at @address; @check: of its words, or NULL. */
static inline void read_function(struct memory *m, const struct python_layout *layout,
				 uint64_t address, const uint32_t *check)
{
	struct python_code code = {0};

	if (!python_code_read(m, layout, address, check, &code)) {
		if (strlen(code.name) >= RUNTIMES_NAME_MAX ||
		    strlen(code.file) >= RUNTIMES_FILE_MAX ||
		    code.n_lines > PYTHON_LINES_BYTES_MAX || (code.n_lines && !code.lines))
			abort();
		(void)python_code_line(&code, 10);
	} else if (code.name) {
		abort();
	}
	python_code_deinit(&code);
}

#endif
