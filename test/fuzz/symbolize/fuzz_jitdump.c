// SPDX-License-Identifier: Apache-2.0
/* A jitdump that grows by the second part of the input: read in two steps, it has the same names
 * and lines as read at once. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/work_budget.h"
#include "symbolize/jitdump.h"

static void read_dump(struct jitdump *j, int fd)
{
	struct work_budget work;

	work_budget_init(&work, UINT64_MAX, UINT64_MAX / 2, NULL);
	if (jitdump_read(j, fd, &work))
		abort();
}

static void add(int fd, const uint8_t *data, size_t n)
{
	if (n && write(fd, data, n) != (ssize_t)n)
		abort();
}

static void compare(const struct jitdump *a, const struct jitdump *b, uint64_t pc)
{
	struct jitdump_place x, y;
	const bool found = jitdump_find(a, pc, &x);

	if (found != jitdump_find(b, pc, &y))
		abort();
	if (found && (strcmp(x.function, y.function) != 0 || strcmp(x.file, y.file) != 0 ||
		      x.line != y.line))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("dump", MFD_CLOEXEC);
	uint64_t events[JITDUMP_EVENT_MAX] = {0};
	struct jitdump *grown, *whole;

	if (fd < 0 || jitdump_new(events, &grown) || jitdump_new(events, &whole))
		abort();
	add(fd, data, size / 2);
	read_dump(grown, fd);
	add(fd, data + size / 2, size - size / 2);
	read_dump(grown, fd);
	read_dump(whole, fd);
	if (events[JITDUMP_REPLACED])
		abort();
	for (uint64_t pc = 0; pc < 0x4000; pc++)
		compare(grown, whole, pc);
	jitdump_free(grown);
	jitdump_free(whole);
	close(fd);
	return 0;
}
