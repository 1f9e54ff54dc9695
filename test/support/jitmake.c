// SPDX-License-Identifier: Apache-2.0
#include "support/jitmake.h"

#include "support/test.h"

#include <elf.h>
#include <string.h>

#define HEAD_SIZE 16u

static void put(struct buf *b, const void *bytes, size_t n)
{
	assert_int_equal(buf_append(b, bytes, n), 0);
}

static void put_u32(struct buf *b, uint32_t value)
{
	put(b, &value, sizeof(value));
}

static void put_u64(struct buf *b, uint64_t value)
{
	put(b, &value, sizeof(value));
}

static void put_head(struct buf *b, uint32_t kind, size_t n)
{
	put_u32(b, kind);
	put_u32(b, (uint32_t)(HEAD_SIZE + n));
	put_u64(b, b->len); /* a time, of this record alone */
}

/* pid, tid and the address once more. */
static void put_process(struct buf *b, uint64_t address)
{
	put_u32(b, 7);
	put_u32(b, 7);
	put_u64(b, address);
}

struct jitmake_header jitmake_this(void)
{
	struct jitmake_header header = {.magic = 0x4a695444, .version = 1, .size = 40};

#ifdef __x86_64__
	header.machine = EM_X86_64;
#else
	header.machine = EM_AARCH64;
#endif
	return header;
}

void jitmake_header(struct buf *b, const struct jitmake_header *header)
{
	put(b, header, sizeof(*header));
	put_u32(b, 0);
	put_u32(b, 7); /* pid */
	put_u64(b, 0x1234);
	put_u64(b, 0);
	for (uint32_t n = 40; n < header->size; n++)
		put(b, "", 1);
}

void jitmake_load(struct buf *b, uint64_t address, uint64_t size, const char *name, size_t n_code)
{
	const size_t n_name = strlen(name) + 1;

	put_head(b, JITMAKE_LOAD, 40 + n_name + n_code);
	put_process(b, address);
	put_u64(b, address);
	put_u64(b, size);
	put_u64(b, b->len);
	put(b, name, n_name);
	for (size_t i = 0; i < n_code; i++)
		put(b, "\xcc", 1);
}

void jitmake_move(struct buf *b, uint64_t from, uint64_t to, uint64_t size)
{
	put_head(b, JITMAKE_MOVE, 48);
	put_process(b, to);
	put_u64(b, from);
	put_u64(b, to);
	put_u64(b, size);
	put_u64(b, 1);
}

void jitmake_lines(struct buf *b, uint64_t address, const struct jitmake_line *lines, size_t n)
{
	size_t n_bytes = 16;

	for (size_t i = 0; i < n; i++)
		n_bytes += 16 + strlen(lines[i].file ? lines[i].file : "\xff") + 1;
	put_head(b, JITMAKE_LINES, n_bytes);
	put_u64(b, address);
	put_u64(b, n);
	for (size_t i = 0; i < n; i++) {
		const char *file = lines[i].file ? lines[i].file : "\xff";

		put_u64(b, lines[i].address);
		put_u32(b, lines[i].line);
		put_u32(b, 0);
		put(b, file, strlen(file) + 1);
	}
}

void jitmake_record(struct buf *b, uint32_t kind, uint32_t length, const void *bytes, size_t n)
{
	put_u32(b, kind);
	put_u32(b, length);
	put_u64(b, b->len);
	put(b, bytes, n);
}
