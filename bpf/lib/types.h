/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_TYPES_H
#define PODPROF_BPF_LIB_TYPES_H

/* __u32 and friends for headers compiled on both sides. */

#ifdef __bpf__
#include "lib/kernel.bpf.h"
#else
#include <linux/types.h>
#endif

#endif
