// SPDX-License-Identifier: Apache-2.0
/*
 * Behaves like a packed program, without the compression: copies the program NAME.packed in the
 * same folder (NAME is the loader's name) into anonymous memory at the linked addresses, and jumps
 * there. No mapped file holds the program, and the loader unmaps itself too.
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

/*
 * Unmap the loader and jump to the program, with the stack as set up by the kernel: the count of
 * arguments is the word below the arguments. A copy of this code does the work.
 */
#ifdef __x86_64__
__asm__(".globl leave_begin, leave_end\n"
	"leave_begin:\n"
	"	mov $11, %eax\n" /* munmap */
	"	syscall\n"
	"	mov %r12, %rsp\n"
	"	xor %edx, %edx\n"
	"	jmp *%r13\n"
	"leave_end:\n");
#else
__asm__(".globl leave_begin, leave_end\n"
	"leave_begin:\n"
	"	mov x8, #215\n"
	"	svc #0\n"
	"	mov sp, x19\n"
	"	br x20\n"
	"leave_end:\n");
#endif
extern const uint8_t leave_begin[], leave_end[];
extern const uint8_t __ehdr_start[], _end[];

static void leave(uint64_t entry, char **argv)
{
	uint64_t start = (uint64_t)__ehdr_start & -PAGE, end = ((uint64_t)_end + PAGE - 1) & -PAGE;
	uint8_t *copy =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		_exit(3);
	memcpy(copy, leave_begin, (size_t)(leave_end - leave_begin));
	mprotect(copy, PAGE, PROT_READ | PROT_EXEC);
	__builtin___clear_cache((char *)copy, (char *)copy + PAGE);
#ifdef __x86_64__
	register char **stack __asm__("r12") = argv - 1;
	register uint64_t to __asm__("r13") = entry;

	__asm__ volatile("jmp *%0" ::"r"(copy), "D"(start), "S"(end - start), "r"(stack), "r"(to)
			 : "memory");
#else
	register uint64_t from __asm__("x0") = start, n __asm__("x1") = end - start;
	register char **stack __asm__("x19") = argv - 1;
	register uint64_t to __asm__("x20") = entry;

	__asm__ volatile("br %0" ::"r"(copy), "r"(from), "r"(n), "r"(stack), "r"(to) : "memory");
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
	leave(entry, argv);
}
