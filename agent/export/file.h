/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_FILE_H
#define PODPROF_EXPORT_FILE_H

/* A folder as a kind of destination: a store of its own (export/store.h), for files on
 * their way to elsewhere. */

#include "export/destination.h"

extern const struct destination_kind destination_file;

#endif
