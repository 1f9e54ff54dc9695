// SPDX-License-Identifier: Apache-2.0
/*
 * `podprof doctor` with all rights, with none, in a PID namespace of its own, with hidden
 * processes, with wrong settings, and with an unreachable kubelet. Each run is in a child, because
 * its setup changes the process.
 */
#include "support/test.h"

#include <fcntl.h>
#include <grp.h>
#include <jansson.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/capability.h"
#include "base/root.h"
#include "base/strview.h"
#include "cmd/cmd.h"
#include "support/cgroups.h"
#include "support/pidns.h"
#include "support/tree.h"

#define NOBODY	   65534
#define LINE	   "doctor --json --listen 127.0.0.1:0 --store-dir %s"
#define OUTPUT_MAX (1u << 20)
#define WORDS_MAX  32
#define ACCOUNT	   "/run/secrets/kubernetes.io/serviceaccount"

struct bench {
	struct tree tree;
	int out; /* where a child's output goes */
	char line[512];
	struct cgroups cgroups;
	struct cgroup container;
	int status;
	json_t *findings; /* in order */
};

static struct bench bench;

static int setup(void **state)
{
	bench = (struct bench){0};
	tree_init(&bench.tree);
	bench.out = memfd_create("out", 0);
	assert_true(bench.out >= 0);
	/* unprivileged users write there too */
	assert_int_equal(fchmod(bench.tree.fd, 0777), 0);
	unsetenv("KUBERNETES_SERVICE_HOST");
	unsetenv("HOST_IP");
	*state = &bench;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	json_decref(b->findings);
	close(b->out);
	tree_deinit(&b->tree);
	return 0;
}

/* ---------------------------------------------------------------- children */

/* In the child. */
static int run_command(void)
{
	char *argv[WORDS_MAX + 1] = {(char *)"podprof"}, *save = NULL;
	int argc = 1, status;

	for (char *word = strtok_r(bench.line, " ", &save); word && argc < WORDS_MAX;
	     word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	if (dup2(bench.out, STDOUT_FILENO) < 0)
		return 100;
	status = cmd_main(argc, argv);
	fflush(stdout);
	return status;
}

static void take_findings(struct bench *b)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(OUTPUT_MAX);
	struct strview all, line;

	lseek(b->out, 0, SEEK_SET);
	assert_int_equal(root_read_fd(b->out, &out), 0);
	b->findings = json_array();
	all = strview_of_bytes(out.data, out.len);
	while (strview_line(&all, &line)) {
		json_t *finding = json_loadb(line.p, strview_len(&line), 0, NULL);

		assert_non_null(finding);
		json_array_append_new(b->findings, finding);
	}
	print_message("%.*s", (int)out.len, out.data ? out.data : "");
}

/* @before: returns false if the setup is impossible. */
static void doctor(struct bench *b, const char *arguments, bool (*before)(struct bench *b))
{
	pid_t pid;

	snprintf(b->line, sizeof(b->line), LINE " %s", b->tree.path, arguments);
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(before(b) ? run_command() : 101);
	assert_int_equal(waitpid(pid, &b->status, 0), pid);
	assert_true(WIFEXITED(b->status));
	b->status = WEXITSTATUS(b->status);
	take_findings(b);
}

static const char *text(const json_t *finding, const char *name)
{
	const char *s = json_string_value(json_object_get(finding, name));

	return s ? s : "";
}

/* The first finding of this name that is not ok, or NULL. */
static const json_t *find_bad(const struct bench *b, const char *check)
{
	size_t i;
	json_t *finding;

	json_array_foreach(b->findings, i, finding) {
		if (strcmp(text(finding, "check"), check) == 0 &&
		    strcmp(text(finding, "outcome"), "ok") != 0)
			return finding;
	}
	return NULL;
}

/* There may be several of a name. */
static void assert_bad(const struct bench *b, const char *check, const char *outcome,
		       const char *found)
{
	size_t i;
	json_t *finding;

	json_array_foreach(b->findings, i, finding) {
		if (strcmp(text(finding, "check"), check) == 0 &&
		    strcmp(text(finding, "outcome"), outcome) == 0 &&
		    strstr(text(finding, "found"), found) && *text(finding, "means") &&
		    *text(finding, "remedy"))
			return;
	}
	fail_msg("no finding %s: %s, %s", check, outcome, found);
}

/* ---------------------------------------------------------------- all rights, and none */

static bool as_we_are(struct bench *b)
{
	(void)b;
	return true;
}

static void test_root(void **state)
{
	struct bench *b = *state;

	doctor(b, "--off-cpu 0.1", as_we_are);
	assert_int_equal(b->status, CMD_DONE);
	assert_null(find_bad(b, "CPU profiles"));
	assert_null(find_bad(b, "kernel symbols"));
	assert_null(find_bad(b, "short-lived processes"));
}

static bool drop_rights(struct bench *b)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};

	(void)b;
	return setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
	       setresuid(NOBODY, NOBODY, NOBODY) == 0 && syscall(SYS_capset, &header, data) == 0;
}

static bool sysctl_above(const char *path, uint64_t limit)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(64);
	struct root proc = ROOT_INIT;
	uint64_t n = 0;
	struct strview t;

	assert_int_equal(root_open("/proc", &proc), 0);
	if (!root_read(&proc, path, &b)) {
		t = strview_of_bytes(b.data, b.len);
		(void)!strview_u64(&t, 10, &n);
	}
	root_deinit(&proc);
	return n > limit;
}

/* In this order, and nothing else. */
static void test_nobody(void **state)
{
	static const struct {
		const char *check, *outcome;
		const char *sysctl; /* only with a value above @limit */
		uint64_t limit;
	} rows[] = {
		{"CAP_BPF", "missing", NULL, 0},
		{"CAP_PERFMON", "missing", NULL, 0},
		{"CAP_SYS_PTRACE", "missing", NULL, 0},
		{"CAP_DAC_READ_SEARCH", "missing", NULL, 0},
		{"CAP_CHECKPOINT_RESTORE", "degraded", NULL, 0},
		{"CAP_SYSLOG", "missing", "sys/kernel/perf_event_paranoid", 1},
		{"perf events", "missing", "sys/kernel/perf_event_paranoid", 2},
		{"CPU profiles", "missing", NULL, 0},
		{"reading processes", "missing", NULL, 0},
	};
	struct bench *b = *state;
	json_t *finding;
	size_t i, n = 0;

	doctor(b, "--metadata none", drop_rights);
	assert_int_equal(b->status, CMD_FAILED);
	json_array_foreach(b->findings, i, finding) {
		if (strcmp(text(finding, "outcome"), "ok") == 0)
			continue;
		while (n < array_size(rows) && rows[n].sysctl &&
		       !sysctl_above(rows[n].sysctl, rows[n].limit))
			n++;
		if (n == array_size(rows))
			fail_msg("%s: %s", text(finding, "check"), text(finding, "found"));
		assert_string_equal(text(finding, "check"), rows[n].check);
		assert_string_equal(text(finding, "outcome"), rows[n].outcome);
		n++;
	}
	assert_int_equal(n, array_size(rows));
}

/* ---------------------------------------------------------------- processes */

/* Like a pod without hostPID: only processes of the own cgroup. */
static void test_nested(void **state)
{
	struct bench *b = *state;

	snprintf(b->line, sizeof(b->line), LINE " --cpu-rate 0", b->tree.path);
	fflush(NULL);
	b->status = pidns_run(run_command);
	take_findings(b);
	assert_int_equal(b->status, CMD_FAILED);
	assert_bad(b, "processes", "missing", "only the processes of podprof");
}

/* In the namespace, beside somebody of a container. */
static int run_beside(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid > 0 && cgroups_try_enter(&bench.cgroups, &bench.container, pid) ? run_command()
										   : 102;
}

/* Like a node that is a container: all of its processes. */
static void test_node_in_container(void **state)
{
	struct root proc = ROOT_INIT;
	struct bench *b = *state;
	char id[65];

	assert_int_equal(root_open("/proc", &proc), 0);
	cgroups_open(&b->cgroups, &proc);
	cgroups_make(&b->cgroups, &b->container, "docker/%s", cgroups_container_id(7, id));
	snprintf(b->line, sizeof(b->line), LINE " --cpu-rate 0", b->tree.path);
	fflush(NULL);
	b->status = pidns_run(run_beside);
	take_findings(b);
	cgroups_close(&b->cgroups);
	root_deinit(&proc);
	assert_int_equal(b->status, CMD_DONE);
	assert_bad(b, "processes", "degraded", "belongs to a PID namespace inside the node's");
}

/* A mount namespace of our own. */
static bool unshare_mounts(void)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static bool hide(struct bench *b)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/proc", b->tree.path);
	return unshare_mounts() && mkdir(path, 0777) == 0 &&
	       mount("proc", path, "proc", 0, "hidepid=2") == 0 && drop_rights(b);
}

static void test_hidepid(void **state)
{
	struct bench *b = *state;
	char arguments[128];

	snprintf(arguments, sizeof(arguments), "--cpu-rate 0 --proc-root %s/proc", b->tree.path);
	doctor(b, arguments, hide);
	assert_int_equal(b->status, CMD_FAILED);
	assert_bad(b, "processes", "missing", "hidepid");
}

/* ---------------------------------------------------------------- settings */

struct settings_row {
	const char *arguments;
	const char *check;
	const char *found;
};

static const struct settings_row settings_rows[] = {
	{"--cgroupfs-root /nonexistent", "cgroups", "/nonexistent: no such directory"},
	{"--cgroupfs-root /etc/ssl", "cgroups", "/etc/ssl is not a cgroup file system"},
	{"--proc-root /nonexistent", "processes", "/nonexistent: no such file or directory"},
	{"--proc-root /etc/ssl", "processes", "/etc/ssl is not a procfs"},
	{"--metadata kubelet", "names of pods", "unknown address"},
	{"--kubelet-url https://127.0.0.1:1", "names of pods", "cannot read the token"},
	{"--destination pyroscope=http://127.0.0.1:1", "destination", "onnect"},
	{"--listen 192.0.2.1:7070", "listen", "annot assign"},
};

static bool without_account(struct bench *b)
{
	(void)b;
	return unshare_mounts() && mount("none", "/run", "tmpfs", 0, NULL) == 0;
}

static void test_settings(void **state)
{
	struct bench *b = *state;

	for (size_t i = 0; i < array_size(settings_rows); i++) {
		const struct settings_row *row = &settings_rows[i];
		char arguments[128];

		row_begin(row->arguments);
		assert_int_equal(ftruncate(b->out, 0), 0);
		lseek(b->out, 0, SEEK_SET);
		json_decref(b->findings);
		snprintf(arguments, sizeof(arguments), "--cpu-rate 0 %s", row->arguments);
		doctor(b, arguments, without_account);
		assert_int_equal(b->status, CMD_FAILED);
		assert_bad(b, row->check, "missing", row->found);
	}
}

static bool write_file(const char *path, const char *s)
{
	_cleanup_(close_fdp) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	return fd >= 0 && write(fd, s, strlen(s)) == (ssize_t)strlen(s);
}

/* As in a pod: a token, and where the servers are. */
static bool in_a_pod(struct bench *b)
{
	return without_account(b) && mkdir("/run/secrets", 0755) == 0 &&
	       mkdir("/run/secrets/kubernetes.io", 0755) == 0 && mkdir(ACCOUNT, 0755) == 0 &&
	       write_file(ACCOUNT "/token", "abc") && write_file(ACCOUNT "/ca.crt", "") &&
	       setenv("HOST_IP", "127.0.0.2", 1) == 0 &&
	       setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1", 1) == 0 &&
	       setenv("KUBERNETES_SERVICE_PORT", "1", 1) == 0;
}

/* Nobody listens there, or it is not our kubelet; the API server is tried then. */
static void test_unreachable(void **state)
{
	struct bench *b = *state;
	size_t i, n = 0;
	json_t *finding;

	doctor(b, "--cpu-rate 0 --node-name n1", in_a_pod);
	assert_int_equal(b->status, CMD_FAILED);
	json_array_foreach(b->findings, i, finding) {
		n += strcmp(text(finding, "check"), "names of pods") == 0 &&
		     (strstr(text(finding, "found"), "kubelet https://127.0.0.2:10250: ") ||
		      strstr(text(finding, "found"), "apiserver https://127.0.0.1:1: "));
	}
	assert_int_equal(n, 2);
	assert_bad(b, "names of pods", "missing", "");
}

/* ---------------------------------------------------------------- all checks */

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_root),	TEST(test_nobody),
		TEST(test_nested),	TEST(test_node_in_container),
		TEST(test_hidepid),	TEST(test_settings),
		TEST(test_unreachable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
