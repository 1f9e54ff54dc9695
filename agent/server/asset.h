/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_ASSET_H
#define PODPROF_SERVER_ASSET_H

/* The files of assets/, made part of the program by assets/embed.sh. */

#include <stddef.h>

struct asset {
	const char *name;
	const char *content_type;
	const char *etag; /* changes with the contents */
	const unsigned char *data;
	size_t len;
};

extern const struct asset assets[];
extern const size_t n_assets;

#endif
