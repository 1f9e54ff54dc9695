/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_DESTINATION_H
#define PODPROF_EXPORT_DESTINATION_H

/* Where profiles go, as the user wrote it: "pyroscope=URL[,key=value...]". */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/secret.h"

/**
 * struct destination_kind - what podprof knows about one kind of backend
 * @path:       appended to the user's URL
 * @max_age_ns: the backend refuses profiles that began longer ago
 * @deltas:     it wants alloc values of one window (profile.pprof_delta)
 */
struct destination_kind {
	const char *name;
	const char *path;
	uint64_t max_age_ns;
	bool deltas;
};

struct destination {
	const struct destination_kind *kind;
	char *url;  /* with the kind's path */
	char *host; /* of the URL, with the port if it has one: for people and metric labels */
	char *user; /* basic authentication */
	struct secret password;
	struct secret bearer;
	struct secret tenant;
	char *ca_file;
};

/**
 * destination_new() - read a --destination
 * @ret_error: a sentence for the user when 1 is returned; the caller's to free
 *
 * Looks at the text and the environment only; files are read when they are needed.
 *
 * Return: 0; 1 when @spec is wrong; -ENOMEM.
 */
int destination_new(const char *spec, struct destination **ret, char **ret_error);
void destination_free(struct destination *d);

/* For --help, below the heading "Destinations:". */
extern const char destination_help[];

#endif
