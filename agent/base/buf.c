// SPDX-License-Identifier: Apache-2.0
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf)BUF_INIT(max);
}

void buf_deinit(struct buf *b)
{
	free(b->data);
	*b = (struct buf)BUF_INIT(b->max);
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	if (b->data)
		b->data[0] = '\0';
}

char *buf_take(struct buf *b)
{
	char *data = b->data;

	*b = (struct buf)BUF_INIT(b->max);
	return data;
}

/* Make room for @n more bytes and the NUL behind the last. */
static int buf_grow(struct buf *b, size_t n)
{
	/* the NUL behind the largest contents must still have an address */
	size_t max = b->max < SIZE_MAX ? b->max : SIZE_MAX - 1;
	size_t need, cap;
	char *data;

	if (n > max || b->len > max - n)
		return BUF_FULL;
	need = b->len + n + 1;
	if (need <= b->cap)
		return 0;
	cap = b->cap < 64 ? 64 : b->cap;
	while (cap < need)
		cap = cap > max / 2 ? max + 1 : cap * 2;
	if (cap > max + 1)
		cap = max + 1;
	data = realloc(b->data, cap);
	if (!data)
		return -ENOMEM;
	b->data = data;
	b->cap = cap;
	return 0;
}

int buf_reserve(struct buf *b, size_t n, char **ret)
{
	int r = buf_grow(b, n);

	if (r)
		return r;
	*ret = b->data + b->len;
	return 0;
}

int buf_append(struct buf *b, const void *data, size_t n)
{
	char *to;
	int r = buf_reserve(b, n, &to);

	if (r)
		return r;
	if (n)
		memcpy(to, data, n);
	b->len += n;
	b->data[b->len] = '\0';
	return 0;
}

int buf_puts(struct buf *b, const char *s)
{
	return buf_append(b, s, strlen(s));
}

int buf_putc(struct buf *b, char c)
{
	return buf_append(b, &c, 1);
}

int buf_printf(struct buf *b, const char *format, ...)
{
	va_list args;
	char *to;
	int n, r;

	va_start(args, format);
	n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (n < 0)
		return -errno;
	r = buf_reserve(b, (size_t)n, &to);
	if (r)
		return r;
	va_start(args, format);
	vsnprintf(to, (size_t)n + 1, format, args);
	va_end(args);
	b->len += (size_t)n;
	return 0;
}
