/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_STORE_NAME_H
#define PODPROF_EXPORT_STORE_NAME_H

/* Names of the store's folders and files: made of what containers call themselves, and read back
 * from a directory. Only letters, digits, '.', '_' and '-' come out, no dot in front. */

#include <stdbool.h>
#include <stdint.h>

#include "base/labels.h"
#include "export/profile.h"

/* File systems stop at 255. Four parts of STORE_NAME_PART_MAX, separators and the hash. Reached:
 * parts are cut, a hash tells them apart. */
#define STORE_NAME_MAX	    224
/* Bytes of one label in a folder's name. Reached: cut. */
#define STORE_NAME_PART_MAX 48

/* "shop_checkout_checkout-5d7c_app-1a2b3c4d": namespace, service_name, pod and container, as far as
 * they are there and differ, and a hash of all labels. @attempt 0, 1, ...: others with the same
 * labels, for when the hash is taken by another label set. */
void store_name_folder(const struct labels *labels, uint32_t attempt, char ret[STORE_NAME_MAX]);
/* Whether it could have come from store_name_folder(). */
bool store_name_is_folder(const char *name);

/* What a file's name says; the start in whole milliseconds, the duration as below. */
struct store_name {
	enum profile_kind kind;
	uint64_t start_ns;
	uint64_t duration_ns;
};

/* The duration as names have it: to the second, below one to the millisecond. A window of 59.993 s
 * is one of 60 to whoever lists them; the profile itself has the exact time. */
uint64_t store_name_duration(uint64_t duration_ns);
/* "20261121T113400.000Z_60s_cpu.pb.gz" */
void store_name_file(const struct store_name *name, char ret[STORE_NAME_MAX]);
/* False if it is not exactly what store_name_file() makes. */
bool store_name_parse(const char *file, struct store_name *ret);

/* The same for the same folder and file; never 0. */
uint64_t store_name_id(const char *folder, const char *file);

#endif
