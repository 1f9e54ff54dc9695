/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_KSYMS_H
#define PODPROF_SYMBOLIZE_KSYMS_H

/* The functions of the running kernel, of its modules and of its BPF programs, from
 * /proc/kallsyms. */

#include <stddef.h>
#include <stdint.h>

struct ksyms;
struct root;

enum ksyms_outcome {
	KSYMS_OK = 0,
	KSYMS_ABSENT, /* the file is missing or empty */
	KSYMS_DENIED,
	KSYMS_HIDDEN,	 /* all addresses are 0: kernel.kptr_restrict, and no CAP_SYSLOG */
	KSYMS_NOT_FOUND, /* no function has this address */
	KSYMS_OUTCOME_MAX,
};

/* 0, ABSENT, DENIED, HIDDEN, -errno. */
int ksyms_load(const struct root *proc, struct ksyms **ret);
void ksyms_free(struct ksyms *k);
size_t ksyms_n(const struct ksyms *k);
size_t ksyms_bytes(const struct ksyms *k);
/* The first address of the kernel's code (_stext); 0: not in the list. */
uint64_t ksyms_text_start(const struct ksyms *k);

/* Bytes with the NUL: the kernel's own limit is 512 for a name and 56 for a module. Reached: cut.
 */
#define KSYMS_NAME_MAX 640

struct ksyms_name {
	char text[KSYMS_NAME_MAX];
};

/* "name", or "name [module]". 0 or KSYMS_NOT_FOUND. */
int ksyms_find(const struct ksyms *k, uint64_t pc, struct ksyms_name *ret_name,
	       uint64_t *ret_start);

const char *ksyms_outcome_name(int outcome);

#endif
