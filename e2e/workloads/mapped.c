// SPDX-License-Identifier: Apache-2.0
/*
 * Burns one CPU in code that only /proc/PID/map_files still leads to. The program maps a copy of
 * itself, readable only by its owner, removes the copy and runs a function in it, as another user
 * than root. Static and at a fixed address, for a container with this file only.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#define COPY "/out/copy"
#define USER 65534

/* Calls nothing and uses no data, so the function runs at any address. */
__attribute__((noinline)) static uint64_t burn_mapped(uint64_t x)
{
	for (int i = 0; i < 100000000; i++)
		x = x * 6364136223846793005ull + 1442695040888963407ull;
	return x;
}

/* File offset of an address of the program, and the end of its segment in the file. */
static int file_offset(uintptr_t vaddr, off_t *ret, size_t *ret_len)
{
	const Elf64_Phdr *phdrs = (const Elf64_Phdr *)getauxval(AT_PHDR);

	for (unsigned long i = 0; i < getauxval(AT_PHNUM); i++) {
		const Elf64_Phdr *ph = &phdrs[i];

		if (ph->p_type != PT_LOAD || vaddr < ph->p_vaddr ||
		    vaddr - ph->p_vaddr >= ph->p_filesz)
			continue;
		*ret = (off_t)(vaddr - ph->p_vaddr + ph->p_offset);
		*ret_len = ph->p_filesz - (vaddr - ph->p_vaddr);
		return 0;
	}
	return -1;
}

static int map_copy(off_t off, size_t len, char **ret)
{
	off_t page = off & ~((off_t)sysconf(_SC_PAGESIZE) - 1);
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int to = open(COPY, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0500);

	if (from < 0 || to < 0 || sendfile(to, from, NULL, 1 << 30) <= 0)
		return -1;
	if (fchown(to, USER, USER) < 0)
		return -1;
	*ret = mmap(NULL, len + (size_t)(off - page), PROT_READ | PROT_EXEC, MAP_PRIVATE, to, page);
	if (*ret == MAP_FAILED)
		return -1;
	*ret += off - page;
	return close(to) < 0 || close(from) < 0 || unlink(COPY) < 0 ? -1 : 0;
}

int main(void)
{
	uint64_t (*volatile burn)(uint64_t);
	volatile uint64_t x = 1;
	size_t len;
	char *copy;
	off_t off;

	if (file_offset((uintptr_t)burn_mapped, &off, &len) < 0 || map_copy(off, len, &copy) < 0)
		return 1;
	if (setgid(USER) < 0 || setuid(USER) < 0)
		return 1;
	burn = (uint64_t(*)(uint64_t))(uintptr_t)copy;
	for (;;)
		x = burn(x);
}
