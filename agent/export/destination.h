/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_DESTINATION_H
#define PODPROF_EXPORT_DESTINATION_H

/* Where profiles go, as the user wrote it: "pyroscope=URL[,key=value...]". */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* A value that is kept out of the command line: in a file that may be replaced any time, or in the
 * environment; the tenant may also be given as it is. At most one is set. */
struct secret {
	char *value;
	char *file;
	char *env;
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

enum secret_outcome {
	SECRET_OK = 0,
	SECRET_UNREADABLE, /* no such file, no right to read it, not a file */
	SECRET_MALFORMED,  /* empty, longer than SECRET_MAX, or not printable ASCII */
};

/* Longer than any token seen (a JSON web token of a cloud provider is 2 to 4 KiB). Beyond it is no
 * secret but a wrong file: SECRET_MALFORMED. */
#define SECRET_MAX 16384

/*
 * The value as of now, without the line break at its end; the caller's to free with
 * secret_forget(). NULL when the secret is not set. 0, a secret_outcome or -ENOMEM.
 */
int secret_read(const struct secret *secret, char **ret);
/* Overwrites and frees. NULL is fine. */
void secret_forget(char *value);

#endif
