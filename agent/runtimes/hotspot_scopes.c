// SPDX-License-Identifier: Apache-2.0
/*
 * A description of an address (PcDesc) has the distance of a scope in the compressed scopes. A
 * scope (ScopeDesc) begins with three numbers: the distance of the caller's scope, 0 for the
 * outermost; the index of the method among the code's pointers, from 1 on; the bytecode plus one, 0
 * for the entry of the method. A compiler writes callers before callees, so the distances decrease.
 *
 * Up to 22, the tables are in the code's block (8 has offsets, later ones a pointer). From 23 on,
 * descriptions and scopes are in memory of their own ("immutable data"), and from 25 on, the
 * pointers too ("mutable data").
 */
#include "runtimes/hotspot_scopes.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "procmap/memory.h"
#include "runtimes/hotspot_number.h"

/* Bytes of the tables of one code. Reached: inlined functions and lines are not known. */
#define TABLES_BYTES_MAX (64ull << 20)
/* Bytes of a description; HotSpot has 16. Reached: the same. */
#define DESC_BYTES_MAX	 32
/* Bytes of the code that makes a frame, by far. Reached: it counts as any other code. */
#define CODE_WHOLE_MAX	 4096
/* Descriptions of one read: a search ends with so many. */
#define DESCS_BLOCK	 128
/* Bytes of a compressed scope, and of the piece with it that is read. */
#define SCOPE_BYTES	 (3 * HOTSPOT_NUMBER_BYTES)
#define PIECE_BYTES	 256
/* Pointers of one code, 8 bytes each. Reached: inlined functions and lines are not known. */
#define METHODS_MAX	 (1u << 20)

/* ---------------------------------------------------------------- tables */

#define WORDS 14

/* The words of a blob that lead to its tables. Offsets have two or four bytes. */
struct words {
	uint64_t code, scopes, immutable, mutable;
	uint32_t code_off, descs_off, descs_end, scopes_off, immutable_bytes;
	uint32_t methods_off, data_off, relocation_bytes, stubs_off, complete;
};

/* The ranges of the words, as far as the layout has them. */
static size_t find_words(const struct hotspot_layout *layout, uint64_t blob, struct words *ret,
			 struct memory_range ranges[WORDS])
{
	const struct {
		enum hotspot_field field;
		void *to;
		size_t n;
	} fields[WORDS] = {
		{HOTSPOT_BLOB_CODE, &ret->code, 8},
		{HOTSPOT_BLOB_DISTANCE, &ret->code_off, 4},
		{HOTSPOT_BLOB_COMPLETE, &ret->complete, 4},
		{HOTSPOT_BLOB_STUBS, &ret->stubs_off, 4},
		{HOTSPOT_BLOB_SCOPES, &ret->scopes, 8},
		{HOTSPOT_BLOB_SCOPES_OFF, &ret->scopes_off, 4},
		{HOTSPOT_BLOB_DESCS_OFF, &ret->descs_off, 4},
		{HOTSPOT_BLOB_DESCS_END, &ret->descs_end, 4},
		{HOTSPOT_BLOB_IMMUTABLE, &ret->immutable, 8},
		{HOTSPOT_BLOB_IMMUTABLE_BYTES, &ret->immutable_bytes, 4},
		{HOTSPOT_BLOB_METHODS_OFF, &ret->methods_off, 4},
		{HOTSPOT_BLOB_DATA_OFF, &ret->data_off, 4},
		{HOTSPOT_BLOB_MUTABLE, &ret->mutable, 8},
		{HOTSPOT_BLOB_RELOCATION_BYTES, &ret->relocation_bytes, 4},
	};
	size_t n = 0;

	*ret = (struct words){0};
	for (size_t i = 0; i < WORDS; i++) {
		const enum hotspot_field field = fields[i].field;

		if (layout->known[field])
			ranges[n++] =
				(struct memory_range){blob + layout->fields[field], fields[i].to,
						      layout->is_short[field] ? 2 : fields[i].n};
	}
	return n;
}

static bool is_sane(const struct hotspot_tables *t)
{
	return t->descs < t->descs_limit && t->scopes < t->scopes_limit &&
	       t->descs_limit - t->descs <= TABLES_BYTES_MAX &&
	       t->scopes_limit - t->scopes <= TABLES_BYTES_MAX && t->methods;
}

static bool has_descs(const struct hotspot_layout *layout)
{
	const uint64_t bytes = layout->bytes[HOTSPOT_DESC];

	return bytes >= 8 && bytes <= DESC_BYTES_MAX && layout->known[HOTSPOT_DESC_PC] &&
	       layout->known[HOTSPOT_DESC_SCOPE] && layout->fields[HOTSPOT_DESC_PC] <= bytes - 4 &&
	       layout->fields[HOTSPOT_DESC_SCOPE] <= bytes - 4 &&
	       layout->known[HOTSPOT_BLOB_DESCS_OFF];
}

int hotspot_tables_read(struct memory *m, const struct hotspot_target *target, uint64_t blob,
			const struct memory_range *others, size_t n_others,
			struct hotspot_tables *ret)
{
	const struct hotspot_layout *layout = &target->layout;
	const bool *known = layout->known;
	struct memory_range ranges[WORDS + HOTSPOT_TABLES_OTHERS_MAX];
	struct words w = {.code = 0};
	struct hotspot_tables t;
	size_t n = 0;
	int r;

	*ret = (struct hotspot_tables){0};
	if (n_others > HOTSPOT_TABLES_OTHERS_MAX)
		return -EINVAL;
	if (has_descs(layout))
		n = find_words(layout, blob, &w, ranges);
	for (size_t i = 0; i < n_others; i++)
		ranges[n++] = others[i];
	r = hotspot_outcome_of_memory(memory_read_ranges(m, ranges, n));
	if (r || !has_descs(layout))
		return r;
	t.code = known[HOTSPOT_BLOB_DISTANCE] ? blob + w.code_off : w.code;
	/* negative: never */
	t.code_whole = t.code + (w.complete < CODE_WHOLE_MAX ? w.complete : 0);
	t.code_limit = known[HOTSPOT_BLOB_STUBS] ? blob + w.stubs_off : t.code;
	if (known[HOTSPOT_BLOB_IMMUTABLE]) {
		t.descs = w.immutable + w.descs_off;
		t.scopes = w.immutable + w.scopes_off;
		t.descs_limit = t.scopes;
		t.scopes_limit = w.immutable + w.immutable_bytes;
	} else {
		t.descs = blob + w.descs_off;
		t.descs_limit = blob + w.descs_end;
		t.scopes = known[HOTSPOT_BLOB_SCOPES] ? w.scopes : blob + w.scopes_off;
		t.scopes_limit = t.descs;
	}
	if (known[HOTSPOT_BLOB_MUTABLE])
		t.methods = w.mutable + w.relocation_bytes;
	else
		t.methods = blob + w.methods_off + (known[HOTSPOT_BLOB_IMMUTABLE] ? w.data_off : 0);
	if (is_sane(&t))
		*ret = t;
	return 0;
}

/* ---------------------------------------------------------------- descriptions */

static int32_t int_at(const uint8_t *bytes)
{
	int32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

/* A description: the place of the scope is 0 if there is none. */
struct desc {
	uint64_t i; /* the number of descriptions if there is none */
	uint32_t scope;
};

/* The first description behind the address @off. */
static int find_desc(struct memory *m, const struct hotspot_layout *layout,
		     const struct hotspot_tables *t, int32_t off, struct desc *ret)
{
	const uint64_t bytes = layout->bytes[HOTSPOT_DESC];
	const uint64_t n = (t->descs_limit - t->descs) / bytes;
	uint64_t low = 0, limit = n;
	uint8_t descs[(DESCS_BLOCK + 1) * DESC_BYTES_MAX];
	const uint8_t *desc = descs;
	int r;

	/* all before @low are at or before @off, all from @limit on behind it */
	while (limit - low > DESCS_BLOCK) {
		const uint64_t middle = low + (limit - low) / 2;

		r = hotspot_outcome_of_memory(
			memory_read(m, t->descs + middle * bytes, descs, bytes));
		if (r)
			return r;
		if (int_at(descs + layout->fields[HOTSPOT_DESC_PC]) > off)
			limit = middle;
		else
			low = middle + 1;
	}
	/* the one at @limit may be the answer */
	limit += limit < n;
	r = hotspot_outcome_of_memory(
		memory_read(m, t->descs + low * bytes, descs, (limit - low) * bytes));
	if (r)
		return r;
	while (low < limit && int_at(desc + layout->fields[HOTSPOT_DESC_PC]) <= off) {
		low++;
		desc += bytes;
	}
	*ret = (struct desc){low, 0};
	if (low < limit)
		ret->scope = (uint32_t)int_at(desc + layout->fields[HOTSPOT_DESC_SCOPE]);
	return 0;
}

/* The scope for the address @off: of the next description, or, behind the last in the code, of the
 * description before. 0: there is none. */
static int find_scope(struct memory *m, const struct hotspot_layout *layout,
		      const struct hotspot_tables *t, int32_t off, uint32_t *ret)
{
	const uint64_t bytes = layout->bytes[HOTSPOT_DESC];
	struct desc desc;
	int r = find_desc(m, layout, t, off, &desc);

	*ret = desc.scope;
	if (r || desc.scope || !desc.i || t->code + (uint32_t)off >= t->code_limit)
		return r;
	return hotspot_outcome_of_memory(memory_read(
		m, t->descs + (desc.i - 1) * bytes + layout->fields[HOTSPOT_DESC_SCOPE], ret, 4));
}

/* ---------------------------------------------------------------- scopes */

struct scope {
	uint32_t sender; /* 0: none */
	uint32_t method; /* index */
	uint32_t bci;
};

/* Compressed scopes that were read: [@begin, @begin + @n). Callers are a little before callees. */
struct piece {
	uint32_t begin;
	uint32_t n;
	uint8_t bytes[PIECE_BYTES];
};

/* The piece has the scope @at. */
static int read_piece(struct memory *m, const struct hotspot_tables *t, uint32_t at,
		      struct piece *piece)
{
	const uint64_t all = t->scopes_limit - t->scopes;
	const uint64_t end = at + SCOPE_BYTES < all ? at + SCOPE_BYTES : all;

	if (at >= piece->begin && end <= piece->begin + piece->n)
		return 0;
	piece->begin = end > PIECE_BYTES ? (uint32_t)(end - PIECE_BYTES) : 0;
	piece->n = (uint32_t)(end - piece->begin);
	return hotspot_outcome_of_memory(
		memory_read(m, t->scopes + piece->begin, piece->bytes, piece->n));
}

/* HOTSPOT_ODD: no scope. */
static int read_scope(struct memory *m, const struct hotspot_tables *t, bool no_zero, uint32_t at,
		      struct piece *piece, struct scope *ret)
{
	struct hotspot_numbers numbers = {.no_zero = no_zero};
	uint32_t bci;
	int r;

	if (at >= t->scopes_limit - t->scopes)
		return HOTSPOT_ODD;
	r = read_piece(m, t, at, piece);
	if (r)
		return r;
	numbers.at = piece->bytes + (at - piece->begin);
	numbers.n = piece->n - (at - piece->begin);
	if (!hotspot_next_number(&numbers, &ret->sender) ||
	    !hotspot_next_number(&numbers, &ret->method) || !hotspot_next_number(&numbers, &bci) ||
	    ret->sender >= at || ret->method - 1 >= METHODS_MAX)
		return HOTSPOT_ODD;
	ret->bci = bci ? bci - 1 : 0;
	return 0;
}

/* The scopes from @at outwards: bytecodes, and @indices of the methods. */
static int read_chain(struct memory *m, const struct hotspot_tables *t, bool no_zero, uint32_t at,
		      uint32_t indices[RUNTIMES_PLACES_MAX], struct hotspot_scopes *ret)
{
	struct piece piece;

	piece.n = 0;
	for (ret->n = 0; at && ret->n < RUNTIMES_PLACES_MAX; ret->n++) {
		struct scope scope;
		int r = read_scope(m, t, no_zero, at, &piece, &scope);

		if (r)
			return r;
		ret->items[ret->n].bci = scope.bci;
		indices[ret->n] = scope.method;
		at = scope.sender;
	}
	if (at) /* the compiled method stays last */
		ret->items[ret->n - 1].bci = HOTSPOT_NO_BCI;
	return 0;
}

static int read_methods(struct memory *m, const struct hotspot_tables *t, const uint32_t *indices,
			struct hotspot_scopes *ret)
{
	struct memory_range ranges[RUNTIMES_PLACES_MAX];
	int r;

	for (size_t i = 0; i < ret->n; i++)
		ranges[i] = (struct memory_range){t->methods + (indices[i] - 1) * 8ull,
						  &ret->items[i].method, 8};
	r = hotspot_outcome_of_memory(memory_read_ranges(m, ranges, ret->n));
	for (size_t i = 0; !r && i < ret->n; i++)
		if (!ret->items[i].method || ret->items[i].method % 8)
			r = HOTSPOT_ODD;
	return r;
}

static int read_scopes(struct memory *m, const struct hotspot_target *target,
		       const struct hotspot_tables *t, uint64_t method, uint64_t pc,
		       struct hotspot_scopes *ret)
{
	const bool no_zero = target->version[0] >= HOTSPOT_VERSION_NO_ZERO;
	uint32_t indices[RUNTIMES_PLACES_MAX], at = 0;
	struct hotspot_scope *last;
	int r = HOTSPOT_ODD;

	if (pc >= t->code && pc < t->code_whole) {
		ret->items[0] = (struct hotspot_scope){method, 0};
		ret->n = 1;
		return 0;
	}
	if (t->descs && pc >= t->code && pc - t->code < INT32_MAX)
		r = find_scope(m, &target->layout, t, (int32_t)(pc - t->code), &at);
	if (!r)
		r = at ? read_chain(m, t, no_zero, at, indices, ret) : HOTSPOT_ODD;
	if (!r)
		r = read_methods(m, t, indices, ret);
	if (r)
		return r;
	last = &ret->items[ret->n - 1];
	if (last->bci == HOTSPOT_NO_BCI)
		last->method = method;
	return last->method == method ? 0 : HOTSPOT_ODD;
}

int hotspot_scopes_read(struct memory *m, const struct hotspot_target *target,
			const struct hotspot_tables *tables, uint64_t method, uint64_t pc,
			struct hotspot_scopes *ret)
{
	int r = read_scopes(m, target, tables, method, pc, ret);

	if (r == HOTSPOT_ODD || r == HOTSPOT_UNREADABLE) {
		ret->items[0] = (struct hotspot_scope){method, HOTSPOT_NO_BCI};
		ret->n = 1;
		r = 0;
	}
	return r;
}
