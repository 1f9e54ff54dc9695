// SPDX-License-Identifier: Apache-2.0
/*
 * A container that harms its profiler. The first argument says how:
 *
 *	names           its name is HTML, quotes, an escape of a terminal and a line break; its
 *	                command line has 2 MiB
 *	mappings        60,000 executable mappings; some are made again and again
 *	exec N          N processes that execute themselves again and again
 *	fork N          N processes with children that live for a moment
 *	threads N       N threads that sleep, and others that end at once
 *	spin N          N processes that run
 *	wait            runs after a line on standard input, out of locked memory, also code that no
 *	                file has, like that of a language runtime
 *	run FILE...     code in these ELF files (worstfile.c); their paths then lead to FIFOs
 *	stack FILE      code in this file, below a stack of addresses in it, again and again others
 *	cut FILE        code in this file, which is then truncated below the headers
 *	images DIR N    code in each of N files, which it makes in DIR
 *
 * Prints "ready" when the attack has begun, and runs until it is killed or its parent ends.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE	   4096
#define CODE	   512 /* bytes of spin(), and more */
#define N_MAPPINGS 60000
#define N_ARGS	   16
#define ARG_SIZE   (127 << 10)
#define N_SEGMENTS 1200
#define N_WORDS	   2000 /* a stack dump has room for 2,048 */

typedef uint64_t code_fn(uint64_t);

static volatile uint64_t sink;

/* The code is copied to another place before the run, so the code calls nothing. */
__attribute__((noinline, section(".text.spin"))) static uint64_t spin(uint64_t n)
{
	uint64_t x = n;

	for (uint64_t i = 0; i < n; i++)
		x = x * 6364136223846793005ull + i;
	return x;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void ready(void)
{
	puts("ready");
	fflush(stdout);
}

static void run(code_fn *code)
{
	for (;;)
		sink += code(1000000);
}

/* A child ends with its parent. Returns 0 in the child. */
static pid_t child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static void names(char **argv)
{
	char *args[N_ARGS + 3] = {argv[0], argv[1]};
	char *arg = malloc(ARG_SIZE);

	if (!arg)
		die("malloc");
	if (!argv[2]) {
		memset(arg, '\n', ARG_SIZE - 1);
		arg[ARG_SIZE - 1] = '\0';
		for (size_t i = 0; i < N_ARGS; i++)
			args[2 + i] = arg;
		execv("/proc/self/exe", args);
		die("exec");
	}
	prctl(PR_SET_NAME, "<b>\"\n\033[1m&,={}", 0, 0, 0);
	ready();
	run(spin);
}

/* Alternating rights, so that neighbours stay different mappings. */
static char *map_page(int i, void *where)
{
	const int prot = PROT_READ | PROT_EXEC | (i % 2 ? PROT_WRITE : 0);
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED : 0);

	return mmap(where, PAGE, prot, flags, -1, 0);
}

static void mappings(void)
{
	char **pages = calloc(N_MAPPINGS, sizeof(*pages));
	int n = 0;

	if (!pages)
		die("calloc");
	for (; n < N_MAPPINGS; n++) {
		char *page = map_page(n, NULL);

		if (page == MAP_FAILED)
			break; /* vm.max_map_count is smaller */
		pages[n] = page;
	}
	if (n < 1000)
		die("mmap");
	memcpy(pages[1], (const void *)spin, CODE);
	ready();
	for (int i = 2;; i = i + 1 < n ? i + 1 : 2) {
		munmap(pages[i], PAGE);
		if (map_page(i, pages[i]) == MAP_FAILED)
			die("mmap");
		sink += ((code_fn *)(void *)pages[1])(1000);
	}
}

static void exec_again(char **argv)
{
	char *args[] = {argv[0], "exec", NULL};

	if (argv[2]) {
		for (long i = strtol(argv[2], NULL, 10); i > 1; i--)
			if (child() == 0)
				break;
		ready(); /* by each process */
	}
	sink += spin(2000000);
	execv("/proc/self/exe", args);
	die("exec");
}

static void forks(long n)
{
	while (n-- > 1)
		if (child() == 0)
			break;
	ready();
	for (;;) {
		pid_t pid = child();

		if (pid == 0) {
			sink += spin(2000000);
			_exit(0);
		}
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
}

static void *sleeper(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void *nothing(void *unused)
{
	return unused;
}

static void threads(long n)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 16 << 10);
	while (n-- > 0)
		if (pthread_create(&thread, &attr, sleeper, NULL) != 0)
			break; /* there are no more */
	ready();
	for (;;) {
		if (pthread_create(&thread, &attr, nothing, NULL) == 0)
			pthread_join(thread, NULL);
		sink += spin(10000);
	}
}

static void spinners(long n)
{
	for (; n > 1; n--)
		if (child() == 0)
			run(spin);
	ready();
	run(spin);
}

static void run_locked(void)
{
	code_fn *volatile in_file = spin; /* else the compiler calls it once */
	char line[2], *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED)
		die("mmap");
	memcpy(code, (const void *)spin, CODE);
	if (mlockall(MCL_CURRENT) < 0)
		die("mlockall");
	ready();
	if (read(STDIN_FILENO, line, sizeof(line)) <= 0)
		exit(1);
	for (;;)
		sink += in_file(1000000) + ((code_fn *)(void *)code)(1000000);
}

/* The place of the first executable segment in the file, and its size. */
static off_t code_offset(int fd, size_t *ret_size)
{
	static Elf64_Phdr ph[N_SEGMENTS];
	Elf64_Ehdr eh;
	ssize_t n;

	if (pread(fd, &eh, sizeof(eh), 0) != sizeof(eh))
		die("ELF header");
	n = pread(fd, ph, sizeof(ph), (off_t)eh.e_phoff) / (ssize_t)sizeof(*ph);
	for (ssize_t i = 0; i < n && i < eh.e_phnum; i++)
		if (ph[i].p_type == PT_LOAD && ph[i].p_flags & PF_X) {
			*ret_size = ph[i].p_filesz;
			return (off_t)ph[i].p_offset;
		}
	errno = ENOEXEC;
	die("program headers");
	return 0;
}

/* Puts code into the file and maps it, with the rest of the segment if @ret_size is set. */
static code_fn *load(const char *path, size_t *ret_size)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	size_t size = CODE;
	off_t off, page;
	char *at;

	if (fd < 0)
		die(path);
	off = code_offset(fd, ret_size ? ret_size : &size);
	size = ret_size ? *ret_size : CODE;
	page = off & ~(off_t)(PAGE - 1);
	if (pwrite(fd, (const void *)spin, CODE, off) != CODE)
		die(path);
	at = mmap(NULL, (size_t)(off - page) + size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, page);
	if (at == MAP_FAILED)
		die(path);
	close(fd);
	return (code_fn *)(void *)(at + (off - page));
}

static void run_files(char **paths)
{
	code_fn *code[16];
	size_t n = 0;

	for (; paths[n] && n < sizeof(code) / sizeof(*code); n++) {
		code[n] = load(paths[n], NULL);
		if (unlink(paths[n]) < 0 || mkfifo(paths[n], 0644) < 0)
			die(paths[n]);
	}
	if (!n)
		exit(2);
	ready();
	for (size_t i = 0;; i = (i + 1) % n)
		sink += code[i](10000000);
}

/* Each stack dump has some thousand places of code that no dump before had. */
static void run_stack(const char *path)
{
	volatile uint64_t words[N_WORDS];
	size_t size;
	code_fn *code = load(path, &size);
	uint64_t x = 1;

	ready();
	for (;;) {
		for (size_t i = 0; i < N_WORDS; i++) {
			x = x * 6364136223846793005ull + 1442695040888963407ull;
			words[i] = (uintptr_t)code + (x >> 32) % size;
		}
		sink += code(10000000) + words[x % N_WORDS];
	}
}

static void run_cut(const char *path)
{
	code_fn *code = load(path, NULL);

	for (int i = 0; i < 500; i++)
		sink += code(1000000);
	if (truncate(path, 100) < 0)
		die(path);
	ready();
	run(spin);
}

/* The smallest file with code, in its second page. */
static void make_image(const char *path)
{
	struct {
		Elf64_Ehdr eh;
		Elf64_Phdr ph;
	} headers = {
		.eh = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				   EV_CURRENT},
		       .e_type = ET_DYN,
		       .e_machine = EM_X86_64,
		       .e_version = EV_CURRENT,
		       .e_ehsize = sizeof(headers.eh),
		       .e_phoff = sizeof(headers.eh),
		       .e_phentsize = sizeof(headers.ph),
		       .e_phnum = 1},
		.ph = {.p_type = PT_LOAD,
		       .p_flags = PF_R | PF_X,
		       .p_offset = PAGE,
		       .p_vaddr = PAGE,
		       .p_filesz = CODE,
		       .p_memsz = CODE},
	};
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);

	if (fd < 0 || write(fd, &headers, sizeof(headers)) != sizeof(headers))
		die(path);
	close(fd);
}

static void run_images(const char *dir, long n)
{
	code_fn **code = calloc((size_t)n, sizeof(*code));
	char path[4096];

	if (!code)
		die("calloc");
	for (long i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%ld", dir, i);
		make_image(path);
		code[i] = load(path, NULL);
	}
	ready();
	for (long i = 0;; i = (i + 1) % n)
		sink += code[i](1000000);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	long n = argc > 2 ? strtol(argv[argc - 1], NULL, 10) : 1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (strcmp(how, "names") == 0)
		names(argv);
	if (strcmp(how, "mappings") == 0)
		mappings();
	if (strcmp(how, "exec") == 0)
		exec_again(argv);
	if (strcmp(how, "fork") == 0)
		forks(n);
	if (strcmp(how, "threads") == 0)
		threads(n);
	if (strcmp(how, "spin") == 0)
		spinners(n);
	if (strcmp(how, "wait") == 0)
		run_locked();
	if (strcmp(how, "run") == 0)
		run_files(argv + 2);
	if (strcmp(how, "stack") == 0 && argc == 3)
		run_stack(argv[2]);
	if (strcmp(how, "cut") == 0 && argc == 3)
		run_cut(argv[2]);
	if (strcmp(how, "images") == 0 && argc == 4)
		run_images(argv[2], n);
	return 2;
}
