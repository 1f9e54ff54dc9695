// SPDX-License-Identifier: Apache-2.0
#include "export/base64.h"

#include "base/buf.h"

int base64_put(struct buf *to, const void *data, size_t n)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = data;
	char *at;
	int r = buf_reserve(to, base64_len(n), &at);

	if (r)
		return r;
	for (size_t i = 0; i < n; i += 3, at += 4) {
		const unsigned int left = n - i < 3 ? (unsigned int)(n - i) : 3;
		const unsigned int bits = (unsigned int)p[i] << 16 |
					  (left > 1 ? (unsigned int)p[i + 1] << 8 : 0) |
					  (left > 2 ? p[i + 2] : 0);

		at[0] = digits[bits >> 18];
		at[1] = digits[bits >> 12 & 63];
		at[2] = left > 1 ? digits[bits >> 6 & 63] : '=';
		at[3] = left > 2 ? digits[bits & 63] : '=';
	}
	to->len += base64_len(n);
	return 0;
}
