// SPDX-License-Identifier: Apache-2.0
/* A package of split DWARF. The copy of a unit is a well-formed ELF file. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/work_budget.h"
#include "elf/elffile.h"
#include "symbolize/dwarfpackage.h"

#define UNIT_BYTES (1u << 20)
#define WORK	   (1u << 26)
#define UNITS	   16

static void check_copy(int fd, size_t n)
{
	struct elffile_section section;
	struct elffile *copy;

	if (n > UNIT_BYTES || elffile_open(fd, &copy))
		abort();
	if (elffile_size(copy) != n || elffile_section(copy, ".debug_info.dwo", &section) ||
	    !section.size)
		abort();
	elffile_free(copy);
}

/* The ids that the index has; unknown ones end at free slots. */
static void copy_units(const struct elffile *file, const struct dwarfpackage *package)
{
	struct elffile_section index;
	uint64_t id;
	size_t n;
	int fd;

	if (elffile_section(file, ".debug_cu_index", &index))
		return;
	for (uint64_t i = 0; i < UNITS; i++) {
		if (elffile_read(file, index.off + 16 + 8 * i, &id, sizeof(id)))
			return;
		if (dwarfpackage_unit(package, id, UNIT_BYTES, &fd, &n) == 0)
			check_copy(fd, n);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elffile *file, *budgeted;
	struct dwarfpackage *package;
	struct work_budget work;

	if (elffile_open_memory(data, size, &file) != 0)
		return 0;
	work_budget_init(&work, WORK, UINT64_MAX, NULL);
	if (elffile_budgeted(file, &work, &budgeted) == 0) {
		if (dwarfpackage_open(budgeted, &package) == 0) {
			copy_units(file, package);
			dwarfpackage_free(package);
		} else {
			elffile_free(budgeted);
		}
	}
	elffile_free(file);
	return 0;
}
