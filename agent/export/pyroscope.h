/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_PYROSCOPE_H
#define PODPROF_EXPORT_PYROSCOPE_H

/* Grafana Pyroscope as a kind of destination. */

#include "export/destination.h"

extern const struct destination_kind destination_pyroscope;

#endif
