// SPDX-License-Identifier: Apache-2.0
/*
 * The builtins are a range of code in the image. A stripped file has no symbol of the range, but V8
 * exports a function for the address of the code, and a function for the size. Each function loads
 * a variable and returns, so the variable's address is in the code of the function.
 */
#include "runtimes/v8_layout.h"

#include <elf.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/elffile.h"
#include "elf/elfsym.h"
#include "procmap/memory.h"
#include "runtimes/v8_builtins.h"
#include "runtimes/v8_rusty.h"

/* Names of one constant in different releases. */
#define CONSTANT_NAMES 4

static const char *const outcome_names[V8_OUTCOME_MAX] = {
	[V8_OK] = "ok",
	[V8_ABSENT] = "absent",
	[V8_VERSION] = "version",
	[V8_COMPRESSED] = "compressed",
	[V8_BUILTINS_UNKNOWN] = "no_builtins",
	[V8_MACHINE] = "machine",
	[V8_MALFORMED] = "malformed",
	[V8_NOT_READY] = "not_ready",
	[V8_ODD] = "odd",
	[V8_UNREADABLE] = "unreadable",
	[V8_GONE] = "gone",
	[V8_DENIED] = "denied",
};

const char *v8_outcome_name(int outcome)
{
	return outcome >= 0 && outcome < V8_OUTCOME_MAX ? outcome_names[outcome] : "error";
}

int v8_outcome_of_memory(int r)
{
	switch (r) {
	case MEMORY_GONE:
		return V8_GONE;
	case MEMORY_DENIED:
		return V8_DENIED;
	case MEMORY_UNMAPPED:
		return V8_UNREADABLE;
	default:
		return r;
	}
}

static int outcome_of_symbols(int r)
{
	return r <= 0 ? r : r == ELFSYM_ABSENT ? V8_ABSENT : V8_MALFORMED;
}

/* ---------------------------------------------------------------- constants */

#define CLASS "v8dbg_class_"
#define TYPE  "v8dbg_type_"

static const char *const names[V8_CONSTANT_MAX][CONSTANT_NAMES] = {
	[V8_TAG_MASK] = {"v8dbg_SmiTagMask"},
	[V8_TAG] = {"v8dbg_HeapObjectTag"},
	[V8_SMI_SHIFT] = {"v8dbg_SmiShiftSize"},
	[V8_FRAME_MARKER] = {"v8dbg_off_fp_context"},
	[V8_FRAME_FUNCTION] = {"v8dbg_off_fp_function"},
	[V8_FRAME_ARRAY] = {"v8dbg_off_fp_bytecode_array"},
	[V8_FRAME_OFFSET] = {"v8dbg_off_fp_bytecode_offset"},
	[V8_FUNCTION_SHARED] = {CLASS "JSFunction__shared__SharedFunctionInfo"},
	[V8_SHARED_DATA] = {CLASS "SharedFunctionInfo__function_data__Object"},
	[V8_SHARED_NAME] = {CLASS "SharedFunctionInfo__name_or_scope_info__Object",
			    CLASS "SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
			    CLASS "SharedFunctionInfo__name_or_scope_info__"
				  "Tagged_NameOrScopeInfoT_"},
	[V8_SHARED_SCRIPT] = {CLASS "SharedFunctionInfo__script_or_debug_info__HeapObject",
			      CLASS "SharedFunctionInfo__script__Tagged_HeapObject_"},
	[V8_SHARED_LENGTH] = {CLASS "SharedFunctionInfo__length__uint16_t"},
	[V8_MAP_TYPE] = {CLASS "Map__instance_type__uint16_t"},
	[V8_TYPE_SHARED] = {TYPE "SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE"},
	[V8_TYPE_SCOPE] = {TYPE "ScopeInfo__SCOPE_INFO_TYPE"},
	[V8_TYPE_SCRIPT] = {TYPE "Script__SCRIPT_TYPE"},
	[V8_TYPE_ARRAY] = {TYPE "FixedArray__FIXED_ARRAY_TYPE"},
	[V8_SCRIPT_NAME] = {CLASS "Script__name__Object"},
	[V8_SCRIPT_SOURCE] = {CLASS "Script__source__Object"},
	[V8_SCRIPT_LINES] = {CLASS "Script__line_ends__Object"},
	[V8_ARRAY_N] = {CLASS "FixedArrayBase__length__SMI"},
	[V8_ARRAY_DATA] = {CLASS "FixedArray__data__uintptr_t"},
	[V8_SCOPE_LOCALS] = {"v8dbg_scopeinfo_idx_ncontextlocals"},
	[V8_SCOPE_FIRST] = {"v8dbg_scopeinfo_idx_first_vars"},
	[V8_NO_STRING] = {"v8dbg_FirstNonstringType"},
	[V8_STRING_KINDS] = {"v8dbg_StringRepresentationMask"},
	[V8_STRING_FLAT] = {"v8dbg_SeqStringTag"},
	[V8_STRING_CONS] = {"v8dbg_ConsStringTag"},
	[V8_STRING_EXTERNAL] = {"v8dbg_ExternalStringTag"},
	[V8_STRING_SLICED] = {"v8dbg_SlicedStringTag"},
	[V8_STRING_THIN] = {"v8dbg_ThinStringTag"},
	[V8_STRING_BYTES] = {"v8dbg_OneByteStringTag"},
	[V8_STRING_N] = {CLASS "String__length__int32_t"},
	[V8_STRING_CHARS] = {CLASS "SeqOneByteString__chars__char"},
	[V8_CONS_FIRST] = {CLASS "ConsString__first__String"},
	[V8_CONS_SECOND] = {CLASS "ConsString__second__String"},
	[V8_SLICED_PARENT] = {CLASS "SlicedString__parent__String"},
	[V8_SLICED_OFFSET] = {CLASS "SlicedString__offset__SMI"},
	[V8_THIN_ACTUAL] = {CLASS "ThinString__actual__String"},
	[V8_EXTERNAL_RESOURCE] = {CLASS "ExternalString__resource__Object"},
	[V8_TYPE_BYTECODE] = {TYPE "BytecodeArray__BYTECODE_ARRAY_TYPE"},
	[V8_BYTECODE_DATA] = {CLASS "BytecodeArray__data__uintptr_t"},
	[V8_TYPE_CODE] = {TYPE "Code__CODE_TYPE"},
	[V8_TYPE_STREAM] = {TYPE "InstructionStream__INSTRUCTION_STREAM_TYPE"},
	[V8_TYPE_WRAPPER] = {TYPE "SharedFunctionInfoWrapper__SHARED_FUNCTION_INFO_WRAPPER_TYPE"},
	[V8_KIND_MASK] = {"v8dbg_CodeKindFieldMask"},
	[V8_KIND_BASELINE] = {"v8dbg_CodeKindBaseline"},
};

/* One name of a constant. */
struct wanted {
	enum v8_constant constant;
	const char *name;
};

static size_t list_wanted(struct wanted *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < V8_CONSTANT_MAX; i++)
		for (size_t k = 0; k < CONSTANT_NAMES && names[i][k]; k++)
			ret[n++] = (struct wanted){(enum v8_constant)i, names[i][k]};
	return n;
}

/* The int at @vaddr; 0 without bytes in the file. */
static int read_int(const struct elffile *ef, uint64_t vaddr, int32_t *ret)
{
	uint64_t off;
	int r;

	*ret = 0;
	if (!elffile_off_of_vaddr(ef, vaddr, &off))
		return 0;
	r = elffile_read(ef, off, ret, sizeof(*ret));
	return r <= 0 ? r : V8_MALFORMED;
}

/* The constants with the @n names at @wanted. V8_ABSENT without any of them. */
static int read_some(const struct elffile *ef, const struct wanted *wanted, size_t n, int32_t *ret,
		     bool *ret_known)
{
	const char *texts[ELFSYM_NAMES_MAX];
	struct elfsym symbols[ELFSYM_NAMES_MAX];
	bool is_any = false;
	int r;

	for (size_t i = 0; i < n; i++)
		texts[i] = wanted[i].name;
	r = outcome_of_symbols(elfsym_find(ef, ELFSYM_DYNSYM, ELFSYM_DATA, texts, n, symbols));
	for (size_t i = 0; !r && i < n; i++) {
		const enum v8_constant constant = wanted[i].constant;

		if (!symbols[i].n || ret_known[constant])
			continue;
		r = read_int(ef, symbols[i].vaddr, &ret[constant]);
		ret_known[constant] = true;
		is_any = true;
	}
	return !r && !is_any ? V8_ABSENT : r;
}

static int read_constants(const struct elffile *ef, int32_t *ret, bool *ret_known)
{
	struct wanted wanted[V8_CONSTANT_MAX * CONSTANT_NAMES];
	const size_t n = list_wanted(wanted);
	size_t step = ELFSYM_NAMES_MAX;

	for (size_t i = 0; i < n; i += step) {
		int r;

		step = n - i < ELFSYM_NAMES_MAX ? n - i : ELFSYM_NAMES_MAX;
		r = read_some(ef, wanted + i, step, ret, ret_known);
		/* the first names are those of all releases */
		if (r && (r != V8_ABSENT || !i))
			return r;
	}
	return 0;
}

/* ---------------------------------------------------------------- code without a function */

#define FRAME_TYPE "v8dbg_frametype_"

/* Variables with types of frames, and names in the way of Node's own profiles: "(idle)". */
static const char *const other_variables[V8_OTHER_MAX] = {
	[V8_OTHER_REGEXP] = FRAME_TYPE "IrregexpFrame",
	[V8_OTHER_WASM] = FRAME_TYPE "WasmFrame",
	[V8_OTHER_JS_TO_WASM] = FRAME_TYPE "JsToWasmFrame",
	[V8_OTHER_WASM_TO_JS] = FRAME_TYPE "WasmToJsFrame",
	[V8_OTHER_WASM_EXIT] = FRAME_TYPE "WasmExitFrame",
};
static const char *const other_names[V8_OTHER_MAX] = {
	[V8_OTHER_REGEXP] = "(regular expression)",
	[V8_OTHER_WASM] = "(WebAssembly)",
	[V8_OTHER_JS_TO_WASM] = "(JavaScript to WebAssembly)",
	[V8_OTHER_WASM_TO_JS] = "(WebAssembly to JavaScript)",
	[V8_OTHER_WASM_EXIT] = "(WebAssembly to JavaScript)",
};

const char *v8_other_name(const struct v8_image *image, uint64_t type)
{
	for (size_t i = 0; type < V8_FRAME_TYPES && i < V8_OTHER_MAX; i++)
		if (image->other_types[i] == type)
			return other_names[i];
	return NULL;
}

/* Without any, frames of this code stay native. */
static int read_other_types(const struct elffile *ef, uint8_t *ret)
{
	struct elfsym symbols[V8_OTHER_MAX];
	int r = elfsym_find(ef, ELFSYM_DYNSYM, ELFSYM_DATA, other_variables, V8_OTHER_MAX, symbols);

	memset(ret, V8_FRAME_TYPES, V8_OTHER_MAX);
	for (size_t i = 0; !r && i < V8_OTHER_MAX; i++) {
		int32_t type = V8_FRAME_TYPES;

		if (symbols[i].n)
			r = read_int(ef, symbols[i].vaddr, &type);
		if (type > 0 && type < V8_FRAME_TYPES)
			ret[i] = (uint8_t)type;
	}
	return r == ELFSYM_ABSENT ? 0 : outcome_of_symbols(r);
}

/* ---------------------------------------------------------------- are these plausible */

static bool is_word(int32_t off, int32_t limit)
{
	return off >= 0 && off < limit && off % 8 == 0;
}

static bool is_slot(int32_t off)
{
	return off < 0 && off >= -128 && off % 8 == 0;
}

/* Offsets in objects. Reached: `version`, native frames only. */
#define OFFSET_MAX 256

/* Whether the walker and the readers of names can work with the constants. */
static bool is_known_layout(const int32_t *c)
{
	static const enum v8_constant words[] = {
		V8_FUNCTION_SHARED,   V8_SCRIPT_NAME,	V8_SCRIPT_SOURCE, V8_SCRIPT_LINES,
		V8_ARRAY_N,	      V8_ARRAY_DATA,	V8_STRING_CHARS,  V8_CONS_FIRST,
		V8_CONS_SECOND,	      V8_SLICED_PARENT, V8_SLICED_OFFSET, V8_THIN_ACTUAL,
		V8_EXTERNAL_RESOURCE,
	};
	static const enum v8_constant shared[] = {V8_SHARED_DATA, V8_SHARED_NAME, V8_SHARED_SCRIPT};
	static const enum v8_constant slots[] = {V8_FRAME_MARKER, V8_FRAME_FUNCTION, V8_FRAME_ARRAY,
						 V8_FRAME_OFFSET};

	for (size_t i = 0; i < array_size(words); i++)
		if (!is_word(c[words[i]], OFFSET_MAX))
			return false;
	for (size_t i = 0; i < array_size(shared); i++)
		if (!is_word(c[shared[i]] - V8_SHARED_FIRST, V8_SHARED_BYTES))
			return false;
	for (size_t i = 0; i < array_size(slots); i++)
		if (!is_slot(c[slots[i]]))
			return false;
	return c[V8_SHARED_LENGTH] >= 0 && c[V8_SHARED_LENGTH] % 4 == 0 &&
	       c[V8_SHARED_LENGTH] <= V8_SHARED_FIRST + V8_SHARED_BYTES - V8_UNIQUE_BEHIND - 4 &&
	       c[V8_MAP_TYPE] >= 0 && c[V8_MAP_TYPE] < OFFSET_MAX && c[V8_STRING_N] >= 0 &&
	       c[V8_STRING_N] < OFFSET_MAX && c[V8_SCOPE_LOCALS] >= 0 && c[V8_SCOPE_LOCALS] < 16 &&
	       c[V8_SCOPE_FIRST] > c[V8_SCOPE_LOCALS] && c[V8_SCOPE_FIRST] < 16;
}

/* ---------------------------------------------------------------- builtins */

static const char *const functions[] = {
	"_ZN2v88internal7Isolate23CurrentEmbeddedBlobCodeEv",
	"_ZN2v88internal7Isolate27CurrentEmbeddedBlobCodeSizeEv",
};

/* Bytes of code that are searched for the load. */
#define LOAD_BYTES 32

/* mov x(%rip), %rax or %eax, perhaps behind the beginning of a frame. */
static int variable_of_x86(const uint8_t *code, uint64_t vaddr, uint64_t *ret)
{
	static const uint8_t begin[] = {0xf3, 0x0f, 0x1e, 0xfa}; /* endbr64 */
	static const uint8_t frame[] = {0x55, 0x48, 0x89, 0xe5}; /* push %rbp; mov %rsp, %rbp */
	size_t at = 0;
	int32_t distance;

	if (memcmp(code, begin, sizeof(begin)) == 0)
		at = sizeof(begin);
	if (memcmp(code + at, frame, sizeof(frame)) == 0)
		at += sizeof(frame);
	at += code[at] == 0x48;
	if (code[at] != 0x8b || code[at + 1] != 0x05)
		return V8_BUILTINS_UNKNOWN;
	memcpy(&distance, code + at + 2, sizeof(distance));
	*ret = vaddr + at + 6 + (uint64_t)(int64_t)distance;
	return 0;
}

/* adrp, add to the same register, and ldr of it without an offset; or ldr with an offset instead of
 * the last two. Perhaps behind paciasp, bti or the beginning of a frame. */
static int variable_of_arm64(const uint8_t *code, uint64_t vaddr, uint64_t *ret)
{
	uint32_t base = UINT32_MAX;
	uint64_t address = 0;

	for (size_t at = 0; at < LOAD_BYTES; at += 4) {
		uint32_t w;

		memcpy(&w, code + at, sizeof(w));
		if ((w & 0x9f000000) == 0x90000000) { /* adrp */
			const int32_t pages = (int32_t)(w << 8) >> 13 << 2;

			base = w & 31;
			address = ((vaddr + at) & ~0xfffull) +
				  ((uint64_t)(int64_t)(pages | (int32_t)(w >> 29 & 3)) << 12);
		} else if ((w & 0xffc00000) == 0x91000000 && (w & 31) == base &&
			   (w >> 5 & 31) == base) { /* add */
			address += w >> 10 & 0xfff;
		} else if ((w & 0xbfc00000) == 0xb9400000 && (w >> 5 & 31) == base) { /* ldr */
			*ret = address + ((uint64_t)(w >> 10 & 0xfff) << (w >> 30));
			return 0;
		}
	}
	return V8_BUILTINS_UNKNOWN;
}

/* The variable that the function at @vaddr returns. */
static int variable_of(const struct elffile *ef, uint64_t vaddr, uint64_t *ret)
{
	uint8_t code[LOAD_BYTES];
	uint64_t off;
	int r;

	if (!elffile_off_of_vaddr(ef, vaddr, &off))
		return V8_MALFORMED;
	r = elffile_read(ef, off, code, sizeof(code));
	if (r)
		return r < 0 ? r : V8_MALFORMED;
	return elffile_machine(ef) == EM_X86_64 ? variable_of_x86(code, vaddr, ret)
						: variable_of_arm64(code, vaddr, ret);
}

static int find_builtins(const struct elffile *ef, enum elfsym_table table, uint64_t *ret)
{
	struct elfsym symbols[array_size(functions)];
	int r = elfsym_find(ef, table, ELFSYM_CODE, functions, array_size(functions), symbols);

	if (r)
		return r < 0 ? r : r == ELFSYM_ABSENT ? V8_BUILTINS_UNKNOWN : V8_MALFORMED;
	for (size_t i = 0; !r && i < array_size(functions); i++)
		r = symbols[i].n ? variable_of(ef, symbols[i].vaddr, &ret[i]) : V8_BUILTINS_UNKNOWN;
	return r;
}

/* ---------------------------------------------------------------- the image */

static int read_version(const struct elffile *ef, enum elfsym_table table, uint32_t *ret)
{
	static const char *const variables[] = {
		"_ZN2v88internal7Version6major_E",
		"_ZN2v88internal7Version6minor_E",
		"_ZN2v88internal7Version6build_E",
	};
	struct elfsym symbols[array_size(variables)];
	int32_t values[array_size(variables)];
	int r = elfsym_find(ef, table, ELFSYM_DATA, variables, array_size(variables), symbols);

	for (size_t i = 0; !r && i < array_size(variables); i++)
		r = symbols[i].n ? read_int(ef, symbols[i].vaddr, &values[i]) : V8_ABSENT;
	if (r)
		return r < 0 ? r : V8_ABSENT;
	for (size_t i = 0; i < array_size(variables); i++)
		ret[i] = (uint32_t)values[i];
	return 0;
}

/* Tables of source positions, by the last release with a form: an entry has one flag more from 13.7
 * on, and one more in 14.9, perhaps in 14.8. Later releases may have others: their lines are not
 * known. */
static const struct {
	uint32_t version;
	int32_t shift;
} table_forms[] = {{1306, 0}, {1407, 1}, {1500, 2}};

/* The lengths of arrays are ints from 14.9 on, perhaps from 14.8. */
static void set_forms(bool is_bytecode, struct v8_image *ret)
{
	const uint32_t version = 100 * ret->version[0] + ret->version[1];
	int32_t *c = ret->constants;
	size_t i = 0;

	c[V8_ARRAY_INT] = version >= 1408;
	c[V8_BYTECODE_TABLE] = 0;
	while (i < array_size(table_forms) && version > table_forms[i].version)
		i++;
	if (i == array_size(table_forms) || version < 900 || version == 1408)
		return;
	c[V8_TABLE_SHIFT] = table_forms[i].shift;
	if (is_bytecode)
		c[V8_BYTECODE_TABLE] = version < 1200 ? 32 : 24;
}

/* ---------------------------------------------------------------- constants without a name */

/* Constants that a release does not name. */
static const struct unnamed {
	uint32_t version[2];
	enum v8_constant constant;
	int32_t value;
} unnamed[] = {
	{{9, 4}, V8_FRAME_ARRAY, -32}, {{9, 4}, V8_FRAME_OFFSET, -40},
	{{9, 4}, V8_SCRIPT_SOURCE, 8}, {{9, 4}, V8_BYTECODE_DATA, 54},
	{{9, 4}, V8_KIND_MASK, 15},    {{9, 4}, V8_KIND_BASELINE, 11},
};

static void set_unnamed(struct v8_image *image, bool *known)
{
	for (size_t i = 0; i < array_size(unnamed); i++) {
		const struct unnamed *u = &unnamed[i];

		if (known[u->constant] ||
		    memcmp(u->version, image->version, sizeof(u->version)) != 0)
			continue;
		image->constants[u->constant] = u->value;
		known[u->constant] = true;
	}
	/* not named from 12 on; the first word in all */
	if (!known[V8_SHARED_DATA])
		image->constants[V8_SHARED_DATA] = 8;
	known[V8_SHARED_DATA] = true;
}

/* ---------------------------------------------------------------- compiled code */

/* What is not named in all releases: offsets and numbers from V8_CODE_HEADER on but for the kinds,
 * and whether functions have an id. */
struct code_layout {
	uint32_t version[2];
	int32_t header, start, flags, size, data, positions;
	int32_t shared, literals, inlined, form;
	bool has_id;
};

static const struct code_layout code_layouts[] = {
	{{9, 4}, 96, 0, 48, 40, 16, 24, 6, 2, 7, V8_DEOPT_UNKNOWN, false},
	{{10, 2}, 128, 0, 48, 40, 16, 24, 6, 2, 7, V8_DEOPT_UNKNOWN, false},
	{{11, 3}, 16, 40, 48, 56, 16, 24, 6, 2, 7, V8_DEOPT_UNKNOWN, false},
	{{12, 4}, 32, 40, 48, 52, 8, 16, 6, 2, 7, V8_DEOPT_UNKNOWN, true},
	{{12, 9}, 32, 40, 48, 52, 8, 16, 6, 2, 7, V8_DEOPT_OF_12, true},
	{{13, 0}, 32, 40, 48, 52, 8, 16, 6, 2, 7, V8_DEOPT_OF_12, true},
	{{13, 4}, 32, 40, 52, 56, 8, 16, 7, 3, 8, V8_DEOPT_OF_13, true},
	{{13, 5}, 32, 40, 52, 56, 8, 16, 7, 3, 8, V8_DEOPT_OF_13, true},
	{{13, 6}, 32, 40, 52, 56, 8, 16, 7, 3, 8, V8_DEOPT_OF_13, true},
	{{13, 7}, 32, 40, 52, 56, 8, 16, 7, 3, 8, V8_DEOPT_OF_13, true},
	{{14, 0}, 32, 40, 52, 56, 8, 16, 7, 3, 8, V8_DEOPT_OF_13, true},
	{{14, 2}, 32, 40, 52, 56, 8, 16, 7, 3, 8, V8_DEOPT_OF_13, true},
	{{14, 5}, 32, 40, 52, 56, 8, 16, 7, 3, 8, V8_DEOPT_OF_13, true},
	{{14, 6}, 32, 40, 52, 56, 8, 16, 7, 3, 8, V8_DEOPT_OF_13, true},
	{{14, 7}, 32, 40, 52, 56, 8, 16, 7, 3, 8, V8_DEOPT_OF_13, true},
	{{14, 9}, 32, 40, 52, 56, 8, 16, 7, 3, 8, V8_DEOPT_OF_13, true},
	{{15, 0}, 32, 40, 52, 56, 8, 16, 7, 3, 8, V8_DEOPT_OF_13, true},
};

static void set_code(const bool *known, struct v8_image *ret)
{
	int32_t *c = ret->constants;

	for (size_t i = 0; i < array_size(code_layouts); i++) {
		const struct code_layout *l = &code_layouts[i];

		if (memcmp(l->version, ret->version, sizeof(l->version)) != 0)
			continue;
		c[V8_CODE_HEADER] = l->header;
		c[V8_CODE_START] = l->start;
		c[V8_CODE_FLAGS] = l->flags;
		c[V8_CODE_SIZE] = l->size;
		c[V8_CODE_DATA] = l->data;
		c[V8_CODE_POSITIONS] = l->positions;
		c[V8_DEOPT_SHARED] = l->shared;
		c[V8_DEOPT_LITERALS] = l->literals;
		c[V8_DEOPT_INLINED] = l->inlined;
		c[V8_DEOPT_FORM] = l->form;
		if (l->has_id)
			c[V8_SHARED_ID] = c[V8_SHARED_LENGTH] + V8_UNIQUE_BEHIND;
		ret->has_code = known[V8_TYPE_CODE] && known[V8_KIND_MASK] &&
				known[V8_KIND_BASELINE] && (known[V8_TYPE_STREAM] || !l->start);
	}
	if (!known[V8_TYPE_WRAPPER])
		c[V8_TYPE_WRAPPER] = 0;
	if (!known[V8_TYPE_STREAM])
		c[V8_TYPE_STREAM] = 0;
}

/* Without the sizes, the lines of baseline code are not known. */
static int find_sizes(const struct elffile *ef, enum elfsym_table table, struct v8_image *ret)
{
	static const char *const sizes[] = {
		"_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE"};
	struct elfsym symbol = {0};
	int r = elfsym_find(ef, table, ELFSYM_DATA, sizes, 1, &symbol);

	if (r < 0)
		return r;
	if (!r && symbol.n && symbol.size % 3 == 0 && symbol.size / 3 <= V8_BYTECODES_MAX) {
		ret->sizes = symbol.vaddr;
		ret->n_sizes = (uint32_t)(symbol.size / 3);
	}
	return 0;
}

static bool is_whole(const bool *known)
{
	for (size_t i = 0; i < V8_TYPE_BYTECODE; i++)
		if (!known[i])
			return false;
	return true;
}

/* The constants and the version. *@known: by constant. */
static int read_description(const struct elffile *ef, struct v8_image *ret, bool *known)
{
	int r = read_constants(ef, ret->constants, known);

	if (r == V8_ABSENT)
		return v8_rusty_read(ef, ret, known);
	if (r)
		return r;
	r = read_version(ef, ELFSYM_DYNSYM, ret->version);
	if (r == V8_ABSENT)
		r = read_version(ef, ELFSYM_SYMTAB, ret->version);
	if (r < 0)
		return r;
	set_unnamed(ret, known);
	ret->is_described = true;
	return 0;
}

static int find_symbols(const struct elffile *ef, struct v8_image *ret)
{
	int r = read_other_types(ef, ret->other_types);

	if (!r)
		r = find_sizes(ef, ELFSYM_DYNSYM, ret);
	if (!r && !ret->sizes)
		r = find_sizes(ef, ELFSYM_SYMTAB, ret);
	if (r)
		return r;
	r = find_builtins(ef, ELFSYM_DYNSYM, ret->builtins);
	if (r == V8_BUILTINS_UNKNOWN)
		r = find_builtins(ef, ELFSYM_SYMTAB, ret->builtins);
	return r == V8_BUILTINS_UNKNOWN ? v8_builtins_prepare(ef, ret) : r;
}

int v8_image_probe(const struct elffile *ef, struct v8_image *ret)
{
	struct v8_image image = {.machine = elffile_machine(ef)};
	bool known[V8_CONSTANT_MAX] = {false};
	int r = read_description(ef, &image, known);

	memcpy(ret->version, image.version, sizeof(ret->version));
	if (r)
		return r;
	if (image.machine != EM_X86_64 && image.machine != EM_AARCH64)
		return V8_MACHINE;
	if (known[V8_SMI_SHIFT] && image.constants[V8_SMI_SHIFT] != 31)
		return V8_COMPRESSED;
	if (!is_whole(known) || !is_known_layout(image.constants) ||
	    image.constants[V8_TAG_MASK] != 1 || image.constants[V8_TAG] != 1)
		return V8_VERSION;
	set_forms(known[V8_TYPE_BYTECODE] && known[V8_BYTECODE_DATA], &image);
	set_code(known, &image);
	r = find_symbols(ef, &image);
	if (!r)
		*ret = image;
	return r;
}
