// SPDX-License-Identifier: Apache-2.0
/*
 * What a packed program does, without the compression: puts the program that lies beside it under
 * its own name and ".packed" into anonymous memory, at the addresses that it is linked at, and
 * jumps there. Nothing of it is left in a file that is mapped.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096ul

static void put_segment(const uint8_t *file, const Elf64_Phdr *ph)
{
	uint64_t start = ph->p_vaddr & -PAGE, end = (ph->p_vaddr + ph->p_memsz + PAGE - 1) & -PAGE;
	int prot = (ph->p_flags & PF_R ? PROT_READ : 0) | (ph->p_flags & PF_W ? PROT_WRITE : 0) |
		   (ph->p_flags & PF_X ? PROT_EXEC : 0);
	uint8_t *at = mmap((void *)start, end - start, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (at != (void *)start)
		_exit(3);
	memcpy((void *)ph->p_vaddr, file + ph->p_offset, ph->p_filesz);
	mprotect(at, end - start, prot);
}

/* The stack as the kernel gave it to us: the count of arguments is the word below them. */
static void jump(uint64_t entry, char **argv)
{
#ifdef __x86_64__
	__asm__ volatile("mov %0, %%rsp\n\txor %%edx, %%edx\n\tjmp *%1" ::"r"(argv - 1), "r"(entry)
			 : "memory");
#else
	__asm__ volatile("mov sp, %0\n\tbr %1" ::"r"(argv - 1), "r"(entry) : "memory");
#endif
	__builtin_unreachable();
}

int main(int argc, char **argv)
{
	char self[4096] = {0};
	struct stat st;
	const uint8_t *file;
	const Elf64_Ehdr *eh;
	int fd;

	(void)argc;
	if (readlink("/proc/self/exe", self, sizeof(self) - 8) < 0)
		return 1;
	fd = open(strcat(self, ".packed"), O_RDONLY);
	if (fd < 0 || fstat(fd, &st) < 0)
		return 1;
	file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (file == MAP_FAILED)
		return 1;
	eh = (const Elf64_Ehdr *)file;
	for (int i = 0; i < eh->e_phnum; i++) {
		const Elf64_Phdr *ph = (const Elf64_Phdr *)(file + eh->e_phoff) + i;

		if (ph->p_type == PT_LOAD)
			put_segment(file, ph);
	}
	uint64_t entry = eh->e_entry;

	munmap((void *)file, (size_t)st.st_size);
	close(fd);
	jump(entry, argv);
}
