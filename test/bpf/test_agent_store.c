// SPDX-License-Identifier: Apache-2.0
/* A whole agent whose store and spool are on a file system that stops answering: during a write and
 * a read for a page, at the end, at the start, and for the next agent, while the ended one still
 * has the locks. */
#include "support/test.h"

#include <dirent.h>
#include <arpa/inet.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "export/store_name.h"
#include "server/listen.h"
#include "support/command.h"
#include "support/served.h"
#include "support/stalldir.h"
#include "support/until.h"

#define PAGE_MAX (4u << 20)

struct fixture {
	char dir[64];
	char address[32];
	struct stalldir *disk;
	pid_t pid;
	struct buf page;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->dir, "/tmp/test_agent_store.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->disk = stalldir_new(f->dir);
	buf_init(&f->page, PAGE_MAX);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	stalldir_free(f->disk);
	assert_int_equal(rmdir(f->dir), 0);
	buf_deinit(&f->page);
	free(f);
	return 0;
}

/* ---- the agent */

static void choose_address(struct fixture *f)
{
	struct listen_address a;
	int fd;

	assert_true(listen_parse("127.0.0.1:0", &a));
	fd = socket(a.addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a.addr, a.len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a.addr, &a.len), 0);
	snprintf(f->address, sizeof(f->address), "127.0.0.1:%u",
		 ntohs(((struct sockaddr_in *)&a.addr)->sin_port));
	close(fd);
}

static bool is_listening(const struct fixture *f)
{
	struct listen_address a;
	int fd, r;

	assert_true(listen_parse(f->address, &a));
	fd = socket(a.addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	r = connect(fd, (struct sockaddr *)&a.addr, a.len);
	close(fd);
	return !r;
}

/* Waits; the limit only ends a hanging test. */
static void until(struct fixture *f, bool (*done)(struct fixture *f))
{
	for (int i = 0; !done(f); i++) {
		assert_true(i < UNTIL_SECONDS * 20);
		assert_int_equal(waitpid(f->pid, NULL, WNOHANG), 0);
		usleep(50000);
	}
}

static bool is_ready(struct fixture *f)
{
	return is_listening(f) && served_get(f->address, "/-/ready", &f->page) == 200;
}

static void start(struct fixture *f)
{
	struct command_run run;
	char line[384];

	choose_address(f);
	fflush(stdout);
	f->pid = fork();
	assert_true(f->pid >= 0);
	if (!f->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		snprintf(line, sizeof(line),
			 "agent --listen %s --node-name n --window 2s --store-dir %s/store "
			 "--spool-dir %s/spool --destination pyroscope=http://127.0.0.1:1",
			 f->address, f->dir, f->dir);
		command_run(line, &run);
		if (run.status)
			fprintf(stderr, "%s\n", run.err.data);
		_exit(run.status);
	}
	until(f, is_ready);
}

static void stop(struct fixture *f)
{
	int status;

	assert_int_equal(kill(f->pid, SIGTERM), 0);
	assert_int_equal(waitpid(f->pid, &status, 0), f->pid);
	assert_int_equal(status, 0);
}

/* A second signal ends the wait for the dead destination. */
static void stop_at_once(struct fixture *f)
{
	int status, n = 0;

	do {
		assert_true(n++ < UNTIL_SECONDS * 20);
		assert_int_equal(kill(f->pid, SIGTERM), 0);
		usleep(50000);
	} while (!waitpid(f->pid, &status, WNOHANG));
	assert_int_equal(status, 0);
}

/* The working process ends with its parent, but for the threads that wait for the disk. */
static void crash(struct fixture *f)
{
	int status;

	assert_int_equal(kill(f->pid, SIGKILL), 0);
	assert_int_equal(waitpid(f->pid, &status, 0), f->pid);
	assert_true(WIFSIGNALED(status));
}

/* The sum over the labels that contain @label. */
static uint64_t metric(struct fixture *f, const char *family, const char *label)
{
	uint64_t sum = 0;
	char *save = NULL;

	assert_int_equal(served_get(f->address, "/metrics", &f->page), 200);
	assert_int_equal(buf_append(&f->page, "", 1), 0);
	for (const char *line = strtok_r(f->page.data, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		if (strncmp(line, family, strlen(family)) == 0 && strstr(line, label))
			sum += strtoull(strrchr(line, ' '), NULL, 10);
	return sum;
}

static uint64_t stored(struct fixture *f)
{
	return metric(f, "podprof_store_profiles_total", "\"stored\"");
}

static bool has_stored(struct fixture *f)
{
	return stored(f) >= 2 && metric(f, "podprof_spool_profiles_total", "\"stored\"") >= 2;
}

static bool is_busy(struct fixture *f)
{
	return metric(f, "podprof_store_busy", "") + metric(f, "podprof_spool_busy", "") == 2;
}

static bool has_both_locks(struct fixture *f)
{
	return metric(f, "podprof_store_busy", "") + metric(f, "podprof_spool_busy", "") == 0;
}

static bool is_held(struct fixture *f)
{
	return stalldir_n_held(f->disk) > 0;
}

static uint64_t n_samples;

static bool has_sampled(struct fixture *f)
{
	return metric(f, "podprof_samples_total", "") > n_samples + 10;
}

/* Samples, health and pages go on. */
static void assert_alive(struct fixture *f)
{
	n_samples = metric(f, "podprof_samples_total", "");
	until(f, has_sampled);
	assert_int_equal(served_get(f->address, "/-/healthy", &f->page), 200);
	assert_int_equal(served_get(f->address, "/", &f->page), 200);
}

static char target[64];

static bool is_served(struct fixture *f)
{
	return served_get(f->address, target, &f->page) == 200;
}

/* The address of a profile in the folder @name of the store. False: it has none yet. */
static bool find_in(struct fixture *f, const char *name)
{
	_cleanup_(closedirp) DIR *dir = NULL;
	const struct dirent *entry;
	struct store_name parsed;
	char path[512];

	snprintf(path, sizeof(path), "%s/store/%s", f->dir, name);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		if (!store_name_parse(entry->d_name, &parsed))
			continue;
		snprintf(target, sizeof(target), "/profile/%" PRIu64 ".pb.gz",
			 store_name_id(name, entry->d_name));
		return true;
	}
	return false;
}

/* The address of a stored profile. The file is there before the page knows it, and its folder
 * before the file. */
static void find_profile(struct fixture *f)
{
	_cleanup_(closedirp) DIR *dir = NULL;
	const struct dirent *entry;
	bool found = false;
	char path[512];

	snprintf(path, sizeof(path), "%s/store", f->dir);
	dir = opendir(path);
	assert_non_null(dir);
	while (!found && (entry = readdir(dir)))
		found = store_name_is_folder(entry->d_name) && find_in(f, entry->d_name);
	assert_true(found);
	until(f, is_served);
}

/* /-/ready names the process with the locks, and is ready. */
static void assert_busy(struct fixture *f)
{
	int store = 0, spool = 0;
	const char *line;

	assert_int_equal(served_get(f->address, "/-/ready", &f->page), 200);
	assert_int_equal(buf_append(&f->page, "", 1), 0);
	line = strstr(f->page.data, "\ndirectories: ");
	assert_non_null(line);
	assert_int_equal(sscanf(line,
				"\ndirectories: failing, --store-dir is locked by process %d; "
				"--spool-dir is locked by process %d\n",
				&store, &spool),
			 2);
	assert_true(store > 0);
	assert_int_equal(store, spool);
}

static void test_agent(void **state)
{
	struct fixture *f = *state;
	uint64_t before;

	start(f);
	until(f, has_stored);
	find_profile(f);

	row_begin("writes and a page's read");
	stalldir_stall(f->disk, "opendir");
	until(f, is_held);
	before = stored(f);
	assert_int_equal(served_get(f->address, target, &f->page), 503);
	assert_int_equal(served_get(f->address, target, &f->page), 503);
	assert_alive(f);
	assert_int_equal(metric(f, "podprof_http_jobs_total", "\"blocked\""), 2);
	assert_int_equal(stored(f), before);
	assert_int_equal(stalldir_n_held(f->disk), 2);

	row_begin("the end");
	stop(f);
	assert_int_equal(stalldir_n_held(f->disk), 2);
	stalldir_answer(f->disk, 0);

	row_begin("killed: the next agent finds the locks taken");
	start(f);
	until(f, has_both_locks);
	stalldir_stall(f->disk, "opendir");
	until(f, is_held);
	crash(f);
	assert_int_equal(stalldir_n_held(f->disk), 1);
	stalldir_stall(f->disk, "rename"); /* opendir is answered again; the held one is not */
	start(f);
	until(f, is_busy);
	assert_busy(f);
	assert_alive(f);
	assert_int_equal(metric(f, "podprof_store_files", ""), 0);
	assert_int_equal(metric(f, "podprof_spool_recovered_total", ""), 0);
	assert_int_equal(stalldir_n_held(f->disk), 1);
	stalldir_answer(f->disk, 0);
	until(f, has_both_locks);
	until(f, has_stored);
	assert_true(metric(f, "podprof_store_files", "") >= 4); /* of all runs */
	assert_true(metric(f, "podprof_spool_recovered_total", "") >= 2);
	stop_at_once(f);

	row_begin("the start");
	stalldir_stall(f->disk, "readdir");
	start(f);
	assert_true(is_held(f));
	assert_alive(f);
	assert_int_equal(metric(f, "podprof_store_files", ""), 0);
	stalldir_answer(f->disk, 0);
	until(f, has_stored);
	assert_true(metric(f, "podprof_store_files", "") >= 6); /* of all runs */
	assert_int_equal(served_get(f->address, target, &f->page), 200);
	stop_at_once(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_agent, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
