/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_SECRET_H
#define PODPROF_BASE_SECRET_H

/* Passwords and tokens, read anew each time they are needed: the files of a Kubernetes secret and
 * of a service account are replaced while we run. */

#include <stdbool.h>

/* A value that is kept out of the command line: in a file that may be replaced any time, or in the
 * environment; the tenant may also be given as it is. At most one is set. */
struct secret {
	char *value;
	char *file;
	char *env;
};

bool secret_is_set(const struct secret *secret);
/* Set in two ways. */
bool secret_is_ambiguous(const struct secret *secret);
/* Frees where it is, not what it is. */
void secret_deinit(struct secret *secret);

enum secret_outcome {
	SECRET_OK = 0,
	SECRET_UNREADABLE, /* no such file, no right to read it, not a file */
	SECRET_MALFORMED,  /* empty, longer than SECRET_MAX, or not printable ASCII */
};

/* Longer than any token seen (a JSON web token of a cloud provider is 2 to 4 KiB). Beyond it is no
 * secret but a wrong file: SECRET_MALFORMED. Reached: wrong usage. */
#define SECRET_MAX 16384

/*
 * The value as of now, without the line break at its end; the caller's to free with
 * secret_forget(). NULL when the secret is not set. 0, a secret_outcome or -ENOMEM.
 */
int secret_read(const struct secret *secret, char **ret);
/* Overwrites and frees. NULL is fine. */
void secret_forget(char *value);

#endif
