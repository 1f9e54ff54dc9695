// SPDX-License-Identifier: Apache-2.0
#include "symbolize/symname.h"

#include <string.h>

/* A version is a word of these letters; a name with an '@' for another reason is unchanged. */
static const char version_letters[] = "0123456789abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ._-";

void symname_cut_version(char *name)
{
	char *at = strchr(name, '@'), *version;

	if (!at || at == name)
		return;
	version = at + (at[1] == '@' ? 2 : 1);
	if (*version && version[strspn(version, version_letters)] == '\0')
		*at = '\0';
}

bool symname_is_mark(const char *name)
{
	if (name[0] == '$')
		return name[1] && strchr("xdat", name[1]) && (!name[2] || name[2] == '.');
	return name[0] == '.' && name[1] == 'L';
}

bool symname_is_better(const char *a, const char *b)
{
	size_t bars_a = strspn(a, "_"), bars_b = strspn(b, "_");
	size_t n_a = strlen(a), n_b = strlen(b);

	if (bars_a != bars_b)
		return bars_a < bars_b;
	if (n_a != n_b)
		return n_a < n_b;
	return strcmp(a, b) < 0;
}
