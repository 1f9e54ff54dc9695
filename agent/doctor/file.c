// SPDX-License-Identifier: Apache-2.0
#include "doctor/file.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "base/strview.h"
#include "doctor/finding.h"

#define FILE_BYTES 4096

void file_line(const struct root *root, const char *path, char *ret, size_t n)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(FILE_BYTES);
	struct strview all, line;

	*ret = '\0';
	if (root_read(root, path, &b) || !b.data)
		return;
	all = strview_of_bytes(b.data, b.len);
	if (strview_line(&all, &line))
		finding_text(ret, n, line);
}

bool file_number(const struct root *root, const char *path, uint64_t *ret)
{
	char line[32];
	struct strview t;

	file_line(root, path, line, sizeof(line));
	t = strview_of(line);
	if (strview_char(&t, '-')) {
		*ret = 0;
		return !strview_empty(&t);
	}
	return strview_only_u64(t, 10, ret);
}
