// SPDX-License-Identifier: Apache-2.0
/* A _Py_DebugOffsets. The seeds are those of releases. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "runtimes/python_layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct python_layout layout;
	const struct python_process *p = &layout.process;

	if (python_layout_of_offsets(data, size, &layout) != PYTHON_OFFSETS_OK)
		return 0;
	if (p->frame_previous % 8 || p->frame_previous > PYTHON_FRAME_BYTES - 8 ||
	    p->frame_code % 8 || p->frame_code > PYTHON_FRAME_BYTES - 8 || p->frame_instr % 8 ||
	    p->frame_instr > PYTHON_FRAME_BYTES - 8 || p->frame_entry >= PYTHON_FRAME_BYTES)
		abort();
	if (p->code_filename % 8 || p->code_filename > PYTHON_CODE_BYTES - 8 || p->code_name % 8 ||
	    p->code_name > PYTHON_CODE_BYTES - 8 || p->code_qualname % 8 ||
	    p->code_qualname > PYTHON_CODE_BYTES - 8 || p->code_lines % 8 ||
	    p->code_lines > PYTHON_CODE_BYTES - 8 || p->code_first_line % 4 ||
	    p->code_first_line > PYTHON_CODE_BYTES - 4)
		abort();
	if (layout.version < 0x030d || layout.version > 0x030f)
		abort();
	return 0;
}
