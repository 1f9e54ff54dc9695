/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_SECRET_H
#define PODPROF_BASE_SECRET_H

/* Passwords and tokens, read again for each use, because Kubernetes replaces the files of secrets
 * and service accounts at run time. */

#include <stdbool.h>

/* A value that is not on the command line: in a file, which may be replaced at any time, or in the
 * environment. The tenant may also be given directly. At most one member is set. */
struct secret {
	char *value;
	char *file;
	char *env;
};

bool secret_is_set(const struct secret *secret);
/* Set in two ways. */
bool secret_is_ambiguous(const struct secret *secret);
/* Frees the members, but no result of secret_read(). */
void secret_deinit(struct secret *secret);

enum secret_outcome {
	SECRET_OK = 0,
	SECRET_UNREADABLE, /* no such file, no permission, not a file */
	SECRET_MALFORMED,  /* empty, longer than SECRET_MAX, or not printable ASCII */
};

/* Bytes of a secret, more than any token seen (a JSON web token of a cloud provider is 2 to 4 KiB).
 * A larger file is a wrong file: SECRET_MALFORMED. Reached: wrong usage. */
#define SECRET_MAX 16384

/*
 * Reads the current value, without its final line break. The caller frees the value with
 * secret_forget(). NULL if the secret is not set. 0, a secret_outcome or -ENOMEM.
 */
int secret_read(const struct secret *secret, char **ret);
/* Overwrites and frees. NULL is fine. */
void secret_forget(char *value);

#endif
