/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_PARCA_H
#define PODPROF_EXPORT_PARCA_H

/* Parca as a kind of destination. */

#include "export/destination.h"

extern const struct destination_kind destination_parca;

/* The same server for upload.h. */
extern const struct destination_kind destination_parca_files;

#endif
