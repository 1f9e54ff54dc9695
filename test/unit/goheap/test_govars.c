// SPDX-License-Identifier: Apache-2.0
/* report/test_heap.c and test_process.c check the results from the code of real programs of all
 * releases against the symbols; this test has the cases to reject. */
#include "support/test.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "gofile/gomodule.h"
#include "goheap/goruntime.h"
#include "goheap/govars.h"
#include "elf/elffile.h"
#include "elf/elfsym.h"
#include "support/allocfail.h"
#include "support/gofixture.h"
#include "support/gotable.h"

#include <fcntl.h>

static int find_in(const struct elffile *file, struct govars *ret)
{
	struct gomodule module;
	int r = gomodule_find(file, &module);

	return r ? r : govars_find(file, &module, ret);
}

static int find(const struct gotable *t, struct govars *ret)
{
	struct elffile *file = NULL;
	int r = elffile_open_memory(t->data, t->n, &file);

	if (!r)
		r = find_in(file, ret);
	elffile_free(file);
	return r;
}

static void takes_writable_data_only(void **state)
{
	const struct gotable_opts opts = {.minor = 26, .runtime = true};
	struct govars found;
	struct gotable t;
	uint64_t data;

	(void)state;
	gotable_build(&opts, &t);
	data = GOTABLE_BASE + t.text + 0x100;
	assert_int_equal(find(&t, &found), 0);
	assert_true(found.mbuckets == data && found.cycle == data);
	assert_true(!found.rate && !found.old_cycle && !found.can_profile);

	/* not aligned */
	gotable_put(&t, t.text + 0x0b, 0xf2, 4);
	assert_int_equal(find(&t, &found), 0);
	assert_true(!found.mbuckets && found.cycle == data);
	/* nowhere */
	gotable_put(&t, t.text + 0x0b, 0x7fff0001, 4);
	assert_int_equal(find(&t, &found), 0);
	assert_true(!found.mbuckets && found.cycle == data);
	/* read-only */
	gotable_put(&t, t.segment + offsetof(Elf64_Phdr, p_flags), PF_R | PF_X, 4);
	if (find(&t, &found) == 0)
		assert_true(!found.mbuckets && !found.cycle);
}

static int attempt(void *arg)
{
	struct govars found;

	return find(arg, &found);
}

static void out_of_memory(void **state)
{
	const struct gotable_opts opts = {.minor = 26, .runtime = true};
	struct gotable t;

	(void)state;
	gotable_build(&opts, &t);
	allocfail_each(attempt, &t);
}

static uint64_t symbol(const struct elffile *file, const char *name)
{
	struct elfsym sym;

	assert_int_equal(elfsym_find(file, ELFSYM_SYMTAB, ELFSYM_DATA, &name, 1, &sym), 0);
	assert_int_equal(sym.n, 1);
	return sym.vaddr;
}

/* Variables that are only read. */
static void assert_counters(const struct elffile *file, const struct govars *code,
			    unsigned int minor)
{
	uint64_t controller = symbol(file, "runtime.gcController");

	if (minor < 17)
		return;
	assert_true(code->controller == controller);
	assert_int_equal(code->total_alloc != 0, minor >= 19);
	assert_int_equal(code->heap_live, minor == 17 ? controller + 48 : 0);
	assert_true(code->sched.allglen == symbol(file, "runtime.allglen"));
	assert_true(code->sched.allp == symbol(file, "runtime.allp"));
	assert_int_equal(code->sched.free - symbol(file, "runtime.sched"), minor >= 26	 ? 184
									   : minor == 25 ? 168
									   : minor >= 20 ? 160
											 : 152);
	assert_int_equal(code->sched.system - symbol(file, "runtime.sched"), minor >= 26   ? 96
									     : minor == 25 ? 80
											   : 72);
	assert_int_equal(code->sched.split, minor >= 25);
}

/* Programs without readers of profiles: only the writers are left. */
static void without_readers(void **state)
{
	static const char *const variants[] = {"default", "pie", "arm64", "arm64-pie"};
	const char *gos[GOFIXTURE_GOS_MAX];
	size_t n = gofixture_gos(gos);

	(void)state;
	for (size_t i = 0; i < n * array_size(variants); i++) {
		char *path =
			gofixture_build("test/fixtures/go/plain", gos[i / array_size(variants)],
					variants[i % array_size(variants)]);
		struct elffile *file;
		struct govars code;

		row_begin(path);
		assert_int_equal(elffile_open(open(path, O_RDONLY | O_CLOEXEC), &file), 0);
		assert_int_equal(find_in(file, &code), 0);
		assert_false(code.can_profile);
		assert_true(code.mbuckets == symbol(file, "runtime.mbuckets"));
		assert_true(code.bbuckets == symbol(file, "runtime.bbuckets"));
		assert_true(code.xbuckets == symbol(file, "runtime.xbuckets"));
		assert_true(code.block_rate == symbol(file, "runtime.blockprofilerate"));
		assert_true(code.mutex_rate == symbol(file, "runtime.mutexprofilerate"));
		elffile_free(file);
		free(path);
	}
}

/* The code and the symbols of a file agree, also for the other machine. */
static void agrees_with_symbols(void **state)
{
	static const char *const variants[] = {"default", "cgo-pie", "arm64", "arm64-pie"};
	const char *gos[GOFIXTURE_GOS_MAX];
	size_t n = gofixture_gos(gos);

	(void)state;
	for (size_t i = 0; i < n * array_size(variants); i++) {
		char *path = gofixture_build("test/fixtures/go/heap", gos[i / array_size(variants)],
					     variants[i % array_size(variants)]);
		struct goruntime_file by_both;
		struct elffile *file;
		struct govars code;

		row_begin(path);
		assert_int_equal(elffile_open(open(path, O_RDONLY | O_CLOEXEC), &file), 0);
		assert_int_equal(find_in(file, &code), 0);
		assert_int_equal(goruntime_file_read(file, &by_both), GORUNTIME_OK);
		assert_int_equal(by_both.vars[GORUNTIME_MBUCKETS].source, GORUNTIME_FROM_SYMTAB);
		assert_true(by_both.vars[GORUNTIME_MBUCKETS].vaddr == code.mbuckets);
		assert_true(by_both.vars[GORUNTIME_RATE].vaddr == code.rate);
		assert_int_equal(code.old_cycle, gofixture_minor(path) < 19);
		assert_true(by_both.vars[code.old_cycle ? GORUNTIME_OLD_CYCLE : GORUNTIME_CYCLE]
				    .vaddr == code.cycle);
		assert_true(code.can_profile);
		assert_true(by_both.vars[GORUNTIME_BBUCKETS].vaddr == code.bbuckets);
		assert_true(by_both.vars[GORUNTIME_XBUCKETS].vaddr == code.xbuckets);
		assert_true(by_both.vars[GORUNTIME_BLOCK_RATE].vaddr == code.block_rate);
		assert_true(by_both.vars[GORUNTIME_MUTEX_RATE].vaddr == code.mutex_rate);
		assert_true(code.bbuckets && code.xbuckets && code.block_rate && code.mutex_rate);
		assert_true(code.ticks);
		assert_true(by_both.vars[GORUNTIME_ALLGS].vaddr == code.allgs);
		assert_true(code.allgs && code.wait_reasons);
		assert_counters(file, &code, gofixture_minor(path));
		elffile_free(file);
		free(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_writable_data_only),
		cmocka_unit_test(out_of_memory),
		cmocka_unit_test(without_readers),
		cmocka_unit_test(agrees_with_symbols),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
