/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_PYTHON_H
#define PODPROF_BPF_SHARED_PYTHON_H

/*
 * A CPython process for the walker (lib/runtime_python.bpf.h): the code of the evaluation loop, the
 * way to the thread's state, and the offsets in the interpreter's structures. The agent finds the
 * values and verifies them in the process (agent/runtimes/).
 *
 * A frame of Python in a stack (frame.h): the first word is the address of the code object. The
 * second word has the check in its upper half and the place in the lower half. The place is the
 * frame's instruction: to 3.10 the field f_lasti as it is, later the distance of instr_ptr (3.11
 * and 3.12: prev_instr) from the code's first instruction. From 3.14 on, a thread of a build
 * without the interpreter lock (free-threaded) runs its own copy of the instructions. A code object
 * has an array of the copies: their number, then their addresses. The place is then the distance
 * from the copy's first instruction.
 *
 * The check recognizes a code object that was freed and replaced since the sample. It mixes five
 * words of the code object, walk_hash() for each, starting from 0: co_filename, co_name (from 3.12
 * on the word with co_version, the object's own number), co_qualname (to 3.10 co_name again), the
 * line table's pointer, and co_firstlineno as an unsigned 32-bit number. The check is the upper
 * half of the result.
 *
 * To 3.11 a later object can have all five. So the check also mixes a value of the string
 * co_qualname, then one of co_filename. The value mixes, starting from 0, the words with the
 * length and the hash that CPython caches in the string. If the hash is -1 (not computed yet), the
 * value also mixes a sum of the last PYTHON_TAIL_WORDS words of the characters, the first word
 * times PYTHON_TAIL_FACTOR, the next one times its square and so on; else it mixes 0. The
 * characters' first byte begins a word. The last word is whole: it is within the string's memory,
 * whose bytes behind the characters stay the same, too.
 */

#include "lib/types.h"

/* Processes with CPython, some 300 bytes of kernel memory each; before Linux 6.1 the map has the
 * memory for all, 1.2 MB. An owner has a share of the free ones (base/share.h). Reached: a
 * further process has native frames only;
 * `podprof_runtime_processes{state="full"}`. */
#define PYTHON_PROCESSES_MAX 4096
/* Parts of the evaluation loop: the compiler splits rare code off. Reached: `no_loop`, native
 * frames only. */
#define PYTHON_LOOPS_MAX     8
#define PYTHON_NO_OFFSET     0xffff

/* Bytes that the walker reads: of a frame, and the limit for a code object. Offsets beyond are
 * refused by the agent. */
#define PYTHON_FRAME_BYTES	128
#define PYTHON_FRAME_BYTES_3_11 80
#define PYTHON_CODE_BYTES	256
/* The first line, with which a read of a code object begins, is below. A power of two. */
#define PYTHON_CODE_FROM_LIMIT	128

/* Where strings of 3.6 to 3.11 have the length, the hash, the state (python_string.c), and the
 * characters: of ASCII, and of others. */
#define PYTHON_STRING_LENGTH	  16
#define PYTHON_STRING_HASH	  24
#define PYTHON_STRING_STATE	  32
#define PYTHON_STRING_ASCII	  48
#define PYTHON_STRING_WIDE	  72
/* Words of characters in the check: the last 33 to 40 bytes. Reached: functions of one name
 * at one place of one file, or with an equal end of these, are told apart by length and addresses.
 */
#define PYTHON_TAIL_WORDS	  5
#define PYTHON_TAIL_FACTOR	  0x9e3779b97f4a7c15ull
/* The limit for a code object of these releases: the walker reads the strings behind it. */
#define PYTHON_STRINGS_CODE_BYTES 144

/* In a thread's state: its interpreter, in the releases with a memo of code objects. */
#define PYTHON_THREAD_INTERPRETER 16

/* The Python frames of one run of the evaluation loop. */
enum python_activation {
	PYTHON_EACH_FRAME, /* to 3.10: one */
	PYTHON_IS_ENTRY,   /* 3.11: up to the frame with the mark, inclusive */
	PYTHON_OWNER,	   /* later: up to the frame with owner >= 3, not shown */
};
/* Owners from here on are the interpreter's own: the frame is not a function's. */
#define PYTHON_OWNER_LOOP 3

/* The way from the thread pointer to the pointer to the thread's state. */
struct python_way {
	__s32 at;	/* from the thread pointer, a multiple of 8: the pointer. 0: no way */
	__u16 in_array; /* the word there leads to an array instead (musl): 1, and ... */
	__u16 slot;	/* ... the pointer's offset in the array, a multiple of 8 */
};
_Static_assert(sizeof(struct python_way) == 8, "in the maps of Python");

/* Objects of CPython, in the releases with names of tasks. */
#define PYTHON_OBJECT_TYPE 8  /* in an object: its type */
#define PYTHON_DICT_KEYS   32 /* in a dict */
/* Words of the head of a dict's keys to 3.10, later one less; and of an entry: hash, key, value. */
#define PYTHON_KEYS_WORDS  5
#define PYTHON_ENTRY_WORDS 3

/*
 * The running tasks of asyncio, for the names of tasks (--task-names): zeros without them. To 3.13
 * a dict of the module _asyncio has the running task of each event loop. A task runs in its
 * context, and no two threads run in one context, so the thread's task is the one with the thread's
 * context. From 3.14 on the thread's state has the task.
 */
struct python_tasks {
	__u64 type;	      /* _asyncio.Task; 0: asyncio is not there */
	__u64 string;	      /* the type of strings */
	__u64 running;	      /* to 3.13: the dict */
	__u16 thread_task;    /* from 3.14 on, in the thread state: the task; else 0 */
	__u16 thread_context; /* in the thread state: the context; to 3.13 */
	__u16 task_name;      /* in a task; the task's context is behind the name */
	__u16 string_data;    /* the characters of an ASCII string */
	__u8 dict_is_old;     /* to 3.10: the head of a dict's keys has 40 bytes, later 32 */
	__u8 pad[7];
};
_Static_assert(sizeof(struct python_tasks) == 40, "in the map of Python processes");

struct python_process {
	__u64 loops[PYTHON_LOOPS_MAX][2]; /* [begin, end) of the evaluation loop's parts, addresses
					   * of the process; zeros behind the last */
	struct python_tasks tasks;
	struct python_way way;
	__u64 interpreter;	 /* the first one, whose code objects the memo has; 0: no memo */
	__u64 code_count;	 /* address of the number of its next code object, 32 bits; a
				  * multiple of 8 */
	__u16 tstate_frame;	 /* in the thread state: pointer to the frame, or to the cframe */
	__u16 cframe_frame;	 /* in the cframe: pointer to the frame; PYTHON_NO_OFFSET: none */
	__u16 frame_previous;	 /* a multiple of 8, as are all pointers' */
	__u16 frame_code;	 /* pointer to the code object */
	__u16 frame_instr;	 /* the instruction; a multiple of 4 */
	__u16 frame_entry;	 /* owner or is_entry, a byte */
	__u16 code_filename;	 /* pointer to the string */
	__u16 code_name;	 /* pointer to the string; from 3.12 on the word with co_version */
	__u16 code_qualname;	 /* pointer to the string; to 3.10 code_name again */
	__u16 code_lines;	 /* pointer to the line table; the last of the five words */
	__u16 code_first_line;	 /* int; a multiple of 4; the first of the five words */
	__u16 code_instructions; /* the first instruction; 3.11 and later */
	__u16 frame_copy;	 /* int: the copy of the instructions that the frame runs; a
				  * multiple of 4, in the word of frame_entry */
	__u16 code_copies;	 /* pointer to the array of copies; 0: none. The last word read */
	__u8 activation;	 /* enum python_activation */
	__u8 instr_is_int;	 /* frame_instr is f_lasti */
	__u8 code_tagged;	 /* the low bits of frame_code are a tag: 3.14 */
	__u8 has_strings;	 /* the check has the strings: to 3.11 */
};
_Static_assert(sizeof(struct python_process) == 224, "value of the map of Python processes");

/*
 * A program with CPython, for processes of it that the agent does not know yet. A stack dump of
 * such a process gets an excerpt (stack_dump.h) with the list of frames, and with the code objects
 * that no earlier excerpt of the process has. The file's layout is enough for that. The pointer to
 * the thread's state is one of some candidates: the state has pthread_self() as the thread's id,
 * which proves it.
 */

/* Programs with CPython, 340 bytes of kernel memory each. Reached: the owner's oldest program, or
 * the oldest of all, is forgotten, and learnt again. */
#define PYTHON_EXES_MAX	      1024
/* Candidates. Reached: a process with another place has native frames until the agent reads it. */
#define PYTHON_WAYS_MAX	      6
/* Where glibc's struct pthread has tid on arm64, behind 24 words of padding and a list. */
#define PYTHON_ARM64_TID      208
/* Frames in an excerpt. Reached: the others are `[python: unreadable]`. */
#define PYTHON_EXCERPT_FRAMES 96

struct python_exe {
	struct python_process process;		 /* without addresses and tasks */
	struct python_way ways[PYTHON_WAYS_MAX]; /* candidates; zeros behind the last */
	__u16 thread_id;			 /* in the thread state */
	__u16 string_length;			 /* characters */
	__u16 string_state;			 /* int with the width of a character */
	__u16 string_data;			 /* the last place where the characters may begin */
	__u16 bytes_length;
	__u16 bytes_data;
	__u8 string_kind; /* the width's lowest bit in string_state */
	__u8 n_known;	  /* ways from the thread pointer; the others are from pthread_self() */
	__u8 pad[2];
};
_Static_assert(sizeof(struct python_exe) == 288, "value of the map of programs with Python");

/* The parts of an excerpt. */
enum python_part {
	PYTHON_PART_THREAD, /* at: of the way; PYTHON_THREAD_WORDS words: the first frame, the
			       cframe, the frame of the cframe before, each 0 if there is none */
	PYTHON_PART_FRAME,  /* at: address; PYTHON_FRAME_WORDS words: the caller's frame, the code
			       object without tag, the words around instr and entry, the check.
			       Innermost first */
	PYTHON_PART_MEMORY, /* the bytes at the address: a code object, a string, a line table */
	PYTHON_PART_MAX,
};
#define PYTHON_THREAD_WORDS 3
#define PYTHON_FRAME_WORDS  5

#endif
