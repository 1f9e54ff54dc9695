// SPDX-License-Identifier: Apache-2.0
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "elf/elffile.h"

/* Contents up to this are read. */
#define SECTION_MAX (1u << 20)

/* Reads each byte, so the sanitizers see a bad one. */
static void touch(const uint8_t *data, uint64_t n)
{
	volatile uint8_t sum = 0;

	for (uint64_t i = 0; i < n; i++)
		sum = (uint8_t)(sum + data[i]);
}

static void read_sections(const struct elffile *file, size_t size)
{
	struct elffile_section s;

	for (uint32_t i = 0; elffile_section_at(file, i, &s) == 0; i++) {
		void *bytes;

		if (elffile_read_section(file, &s, SECTION_MAX, &bytes) != 0)
			continue;
		if (s.size > size)
			abort();
		touch(bytes, s.size);
		free(bytes);
	}
	elffile_section(file, ".text", &s);
}

static void convert_addresses(const struct elffile *file)
{
	const struct elffile_segment *segments;
	size_t n;

	segments = elffile_segments(file, &n);
	for (size_t i = 0; i < n; i++) {
		uint64_t vaddr, off;

		if (!elffile_vaddr_of_off(file, segments[i].off, &vaddr))
			continue;
		if (elffile_off_of_vaddr(file, vaddr, &off) && n == 1 && off != segments[i].off)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t id[ELFFILE_BUILD_ID_MAX];
	struct elffile *file;
	size_t n;

	if (elffile_open_memory(data, size, &file) != 0)
		return 0;
	read_sections(file, size);
	convert_addresses(file);
	if (elffile_build_id(file, id, &n) == 0)
		touch(id, n);
	elffile_free(file);
	return 0;
}
