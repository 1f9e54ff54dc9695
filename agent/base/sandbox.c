// SPDX-License-Identifier: Apache-2.0
/*
 * The filter is a list of system calls (seccomp(2), BPF of the classic kind). Libraries may try
 * others, so a refused call fails and does not kill. An attempt to open a file becomes a signal,
 * SIGSYS, whose handler gives the call its result: libdw opens files of split DWARF by name, and
 * has no function that takes a descriptor.
 */
#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/cleanup.h"

#if defined(__x86_64__)
#define SANDBOX_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SANDBOX_ARCH AUDIT_ARCH_AARCH64
#else
#error "the filter of system calls does not know this architecture"
#endif

/* Of an argument the low half: both architectures are little-endian. */
#define LOAD(member) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, member))
#define ALLOW	      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define REFUSE	      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define ALLOW_CALL(n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(n), 0, 1), ALLOW
#define TRAP_CALL(n)                                              \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(n), 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)
/* Call @n is allowed with one of @bits in its argument, and refused without. */
#define CALL_WITH(n, argument, bits)                                                    \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(n), 0, 4), LOAD(args[argument]), \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (uint32_t)(bits), 0, 1), ALLOW, REFUSE
/* The other way round. */
#define CALL_WITHOUT(n, argument, bits)                                                 \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(n), 0, 4), LOAD(args[argument]), \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (uint32_t)(bits), 0, 1), REFUSE, ALLOW

/* x32, the second interface of x86-64, has larger numbers, and the list names none of them. */
static struct sock_filter filter[] = {
	LOAD(arch),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SANDBOX_ARCH, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	LOAD(nr),
	/* descriptors that are open */
	ALLOW_CALL(SYS_read),
	ALLOW_CALL(SYS_pread64),
	ALLOW_CALL(SYS_write),
	ALLOW_CALL(SYS_sendto),
	ALLOW_CALL(SYS_recvfrom),
	ALLOW_CALL(SYS_recvmsg),
	ALLOW_CALL(SYS_shutdown),
	ALLOW_CALL(SYS_lseek),
	ALLOW_CALL(SYS_fstat),
	ALLOW_CALL(SYS_close),
	ALLOW_CALL(SYS_dup),
	TRAP_CALL(SYS_openat),
#ifdef SYS_open
	TRAP_CALL(SYS_open),
#endif
	ALLOW_CALL(SYS_ppoll),
#ifdef SYS_poll
	ALLOW_CALL(SYS_poll),
#endif
	/* memory */
	ALLOW_CALL(SYS_brk),
	ALLOW_CALL(SYS_munmap),
	ALLOW_CALL(SYS_mremap),
	ALLOW_CALL(SYS_madvise),
	ALLOW_CALL(SYS_futex),
	/* itself */
	ALLOW_CALL(SYS_clock_gettime),
	ALLOW_CALL(SYS_getrandom),
	ALLOW_CALL(SYS_rt_sigreturn),
	ALLOW_CALL(SYS_exit),
	ALLOW_CALL(SYS_exit_group),
#ifdef __SANITIZE_ADDRESS__
	ALLOW_CALL(SYS_sigaltstack), /* asked before the end */
#endif
	/* glibc's fstat(). The attributes of a path, too, but not its contents */
	CALL_WITH(SYS_newfstatat, 3, AT_EMPTY_PATH),
	/* F_GETFD 1 and F_GETFL 3: libelf checks its descriptor */
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 5),
	LOAD(args[1]),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_GETFD, 1, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_GETFL, 0, 1),
	ALLOW,
	REFUSE,
	CALL_WITHOUT(SYS_mmap, 2, PROT_EXEC),
	CALL_WITHOUT(SYS_mprotect, 2, PROT_EXEC),
	REFUSE,
};

static int set_limit(unsigned int resource, uint64_t value)
{
	const struct rlimit limit = {.rlim_cur = value, .rlim_max = value};

	return setrlimit((__rlimit_resource_t)resource, &limit) < 0 ? -errno : 0;
}

static int set_limits(const struct sandbox_opts *opts)
{
	int r = set_limit(RLIMIT_CORE, 0);

	if (!r)
		r = set_limit(RLIMIT_CPU, opts->cpu_s);
/* the sanitizers' shadows take terabytes of addresses */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	if (!r)
		r = set_limit(RLIMIT_DATA, opts->data_bytes);
	if (!r)
		r = set_limit(RLIMIT_AS, opts->address_bytes);
#endif
	return r;
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
	    syscall(SYS_capset, &header, none) < 0)
		return -errno;
	return 0;
}

/* Best effort: procfs may be mounted read-only. */
static void die_first(void)
{
	static const char most[] = "1000";
	_cleanup_(close_fdp) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)!write(fd, most, sizeof(most) - 1);
}

/* A signal handler has no other way to its data. Set once. */
static int (*answer_open)(void);

static void on_open(int signal, siginfo_t *info, void *context)
{
	ucontext_t *registers = context;
	const int result = answer_open ? answer_open() : -EPERM;

	(void)signal;
	(void)info;
#ifdef __x86_64__
	registers->uc_mcontext.gregs[REG_RAX] = result;
#else
	registers->uc_mcontext.regs[0] = (unsigned long)result;
#endif
}

/* The mask may be inherited, and a blocked SIGSYS kills. */
static int handle_opens(int (*open)(void))
{
	struct sigaction action = {.sa_sigaction = on_open, .sa_flags = SA_SIGINFO};
	sigset_t set;

	answer_open = open;
	sigemptyset(&set);
	sigaddset(&set, SIGSYS);
	if (sigaction(SIGSYS, &action, NULL) < 0 || sigprocmask(SIG_UNBLOCK, &set, NULL) < 0)
		return -errno;
	return 0;
}

int sandbox_enter(const struct sandbox_opts *opts)
{
	const struct sock_fprog program = {.len = array_size(filter), .filter = filter};
	int r;

	die_first();
	r = set_limits(opts);
	if (!r)
		r = drop_capabilities();
	if (!r)
		r = handle_opens(opts->open);
	if (!r &&
	    (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	     prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0))
		r = -errno;
	return r;
}
