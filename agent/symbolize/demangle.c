// SPDX-License-Identifier: Apache-2.0
/*
 * libiberty demangles; this file limits the work. Names come from files by unknown authors, and a
 * mangled name is a small program: a back reference repeats earlier text, so that n bytes can stand
 * for 2^n. The limits:
 *
 *	- The length of a mangled name (DEMANGLE_MANGLED_MAX).
 *	- The length of the readable name. libiberty delivers the output in pieces, and above the
 *	  limit the callback leaves libiberty with longjmp(). With callbacks libiberty allocates
 *	  nothing (the working space is on the stack), so the jump leaks nothing.
 *	- Names that make libiberty work without output are refused in advance. In C++ this is the
 *	  search for a parameter pack ("Dp", "sp", "sZ", "sP"), which visits all repetitions of the
 *	  pattern (30 nested pairs take 25 s). In Rust the form is a number of lifetimes in a hidden
 *	  part; rustname_check() refuses such names, and circles.
 *	- libiberty allocates only for identifiers in punycode; the jump never leaves such code.
 *
 * Without another limit, names may have DEMANGLE_REFERENCES_MAX back references.
 *
 * Schemes: Itanium C++ ABI section 5.1; Rust RFC 2603, and the legacy scheme, C++-like with "17h"
 * and 16 hex digits at the end.
 */
#include "symbolize/demangle.h"

#include <setjmp.h>
#include <stddef.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "symbolize/rustname.h"

/* Bytes of a mangled name. libiberty has the same limit, as a limit on the depth
 * (DEMANGLE_RECURSION_LIMIT, two for each byte). None of 36,692 functions of LLVM 15 has a longer
 * name. Reached: shown as it is. */
#define DEMANGLE_MANGLED_MAX	1024
/* Back references of a name: 2^20 visits are 10 ms. Three of those 36,692 names have more of them
 * and a pack. Reached: shown as it is. */
#define DEMANGLE_REFERENCES_MAX 20

struct output {
	char *to;
	size_t n;
	bool full;
	bool may_jump;
	jmp_buf out;
};

static void take_piece(const char *piece, size_t n, void *opaque)
{
	struct output *out = opaque;
	size_t room = DEMANGLE_NAME_MAX - 1 - out->n;

	if (n > room) {
		n = room;
		out->full = true;
	}
	if (n)
		memcpy(out->to + out->n, piece, n);
	out->n += n;
	if (out->full && out->may_jump)
		longjmp(out->out, 1);
}

typedef int (*demangle_fn)(const char *mangled, int options, demangle_callbackref callback,
			   void *opaque);

/* Into @to, NUL-terminated. */
static bool run(demangle_fn fn, const char *name, bool may_jump, char to[DEMANGLE_NAME_MAX])
{
	struct output out = {.to = to, .may_jump = may_jump};

	if (!setjmp(out.out) && !fn(name, DMGL_NO_OPTS, take_piece, &out))
		return false;
	if (!out.n)
		return false;
	to[out.n] = '\0';
	if (out.full)
		memcpy(to + DEMANGLE_NAME_MAX - 4, "...", 4);
	return true;
}

static size_t count_substitutions(const char *name)
{
	size_t n = 0;

	for (const char *s = strchr(name, 'S'); s; s = strchr(s + 1, 'S'))
		n += s[1 + strspn(s + 1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")] == '_';
	return n;
}

static bool cxx_is_reasonable(const char *name)
{
	static const char *const packs[] = {"Dp", "sp", "sZ", "sP"};

	for (size_t i = 0; i < sizeof(packs) / sizeof(packs[0]); i++)
		if (strstr(name, packs[i]))
			return count_substitutions(name) <= DEMANGLE_REFERENCES_MAX;
	return true;
}

static bool demangle_rust(const char *name, char to[DEMANGLE_NAME_MAX])
{
	struct rustname found;

	if (!rustname_check(name, &found) ||
	    (found.punycode && found.n_backrefs > DEMANGLE_REFERENCES_MAX))
		return false;
	return run(rust_demangle_callback, name, !found.punycode, to);
}

/* Rust's legacy names have no references. */
static bool demangle_cxx(const char *name, char to[DEMANGLE_NAME_MAX])
{
	return run(rust_demangle_callback, name, false, to) ||
	       (cxx_is_reasonable(name) && run(cplus_demangle_v3_callback, name, true, to));
}

bool demangle(const char *name, char ret[DEMANGLE_NAME_MAX])
{
	char readable[DEMANGLE_NAME_MAX];
	bool done = false;

	if (name[0] != '_' || strnlen(name, DEMANGLE_MANGLED_MAX + 1) > DEMANGLE_MANGLED_MAX)
		return false;
	if (name[1] == 'R')
		done = demangle_rust(name, readable);
	else if (name[1] == 'Z')
		done = demangle_cxx(name, readable);
	if (done)
		memcpy(ret, readable, strlen(readable) + 1);
	return done;
}
