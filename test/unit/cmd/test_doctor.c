// SPDX-License-Identifier: Apache-2.0
/* The command on a synthetic node, with servers on loopback; without CPU profiles.
 * (test/bpf/test_doctor.c: with CPU profiles, with and without rights.) */
#include "support/test.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmd/cmd.h"
#include "export/lockdir.h"
#include "support/command.h"
#include "support/rawserver.h"
#include "support/sink.h"
#include "support/tree.h"

#define WEB   "73051af271105c07e1f493b34856a77e665e3b0b4fc72f76c807dfbffeb881bd"
#define UID   "2c48913c-b29f-11e7-9350-020968147796"
#define STATE "proc/1/root/run/containerd/io.containerd.runtime.v2.task/k8s.io/" WEB

static const struct sink_answer refuses_nothing = {
	.status = 400, .body = "{\"code\":\"invalid_argument\",\"message\":\"no series\"}"};
static const struct rawserver_answer agent = {
	.bytes = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 81\r\n\r\n"
		 "not ready\nprocesses: ok\ncpu profiling: failing, no BPF; grant CAP_BPF\nheaps: "
		 "ok\n\n"};

struct fixture {
	struct tree tree;
	struct sink *sink;
	struct rawserver *agent;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	tree_init(&f->tree);
	tree_mkdir(f->tree.fd, "fs/kubepods/pod" UID "/" WEB);
	tree_write(f->tree.fd, "fs/cgroup.controllers", "");
	tree_mkdir(f->tree.fd, STATE);
	tree_write(f->tree.fd, STATE "/config.json",
		   "{\"annotations\":{\"io.kubernetes.cri.container-type\":\"container\","
		   "\"io.kubernetes.cri.sandbox-namespace\":\"shop\","
		   "\"io.kubernetes.cri.sandbox-name\":\"web-1\","
		   "\"io.kubernetes.cri.sandbox-uid\":\"" UID "\","
		   "\"io.kubernetes.cri.container-name\":\"web\"}}");
	f->sink = sink_new(&refuses_nothing, 1, NULL);
	f->agent = rawserver_new(&agent, 1);
	unsetenv("KUBERNETES_SERVICE_HOST");
	unsetenv("HOST_IP");
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	rawserver_free(f->agent);
	sink_free(f->sink);
	tree_deinit(&f->tree);
	free(f);
	return 0;
}

static void doctor(const struct fixture *f, const char *arguments, struct command_run *ret)
{
	char line[1024];

	snprintf(line, sizeof(line),
		 "doctor --cgroupfs-root %s/fs --proc-root %s/proc --node-name n1 --cpu-rate 0 "
		 "--listen 127.0.0.1:0 --store-dir %s/store %s",
		 f->tree.path, f->tree.path, f->tree.path, arguments);
	command_run(line, ret);
}

static void text(void **state)
{
	_cleanup_(command_run_deinit) struct command_run r = {0};
	const struct fixture *f = *state;
	char arguments[160];

	snprintf(arguments, sizeof(arguments), "--destination pyroscope=%s", sink_url(f->sink));
	doctor(f, arguments, &r);
	assert_int_equal(r.status, CMD_FAILED);
	assert_int_equal(r.err.len, 0);
	command_assert_has(&r.out, "ok        CPU profiles           turned off (--cpu-rate 0)\n");
	command_assert_has(&r.out, "MISSING   cgroups                ");
	command_assert_has(&r.out,
			   "/fs is not a cgroup file system - the agent does not start\n"
			   "                                 -> set --cgroupfs-root to the mount "
			   "point of the host's /sys/fs/cgroup\n");
	command_assert_has(&r.out, "ok        names of pods          containerd: ok\n");
	command_assert_has(&r.out, "ok        named containers       1 of 1\n");
	command_assert_has(&r.out, "/store; podprof will create it\n");
	command_assert_has(&r.out, "ok        destination            pyroscope 127.0.0.1:");
	command_assert_has(&r.out, "ok        listen                 127.0.0.1:0 is free\n");
	command_assert_has(&r.out, "requested parts do not work here\n");
	assert_int_equal(sink_n_requests(f->sink), 1);
	assert_int_equal(sink_request(f->sink, 0)->body_len, 0);
}

/* The agent that runs, or another one. */
static void locked(void **state)
{
	_cleanup_(command_run_deinit) struct command_run r = {0};
	_cleanup_(close_fdp) int fd = -1;
	const struct fixture *f = *state;
	char path[160], want[64];
	pid_t holder;

	snprintf(path, sizeof(path), "%s/store", f->tree.path);
	assert_int_equal(lockdir_open(path, 0700, &fd, &holder), 0);
	doctor(f, "", &r);
	snprintf(want, sizeof(want), "/store; process %d has its lock\n", (int)getpid());
	command_assert_has(&r.out, want);
}

/* One remedy for several findings. */
static void remedies(void **state)
{
	_cleanup_(command_run_deinit) struct command_run r = {0};
	const char *first, *remedy = "-> check the address from here";

	doctor(*state,
	       "--destination pyroscope=http://127.0.0.1:1 "
	       "--destination pyroscope=http://127.0.0.1:1/x",
	       &r);
	first = strstr(r.out.data, remedy);
	assert_non_null(first);
	assert_null(strstr(first + 1, remedy));
}

static void json(void **state)
{
	_cleanup_(command_run_deinit) struct command_run r = {0};
	const struct fixture *f = *state;
	char arguments[160], *save = NULL;
	size_t n_agent = 0;

	snprintf(arguments, sizeof(arguments), "--json --listen %s",
		 rawserver_url(f->agent) + strlen("http://"));
	doctor(f, arguments, &r);
	assert_int_equal(r.status, CMD_FAILED);
	for (char *line = strtok_r(r.out.data, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		json_t *finding = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
		const char *check = json_string_value(json_object_get(finding, "check"));
		const char *outcome = json_string_value(json_object_get(finding, "outcome"));
		const char *found = json_string_value(json_object_get(finding, "found"));

		assert_int_equal(json_object_size(finding), 5);
		assert_true(check && outcome && found);
		if (strcmp(check, "agent") == 0 && n_agent++ == 0) {
			assert_string_equal(outcome, "ok");
			assert_non_null(strstr(found, "and not ready; heaps works"));
			assert_true(json_is_null(json_object_get(finding, "remedy")));
		} else if (strcmp(check, "agent") == 0) {
			assert_string_equal(outcome, "missing");
			assert_string_equal(found, "cpu profiling: no BPF");
			assert_string_equal(json_string_value(json_object_get(finding, "remedy")),
					    "grant CAP_BPF");
		}
		json_decref(finding);
	}
	assert_int_equal(n_agent, 2);
}

struct output_row {
	const char *arguments;
	int status;
	const char *out;
	const char *err;
};

static const struct output_row output_rows[] = {
	{"--help", CMD_DONE, "usage: podprof doctor", NULL},
	{"--bogus", CMD_USAGE, NULL, "doctor: unknown flag '--bogus'"},
	{"--config /nonexistent", CMD_USAGE, NULL, "/nonexistent"},
	{"--select (", CMD_USAGE, NULL, "--select"},
	{"more", CMD_USAGE, NULL, "'more'"},
	{"--metadata none", CMD_FAILED, "cgroups", NULL},
	{"--proc-root /nonexistent", CMD_FAILED, "/nonexistent: no such file or directory", NULL},
};

static void outputs(void **state)
{
	for (size_t i = 0; i < array_size(output_rows); i++) {
		const struct output_row *row = &output_rows[i];
		_cleanup_(command_run_deinit) struct command_run r = {0};

		row_begin(row->arguments);
		doctor(*state, row->arguments, &r);
		command_assert(&r, row->status, row->out, row->err);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(text), TEST(locked), TEST(remedies), TEST(json),
					   TEST(outputs)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
