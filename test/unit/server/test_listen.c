// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/listen.h"

static void test_parse(void **state)
{
	static const struct {
		const char *text;
		bool ok, loopback;
	} rows[] = {
		{"127.0.0.1:7070", true, true},
		{"127.255.0.3:1", true, true},
		{"0.0.0.0:65535", true, false},
		{"10.1.2.3:0", true, false},
		{"[::1]:7070", true, true},
		{"[::]:7070", true, false},
		{"[::2]:7070", true, false},
		{"[2001:db8::1]:7070", true, false},
		{"127.0.0.1:65536", false, false},
		{"127.0.0.1:-1", false, false},
		{"127.0.0.1:", false, false},
		{"127.0.0.1", false, false},
		{"127.0.0.1:70 ", false, false},
		{":7070", false, false},
		{"7070", false, false},
		{"", false, false},
		{"::1:7070", false, false},
		{"[::1:7070", false, false},
		{"[127.0.0.1]:7070", false, false},
		{"[]:7070", false, false},
		{"localhost:7070", false, false},
		{"256.0.0.1:7070", false, false},
		{"[fe80::1%lo]:7070", false, false},
		{"[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]:1", false,
		 false},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct listen_address a;

		row_begin(rows[i].text);
		assert_int_equal(listen_parse(rows[i].text, &a), rows[i].ok);
		if (rows[i].ok)
			assert_int_equal(listen_is_loopback(&a), rows[i].loopback);
	}
}

static void test_open(void **state)
{
	_cleanup_(close_fdp) int first = -1;
	char text[LISTEN_TEXT_MAX];
	struct listen_address a;
	int second = -1;

	(void)state;
	assert_true(listen_parse("127.0.0.1:0", &a));
	assert_int_equal(listen_open(&a, &first), 0);
	listen_text(first, text);
	assert_memory_equal(text, "127.0.0.1:", 10);
	assert_true(strcmp(text, "127.0.0.1:0") != 0);
	/* the port is taken now */
	assert_true(listen_parse(text, &a));
	assert_int_equal(listen_open(&a, &second), -EADDRINUSE);
	assert_int_equal(second, -1);
	assert_non_null(strstr(listen_hint(-EADDRINUSE), "another port"));
	/* an address for documentation: on no machine */
	assert_true(listen_parse("192.0.2.1:7070", &a));
	assert_int_equal(listen_open(&a, &second), -EADDRNOTAVAIL);
	listen_text(-1, text);
	assert_string_equal(text, "");
}

/* Both settings may be in each other's way. */
static void test_hint(void **state)
{
	static const struct {
		const char *listen, *ui;
		int error;
		bool is_own;
	} rows[] = {
		{"[::]:7070", "0.0.0.0:7070", -EADDRINUSE, true},
		{"127.0.0.1:7070", "0.0.0.0:7070", -EADDRINUSE, true},
		{"[::]:7070", "127.0.0.1:7070", -EADDRINUSE, true},
		{"[::]:7070", "127.0.0.1:7071", -EADDRINUSE, false},
		{"[::]:7070", "[::]:7070", -EADDRINUSE, false},
		{"127.0.0.1:7070", "127.0.0.2:7070", -EADDRINUSE, false},
		{"[::]:7070", "0.0.0.0:7070", -EACCES, false},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct listen_plan plan;
		char text[LISTEN_TEXT_MAX];

		row_begin(rows[i].ui);
		assert_int_equal(listen_plan(rows[i].listen, rows[i].ui, &plan), 0);
		listen_name(&plan.metrics, text);
		assert_string_equal(text, rows[i].listen);
		assert_int_equal(
			strncmp(listen_plan_hint(&plan, rows[i].error), "--listen and", 12) == 0,
			rows[i].is_own);
	}
}

/* A network of its own, in which "[::]" is IPv6 alone by default. */
static bool enter_network(void)
{
	const char setting[] = "/proc/sys/net/ipv6/bindv6only";
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	_cleanup_(close_fdp) int sysctl = -1;
	_cleanup_(close_fdp) int fd = -1;

	if (unshare(CLONE_NEWNET) < 0)
		return false;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0)
		return false;
	sysctl = open(setting, O_WRONLY | O_CLOEXEC);
	return sysctl >= 0 ? write(sysctl, "1", 1) == 1 : errno == ENOENT;
}

/* As with "ipv6.disable=1". */
static bool refuse_ipv6(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = array_size(filter), .filter = filter};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Whether a client of 127.0.0.1 reaches @fd. */
static bool has_ipv4(int fd)
{
	_cleanup_(close_fdp) int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char text[LISTEN_TEXT_MAX], loopback[LISTEN_TEXT_MAX];
	struct listen_address to;

	listen_text(fd, text);
	snprintf(loopback, sizeof(loopback), "127.0.0.1%s", strrchr(text, ':'));
	return listen_parse(loopback, &to) &&
	       connect(client, (struct sockaddr *)&to.addr, to.len) == 0;
}

/* 0, or the step that failed. */
static int listen_everywhere(const char *text, bool is_without)
{
	_cleanup_(close_fdp) int fd = -1;
	struct listen_address a;

	if (!enter_network() || (is_without && !refuse_ipv6()))
		return 1;
	if (!listen_parse(text, &a))
		return 2;
	if (listen_open(&a, &fd))
		return 3;
	return has_ipv4(fd) ? 0 : 4;
}

/* "[::]" is all addresses, also without IPv6 in the kernel. */
static void test_everywhere(void **state)
{
	static const struct {
		const char *text;
		bool is_without; /* the kernel has no IPv6 */
		int step;
	} rows[] = {
		{"[::]:0", false, 0},	{"[::]:0", true, 0},  {"0.0.0.0:0", false, 0},
		{"0.0.0.0:0", true, 0}, {"[::1]:0", true, 3},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		pid_t child;
		int status;

		row_begin(rows[i].text);
		child = fork();
		if (child == 0)
			_exit(listen_everywhere(rows[i].text, rows[i].is_without));
		assert_true(child > 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), rows[i].step);
	}
}

/* Where the page is, given both settings. */
static void test_plan(void **state)
{
	static const struct {
		const char *listen, *ui;
		int r;
		const char *at; /* the page's address */
		bool is_one;
	} rows[] = {
		{"127.0.0.1:7070", NULL, 0, "127.0.0.1:7070", true},
		{"[::1]:7070", NULL, 0, "[::1]:7070", true},
		{"127.0.0.1:0", NULL, 0, "127.0.0.1:0", true},
		{"0.0.0.0:7070", NULL, 0, "127.0.0.1:7071", false},
		{"[::]:7070", NULL, 0, "127.0.0.1:7071", false},
		{"10.1.2.3:65535", NULL, 0, "127.0.0.1:65534", false},
		{"0.0.0.0:0", NULL, 0, "127.0.0.1:0", false},
		{"0.0.0.0:7070", "0.0.0.0:7070", 0, "0.0.0.0:7070", true},
		{"0.0.0.0:7070", "0.0.0.0:7071", 0, "0.0.0.0:7071", false},
		{"127.0.0.1:7070", "127.0.0.2:7070", 0, "127.0.0.2:7070", false},
		{"127.0.0.1:7070", "10.1.2.3:80", 0, "10.1.2.3:80", false},
		{"localhost:7070", NULL, LISTEN_BAD, NULL, false},
		{"127.0.0.1:7070", "localhost:7070", LISTEN_BAD_UI, NULL, false},
		{"127.0.0.1:7070", "", LISTEN_BAD_UI, NULL, false},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct listen_plan plan;
		struct listen_address at;

		row_begin(rows[i].listen);
		assert_int_equal(listen_plan(rows[i].listen, rows[i].ui, &plan), rows[i].r);
		if (rows[i].r)
			continue;
		assert_true(listen_parse(rows[i].at, &at));
		assert_int_equal(plan.ui.len, at.len);
		assert_memory_equal(&plan.ui.addr, &at.addr, at.len);
		assert_int_equal(plan.is_one, rows[i].is_one);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse), cmocka_unit_test(test_open),
		cmocka_unit_test(test_hint),  cmocka_unit_test(test_everywhere),
		cmocka_unit_test(test_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
