// SPDX-License-Identifier: Apache-2.0
/*
 * An entry of gHotSpotVMStructs has pointers to the names of a type and a field, and the offset of
 * the field or the address of a static one. The last entry has no name. An entry of gHotSpotVMTypes
 * has the type's name and size. Fields have moved between types and changed names; the rows below
 * have the names since JDK 8.
 */
#include "runtimes/hotspot_layout.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/elffile.h"
#include "elf/elfsym.h"
#include "procmap/memory.h"

/* Entries of a table; JDK 17 has 788 fields and JDK 25 has 585. Reached:
 * `odd`, native frames only. */
#define LAYOUT_ENTRIES_MAX     4096
/* Bytes of an entry. Reached: the same. */
#define LAYOUT_ENTRY_BYTES_MAX 96
/* Bytes of a name that are compared, with the NUL. A longer name is none of ours. */
#define LAYOUT_NAME_BYTES      40

#ifdef __aarch64__
#define OWN_MACHINE EM_AARCH64
#else
#define OWN_MACHINE EM_X86_64
#endif

static const char *const outcome_names[HOTSPOT_OUTCOME_MAX] = {
	[HOTSPOT_OK] = "ok",
	[HOTSPOT_ABSENT] = "absent",
	[HOTSPOT_VERSION] = "version",
	[HOTSPOT_MACHINE] = "machine",
	[HOTSPOT_MALFORMED] = "malformed",
	[HOTSPOT_NOT_READY] = "not_ready",
	[HOTSPOT_ODD] = "odd",
	[HOTSPOT_UNREADABLE] = "unreadable",
	[HOTSPOT_GONE] = "gone",
	[HOTSPOT_DENIED] = "denied",
};

const char *hotspot_outcome_name(int outcome)
{
	return outcome >= 0 && outcome < HOTSPOT_OUTCOME_MAX ? outcome_names[outcome] : "error";
}

int hotspot_outcome_of_memory(int r)
{
	switch (r) {
	case MEMORY_GONE:
		return HOTSPOT_GONE;
	case MEMORY_DENIED:
		return HOTSPOT_DENIED;
	case MEMORY_UNMAPPED:
		return HOTSPOT_UNREADABLE;
	default:
		return r;
	}
}

/* ---------------------------------------------------------------- the image */

static const char *const variable_names[HOTSPOT_VARIABLE_MAX] = {
	[HOTSPOT_STRUCTS] = "gHotSpotVMStructs",
	[HOTSPOT_TYPES] = "gHotSpotVMTypes",
	[HOTSPOT_STRUCT_TYPE] = "gHotSpotVMStructEntryTypeNameOffset",
	[HOTSPOT_STRUCT_FIELD] = "gHotSpotVMStructEntryFieldNameOffset",
	[HOTSPOT_STRUCT_STRING] = "gHotSpotVMStructEntryTypeStringOffset",
	[HOTSPOT_STRUCT_OFFSET] = "gHotSpotVMStructEntryOffsetOffset",
	[HOTSPOT_STRUCT_ADDRESS] = "gHotSpotVMStructEntryAddressOffset",
	[HOTSPOT_STRUCT_STRIDE] = "gHotSpotVMStructEntryArrayStride",
	[HOTSPOT_TYPE_NAME] = "gHotSpotVMTypeEntryTypeNameOffset",
	[HOTSPOT_TYPE_SIZE] = "gHotSpotVMTypeEntrySizeOffset",
	[HOTSPOT_TYPE_STRIDE] = "gHotSpotVMTypeEntryArrayStride",
};

int hotspot_image_probe(const struct elffile *ef, struct hotspot_image *ret)
{
	struct elfsym symbols[HOTSPOT_VARIABLE_MAX];
	int r = elfsym_find(ef, ELFSYM_DYNSYM, ELFSYM_DATA, variable_names, HOTSPOT_VARIABLE_MAX,
			    symbols);

	if (r)
		return r < 0 ? r : r == ELFSYM_ABSENT ? HOTSPOT_ABSENT : HOTSPOT_MALFORMED;
	for (int i = 0; i < HOTSPOT_VARIABLE_MAX; i++) {
		if (!symbols[i].n)
			return HOTSPOT_ABSENT;
		ret->variables[i] = symbols[i].vaddr;
	}
	ret->machine = elffile_machine(ef);
	return ret->machine == OWN_MACHINE ? HOTSPOT_OK : HOTSPOT_MACHINE;
}

/* ---------------------------------------------------------------- the tables */

struct field_name {
	enum hotspot_field field;
	const char *type, *name;
	bool is_static;
};

/* The first row of a field in the process's tables counts. */
static const struct field_name field_names[] = {
	{HOTSPOT_HEAPS, "CodeCache", "_heaps", true},
	{HOTSPOT_HEAP, "CodeCache", "_heap", true}, /* to 8 */
	{HOTSPOT_LOW, "CodeCache", "_low_bound", true},
	{HOTSPOT_HIGH, "CodeCache", "_high_bound", true},
	{HOTSPOT_TEMPLATES, "AbstractInterpreter", "_code", true},
	{HOTSPOT_MAJOR, "Abstract_VM_Version", "_vm_major_version", true},
	{HOTSPOT_MINOR, "Abstract_VM_Version", "_vm_minor_version", true},
	{HOTSPOT_SECURITY, "Abstract_VM_Version", "_vm_security_version", true},
	{HOTSPOT_ARRAY_N, "GrowableArrayBase", "_len", false},
	{HOTSPOT_ARRAY_N, "GenericGrowableArray", "_len", false}, /* to 15 */
	{HOTSPOT_ARRAY_DATA, "GrowableArray<int>", "_data", false},
	{HOTSPOT_HEAP_MEMORY, "CodeHeap", "_memory", false},
	{HOTSPOT_HEAP_SEGMENTS, "CodeHeap", "_segmap", false},
	{HOTSPOT_HEAP_SHIFT, "CodeHeap", "_log2_segment_size", false},
	{HOTSPOT_SPACE_LOW, "VirtualSpace", "_low_boundary", false},
	{HOTSPOT_SPACE_HIGH, "VirtualSpace", "_high_boundary", false},
	{HOTSPOT_SPACE_USED, "VirtualSpace", "_low", false},
	{HOTSPOT_QUEUE_BYTES, "StubQueue", "_buffer_limit", false},
	{HOTSPOT_QUEUE_AT, "StubQueue", "_stub_buffer", false},
	{HOTSPOT_QUEUE_END, "StubQueue", "_queue_end", false},
	{HOTSPOT_CODELET_BYTES, "InterpreterCodelet", "_size", false},
	{HOTSPOT_CODELET_TEXT, "InterpreterCodelet", "_description", false},
	{HOTSPOT_BLOCK_USED, "HeapBlock::Header", "_used", false},
	{HOTSPOT_BLOB_NAME, "CodeBlob", "_name", false},
	{HOTSPOT_BLOB_SIZE, "CodeBlob", "_frame_size", false},
	{HOTSPOT_BLOB_COMPLETE, "CodeBlob", "_frame_complete_offset", false},
	{HOTSPOT_BLOB_CODE, "CodeBlob", "_code_begin", false},	    /* to 22 */
	{HOTSPOT_BLOB_DISTANCE, "CodeBlob", "_code_offset", false}, /* from 23 on */
	{HOTSPOT_BLOB_METHOD, "CompiledMethod", "_method", false},  /* to 22 */
	{HOTSPOT_BLOB_METHOD, "nmethod", "_method", false},
	{HOTSPOT_BLOB_COMPILE_ID, "nmethod", "_compile_id", false},
	{HOTSPOT_BLOB_STUBS, "nmethod", "_stub_offset", false},
	{HOTSPOT_BLOB_SCOPES, "CompiledMethod", "_scopes_data_begin", false}, /* to 22 */
	{HOTSPOT_BLOB_SCOPES_OFF, "nmethod", "_scopes_data_offset", false},   /* from 23 on */
	{HOTSPOT_BLOB_DESCS_OFF, "nmethod", "_scopes_pcs_offset", false},
	{HOTSPOT_BLOB_DESCS_END, "nmethod", "_dependencies_offset", false}, /* to 22 */
	{HOTSPOT_BLOB_IMMUTABLE, "nmethod", "_immutable_data", false},	    /* from 23 on */
	{HOTSPOT_BLOB_IMMUTABLE_BYTES, "nmethod", "_immutable_data_size", false},
	{HOTSPOT_BLOB_METHODS_OFF, "nmethod", "_metadata_offset", false}, /* to 24 */
	{HOTSPOT_BLOB_DATA_OFF, "CodeBlob", "_data_offset", false},
	{HOTSPOT_BLOB_MUTABLE, "CodeBlob", "_mutable_data", false}, /* from 25 on */
	{HOTSPOT_BLOB_RELOCATION_BYTES, "CodeBlob", "_relocation_size", false},
	{HOTSPOT_DESC_PC, "PcDesc", "_pc_offset", false},
	{HOTSPOT_DESC_SCOPE, "PcDesc", "_scope_decode_offset", false},
	{HOTSPOT_ENTRY_PARENT, "ContinuationEntry", "_parent", false}, /* from 27 on */
	{HOTSPOT_METHOD_CONST, "Method", "_constMethod", false},
	{HOTSPOT_CONST_CONSTANTS, "ConstMethod", "_constants", false},
	{HOTSPOT_CONST_BYTES_ALL, "ConstMethod", "_constMethod_size", false},
	{HOTSPOT_CONST_FLAGS, "ConstMethod", "_flags", false}, /* to 20 */
	{HOTSPOT_CONST_FLAGS, "ConstMethod", "_flags._flags", false},
	{HOTSPOT_CONST_CODE_BYTES, "ConstMethod", "_code_size", false},
	{HOTSPOT_CONST_NAME, "ConstMethod", "_name_index", false},
	{HOTSPOT_CONST_SIGNATURE, "ConstMethod", "_signature_index", false},
	{HOTSPOT_POOL_HOLDER, "ConstantPool", "_pool_holder", false},
	{HOTSPOT_POOL_N, "ConstantPool", "_length", false},
	{HOTSPOT_POOL_SOURCE, "ConstantPool", "_source_file_name_index", false}, /* from 16 on */
	{HOTSPOT_CLASS_NAME, "Klass", "_name", false},
	{HOTSPOT_CLASS_SOURCE, "InstanceKlass", "_source_file_name_index", false}, /* to 15 */
	{HOTSPOT_SYMBOL_N, "Symbol", "_length", false},
	{HOTSPOT_SYMBOL_BODY, "Symbol", "_body", false},
	{HOTSPOT_COUNTERS, "PerfMemory", "_start", true},
};

static const char *const type_names[HOTSPOT_TYPE_MAX] = {
	[HOTSPOT_BLOCK] = "HeapBlock",	       [HOTSPOT_CONST] = "ConstMethod",
	[HOTSPOT_POOL] = "ConstantPool",       [HOTSPOT_DESC] = "PcDesc",
	[HOTSPOT_ENTRY] = "ContinuationEntry",
};

/* Fields without which names are right, if poorer. */
static bool is_optional(enum hotspot_field field)
{
	return field == HOTSPOT_POOL_SOURCE || field == HOTSPOT_CLASS_SOURCE ||
	       field == HOTSPOT_BLOB_CODE || field == HOTSPOT_BLOB_DISTANCE ||
	       field == HOTSPOT_SECURITY || field == HOTSPOT_BLOCK_USED ||
	       field == HOTSPOT_COUNTERS || (field >= HOTSPOT_HEAPS && field <= HOTSPOT_HIGH) ||
	       (field >= HOTSPOT_BLOB_STUBS && field <= HOTSPOT_ENTRY_PARENT);
}

/* A table: the entries, and two names of each entry. */
struct table {
	uint8_t *entries; /* owned */
	size_t n;
	uint64_t stride;
	char (*names)[2][LAYOUT_NAME_BYTES]; /* owned; the second "" if there is none */
};

static void table_deinit(struct table *t)
{
	free(t->entries);
	free(t->names);
}

static uint64_t word_of(const struct table *t, size_t i, uint64_t off)
{
	uint64_t word;

	memcpy(&word, t->entries + i * t->stride + off, sizeof(word));
	return word;
}

/* The entries up to the last one. */
static int read_entries(struct memory *m, uint64_t at, uint64_t name, struct table *t)
{
	size_t n_bytes, most;
	int r;

	t->entries = malloc(LAYOUT_ENTRIES_MAX * t->stride);
	if (!t->entries)
		return -ENOMEM;
	r = hotspot_outcome_of_memory(
		memory_read_some(m, at, t->entries, LAYOUT_ENTRIES_MAX * t->stride, &n_bytes));
	if (r)
		return r;
	for (most = n_bytes / t->stride; t->n < most && word_of(t, t->n, name); t->n++)
		;
	return t->n < most ? 0 : HOTSPOT_ODD;
}

/* The @n names at the offsets @offs of each entry. The strings are constants of the library, with
 * more constants behind them. */
static int read_names(struct memory *m, const uint64_t *offs, size_t n, struct table *t)
{
	_cleanup_(freep) struct memory_range *ranges = calloc(t->n * n + 1, sizeof(*ranges));
	size_t n_ranges = 0;
	int r;

	t->names = calloc(t->n + 1, sizeof(*t->names));
	if (!ranges || !t->names)
		return -ENOMEM;
	for (size_t i = 0; i < t->n; i++)
		for (size_t k = 0; k < n; k++)
			if (word_of(t, i, offs[k]))
				ranges[n_ranges++] = (struct memory_range){
					word_of(t, i, offs[k]), t->names[i][k], LAYOUT_NAME_BYTES};
	r = hotspot_outcome_of_memory(memory_read_ranges(m, ranges, n_ranges));
	for (size_t i = 0; i < t->n; i++)
		for (size_t k = 0; k < n; k++)
			t->names[i][k][LAYOUT_NAME_BYTES - 1] = 0;
	return r;
}

/* @offs: @n offsets of names in an entry, and others, @n_all altogether. */
static int read_table(struct memory *m, uint64_t at, const uint64_t *offs, size_t n, size_t n_all,
		      struct table *t)
{
	int r;

	if (t->stride > LAYOUT_ENTRY_BYTES_MAX || t->stride < 8)
		return HOTSPOT_ODD;
	for (size_t k = 0; k < n_all; k++)
		if (offs[k] > t->stride - 8)
			return HOTSPOT_ODD;
	r = read_entries(m, at, offs[0], t);
	return r ? r : read_names(m, offs, n, t);
}

/* Bytes of a type's text that are compared, with the NUL. */
#define TYPE_BYTES 12

static bool is_short(const char *type)
{
	static const char *const types[] = {"short", "int16_t", "uint16_t", "u2"};

	for (size_t i = 0; i < array_size(types); i++)
		if (strcmp(type, types[i]) == 0)
			return true;
	return false;
}

/* @texts: the types of the fields, as text; 0: not known. */
static int read_widths(struct memory *m, const uint64_t texts[HOTSPOT_FIELD_MAX],
		       struct hotspot_layout *ret)
{
	char types[HOTSPOT_FIELD_MAX][TYPE_BYTES] = {{0}};
	struct memory_range ranges[HOTSPOT_FIELD_MAX];
	size_t n = 0;
	int r;

	for (int i = 0; i < HOTSPOT_FIELD_MAX; i++)
		if (texts[i])
			ranges[n++] = (struct memory_range){texts[i], types[i], TYPE_BYTES - 1};
	r = hotspot_outcome_of_memory(memory_read_ranges(m, ranges, n));
	for (int i = 0; i < HOTSPOT_FIELD_MAX; i++)
		ret->is_short[i] = is_short(types[i]);
	return r;
}

static int read_fields(struct memory *m, const uint64_t *variables, struct hotspot_layout *ret)
{
	const uint64_t offs[] = {variables[HOTSPOT_STRUCT_TYPE], variables[HOTSPOT_STRUCT_FIELD],
				 variables[HOTSPOT_STRUCT_OFFSET],
				 variables[HOTSPOT_STRUCT_ADDRESS],
				 variables[HOTSPOT_STRUCT_STRING]};
	uint64_t texts[HOTSPOT_FIELD_MAX] = {0};
	_cleanup_(table_deinit) struct table t = {.stride = variables[HOTSPOT_STRUCT_STRIDE]};
	int r = read_table(m, variables[HOTSPOT_STRUCTS], offs, 2, array_size(offs), &t);

	for (size_t i = 0; !r && i < t.n; i++)
		for (size_t k = 0; k < array_size(field_names); k++) {
			const struct field_name *f = &field_names[k];

			if (ret->known[f->field] || strcmp(t.names[i][0], f->type) != 0 ||
			    strcmp(t.names[i][1], f->name) != 0)
				continue;
			ret->known[f->field] = true;
			ret->fields[f->field] = word_of(&t, i, offs[f->is_static ? 3 : 2]);
			texts[f->field] = word_of(&t, i, offs[4]);
		}
	return r ? r : read_widths(m, texts, ret);
}

static int read_types(struct memory *m, const uint64_t *variables, struct hotspot_layout *ret)
{
	const uint64_t offs[] = {variables[HOTSPOT_TYPE_NAME], variables[HOTSPOT_TYPE_SIZE]};
	_cleanup_(table_deinit) struct table t = {.stride = variables[HOTSPOT_TYPE_STRIDE]};
	int r = read_table(m, variables[HOTSPOT_TYPES], offs, 1, array_size(offs), &t);

	for (size_t i = 0; !r && i < t.n; i++)
		for (size_t k = 0; k < HOTSPOT_TYPE_MAX; k++)
			if (strcmp(t.names[i][0], type_names[k]) == 0)
				ret->bytes[k] = word_of(&t, i, offs[1]);
	return r;
}

static int read_variables(struct memory *m, const struct hotspot_image *image, uint64_t bias,
			  uint64_t *ret)
{
	struct memory_range ranges[HOTSPOT_VARIABLE_MAX];
	int r;

	for (size_t i = 0; i < array_size(ranges); i++)
		ranges[i] = (struct memory_range){image->variables[i] + bias, &ret[i], 8};
	r = hotspot_outcome_of_memory(memory_read_ranges(m, ranges, array_size(ranges)));
	if (!r && (!ret[HOTSPOT_STRUCTS] || !ret[HOTSPOT_TYPES]))
		return HOTSPOT_NOT_READY;
	return r;
}

static bool is_whole(const struct hotspot_layout *layout)
{
	for (int i = 0; i < HOTSPOT_FIELD_MAX; i++)
		if (!layout->known[i] && !is_optional((enum hotspot_field)i))
			return false;
	return (layout->known[HOTSPOT_HEAP] ||
		(layout->known[HOTSPOT_HEAPS] && layout->known[HOTSPOT_LOW] &&
		 layout->known[HOTSPOT_HIGH])) &&
	       layout->bytes[HOTSPOT_BLOCK] && layout->bytes[HOTSPOT_CONST] &&
	       layout->bytes[HOTSPOT_POOL] &&
	       (layout->known[HOTSPOT_BLOB_CODE] || layout->known[HOTSPOT_BLOB_DISTANCE]);
}

int hotspot_layout_read(struct memory *m, const struct hotspot_image *image, uint64_t bias,
			struct hotspot_layout *ret)
{
	uint64_t variables[HOTSPOT_VARIABLE_MAX] = {0};
	int r = read_variables(m, image, bias, variables);

	*ret = (struct hotspot_layout){.machine = image->machine};
	if (!r)
		r = read_fields(m, variables, ret);
	if (!r)
		r = read_types(m, variables, ret);
	return !r && !is_whole(ret) ? HOTSPOT_VERSION : r;
}
