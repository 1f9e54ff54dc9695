/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_SETTINGS_BPF_H
#define PODPROF_BPF_LIB_SETTINGS_BPF_H

#include "lib/kernel.bpf.h"
#include <bpf/bpf_helpers.h>
#include "shared/settings.h"

/* The same for all programs: one variable, however many objects are linked. */
const volatile struct settings cfg __weak = {};

#endif
