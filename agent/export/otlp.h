/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_OTLP_H
#define PODPROF_EXPORT_OTLP_H

/* OTLP profiles over HTTP as a kind of destination. */

#include "export/destination.h"

extern const struct destination_kind destination_otlp;

#endif
