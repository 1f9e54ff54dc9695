// SPDX-License-Identifier: Apache-2.0
/*
 * The names of a kernel's functions have three megabytes, and mostly the same words:
 * "ext4_mark_inode_dirty" shares "ext4", "_mark", "_inode" and "_dirty" with others. A word is a
 * run of letters or of digits with the underscores before it; another byte is a word of its own. So
 * the words of a name, one after the other, are the name.
 *
 * A name is a row of word numbers, each in seven bits a byte with the lowest bits first and a mark
 * in all bytes but the last, as in protobuf. Words that come first have small numbers, and frequent
 * words come early. A name is decoded in a microsecond, without memory.
 */
#include "symbolize/packed_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vec.h"

/* Words. Their numbers have at most three bytes. Reached: as with too many bytes. */
#define PACKED_NAMES_WORDS_MAX	 ((1u << 21) - 1)
#define PACKED_NAMES_FIRST_SLOTS 1024

#define CODE_MORE 0x80u
#define CODE_BITS 7

void packed_names_init(struct packed_names *p, size_t max)
{
	*p = (struct packed_names){.codes = BUF_INIT(max), .text = BUF_INIT(max)};
}

void packed_names_deinit(struct packed_names *p)
{
	buf_deinit(&p->codes);
	buf_deinit(&p->text);
	free(p->words);
	free(p->slots);
	*p = (struct packed_names){0};
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Bytes of the first word; the name is not empty. */
static size_t word_length(const char *name)
{
	const size_t n_underscores = strspn(name, "_");
	size_t n = n_underscores;

	if (is_letter(name[n]))
		while (is_letter(name[n]))
			n++;
	else
		while (is_digit(name[n]))
			n++;
	return n ? n : 1;
}

static const char *word_text(const struct packed_names *p, uint32_t number)
{
	return p->text.data + p->words[number - 1];
}

/* The slot of the word, or the free one for it. There is a free one. */
static uint32_t *find_slot(const struct packed_names *p, const char *word, size_t n)
{
	size_t i = hash_bytes(word, n) & (p->n_slots - 1);

	for (; p->slots[i]; i = (i + 1) & (p->n_slots - 1)) {
		const char *other = word_text(p, p->slots[i]);

		if (strncmp(other, word, n) == 0 && !other[n])
			break;
	}
	return &p->slots[i];
}

/* At most half of the slots are in use. */
static int grow_slots(struct packed_names *p)
{
	const size_t n = p->n_slots ? 2 * p->n_slots : PACKED_NAMES_FIRST_SLOTS;

	if (2 * (p->n_words + 1) <= p->n_slots)
		return 0;
	free(p->slots);
	p->slots = calloc(n, sizeof(*p->slots));
	p->n_slots = p->slots ? n : 0;
	if (!p->slots)
		return -ENOMEM;
	for (uint32_t number = 1; number <= p->n_words; number++) {
		const char *word = word_text(p, number);

		*find_slot(p, word, strlen(word)) = number;
	}
	return 0;
}

static int add_word(struct packed_names *p, const char *word, size_t n)
{
	const uint32_t offset = (uint32_t)p->text.len;
	char *to;
	int r = vec_grow(&p->words, &p->words_cap, p->n_words + 1, sizeof(*p->words),
			 PACKED_NAMES_WORDS_MAX);

	if (r)
		return r < 0 ? r : BUF_FULL;
	r = buf_reserve(&p->text, n + 1, &to);
	if (r)
		return r;
	memcpy(to, word, n);
	to[n] = '\0';
	p->text.len += n + 1;
	p->words[p->n_words++] = offset;
	return 0;
}

static int number_of(struct packed_names *p, const char *word, size_t n, uint32_t *ret)
{
	int r = grow_slots(p);
	uint32_t *slot;

	if (r)
		return r;
	slot = find_slot(p, word, n);
	if (!*slot) {
		r = add_word(p, word, n);
		if (r)
			return r;
		*slot = (uint32_t)p->n_words;
	}
	*ret = *slot;
	return 0;
}

static int add_code(struct packed_names *p, uint32_t number)
{
	int r = 0;

	for (; !r && number >= CODE_MORE; number >>= CODE_BITS)
		r = buf_putc(&p->codes, (char)(number | CODE_MORE));
	return r ? r : buf_putc(&p->codes, (char)number);
}

int packed_names_add(struct packed_names *p, const char *name, uint32_t *ret)
{
	const size_t place = p->codes.len;
	uint32_t number;
	int r = 0;

	for (size_t n; !r && *name; name += n) {
		n = word_length(name);
		r = number_of(p, name, n, &number);
		if (!r)
			r = add_code(p, number);
	}
	if (!r)
		r = buf_putc(&p->codes, 0);
	if (r)
		p->codes.len = place;
	else
		*ret = (uint32_t)place;
	return r;
}

static void shrink(struct buf *b)
{
	char *data = b->data ? realloc(b->data, b->len + 1) : NULL;

	if (data) {
		b->data = data;
		b->cap = b->len + 1;
	}
}

void packed_names_complete(struct packed_names *p)
{
	uint32_t *words = p->n_words ? reallocarray(p->words, p->n_words, sizeof(*words)) : NULL;

	if (words) {
		p->words = words;
		p->words_cap = p->n_words;
	}
	shrink(&p->codes);
	shrink(&p->text);
	free(p->slots);
	p->slots = NULL;
	p->n_slots = 0;
}

/* The number at *@at, which moves behind it. */
static uint32_t next_number(const unsigned char **at)
{
	uint32_t number = 0;
	unsigned int shift = 0;

	for (;; shift += CODE_BITS) {
		const unsigned char byte = *(*at)++;

		number |= (uint32_t)(byte & ~CODE_MORE) << shift;
		if (!(byte & CODE_MORE))
			return number;
	}
}

void packed_names_get(const struct packed_names *p, uint32_t place, char *ret, size_t size)
{
	const unsigned char *at = (const unsigned char *)p->codes.data + place;
	size_t len = 0;

	for (uint32_t number; (number = next_number(&at)) && len + 1 < size;) {
		const char *word = word_text(p, number);
		const size_t n = strnlen(word, size - 1 - len);

		memcpy(ret + len, word, n);
		len += n;
	}
	ret[len] = '\0';
}

size_t packed_names_bytes(const struct packed_names *p)
{
	return p->codes.cap + p->text.cap + p->words_cap * sizeof(*p->words) +
	       p->n_slots * sizeof(*p->slots);
}
