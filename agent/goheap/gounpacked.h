/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GOUNPACKED_H
#define PODPROF_GOHEAP_GOUNPACKED_H

/*
 * A program that lies in a process's memory and in no file: what a packer's stub has unpacked.
 */

#include <stdint.h>

#include "discovery/pid.h"

struct elffile;
struct goruntime;
struct image;
struct root;

/**
 * gounpacked_open() - the memory around a process's anonymous code, as an ELF file
 * @machine: EM_* of its executable
 *
 * Whoever asks has reason to think that the executable is a packed one: JIT compilers have such
 * code too.
 *
 * Return: GORUNTIME_OK; _NO_RUNTIME if there is no such code; _GONE, _DENIED, _TOO_LARGE; -errno.
 */
int gounpacked_open(const struct root *proc, const struct pid_id *id, uint16_t machine,
		    struct elffile **ret);

/* An image by which @rt's functions are named, while its process lives. As gounpacked_open(). */
int gounpacked_image(const struct root *proc, const struct pid_id *id, const struct goruntime *rt,
		     struct image **ret);

#endif
