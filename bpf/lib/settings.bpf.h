/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_SETTINGS_BPF_H
#define PODPROF_BPF_LIB_SETTINGS_BPF_H

#include "lib/kernel.bpf.h"
#include <bpf/bpf_helpers.h>
#include "shared/settings.h"

/* Shared by all programs: a single variable for any number of linked objects. */
const volatile struct settings cfg __weak = {};

#endif
