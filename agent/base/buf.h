/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_BUF_H
#define PODPROF_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct buf - growable bytes with a mandatory ceiling
 * @data: the bytes; NUL-terminated behind @len after the first append, NULL before
 * @len:  bytes in use
 * @cap:  bytes allocated
 * @max:  ceiling for @len
 *
 * Owns @data. Appending either succeeds completely or changes nothing.
 */
struct buf {
	char *data;
	size_t len;
	size_t cap;
	size_t max;
};

enum buf_outcome {
	BUF_OK = 0,
	BUF_FULL, /* the ceiling would be exceeded */
};

#define BUF_INIT(ceiling)        \
	{                        \
		.max = (ceiling) \
	}

void buf_init(struct buf *b, size_t max);
void buf_deinit(struct buf *b);
/* Forget the contents, keep the memory. */
void buf_reset(struct buf *b);
/* Returns the owned bytes (NULL if none were ever appended) and leaves @b empty. */
char *buf_take(struct buf *b);

/* Each: 0, BUF_FULL, or -ENOMEM. */
int buf_append(struct buf *b, const void *data, size_t n) __attribute__((warn_unused_result));
int buf_puts(struct buf *b, const char *s) __attribute__((warn_unused_result));
int buf_putc(struct buf *b, char c) __attribute__((warn_unused_result));
int buf_printf(struct buf *b, const char *format, ...)
	__attribute__((format(printf, 2, 3), warn_unused_result));

/*
 * Reserve @n more bytes for a reader that writes in place. The caller fills *@ret and adds the
 * number of bytes, at most @n, to @b->len. Returns as buf_append().
 */
int buf_reserve(struct buf *b, size_t n, char **ret) __attribute__((warn_unused_result));

#endif
