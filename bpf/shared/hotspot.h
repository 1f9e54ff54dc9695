/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_HOTSPOT_H
#define PODPROF_BPF_SHARED_HOTSPOT_H

/*
 * A process with HotSpot, the Java virtual machine, for the walker (lib/runtime_hotspot.bpf.h): the
 * code heaps, and offsets in the structures of the virtual machine. The agent finds the values and
 * verifies them in the process (agent/runtimes/).
 *
 * Frames of Java code in a stack (frame.h) are of two kinds, told apart by the first word:
 *
 * - in the code heaps: compiled code. The first word is the address of the code blob. The check
 *   mixes, walk_hash() for each, starting from 0: the blob's name, the method, and the compile id
 *   as an unsigned 32-bit number. The words of a blob that is no method are whatever lies there.
 *   The place is the distance of the pc, as looked up, from the blob.
 * - elsewhere: interpreted code. The first word is the address of the method. The check mixes the
 *   address of the method's ConstMethod, its constant pool, the eight aligned bytes with the
 *   indices of name and signature, the symbol of the method's name, and the value of the class's
 *   name: the words of its symbol mixed from 0. Of a symbol, HOTSPOT_SYMBOL_WORDS words are mixed:
 * the first without the count of references, then each word that has a part of the text, then
 * zeros. The first has the number of characters and a random number, new for each symbol. The place
 * is the bytecode index.
 *
 * The check is the upper half of the result.
 */

#include "lib/types.h"

/* Processes with HotSpot, some 340 bytes of kernel memory each; before Linux 6.1 the map has the
 * memory for all, 1.4 MB. An owner has a share of the free ones (base/share.h). Reached: a
 * further process has native frames only;
 * `podprof_runtime_processes{state="full"}`. */
#define HOTSPOT_PROCESSES_MAX 4096
/* Code heaps of a process; HotSpot has up to 3. Reached: `odd`, native frames only. */
#define HOTSPOT_HEAPS_MAX     4
/* Steps back in the segment map for one frame: a step is 254 segments of 128 bytes at most, and
 * each free block that was joined to the block before it adds one. A server has up to 18. Reached:
 * code further from the beginning of its block is "[java: not understood]". */
#define HOTSPOT_HOPS_MAX      40

/* Bytes that the walker reads of a blob, a ContinuationEntry and a ConstMethod. Offsets beyond are
 * refused by the agent. */
#define HOTSPOT_BLOB_BYTES  512
#define HOTSPOT_ENTRY_BYTES 128
#define HOTSPOT_CONST_BYTES 64

/* Words of a symbol in the check: some 58 characters. Reached: symbols of one length that differ
 * further behind are told apart by the random number of 16 bits. */
#define HOTSPOT_SYMBOL_WORDS 8

/* Entries that make a frame: of native methods and others, synchronized and not. In 8 more kinds of
 * methods have one: 8u504 has ten. Reached: `version`, native frames only. */
#define HOTSPOT_MADE_MAX 20

/* The first bytes at the return barrier of a virtual thread: mov m(%r15),%rsp, and on arm64
 * ldr x8,[x28,#n]; mov sp,x8. */
#define HOTSPOT_BARRIER_X86	   0xa78b49ull
#define HOTSPOT_BARRIER_X86_MASK   0xffffffull
#define HOTSPOT_BARRIER_ARM64	   0x9100011ff9400388ull
#define HOTSPOT_BARRIER_ARM64_MASK 0xffffffffffc003ffull

struct hotspot_heap {
	__u64 low; /* [low, limit), reserved memory */
	__u64 limit;
	__u64 segments; /* the map, a byte for each segment; 0: no such heap */
};

struct hotspot_process {
	__u64 low; /* [low, limit) has all heaps */
	__u64 limit;
	__u64 interpreter; /* [interpreter, interpreter_limit) */
	__u64 interpreter_limit;
	__u64 entry; /* [entry, entry_limit), in it: makes the frames of methods */
	__u64 entry_limit;
	struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX];
	__u16 segment_shift;   /* log2 of a segment's bytes */
	__u16 block_header;    /* bytes from a block to its blob */
	__u16 blob_name;       /* pointer to the name; a multiple of 8, as are all pointers' */
	__u16 blob_size;       /* int, of the frame in words; a multiple of 4, as are all ints' */
	__u16 blob_complete;   /* int or short: code before it has no whole frame */
	__u16 blob_code;       /* pointer to the code, or an int: its distance from the blob */
	__u16 blob_method;     /* pointer to the method */
	__u16 blob_compile_id; /* int */
	__u16 blob_bytes;      /* to read: up to the last of these */
	__u16 method_const;    /* pointer to the ConstMethod */
	__u16 const_constants; /* pointer to the constant pool */
	__u16 const_names;     /* the eight bytes with the indices; a multiple of 8 */
	__u16 const_code;      /* the bytecodes */
	__u16 name_index;      /* unsigned short in the eight bytes: the name's entry */
	__u16 pool_holder;     /* pointer to the class */
	__u16 pool_entries;    /* pointers */
	__u16 class_name;      /* pointer to the symbol */
	__u16 symbol_n;	       /* unsigned short, in the first word */
	__u16 symbol_text;
	__u16 frame_bcp; /* of an interpreted frame: from the next bytecode to the frame pointer */
	__u16 entry_bytes; /* of a ContinuationEntry: below the saved frame pointer */
	__u16 entry_args;  /* in it, two ints: flags, words of arguments below it */
	__u8 complete_is_short;
	__u8 code_is_distance;
	__u8 entry_sender; /* arm64: the register with the caller's sp at a method's entry */
	__u8 pad;
	__u64 symbol_kept; /* bits of the first word without the count of references */
	/* arm64: [first, limit) of a method's entry where the frame pointer is set; instructions,
	 * from entry on */
	__u16 made[HOTSPOT_MADE_MAX][2];
	__u64 safepoints; /* address of the count of safepoints, for the memo of methods; 0: none */
};
_Static_assert(sizeof(struct hotspot_process) == 288, "value of the map of HotSpot processes");

#endif
