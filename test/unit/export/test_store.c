// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/root.h"
#include "export/outbox.h"
#include "export/store.h"
#include "export/store_disk.h"
#include "export/store_table.h"
#include "support/allocfail.h"
#include "support/until.h"

#define MINUTE_NS (60 * NSEC_PER_SEC)

DEFINE_CLEANUP(struct store *, store_freep, store_free);

/* A separate directory for each test. */
struct fixture {
	char dir[64];
	char store[128];
	struct store_opts opts;
	uint64_t now_ns; /* whole milliseconds */
	struct loop *loop;
	struct outbox_budget budget;
	struct store *s; /* of put() */
	struct queued_profile *queued;
	bool ended;
	int r;
};

static void on_ended(void *ctx, const struct profile *profile, int r)
{
	struct fixture *f = ctx;

	(void)profile;
	f->ended = true;
	f->r = r;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->dir, "/tmp/test_store.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->store, sizeof(f->store), "%s/deep/store", f->dir);
	f->opts = (struct store_opts){
		.dir = f->store,
		.max_bytes = 1u << 20,
		.max_age_ns = 60 * MINUTE_NS,
		.waiting_bytes = 1u << 20,
		.open_wait_ns = UNTIL_SECONDS * NSEC_PER_SEC,
		.ended = on_ended,
		.ctx = f,
	};
	assert_int_equal(loop_new(&f->loop), 0);
	f->opts.loop = f->loop;
	f->now_ns = nsec_wall() / NSEC_PER_MSEC * NSEC_PER_MSEC;
	*state = f;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	loop_free(f->loop);
	assert_int_equal(f->budget.used_bytes, 0);
	assert_int_equal(nftw(f->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
	free(f);
	return 0;
}

static struct store *open_store(const struct fixture *f)
{
	struct store *s = NULL;

	assert_int_equal(store_open(&f->opts, &s), 0);
	return s;
}

static bool is_idle(void *ctx)
{
	const struct fixture *f = ctx;

	return store_is_idle(f->s);
}

/* Until the disk has nothing to do. */
static void settle(struct fixture *f, struct store *s)
{
	f->s = s;
	loop_until(f->loop, is_idle, f);
}

static struct profile *make(uint64_t start_ns, size_t n)
{
	struct profile *p = calloc(1, sizeof(*p));

	p->kind = PROFILE_CPU;
	p->start_ns = start_ns;
	p->duration_ns = MINUTE_NS;
	p->pprof_len = n;
	p->pprof = malloc(n + 1);
	for (size_t i = 0; i < n; i++)
		p->pprof[i] = (char)(i * 7);
	return p;
}

static int put_profile(struct store *s, struct fixture *f, struct profile *p)
{
	struct queued_profile *queued;

	assert_int_equal(queued_profile_new(&f->budget, p, &queued), 0);
	f->ended = false;
	store_put(s, queued);
	queued_profile_unref(queued);
	settle(f, s);
	assert_true(f->ended);
	return f->r;
}

/* A profile of @n bytes, started @age ago. */
static int put(struct store *s, struct fixture *f, const char *service, uint64_t age_ns, size_t n)
{
	struct profile *p = make(f->now_ns - age_ns, n);

	assert_int_equal(labels_set(&p->labels, "service_name", service), 0);
	assert_int_equal(labels_set(&p->labels, "node", "n1"), 0);
	return put_profile(s, f, p);
}

/* ---- counting by metrics */

struct counter {
	struct metric_sink sink;
	const char *want_family, *want_label;
	bool in_family;
	uint64_t value;
};

static void count_family(struct metric_sink *sink, const struct metric_family_desc *family)
{
	struct counter *c = (struct counter *)sink;

	c->in_family = strcmp(family->name, c->want_family) == 0;
}

static void count_value(struct metric_sink *sink, const struct metric_value *value)
{
	struct counter *c = (struct counter *)sink;

	if (c->in_family && (!c->want_label || (value->n_labels && strcmp(value->labels[0].value,
									  c->want_label) == 0)))
		c->value = value->u;
}

static uint64_t metric(struct store *s, const char *family, const char *label)
{
	struct counter c = {.sink = {count_family, count_value},
			    .want_family = family,
			    .want_label = label,
			    .value = UINT64_MAX};

	store_collect(s, &c.sink);
	assert_true(c.value != UINT64_MAX);
	return c.value;
}

/* ---- tests */

static int read_profile(const struct store *s, uint64_t id, struct buf *ret)
{
	const struct store_profile *profile = store_find(s, id);
	_cleanup_(root_deinit) struct root dir = ROOT_INIT;
	struct store_file file;

	if (!profile)
		return STORE_GONE;
	store_file_of(profile, &file);
	assert_int_equal(store_dup_dir(s, &dir), 0);
	return store_read_file(&dir, &file, ret);
}

static void check_contents(const struct store *s, uint64_t id, size_t n)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(STORE_PROFILE_SIZE_MAX);

	assert_int_equal(read_profile(s, id, &b), 0);
	assert_int_equal(b.len, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(b.data[i], (char)(i * 7));
}

static void test_put_and_read(void **state)
{
	struct fixture *f = *state;
	_cleanup_(store_freep) struct store *s = open_store(f);
	const struct store_profile *p;
	char path[512];
	struct stat st;

	assert_int_equal(store_n_profiles(s), 0);
	assert_int_equal(put(s, f, "checkout", MINUTE_NS, 5000), STORE_OK);
	assert_int_equal(put(s, f, "cart", 0, 10), STORE_OK);
	assert_int_equal(put(s, f, "checkout", 2 * MINUTE_NS, 70000), STORE_OK);
	assert_int_equal(store_n_profiles(s), 3);
	p = store_at(s, 0);
	assert_int_equal(p->start_ns, f->now_ns - 2 * MINUTE_NS);
	assert_int_equal(p->duration_ns, MINUTE_NS);
	assert_int_equal(p->kind, PROFILE_CPU);
	assert_int_equal(p->bytes, 73728);
	assert_string_equal(labels_get(&p->folder->labels, "service_name"), "checkout");
	assert_string_equal(labels_get(&p->folder->labels, "node"), "n1");
	assert_int_equal(p->folder->n_profiles, 2);
	assert_ptr_equal(store_at(s, 1)->folder, p->folder);
	assert_ptr_equal(store_find(s, p->id), p);
	check_contents(s, p->id, 70000);
	check_contents(s, store_at(s, 1)->id, 5000);
	check_contents(s, store_at(s, 2)->id, 10);
	assert_int_equal(metric(s, "podprof_store_bytes", NULL), 73728 + 8192 + 4096);
	assert_int_equal(metric(s, "podprof_store_files", NULL), 3);
	assert_int_equal(metric(s, "podprof_store_profiles", "stored"), 3);
	snprintf(path, sizeof(path), "%s/%s/labels.json", f->store, p->folder->name);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
}

static void test_unknown_id(void **state)
{
	struct fixture *f = *state;
	_cleanup_(store_freep) struct store *s = open_store(f);
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(100);

	assert_int_equal(put(s, f, "a", 0, 101), 0);
	assert_null(store_find(s, 0));
	assert_int_equal(read_profile(s, store_at(s, 0)->id + 1, &b), STORE_GONE);
	assert_int_equal(read_profile(s, store_at(s, 0)->id, &b), STORE_TOO_LARGE);
}

static void test_same_window_twice(void **state)
{
	struct fixture *f = *state;
	_cleanup_(store_freep) struct store *s = open_store(f);
	uint64_t id;

	assert_int_equal(put(s, f, "a", 0, 9000), 0);
	id = store_at(s, 0)->id;
	assert_int_equal(put(s, f, "a", 0, 100), 0);
	assert_int_equal(store_n_profiles(s), 1);
	assert_int_equal(store_at(s, 0)->id, id);
	assert_int_equal(store_at(s, 0)->folder->n_profiles, 1);
	assert_int_equal(metric(s, "podprof_store_bytes", NULL), 4096);
	check_contents(s, id, 100);
}

static void test_restart(void **state)
{
	struct fixture *f = *state;
	struct store *s = open_store(f);
	uint64_t ids[3];

	assert_int_equal(put(s, f, "b", 2 * MINUTE_NS, 1000), 0);
	assert_int_equal(put(s, f, "a\xff/..\n\"", MINUTE_NS, 2000), 0);
	assert_int_equal(put(s, f, "b", 0, 3000), 0);
	for (size_t i = 0; i < 3; i++)
		ids[i] = store_at(s, i)->id;
	store_free(s);
	s = open_store(f);
	assert_int_equal(store_n_profiles(s), 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(store_at(s, i)->id, ids[i]);
		assert_int_equal(store_at(s, i)->start_ns, f->now_ns - (2 - i) * MINUTE_NS);
		check_contents(s, ids[i], (i + 1) * 1000);
	}
	assert_string_equal(labels_get(&store_at(s, 1)->folder->labels, "service_name"),
			    "a?/..\n\"");
	assert_int_equal(store_at(s, 0)->folder->labels.n, 2);
	/* the same labels are the same folder */
	assert_int_equal(put(s, f, "b", 3 * MINUTE_NS, 1), 0);
	assert_ptr_equal(store_at(s, 0)->folder, store_at(s, 1)->folder);
	assert_int_equal(metric(s, "podprof_store_bytes", NULL), 4 * 4096);
	store_free(s);
}

#define KILLED_AFTER 50
#define KILLED_BYTES 4000

/* Killed at any moment, the next run finds every profile that was put, whole, and no piece of the
 * one under way. */
static void test_killed(void **state)
{
	struct fixture *f = *state;
	size_t n_put = 0;
	struct store *s;
	int fds[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		s = open_store(f);
		for (size_t i = 0; i < KILLED_AFTER + 10; i++)
			if (put(s, f, "a", i * NSEC_PER_SEC, KILLED_BYTES) != STORE_OK ||
			    write(fds[1], "", 1) != 1)
				_exit(1);
		for (;;)
			pause();
	}
	close(fds[1]);
	while (n_put < KILLED_AFTER && read(fds[0], &byte, 1) == 1)
		n_put++;
	assert_int_equal(kill(pid, SIGKILL), 0);
	while (read(fds[0], &byte, 1) == 1)
		n_put++; /* put before the signal */
	close(fds[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(n_put >= KILLED_AFTER);

	s = open_store(f);
	/* the killed writer may have stored a profile and not yet counted it */
	assert_in_range(store_n_profiles(s), n_put, n_put + 1);
	for (size_t i = 0; i < store_n_profiles(s); i++)
		check_contents(s, store_at(s, i)->id, KILLED_BYTES);
	assert_int_equal(metric(s, "podprof_store_files", NULL), store_n_profiles(s));
	store_free(s);
}

static int n_seen;

static int count_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)path;
	(void)at;
	n_seen += kind == FTW_F || (kind == FTW_DP && st->st_nlink > 2);
	return 0;
}

/* All files on disk are in the right place, with any names of containers. */
static void test_hostile_names(void **state)
{
	static const char *const names[] = {"../../../x", "/etc/passwd", "..",	".", ".x",
					    "a\nb",	  "\x1b[2J",	 "-rf", " ", "con"};
	struct fixture *f = *state;
	_cleanup_(store_freep) struct store *s = open_store(f);

	for (size_t i = 0; i < array_size(names); i++) {
		row_begin(names[i]);
		assert_int_equal(put(s, f, names[i], 0, 10), 0);
	}
	n_seen = 0;
	assert_int_equal(nftw(f->store, count_one, 8, FTW_DEPTH | FTW_PHYS), 0);
	assert_int_equal(n_seen, 1 + 2 * array_size(names));
	n_seen = 0;
	assert_int_equal(nftw(f->dir, count_one, 8, FTW_DEPTH | FTW_PHYS), 0);
	assert_int_equal(n_seen, 3 + 2 * array_size(names));
}

/* Both names have the same prefix and the same 32 bits of hash. */
static void test_hash_taken(void **state)
{
	struct fixture *f = *state;
	struct store *s = open_store(f);

	for (int again = 0; again < 2; again++) {
		static const char *const values[] = {"820707", "3058524"};

		for (uint64_t i = 0; i < 2; i++) {
			struct profile *p = make(f->now_ns - (1 - i) * NSEC_PER_SEC, 1);

			assert_int_equal(labels_set(&p->labels, "container", "app"), 0);
			assert_int_equal(labels_set(&p->labels, "x", values[i]), 0);
			assert_int_equal(put_profile(s, f, p), 0);
		}
		assert_int_equal(store_n_profiles(s), 2);
		assert_string_equal(store_at(s, 0)->folder->name, "app-00857685");
		assert_string_equal(store_at(s, 1)->folder->name, "app-00857686");
		assert_string_equal(labels_get(&store_at(s, 0)->folder->labels, "x"), "820707");
		assert_string_equal(labels_get(&store_at(s, 1)->folder->labels, "x"), "3058524");
		store_free(s);
		s = open_store(f);
	}
	store_free(s);
}

static void test_trim_by_bytes(void **state)
{
	struct fixture *f = *state;
	_cleanup_(store_freep) struct store *s = NULL;

	f->opts.max_bytes = 10 * 4096 + 100;
	s = open_store(f);
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(put(s, f, i < 2 ? "old" : "new", (20 - i) * MINUTE_NS, 4096), 0);
	assert_int_equal(store_n_profiles(s), 10);
	assert_int_equal(put(s, f, "new", 0, 4097), 0); /* two blocks */
	assert_int_equal(store_n_profiles(s), 9);
	assert_int_equal(store_at(s, 0)->start_ns, f->now_ns - 18 * MINUTE_NS);
	assert_int_equal(metric(s, "podprof_store_removed", "bytes"), 2);
	assert_int_equal(metric(s, "podprof_store_bytes", NULL), 40960);
	/* the old folder is removed with its last profile: one folder is left */
	n_seen = 0;
	assert_int_equal(nftw(f->store, count_one, 8, FTW_DEPTH | FTW_PHYS), 0);
	assert_int_equal(n_seen, 1 + 1 + 9);
	assert_int_equal(put(s, f, "new", 0, (size_t)11 * 4096), STORE_TOO_LARGE);
	assert_int_equal(store_n_profiles(s), 9);
	assert_int_equal(metric(s, "podprof_store_profiles", "too_large"), 1);
}

/* A clock set back: profiles of the future make room for new ones, and not the new ones. After a
 * small step the oldest go as before. */
static void test_clock_set_back(void **state)
{
	static const struct {
		const char *name;
		uint64_t step_minutes;
		uint64_t apart_minutes; /* of the profiles before the step */
	} rows[] = {{"six hours", 360, 1}, {"a minute", 1, 10}};
	struct fixture *f = *state;

	f->opts.max_bytes = (uint64_t)3 * 4096;
	f->opts.max_age_ns = 24 * 60 * MINUTE_NS;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(store_freep) struct store *s = NULL;
		const uint64_t now_ns = f->now_ns;

		row_begin(rows[i].name);
		snprintf(f->store, sizeof(f->store), "%s/%zu", f->dir, i);
		s = open_store(f);
		f->now_ns += rows[i].step_minutes * MINUTE_NS;
		for (uint64_t k = 3; k > 0; k--)
			assert_int_equal(
				put(s, f, "before", k * rows[i].apart_minutes * MINUTE_NS, 4096),
				0);
		f->now_ns = now_ns;
		for (uint64_t k = 3; k > 0; k--)
			assert_int_equal(put(s, f, "after", (k - 1) * MINUTE_NS, 4096), 0);
		assert_int_equal(store_n_profiles(s), 3);
		for (size_t k = 0; k < 3; k++)
			assert_string_equal(
				labels_get(&store_at(s, k)->folder->labels, "service_name"),
				"after");
	}
}

static void test_trim_by_age(void **state)
{
	struct fixture *f = *state;
	_cleanup_(store_freep) struct store *s = open_store(f);

	assert_int_equal(put(s, f, "a", 61 * MINUTE_NS, 10), 0);
	assert_int_equal(put(s, f, "b", 50 * MINUTE_NS, 10), 0);
	assert_int_equal(store_n_profiles(s), 1);
	assert_int_equal(metric(s, "podprof_store_removed", "age"), 1);
	store_trim(s, f->now_ns + 10 * MINUTE_NS);
	assert_int_equal(store_n_profiles(s), 1);
	store_trim(s, f->now_ns + 10 * MINUTE_NS + NSEC_PER_SEC);
	settle(f, s);
	assert_int_equal(store_n_profiles(s), 0);
	assert_int_equal(metric(s, "podprof_store_bytes", NULL), 0);
	n_seen = 0;
	assert_int_equal(nftw(f->store, count_one, 8, FTW_DEPTH | FTW_PHYS), 0);
	assert_int_equal(n_seen, 0);
	/* and at the start, when the store was closed meanwhile */
	assert_int_equal(put(s, f, "b", 50 * MINUTE_NS, 10), 0);
	store_free(s);
	f->opts.max_age_ns = 40 * MINUTE_NS;
	s = open_store(f);
	assert_int_equal(store_n_profiles(s), 0);
}

static void make_file(const char *folder, const char *name, size_t n)
{
	char path[1024];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "we");
	assert_non_null(file);
	for (size_t i = 0; i < n; i++)
		fputc('x', file);
	fclose(file);
}

static bool exists(const char *folder, const char *name)
{
	char path[1024];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Foreign files stay; leftovers of a crash are removed. */
static void test_scan(void **state)
{
	static const char good[] = "20990101T000000.000Z_60s_cpu.pb.gz";
	static const char empty[] = "20990101T000001.000Z_60s_cpu.pb.gz";
	static const char link[] = "20990101T000002.000Z_60s_cpu.pb.gz";
	static const char pipe[] = "20990101T000003.000Z_60s_cpu.pb.gz";
	struct fixture *f = *state;
	struct store *s = open_store(f);
	char folder[512], path[1024];

	store_free(s);
	snprintf(folder, sizeof(folder), "%s/web-0123abcd", f->store);
	assert_int_equal(mkdir(folder, 0700), 0);
	make_file(folder, good, 10);
	make_file(folder, empty, 0);
	make_file(folder, "notes.txt", 10);
	make_file(folder, ".new-labels.json", 10);
	make_file(folder, "labels.json", 10); /* no JSON */
	make_file(f->store, "README", 10);
	snprintf(path, sizeof(path), "%s/%s", folder, link);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	snprintf(path, sizeof(path), "%s/%s", folder, pipe);
	assert_int_equal(mkfifo(path, 0600), 0);
	snprintf(path, sizeof(path), "%s/linked-0123abcd", f->store);
	assert_int_equal(symlink(folder, path), 0);
	snprintf(path, sizeof(path), "%s/other", f->store);
	assert_int_equal(mkdir(path, 0700), 0);

	s = open_store(f);
	assert_int_equal(store_n_profiles(s), 1);
	assert_int_equal(store_at(s, 0)->bytes, 4096);
	assert_string_equal(labels_get(&store_at(s, 0)->folder->labels, "service_name"),
			    "web-0123abcd");
	assert_false(exists(folder, empty));
	assert_false(exists(folder, ".new-labels.json"));
	assert_true(exists(folder, good));
	assert_true(exists(folder, link));
	assert_true(exists(folder, pipe));
	assert_true(exists(folder, "notes.txt"));
	assert_true(exists(f->store, "README"));
	assert_true(exists(f->store, "other"));
	store_free(s);
}

/* Files present at the open of the store are now missing or replaced. */
static void test_changed_under_us(void **state)
{
	struct fixture *f = *state;
	_cleanup_(store_freep) struct store *s = open_store(f);
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(100);
	const struct store_profile *p;
	char folder[512], elsewhere[128], command[2048];

	assert_int_equal(put(s, f, "a", 0, 10), 0);
	p = store_at(s, 0);
	snprintf(folder, sizeof(folder), "%s/%s", f->store, p->folder->name);

	snprintf(command, sizeof(command), "cd %s && rm *.pb.gz", folder);
	assert_int_equal(system(command), 0);
	assert_int_equal(read_profile(s, p->id, &b), STORE_GONE);
	snprintf(command, sizeof(command),
		 "cd %s && mkfifo $(date -u -d @%llu.%03llu +%%Y%%m%%dT"
		 "%%H%%M%%S.%%3NZ)_60s_cpu.pb.gz",
		 folder, (unsigned long long)(p->start_ns / NSEC_PER_SEC),
		 (unsigned long long)(p->start_ns / NSEC_PER_MSEC % 1000));
	assert_int_equal(system(command), 0);
	assert_int_equal(read_profile(s, p->id, &b), STORE_FAILED);

	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
	assert_int_equal(read_profile(s, p->id, &b), STORE_GONE);
	assert_int_equal(put(s, f, "a", MINUTE_NS, 10), 0); /* the folder is made again */
	assert_true(exists(folder, "labels.json"));

	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", f->dir);
	snprintf(command, sizeof(command), "rm -r %s && mkdir %s && ln -s %s %s", folder, elsewhere,
		 elsewhere, folder);
	assert_int_equal(system(command), 0);
	assert_int_equal(put(s, f, "a", 2 * MINUTE_NS, 10), STORE_FAILED);
	assert_false(exists(elsewhere, "labels.json"));
	assert_int_equal(b.len, 0);
}

static void test_cannot_open(void **state)
{
	static const char *const dirs[] = {"", "/proc/none/store", "/dev/null/store", "/dev/null"};
	struct fixture *f = *state;
	struct store *s = NULL;

	for (size_t i = 0; i < array_size(dirs); i++) {
		row_begin(dirs[i]);
		f->opts.dir = dirs[i];
		assert_in_range(store_open(&f->opts, &s), 1, STORE_OUTCOME_MAX - 1);
		assert_null(s);
	}
}

/* A file system of @size bytes in a mount namespace of the test; ends with the process. */
static void mount_small(const struct fixture *f, const char *size)
{
	char options[64];

	assert_int_equal(mkdir(f->store, 0700) && errno == ENOENT, 1);
	snprintf(options, sizeof(options), "size=%s", size);
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("tmpfs", f->dir, "tmpfs", 0, options), 0);
}

static void test_full_disk(void **state)
{
	struct fixture *f = *state;
	_cleanup_(store_freep) struct store *s = NULL;
	size_t stored = 0, n;
	uint64_t i;

	mount_small(f, "256k");
	s = open_store(f);
	for (i = 0; i < 40; i++) {
		int r = put(s, f, "a", (40 - i) * NSEC_PER_SEC, 20000);

		if (r)
			assert_int_equal(r, STORE_DISK_FULL);
		else
			stored++;
	}
	assert_in_range(stored, 8, 13);
	assert_int_equal(metric(s, "podprof_store_profiles", "stored"), stored);
	assert_int_equal(metric(s, "podprof_store_profiles", "disk_full"), 40 - stored);
	assert_int_equal(put(s, f, "a new folder", 0, 20000), STORE_DISK_FULL);
	/* no parts are left lying about: files, labels.json, and the folder in the store's */
	n_seen = 0;
	assert_int_equal(nftw(f->store, count_one, 8, FTW_DEPTH | FTW_PHYS), 0);
	assert_int_equal(n_seen, stored + 2);
	for (n = 0; n < stored; n++)
		check_contents(s, store_at(s, n)->id, 20000);
	/* room again */
	store_trim(s, f->now_ns + 60 * MINUTE_NS - 35 * NSEC_PER_SEC);
	settle(f, s);
	assert_int_equal(put(s, f, "a new folder", 0, 20000), 0);
	store_free(take_ptr(s));
	assert_int_equal(umount(f->dir), 0);
}

static void test_read_only(void **state)
{
	struct fixture *f = *state;
	_cleanup_(store_freep) struct store *s = NULL;

	mount_small(f, "1m");
	s = open_store(f);
	assert_int_equal(put(s, f, "a", 0, 1000), 0);
	store_free(take_ptr(s));
	assert_int_equal(mount(NULL, f->dir, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	s = open_store(f);
	assert_int_equal(store_n_profiles(s), 1);
	check_contents(s, store_at(s, 0)->id, 1000);
	assert_int_equal(put(s, f, "a", MINUTE_NS, 1000), STORE_READ_ONLY);
	assert_int_equal(put(s, f, "b", MINUTE_NS, 1000), STORE_READ_ONLY);
	assert_int_equal(metric(s, "podprof_store_profiles", "read_only"), 2);
	assert_int_equal(store_n_profiles(s), 1);
	store_free(take_ptr(s));
	assert_int_equal(umount(f->dir), 0);
}

/* ---- memory */

/* The loop's side: each allocation up to the thread's job fails once. Returns their number. */
static size_t open_put_without_memory(struct fixture *f)
{
	bool has_failed = true;
	size_t n = 0;

	while (has_failed) {
		_cleanup_(store_freep) struct store *s = NULL;
		int r;

		f->ended = false;
		allocfail_arm(++n);
		r = store_open(&f->opts, &s);
		if (!r)
			store_put(s, f->queued);
		has_failed = allocfail_disarm();
		if (!r) {
			settle(f, s);
			assert_true(f->ended);
			r = f->r;
		}
		assert_int_equal(r, has_failed ? -ENOMEM : 0);
	}
	return n;
}

static void no_sign(void *ctx)
{
	(void)ctx;
}

/* The thread's side. */
static int write_read(void *ctx)
{
	const struct fixture *f = ctx;
	_cleanup_(store_table_deinit) struct store_table table = {0};
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(100);
	const struct profile *p = f->queued->profile;
	struct store_disk *disk = NULL;
	struct store_file file = {.folder = "a-0123abcd"};
	int r = store_disk_new(f->opts.dir, &disk);

	strcpy(file.name, "20990101T000000.000Z_60s_cpu.pb.gz");
	if (!r)
		r = store_disk_open(disk, no_sign, NULL, &table);
	if (!r)
		r = store_disk_write(disk, &file, &p->labels, p->pprof, p->pprof_len);
	if (!r)
		r = store_read_file(&disk->root, &file, &b);
	store_disk_free(disk);
	return r;
}

static void test_without_memory(void **state)
{
	struct fixture *f = *state;
	struct profile *p = make(f->now_ns, 10);

	assert_int_equal(labels_set(&p->labels, "service_name", "a"), 0);
	assert_int_equal(queued_profile_new(&f->budget, p, &f->queued), 0);
	assert_in_range(open_put_without_memory(f), 8, 100);
	assert_in_range(open_put_without_memory(f), 8, 100); /* with a folder there */
	/* jansson's own allocations inside its library do not fail */
	assert_in_range(allocfail_each(write_read, f), 5, 100);
	assert_in_range(allocfail_each(write_read, f), 5, 100);
	assert_int_equal(f->queued->refs, 1);
	queued_profile_unref(f->queued);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_put_and_read),   TEST(test_unknown_id),    TEST(test_same_window_twice),
		TEST(test_killed),	   TEST(test_restart),	     TEST(test_hostile_names),
		TEST(test_hash_taken),	   TEST(test_trim_by_bytes), TEST(test_trim_by_age),
		TEST(test_clock_set_back), TEST(test_scan),	     TEST(test_changed_under_us),
		TEST(test_cannot_open),	   TEST(test_full_disk),     TEST(test_read_only),
		TEST(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
