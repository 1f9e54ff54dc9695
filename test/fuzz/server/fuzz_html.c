// SPDX-License-Identifier: Apache-2.0
/* Names and labels of containers on a page: they stay text, in an attribute too. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/strview.h"
#include "base/utf8.h"
#include "server/html.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(1u << 20);
	char *text = strview_dup(strview_of_bytes((const char *)data, size));
	struct html h = {.b = &out};

	if (!text)
		return 0;
	html_text(&h, text);
	free(text);
	if (!out.data)
		return 0;
	if (strpbrk(out.data, "<>\"'\n\r\t\x1b") || !utf8_is_valid(out.data, out.len) ||
	    strlen(out.data) != out.len)
		abort();
	return 0;
}
