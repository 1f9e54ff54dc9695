// SPDX-License-Identifier: Apache-2.0
/*
 * The digest is under a secret that only the cache has, so it tells not only what a disk did to a
 * file but also what somebody else wrote. It comes first when reading; what is checked afterwards
 * is what the program itself must have done wrong, and costs a look at each slot: a table that
 * leads outside itself never reaches the kernel.
 */
#include "unwindtable/tablefile.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cursor.h"

#define MAGIC	   "podprofT"
/* Of this file, and of what bpf/shared/table.h and unwind.h say. */
#define FORM	   1
#define UNIT_SHIFT 12 /* table.c's largest */

struct head {
	char magic[8];
	uint32_t form;
	uint32_t n_bytes;
	uint64_t contents;
	uint64_t maker;
	uint64_t n_rows;
	uint64_t n_cut;
	uint32_t n_ids;
	uint32_t n_rules;
	uint32_t n_rule_runs;
	uint32_t pad;
	struct table_exe exe;
};
_Static_assert(sizeof(struct head) == 96, "no padding that is not spelled out");

DEFINE_CLEANUP(struct table *, table_freep, table_free);

static uint64_t digest_of(const struct digest_key *key, const void *data, size_t n)
{
	struct digest d;

	digest_init(&d, key);
	digest_add(&d, data, n);
	return digest_end(&d);
}

/* ---------------------------------------------------------------- writing */

int tablefile_write(const struct table *table, const struct tablefile_id *id,
		    const struct digest_key *key, struct buf *ret)
{
	struct head head = {
		.magic = MAGIC,
		.form = FORM,
		.n_bytes = (uint32_t)table->n_bytes,
		.contents = id->contents,
		.maker = id->maker,
		.n_rows = table->n_rows,
		.n_cut = table->n_cut,
		.n_ids = table->n_ids,
		.n_rules = table->n_rules,
		.n_rule_runs = table->n_rule_runs,
		.exe = table->exe,
	};
	size_t start = ret->len;
	uint64_t digest;
	int r;

	r = buf_append(ret, &head, sizeof(head));
	if (!r)
		r = buf_append(ret, table->rules, table->n_rules * sizeof(*table->rules));
	if (!r)
		r = buf_append(ret, table->rule_runs,
			       table->n_rule_runs * sizeof(*table->rule_runs));
	if (!r)
		r = buf_append(ret, table->table_image, table->n_bytes);
	if (r)
		return r;
	digest = digest_of(key, ret->data + start, ret->len - start);
	return buf_append(ret, &digest, sizeof(digest));
}

/* ---------------------------------------------------------------- what may be in a table */

static bool rules_good(const struct table *t)
{
	for (uint32_t i = 0; i < t->n_rules; i++) {
		const struct unwind_rule *rule = &t->rules[i];

		if (rule->cfa >= UNWIND_CFA_MAX || rule->fp >= UNWIND_FP_MAX ||
		    rule->ra >= UNWIND_RA_MAX)
			return false;
	}
	return true;
}

/* Steps ascend from 0, each with a rule that there is; then nothing more. */
static bool rule_run_good(const struct table *t, const struct table_rule_run *rule_run)
{
	bool ended = false;

	for (size_t i = 0; i < TABLE_RULE_RUN_STEPS; i++) {
		ended |= rule_run->at[i] == TABLE_RULE_RUN_END;
		if (ended ? rule_run->at[i] != TABLE_RULE_RUN_END || rule_run->rules[i] != 0
			  : rule_run->at[i] > TABLE_RULE_RUN_END ||
				    rule_run->rules[i] >= t->n_rules ||
				    (i ? rule_run->at[i] <= rule_run->at[i - 1]
				       : rule_run->at[i] != 0))
			return false;
	}
	return true;
}

static bool ids_good(const struct table *t)
{
	uint64_t end = (uint64_t)t->exe.ids + 2 * (uint64_t)t->n_ids;

	if (t->exe.ids % 2 || !t->n_ids || t->n_ids > TABLE_IDS || end > t->n_bytes)
		return false;
	for (uint32_t i = 0; i < t->n_ids; i++) {
		uint16_t id;

		memcpy(&id, t->table_image + t->exe.ids + 2 * (size_t)i, sizeof(id));
		if (id & TABLE_RULE_RUN ? (id & (TABLE_RULE_RUN - 1)) >= t->n_rule_runs
					: id >= t->n_rules)
			return false;
	}
	return true;
}

/* A block's slots ascend, and what each says has an id. Where two have one address the second is
 * found, which has the upper part of a long id. */
static bool page_good(const struct table *t, const uint8_t (*slots)[2], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t id = slots[i][1];

		if (i && slots[i][0] < slots[i - 1][0])
			return false;
		if (i + 1 < n && slots[i][0] == slots[i + 1][0])
			continue;
		if (id >= TABLE_WIDE && (!i || slots[i - 1][0] != slots[i][0]))
			return false;
		if (id >= TABLE_WIDE)
			id = TABLE_WIDE + 256 * (id - TABLE_WIDE) + slots[i - 1][1];
		if (id >= t->n_ids)
			return false;
	}
	return true;
}

/* A group's slots are in the table image, in one page, and begin at its first address. */
static bool group_good(const struct table *t, size_t number)
{
	struct table_group group;
	uint64_t n = 0, end;
	const uint8_t(*slots)[2];

	memcpy(&group, t->table_image + number * sizeof(group), sizeof(group));
	for (size_t i = 0; i < TABLE_GROUP_BLOCKS; i++)
		n += group.n[i];
	end = (uint64_t)group.slots + 2 * n;
	if (group.slots % 2 || !group.n[0] || end > t->n_bytes ||
	    group.slots / TABLE_PAGE_BYTES != (end - 1) / TABLE_PAGE_BYTES)
		return false;
	slots = (const uint8_t(*)[2])(t->table_image + group.slots);
	if (slots[0][0] != 0)
		return false;
	for (size_t i = 0; i < TABLE_GROUP_BLOCKS; slots += group.n[i++])
		if (!page_good(t, slots, group.n[i]))
			return false;
	return true;
}

static bool table_image_good(const struct table *t)
{
	uint64_t n_groups =
		((uint64_t)t->exe.n_blocks + TABLE_GROUP_BLOCKS - 1) / TABLE_GROUP_BLOCKS;
	const struct table_exe *exe = &t->exe;

	if (!n_groups || n_groups * sizeof(struct table_group) > exe->ids || !ids_good(t) ||
	    exe->unit_shift > UNIT_SHIFT || exe->table_page ||
	    exe->n_table_pages != t->n_bytes / TABLE_PAGE_BYTES ||
	    exe->tail != exe->n_table_pages * (TABLE_PAGE_BYTES / TABLE_SUBPAGE_BYTES))
		return false;
	for (size_t i = 0; i < n_groups; i++)
		if (!group_good(t, i))
			return false;
	return true;
}

static bool table_good(const struct table *t)
{
	for (uint32_t i = 0; i < t->n_rule_runs; i++)
		if (!rule_run_good(t, &t->rule_runs[i]))
			return false;
	return rules_good(t) && table_image_good(t);
}

/* ---------------------------------------------------------------- reading */

static bool sizes_good(const struct head *h, size_t left)
{
	uint64_t want = h->n_rules * (uint64_t)sizeof(struct unwind_rule) +
			h->n_rule_runs * (uint64_t)sizeof(struct table_rule_run) + h->n_bytes;

	return want == left && h->n_bytes && h->n_bytes % TABLE_SUBPAGE_BYTES == 0 &&
	       h->n_bytes <= TABLE_BYTES_MAX && h->n_rules <= TABLE_RULE_RUN &&
	       h->n_rule_runs <= TABLE_IDS;
}

/* @n elements of @size bytes; NULL without memory. */
static void *copy_out(struct cursor *c, size_t n, size_t size, size_t n_alloc)
{
	void *ret = calloc(n_alloc, size);
	const void *bytes = NULL;

	if (ret && cursor_bytes(c, n * size, &bytes) && n)
		memcpy(ret, bytes, n * size);
	return ret;
}

/* @c has as many bytes as the head says. */
static int read_table(const struct head *h, struct cursor *c, struct table **ret)
{
	_cleanup_(table_freep) struct table *t = calloc(1, sizeof(*t));
	size_t table_pages = (h->n_bytes + TABLE_PAGE_BYTES - 1) / TABLE_PAGE_BYTES;

	if (!t)
		return -ENOMEM;
	t->exe = h->exe;
	t->n_bytes = h->n_bytes;
	t->n_ids = h->n_ids;
	t->n_rules = h->n_rules;
	t->n_rule_runs = h->n_rule_runs;
	t->n_rows = h->n_rows;
	t->n_cut = h->n_cut;
	t->rules = copy_out(c, t->n_rules, sizeof(*t->rules), (size_t)t->n_rules + 1);
	t->rule_runs =
		copy_out(c, t->n_rule_runs, sizeof(*t->rule_runs), (size_t)t->n_rule_runs + 1);
	t->table_image = copy_out(c, t->n_bytes, 1, table_pages * TABLE_PAGE_BYTES);
	if (!t->rules || !t->rule_runs || !t->table_image)
		return -ENOMEM;
	if (!table_good(t))
		return TABLEFILE_DAMAGED;
	*ret = take_ptr(t);
	return 0;
}

int tablefile_read(const void *data, size_t n, const struct tablefile_id *id,
		   const struct digest_key *key, struct table **ret)
{
	struct cursor c, body;
	struct head head;
	uint64_t digest;
	const void *bytes;

	cursor_init(&c, data, n);
	if (n > TABLEFILE_BYTES_MAX || n < sizeof(head) + sizeof(digest) ||
	    !cursor_sub(&c, n - sizeof(digest), &body) || !cursor_u64(&c, &digest) ||
	    digest != digest_of(key, data, n - sizeof(digest)) ||
	    !cursor_bytes(&body, sizeof(head), &bytes))
		return TABLEFILE_DAMAGED;
	memcpy(&head, bytes, sizeof(head));
	if (memcmp(head.magic, MAGIC, sizeof(head.magic)) != 0)
		return TABLEFILE_DAMAGED;
	if (head.form != FORM || head.contents != id->contents || head.maker != id->maker)
		return TABLEFILE_FOREIGN;
	return sizes_good(&head, cursor_left(&body)) ? read_table(&head, &body, ret)
						     : TABLEFILE_DAMAGED;
}
