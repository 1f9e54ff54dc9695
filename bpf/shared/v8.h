/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_V8_H
#define PODPROF_BPF_SHARED_V8_H

/*
 * A process with V8, the virtual machine of Node, for the walker (lib/runtime_v8.bpf.h): where the
 * builtins are, and offsets in frames and objects. The agent finds the values in the image and the
 * process (agent/runtimes/).
 *
 * A word that refers to an object has bit 0 set and is one above the object's address. A small
 * integer has bit 0 clear, and its value in bits 63..32.
 *
 * Frames of JavaScript in a stack (frame.h): the first word is the address of the function's
 * SharedFunctionInfo, which all closures of the function share. The check mixes, walk_hash() for
 * each, starting from 0: the word that leads to the name, the word of the script, the id, and the
 * number of the function in its script as an unsigned 32-bit number. The id is that of the function
 * as an unsigned 32-bit number in releases that have one, else the word with the script's id (0
 * without a script). An isolate never gives an id again. The check is the upper half of the result.
 * The place is the offset of the bytecode from the word that refers to the bytecode array, in
 * interpreted frames; 0 in builtins.
 *
 * Frames of compiled code, if @has_code, have the address in the code: of a caller, in its call. It
 * is in bits 47..0 of the second word, and bit 0 of the first word is set. The upper 18 bits of the
 * check are left: 16 in bits 63..48 of the second word, 2 more in bits 2..1 of the first.
 *
 * Code made at run time that is no function, such as a regular expression: the first word has V8's
 * number of the frame's type above the flags (FRAME_CODE_LIMIT).
 */

#include "lib/types.h"
#include "shared/frame.h"

/* Processes with V8, some 150 bytes of kernel memory each; before Linux 6.1 the map has the memory
 * for all, 0.5 MB. An owner has a share of the free ones (base/share.h). Reached: a further
 * process has native frames only; `podprof_runtime_processes{state="full"}`. */
#define V8_PROCESSES_MAX 4096

/* Bytes that the walker reads of a SharedFunctionInfo, behind its first word. The agent refuses
 * other offsets. */
#define V8_SHARED_FIRST 8
#define V8_SHARED_BYTES 64

/* Of frames of compiled code. */
#define V8_COMPILED	 1ull
#define V8_FLAGS	 7ull /* bits of the first word that are no address */
#define V8_PC_LIMIT	 (1ull << 48)
#define V8_COMPILED_BITS 18 /* of the check */

/* Types of frames in the mask. */
#define V8_FRAME_TYPES 64
/* From a type to the first word of its frames. */
#define V8_TYPE_SHIFT  3
_Static_assert((V8_FRAME_TYPES - 1) << V8_TYPE_SHIFT < FRAME_CODE_LIMIT, "no address");

static inline __attribute__((always_inline)) __u32 v8_compiled_check(const __u64 words[2])
{
	return (__u32)(words[1] >> 48 << 2 | (words[0] >> 1 & 3));
}

struct v8_process {
	__u64 builtins[2];  /* [first, limit) in the image's own mapping */
	__u64 copied[2];    /* the same as vaddrs: for mappings of just these, nearer to the code
			     * made at run time, one for each isolate (each thread of
			     * worker_threads) */
	__u64 other_types;  /* bits by type of frame: code without a function that has a name */
	__s16 frame_marker; /* offsets from the frame pointer: the context, or a frame's type */
	__s16 frame_function;
	__s16 frame_array;     /* of interpreted frames: the bytecode array */
	__s16 frame_offset;    /* ... and the offset of the bytecode */
	__u16 function_shared; /* offsets from an object's address: multiples of 8 */
	__u16 shared_data;     /* the bytecode array or other code */
	__u16 shared_name;
	__u16 shared_script;
	__u16 shared_number; /* int, a multiple of 4 */
	__u16 shared_id;     /* the function's, an int; 0: it has none */
	__u16 script_id;     /* of a script; read without @shared_id */
	__u8 has_code;	     /* 1: frames of compiled code have the address */
	__u8 pad;
};
_Static_assert(sizeof(struct v8_process) == 64, "value of the map of V8 processes");

#endif
