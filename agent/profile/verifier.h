/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_VERIFIER_H
#define PODPROF_PROFILE_VERIFIER_H

/* The output of the kernel's verifier: instruction counts of programs, and reasons of a refusal. */

#include <stddef.h>
#include <stdint.h>

struct bpf_object;

/* Bytes of a program's name: "offcpu_walk_hotspot". Reached: cut. */
#define VERIFIER_NAME_MAX 32

/* A loaded program. */
struct verifier_program {
	char name[VERIFIER_NAME_MAX];
	uint32_t insns; /* verified instructions, on all paths together */
};

/* The loaded programs of one object, in the object's order. Owns its memory. */
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
/* Call after a refused load: "PROGRAM: the verifier's message"; "": no message. */
void verifier_complaint(const struct verifier *v, char *ret, size_t n);

/* 1234 for a log with "processed 1234 insns"; 0 without such a line. */
uint32_t verifier_insns(const char *log);

#endif
