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
 * and 16 hex digits at the end; OCaml, asmcomp/compilenv.ml. Left out:
 *
 *	- D and Ada: libiberty's readers end the process if memory is short, and an Ada name looks
 *	  like a name of C.
 *	- Swift and Haskell: libiberty has neither.
 */
#include "symbolize/demangle.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "base/cleanup.h"
#include "symbolize/rustname.h"

/* Bytes of a mangled name. libiberty has the same limit, as a limit on the depth
 * (DEMANGLE_RECURSION_LIMIT, two for each byte). None of 36,692 functions of LLVM 15 has a longer
 * name. Reached: shown as it is. */
#define DEMANGLE_MANGLED_MAX	1024
/* Back references of a C++ name with a parameter pack, or of a Rust name with punycode: 2^20 visits
 * are 10 ms. Three of 36,692 functions of LLVM 15 have more. Reached: shown as it is. */
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

	for (size_t i = 0; i < array_size(packs); i++)
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

/* Rust's legacy names have a hash, "17h" and 16 hex digits, and no references. */
static bool demangle_cxx(const char *name, char to[DEMANGLE_NAME_MAX])
{
	return (strstr(name, "17h") && run(rust_demangle_callback, name, false, to)) ||
	       (cxx_is_reasonable(name) && run(cplus_demangle_v3_callback, name, true, to));
}

/* The byte with the two hex digits at @digits. */
static bool hex_byte(const char *digits, uint8_t *ret)
{
	uint8_t value = 0;

	for (int i = 0; i < 2; i++) {
		const char c = digits[i];

		if (c >= '0' && c <= '9')
			value = (uint8_t)(value * 16 + (c - '0'));
		else if (c >= 'a' && c <= 'f')
			value = (uint8_t)(value * 16 + (c - 'a' + 10));
		else
			return false;
	}
	*ret = value;
	return true;
}

/* Modules and the function are apart by "__". Other characters are '$' and two hex digits. */
static bool demangle_ocaml(const char *name, char to[DEMANGLE_NAME_MAX])
{
	const char *in = name + sizeof("caml") - 1;
	bool is_qualified = false;
	size_t n = 0;

	if (*in < 'A' || *in > 'Z')
		return false;
	while (*in) {
		char c = *in++;

		if (c == '_' && *in == '_' && in[1]) {
			in++;
			c = '.';
		} else if (c == '$') {
			uint8_t byte;

			if (!hex_byte(in, &byte) || byte <= ' ' || byte > '~')
				return false;
			in += 2;
			c = (char)byte;
		}
		is_qualified |= c == '.';
		to[n++] = c;
	}
	to[n] = '\0';
	return is_qualified;
}

/* ---------------------------------------------------------------- clones */

static bool is_clone_word(const char *word, size_t n, bool has_number)
{
	static const char *const words[] = {"cold", "localalias", "constprop", "isra",
					    "llvm", "lto_priv",	  "part"};
	/* the first two have a number sometimes, the others always */
	const size_t n_words = has_number ? array_size(words) : 2;

	for (size_t i = 0; i < n_words; i++)
		if (strlen(words[i]) == n && memcmp(words[i], word, n) == 0)
			return true;
	return false;
}

/* Bytes of @name before ".WORD" or ".WORD.NUMBER", @n without such an end. */
static size_t cut_clone(const char *name, size_t n)
{
	size_t end = n, begin;

	while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9')
		end--;
	end = end < n && end > 0 && name[end - 1] == '.' ? end - 1 : n;
	for (begin = end; begin > 0 && name[begin - 1] != '.';)
		begin--;
	return begin > 1 && is_clone_word(name + begin, end - begin, end < n) ? begin - 1 : n;
}

/* The compilers' ends of a function's name, as in "f.constprop.0.cold". */
static size_t cut_clones(const char *name, size_t length)
{
	size_t n, cut = length;

	if (!memchr(name, '.', length))
		return length;

	do {
		n = cut;
		cut = cut_clone(name, n);
	} while (cut < n);
	return n;
}

static bool demangle_any(const char *name, char to[DEMANGLE_NAME_MAX])
{
	if (strncmp(name, "_R", 2) == 0)
		return demangle_rust(name, to);
	if (strncmp(name, "_Z", 2) == 0)
		return demangle_cxx(name, to);
	return strncmp(name, "caml", 4) == 0 && demangle_ocaml(name, to);
}

bool demangle(const char *name, char ret[DEMANGLE_NAME_MAX])
{
	char plain[DEMANGLE_MANGLED_MAX + 1], readable[DEMANGLE_NAME_MAX];
	const size_t length = strnlen(name, DEMANGLE_MANGLED_MAX + 1);
	size_t n;

	if (length > DEMANGLE_MANGLED_MAX)
		return false;
	n = cut_clones(name, length);
	if (n < length) {
		memcpy(plain, name, n);
		plain[n] = '\0';
		name = plain;
	}
	if (demangle_any(name, readable))
		memcpy(ret, readable, strlen(readable) + 1);
	else if (n < length)
		memcpy(ret, plain, n + 1);
	else
		return false;
	return true;
}
