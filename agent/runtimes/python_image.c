// SPDX-License-Identifier: Apache-2.0
/*
 * An interpreter exports its evaluation loop, _PyEval_EvalFrameDefault (3.6 and later): extension
 * modules link to the program. The release is a constant of the image from 3.11 on, Py_Version.
 * Older images are told apart by functions that appeared with each release in the stable interface
 * of C extensions.
 *
 * _PyRuntime is exported from 3.7 on, and from 3.10 on alone in the section .PyRuntime. In 3.6 the
 * list of interpreters is a local variable, interp_head, which a stripped file lacks.
 */
#include "runtimes/python_image.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/elffile.h"
#include "elf/elfsym.h"
#include "runtimes/python_loop.h"

static const char *const outcome_names[PYTHON_OUTCOME_MAX] = {
	[PYTHON_OK] = "ok",
	[PYTHON_ABSENT] = "absent",
	[PYTHON_VERSION] = "version",
	[PYTHON_FREE_THREADED] = "free_threaded",
	[PYTHON_OFFSETS] = "offsets",
	[PYTHON_NO_RUNTIME] = "no_runtime",
	[PYTHON_NO_LOOP] = "no_loop",
	[PYTHON_MACHINE] = "machine",
	[PYTHON_MALFORMED] = "malformed",
	[PYTHON_NOT_READY] = "not_ready",
	[PYTHON_ODD] = "odd",
	[PYTHON_NO_STATE] = "no_state",
	[PYTHON_UNREADABLE] = "unreadable",
	[PYTHON_GONE] = "gone",
	[PYTHON_DENIED] = "denied",
};

const char *python_outcome_name(int outcome)
{
	return outcome >= 0 && outcome < PYTHON_OUTCOME_MAX ? outcome_names[outcome] : "error";
}

/* ---------------------------------------------------------------- symbols */

enum function {
	LOOP, /* 3.6 */
	CODE_NEW_POSITIONAL,
	GC_IS_TRACKED,
	ADD_OBJECT_REF,
	FUNCTION_MAX,
};

static const char *const function_names[FUNCTION_MAX] = {
	[LOOP] = "_PyEval_EvalFrameDefault",
	[CODE_NEW_POSITIONAL] = "PyCode_NewWithPosOnlyArgs", /* 3.8 */
	[GC_IS_TRACKED] = "PyObject_GC_IsTracked",	     /* 3.9 */
	[ADD_OBJECT_REF] = "PyModule_AddObjectRef",	     /* 3.10 */
};

enum variable { RUNTIME, VERSION, INTERPRETERS, VARIABLE_MAX };

static const char *const variable_names[VARIABLE_MAX] = {
	[RUNTIME] = "_PyRuntime",	/* 3.7 */
	[VERSION] = "Py_Version",	/* 3.11 */
	[INTERPRETERS] = "interp_head", /* 3.6 */
};

struct symbols {
	struct elfsym functions[FUNCTION_MAX];
	struct elfsym variables[VARIABLE_MAX];
};

static int outcome_of_symbols(int r)
{
	return r <= 0 ? r : r == ELFSYM_ABSENT ? PYTHON_ABSENT : PYTHON_MALFORMED;
}

/* The symbols of one table. 0, PYTHON_ABSENT, PYTHON_MALFORMED, -errno. */
static int read_symbols(const struct elffile *ef, enum elfsym_table table, struct symbols *ret)
{
	int r = elfsym_find(ef, table, ELFSYM_CODE, function_names, FUNCTION_MAX, ret->functions);

	if (r)
		return outcome_of_symbols(r);
	if (!ret->functions[LOOP].n)
		return PYTHON_ABSENT;
	return outcome_of_symbols(
		elfsym_find(ef, table, ELFSYM_DATA, variable_names, VARIABLE_MAX, ret->variables));
}

/* Exported symbols of a file that would export the loop, too, if it had one. The loop is declared
 * for export, so a file without it exports little: a static program, or a program with an
 * interpreter inside and some symbols for libraries. Reached: .symtab is not searched: rustc's
 * libraries have 40 MB of names there. */
#define PYTHON_EXPORTS_MAX 4096

/* Whether .symtab may have the loop if .dynsym lacks it. */
static bool may_be_local(const struct elffile *ef)
{
	struct elffile_section section;
	uint64_t n;

	return !elffile_section(ef, ".PyRuntime", &section) ||
	       elfsym_count(ef, ELFSYM_DYNSYM, &n) || n < PYTHON_EXPORTS_MAX;
}

/* Of the dynamic linker's table, or of the other: a program may export nothing. Only the other has
 * local variables. */
static int find_symbols(const struct elffile *ef, struct symbols *ret)
{
	struct symbols all;
	int r = read_symbols(ef, ELFSYM_DYNSYM, ret);

	if (r == PYTHON_ABSENT)
		return may_be_local(ef) ? read_symbols(ef, ELFSYM_SYMTAB, ret) : r;
	if (r || ret->variables[RUNTIME].n)
		return r;
	r = read_symbols(ef, ELFSYM_SYMTAB, &all);
	if (r)
		return r == PYTHON_ABSENT ? 0 : r;
	*ret = all;
	return 0;
}

/* ---------------------------------------------------------------- release */

/* The bytes of initialised data at @vaddr; as many as the file has, the rest zeros. */
static int read_data(const struct elffile *ef, uint64_t vaddr, void *ret, size_t n)
{
	uint64_t off, end = elffile_size(ef);
	int r;

	memset(ret, 0, n);
	if (!elffile_off_of_vaddr(ef, vaddr, &off) || off >= end)
		return PYTHON_MALFORMED;
	r = elffile_read(ef, off, ret, n < end - off ? n : (size_t)(end - off));
	return r <= 0 ? r : PYTHON_MALFORMED;
}

/* PY_VERSION_HEX, or its upper half alone. */
static int find_release(const struct elffile *ef, const struct symbols *s, uint32_t *ret)
{
	uint64_t word;
	int r;

	if (s->variables[VERSION].n) {
		r = read_data(ef, s->variables[VERSION].vaddr, &word, sizeof(word));
		if (!r)
			*ret = (uint32_t)word;
		return r;
	}
	if (s->functions[ADD_OBJECT_REF].n)
		*ret = 0x030a0000;
	else if (s->functions[GC_IS_TRACKED].n)
		*ret = 0x03090000;
	else if (s->functions[CODE_NEW_POSITIONAL].n)
		*ret = 0x03080000;
	else if (s->variables[RUNTIME].n)
		*ret = 0x03070000;
	else
		*ret = 0x03060000;
	return 0;
}

static const enum python_outcome outcome_of_offsets[PYTHON_OFFSETS_OUTCOME_MAX] = {
	[PYTHON_OFFSETS_OK] = PYTHON_OK,
	[PYTHON_OFFSETS_ABSENT] = PYTHON_OFFSETS,
	[PYTHON_OFFSETS_VERSION] = PYTHON_VERSION,
	[PYTHON_OFFSETS_FREE_THREADED] = PYTHON_FREE_THREADED,
	[PYTHON_OFFSETS_ODD] = PYTHON_OFFSETS,
};

static int find_layout(const struct elffile *ef, uint32_t release, struct python_image *ret)
{
	uint8_t bytes[PYTHON_DEBUG_OFFSETS_BYTES];
	const uint16_t version = (uint16_t)(release >> 16);
	int r;

	if (!python_layout_of_version(version, &ret->layout)) {
		r = read_data(ef, ret->runtime, bytes, sizeof(bytes));
		if (!r)
			r = (int)outcome_of_offsets[python_layout_of_offsets(bytes, sizeof(bytes),
									     &ret->layout)];
		if (r) {
			ret->layout = (struct python_layout){.version = version};
			ret->layout.release = release;
			return r;
		}
	}
	if (release & 0xffff)
		ret->layout.release = release;
	return 0;
}

/* ---------------------------------------------------------------- the image */

static int find_runtime(const struct elffile *ef, const struct symbols *s, uint64_t *ret)
{
	struct elffile_section section;

	if (s->variables[RUNTIME].n)
		*ret = s->variables[RUNTIME].vaddr;
	else if (!elffile_section(ef, ".PyRuntime", &section))
		*ret = section.vaddr;
	else if (s->variables[INTERPRETERS].n == 1)
		*ret = s->variables[INTERPRETERS].vaddr;
	else
		return PYTHON_NO_RUNTIME;
	return 0;
}

int python_image_probe(const struct elffile *ef, struct python_image *ret)
{
	struct python_image image = {.machine = elffile_machine(ef)};
	struct symbols symbols = {0};
	const struct elfsym *loop = &symbols.functions[LOOP];
	uint32_t release = 0;
	int r = find_symbols(ef, &symbols);

	if (!r)
		r = find_release(ef, &symbols, &release);
	ret->layout =
		(struct python_layout){.version = (uint16_t)(release >> 16), .release = release};
	if (!r)
		r = find_runtime(ef, &symbols, &image.runtime);
	if (!r)
		r = find_layout(ef, release, &image);
	if (!r)
		r = python_loop_find(ef, loop->vaddr, loop->size, image.loops, &image.n_loops);
	if (!r)
		*ret = image;
	return r;
}
