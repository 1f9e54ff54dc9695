// SPDX-License-Identifier: Apache-2.0
#include "support/packagemake.h"

#include <stdlib.h>
#include <string.h>

enum { INFO, ABBREV, LINE, STR_OFFSETS };

void packagemake_init(struct packagemake *p, uint32_t version, const uint32_t *offs, size_t n,
		      const char *strings, size_t n_strings)
{
	static const char info[] = "other" PACKAGEMAKE_INFO, abbrev[] = "ab", line[] = "lll";
	const uint32_t header[2] = {(uint32_t)(n * sizeof(*offs) + 4), 5};
	const size_t n_header = version == 5 ? sizeof(header) : 0;
	size_t at;

	*p = (struct packagemake){
		.index = {
			.version = version,
			.columns = PACKAGEMAKE_COLUMNS,
			.units = 2,
			.slots = PACKAGEMAKE_SLOTS,
			.kinds = {1, 3, 4, 6},
			.offs = {[1] = {5, 0, 0, 0}},
			.sizes = {[1] = {4, 2, 3, (uint32_t)(n_header + n * sizeof(*offs))}},
		}};
	/* the first slot of the id is taken by another unit */
	p->index.ids[PACKAGEMAKE_ID % PACKAGEMAKE_SLOTS] = 1;
	p->index.rows[PACKAGEMAKE_ID % PACKAGEMAKE_SLOTS] = 1;
	at = (PACKAGEMAKE_ID + (((PACKAGEMAKE_ID >> 32) & (PACKAGEMAKE_SLOTS - 1)) | 1)) %
	     PACKAGEMAKE_SLOTS;
	p->index.ids[at] = PACKAGEMAKE_ID;
	p->index.rows[at] = 2;
	elfmake_init(&p->elf, ET_REL, 4096 + n * sizeof(*offs) + n_strings);
	p->elf.eh.e_machine = EM_X86_64;
	at = elfmake_bytes(&p->elf, info, sizeof(info) - 1);
	elfmake_section(&p->elf, ".debug_info.dwo", SHT_PROGBITS, 0, 0, at, sizeof(info) - 1);
	at = elfmake_bytes(&p->elf, abbrev, sizeof(abbrev) - 1);
	elfmake_section(&p->elf, ".debug_abbrev.dwo", SHT_PROGBITS, 0, 0, at, sizeof(abbrev) - 1);
	at = elfmake_bytes(&p->elf, line, sizeof(line) - 1);
	elfmake_section(&p->elf, ".debug_line.dwo", SHT_PROGBITS, 0, 0, at, sizeof(line) - 1);
	at = elfmake_bytes(&p->elf, header, n_header);
	elfmake_bytes(&p->elf, offs, n * sizeof(*offs));
	elfmake_section(&p->elf, ".debug_str_offsets.dwo", SHT_PROGBITS, 0, 0, at,
			n_header + n * sizeof(*offs));
	at = elfmake_bytes(&p->elf, strings, n_strings);
	elfmake_section(&p->elf, ".debug_str.dwo", SHT_PROGBITS, 0, 0, at, n_strings);
}

void packagemake_finish(struct packagemake *p)
{
	size_t at = elfmake_bytes(&p->elf, &p->index, sizeof(p->index));

	elfmake_section(&p->elf, ".debug_cu_index", SHT_PROGBITS, 0, 0, at, sizeof(p->index));
	elfmake_finish(&p->elf);
}

void packagemake_deinit(struct packagemake *p)
{
	elfmake_deinit(&p->elf);
}
