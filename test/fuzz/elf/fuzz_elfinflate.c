// SPDX-License-Identifier: Apache-2.0
/* A compressed section: header and stream. */
#include "fuzz/fuzz.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "elf/elffile.h"
#include "elf/elfinflate.h"

#define OUT_MAX ((size_t)1 << 20)

static volatile uint8_t sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Elf64_Ehdr eh = {.e_type = ET_DYN, .e_machine = EM_X86_64, .e_ehsize = sizeof(eh)};
	struct elffile_section section = {.off = sizeof(eh), .size = size};
	uint8_t *bytes = malloc(sizeof(eh) + size);
	struct elffile *file;
	uint8_t *out;
	size_t n;

	if (!bytes)
		return 0;
	memcpy(eh.e_ident, ELFMAG, SELFMAG);
	eh.e_ident[EI_CLASS] = ELFCLASS64;
	eh.e_ident[EI_DATA] = ELFDATA2LSB;
	eh.e_ident[EI_VERSION] = EV_CURRENT;
	eh.e_version = EV_CURRENT;
	memcpy(bytes, &eh, sizeof(eh));
	if (size)
		memcpy(bytes + sizeof(eh), data, size);
	if (elffile_open_memory(bytes, sizeof(eh) + size, &file))
		abort(); /* the header is good */
	if (elfinflate(file, &section, OUT_MAX, (void **)&out, &n) == 0) {
		if (n > OUT_MAX)
			abort();
		for (size_t i = 0; i < n; i++)
			sink = out[i];
		free(out);
	}
	elffile_free(file);
	free(bytes);
	return 0;
}
