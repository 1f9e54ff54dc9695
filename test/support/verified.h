/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_VERIFIED_H
#define PODPROF_TEST_SUPPORT_VERIFIED_H

/*
 * Instructions of a program that the kernel may verify. Verifying costs start-up time, and kernels
 * have a limit (1,000,000): the programs must stay far below both. PROGRAMS_CLANG is the release of
 * the programs' compiler.
 *
 * Seen on 6.18: 140,108 by clang 14 (oncpu_walk_hotspot), with names of threads 141,169, and by 19
 * 294,211 (oncpu_walk_hotspot). Off-CPU: below 200,000, and 294,211 (offcpu_walk_hotspot). Without
 * bpf_loop(), on 5.10: 324,545 (oncpu_part_hotspot), and 480,299.
 */
#if defined(PROGRAMS_CLANG) && PROGRAMS_CLANG < 15
#define VERIFIED_INSNS_MAX  180000
#define VERIFIED_OFFCPU_MAX 200000
#define VERIFIED_PARTS_MAX  380000
#else
#define VERIFIED_INSNS_MAX  340000
#define VERIFIED_OFFCPU_MAX 340000
#define VERIFIED_PARTS_MAX  560000
#endif

#endif
