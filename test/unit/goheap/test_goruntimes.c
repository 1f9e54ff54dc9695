// SPDX-License-Identifier: Apache-2.0
/* The Go runtimes of real processes: libraries, plugins, programs without a file, and the costs. */
#include "support/test.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "goheap/goheap.h"
#include "goheap/goimages.h"
#include "goheap/goruntimes.h"
#include "procmap/memory.h"
#include "procmap/image.h"
#include "support/allocfail.h"
#include "support/elfmake.h"
#include "support/gofixture.h"
#include "support/goprocess.h"
#include "support/tree.h"

#define HEAP   "test/fixtures/go/heap"
#define PLAIN  "test/fixtures/go/plain"
#define PYTHON "/usr/bin/python3"

/* Enough for some records at the default rate. */
static const char *const large_args[] = {"/dev/null", "large", NULL};

static int find(struct goimages *images, const struct goprocess *p, uint64_t known,
		struct goruntimes *ret)
{
	_cleanup_(process_memory_deinit) struct process_memory pm = {.fd = -1};

	assert_int_equal(process_memory_init(&pm, &p->proc, &p->id), 0);
	return goruntimes_find(images, &p->proc, &p->id, &pm.memory, known, ret);
}

/* A look with nothing remembered. */
static int find_new(const struct goprocess *p, struct goruntimes *ret)
{
	_cleanup_(goimages_freep) struct goimages *images = NULL;

	assert_int_equal(goimages_new(&images), 0);
	return find(images, p, 0, ret);
}

/* The records of the runtime are readable. */
static void assert_readable(const struct goprocess *p, const struct goruntime *rt)
{
	const struct goheap_opts opts = {.proc = &p->proc, .id = p->id, .runtime = rt};
	struct goheap_profile profile = {0};
	struct goheap *h;

	assert_int_equal(rt->state, GORUNTIME_OK);
	assert_true(rt->certain);
	assert_true(goruntime_minor(&rt->file) >= 16);
	assert_int_equal(goheap_new(&opts, &h), 0);
	assert_int_equal(goheap_read(h, &profile), GORUNTIME_OK);
	assert_true(profile.n_records > 0);
	goheap_free(h);
}

static void assert_one(const struct goprocess *p, const char *name_part)
{
	struct goruntimes found;

	assert_int_equal(find_new(p, &found), GORUNTIME_OK);
	assert_int_equal(found.n, 1);
	assert_int_equal(found.n_left_out, 0);
	assert_non_null(strstr(found.items[0].name, name_part));
	assert_readable(p, &found.items[0]);
}

/* ---------------------------------------------------------------- ways of linking */

static void one_runtime(void **state)
{
	static const struct {
		const char *variant;
		const char *in; /* a part of the file's name */
	} rows[] = {
		{"default", "heap-go"},
		{"stripped", "heap-go"},
		{"pie-stripped", "heap-go"},
		{"cgo-pie-stripped", "heap-go"},
		{"sectionless", "heap-go"},
		{"pie-sectionless", "heap-go"},
		{"cgo-pie-sectionless", "heap-go"},
		{"c-shared", "c-shared.so"},
		{"c-shared-stripped", "c-shared-stripped.so"},
		{"packed", "packed"},
		/* the runtime of the loading program, not the plugin's copy */
		{"plugin", "plugin"},
	};
	const char *gos[GOFIXTURE_GOS_MAX];
	size_t n = gofixture_gos(gos);

	(void)state;
	for (size_t i = 0; i < n * array_size(rows); i++) {
		_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
		char *path = gofixture_build(HEAP, gos[i / array_size(rows)],
					     rows[i % array_size(rows)].variant);

		row_begin(path);
		goprocess_start(&p, path, large_args, NULL);
		assert_one(&p, rows[i % array_size(rows)].in);
		free(path);
	}
}

static const char *newest(void)
{
	static const char *gos[GOFIXTURE_GOS_MAX];

	return gos[gofixture_gos(gos) - 1];
}

/* Variables without a file: memory has changed since the program's start, and the value does not
 * identify the sampling rate. */
static void unpacked(void **state)
{
	static const struct {
		const char *src;
		const char *env;
		enum goruntime_state want;
	} rows[] = {
		{HEAP, "HEAP_RATE=4096", GORUNTIME_OK},
		{HEAP, "HEAP_RATE=0", GORUNTIME_DISABLED_BY_PROGRAM},
		{PLAIN, NULL, GORUNTIME_DISABLED_BY_LINKER},
	};
	const char *gos[GOFIXTURE_GOS_MAX];
	size_t n = gofixture_gos(gos);

	(void)state;
	for (size_t i = 0; i < n * array_size(rows); i++) {
		_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
		char *path = gofixture_build(rows[i % array_size(rows)].src,
					     gos[i / array_size(rows)], "packed");
		enum goruntime_state want = rows[i % array_size(rows)].want;
		struct goheap_opts opts = {.proc = &p.proc};
		struct goheap_profile profile;
		struct frame frame;
		struct goheap *h;

		row_begin(path);
		goprocess_start(&p, path, large_args, rows[i % array_size(rows)].env);
		opts.id = p.id;
		assert_int_equal(goheap_new(&opts, &h), 0);
		/* the linker turns sampling off since 1.17 */
		if (want != GORUNTIME_DISABLED_BY_LINKER || gofixture_minor(path) >= 17)
			assert_int_equal(goheap_read(h, &profile), want);
		assert_true(goheap_runtime(h)->is_unpacked && goheap_runtime(h)->certain);
		assert_int_equal(goruntime_minor(&goheap_runtime(h)->file), gofixture_minor(path));
		/* by the names of functions */
		assert_true(goheap_resolve(h, goheap_runtime(h)->file.codes[0].vaddr, &frame));
		assert_non_null(frame.image->file);
		image_unref(frame.image);
		assert_false(goheap_resolve(h, 0x1000, &frame));
		goheap_free(h);
		free(path);
	}
}

/* Two libraries in one C program: two runtimes, each with its own records. */
static void two_runtimes(void **state)
{
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	_cleanup_(freep) char *heap = gofixture_build(HEAP, newest(), "c-shared");
	_cleanup_(freep) char *plain = gofixture_build(PLAIN, newest(), "c-shared-stripped");
	struct goruntimes found;
	char env[4200];

	(void)state;
	/* this library says "ready" too, perhaps first: the other program is ready after writing
	 * the profile */
	snprintf(env, sizeof(env), "GOHOST_ALSO=%s.so -", plain);
	goprocess_start(&p, heap, large_args, env);
	goprocess_wait(&p);
	assert_int_equal(find_new(&p, &found), GORUNTIME_OK);
	assert_int_equal(found.n, 2);
	for (size_t i = 0; i < found.n; i++) {
		assert_true(found.items[i].state == GORUNTIME_OK && found.items[i].certain);
		if (strstr(found.items[i].name, "heap-go"))
			assert_readable(&p, &found.items[i]);
	}
	assert_true(found.items[0].bias != found.items[1].bias);
	assert_string_not_equal(found.items[0].name, found.items[1].name);
}

static void start_python(struct goprocess *p, const char *library)
{
	static const char script[] = "import os, sys, ctypes\n"
				     "os.write(1, b'ready\\n')\n"
				     "os.read(0, 1)\n"
				     "ctypes.CDLL(sys.argv[1]).goMain(b'/dev/null large')\n";
	const char *const args[] = {"-c", script, library, NULL};

	goprocess_start(p, PYTHON, args, NULL);
}

/* An interpreter loads a library after a while: the mappings tell. */
static void library_comes_later(void **state)
{
	_cleanup_(goimages_freep) struct goimages *images = NULL;
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	_cleanup_(freep) char *host = gofixture_build(HEAP, newest(), "c-shared-stripped");
	struct goruntimes found, again;
	char library[4200];

	(void)state;
	snprintf(library, sizeof(library), "%s.so", host);
	start_python(&p, library);
	assert_int_equal(goimages_new(&images), 0);
	assert_int_equal(find(images, &p, 0, &found), GORUNTIME_NO_RUNTIME);
	assert_int_equal(find(images, &p, found.mappings, &again), GORUNTIMES_UNCHANGED);
	goprocess_order(&p, "load");
	assert_int_equal(find(images, &p, found.mappings, &again), GORUNTIME_OK);
	assert_int_equal(again.n, 1);
	assert_readable(&p, &again.items[0]);
}

/* One library under many names. */
static void too_many(void **state)
{
	static const char script[] =
		"import os, sys, ctypes, shutil, tempfile\n"
		"with tempfile.TemporaryDirectory() as d:\n"
		"  for i in range(int(sys.argv[2])):\n"
		"    ctypes.CDLL(shutil.copy(sys.argv[1], os.path.join(d, 'library%d.so' % i)))\n"
		"os.write(1, b'ready\\n')\n"
		"os.read(0, 1)\n";
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	_cleanup_(freep) char *host = gofixture_build(PLAIN, newest(), "c-shared-stripped");
	char library[4200], number[16];
	const char *const args[] = {"-c", script, library, number, NULL};
	struct goruntimes found;

	(void)state;
	snprintf(library, sizeof(library), "%s.so", host);
	snprintf(number, sizeof(number), "%d", GORUNTIMES_MAX + 2);
	goprocess_start(&p, PYTHON, args, NULL);
	assert_int_equal(find_new(&p, &found), GORUNTIME_OK);
	assert_int_equal(found.n, GORUNTIMES_MAX);
	assert_int_equal(found.n_left_out, 2);
}

/* ---------------------------------------------------------------- missing files */

static void copy_file(const char *from, const char *to)
{
	char command[9000];

	snprintf(command, sizeof(command), "cp '%s' '%s'", from, to);
	assert_int_equal(system(command), 0); // NOLINT
}

/* Deleted, or upgraded: another program lies there now. */
static void file_has_gone(void **state)
{
	_cleanup_(freep) char *path = gofixture_build(HEAP, newest(), "stripped");
	_cleanup_(freep) char *other = gofixture_build(PLAIN, newest(), "pie-stripped");
	char file[4200], fresh[4300];

	(void)state;
	snprintf(file, sizeof(file), "%s.gone.%d", path, (int)getpid());
	snprintf(fresh, sizeof(fresh), "%s.new", file);
	for (int upgraded = 0; upgraded < 2; upgraded++) {
		_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};

		copy_file(path, file);
		goprocess_start(&p, file, large_args, NULL);
		copy_file(other, fresh);
		assert_int_equal(upgraded ? rename(fresh, file) : unlink(file), 0);
		assert_one(&p, ".gone.");
		unlink(file);
		unlink(fresh);
	}
}

/* The path leads nowhere here. */
static void other_mount_namespace(void **state)
{
	static const char script[] = "mount -t tmpfs tmpfs /mnt && cp \"$1\" /mnt/inside && "
				     "exec /mnt/inside /dev/null large";
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	_cleanup_(freep) char *path = gofixture_build(HEAP, newest(), "stripped");
	const char *const args[] = {"-m", "sh", "-c", script, "sh", path, NULL};

	(void)state;
	goprocess_start(&p, "/usr/bin/unshare", args, NULL);
	assert_int_equal(access("/mnt/inside", F_OK), -1);
	assert_one(&p, "inside");
}

/* A program in shared memory, never in a file system. */
static void memfd(void **state)
{
	static const char script[] =
		"import os, sys\n"
		"fd = os.memfd_create('program')\n"
		"os.write(fd, open(sys.argv[1], 'rb').read())\n"
		"os.execve(fd, ['program', '/dev/null', 'large'], os.environ)\n";
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	_cleanup_(freep) char *path = gofixture_build(HEAP, newest(), "stripped");
	const char *const args[] = {"-c", script, path, NULL};

	(void)state;
	goprocess_start(&p, PYTHON, args, NULL);
	assert_one(&p, "memfd:program");
}

/* ---------------------------------------------------------------- cost */

/* One look at the program's file and each C file, for any number of processes. */
static void looked_at_once(void **state)
{
	enum { N = 100 };
	static struct goprocess go[N];
	_cleanup_(goimages_freep) struct goimages *images = NULL;
	_cleanup_(freep) char *path = gofixture_build(PLAIN, newest(), "stripped");
	_cleanup_(goprocess_stop) struct goprocess python = {.to = -1};
	const char *const args[] = {NULL};
	struct goruntimes found;
	uint64_t n_looks;
	size_t bytes;

	(void)state;
	assert_int_equal(goimages_new(&images), 0);
	start_python(&python, "none");
	assert_int_equal(find(images, &python, 0, &found), GORUNTIME_NO_RUNTIME);
	n_looks = goimages_looks(images);
	assert_true(n_looks > 1); /* the libraries */
	assert_int_equal(find(images, &python, 0, &found), GORUNTIME_NO_RUNTIME);
	assert_int_equal(goimages_looks(images), n_looks);
	for (size_t i = 0; i < N; i++) {
		goprocess_start(&go[i], path, args, "GOMAXPROCS=1");
		assert_int_equal(find(images, &go[i], 0, &found), GORUNTIME_OK);
		assert_int_equal(goimages_looks(images), n_looks + 1);
		bytes = i == 0 ? goimages_bytes(images) : bytes;
	}
	assert_true(goimages_bytes(images) == bytes);
	/* unused entries are dropped */
	for (int i = 0; i <= GOIMAGES_KEEP_ROUNDS; i++) {
		assert_int_equal(find(images, &python, 0, &found), GORUNTIME_NO_RUNTIME);
		goimages_sweep(images);
	}
	assert_true(goimages_bytes(images) < bytes);
	assert_int_equal(goimages_looks(images), n_looks + 1);
	assert_int_equal(find(images, &go[0], 0, &found), GORUNTIME_OK);
	assert_int_equal(goimages_looks(images), n_looks + 2);
	for (size_t i = 0; i < N; i++)
		goprocess_stop(&go[i]);
}

/* A file written in place, or a new file with the same inode, is another image. */
static void changed_file(void **state)
{
	_cleanup_(goimages_freep) struct goimages *images = NULL;
	_cleanup_(freep) char *path = gofixture_build(PLAIN, newest(), "stripped");
	const struct goimage *image;
	char name[] = "/tmp/test_goruntimes.XXXXXX";
	int fd = mkstemp(name);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(goimages_new(&images), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(goimages_get(images, fd, &image), 0);
		assert_int_equal(image->state, GORUNTIME_NO_RUNTIME);
		assert_null(image->file);
	}
	assert_int_equal(goimages_looks(images), 1);
	copy_file(path, name);
	assert_int_equal(goimages_get(images, fd, &image), 0);
	assert_int_equal(image->state, GORUNTIME_OK);
	assert_non_null(image->file);
	assert_int_equal(goimages_looks(images), 2);
	close(fd);
	/* a descriptor that can never be read */
	fd = open("/", O_PATH | O_CLOEXEC);
	assert_int_equal(goimages_get(images, fd, &image), GORUNTIME_NO_RUNTIME);
	close(fd);
	assert_int_equal(goimages_get(images, fd, &image), GORUNTIME_NO_RUNTIME);
	unlink(name);
}

/* A file of @n words that look like the begin of a line table, and without section headers. Each
 * costs some hundred units of work. */
static void write_words(const char *path, size_t n)
{
	struct elfmake m;
	FILE *f;

	elfmake_init(&m, ET_DYN, 8 * n);
	m.eh.e_shnum = m.eh.e_shstrndx = 0;
	m.eh.e_shoff = 0;
	for (size_t i = 0; i < n; i++)
		elfmake_bytes(&m, "\xf1\xff\xff\xff\0\0\1\x08", 8);
	elfmake_segment(&m, PT_LOAD, PF_R | PF_X, 0, m.n - 8 * n, 8 * n);
	elfmake_finish(&m);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_int_equal(fwrite(m.data, 1, m.n, f), m.n);
	assert_int_equal(fclose(f), 0);
	elfmake_deinit(&m);
}

/* Python with its own libraries mapped, and @n files more. */
static void start_mapping(struct goprocess *p, const char *dir, const char *n)
{
	static const char script[] = "import mmap, os, sys\n"
				     "keep = []\n"
				     "for i in range(int(sys.argv[2])):\n"
				     "    fd = os.open('%s/%d' % (sys.argv[1], i), os.O_RDONLY)\n"
				     "    keep.append(mmap.mmap(fd, 4096, mmap.MAP_PRIVATE,\n"
				     "        mmap.PROT_READ | mmap.PROT_EXEC))\n"
				     "os.write(1, b'ready\\n')\n"
				     "os.read(0, 1)\n";
	const char *const args[] = {"-c", script, dir, n, NULL};

	goprocess_start(p, PYTHON, args, NULL);
}

/* Of a file that takes too much work there is a state, and nothing else. */
static void too_much_work(void **state)
{
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	_cleanup_(goimages_freep) struct goimages *images = NULL;
	struct goruntimes found = {0};
	struct tree tree;
	char path[128];

	(void)state;
	tree_init(&tree);
	snprintf(path, sizeof(path), "%s/0", tree.path);
	write_words(path, 4u << 20);
	start_mapping(&p, tree.path, "1");
	assert_int_equal(goimages_new(&images), 0);
	assert_int_equal(find(images, &p, 0, &found), GORUNTIME_TOO_LARGE);
	assert_int_equal(found.n, 0);
	tree_deinit(&tree);
}

/* The work on all files together is limited, too: the others are read in the next rounds. */
static void too_many_files(void **state)
{
	enum { N = 6 };
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	_cleanup_(goimages_freep) struct goimages *images = NULL;
	struct goruntimes found = {0};
	uint64_t n_looks, n_first = 0;
	struct tree tree;
	char path[128];
	int round, r = GORUNTIME_TOO_LARGE;

	(void)state;
	tree_init(&tree);
	for (int i = 0; i < N; i++) {
		snprintf(path, sizeof(path), "%s/%d", tree.path, i);
		write_words(path, 512u << 10);
	}
	start_mapping(&p, tree.path, "6");
	assert_int_equal(goimages_new(&images), 0);
	for (round = 0; r == GORUNTIME_TOO_LARGE; round++) {
		assert_true(round < N);
		n_looks = goimages_looks(images);
		r = find(images, &p, 0, &found);
		assert_int_equal(found.mappings == 0, r == GORUNTIME_TOO_LARGE);
		assert_true(goimages_looks(images) > n_looks);
		n_first = round == 0 ? goimages_looks(images) : n_first;
		goimages_begin(images);
	}
	assert_int_equal(r, GORUNTIME_NO_RUNTIME);
	/* four of them take all of the work */
	assert_int_equal(round, 2);
	assert_true(goimages_looks(images) >= n_first + 2);
	tree_deinit(&tree);
}

static int attempt(void *arg)
{
	struct goprocess *p = arg;
	_cleanup_(goimages_freep) struct goimages *images = NULL;
	struct goruntimes found;
	int r = goimages_new(&images);

	return r ? r : goruntimes_find(images, &p->proc, &p->id, NULL, 0, &found);
}

static void out_of_memory(void **state)
{
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	_cleanup_(freep) char *path = gofixture_build(PLAIN, newest(), "stripped");
	const char *const args[] = {NULL};

	(void)state;
	goprocess_start(&p, path, args, NULL);
	allocfail_each(attempt, &p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_runtime),
		cmocka_unit_test(unpacked),
		cmocka_unit_test(two_runtimes),
		cmocka_unit_test(library_comes_later),
		cmocka_unit_test(too_many),
		cmocka_unit_test(file_has_gone),
		cmocka_unit_test(other_mount_namespace),
		cmocka_unit_test(memfd),
		cmocka_unit_test(looked_at_once),
		cmocka_unit_test(changed_file),
		cmocka_unit_test(too_much_work),
		cmocka_unit_test(too_many_files),
		cmocka_unit_test(out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
