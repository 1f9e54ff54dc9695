// SPDX-License-Identifier: Apache-2.0
/* An ELF file with a Go line table. The seeds are made by test/support/gotable.c, one of each form
 * of the table, with and without sections. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "elf/elffile.h"
#include "gofile/gopclntab.h"

/* Lookups in each segment with code, and levels of inlining at each. */
#define PROBES 64
#define LEVELS 8

static volatile size_t sink;

static void probe(struct gopclntab *table, uint64_t vaddr)
{
	struct gopclntab_line line;

	for (size_t level = 0; level < LEVELS; level++) {
		int r = gopclntab_find(table, vaddr, &line);

		if (r < 0 || r >= GOPCLNTAB_OUTCOME_MAX)
			abort();
		if (r)
			return;
		sink += strlen(line.function) + strlen(line.file) + line.line + line.start_line;
		if (line.parent_pc < 0)
			return;
		vaddr = line.entry + (uint64_t)line.parent_pc;
	}
}

static void probe_segment(struct gopclntab *table, const struct elffile_segment *segment)
{
	uint64_t near = segment->memsz < 0x400 ? segment->memsz : 0x400;

	/* where the seeds have their code, then all over */
	for (uint64_t at = 0; at < near; at += 8)
		probe(table, segment->vaddr + at);
	for (uint64_t i = 0; i < PROBES; i++)
		probe(table, segment->vaddr + segment->memsz / PROBES * i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gopclntab *table = NULL;
	struct elffile *file = NULL;

	if (elffile_open_memory(data, size, &file) == 0 && gopclntab_open(file, &table) == 0) {
		const struct elffile_segment *segments;
		size_t n;

		segments = elffile_segments(file, &n);
		for (size_t i = 0; i < n && i < 8; i++)
			probe_segment(table, &segments[i]);
		sink += gopclntab_bytes(table) + gopclntab_reads(table);
	}
	gopclntab_free(table);
	elffile_free(file);
	return 0;
}
