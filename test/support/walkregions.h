/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for a walk: the pieces in regions[], which the test defines before. No include guard, as
 * with walkbuilt.h. */

static size_t n_reads;

WINDOW_INLINE int window_read(const struct table_space *space, void *to, __u64 n, __u64 address)
{
	(void)space;
	n_reads++;
	for (size_t i = 0; i < array_size(regions); i++) {
		const uint64_t off = address - regions[i]->start;

		if (off >= sizeof(regions[i]->words) || n > sizeof(regions[i]->words) - off)
			continue;
		memcpy(to, (const char *)regions[i]->words + off, n);
		return 0;
	}
	memset(to, 0, n);
	return -1;
}

static void put(uint64_t address, const void *bytes, size_t n)
{
	for (size_t i = 0; i < array_size(regions); i++)
		if (address - regions[i]->start < sizeof(regions[i]->words))
			memcpy((char *)regions[i]->words + (address - regions[i]->start), bytes, n);
}

static void put_word(uint64_t address, uint64_t word)
{
	put(address, &word, sizeof(word));
}
