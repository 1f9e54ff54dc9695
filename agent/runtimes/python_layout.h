/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_PYTHON_LAYOUT_H
#define PODPROF_RUNTIMES_PYTHON_LAYOUT_H

/*
 * Where CPython's structures have their members, by release: 3.6 to 3.15 on 64-bit machines. From
 * 3.13 on the image describes itself (_Py_DebugOffsets).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/python.h"

/* Bytes of _Py_DebugOffsets in the longest known release (3.15), and a reserve. */
#define PYTHON_DEBUG_OFFSETS_BYTES 1024u

/* Bits of a tagged reference that are not the address. */
#define PYTHON_CODE_TAG 7ull

/* From a code object's first line to its number, in releases with numbers. */
#define PYTHON_NUMBER_BEHIND_LINE 24

/* The cache of functions by number: slots of two words, of which the second is the code object, in
 * the slot of its number's lower bits. */
#define PYTHON_CACHE_AT	   8
#define PYTHON_CACHE_SLOTS 4096u

/* Shape of a code object's line table. */
enum python_lines {
	PYTHON_LNOTAB,	  /* to 3.9 */
	PYTHON_LINETABLE, /* 3.10 */
	PYTHON_LOCATIONS, /* 3.11 and later */
};

/**
 * struct python_layout - offsets in bytes
 * @version:       major << 8 | minor: 0x030b
 * @release:       PY_VERSION_HEX: 0x030b02f0; 0: not known
 * @is_described:  offsets are the image's own, not a table's
 * @interpreters:  in _PyRuntime: the list of interpreters; in 3.6 the variable itself
 * @interpreter_modules: in the interpreter: the dict sys.modules; 0: not known
 * @code_count:    in the interpreter: the number of the next code object, 32 bits, and 8 bytes on
 * the cache of functions by number (PYTHON_CACHE_*); 0: not known
 * @thread_id:     the thread pointer on x86-64
 * @thread_native: PYTHON_NO_OFFSET before 3.11
 * @process:       frames and code objects
 * @string_ascii:  characters of a compact ASCII string; @string_wide: of other compact strings
 * @string_kind:   lowest bit of the kind in the string's state
 * @bytes_data:    first byte of a bytes object
 */
struct python_layout {
	uint16_t version;
	uint32_t release;
	bool is_described;
	uint16_t interpreters;
	uint16_t interpreter_next;
	uint16_t interpreter_threads;
	uint16_t interpreter_modules;
	uint16_t code_count;
	uint16_t thread_next;
	uint16_t thread_interpreter;
	uint16_t thread_id;
	uint16_t thread_native;
	struct python_process process;
	uint16_t object_type;
	uint16_t type_name;
	uint16_t string_length;
	uint16_t string_state;
	uint16_t string_ascii;
	uint16_t string_wide;
	uint8_t string_kind;
	uint16_t bytes_length;
	uint16_t bytes_data;
	enum python_lines lines;
};

/* The table's layout of @version, up to 3.12. False for others. */
bool python_layout_of_version(uint16_t version, struct python_layout *ret);

enum python_offsets_outcome {
	PYTHON_OFFSETS_OK = 0,
	PYTHON_OFFSETS_ABSENT,	      /* no _Py_DebugOffsets */
	PYTHON_OFFSETS_VERSION,	      /* an unknown release, or no final one */
	PYTHON_OFFSETS_FREE_THREADED, /* a build without GIL, of 3.15 */
	PYTHON_OFFSETS_ODD,	      /* offsets outside of their structures */
	PYTHON_OFFSETS_OUTCOME_MAX,
};

/* The layout in the @n bytes of a _Py_DebugOffsets. */
enum python_offsets_outcome python_layout_of_offsets(const void *bytes, size_t n,
						     struct python_layout *ret);

#endif
