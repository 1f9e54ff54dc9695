/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_VERIFIER_H
#define PODPROF_PROFILE_VERIFIER_H

/* The output of the kernel's verifier: instruction counts of programs, and reasons of a refusal. */

#include <stddef.h>
#include <stdint.h>

struct bpf_object;

/* A loaded program. */
struct verifier_program {
	const char *name; /* borrowed from the object */
	uint32_t insns;	  /* verified instructions, on all paths together */
};

/* The loaded programs of one object, in the object's order. Owns its memory except the names. */
struct verifier {
	struct verifier_program *programs;
	size_t n;
	char *logs; /* a buffer per program, until verifier_done() */
};

/* Request the verifier's log for the programs of @object, between open and load. 0 or -errno. */
int verifier_init(struct verifier *v, struct bpf_object *object);
void verifier_deinit(struct verifier *v);
/* Call after a successful load: reads the logs into @v->programs. */
void verifier_done(struct verifier *v);
/* Call after a refused load: the refused program, borrowed from the object; NULL: the verifier
 * refused none. */
const char *verifier_refused(const struct verifier *v);
/* Call after a refused load: "PROGRAM: the verifier's message"; "": no message. */
void verifier_complaint(const struct verifier *v, char *ret, size_t n);

/* 1234 for a log with "processed 1234 insns"; 0 without such a line. */
uint32_t verifier_insns(const char *log);

#endif
