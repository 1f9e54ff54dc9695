/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_REGS_ARCH_BPF_H
#define PODPROF_BPF_LIB_REGS_ARCH_BPF_H

/* The architecture's registers. Only the files included here name registers. The host compiles the
 * same text; a test may define __TARGET_ARCH_arm64 to get the other file. */

#define REGS_INLINE static inline __attribute__((always_inline))

#if !defined(__TARGET_ARCH_x86) && !defined(__TARGET_ARCH_arm64)
#if defined(__x86_64__)
#define __TARGET_ARCH_x86
#elif defined(__aarch64__)
#define __TARGET_ARCH_arm64
#endif
#endif

#if defined(__TARGET_ARCH_x86)
#include "lib/regs_x86.bpf.h"
#elif defined(__TARGET_ARCH_arm64)
#include "lib/regs_arm64.bpf.h"
#else
#error "no registers for this architecture: write lib/regs_ARCH.bpf.h"
#endif

#endif
