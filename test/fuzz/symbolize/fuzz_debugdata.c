// SPDX-License-Identifier: Apache-2.0
/* What a stripped file says about its symbols: the file inside, and the name of the debug file. */
#include "fuzz/fuzz.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/root.h"
#include "base/work_budget.h"
#include "elf/elffile.h"
#include "symbolize/debugdata.h"
#include "symbolize/debugfile.h"
#include "symbolize/source.h"

#define WORK   ((uint64_t)64 << 20)
#define CPU_NS ((uint64_t)1000000000)

static void read_debugdata(const struct elffile *file)
{
	struct elffile *inside;
	void *bytes;
	size_t n;

	if (debugdata_read(file, &bytes, &n))
		return;
	if (n > DEBUGDATA_MAX)
		abort();
	if (elffile_open_memory(bytes, n, &inside) == 0)
		elffile_free(inside);
	free(bytes);
}

/* A directory without processes: no file is found, whatever its name is. */
static void open_debugfile(const struct elffile *file)
{
	struct root proc = {.fd = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC)};
	struct debugfile debug = {0};
	struct source_file of = {
		.elf = file, .build_id = "", .path = "/bin/a", .proc = &proc, .debug = &debug};
	const struct elffile *found;

	if (debugfile_find(&of, &found) == 0)
		abort();
	debugfile_deinit(&debug);
	root_deinit(&proc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elffile *file, *budgeted;
	struct work_budget budget;

	if (elffile_open_memory(data, size, &file) != 0)
		return 0;
	work_budget_init(&budget, WORK, CPU_NS, NULL);
	if (elffile_budgeted(file, &budget, &budgeted) == 0) {
		read_debugdata(budgeted);
		open_debugfile(budgeted);
		elffile_free(budgeted);
	}
	elffile_free(file);
	return 0;
}
