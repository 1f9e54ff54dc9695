/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_VERIFIER_H
#define PODPROF_PROFILE_VERIFIER_H

/* What the kernel's verifier says of the programs that it is given: how much it had to look at, and
 * what it refuses one for. */

#include <stddef.h>
#include <stdint.h>

struct bpf_object;

/* A program as the kernel took it. */
struct verifier_program {
	const char *name; /* the object's */
	uint32_t insns;	  /* instructions looked at, on all paths together */
};

/* Those of one object that are loaded, in its order. Owns what it points to, the names excepted. */
struct verifier {
	struct verifier_program *programs;
	size_t n;
	char *logs; /* a piece for each, until verifier_done() */
};

/* Have the verifier tell about the programs of @object, which is open and not loaded yet. 0 or
 * -errno. */
int verifier_init(struct verifier *v, struct bpf_object *object);
void verifier_deinit(struct verifier *v);
/* The object has been loaded: fill in the programs. */
void verifier_done(struct verifier *v);
/* It was refused: "PROGRAM: what the verifier does not like", "" if it said nothing. */
void verifier_complaint(const struct verifier *v, char *ret, size_t n);

/* 1234 out of a log with "processed 1234 insns"; 0 if that is not in it. */
uint32_t verifier_insns(const char *log);

#endif
