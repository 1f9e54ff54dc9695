// SPDX-License-Identifier: Apache-2.0
/* Each of the ten states, with a real process in this state. */
#include "support/test.h"

#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "goheap/goruntime.h"
#include "goprofile/heapsnap.h"
#include "goprofile/reader.h"
#include "support/gofixture.h"
#include "support/goprocess.h"

#define HEAP  "test/fixtures/go/heap"
#define PLAIN "test/fixtures/go/plain"

static const char *newest(void)
{
	static const char *gos[GOFIXTURE_GOS_MAX];

	return gos[gofixture_gos(gos) - 1];
}

/* The result of a look, and whether the allocator's counters were available. */
struct look {
	enum goruntime_state state;
	bool is_go;
	bool counts;
	bool profile;
};

static struct look look_at(const struct goprocess *p, bool force, size_t heap_bytes)
{
	const struct go_profile_reader_opts opts = {
		.proc = &p->proc,
		.kinds = GO_PROFILE_CUMULATIVE,
		.rounds = true,
		.record_bytes = heap_bytes,
		.symbol_bytes = 1u << 20,
	};
	struct go_profile_target target = {.pid = p->id, .force = force};
	struct go_profile_reader *reader;
	struct look ret;

	assert_int_equal(go_profile_reader_new(&opts, &reader), 0);
	assert_int_equal(go_profile_reader_read(reader, 0, &target), 0);
	ret = (struct look){.state = target.state, .is_go = target.n_found};
	if (target.n_found) {
		const struct go_profile_found *found = &target.found[0];

		ret.state = found->state;
		ret.counts = found->reading.has & 1u << GOALLOC_ALLOC_BYTES;
		ret.profile = found->snaps[GO_PROFILE_HEAP];
		assert_string_equal(found->reading.state, goruntime_state_name(found->state));
		assert_true(found->news);
	}
	go_profile_target_deinit(&target);
	go_profile_reader_free(reader);
	return ret;
}

/* ---------------------------------------------------------------- of programs */

struct row {
	enum goruntime_state want;
	const char *src;
	const char *variant;
	const char *env;
	bool force;
	size_t heap_bytes;
	bool profile;
};

static const struct row rows[] = {
	{GORUNTIME_OK, HEAP, "stripped", NULL, false, 64u << 20, true},
	{GORUNTIME_DISABLED_BY_LINKER, PLAIN, "stripped", NULL, false, 64u << 20, false},
	{GORUNTIME_DISABLED_BY_PROGRAM, HEAP, "stripped", "HEAP_RATE=0", false, 64u << 20, false},
	{GORUNTIME_FORCED, PLAIN, "stripped", NULL, true, 64u << 20, true},
	{GORUNTIME_TOO_LARGE, HEAP, "stripped", "HEAP_RATE=512", false, 4096, false},
};

static void of_programs(void **state)
{
	static const char *const args[] = {"/dev/null", "all", NULL};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(freep) char *path =
			gofixture_build(rows[i].src, newest(), rows[i].variant);
		_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
		unsigned int minor = gofixture_minor(path);
		struct look look;

		row_begin(goruntime_state_name((int)rows[i].want));
		if (minor < 17 && strcmp(rows[i].src, PLAIN) == 0)
			continue; /* the linker does this since 1.17 */
		goprocess_start(&p, path, args, rows[i].env);
		look = look_at(&p, rows[i].force, rows[i].heap_bytes);
		assert_int_equal(look.state, rows[i].want);
		assert_true(look.is_go);
		assert_int_equal(look.counts, minor >= 17 || look.profile);
		assert_int_equal(look.profile, rows[i].profile);
	}
}

/* All releases sample one of a program's first objects. From 1.23 on a setting can remove all
 * frames from stacks, and then there are no records. */
static void no_samples_yet(void **state)
{
	static const char *const args[] = {"/dev/null", "inline", NULL};
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	_cleanup_(freep) char *path = NULL;
	const char *gos[GOFIXTURE_GOS_MAX];
	struct look look;

	(void)state;
	(void)gofixture_gos(gos);
	path = gofixture_build(HEAP, gos[0], "stripped");
	goprocess_start(&p, path, args, "GODEBUG=profstackdepth=0");
	look = look_at(&p, true, 64u << 20);
	if (gofixture_minor(path) >= 23)
		assert_int_equal(look.state, GORUNTIME_NO_SAMPLES_YET);
	assert_int_equal(look.profile, look.state == GORUNTIME_OK);
}

/* ---------------------------------------------------------------- of others */

static void no_runtime(void **state)
{
	static const char *const args[] = {"-c", "echo ready; exec sleep 1000", NULL};
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	struct look look;

	(void)state;
	goprocess_start(&p, "sh", args, NULL);
	look = look_at(&p, true, 1u << 20);
	assert_int_equal(look.state, GORUNTIME_NO_RUNTIME);
	assert_false(look.is_go);
}

static void gone(void **state)
{
	static const char *const args[] = {NULL};
	_cleanup_(freep) char *path = gofixture_build(PLAIN, newest(), "stripped");
	struct goprocess p = {.to = -1};
	struct look look;

	(void)state;
	goprocess_start(&p, path, args, NULL);
	goprocess_stop(&p);
	assert_int_equal(root_open("/proc", &p.proc), 0);
	look = look_at(&p, true, 1u << 20);
	assert_int_equal(look.state, GORUNTIME_GONE);
	assert_false(look.is_go);
	root_deinit(&p.proc);
}

static void set_ptrace(bool on)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	assert_int_equal(syscall(SYS_capget, &header, data), 0);
	if (on)
		data[0].effective |= 1u << CAP_SYS_PTRACE;
	else
		data[0].effective &= ~(1u << CAP_SYS_PTRACE);
	assert_int_equal(syscall(SYS_capset, &header, data), 0);
}

/* An agent without CAP_SYS_PTRACE. */
static void denied(void **state)
{
	static const char *const args[] = {NULL};
	_cleanup_(freep) char *path = gofixture_build(PLAIN, newest(), "stripped");
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	struct look look;

	(void)state;
	goprocess_start(&p, path, args, NULL);
	set_ptrace(false);
	look = look_at(&p, true, 1u << 20);
	set_ptrace(true);
	assert_int_equal(look.state, GORUNTIME_DENIED);
	assert_true(look.is_go);
	assert_false(look.counts);
	assert_int_not_equal(look_at(&p, false, 1u << 20).state, GORUNTIME_DENIED);
}

/* A program with other names for the users of the profiler's variables, like a later release:
 * podprof writes nothing, but reads the allocator's counters. */
static void unknown_layout(void **state)
{
	static const char *const names[] = {"runtime.mProf_FlushLocked", "runtime.profilealloc",
					    "runtime.mProf_PostSweep"};
	static const char *const args[] = {NULL};
	_cleanup_(freep) char *path = gofixture_build(PLAIN, newest(), "stripped");
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	char edited[] = "/tmp/podprof-edited-XXXXXX";
	unsigned int minor = gofixture_minor(path);
	struct look look;
	struct stat st;
	char *bytes;
	FILE *f;

	(void)state;
	f = fopen(path, "re");
	assert_non_null(f);
	assert_int_equal(fstat(fileno(f), &st), 0);
	bytes = malloc((size_t)st.st_size);
	assert_int_equal(fread(bytes, 1, (size_t)st.st_size, f), st.st_size);
	fclose(f);
	for (size_t i = 0; i < array_size(names); i++) {
		char *at = memmem(bytes, (size_t)st.st_size, names[i], strlen(names[i]) + 1);

		assert_non_null(at);
		at[strlen(names[i]) - 1] ^= 1;
	}
	f = fdopen(mkstemp(edited), "w");
	assert_int_equal(fwrite(bytes, 1, (size_t)st.st_size, f), st.st_size);
	assert_int_equal(fchmod(fileno(f), 0700), 0);
	fclose(f);
	free(bytes);
	goprocess_start(&p, edited, args, NULL);
	unlink(edited);
	look = look_at(&p, true, 64u << 20);
	assert_int_equal(look.state, GORUNTIME_UNKNOWN_LAYOUT);
	assert_true(look.is_go);
	assert_int_equal(look.counts, minor >= 19);
	assert_false(look.profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_programs), cmocka_unit_test(no_samples_yet),
		cmocka_unit_test(no_runtime),  cmocka_unit_test(gone),
		cmocka_unit_test(denied),      cmocka_unit_test(unknown_layout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
