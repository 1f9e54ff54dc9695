/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_COROOT_H
#define PODPROF_EXPORT_COROOT_H

/* Coroot as a kind of destination. */

#include "export/destination.h"

extern const struct destination_kind destination_coroot;

#endif
