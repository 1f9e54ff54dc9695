// SPDX-License-Identifier: Apache-2.0
/* The C library has no instrumentation, so the linker leads its calls here (--wrap). */
#include "complexity/count.h"

#include <jansson.h>
#include <lzma.h>
#include <stddef.h>
#include <string.h>
#include <yaml.h>
#include <zlib.h>

static _Thread_local uint64_t total;

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

void *__real_memmove(void *to, const void *from, size_t n);
void *__wrap_memmove(void *to, const void *from, size_t n);
void *__wrap_memmove(void *to, const void *from, size_t n)
{
	bytes(n);
	return __real_memmove(to, from, n);
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

char *__real_strchr(const char *s, int c);
char *__wrap_strchr(const char *s, int c);
char *__wrap_strchr(const char *s, int c)
{
	char *at = __real_strchr(s, c);

	bytes(at ? (size_t)(at - s) : __real_strlen(s));
	return at;
}

char *__real_strrchr(const char *s, int c);
char *__wrap_strrchr(const char *s, int c);
char *__wrap_strrchr(const char *s, int c)
{
	bytes(__real_strlen(s));
	return __real_strrchr(s, c);
}

size_t __real_strspn(const char *s, const char *accept);
size_t __wrap_strspn(const char *s, const char *accept);
size_t __wrap_strspn(const char *s, const char *accept)
{
	size_t n = __real_strspn(s, accept);

	bytes(n);
	return n;
}

size_t __real_strcspn(const char *s, const char *reject);
size_t __wrap_strcspn(const char *s, const char *reject);
size_t __wrap_strcspn(const char *s, const char *reject)
{
	size_t n = __real_strcspn(s, reject);

	bytes(n);
	return n;
}

/* Up to the first difference. */
int __wrap_strncmp(const char *a, const char *b, size_t max);
int __wrap_strncmp(const char *a, const char *b, size_t max)
{
	size_t n = 0;

	while (n < max && a[n] && a[n] == b[n])
		n++;
	bytes(n);
	return n < max ? (unsigned char)a[n] - (unsigned char)b[n] : 0;
}

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

lzma_ret __real_lzma_code(lzma_stream *xz, lzma_action action);
lzma_ret __wrap_lzma_code(lzma_stream *xz, lzma_action action);
lzma_ret __wrap_lzma_code(lzma_stream *xz, lzma_action action)
{
	uint64_t in = xz->total_in, out = xz->total_out;
	lzma_ret r = __real_lzma_code(xz, action);

	bytes(16 * (size_t)(xz->total_in - in + xz->total_out - out));
	return r;
}

json_t *__real_json_loadb(const char *json, size_t n, size_t flags, json_error_t *error);
json_t *__wrap_json_loadb(const char *json, size_t n, size_t flags, json_error_t *error);
json_t *__wrap_json_loadb(const char *json, size_t n, size_t flags, json_error_t *error)
{
	bytes(16 * n);
	return __real_json_loadb(json, n, flags, error);
}

int __real_yaml_parser_parse(yaml_parser_t *parser, yaml_event_t *event);
int __wrap_yaml_parser_parse(yaml_parser_t *parser, yaml_event_t *event);
int __wrap_yaml_parser_parse(yaml_parser_t *parser, yaml_event_t *event)
{
	size_t before = parser->offset;
	int r = __real_yaml_parser_parse(parser, event);

	bytes(16 * (parser->offset - before));
	return r;
}
