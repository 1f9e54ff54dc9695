// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "support/allocfail.h"
#include "support/ehimage.h"
#include "support/fixture.h"
#include "unwindtable/compile.h"
#include "unwind/rowtext.h"

/* ---------------------------------------------------------------- tables made of bytes */

struct bytes {
	uint8_t data[1024];
	size_t n;
};

static void put(struct bytes *b, const void *data, size_t n)
{
	assert_true(b->n + n <= sizeof(b->data));
	memcpy(b->data + b->n, data, n);
	b->n += n;
}

static void put_u32(struct bytes *b, uint32_t value)
{
	put(b, &value, sizeof(value));
}

static void put_u64(struct bytes *b, uint64_t value)
{
	put(b, &value, sizeof(value));
}

/* A string literal, with NULs allowed. */
#define PUT(b, s) put(b, s, sizeof(s) - 1)

/* Set the length of the bytes since @at. Returns the offset of the next entry. */
static void end_entry(struct bytes *b, size_t at)
{
	uint32_t n = (uint32_t)(b->n - at - 4);

	memcpy(b->data + at, &n, sizeof(n));
}

#define CIE_HEAD "\x01\x78\x10" /* code by 1, data by -8, return address 16 */
#define CIE_TAIL "\x0c\x07\x08\x90\x01"
#define CIE_ZR	 "\x01zR\0" CIE_HEAD "\x01\x1b" CIE_TAIL

static size_t put_cie(struct bytes *b, const void *body, size_t n)
{
	size_t at = b->n;

	put_u32(b, 0);
	put_u32(b, 0);
	put(b, body, n);
	end_entry(b, at);
	return at;
}

#define PUT_CIE(b, s) put_cie(b, s, sizeof(s) - 1)

/* Up to the program: addresses in the form of "zR" 0x1b. */
static size_t begin_fde(struct bytes *b, size_t cie, uint64_t start, uint32_t size)
{
	size_t at = b->n;

	put_u32(b, 0);
	put_u32(b, (uint32_t)(b->n - cie));
	put_u32(b, (uint32_t)(start - EHIMAGE_EH_FRAME - b->n));
	put_u32(b, size);
	PUT(b, "\0"); /* augmentation */
	return at;
}

static void put_fde(struct bytes *b, size_t cie, uint64_t start, uint32_t size)
{
	size_t at = begin_fde(b, cie, start, size);

	PUT(b, "\x41\x0e\x10"); /* advance by one, CFA = rsp + 16 */
	end_entry(b, at);
}

#define GOOD "10000 cfa=rsp+8 fp=same ra=cfa-8 | 10001 cfa=rsp+16 fp=same ra=cfa-8 | 10010 gap"

static void print_rows(const struct rows *rows, char *ret, size_t size)
{
	size_t n = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < rows_count(rows); i++) {
		struct row row = rows_at(rows, i);
		char text[ROWTEXT_MAX];

		n += (size_t)snprintf(ret + n, size - n, "%s%llx %s", i ? " | " : "",
				      (unsigned long long)row.vaddr,
				      rowtext_print(CFI_X86_64, rows_rule(rows, row.rule), text));
		assert_true(n < size);
	}
}

/* The outcome; rows and skipped entries ("no_code 1, truncated 1") as text. */
static int compile_file(const struct elffile *file, char *rows_text, char *skipped, size_t size)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	struct ehframe_stats stats;
	size_t n = 0;
	int r;

	rows_text[0] = skipped[0] = '\0';
	r = compile_image(file, &stats, &rows);
	for (unsigned int i = 0; i < EHFRAME_SKIP_MAX; i++)
		if (stats.skipped[i])
			n += (size_t)snprintf(skipped + n, size - n, "%s%s %llu", n ? ", " : "",
					      ehframe_skip_name(i),
					      (unsigned long long)stats.skipped[i]);
	if (!r)
		print_rows(rows, rows_text, size);
	return r;
}

static int compile(const struct ehimage *image, char *rows_text, char *skipped, size_t size)
{
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	_cleanup_(freep) void *bytes = NULL;
	size_t n_bytes;

	bytes = ehimage_build(image, &n_bytes);
	assert_non_null(bytes);
	assert_int_equal(elffile_open_memory(bytes, n_bytes, &file), 0);
	return compile_file(file, rows_text, skipped, size);
}

static void check(const char *name, const struct ehimage *image, const char *expected,
		  const char *expected_skipped)
{
	char rows[1024], skipped[1024];

	row_begin(name);
	assert_int_equal(compile(image, rows, skipped, sizeof(rows)), 0);
	assert_string_equal(skipped, expected_skipped);
	assert_string_equal(rows, expected);
}

static void check_eh(const char *name, const struct bytes *b, const char *expected,
		     const char *skipped)
{
	struct ehimage image = {.eh_frame = b->data, .n_eh_frame = b->n};

	check(name, &image, expected, skipped);
}

/* ---------------------------------------------------------------- CIEs */

static void test_cies(void **state)
{
	static const struct {
		const char *name;
		const char *cie;
		size_t n;
		const char *expected;
		const char *skipped;
	} rows[] = {
#define CIE(s) (s), sizeof(s) - 1
		{"zR", CIE(CIE_ZR), GOOD, ""},
		{"version 3", CIE("\x03zR\0" CIE_HEAD "\x01\x1b" CIE_TAIL), GOOD, ""},
		{"version 3, its return address is a LEB128",
		 CIE("\x03zR\0\x01\x78\x90\x00\x01\x1b" CIE_TAIL), GOOD, ""},
		{"version 4", CIE("\x04zR\0\x08\x00" CIE_HEAD "\x01\x1b" CIE_TAIL), GOOD, ""},
		{"version 4, addresses of 4 bytes",
		 CIE("\x04zR\0\x04\x00" CIE_HEAD "\x01\x1b" CIE_TAIL), "", "cie_version 1"},
		{"version 4, segments", CIE("\x04zR\0\x08\x02" CIE_HEAD "\x01\x1b" CIE_TAIL), "",
		 "cie_version 1"},
		{"version 2", CIE("\x02zR\0" CIE_HEAD "\x01\x1b" CIE_TAIL), "", "cie_version 1"},
		{"exceptions' handler and table",
		 CIE("\x01zPLR\0" CIE_HEAD "\x07\x9b\1\2\3\4\x1b\x1b" CIE_TAIL), GOOD, ""},
		{"handler left out", CIE("\x01zPLR\0" CIE_HEAD "\x03\xff\x1b\x1b" CIE_TAIL), GOOD,
		 ""},
		{"handler's address is cut", CIE("\x01zPR\0" CIE_HEAD "\x03\x00\x1b\x1b" CIE_TAIL),
		 "", "cie_augmentation 1"},
		{"a signal frame that is not the kernel's: one byte early",
		 CIE("\x01zRS\0" CIE_HEAD "\x01\x1b" CIE_TAIL),
		 "10000 unsupported=signal | 10010 gap", ""},
		{"keys and tags of AArch64", CIE("\x01zRBG\0" CIE_HEAD "\x01\x1b" CIE_TAIL), GOOD,
		 ""},
		{"an unknown letter behind", CIE("\x01zRX\0" CIE_HEAD "\x02\x1b\x55" CIE_TAIL),
		 GOOD, ""},
		{"an unknown letter without length", CIE("\x01R\0" CIE_HEAD "\x1b" CIE_TAIL), "",
		 "cie_augmentation 1"},
		{"letters do not end", CIE("\x01zRRRRRR"), "", "truncated 1"},
		{"augmentation longer than the entry", CIE("\x01zR\0" CIE_HEAD "\x7f\x1b"), "",
		 "truncated 1"},
		{"bad program", CIE("\x01zR\0" CIE_HEAD "\x01\x1b\x3f"), "", "bad_opcode 1"},
		{"empty", CIE(""), "", "truncated 1"},
		{"datarel", CIE("\x01zR\0" CIE_HEAD "\x01\x3b" CIE_TAIL), "", "encoding 1"},
#undef CIE
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct bytes b = {0};
		size_t cie = put_cie(&b, rows[i].cie, rows[i].n);

		put_fde(&b, cie, EHIMAGE_TEXT, 16);
		check_eh(rows[i].name, &b, rows[i].expected, rows[i].skipped);
	}
}

/* ---------------------------------------------------------------- FDEs */

static void test_ranges(void **state)
{
	static const struct {
		const char *name;
		uint64_t start;
		uint32_t size;
		const char *expected;
		const char *skipped;
	} rows[] = {
		{"first", EHIMAGE_TEXT, 16, GOOD, ""},
		{"last", EHIMAGE_TEXT_END - 1, 1, "1ffff cfa=rsp+8 fp=same ra=cfa-8 | 20000 gap",
		 ""},
		{"begins before the code", EHIMAGE_TEXT - 1, 16, "", "outside 1"},
		{"ends behind the code", EHIMAGE_TEXT_END - 1, 2, "", "outside 1"},
		{"discarded: at 0", 0, 16, "", "no_code 1"},
		{"no bytes", EHIMAGE_TEXT, 0, "", "no_code 1"},
		{"size is negative", EHIMAGE_TEXT, 0xffffff00u, "", "outside 1"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct bytes b = {0};
		size_t cie = PUT_CIE(&b, CIE_ZR);

		put_fde(&b, cie, rows[i].start, rows[i].size);
		check_eh(rows[i].name, &b, rows[i].expected, rows[i].skipped);
	}
}

/* GCC 2's: an address behind the letters, and absolute addresses. */
static void test_old_gcc(void **state)
{
	struct bytes b = {0};
	size_t cie, at;

	(void)state;
	cie = PUT_CIE(&b, "\x01"
			  "eh\0\1\2\3\4\5\6\7\x08" CIE_HEAD CIE_TAIL);
	at = b.n;
	put_u32(&b, 0);
	put_u32(&b, (uint32_t)(b.n - cie));
	put_u64(&b, EHIMAGE_TEXT);
	put_u64(&b, 16);
	PUT(&b, "\x41\x0e\x10");
	end_entry(&b, at);
	check_eh("eh", &b, GOOD, "");
}

/* A bad entry affects only itself: the next good one is read. */
static void test_bad_fdes(void **state)
{
	struct bytes b = {0};
	size_t cie = PUT_CIE(&b, CIE_ZR), at;

	(void)state;
	at = begin_fde(&b, cie, EHIMAGE_TEXT + 0x100, 16);
	PUT(&b, "\x3f");
	end_entry(&b, at);
	at = begin_fde(&b, cie, EHIMAGE_TEXT + 0x200, 16);
	PUT(&b, "\x0b");
	end_entry(&b, at);
	put_fde(&b, at, EHIMAGE_TEXT + 0x300, 16);	 /* the CIE is an FDE */
	put_fde(&b, b.n + 64, EHIMAGE_TEXT + 0x400, 16); /* the CIE is before the section */
	at = b.n;					 /* truncated in the addresses */
	put_u32(&b, 8);
	put_u32(&b, (uint32_t)(b.n - cie));
	put_u32(&b, 0);
	put_fde(&b, cie, EHIMAGE_TEXT, 16);
	check_eh("bad ones before", &b, GOOD,
		 "cie_pointer 2, encoding 1, bad_opcode 1, unbalanced 1");
}

static void test_lengths(void **state)
{
	struct bytes b = {0};
	size_t cie;

	(void)state;
	put_u32(&b, 0); /* padding */
	cie = PUT_CIE(&b, CIE_ZR);
	put_u32(&b, 0);
	put_fde(&b, cie, EHIMAGE_TEXT, 16);
	put_u32(&b, 0);
	check_eh("zeros in between", &b, GOOD, "");
	PUT(&b, "\1\2\3");
	check_eh("less than a length is left over", &b, GOOD, "");
	PUT(&b, "\0");
	check_eh("longer than the section", &b, GOOD, "truncated 1");
	b.n -= 4;
	put_u32(&b, 3);
	PUT(&b, "\0\0\0");
	check_eh("no room for the id", &b, GOOD, "truncated 1");
	b.n -= 7;
	put_u32(&b, 0xfffffff0u);
	put_u64(&b, 0);
	check_eh("reserved length", &b, GOOD, "truncated 1");
}

/* Lengths and ids of 64 bits. */
static void test_wide(void **state)
{
	struct bytes b = {0};
	size_t at;

	(void)state;
	put_u32(&b, 0xffffffffu);
	put_u64(&b, 8 + sizeof(CIE_ZR) - 1);
	put_u64(&b, 0);
	PUT(&b, CIE_ZR);
	put_u32(&b, 0xffffffffu);
	put_u64(&b, 8 + 4 + 4 + 1 + 3);
	put_u64(&b, b.n);
	put_u32(&b, (uint32_t)(EHIMAGE_TEXT - EHIMAGE_EH_FRAME - b.n));
	put_u32(&b, 16);
	PUT(&b, "\0\x41\x0e\x10");
	check_eh("64-bit", &b, GOOD, "");
	at = b.n;
	put_u32(&b, 0xffffffffu);
	put_u64(&b, UINT64_MAX);
	check_eh("longer than all", &b, GOOD, "truncated 1");
	b.n = at + 8;
	check_eh("cut in the length", &b, GOOD, "truncated 1");
}

static void test_too_large(void **state)
{
	static uint8_t data[(512 << 10) + 64];
	struct ehimage image = {.eh_frame = data};
	struct bytes b = {0};
	size_t cie = PUT_CIE(&b, CIE_ZR), at = begin_fde(&b, cie, EHIMAGE_TEXT + 0x100, 16);
	uint32_t n;

	(void)state;
	/* all padding: entry and length are 256 KiB together, then a byte more */
	memcpy(data, b.data, b.n);
	n = (256 << 10) - 4;
	memcpy(data + at, &n, sizeof(n));
	image.n_eh_frame = at + 4 + n;
	check("as large as may be", &image, "10100 cfa=rsp+8 fp=same ra=cfa-8 | 10110 gap", "");
	n++;
	memcpy(data + at, &n, sizeof(n));
	image.n_eh_frame = at + 4 + n;
	check("one more", &image, "", "too_large 1");
}

/* A CIE far from its function is read separately. */
static void test_far_cie(void **state)
{
	static uint8_t data[(600 << 10)];
	struct ehimage image = {.eh_frame = data};
	struct bytes b = {0};
	size_t cie = PUT_CIE(&b, CIE_ZR), far = 550 << 10;
	uint32_t n;

	(void)state;
	memset(data, 0, sizeof(data));
	memcpy(data, b.data, b.n);
	/* unused CIEs up to there; the last entry is larger than the limit of a read */
	for (size_t at = b.n; at < far; at += n + 4) {
		n = far - at < 8192 ? (uint32_t)(far - at - 4) : 4096 - 4;
		memcpy(data + at, &n, sizeof(n));
	}
	b.n = 0;
	put_u32(&b, 0);
	put_u32(&b, (uint32_t)(far + 4 - cie));
	put_u32(&b, (uint32_t)(EHIMAGE_TEXT - EHIMAGE_EH_FRAME - far - 8));
	put_u32(&b, 16);
	PUT(&b, "\0\x41\x0e\x10");
	end_entry(&b, 0);
	memcpy(data + far, b.data, b.n);
	image.n_eh_frame = far + b.n;
	check("half a megabyte before", &image, GOOD, "");
	n = 8; /* from here the previous CIE */
	memcpy(data + far + 4, &n, sizeof(n));
	check("its CIE is an entry's middle", &image, "", "cie_pointer 1");
}

/* ---------------------------------------------------------------- hostile tables */

/* A file with a .debug_frame of this length: @n present bytes, and then a hole. */
static void check_long(const char *name, const void *debug_frame, size_t n, uint64_t size,
		       const char *expected, const char *expected_skipped)
{
	const struct ehimage image = {.debug_frame = debug_frame, .n_debug_frame = 1};
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	_cleanup_(freep) uint8_t *bytes = NULL;
	char rows[1024], skipped[1024];
	Elf64_Ehdr eh;
	Elf64_Shdr sh;
	uint64_t at;
	size_t n_bytes;
	int fd = memfd_create(name, MFD_CLOEXEC);

	row_begin(name);
	bytes = ehimage_build(&image, &n_bytes);
	assert_non_null(bytes);
	memcpy(&eh, bytes, sizeof(eh));
	at = eh.e_shoff + 2 * sizeof(sh); /* behind no section and .eh_frame */
	memcpy(&sh, bytes + at, sizeof(sh));
	sh.sh_offset = n_bytes;
	sh.sh_size = size;
	memcpy(bytes + at, &sh, sizeof(sh));
	assert_int_equal(pwrite(fd, bytes, n_bytes, 0), n_bytes);
	assert_int_equal(pwrite(fd, debug_frame, n, (off_t)n_bytes), n);
	assert_int_equal(ftruncate(fd, (off_t)(n_bytes + size)), 0);
	assert_int_equal(elffile_open(fd, &file), 0);
	assert_int_equal(compile_file(file, rows, skipped, sizeof(rows)), 0);
	assert_string_equal(skipped, expected_skipped);
	assert_string_equal(rows, expected);
}

static void put_debug_cie(struct bytes *b)
{
	size_t at = b->n;

	put_u32(b, 0);
	put_u32(b, 0xffffffffu);
	PUT(b, "\x04\0\x08\0" CIE_HEAD CIE_TAIL);
	end_entry(b, at);
}

static void put_debug_fde(struct bytes *b, uint32_t cie, uint64_t start)
{
	size_t at = b->n;

	put_u32(b, 0);
	put_u32(b, cie);
	put_u64(b, start);
	put_u64(b, 16);
	PUT(b, "\x41\x0e\x10");
	end_entry(b, at);
}

/* A hole is entries of no length, without end. */
static void test_endless(void **state)
{
	struct bytes b = {0};

	(void)state;
	put_debug_cie(&b);
	put_debug_fde(&b, 0, EHIMAGE_TEXT);
	check_long("a megabyte", b.data, b.n, 1 << 20, GOOD, "");
	check_long("a terabyte", b.data, b.n, 1ull << 40, GOOD, "too_large 1");
}

/* Two CIEs of the largest length, too large to keep both, and functions that use them in turns. */
static void test_turns(void **state)
{
	enum { N = 40000, FIRST = 0, SECOND = 4 * 516, FDES = SECOND + 1024 };
	_cleanup_(freep) uint8_t *data = calloc(1, FDES + (size_t)N * 32);
	struct bytes cie = {0};
	uint32_t length = 1000;
	size_t at = FDES;

	(void)state;
	assert_non_null(data);
	put_debug_cie(&cie);
	memcpy(cie.data, &length, sizeof(length));
	memcpy(data + FIRST, cie.data, cie.n);
	memcpy(data + SECOND, cie.data, cie.n);
	for (uint32_t i = 0; i < N; i++) {
		struct bytes fde = {0};

		put_debug_fde(&fde, i % 2 ? SECOND : FIRST, EHIMAGE_TEXT);
		memcpy(data + at, fde.data, fde.n);
		at += fde.n;
	}
	check_long("each its own", data, at, at, GOOD, "too_large 1");
}

/* ---------------------------------------------------------------- where the tables are */

static void test_no_section_headers(void **state)
{
	struct bytes b = {0};
	struct ehimage image = {.eh_frame = b.data, .no_sections = true};
	size_t cie = PUT_CIE(&b, CIE_ZR);

	(void)state;
	put_fde(&b, cie, EHIMAGE_TEXT, 16);
	image.n_eh_frame = b.n;
	check("up to the file's end", &image, GOOD, "");
	put_u32(&b, 0);
	put_fde(&b, cie, EHIMAGE_TEXT + 0x100, 16);
	image.n_eh_frame = b.n;
	check("up to the zero", &image, GOOD, "");
}

static void test_header_lies(void **state)
{
	struct bytes b = {0};
	struct ehimage image = {.eh_frame = b.data, .more = 1 << 20};
	size_t cie = PUT_CIE(&b, CIE_ZR);

	(void)state;
	put_fde(&b, cie, EHIMAGE_TEXT, 16);
	image.n_eh_frame = b.n;
	/* section headers follow: the first one is all zeros, the second has a length */
	check("longer than the file", &image, GOOD, "truncated 2");
	image.more = UINT64_MAX - b.n;
	check("as long as can be", &image, GOOD, "truncated 2");
}

static void put_debug_frame(struct bytes *b, uint64_t start)
{
	size_t cie = b->n, at;

	put_debug_cie(b);
	at = b->n;
	put_u32(b, 0);
	put_u32(b, (uint32_t)cie);
	put_u64(b, start);
	put_u64(b, 16);
	PUT(b, "\x42\x0e\x20");
	end_entry(b, at);
}

static void test_debug_frame(void **state)
{
	struct bytes b = {0}, eh = {0};
	struct ehimage image = {.debug_frame = b.data};
	size_t cie = PUT_CIE(&eh, CIE_ZR);

	(void)state;
	put_debug_frame(&b, EHIMAGE_TEXT);
	image.n_debug_frame = b.n;
	check("alone", &image,
	      "10000 cfa=rsp+8 fp=same ra=cfa-8 | 10002 cfa=rsp+32 fp=same ra=cfa-8 | 10010 gap",
	      "");
	put_debug_frame(&b, EHIMAGE_TEXT + 0x10);
	image.n_debug_frame = b.n;
	put_fde(&eh, cie, EHIMAGE_TEXT, 16);
	image.eh_frame = eh.data;
	image.n_eh_frame = eh.n;
	check(".eh_frame knows better", &image,
	      "10000 cfa=rsp+8 fp=same ra=cfa-8 | 10001 cfa=rsp+16 fp=same ra=cfa-8 | "
	      "10010 cfa=rsp+8 fp=same ra=cfa-8 | 10012 cfa=rsp+32 fp=same ra=cfa-8 | 10020 gap",
	      "");
}

/* The bytes of tables that compile_image() reads. */
static uint64_t bytes_read(const struct ehimage *image)
{
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	_cleanup_(rows_freep) struct rows *rows = NULL;
	_cleanup_(freep) void *bytes = NULL;
	struct ehframe_stats stats;
	size_t n;

	bytes = ehimage_build(image, &n);
	assert_non_null(bytes);
	assert_int_equal(elffile_open_memory(bytes, n, &file), 0);
	assert_int_equal(compile_image(file, &stats, &rows), 0);
	return stats.bytes;
}

/* .debug_frame is left out where .eh_frame has all of a function, and as a whole if .eh_frame
 * describes all code. */
static void test_debug_frame_again(void **state)
{
	static const uint8_t text[0x110];
	struct bytes b = {0}, eh = {0};
	size_t cie = PUT_CIE(&eh, CIE_ZR);
	struct ehimage image;

	(void)state;
	put_fde(&eh, cie, EHIMAGE_TEXT, 16);
	put_debug_frame(&b, EHIMAGE_TEXT);
	put_debug_frame(&b, EHIMAGE_TEXT + 8);
	image = (struct ehimage){.eh_frame = eh.data,
				 .n_eh_frame = eh.n,
				 .debug_frame = b.data,
				 .n_debug_frame = b.n,
				 .text = text,
				 .n_text = sizeof(text)};
	check("half of a function", &image,
	      "10000 cfa=rsp+8 fp=same ra=cfa-8 | 10001 cfa=rsp+16 fp=same ra=cfa-8 | "
	      "10010 cfa=rsp+32 fp=same ra=cfa-8 | 10018 gap",
	      "");
	assert_int_equal(bytes_read(&image), eh.n + b.n);
	image.n_text = 16;
	check("all code", &image, GOOD, "");
	assert_int_equal(bytes_read(&image), eh.n);
}

static void put_compressed(struct bytes *b, const struct bytes *from, uint32_t method,
			   uint64_t size)
{
	Elf64_Chdr header = {.ch_type = method, .ch_size = size, .ch_addralign = 1};
	uLongf n = sizeof(b->data) - sizeof(header);

	b->n = 0;
	put(b, &header, sizeof(header));
	assert_int_equal(compress(b->data + b->n, &n, from->data, from->n), Z_OK);
	b->n += n;
}

static void test_compressed(void **state)
{
	static const char good[] = "10000 cfa=rsp+8 fp=same ra=cfa-8 | "
				   "10002 cfa=rsp+32 fp=same ra=cfa-8 | 10010 gap";
	struct bytes b = {0}, packed = {0};
	struct ehimage image = {.debug_frame = packed.data, .compressed = true};

	(void)state;
	put_debug_frame(&b, EHIMAGE_TEXT);
	put_compressed(&packed, &b, ELFCOMPRESS_ZLIB, b.n);
	image.n_debug_frame = packed.n;
	check("zlib", &image, good, "");
	image.n_debug_frame = packed.n - 1;
	check("cut", &image, "", "compressed 1");
	image.n_debug_frame = 20;
	check("cut in its header", &image, "", "compressed 1");
	put_compressed(&packed, &b, ELFCOMPRESS_ZLIB, b.n + 1);
	image.n_debug_frame = packed.n;
	check("less than it says", &image, "", "compressed 1");
	put_compressed(&packed, &b, 2, b.n);
	check("another method", &image, "", "compressed 1");
	put_compressed(&packed, &b, ELFCOMPRESS_ZLIB, (32 << 20) + 1);
	check("too much", &image, "", "compressed 1");
	packed.data[sizeof(Elf64_Chdr)] ^= 0xff;
	check("not zlib's bytes", &image, "", "compressed 1");
}

static void test_other_files(void **state)
{
	struct bytes b = {0};
	struct ehimage image = {.eh_frame = b.data};
	char rows[256], skipped[256];
	size_t cie = PUT_CIE(&b, CIE_ZR);

	(void)state;
	put_fde(&b, cie, EHIMAGE_TEXT, 16);
	image.n_eh_frame = b.n;
	image.type = ET_REL;
	assert_int_equal(compile(&image, rows, skipped, sizeof(rows)), ELFFILE_UNSUPPORTED);
	image.type = ET_EXEC;
	check("fixed", &image, GOOD, "");
	image.machine = EM_RISCV;
	assert_int_equal(compile(&image, rows, skipped, sizeof(rows)), ELFFILE_UNSUPPORTED);
	image = (struct ehimage){0};
	check("no tables", &image, "", "");
}

/* ---------------------------------------------------------------- memory */

static int compile_again(void *ctx)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	struct ehframe_stats stats;

	return compile_image(ctx, &stats, &rows);
}

static void test_no_memory(void **state)
{
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	_cleanup_(freep) void *bytes = NULL;
	struct bytes b = {0}, debug = {0}, packed = {0};
	struct ehimage image = {.eh_frame = b.data, .debug_frame = packed.data, .compressed = true};
	size_t n, cie = PUT_CIE(&b, CIE_ZR);

	(void)state;
	put_fde(&b, cie, EHIMAGE_TEXT, 16);
	put_debug_frame(&debug, EHIMAGE_TEXT + 0x100);
	put_compressed(&packed, &debug, ELFCOMPRESS_ZLIB, debug.n);
	image.n_eh_frame = b.n;
	image.n_debug_frame = packed.n;
	bytes = ehimage_build(&image, &n);
	assert_non_null(bytes);
	assert_int_equal(elffile_open_memory(bytes, n, &file), 0);
	assert_true(allocfail_survive(compile_again, file) > 5);
}

/* ---------------------------------------------------------------- single functions */

/* The rule of single addresses is the whole table's. */
static void check_functions(const struct elffile *file, const struct rows *all)
{
	_cleanup_(rows_freep) struct rows *some = NULL;
	struct ehframe_stats stats = {0};
	uint64_t start, end, vaddrs[8];
	const size_t n_all = rows_count(all), step = n_all / array_size(vaddrs);
	size_t n_rules = 0;

	assert_true(step > 0);
	for (size_t i = 0; i < array_size(vaddrs); i++)
		vaddrs[i] = rows_at(all, i * step).vaddr;
	assert_int_equal(ehframe_text(file, &start, &end), 0);
	assert_int_equal(rows_new(start, end, &some), 0);
	assert_int_equal(ehframe_add_functions(file, vaddrs, array_size(vaddrs), some, &stats), 0);
	assert_int_equal(rows_finish(some), 0);
	assert_true(rows_count(some) <= n_all);
	for (size_t i = 0; i < array_size(vaddrs); i++) {
		const struct row want = rows_at(all, i * step);
		const size_t at = rows_find(some, vaddrs[i]);

		if (!want.rule)
			continue;
		n_rules++;
		assert_int_not_equal(at, (size_t)-1);
		assert_memory_equal(rows_rule(some, rows_at(some, at).rule),
				    rows_rule(all, want.rule), sizeof(struct unwind_rule));
	}
	assert_in_range(stats.fdes, 1, array_size(vaddrs));
	assert_true(n_rules >= array_size(vaddrs) / 2);
}

static void test_functions(void **state)
{
	static const char *const names[] = {"plain-pie", "plain-fixed", "plain-stripped", "cxx"};

	(void)state;
	for (size_t i = 0; i < array_size(names); i++) {
		_cleanup_(elffile_freep) struct elffile *file = NULL;
		_cleanup_(rows_freep) struct rows *all = NULL;
		struct ehframe_stats stats = {0};
		char path[FIXTURE_PATH_MAX];
		uint64_t start, end;
		int fd = open(fixture_path(names[i], path), O_RDONLY | O_CLOEXEC);

		row_begin(names[i]);
		assert_true(fd >= 0);
		assert_int_equal(elffile_open(fd, &file), 0);
		assert_int_equal(ehframe_text(file, &start, &end), 0);
		assert_int_equal(rows_new(start, end, &all), 0);
		assert_int_equal(ehframe_add(file, all, &stats), 0);
		assert_int_equal(rows_finish(all), 0);
		check_functions(file, all);
	}
}

/* Outside of all functions there is nothing, and a file without the index has no functions. */
static void test_functions_absent(void **state)
{
	struct bytes b = {0};
	struct ehimage image = {.eh_frame = b.data};
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	_cleanup_(freep) void *bytes = NULL;
	struct ehframe_stats stats = {0};
	const uint64_t vaddr = EHIMAGE_TEXT;
	struct rows *rows;
	char path[FIXTURE_PATH_MAX];
	size_t n_bytes;
	int fd;

	(void)state;
	put_fde(&b, PUT_CIE(&b, CIE_ZR), EHIMAGE_TEXT, 16);
	image.n_eh_frame = b.n;
	bytes = ehimage_build(&image, &n_bytes);
	assert_non_null(bytes);
	assert_int_equal(elffile_open_memory(bytes, n_bytes, &file), 0);
	assert_int_equal(rows_new(EHIMAGE_TEXT, EHIMAGE_TEXT_END, &rows), 0);
	assert_int_equal(ehframe_add_functions(file, &vaddr, 1, rows, &stats), ELFFILE_ABSENT);
	elffile_free(take_ptr(file));
	fd = open(fixture_path("plain-pie", path), O_RDONLY | O_CLOEXEC);
	assert_int_equal(elffile_open(fd, &file), 0);
	assert_int_equal(ehframe_add_functions(file, &(uint64_t){1}, 1, rows, &stats), 0);
	assert_int_equal(rows_finish(rows), 0);
	assert_int_equal(rows_count(rows), 0);
	assert_int_equal(stats.fdes, 0);
	rows_free(rows);
}

static void test_names(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < EHFRAME_SKIP_CFI; i++)
		assert_non_null(ehframe_skip_name(i));
	assert_string_equal(ehframe_skip_name(EHFRAME_SKIP_CFI + CFI_BAD_OPCODE), "bad_opcode");
	assert_string_equal(ehframe_skip_name(EHFRAME_SKIP_MAX), "error");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cies),
		cmocka_unit_test(test_old_gcc),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_bad_fdes),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_wide),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_far_cie),
		cmocka_unit_test(test_endless),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_no_section_headers),
		cmocka_unit_test(test_header_lies),
		cmocka_unit_test(test_debug_frame),
		cmocka_unit_test(test_debug_frame_again),
		cmocka_unit_test(test_compressed),
		cmocka_unit_test(test_other_files),
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_functions_absent),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
