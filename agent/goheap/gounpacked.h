/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GOUNPACKED_H
#define PODPROF_GOHEAP_GOUNPACKED_H

/*
 * A program that exists only in a process's memory, because a packer's stub unpacked it there.
 */

#include <stdint.h>

#include "discovery/pid.h"

struct elffile;
struct goruntime;
struct image;
struct root;

/**
 * gounpacked_open() - open the memory around a process's anonymous code as an ELF file
 * @machine: EM_* of its executable
 *
 * The caller has a reason to take the executable for a packed one: JIT compilers make anonymous
 * code, too.
 *
 * Return: GORUNTIME_OK; _NO_RUNTIME if there is no such code; _GONE, _DENIED, _TOO_LARGE; -errno.
 */
int gounpacked_open(const struct root *proc, const struct pid_id *id, uint16_t machine,
		    struct elffile **ret);

/* An image that names @rt's functions while the process lives. Returns as gounpacked_open(). */
int gounpacked_image(const struct root *proc, const struct pid_id *id, const struct goruntime *rt,
		     struct image **ret);

#endif
