/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_STORAGE_H
#define PODPROF_METADATA_STORAGE_H

/* Where the containers/storage library, which Podman and CRI-O keep containers with, has them. */

#include "metadata/statefile.h"

/* @folder: a directory of containers, below the host's root. STATEFILE_GONE to be called with the
 * next; anything else ends the search. */
typedef int (*storage_fn)(void *ctx, const struct statefiles *files, const char *folder);

/* Each directory that there may be. STATEFILE_GONE, or what ended the search. */
int storage_search(const struct statefiles *files, storage_fn fn, void *ctx);

#endif
