/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_STORE_NAME_H
#define PODPROF_EXPORT_STORE_NAME_H

/* Names of the store's folders and files: derived from the names of containers, and parsed from a
 * directory. Names contain only letters, digits, '.', '_' and '-', and do not begin with a dot. */

#include <stdbool.h>
#include <stdint.h>

#include "base/labels.h"
#include "export/profile.h"

/* Bytes of a name: four parts of STORE_NAME_PART_MAX, separators and the hash; file systems allow
 * 255. Reached: parts are cut, the hash distinguishes the names. */
#define STORE_NAME_MAX	    224
/* Bytes of one label in a folder's name. Reached: cut. */
#define STORE_NAME_PART_MAX 48

/* "shop_checkout_checkout-5d7c_app-1a2b3c4d": namespace, service_name, pod and container, without
 * missing and repeated parts, and a hash of all labels. @attempt 0, 1, ...: alternative names for
 * the same labels, in case another label set has the same hash. */
void store_name_folder(const struct labels *labels, uint32_t attempt, char ret[STORE_NAME_MAX]);
/* Whether store_name_folder() could have made @name. */
bool store_name_is_folder(const char *name);

/* The contents of a file's name; the start in whole milliseconds, the duration as below. */
struct store_name {
	enum profile_kind kind;
	uint64_t start_ns;
	uint64_t duration_ns;
};

/* The duration as in names: rounded to the second, below one second to the millisecond. A window of
 * 59.993 s appears as 60 s in a listing; the profile itself has the exact time. */
uint64_t store_name_duration(uint64_t duration_ns);
/* "20261121T113400.000Z_60s_cpu.pb.gz" */
void store_name_file(const struct store_name *name, char ret[STORE_NAME_MAX]);
/* False unless store_name_file() makes exactly this name. */
bool store_name_parse(const char *file, struct store_name *ret);

/* The same for the same folder and file; never 0. */
uint64_t store_name_id(const char *folder, const char *file);

#endif
