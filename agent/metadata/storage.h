/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_STORAGE_H
#define PODPROF_METADATA_STORAGE_H

/* Finds the directories of the containers/storage library, in which Podman and CRI-O keep their
 * containers. */

#include "metadata/statefile.h"

/* @folder: a directory of containers, below the host's root. STATEFILE_GONE continues with the next
 *          directory; any other result ends the search. */
typedef int (*storage_fn)(void *ctx, const struct statefiles *files, const char *folder);

/* Calls @fn for each possible directory. STATEFILE_GONE, the result of @fn that ended the search,
 * or the outcome of reading the settings. */
int storage_search(const struct statefiles *files, storage_fn fn, void *ctx);

#endif
