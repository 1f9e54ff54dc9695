/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_RUNTIME_PYTHON_BPF_H
#define PODPROF_BPF_LIB_RUNTIME_PYTHON_BPF_H

/*
 * The step of CPython. CPython keeps a list of its frames, innermost first, in the thread's state.
 * On the machine stack, each run of the evaluation loop (an activation) is one native frame. A run
 * has one Python frame up to 3.10, and one or more since 3.11: calls from Python to Python do not
 * leave the loop. Since 3.12 a run begins with an entry frame, a variable of the loop's native
 * frame. So the list is divided exactly: at each native frame of the loop come the frames up to the
 * mark of the activation's end, in place of the native frame.
 *
 * A loop that has just been called, or is about to return, has a native frame and is not on the
 * list. Such a loop gets no frames, else all frames would move one activation inwards. The entry
 * frame shows the case: it is in the native frame, between sp and CFA, or the activation on the
 * list is another one, further out. Since the frame is at the end of the activation, the frames
 * before it are stored first, and taken back. 3.11 and 3.12 have a cframe in the native frame of
 * the innermost activation, tested beforehand. For some instructions a cframe is pushed and has no
 * frame yet, but the bytes of earlier calls. So the activation must lead to the frame of the cframe
 * before. To 3.10 nothing on the machine stack shows the case.
 *
 * A wait without the interpreter lock keeps the frames: the pointer to the thread's state is the
 * one that the lock does not change (struct python_process).
 *
 * From 3.13 on, a memo (object_memo.bpf.h) has the checks of code objects found last. The other
 * releases read a code object once a sample: functions repeat (middleware, visitors of trees). To
 * 3.11, strings of files are read once a sample, too: all functions of a module share the string.
 * The memory of these objects does not change in a sample.
 *
 * Frames since 3.11 lie in blocks of 16 KB, a caller's at a lower address than its callee's. The
 * window therefore begins below the frame, and mostly has the next frames already. An entry frame
 * lies elsewhere and is read without the window. Older frames are objects of their own, with a read
 * each.
 */

#include "lib/object_memo.bpf.h"
#include "shared/python.h"
#include "shared/stack_dump.h"

/* Accessor: the process, NULL: no frames of Python are known. */
WALK_INLINE const struct python_process *python_process_of(const struct walk_ctx *c);

/*
 * The walk over a stack dump defines PYTHON_COPIED: the frames are in the dump's excerpt, whose
 * words these accessors return; NULL: not there.
 */
#ifdef PYTHON_COPIED
WALK_INLINE const __u64 *python_copied_thread(const struct walk_ctx *c);
WALK_INLINE const __u64 *python_copied_frame(const struct walk_ctx *c, __u64 address);
#endif

/* The words of w->aside.of_runtime. */
enum {
	PYTHON_STATE,	  /* PYTHON_BEGUN and so on */
	PYTHON_AT,	  /* the next frame; 0: no more */
	PYTHON_FIRST,	  /* the activation's innermost frame */
	PYTHON_CFRAME,	  /* the innermost activation's cframe; 0: none, or seen */
	PYTHON_OUTER,	  /* the innermost frame of the cframe before that */
	PYTHON_COUNT,	  /* of code objects, for the memo; 0: each is read in each sample */
	PYTHON_INNERMOST, /* the thread's innermost frame */
	PYTHON_VALUE,	  /* of a string */
	PYTHON_HASH,	  /* of the check, before the strings */
};

/* The objects in w->seen. */
enum {
	PYTHON_SEEN_CODES, /* the check */
	PYTHON_SEEN_FILES, /* the string's value */
};

#define PYTHON_BEGUN  1 /* PYTHON_AT is set */
#define PYTHON_ACTIVE 2 /* in an activation */
#define PYTHON_DONE   4 /* the activation's last frame is stored */
#define PYTHON_INNER  8 /* the activation leads to PYTHON_OUTER, or is not pushed */

/* The words of w->aside.of_frame: the frame at PYTHON_AT. */
enum {
	PYTHON_PREVIOUS,
	PYTHON_CODE,
	PYTHON_INSTR, /* the two words around it, */
	PYTHON_ENTRY, /* not shifted yet */
	PYTHON_CHECK, /* of the code object: in excerpts only */
};
_Static_assert(PYTHON_CHECK + 1 == PYTHON_FRAME_WORDS, "as in an excerpt");

#define PYTHON_WORDS(bytes) ((bytes) / 8)
/* The window's bytes below the frame. */
#define PYTHON_BELOW	    (WINDOW_BYTES - PYTHON_FRAME_BYTES_3_11)

_Static_assert(PYTHON_CODE_BYTES <= WALK_OBJECT_WORDS * 8, "a code object fits");
/* The words of a string, behind a code object of the releases whose check has strings. */
#define PYTHON_STRING_WORD (PYTHON_STRINGS_CODE_BYTES / 8)
/* Bytes of a string read at once, from its length on: of one with a hash, and of another, with up
 * to 80 characters of ASCII. */
#define PYTHON_STRING_HEAD 24
#define PYTHON_STRING_MOST 112
_Static_assert(PYTHON_STRING_WORD * 8 + PYTHON_STRING_MOST == WALK_OBJECT_WORDS * 8,
	       "a string fits");

/* ---------------------------------------------------------------- reading */

/* The native frame's activation is not pushed: the list from @next on belongs to frames further
 * out.
 */
WALK_INLINE __u32 python_not_pushed(const struct walk_ctx *c, __u64 next)
{
	__u64 *mine = c->w->aside.of_runtime;

	mine[PYTHON_STATE] = PYTHON_BEGUN;
	mine[PYTHON_AT] = next;
	walk_undo_runtime(c);
	return WALK_NATIVE;
}

WALK_INLINE __u32 python_broken(const struct walk_ctx *c, enum frame_reason reason)
{
	__u64 *mine = c->w->aside.of_runtime;

	if (mine[PYTHON_STATE] & PYTHON_INNER)
		return python_not_pushed(c, mine[PYTHON_OUTER]);
	mine[PYTHON_STATE] = PYTHON_BEGUN;
	return walk_store_broken(c, FRAME_RUNTIME_PYTHON, reason, mine[PYTHON_AT]);
}

/* Whether an object may be there. Other bits than a head's first word has are never in an address.
 */
WALK_INLINE int python_plausible(__u64 address)
{
	return address && !(address & 7) && address < FRAME_FIRST_LIMIT;
}

/* A word outside of all frames. Not 0 if unreadable. */
WALK_INLINE int python_word(const struct walk_ctx *c, __u64 address, __u64 *ret)
{
	struct walk_room *room = walk_room(c);

	if ((address & 7) || window_read(c->space, room->object, 8, address))
		return -1;
	*ret = room->object[0];
	return 0;
}

/* Whether @address is in the machine frame of the loop. */
WALK_INLINE int python_in_native(const struct walk *w, __u64 address)
{
	return address >= w->aside.sp && address < w->aside.cfa;
}

/* The first byte read of a code object: the words of the check take two cache lines, the whole
 * object up to them three or four. */
WALK_INLINE __u64 python_code_from(const struct python_process *p)
{
	return p->code_first_line & (PYTHON_CODE_FROM_LIMIT - 8);
}

#ifdef PYTHON_COPIED

WALK_INLINE int python_begin_thread(const struct walk_ctx *c, const struct python_process *p)
{
	const __u64 *thread = python_copied_thread(c);
	__u64 *mine = c->w->aside.of_runtime;

	(void)p;
	if (!thread)
		return -1;
	mine[PYTHON_AT] = thread[0];
	mine[PYTHON_CFRAME] = thread[1];
	mine[PYTHON_OUTER] = thread[2];
	return 0;
}

WALK_INLINE int python_frame(const struct walk_ctx *c, const struct python_process *p)
{
	const __u64 *frame = python_copied_frame(c, c->w->aside.of_runtime[PYTHON_AT]);

	(void)p;
	if (!frame)
		return -1;
	for (int i = 0; i < PYTHON_CHECK; i++)
		c->w->aside.of_frame[i] = frame[i];
	return 0;
}

/* @code is of the frame at PYTHON_AT. */
WALK_INLINE int python_find_check(const struct walk_ctx *c, const struct python_process *p,
				  __u64 code, __u64 *ret)
{
	const __u64 *frame = python_copied_frame(c, c->w->aside.of_runtime[PYTHON_AT]);

	(void)p;
	if (!frame || frame[PYTHON_CODE] != code)
		return -1;
	*ret = frame[PYTHON_CHECK];
	return 0;
}

#else

/* Once a sample: the count of code objects. Other interpreters of the process have counts of their
 * own. A count of 0 is an overflow. */
WALK_INLINE void python_begin_memo(const struct walk_ctx *c, const struct python_process *p,
				   __u64 state)
{
	__u64 *mine = c->w->aside.of_runtime, word;

	if (!p->interpreter || !c->objects ||
	    python_word(c, state + PYTHON_THREAD_INTERPRETER, &word) || word != p->interpreter)
		return;
	WALK_FENCE();
	if (!python_word(c, p->code_count, &word))
		mine[PYTHON_COUNT] = (__u32)word;
}

/* The address of the thread's state into PYTHON_AT, by the way from @from; 0 for a thread without
 * Python. Not 0 if unreadable, with the address in PYTHON_AT. */
WALK_INLINE int python_state(const struct walk_ctx *c, __u64 from, const struct python_way *way)
{
	__u64 *mine = c->w->aside.of_runtime;

	mine[PYTHON_AT] = from + (__u64)(__s64)way->at;
	if (python_word(c, mine[PYTHON_AT], &mine[PYTHON_AT]))
		return -1;
	WALK_FENCE();
	if (!way->in_array || !mine[PYTHON_AT])
		return 0;
	mine[PYTHON_AT] += way->slot;
	if (python_word(c, mine[PYTHON_AT], &mine[PYTHON_AT]))
		return -1;
	WALK_FENCE();
	return 0;
}

/* The innermost frame of the thread whose state's address is in PYTHON_AT into PYTHON_AT; 0 for a
 * thread without Python. Not 0 if unreadable, with the address in PYTHON_AT. */
WALK_INLINE int python_begin_state(const struct walk_ctx *c, const struct python_process *p)
{
	__u64 *mine = c->w->aside.of_runtime;

	walk_seen_clear(&c->w->seen[PYTHON_SEEN_CODES]);
	walk_seen_clear(&c->w->seen[PYTHON_SEEN_FILES]);
	if (!mine[PYTHON_AT])
		return 0;
	python_begin_memo(c, p, mine[PYTHON_AT]);
	WALK_FENCE();
	mine[PYTHON_AT] += p->tstate_frame;
	if (python_word(c, mine[PYTHON_AT], &mine[PYTHON_AT]))
		return -1;
	WALK_FENCE();
	if (p->cframe_frame == PYTHON_NO_OFFSET || !mine[PYTHON_AT])
		return 0;
	mine[PYTHON_CFRAME] = mine[PYTHON_AT];
	mine[PYTHON_AT] += p->cframe_frame;
	if (python_word(c, mine[PYTHON_AT] + 8, &mine[PYTHON_OUTER])) /* the cframe before */
		return -1;
	WALK_FENCE();
	/* the outermost one has none before it */
	if (mine[PYTHON_OUTER] &&
	    python_word(c, mine[PYTHON_OUTER] + p->cframe_frame, &mine[PYTHON_OUTER]))
		return -1;
	WALK_FENCE();
	return python_word(c, mine[PYTHON_AT], &mine[PYTHON_AT]);
}

WALK_INLINE int python_begin_thread(const struct walk_ctx *c, const struct python_process *p)
{
	return python_state(c, walk_thread_pointer(c->space), &p->way) || python_begin_state(c, p)
		       ? -1
		       : 0;
}

/* The frame's words, from @words on, into w->aside.of_frame. @words has @mask + 1 words. */
WALK_INLINE void python_take(const struct walk_ctx *c, const struct python_process *p,
			     const __u64 *words, __u64 mask, __u64 from)
{
	__u64 *frame = c->w->aside.of_frame;

	frame[PYTHON_PREVIOUS] = words[(from + PYTHON_WORDS(p->frame_previous)) & mask];
	frame[PYTHON_CODE] = words[(from + PYTHON_WORDS(p->frame_code)) & mask];
	frame[PYTHON_INSTR] = words[(from + PYTHON_WORDS(p->frame_instr)) & mask];
	frame[PYTHON_ENTRY] = words[(from + PYTHON_WORDS(p->frame_entry)) & mask];
}

/* Read the frame at PYTHON_AT. Not 0 if unreadable. */
WALK_INLINE int python_frame(const struct walk_ctx *c, const struct python_process *p)
{
	struct window_place *place = &c->w->aside.place;
	struct walk_room *room = walk_room(c);
	const __u64 at = c->w->aside.of_runtime[PYTHON_AT];

	if (p->activation == PYTHON_EACH_FRAME || python_in_native(c->w, at)) {
		__u64 n = p->activation == PYTHON_EACH_FRAME ? PYTHON_FRAME_BYTES
							     : PYTHON_FRAME_BYTES_3_11;

		if (window_read(c->space, room->object, n, at))
			return -1;
		python_take(c, p, room->object, WALK_OBJECT_WORDS - 1, 0);
		return 0;
	}
	if (at < place->at || place->bytes < at - place->at + PYTHON_FRAME_BYTES_3_11) {
		/* the block may begin in between, with a page */
		if (window_fill(c->space, &room->window, place, at - PYTHON_BELOW) ||
		    place->bytes < WINDOW_BYTES)
			(void)window_fill(c->space, &room->window, place, at & ~4095ull);
		if (place->bytes < at - place->at + PYTHON_FRAME_BYTES_3_11)
			return -1;
	}
	python_take(c, p, room->window.words, WINDOW_WORDS - 1, (at - place->at) / 8);
	return 0;
}

/* The word of the code object read last. */
WALK_INLINE __u64 python_code_word(const struct walk_ctx *c, __u64 off)
{
	return walk_room(c)->object[(off / 8) & (WALK_OBJECT_WORDS - 1)];
}

/* Moves the frame's instruction from its thread's copy to the code object, which was read last. Not
 * 0 if unreadable. */
WALK_INLINE int python_uncopy(const struct walk_ctx *c, const struct python_process *p, __u64 code)
{
	struct walk_room *room = walk_room(c);
	__u64 *frame = c->w->aside.of_frame;
	const __u64 first = room->object[0];
	__u64 copy = (__u32)(frame[PYTHON_ENTRY] >> (p->frame_copy & 4) * 8);

	if (!p->code_copies)
		return 0;
	copy = python_code_word(c, p->code_copies) + 8 + copy * 8;
	if (python_word(c, copy, &copy))
		return -1;
	WALK_FENCE();
	room->object[0] = first;
	frame[PYTHON_INSTR] += code + p->code_instructions - copy;
	return 0;
}

/* The sum of the check for the @bytes of a string's end, from the object's word @at on; 0 for none.
 * Without branches, and without masks for single bytes: these took the verifier three times as
 * long.
 */
WALK_INLINE __u64 python_tail(const struct walk_ctx *c, __u64 at, __s64 bytes)
{
	__u64 sum = 0, factor = PYTHON_TAIL_FACTOR;

	for (int i = 0; i < PYTHON_TAIL_WORDS; i++, bytes -= 8) {
		const __u64 word = walk_room(c)->object[(at + i) & (WALK_OBJECT_WORDS - 1)];

		sum += (word & (__u64)(-bytes >> 63)) * factor;
		factor *= PYTHON_TAIL_FACTOR;
	}
	return sum;
}

/* Reads a string from its length on, at @at: @most bytes, or only the head if the rest is on the
 * next page, which may not be there. Returns the bytes, 0 if unreadable. */
WALK_INLINE __u64 python_string_begin(const struct walk_ctx *c, __u64 at, __u64 most)
{
	const __s64 after = (__s64)(((WINDOW_TO_EDGE(c->space, at) - 1) & 4095) + 1 - most);

	most -= (most - PYTHON_STRING_HEAD) & (__u64)(after >> 63);
	if (window_read(c->space, walk_room(c)->object + PYTHON_STRING_WORD, most & 127, at))
		return 0;
	return most;
}

/* The value of the string at @at, of which @most bytes are read at once. Not 0 if unreadable. One
 * branch for all strings, for the verifier. */
WALK_INLINE int python_string(const struct walk_ctx *c, __u64 at, __u64 most, __u64 *ret)
{
	__u64 *words = walk_room(c)->object + PYTHON_STRING_WORD;
	__u64 n, begin, hash;
	__s64 before;

	at += PYTHON_STRING_LENGTH;
	if (!python_plausible(at))
		return -1;
	most = python_string_begin(c, at, most);
	if (!most)
		return -1;
	hash = ~words[1];
	*ret = walk_hash(walk_hash(0, words[0]), words[1]);
	n = (words[0] & 0xffffff) * (words[2] >> 2 & 7); /* bytes of a character */
	n &= ((hash | -hash) >> 63) - 1;		 /* 0 with a hash */
	n = (n + 7) & ~7ull;
	before = (__s64)n - PYTHON_TAIL_WORDS * 8;
	before &= ~(before >> 63);
	n -= (__u64)before;
	begin = PYTHON_STRING_WIDE - PYTHON_STRING_LENGTH + (__u64)before -
		(words[2] >> 6 & 1) * (PYTHON_STRING_WIDE - PYTHON_STRING_ASCII);
	if (n && begin + n > most) {
		if (window_read(c->space, words, n & 63, at + begin))
			return -1;
		begin = 0;
	}
	*ret = walk_hash(*ret, python_tail(c, PYTHON_STRING_WORD + begin / 8, (__s64)n));
	return 0;
}

/* The value of the string at @file. Not 0 if unreadable. */
WALK_INLINE int python_file(const struct walk_ctx *c, __u64 file, __u64 *ret)
{
	struct walk_seen *files = &c->w->seen[PYTHON_SEEN_FILES];

	if (walk_seen_find(files, file, ret))
		return 0;
	if (python_string(c, file, PYTHON_STRING_MOST, ret))
		return -1;
	WALK_FENCE();
	walk_seen_add(files, file, *ret);
	return 0;
}

/* Mixes the values of the name and the file of the code object read last. Not 0 if unreadable. A
 * qualified name that is the name has a hash, nearly always; others, and files, nearly never. */
WALK_INLINE int python_strings(const struct walk_ctx *c, const struct python_process *p,
			       __u64 *hash)
{
	const __u64 name = python_code_word(c, p->code_qualname);
	__u64 *value = &c->w->aside.of_runtime[PYTHON_VALUE];
	__u64 differs = name ^ python_code_word(c, p->code_name);

	differs = (differs | -differs) >> 63;
	if (python_string(c, name,
			  PYTHON_STRING_HEAD + differs * (PYTHON_STRING_MOST - PYTHON_STRING_HEAD),
			  value))
		return -1;
	WALK_FENCE();
	*hash = walk_hash(*hash, *value);
	if (python_file(c, python_code_word(c, p->code_filename), value))
		return -1;
	WALK_FENCE();
	*hash = walk_hash(*hash, *value);
	return 0;
}

/* The check of the code object at @code, read from its byte @from on. Not 0 if unreadable. */
WALK_INLINE int python_check(const struct walk_ctx *c, const struct python_process *p, __u64 code,
			     __u64 from, __u64 *ret)
{
	const __u64 last = p->code_copies ? p->code_copies : p->code_lines;
	const __u64 n = ((last - from) & (PYTHON_CODE_BYTES - 8)) + 8;
	__u64 hash = 0;

	if (window_read(c->space, walk_room(c)->object + from / 8, n, code + from))
		return -1;
	hash = walk_hash(hash, python_code_word(c, p->code_filename));
	hash = walk_hash(hash, python_code_word(c, p->code_name));
	hash = walk_hash(hash, python_code_word(c, p->code_qualname));
	hash = walk_hash(hash, python_code_word(c, p->code_lines));
	hash = walk_hash(hash, (__u32)(python_code_word(c, p->code_first_line) >>
				       (p->code_first_line & 4) * 8));
	c->w->aside.of_runtime[PYTHON_HASH] = hash;
	WALK_FENCE();
	if (p->has_strings && python_strings(c, p, &c->w->aside.of_runtime[PYTHON_HASH]))
		return -1;
	WALK_FENCE();
	*ret = c->w->aside.of_runtime[PYTHON_HASH] >> 32;
	return python_uncopy(c, p, code);
}

/* As python_check(), through the memo, or through the sample's own. The innermost frame may be no
 * whole frame, so only others are added. */
WALK_INLINE int python_find_check(const struct walk_ctx *c, const struct python_process *p,
				  __u64 code, __u64 *ret)
{
	const __u64 *mine = c->w->aside.of_runtime;
	struct walk_seen *codes = &c->w->seen[PYTHON_SEEN_CODES];
	struct object_memo_entry entry;

	if (c->objects && mine[PYTHON_COUNT]) {
		__u64 value = object_memo_find(object_memo_set(c->objects, code, c->identity), code,
					       c->identity, mine[PYTHON_COUNT]);

		if (value) {
			*ret = value >> 32;
			return 0;
		}
	} else if (!p->code_copies && walk_seen_find(codes, code, ret)) {
		return 0; /* the copies' array is in the object */
	}
	WALK_FENCE();
	if (python_check(c, p, code, python_code_from(p), ret))
		return -1;
	WALK_FENCE();
	if (mine[PYTHON_AT] == mine[PYTHON_INNERMOST])
		return 0;
	if (!c->objects || !mine[PYTHON_COUNT]) {
		walk_seen_add(codes, code, *ret);
		return 0;
	}
	entry = (struct object_memo_entry){.object = code,
					   .process = c->identity,
					   .count = mine[PYTHON_COUNT],
					   .value = *ret << 32 | 1};
	object_memo_add(object_memo_set(c->objects, code, c->identity), &entry);
	return 0;
}

#endif

/* ---------------------------------------------------------------- frames */

/* Whether the native frame is the evaluation loop's. Without branches: each would double the
 * verifier's work. Addresses have no sign bit. */
WALK_INLINE int python_in_loop(const struct python_process *p, __u64 pc)
{
	__u64 in = 0;

	for (int i = 0; i < PYTHON_LOOPS_MAX; i++) {
		__u64 off = pc - p->loops[i][0], bytes = p->loops[i][1] - p->loops[i][0];

		in |= (off - bytes) & ~off;
	}
	return (in >> 63) & 1;
}

/* At a native frame. WALK_ON at an activation with frames. */
WALK_INLINE __u32 python_enter(const struct walk_ctx *c, const struct python_process *p)
{
	__u64 *mine = c->w->aside.of_runtime;

	if (!python_in_loop(p, c->w->aside.pc))
		return WALK_NATIVE;
	WALK_FENCE();
	if (!(mine[PYTHON_STATE] & PYTHON_BEGUN)) {
		mine[PYTHON_STATE] = PYTHON_BEGUN;
		if (python_begin_thread(c, p)) {
			__u32 end = python_broken(c, FRAME_REASON_UNREADABLE);

			mine[PYTHON_CFRAME] = 0;
			mine[PYTHON_AT] = 0;
			return end;
		}
		mine[PYTHON_INNERMOST] = mine[PYTHON_AT];
		WALK_FENCE();
	}
	if (mine[PYTHON_CFRAME] && !python_in_native(c->w, mine[PYTHON_CFRAME]))
		return WALK_NATIVE; /* not pushed */
	if (!mine[PYTHON_CFRAME] && !mine[PYTHON_AT])
		return WALK_NATIVE;
	mine[PYTHON_STATE] = PYTHON_BEGUN | PYTHON_ACTIVE;
	if (mine[PYTHON_CFRAME])
		mine[PYTHON_STATE] |= PYTHON_INNER;
	mine[PYTHON_CFRAME] = 0;
	mine[PYTHON_FIRST] = mine[PYTHON_AT];
	return WALK_ON;
}

/* At the entry frame. If it belongs to another native frame, further out, so do the frames stored
 * at this one. */
WALK_INLINE __u32 python_leave(const struct walk_ctx *c)
{
	__u64 *mine = c->w->aside.of_runtime;
	const __u64 previous = c->w->aside.of_frame[PYTHON_PREVIOUS];

	if ((mine[PYTHON_STATE] & PYTHON_INNER) &&
	    (previous != mine[PYTHON_OUTER] || !python_in_native(c->w, mine[PYTHON_AT])))
		return python_not_pushed(c, mine[PYTHON_OUTER]);
	if (!python_in_native(c->w, mine[PYTHON_AT]))
		return python_not_pushed(c, mine[PYTHON_FIRST]);
	mine[PYTHON_STATE] = PYTHON_BEGUN;
	mine[PYTHON_AT] = previous;
	return WALK_NATIVE;
}

/* Store the frame in w->aside.of_frame. */
WALK_INLINE __u32 python_store(const struct walk_ctx *c, const struct python_process *p)
{
	__u64 *mine = c->w->aside.of_runtime;
	__u64 *frame = c->w->aside.of_frame;
	__u64 check, place;
	int is_last = p->activation == PYTHON_EACH_FRAME;

	if (p->activation == PYTHON_IS_ENTRY)
		is_last = (frame[PYTHON_ENTRY] >> (p->frame_entry & 7) * 8 & 0xff) != 0;
	if (p->activation == PYTHON_IS_ENTRY && is_last && (mine[PYTHON_STATE] & PYTHON_INNER) &&
	    frame[PYTHON_PREVIOUS] != mine[PYTHON_OUTER])
		return python_not_pushed(c, mine[PYTHON_OUTER]);
	frame[PYTHON_CODE] &= ~(p->code_tagged * 3ull);
	if (!python_plausible(frame[PYTHON_CODE]))
		return python_broken(c, FRAME_REASON_ODD);
	if (python_find_check(c, p, frame[PYTHON_CODE], &check)) {
		mine[PYTHON_AT] = frame[PYTHON_CODE];
		return python_broken(c, FRAME_REASON_UNREADABLE);
	}
	WALK_FENCE();
	place = frame[PYTHON_INSTR] >> (p->frame_instr & 4) * 8;
	if (!p->instr_is_int)
		place -= frame[PYTHON_CODE] + p->code_instructions;
	if (mine[PYTHON_AT] == mine[PYTHON_FIRST])
		walk_replace_native(c);
	mine[PYTHON_AT] = frame[PYTHON_PREVIOUS];
	if (is_last)
		mine[PYTHON_STATE] = PYTHON_BEGUN | PYTHON_DONE;
	return walk_store_runtime(c, FRAME_RUNTIME_PYTHON, frame[PYTHON_CODE],
				  check << 32 | (__u32)place);
}

WALK_INLINE __u32 python_step(const struct walk_ctx *c)
{
	const struct python_process *p = python_process_of(c);
	__u64 *mine = c->w->aside.of_runtime;
	__u64 *frame = c->w->aside.of_frame;
	__u32 end;

	if (!p)
		return WALK_NATIVE;
	if (mine[PYTHON_STATE] & PYTHON_DONE) {
		mine[PYTHON_STATE] = PYTHON_BEGUN;
		return WALK_NATIVE;
	}
	if (!(mine[PYTHON_STATE] & PYTHON_ACTIVE)) {
		end = python_enter(c, p);
		if (end != WALK_ON)
			return end;
	}
	WALK_FENCE();
	if (!mine[PYTHON_AT]) { /* the list ends within an activation */
		if (mine[PYTHON_STATE] & PYTHON_INNER)
			return python_not_pushed(c, mine[PYTHON_OUTER]);
		mine[PYTHON_STATE] = PYTHON_BEGUN;
		return WALK_NATIVE;
	}
	if (!python_plausible(mine[PYTHON_AT]))
		return python_broken(c, FRAME_REASON_ODD);
	if (python_frame(c, p))
		return python_broken(c, FRAME_REASON_UNREADABLE);
	WALK_FENCE();
	if (p->activation == PYTHON_OWNER &&
	    (frame[PYTHON_ENTRY] >> (p->frame_entry & 7) * 8 & 0xff) >= PYTHON_OWNER_LOOP)
		return python_leave(c);
	return python_store(c, p);
}

WALK_RUNTIME python_walk = {.step = python_step};

#ifdef __bpf__

#include "lib/kernel.bpf.h"
#include <bpf/bpf_helpers.h>

/* The agent writes. It sets the flag for memory on demand where the kernel permits it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PYTHON_PROCESSES_MAX);
	__type(key, __u32);
	__type(value, struct python_process);
} python_processes __weak SEC(".maps");

/* Programs with CPython, for stack dumps (excerpt_python.bpf.h). The agent writes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PYTHON_EXES_MAX);
	__type(key, struct exe_key);
	__type(value, struct python_exe);
} python_exes __weak SEC(".maps");

#endif

#endif
