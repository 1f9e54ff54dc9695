// SPDX-License-Identifier: Apache-2.0
/* The C library has no instrumentation, so the linker leads its calls here (--wrap). */
#include "complexity/count.h"

#include <stddef.h>
#include <string.h>
#include <zlib.h>

static uint64_t total;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
	total++;
}

uint64_t count_now(void)
{
	return total;
}

static void bytes(size_t n)
{
	total += 1 + n / 16;
}

void *__real_memcpy(void *to, const void *from, size_t n);
void *__wrap_memcpy(void *to, const void *from, size_t n);
void *__wrap_memcpy(void *to, const void *from, size_t n)
{
	bytes(n);
	return __real_memcpy(to, from, n);
}

void *__real_memset(void *to, int c, size_t n);
void *__wrap_memset(void *to, int c, size_t n);
void *__wrap_memset(void *to, int c, size_t n)
{
	bytes(n);
	return __real_memset(to, c, n);
}

int __real_memcmp(const void *a, const void *b, size_t n);
int __wrap_memcmp(const void *a, const void *b, size_t n);
int __wrap_memcmp(const void *a, const void *b, size_t n)
{
	bytes(n);
	return __real_memcmp(a, b, n);
}

void *__real_memchr(const void *s, int c, size_t n);
void *__wrap_memchr(const void *s, int c, size_t n);
void *__wrap_memchr(const void *s, int c, size_t n)
{
	const char *at = __real_memchr(s, c, n);

	bytes(at ? (size_t)(at - (const char *)s) : n);
	return (void *)at;
}

void *__real_memrchr(const void *s, int c, size_t n);
void *__wrap_memrchr(const void *s, int c, size_t n);
void *__wrap_memrchr(const void *s, int c, size_t n)
{
	const char *at = __real_memrchr(s, c, n);

	bytes(at ? (size_t)((const char *)s + n - at) : n);
	return (void *)at;
}

void *__real_memmem(const void *s, size_t n, const void *word, size_t n_word);
void *__wrap_memmem(const void *s, size_t n, const void *word, size_t n_word);
void *__wrap_memmem(const void *s, size_t n, const void *word, size_t n_word)
{
	const char *at = __real_memmem(s, n, word, n_word);

	bytes(at ? (size_t)(at - (const char *)s) : n);
	return (void *)at;
}

size_t __real_strlen(const char *s);
size_t __wrap_strlen(const char *s);
size_t __wrap_strlen(const char *s)
{
	size_t n = __real_strlen(s);

	bytes(n);
	return n;
}

size_t __real_strnlen(const char *s, size_t max);
size_t __wrap_strnlen(const char *s, size_t max);
size_t __wrap_strnlen(const char *s, size_t max)
{
	size_t n = __real_strnlen(s, max);

	bytes(n);
	return n;
}

char *__real_strstr(const char *s, const char *word);
char *__wrap_strstr(const char *s, const char *word);
char *__wrap_strstr(const char *s, const char *word)
{
	char *at = __real_strstr(s, word);

	bytes(at ? (size_t)(at - s) : __real_strlen(s));
	return at;
}

/* Up to the first difference. */
int __wrap_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b)
{
	size_t n = 0;

	while (a[n] && a[n] == b[n])
		n++;
	bytes(n);
	return (unsigned char)a[n] - (unsigned char)b[n];
}

int __real_inflate(z_streamp z, int flush);
int __wrap_inflate(z_streamp z, int flush);
int __wrap_inflate(z_streamp z, int flush)
{
	uLong in = z->total_in, out = z->total_out;
	int r = __real_inflate(z, flush);

	bytes(16 * (size_t)(z->total_in - in + z->total_out - out));
	return r;
}
