// SPDX-License-Identifier: Apache-2.0
/* Touches 20,000 pages for the first time, in touch_pages(). The pages take 30 ms, and a command
 * that ends so soon may have no names (docs/record.md): so it begins after a while. */
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGES	 20000
#define WHILE_US 500000

__attribute__((noinline)) static void touch_pages(volatile char *memory, size_t page)
{
	for (size_t i = 0; i < PAGES; i++)
		memory[i * page] = 1;
}

int main(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	if (memory == MAP_FAILED || madvise(memory, PAGES * page, MADV_NOHUGEPAGE) < 0)
		return 1;
	usleep(WHILE_US);
	touch_pages(memory, page);
	return 0;
}
