// SPDX-License-Identifier: Apache-2.0
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "unwindtable/tablefile.h"

/* Where the head says for what the table is. */
#define CONTENTS_AT 16
#define MAKER_AT    24

/* The bytes are a file without its digest, which is made here, so that what is behind it is tried.
 * A table that is taken is one in which every address has an answer. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct digest_key key = {{1, 2, 3, 4}};
	struct tablefile_id id = {0};
	struct unwind_rule rule = {0};
	struct table *table;
	struct digest d;
	uint64_t digest;
	uint8_t *file;

	file = malloc(size + sizeof(digest));
	if (!file)
		return 0;
	memcpy(file, data, size);
	digest_init(&d, &key);
	digest_add(&d, data, size);
	digest = digest_end(&d);
	memcpy(file + size, &digest, sizeof(digest));
	if (size >= MAKER_AT + sizeof(id.maker)) {
		memcpy(&id.contents, data + CONTENTS_AT, sizeof(id.contents));
		memcpy(&id.maker, data + MAKER_AT, sizeof(id.maker));
	}
	if (tablefile_read(file, size + sizeof(digest), &id, &key, &table) == 0) {
		for (uint64_t off = 0; off < 1u << 14; off += 7)
			if (table_lookup(table, table->exe.start + off, &rule) == TABLE_TORN)
				abort();
		for (uint64_t bit = 1; bit; bit <<= 1)
			if (table_lookup(table, table->exe.start + bit, &rule) == TABLE_TORN)
				abort();
		table_free(table);
	}
	free(file);
	return 0;
}
