// SPDX-License-Identifier: Apache-2.0
/*
 * A containerd of the test, with its state below a directory in place of the node's root, and
 * containers like the CRI plugin's: known while running, and unknown afterwards.
 */
#include "support/test.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/nsec.h"
#include "metadata/runtime.h"
#include "support/tree.h"

#define C1 "6d5ffa3e53a1a1e2d3f9a0b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8"
#define C2 "7d5ffa3e53a1a1e2d3f9a0b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8"

struct fixture {
	struct tree node;
	pid_t daemon;
	struct runtime runtime;
};

static const char config[] = "version = 2\n"
			     "root = \"%s/root\"\n"
			     "state = \"%s/run/containerd\"\n"
			     "disabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n"
			     "[grpc]\n"
			     "address = \"%s/s\"\n"
			     "[ttrpc]\n"
			     "address = \"%s/t\"\n";

/* Runs ctr, with its output where necessary; true on success. */
__attribute__((format(printf, 2, 3))) static bool ctr(const struct fixture *f, const char *format,
						      ...)
{
	char line[2048];
	va_list args;
	int n = snprintf(line, sizeof(line), "ctr -a %s/s -n k8s.io ", f->node.path);

	va_start(args, format);
	n += vsnprintf(line + n, sizeof(line) - (size_t)n, format, args);
	va_end(args);
	snprintf(line + n, sizeof(line) - (size_t)n, " </dev/null >>%s/ctr.log 2>&1", f->node.path);
	return system(line) == 0; /* NOLINT(cert-env33-c): a test's own words */
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	uint64_t until = nsec_monotonic() + 60 * NSEC_PER_SEC;
	char text[2048], path[128];

	tree_init(&f->node);
	snprintf(text, sizeof(text), config, f->node.path, f->node.path, f->node.path,
		 f->node.path);
	tree_mkdir(f->node.fd, "run/containerd");
	tree_mkdir(f->node.fd, "rootfs/usr");
	assert_int_equal(symlinkat("usr/lib", f->node.fd, "rootfs/lib"), 0);
	assert_int_equal(symlinkat("usr/lib64", f->node.fd, "rootfs/lib64"), 0);
	tree_write(f->node.fd, "containerd.toml", text);
	snprintf(path, sizeof(path), "%s/containerd.toml", f->node.path);
	f->daemon = fork();
	if (f->daemon == 0) {
		(void)!freopen("/dev/null", "r", stdin);
		(void)!freopen("/dev/null", "w", stdout);
		(void)!freopen("/dev/null", "w", stderr);
		execlp("containerd", "containerd", "-c", path, NULL);
		_exit(127);
	}
	assert_true(f->daemon > 0);
	while (!ctr(f, "version")) {
		assert_true(nsec_monotonic() < until);
		usleep(50000);
	}
	assert_int_equal(runtime_init(&f->runtime, f->node.path), 0);
	*state = f;
	return 0;
}

static void end(const struct fixture *f, const char *id)
{
	(void)ctr(f, "task rm -f %s", id);
	(void)ctr(f, "container rm %s", id);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	end(f, C1);
	end(f, C2);
	runtime_deinit(&f->runtime);
	kill(f->daemon, SIGTERM);
	assert_int_equal(waitpid(f->daemon, NULL, 0), f->daemon);
	tree_deinit(&f->node);
	free(f);
	return 0;
}

static void run(const struct fixture *f, const char *id, const char *type, const char *more)
{
	if (!ctr(f,
		 "run -d --rootfs --null-io --cgroup /podprof-test-metadata-%d "
		 "--mount type=bind,src=/usr,dst=/usr,options=rbind:ro "
		 "--annotation io.kubernetes.cri.container-type=%s "
		 "--annotation io.kubernetes.cri.sandbox-namespace=shop "
		 "--annotation io.kubernetes.cri.sandbox-name=web-1 "
		 "--annotation io.kubernetes.cri.sandbox-uid=u-1 %s "
		 "%s/rootfs %s /usr/bin/sleep 1000",
		 getpid(), type, more, f->node.path, id))
		fail_msg("ctr cannot run a container: see %s/ctr.log", f->node.path);
}

static void known_while_they_run(void **state)
{
	struct fixture *f = *state;
	struct container *c;

	assert_int_equal(runtime_read(&f->runtime, C1, "", &c), STATEFILE_GONE);
	run(f, C1, "container", "--annotation io.kubernetes.cri.container-name=app");
	assert_int_equal(runtime_read(&f->runtime, C1, "", &c), 0);
	assert_string_equal(c->source, "containerd");
	assert_string_equal(c->pod->namespace, "shop");
	assert_string_equal(c->pod->name, "web-1");
	assert_string_equal(c->pod->uid, "u-1");
	assert_string_equal(c->pod->containers[0].name, "app");
	assert_false(c->sandbox);
	container_free(c);
	run(f, C2, "sandbox", "");
	assert_int_equal(runtime_read(&f->runtime, C2, "", &c), 0);
	assert_true(c->sandbox);
	container_free(c);
	end(f, C1);
	assert_int_equal(runtime_read(&f->runtime, C1, "", &c), STATEFILE_GONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(known_while_they_run, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
