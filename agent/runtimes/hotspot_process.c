// SPDX-License-Identifier: Apache-2.0
/*
 * CodeCache::_heaps is an array of pointers to code heaps: three, or one of all code in small
 * configurations; 8 has the single heap CodeCache::_heap. HotSpot reserves the memory at once, and
 * a heap never moves. The interpreter is one blob of the first heap, generated before the first
 * Java code runs.
 */
#include "runtimes/hotspot_process.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "procmap/memory.h"
#include "runtimes/hotspot_counters.h"
#include "runtimes/runtime_files.h"

/* Bytes of all code: HotSpot's own limit. Reached: `odd`, native frames only. */
#define CODE_BYTES_MAX	      (2ull << 30)
/* Bytes of the interpreter, by far. Reached: `odd`, native frames only. */
#define INTERPRETER_BYTES_MAX (4ull << 20)

/* Offsets in a structure of the virtual machine. Reached: `version`, native frames only. */
#define OFFSET_MAX 1024

/* Parts of the interpreter; JDK 17 has 270. Reached: `odd`, native frames only. */
#define PARTS_MAX  4096
/* The description of the parts at the beginning of methods: "method entry point (kind = ...)". */
#define ENTRY_TEXT "method entry point"

static int probe(const struct elffile *ef, void *ret)
{
	return hotspot_image_probe(ef, ret);
}

const struct runtime_probe hotspot_probe = {
	.probe = probe,
	.bytes = sizeof(struct hotspot_image),
	.malformed = HOTSPOT_MALFORMED,
	.gone = HOTSPOT_GONE,
	.denied = HOTSPOT_DENIED,
};

_Static_assert((int)RUNTIME_FILES_ABSENT == (int)HOTSPOT_ABSENT, "outcomes of files");

/* ---------------------------------------------------------------- reading */

static int read_word(struct memory *m, uint64_t at, void *ret)
{
	return hotspot_outcome_of_memory(memory_read(m, at, ret, sizeof(uint64_t)));
}

static int read_int(struct memory *m, uint64_t at, uint32_t *ret)
{
	return hotspot_outcome_of_memory(memory_read(m, at, ret, sizeof(*ret)));
}

/* In 8, the virtual machine has a number of its own, 25, and the minor number is the update's. */
static int read_version(struct memory *m, const struct hotspot_layout *layout, uint32_t *ret)
{
	const uint64_t *f = layout->fields;

	if (layout->known[HOTSPOT_HEAP]) {
		ret[0] = 8;
		return read_int(m, f[HOTSPOT_MINOR], &ret[2]);
	}
	if (!layout->known[HOTSPOT_SECURITY])
		return HOTSPOT_VERSION;
	for (int i = 0; i < 3; i++) {
		int r = read_int(m, f[HOTSPOT_MAJOR + i], &ret[i]);

		if (r)
			return r;
	}
	return 0;
}

/* ---------------------------------------------------------------- offsets */

static bool is_word(uint64_t off)
{
	return off < OFFSET_MAX && off % 8 == 0;
}

static bool is_int(uint64_t off)
{
	return off < OFFSET_MAX && off % 4 == 0;
}

static uint64_t last_of(const uint64_t *offs, size_t n)
{
	uint64_t last = 0;

	for (size_t i = 0; i < n; i++)
		last = offs[i] > last ? offs[i] : last;
	return last;
}

/* The offsets of the walker. False if the offsets do not fit the walker's reads. */
static bool take_offsets(const struct hotspot_layout *layout, struct hotspot_process *p)
{
	const uint64_t *f = layout->fields;
	const bool is_distance = layout->known[HOTSPOT_BLOB_DISTANCE];
	const uint64_t code = f[is_distance ? HOTSPOT_BLOB_DISTANCE : HOTSPOT_BLOB_CODE];
	const uint64_t blob[] = {f[HOTSPOT_BLOB_NAME],	   f[HOTSPOT_BLOB_SIZE],
				 f[HOTSPOT_BLOB_COMPLETE], code,
				 f[HOTSPOT_BLOB_METHOD],   f[HOTSPOT_BLOB_COMPILE_ID]};
	const uint64_t names = f[HOTSPOT_CONST_NAME] & ~7ull;
	const uint64_t counter = f[HOTSPOT_SYMBOL_N] ? 0 : 2;

	if (!is_word(blob[0]) || !is_int(blob[1]) || blob[2] % 2 || blob[2] >= OFFSET_MAX ||
	    !(is_distance ? is_int(code) : is_word(code)) || !is_word(blob[4]) ||
	    !is_int(blob[5]) || last_of(blob, array_size(blob)) / 8 * 8 + 8 > HOTSPOT_BLOB_BYTES)
		return false;
	if (!is_word(f[HOTSPOT_METHOD_CONST]) || !is_word(f[HOTSPOT_CONST_CONSTANTS]) ||
	    f[HOTSPOT_CONST_CONSTANTS] + 8 > HOTSPOT_CONST_BYTES ||
	    names + 8 > HOTSPOT_CONST_BYTES || (f[HOTSPOT_CONST_SIGNATURE] & ~7ull) != names ||
	    layout->bytes[HOTSPOT_CONST] >= OFFSET_MAX || !is_word(layout->bytes[HOTSPOT_BLOCK]))
		return false;
	if (!is_word(f[HOTSPOT_POOL_HOLDER]) || !is_word(layout->bytes[HOTSPOT_POOL]) ||
	    !is_word(f[HOTSPOT_CLASS_NAME]) || f[HOTSPOT_CONST_NAME] % 2 ||
	    (f[HOTSPOT_SYMBOL_N] != 0 && f[HOTSPOT_SYMBOL_N] != 4) ||
	    f[HOTSPOT_SYMBOL_BODY] >= OFFSET_MAX)
		return false;
	p->name_index = (uint16_t)(f[HOTSPOT_CONST_NAME] % 8);
	p->pool_holder = (uint16_t)f[HOTSPOT_POOL_HOLDER];
	p->pool_entries = (uint16_t)layout->bytes[HOTSPOT_POOL];
	p->class_name = (uint16_t)f[HOTSPOT_CLASS_NAME];
	p->symbol_n = (uint16_t)f[HOTSPOT_SYMBOL_N];
	p->symbol_text = (uint16_t)f[HOTSPOT_SYMBOL_BODY];
	p->symbol_kept = ~(0xffffull << counter * 8);
	p->block_header = (uint16_t)layout->bytes[HOTSPOT_BLOCK];
	p->blob_name = (uint16_t)blob[0];
	p->blob_size = (uint16_t)blob[1];
	p->blob_complete = (uint16_t)blob[2];
	p->blob_code = (uint16_t)blob[3];
	p->blob_method = (uint16_t)blob[4];
	p->blob_compile_id = (uint16_t)blob[5];
	p->blob_bytes = (uint16_t)(last_of(blob, array_size(blob)) / 8 * 8);
	p->method_const = (uint16_t)f[HOTSPOT_METHOD_CONST];
	p->const_constants = (uint16_t)f[HOTSPOT_CONST_CONSTANTS];
	p->const_names = (uint16_t)names;
	p->const_code = (uint16_t)layout->bytes[HOTSPOT_CONST];
	p->code_is_distance = is_distance;
	p->complete_is_short = layout->is_short[HOTSPOT_BLOB_COMPLETE];
	/* from 9 on, the class is in a slot between; on arm64 with another one that keeps the
	 * frame's size even */
	p->frame_bcp = layout->known[HOTSPOT_HEAP] ? 56 : layout->machine == EM_AARCH64 ? 72 : 64;
	return true;
}

/* The frame of Continuation.enterSpecial() has a ContinuationEntry. Three words behind the parent
 * are the two numbers. The description has the parent from 27 on; it is first before 26. False if
 * the offsets do not fit the walker's reads. */
static bool take_entry(const struct hotspot_target *target, struct hotspot_process *p)
{
	const struct hotspot_layout *layout = &target->layout;
	const uint64_t described = layout->bytes[HOTSPOT_ENTRY];
	const uint64_t bytes = described ? described : 56;
	uint64_t parent = target->version[0] < 26 ? 0 : 8;

	if (layout->known[HOTSPOT_ENTRY_PARENT])
		parent = layout->fields[HOTSPOT_ENTRY_PARENT];
	if (!is_word(parent) || bytes > HOTSPOT_ENTRY_BYTES || parent + 32 > bytes)
		return false;
	p->entry_bytes = (uint16_t)((bytes + 15) & ~15ull);
	p->entry_args = (uint16_t)(parent + 24);
	return true;
}

/* ---------------------------------------------------------------- code heaps */

static int read_heap(struct memory *m, const uint64_t *f, uint64_t at, struct hotspot_heap *ret,
		     uint32_t *ret_shift)
{
	const uint64_t memory = at + f[HOTSPOT_HEAP_MEMORY];
	const struct memory_range ranges[] = {
		{memory + f[HOTSPOT_SPACE_LOW], &ret->low, 8},
		{memory + f[HOTSPOT_SPACE_HIGH], &ret->limit, 8},
		{at + f[HOTSPOT_HEAP_SEGMENTS] + f[HOTSPOT_SPACE_USED], &ret->segments, 8},
		{at + f[HOTSPOT_HEAP_SHIFT], ret_shift, 4},
	};

	return hotspot_outcome_of_memory(memory_read_ranges(m, ranges, array_size(ranges)));
}

static bool overlaps(const struct hotspot_process *p, size_t n, const struct hotspot_heap *heap)
{
	for (size_t i = 0; i < n; i++)
		if (heap->low < p->heaps[i].limit && p->heaps[i].low < heap->limit)
			return true;
	return false;
}

static bool is_heap(const struct hotspot_process *p, size_t n, const struct hotspot_heap *heap)
{
	return heap->low >= p->low && heap->limit <= p->limit && heap->low < heap->limit &&
	       heap->low % MEMORY_PAGE_BYTES == 0 && heap->segments && !overlaps(p, n, heap);
}

/* The addresses of the heaps, and the bounds of all code; unknown with the only heap of 8. */
static int list_heaps(struct memory *m, const struct hotspot_layout *layout,
		      uint64_t heaps[HOTSPOT_HEAPS_MAX], uint32_t *ret_n, struct hotspot_process *p)
{
	const uint64_t *f = layout->fields;
	uint64_t array = 0;
	int r;

	if (layout->known[HOTSPOT_HEAP]) {
		*ret_n = 1;
		r = read_word(m, f[HOTSPOT_HEAP], &heaps[0]);
		return !r && !heaps[0] ? HOTSPOT_NOT_READY : r;
	}
	r = read_word(m, f[HOTSPOT_HEAPS], &array);
	if (!r)
		r = read_word(m, f[HOTSPOT_LOW], &p->low);
	if (!r)
		r = read_word(m, f[HOTSPOT_HIGH], &p->limit);
	if (!r && (!array || p->limit <= p->low))
		return HOTSPOT_NOT_READY;
	if (!r)
		r = read_int(m, array + f[HOTSPOT_ARRAY_N], ret_n);
	if (!r && !*ret_n)
		return HOTSPOT_NOT_READY;
	if (!r && *ret_n > HOTSPOT_HEAPS_MAX)
		return HOTSPOT_ODD;
	if (!r)
		r = read_word(m, array + f[HOTSPOT_ARRAY_DATA], &array);
	return r ? r
		 : hotspot_outcome_of_memory(memory_read(m, array, heaps, *ret_n * sizeof(*heaps)));
}

static int read_heaps(struct memory *m, const struct hotspot_layout *layout,
		      struct hotspot_process *p)
{
	uint64_t heaps[HOTSPOT_HEAPS_MAX];
	uint32_t n = 0, shift = 0, first = 0;
	int r = list_heaps(m, layout, heaps, &n, p);

	for (uint32_t i = 0; !r && i < n; i++) {
		r = read_heap(m, layout->fields, heaps[i], &p->heaps[i], &shift);
		if (!r && layout->known[HOTSPOT_HEAP]) {
			p->low = p->heaps[0].low;
			p->limit = p->heaps[0].limit;
		}
		first = i ? first : shift;
		if (!r &&
		    (!is_heap(p, i, &p->heaps[i]) || shift != first || shift < 4 || shift > 16))
			return HOTSPOT_ODD;
	}
	p->segment_shift = (uint16_t)shift;
	return !r && p->limit - p->low > CODE_BYTES_MAX ? HOTSPOT_ODD : r;
}

/* ---------------------------------------------------------------- proof */

/* The beginning of the block of @pc, by the map, as the walker does. */
static int find_block(struct memory *m, const struct hotspot_process *p,
		      const struct hotspot_heap *heap, uint64_t pc, uint64_t *ret)
{
	uint64_t segment = (pc - heap->low) >> p->segment_shift;
	uint64_t most = (INTERPRETER_BYTES_MAX >> p->segment_shift) / 254 + HOTSPOT_HOPS_MAX;

	for (; most; most--) {
		uint8_t back;
		int r = hotspot_outcome_of_memory(
			memory_read(m, heap->segments + segment, &back, 1));

		if (r)
			return r;
		if (!back) {
			*ret = heap->low + (segment << p->segment_shift) + p->block_header;
			return 0;
		}
		if (back == 0xff || back > segment)
			return HOTSPOT_ODD;
		segment -= back;
	}
	return HOTSPOT_ODD;
}

static const struct hotspot_heap *heap_of(const struct hotspot_process *p, uint64_t pc)
{
	for (size_t i = 0; i < HOTSPOT_HEAPS_MAX; i++)
		if (pc >= p->heaps[i].low && pc < p->heaps[i].limit)
			return &p->heaps[i];
	return NULL;
}

/* The interpreter's blob begins with a name, and contains the queue of the interpreter's parts. */
static int prove(struct memory *m, const struct hotspot_process *p)
{
	static const char want[] = "Interpreter";
	const struct hotspot_heap *heap = heap_of(p, p->interpreter);
	char name[sizeof(want)];
	uint64_t first, last, at;
	int r;

	if (!heap || p->interpreter_limit > heap->limit)
		return HOTSPOT_ODD;
	r = find_block(m, p, heap, p->interpreter, &first);
	if (!r)
		r = find_block(m, p, heap, p->interpreter_limit - 1, &last);
	if (!r && first != last)
		return HOTSPOT_ODD;
	if (!r)
		r = read_word(m, first + p->blob_name, &at);
	if (!r)
		r = hotspot_outcome_of_memory(memory_read(m, at, name, sizeof(name)));
	return !r && memcmp(name, want, sizeof(want)) != 0 ? HOTSPOT_ODD : r;
}

static int read_interpreter(struct memory *m, const uint64_t *f, struct hotspot_process *p)
{
	uint64_t queue;
	uint32_t n = 0;
	int r = read_word(m, f[HOTSPOT_TEMPLATES], &queue);

	if (!r && !queue)
		return HOTSPOT_NOT_READY;
	if (!r)
		r = read_word(m, queue + f[HOTSPOT_QUEUE_AT], &p->interpreter);
	if (!r)
		r = read_int(m, queue + f[HOTSPOT_QUEUE_BYTES], &n);
	if (!r && (!n || n > INTERPRETER_BYTES_MAX))
		return HOTSPOT_ODD;
	p->interpreter_limit = p->interpreter + n;
	return r;
}

/* ---------------------------------------------------------------- the interpreter's parts */

struct part {
	uint64_t first, limit;
	char text[sizeof(ENTRY_TEXT) - 1];
};

/* The parts of the interpreter, of @bytes bytes at @at. False if a part is odd. */
static bool list_parts(const struct hotspot_layout *layout, const uint8_t *code, uint64_t at,
		       uint32_t bytes, struct part *parts, struct memory_range *texts,
		       size_t *ret_n)
{
	const uint64_t *f = layout->fields;
	uint32_t size, off = 0;

	for (*ret_n = 0; off < bytes; off += size, (*ret_n)++) {
		uint64_t text;

		if (*ret_n >= PARTS_MAX || bytes - off < OFFSET_MAX)
			return *ret_n < PARTS_MAX;
		memcpy(&size, code + off + f[HOTSPOT_CODELET_BYTES], sizeof(size));
		memcpy(&text, code + off + f[HOTSPOT_CODELET_TEXT], sizeof(text));
		if (!size || size > bytes - off)
			return false;
		parts[*ret_n].first = at + off;
		parts[*ret_n].limit = at + off + size;
		texts[*ret_n] =
			(struct memory_range){text, parts[*ret_n].text, sizeof(parts->text)};
	}
	return true;
}

/* stp xzr,x0,[sp,#n] and add x29,sp,#n; @n is below 512. */
static uint32_t stp_zero(uint32_t n)
{
	return 0xa90003ff | n / 8 << 15;
}

static uint32_t add_fp_sp(uint32_t n)
{
	return 0x910003fd | n << 10;
}

/* On arm64: what the entry [first, limit) of methods says of its frame. The entry stores the
 * caller's sp from its register, stp xzr,x19,[sp,#64], and sets the frame pointer, add x29,sp,#80.
 * The next bytecode is the frame's second word. False if there are too many such entries. */
static bool read_frame_made(const uint8_t *code, uint64_t first, uint64_t limit,
			    struct hotspot_process *p)
{
	const uint32_t fp = p->frame_bcp + 8u;
	uint32_t insn, n = 0;

	while (n < HOTSPOT_MADE_MAX && p->made[n][1])
		n++;
	for (uint64_t at = first; at + sizeof(insn) <= limit; at += sizeof(insn)) {
		memcpy(&insn, code + (at - p->interpreter), sizeof(insn));
		if ((insn & 0xffff83ff) == stp_zero(fp - 16))
			p->entry_sender = insn >> 10 & 31;
		if (insn != add_fp_sp(fp))
			continue;
		if (n == HOTSPOT_MADE_MAX || (limit - p->entry) / sizeof(insn) > UINT16_MAX)
			return false;
		p->made[n][0] = (uint16_t)((at - p->entry) / sizeof(insn) + 1);
		p->made[n][1] = (uint16_t)((limit - p->entry) / sizeof(insn));
	}
	return true;
}

/* The range of the parts that begin methods. */
static int find_entry(struct memory *m, const struct hotspot_layout *layout, const uint8_t *code,
		      uint32_t bytes, struct hotspot_process *p)
{
	_cleanup_(freep) struct part *parts = calloc(PARTS_MAX, sizeof(*parts));
	_cleanup_(freep) struct memory_range *texts = calloc(PARTS_MAX, sizeof(*texts));
	const bool is_arm64 = layout->machine == EM_AARCH64;
	const bool is_8 = layout->known[HOTSPOT_HEAP];
	size_t n;
	int r;

	if (!parts || !texts)
		return -ENOMEM;
	if (!list_parts(layout, code, p->interpreter, bytes, parts, texts, &n))
		return HOTSPOT_ODD;
	r = hotspot_outcome_of_memory(memory_read_ranges(m, texts, n));
	for (size_t i = 0; !r && i < n; i++) {
		if (memcmp(parts[i].text, ENTRY_TEXT, sizeof(parts->text)) != 0)
			continue;
		if (!p->entry)
			p->entry = parts[i].first;
		p->entry_limit = parts[i].limit;
		if (is_arm64 && !read_frame_made(code, parts[i].first, parts[i].limit, p))
			return HOTSPOT_VERSION;
	}
	/* the parts are made one after the other, and other parts follow */
	if (!r && (p->entry_limit == p->interpreter + bytes || (is_8 && !p->entry) ||
		   (is_arm64 && !p->entry_sender)))
		return HOTSPOT_NOT_READY;
	return r;
}

static int read_entry(struct memory *m, const struct hotspot_layout *layout,
		      struct hotspot_process *p)
{
	const uint64_t *f = layout->fields;
	const uint64_t all = p->interpreter_limit - p->interpreter;
	_cleanup_(freep) uint8_t *code = malloc(all);
	uint64_t queue;
	uint32_t bytes = 0;
	int r = read_word(m, f[HOTSPOT_TEMPLATES], &queue);

	if (!code)
		return -ENOMEM;
	if (!r)
		r = read_int(m, queue + f[HOTSPOT_QUEUE_END], &bytes);
	if (!r && (bytes > all || f[HOTSPOT_CODELET_BYTES] > OFFSET_MAX - 8 ||
		   f[HOTSPOT_CODELET_TEXT] > OFFSET_MAX - 8))
		return HOTSPOT_ODD;
	/* From 9 on, HotSpot gives up the memory behind the last part when all parts are made.
	 * Stubs and compiled methods come there. */
	if (!r && bytes < all && !layout->known[HOTSPOT_HEAP])
		return HOTSPOT_NOT_READY;
	if (!r)
		r = hotspot_outcome_of_memory(memory_read(m, p->interpreter, code, bytes));
	return r ? r : find_entry(m, layout, code, bytes, p);
}

/* ---------------------------------------------------------------- the count of safepoints */

/* Without counters (-XX:-UsePerfData), p->safepoints stays 0. */
static int find_safepoints(struct memory *m, const struct hotspot_layout *layout,
			   struct hotspot_process *p)
{
	_cleanup_(freep) uint8_t *bytes = NULL;
	uint64_t at = 0;
	size_t n, off;
	int r;

	if (!layout->known[HOTSPOT_COUNTERS])
		return 0;
	r = read_word(m, layout->fields[HOTSPOT_COUNTERS], &at);
	if (r || !at || at % 8)
		return r;
	bytes = malloc(HOTSPOT_COUNTERS_BYTES_MAX);
	if (!bytes)
		return -ENOMEM;
	r = hotspot_outcome_of_memory(
		memory_read_some(m, at, bytes, HOTSPOT_COUNTERS_BYTES_MAX, &n));
	if (r)
		return r == HOTSPOT_UNREADABLE ? 0 : r;
	if (hotspot_counters_find(bytes, n, HOTSPOT_COUNTERS_SAFEPOINTS, &off))
		p->safepoints = at + off;
	return 0;
}

int hotspot_process_attach(struct memory *m, struct hotspot_target *ret)
{
	const struct hotspot_layout *layout = &ret->layout;
	struct hotspot_process p = {0};
	int r = read_version(m, layout, ret->version);

	if (!r && (!take_offsets(layout, &p) || !take_entry(ret, &p)))
		return HOTSPOT_VERSION;
	if (!r)
		r = read_heaps(m, layout, &p);
	if (!r)
		r = read_interpreter(m, layout->fields, &p);
	if (!r)
		r = prove(m, &p);
	if (!r)
		r = read_entry(m, layout, &p);
	if (!r)
		r = find_safepoints(m, layout, &p);
	if (!r)
		ret->process = p;
	return r;
}

/* ---------------------------------------------------------------- finding */

struct search {
	struct memory *memory;
	struct hotspot_target *ret;
};

static int look_at(void *ctx, const struct runtime_file *file)
{
	struct search *s = ctx;
	int r = file->outcome;

	*s->ret = (struct hotspot_target){.bias = file->bias};
	snprintf(s->ret->path, sizeof(s->ret->path), "%s", file->path);
	if (!r)
		r = hotspot_layout_read(s->memory, file->image, file->bias, &s->ret->layout);
	return r ? r : hotspot_process_attach(s->memory, s->ret);
}

int hotspot_target_find(struct runtime_files *files, const struct root *proc,
			const struct pid_id *id, struct memory *m, struct hotspot_target *ret)
{
	struct search s = {m, ret};
	int r, gone;

	*ret = (struct hotspot_target){0};
	r = runtime_files_search(files, proc, id, look_at, &s);
	if (r < 0)
		return r;
	gone = hotspot_outcome_of_memory(memory_check(m));
	return gone ? gone : r;
}
