// SPDX-License-Identifier: Apache-2.0
/*
 * A container that means harm to whoever profiles it. The first argument says how:
 *
 *	names     its name is HTML, quotes, a terminal's escape and a line break
 *	maps      as many executable mappings as the kernel gives, and code that runs in the last
 *	exec      executes itself again and again
 *	fork      children that live for a moment
 *	sparse    runs code out of an ELF file of 1 TiB whose headers lie; then the file is cut off
 *	tables    runs code out of files with unwind tables that never end, or are of the same code
 *	          400,000 times; and which are FIFOs when somebody looks for them by name
 *
 * Ends by itself after some seconds.
 */
#include <elf.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE	  4096
#define RUN_S	  12
#define N_MAPS	  70000
#define FILE_SIZE (1ll << 40)
#define N_FDES	  400000

static volatile uint64_t sink;

/* Copied to where it is to run, so it calls nothing. */
__attribute__((noinline, section(".text.spin"))) static uint64_t spin(uint64_t n)
{
	uint64_t x = n;

	for (uint64_t i = 0; i < n; i++)
		x = x * 6364136223846793005ull + i;
	return x;
}

static void run_until(uint64_t (*code)(uint64_t), time_t end)
{
	while (time(NULL) < end)
		sink += code(1000000);
}

static int names(time_t end)
{
	prctl(PR_SET_NAME, "<b>\"\n\033[1m&,={}", 0, 0, 0);
	run_until(spin, end);
	return 0;
}

static int maps(time_t end)
{
	char *code = NULL;

	for (int i = 0; i < N_MAPS; i++) {
		/* alternating rights keep neighbours from becoming one mapping */
		int prot = PROT_READ | PROT_EXEC | (i % 2 ? PROT_WRITE : 0);
		char *page = mmap(NULL, PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (page == MAP_FAILED)
			break; /* vm.max_map_count: what there is will do */
		if (prot & PROT_WRITE)
			code = page;
	}
	if (!code)
		return 1;
	memcpy(code, (const void *)spin, 512);
	run_until((uint64_t(*)(uint64_t))(void *)code, end);
	return 0;
}

static int exec_again(char **argv, int left)
{
	char count[16];
	char *args[] = {argv[0], argv[1], count, NULL};

	sink += spin(2000000);
	if (!left)
		return 0;
	snprintf(count, sizeof(count), "%d", left - 1);
	return execv("/proc/self/exe", args);
}

static int forks(time_t end)
{
	while (time(NULL) < end) {
		pid_t pid = fork();

		if (pid == 0) {
			sink += spin(2000000);
			_exit(0);
		}
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
	return 0;
}

/* Headers that promise more than any file has. */
static void lying_header(Elf64_Ehdr *h)
{
	memcpy(h->e_ident, ELFMAG, SELFMAG);
	h->e_ident[EI_CLASS] = ELFCLASS64;
	h->e_ident[EI_DATA] = ELFDATA2LSB;
	h->e_ident[EI_VERSION] = EV_CURRENT;
	h->e_type = ET_DYN;
	h->e_version = EV_CURRENT;
	h->e_ehsize = sizeof(*h);
	h->e_phoff = sizeof(*h);
	h->e_phentsize = sizeof(Elf64_Phdr);
	h->e_phnum = PN_XNUM;
	h->e_shoff = FILE_SIZE / 2;
	h->e_shentsize = sizeof(Elf64_Shdr);
	h->e_shnum = 0; /* "see the first section", which is zeros */
	h->e_shstrndx = SHN_XINDEX;
}

static int sparse(time_t end)
{
	char page[PAGE] = {0};
	void *code;
	int fd = open("/out/lib.so", O_RDWR | O_CREAT, 0755);

	lying_header((Elf64_Ehdr *)page);
	if (fd < 0 || ftruncate(fd, FILE_SIZE) < 0 || pwrite(fd, page, PAGE, 0) != PAGE)
		return 1;
	memcpy(page, (const void *)spin, 512);
	if (pwrite(fd, page, PAGE, PAGE) != PAGE)
		return 1;
	code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, PAGE);
	if (code == MAP_FAILED)
		return 1;
	run_until((uint64_t(*)(uint64_t))code, end - RUN_S / 2);
	if (ftruncate(fd, 100) < 0)
		return 1;
	run_until(spin, end);
	return 0;
}

/* A library: headers and names in its first page, code in the second, then .debug_frame. */
struct library {
	Elf64_Ehdr eh;
	Elf64_Phdr ph;
	Elf64_Shdr sh[3];
	char names[32];
};

struct cie {
	uint32_t length, id;
	uint8_t body[16];
};

struct fde {
	uint32_t length, cie;
	uint64_t start, size;
};

static const struct cie cie = {
	.length = sizeof(cie) - 4,
	.id = UINT32_MAX,
	/* version 1; code by 1, data by -8, return address 16; CFA = rsp + 8, ra at CFA - 8 */
	.body = {1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1},
};

static int library_write(int fd, uint64_t table_size)
{
	struct library lib = {.names = "\0.debug_frame\0.shstrtab"};
	char code[PAGE] = {0};

	lying_header(&lib.eh);
	lib.eh.e_machine = EM_X86_64;
	lib.eh.e_phoff = offsetof(struct library, ph);
	lib.eh.e_phnum = 1;
	lib.eh.e_shoff = offsetof(struct library, sh);
	lib.eh.e_shnum = 3;
	lib.eh.e_shstrndx = 2;
	lib.ph = (Elf64_Phdr){.p_type = PT_LOAD,
			      .p_flags = PF_R | PF_X,
			      .p_offset = PAGE,
			      .p_vaddr = PAGE,
			      .p_filesz = PAGE,
			      .p_memsz = PAGE};
	lib.sh[1] = (Elf64_Shdr){.sh_name = 1,
				 .sh_type = SHT_PROGBITS,
				 .sh_offset = 2 * PAGE,
				 .sh_size = table_size};
	lib.sh[2] = (Elf64_Shdr){.sh_name = 14,
				 .sh_type = SHT_STRTAB,
				 .sh_offset = offsetof(struct library, names),
				 .sh_size = sizeof(lib.names)};
	memcpy(code, (const void *)spin, 512);
	return ftruncate(fd, (off_t)(2 * PAGE + table_size)) < 0 ||
	       pwrite(fd, &lib, sizeof(lib), 0) != sizeof(lib) ||
	       pwrite(fd, code, PAGE, PAGE) != PAGE ||
	       pwrite(fd, &cie, sizeof(cie), 2 * PAGE) != sizeof(cie);
}

/* Each function is the code page but for what its number cuts off at the end. */
static int fdes_write(int fd, uint32_t n)
{
	struct fde *fdes = calloc(n, sizeof(*fdes));
	size_t bytes = n * sizeof(*fdes);
	int bad;

	if (!fdes)
		return 1;
	for (uint32_t i = 0; i < n; i++)
		fdes[i] = (struct fde){sizeof(*fdes) - 4, 0, PAGE, PAGE - i % (PAGE / 2)};
	bad = pwrite(fd, fdes, bytes, 2 * PAGE + sizeof(cie)) != (ssize_t)bytes;
	free(fdes);
	return bad;
}

/* Its code, mapped; NULL if that cannot be. */
static void *library_map(const char *path, uint32_t n_fdes, uint64_t table_size)
{
	int fd = open(path, O_RDWR | O_CREAT, 0755);
	void *code;

	if (fd < 0 || library_write(fd, table_size) || fdes_write(fd, n_fdes))
		return NULL;
	code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, PAGE);
	close(fd);
	if (code == MAP_FAILED || unlink(path) < 0 || mkfifo(path, 0644) < 0)
		return NULL;
	return code;
}

static int tables(time_t end)
{
	void *endless = library_map("/out/endless.so", 1, FILE_SIZE);
	void *dense =
		library_map("/out/dense.so", N_FDES, sizeof(cie) + N_FDES * sizeof(struct fde));

	if (!endless || !dense)
		return 1;
	run_until((uint64_t(*)(uint64_t))endless, end - RUN_S / 2);
	run_until((uint64_t(*)(uint64_t))dense, end);
	return 0;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	time_t end = time(NULL) + RUN_S;

	if (strcmp(how, "names") == 0)
		return names(end);
	if (strcmp(how, "maps") == 0)
		return maps(end);
	if (strcmp(how, "exec") == 0)
		return exec_again(argv, argc > 2 ? (int)strtol(argv[2], NULL, 10) : 3000);
	if (strcmp(how, "fork") == 0)
		return forks(end);
	if (strcmp(how, "sparse") == 0)
		return sparse(end);
	if (strcmp(how, "tables") == 0)
		return tables(end);
	return 2;
}
