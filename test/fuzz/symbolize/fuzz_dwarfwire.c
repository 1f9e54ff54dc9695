// SPDX-License-Identifier: Apache-2.0
/* An answer of the process that reads DWARF, without its header. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "symbolize/dwarfwire.h"
#include "symbolize/linecache.h"
#include "symbolize/symbolizer.h"

#define CACHE_BYTES (1u << 20)
#define ADDRESSES   64

/* Keeps the answer, as its source does. */
static void keep(struct dwarfwire_reader *reader, struct linecache *cache)
{
	static struct symbol_line lines[SYMBOL_LINES_MAX];
	const struct linecache_answer *kept;
	size_t n;

	for (uint64_t vaddr = 0; vaddr < ADDRESSES; vaddr++) {
		if (dwarfwire_next(reader, lines, &n))
			return;
		if (linecache_add(cache, vaddr, lines, n) < 0)
			continue;
		kept = linecache_find(cache, vaddr);
		if (!kept)
			continue;
		if (kept->n != n)
			abort();
		for (size_t i = 0; i < n; i++)
			if (strcmp(kept->lines[i].function, lines[i].function) != 0 ||
			    strcmp(kept->lines[i].file, lines[i].file) != 0)
				abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dwarfwire_wanted wanted;
	struct dwarfwire_reader reader;
	struct linecache cache;

	if (size > DWARFWIRE_ANSWER_MAX || dwarfwire_reader_init(&reader, data, size))
		return 0;
	linecache_init(&cache, CACHE_BYTES);
	keep(&reader, &cache);
	while (dwarfwire_wanted(&reader, &wanted))
		if (wanted.path[0] && wanted.path[0] != '/')
			abort();
	linecache_deinit(&cache);
	dwarfwire_reader_deinit(&reader);
	return 0;
}
