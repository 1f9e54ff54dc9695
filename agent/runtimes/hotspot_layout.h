/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_HOTSPOT_LAYOUT_H
#define PODPROF_RUNTIMES_HOTSPOT_LAYOUT_H

/*
 * HotSpot describes itself: exported variables lead to tables of the fields, types and constants
 * that its own tools for other processes need (gHotSpotVMStructs and others). The tables get their
 * values when the library is loaded, so they are read from a process.
 */

#include <stdbool.h>
#include <stdint.h>

#include "shared/hotspot.h"

struct elffile;
struct memory;

/* Why frames of a process have no names. The first rows are an image's, the others a process's. */
enum hotspot_outcome {
	HOTSPOT_OK = 0,
	HOTSPOT_ABSENT,	    /* no HotSpot */
	HOTSPOT_VERSION,    /* a release without something that the walker needs */
	HOTSPOT_MACHINE,    /* not supported */
	HOTSPOT_MALFORMED,  /* the file's tables, or its budget of work has ended */
	HOTSPOT_NOT_READY,  /* the virtual machine has no code yet */
	HOTSPOT_ODD,	    /* the process's memory contradicts the description */
	HOTSPOT_UNREADABLE, /* memory that the description leads to is not mapped */
	HOTSPOT_GONE,	    /* the process has ended, or runs another program */
	HOTSPOT_DENIED,
	HOTSPOT_OUTCOME_MAX,
};

const char *hotspot_outcome_name(int outcome);
/* Of memory.h's outcomes; 0 and -errno stay. */
int hotspot_outcome_of_memory(int r);

/* The exported variables, as vaddrs. The first three are pointers to tables, the others offsets in
 * the entries of a table, and the distances of the entries. */
enum hotspot_variable {
	HOTSPOT_STRUCTS,
	HOTSPOT_TYPES,
	HOTSPOT_STRUCT_TYPE,
	HOTSPOT_STRUCT_FIELD,
	HOTSPOT_STRUCT_STRING,
	HOTSPOT_STRUCT_OFFSET,
	HOTSPOT_STRUCT_ADDRESS,
	HOTSPOT_STRUCT_STRIDE,
	HOTSPOT_TYPE_NAME,
	HOTSPOT_TYPE_SIZE,
	HOTSPOT_TYPE_STRIDE,
	HOTSPOT_VARIABLE_MAX,
};

struct hotspot_image {
	uint16_t machine; /* EM_X86_64 or EM_AARCH64 */
	uint64_t variables[HOTSPOT_VARIABLE_MAX];
};

/* HOTSPOT_OK, HOTSPOT_ABSENT, HOTSPOT_MACHINE, HOTSPOT_MALFORMED, -errno. The walker reads its own
 * machine's code: an emulator's process has HOTSPOT_MACHINE. */
int hotspot_image_probe(const struct elffile *ef, struct hotspot_image *ret);

/* The first release whose compressed numbers have no zero bytes (hotspot_number.h). */
#define HOTSPOT_VERSION_NO_ZERO 20

/* Fields of the virtual machine: offsets in their structures, or addresses of static ones. */
enum hotspot_field {
	HOTSPOT_HEAPS,	    /* static: pointer to the array of code heaps ... */
	HOTSPOT_HEAP,	    /* ... or to the only heap, in 8 */
	HOTSPOT_LOW,	    /* static: pointer to the first byte of code */
	HOTSPOT_HIGH,	    /* static: ... behind the last */
	HOTSPOT_TEMPLATES,  /* static: pointer to the interpreter's queue of stubs */
	HOTSPOT_MAJOR,	    /* static: int */
	HOTSPOT_MINOR,	    /* static: int */
	HOTSPOT_SECURITY,   /* static: int */
	HOTSPOT_ARRAY_N,    /* GrowableArray: int */
	HOTSPOT_ARRAY_DATA, /* GrowableArray: pointer */
	HOTSPOT_HEAP_MEMORY,
	HOTSPOT_HEAP_SEGMENTS,
	HOTSPOT_HEAP_SHIFT, /* int */
	HOTSPOT_SPACE_LOW,  /* VirtualSpace, reserved: pointer */
	HOTSPOT_SPACE_HIGH,
	HOTSPOT_SPACE_USED,    /* first committed byte: pointer */
	HOTSPOT_QUEUE_BYTES,   /* int */
	HOTSPOT_QUEUE_AT,      /* pointer */
	HOTSPOT_QUEUE_END,     /* int: bytes in use */
	HOTSPOT_CODELET_BYTES, /* int: with the header */
	HOTSPOT_CODELET_TEXT,  /* pointer */
	HOTSPOT_BLOCK_USED,    /* of a block's header: bool */
	HOTSPOT_BLOB_NAME,
	HOTSPOT_BLOB_SIZE,
	HOTSPOT_BLOB_COMPLETE,
	HOTSPOT_BLOB_CODE,     /* pointer to the code ... */
	HOTSPOT_BLOB_DISTANCE, /* ... or its distance */
	HOTSPOT_BLOB_METHOD,
	HOTSPOT_BLOB_COMPILE_ID,
	HOTSPOT_BLOB_STUBS,	 /* int: distance of what is not the method's own code */
	HOTSPOT_BLOB_SCOPES,	 /* pointer to the scopes ... */
	HOTSPOT_BLOB_SCOPES_OFF, /* ... or their place in the immutable data */
	HOTSPOT_BLOB_DESCS_OFF,	 /* descriptions, in the blob or the immutable data */
	HOTSPOT_BLOB_DESCS_END,	 /* ... in the blob: what follows */
	HOTSPOT_BLOB_IMMUTABLE,
	HOTSPOT_BLOB_IMMUTABLE_BYTES,
	HOTSPOT_BLOB_METHODS_OFF,      /* pointers to methods, in the blob or its data */
	HOTSPOT_BLOB_DATA_OFF,	       /* data, in the blob */
	HOTSPOT_BLOB_MUTABLE,	       /* the pointers are behind ... */
	HOTSPOT_BLOB_RELOCATION_BYTES, /* ... so many bytes */
	HOTSPOT_DESC_PC,	       /* PcDesc: int, as is the next */
	HOTSPOT_DESC_SCOPE,
	HOTSPOT_ENTRY_PARENT, /* of ContinuationEntry */
	HOTSPOT_METHOD_CONST,
	HOTSPOT_CONST_CONSTANTS,
	HOTSPOT_CONST_BYTES_ALL, /* int: with the bytecodes, in words */
	HOTSPOT_CONST_FLAGS,
	HOTSPOT_CONST_CODE_BYTES, /* unsigned short, as are the indices */
	HOTSPOT_CONST_NAME,
	HOTSPOT_CONST_SIGNATURE,
	HOTSPOT_POOL_HOLDER,  /* pointer to the class */
	HOTSPOT_POOL_N,	      /* int */
	HOTSPOT_POOL_SOURCE,  /* unsigned short */
	HOTSPOT_CLASS_NAME,   /* pointer to the symbol */
	HOTSPOT_CLASS_SOURCE, /* unsigned short, without HOTSPOT_POOL_SOURCE */
	HOTSPOT_SYMBOL_N,     /* unsigned short */
	HOTSPOT_SYMBOL_BODY,
	HOTSPOT_COUNTERS, /* static: pointer to the performance counters (hotspot_counters.h) */
	HOTSPOT_FIELD_MAX,
};

/* Types of the virtual machine, by their bytes. */
enum hotspot_type {
	HOTSPOT_BLOCK, /* header of a block of code */
	HOTSPOT_CONST, /* ConstMethod: the bytecodes follow */
	HOTSPOT_POOL,  /* ConstantPool: the entries follow */
	HOTSPOT_DESC,  /* PcDesc; 0: not known */
	HOTSPOT_ENTRY, /* ContinuationEntry; 0: not known, in 21 to 24, or without */
	HOTSPOT_TYPE_MAX,
};

struct hotspot_layout {
	uint16_t machine; /* of the image */
	uint64_t fields[HOTSPOT_FIELD_MAX];
	bool known[HOTSPOT_FIELD_MAX];
	uint64_t bytes[HOTSPOT_TYPE_MAX];
	bool is_short[HOTSPOT_FIELD_MAX]; /* two bytes instead of four */
};

/**
 * hotspot_layout_read() - the description of a process
 * @bias: of the image
 * @ret:  fields that the walker and the names need are known with HOTSPOT_OK
 *
 * Reads the tables, some 200 KB with their strings.
 *
 * Return: HOTSPOT_OK; HOTSPOT_VERSION without a necessary field; HOTSPOT_NOT_READY before the
 * library's variables are relocated; another outcome of a process; -errno.
 */
int hotspot_layout_read(struct memory *m, const struct hotspot_image *image, uint64_t bias,
			struct hotspot_layout *ret);

#endif
