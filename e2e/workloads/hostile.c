// SPDX-License-Identifier: Apache-2.0
/*
 * A container that means harm to whoever profiles it. The first argument says how:
 *
 *	names     its name is HTML, quotes, a terminal's escape and a line break
 *	maps      60,000 executable mappings, and code that runs in the last
 *	exec      executes itself again and again
 *	fork      children that live for a moment
 *	sparse    runs code out of an ELF file of 1 TiB whose headers lie; then the file is cut off
 *
 * Ends by itself after some seconds.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE	  4096
#define RUN_S	  12
#define N_MAPS	  60000
#define FILE_SIZE (1ll << 40)

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
		int prot = PROT_READ | PROT_WRITE | (i % 2 ? PROT_EXEC : 0);
		char *page = mmap(NULL, PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (page == MAP_FAILED)
			break; /* vm.max_map_count: what there is will do */
		if (prot & PROT_EXEC)
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
	return 2;
}
