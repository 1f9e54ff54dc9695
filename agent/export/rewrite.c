// SPDX-License-Identifier: Apache-2.0
#include "export/rewrite.h"

#include <errno.h>

#include "export/destination.h"
#include "pprof/projection.h"
#include "pprof/reader.h"

static int result(int r)
{
	return r > 0 ? -EBADMSG : r;
}

int rewrite_read(const struct destination_profile *p, struct reader **ret)
{
	const char *why;

	return result(reader_new(p->pprof, p->pprof_len, REWRITE_BYTES_MAX, ret, &why));
}

int rewrite_project(const struct pprof_tables *t, const struct projection *projection,
		    struct buf *ret)
{
	return result(projection_encode(t, projection, ret));
}
