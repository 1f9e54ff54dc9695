/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_V8_LAYOUT_H
#define PODPROF_RUNTIMES_V8_LAYOUT_H

/*
 * V8 describes itself for debuggers: Node's builds have a variable for each constant, v8dbg_NAME,
 * with its value in the file. The names come and go with releases. v8_rusty.h has the constants of
 * builds without these variables.
 */

#include <stdbool.h>
#include <stdint.h>

#include "shared/v8.h"

struct elffile;

/* Bytes from V8_SHARED_LENGTH to the number of the function in its script, an int: the same in all
 * releases from 8 on. */
#define V8_NUMBER_BEHIND 12
/* ... and to the function's id, likewise, in releases that have it. */
#define V8_UNIQUE_BEHIND 16
/* Bytes from V8_SCRIPT_LINES to the id of the script, likewise: a small integer. */
#define V8_ID_BEHIND	 8

/* Why frames of a process have no names. The first rows are an image's, the others a process's. */
enum v8_outcome {
	V8_OK = 0,
	V8_ABSENT,     /* no V8 with constants */
	V8_VERSION,    /* constants are missing, or have values that podprof does not know */
	V8_COMPRESSED, /* pointers of 32 bits */
	V8_BUILTINS_UNKNOWN,
	V8_MACHINE,   /* not supported */
	V8_MALFORMED, /* the file's tables, or its budget of work has ended */
	V8_NOT_READY, /* no builtins yet */
	V8_ODD,	      /* the process's memory contradicts the constants */
	V8_UNREADABLE,
	V8_GONE, /* the process has ended, or runs another program */
	V8_DENIED,
	V8_OUTCOME_MAX,
};

const char *v8_outcome_name(int outcome);
/* Of memory.h's outcomes; 0 and -errno stay. */
int v8_outcome_of_memory(int r);

/* Constants of an image. Offsets in an object are from its address on, of words unless said. */
enum v8_constant {
	V8_TAG_MASK,
	V8_TAG,
	V8_SMI_SHIFT,
	V8_FRAME_MARKER,
	V8_FRAME_FUNCTION,
	V8_FRAME_ARRAY,
	V8_FRAME_OFFSET,
	V8_FUNCTION_SHARED,
	V8_SHARED_DATA,
	V8_SHARED_NAME,
	V8_SHARED_SCRIPT,
	V8_SHARED_LENGTH, /* unsigned short; the number is 12 bytes further */
	V8_MAP_TYPE,	  /* unsigned short */
	V8_TYPE_SHARED,
	V8_TYPE_SCOPE,
	V8_TYPE_SCRIPT,
	V8_TYPE_ARRAY,
	V8_SCRIPT_NAME,
	V8_SCRIPT_SOURCE,
	V8_SCRIPT_LINES,
	V8_ARRAY_N,
	V8_ARRAY_DATA,
	V8_SCOPE_LOCALS, /* number of a word of a scope: how many locals it has */
	V8_SCOPE_FIRST,	 /* ... of the names of these */
	V8_NO_STRING,	 /* types below are strings */
	V8_STRING_KINDS, /* mask of a string's type */
	V8_STRING_FLAT,
	V8_STRING_CONS,
	V8_STRING_EXTERNAL,
	V8_STRING_SLICED,
	V8_STRING_THIN,
	V8_STRING_BYTES, /* bit of a string's type: 1 byte a character */
	V8_STRING_N,	 /* int */
	V8_STRING_CHARS,
	V8_CONS_FIRST,
	V8_CONS_SECOND,
	V8_SLICED_PARENT,
	V8_SLICED_OFFSET,
	V8_THIN_ACTUAL,
	V8_EXTERNAL_RESOURCE,
	/* of lines of bytecode; 0 if they are not known */
	V8_TYPE_BYTECODE,
	V8_BYTECODE_DATA,  /* the first bytecode */
	V8_BYTECODE_TABLE, /* of source positions; by version */
	V8_TABLE_SHIFT,	   /* of tables of source positions; by version */
	V8_ARRAY_INT,	   /* whether V8_ARRAY_N is an int, but for bytecode; by version */
	/* of functions, int: unique in the isolate; by version; 0: the release has none */
	V8_SHARED_ID,
	/* of compiled code; 0 if they are not known */
	V8_TYPE_CODE,
	V8_TYPE_STREAM,	 /* what holds the instructions; 0: the Code object */
	V8_TYPE_WRAPPER, /* refers to a SharedFunctionInfo; 0: none */
	V8_CODE_HEADER,	 /* bytes from the object to its instructions */
	V8_CODE_START,	 /* address of the instructions */
	V8_CODE_FLAGS,	 /* int */
	V8_CODE_SIZE,	 /* int */
	V8_CODE_DATA,
	V8_CODE_POSITIONS,
	V8_KIND_MASK, /* bits of the flags: the compiler */
	V8_KIND_BASELINE,
	V8_DEOPT_SHARED, /* numbers of words of what optimised code was made of */
	V8_DEOPT_LITERALS,
	V8_DEOPT_INLINED,
	V8_DEOPT_FORM, /* enum v8_deopt_form; by version */
	V8_CONSTANT_MAX,
};

/* The form of a code's data for deoptimisation (v8_deopt.h), by the first version that has it. */
enum v8_deopt_form {
	V8_DEOPT_UNKNOWN,
	V8_DEOPT_OF_12,
	V8_DEOPT_OF_13,
};

/* Kinds of bytecodes: their number is a byte. Reached: baseline code has no lines. */
#define V8_BYTECODES_MAX 256

/* Code made at run time that is no function, by the type of its frame. */
enum v8_other_code {
	V8_OTHER_REGEXP,
	V8_OTHER_WASM,
	V8_OTHER_JS_TO_WASM,
	V8_OTHER_WASM_TO_JS,
	V8_OTHER_WASM_EXIT,
	V8_OTHER_MAX,
};

/**
 * struct v8_image - V8 in a file
 * @version:     major, minor, build: 11, 3, 244; zeros if not known
 * @machine:     EM_X86_64 or EM_AARCH64
 * @builtins:    vaddrs of two variables: pointer to the builtins, and their bytes (int); zeros
 *               without symbols. Then v8_builtins.h searches @zeroed
 * @zeroed:      [first, limit) of the variables that are zeros in the file
 * @code:        [first, limit) of the largest segment of code
 * @constants:   values
 * @sizes:       vaddr of the sizes of @n_sizes bytecodes, three times; 0: not known
 * @is_described: whether the constants are the image's own, and not of v8_rusty.h
 * @has_code:    whether the constants of compiled code are known
 * @other_types: type of the frames of each other code; V8_FRAME_TYPES: not known
 */
struct v8_image {
	uint32_t version[3];
	uint16_t machine;
	uint64_t builtins[2];
	uint64_t zeroed[2];
	uint64_t code[2];
	int32_t constants[V8_CONSTANT_MAX];
	uint64_t sizes;
	uint32_t n_sizes;
	bool is_described;
	bool has_code;
	uint8_t other_types[V8_OTHER_MAX];
};

/* V8_OK, or an outcome of an image; -errno. @ret->version is set whatever the outcome. */
int v8_image_probe(const struct elffile *ef, struct v8_image *ret);
/* What frames of the type are, for users: "(WebAssembly)"; NULL: not known. */
const char *v8_other_name(const struct v8_image *image, uint64_t type);

#endif
