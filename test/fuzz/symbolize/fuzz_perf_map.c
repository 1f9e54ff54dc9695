// SPDX-License-Identifier: Apache-2.0
/* A perf map that grows by the second part of the input: read in two steps, it has the same names
 * as read at once. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/work_budget.h"
#include "symbolize/perf_map.h"

static void read_map(struct perf_map *m, int fd)
{
	struct work_budget work;

	work_budget_init(&work, UINT64_MAX, UINT64_MAX / 2, NULL);
	if (perf_map_read(m, fd, &work))
		abort();
}

static void add(int fd, const uint8_t *data, size_t n)
{
	if (n && write(fd, data, n) != (ssize_t)n)
		abort();
}

static void compare(const struct perf_map *a, const struct perf_map *b, uint64_t pc)
{
	const char *x = perf_map_find(a, pc), *y = perf_map_find(b, pc);

	if (!x != !y || (x && strcmp(x, y) != 0))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("map", MFD_CLOEXEC);
	uint64_t events[PERF_MAP_EVENT_MAX] = {0};
	struct perf_map *grown, *whole;

	if (fd < 0 || perf_map_new(events, &grown) || perf_map_new(events, &whole))
		abort();
	add(fd, data, size / 2);
	read_map(grown, fd);
	add(fd, data + size / 2, size - size / 2);
	read_map(grown, fd);
	read_map(whole, fd);
	if (events[PERF_MAP_REPLACED])
		abort();
	for (uint64_t pc = 0; pc < 0x2000; pc++)
		compare(grown, whole, pc);
	perf_map_free(grown);
	perf_map_free(whole);
	close(fd);
	return 0;
}
