// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <stdlib.h>

#include "base/root.h"
#include "procmap/address_space.h"
#include "procmap/image.h"
#include "runtimes/runtime_images.h"
#include "runtimes/runtime_reader.h"
#include "support/ownspace.h"

static bool exe(const void *image, const void *target, void *ret)
{
	(void)target;
	*(char *)ret = *(const char *)image;
	return true;
}

static const struct runtime_reader_kind kind = {
	.name = "test", .runtime = FRAME_RUNTIME_PYTHON, .exe_bytes = 1, .exe = exe};

/* The first mapped file. */
static struct image *file_of(const struct address_space *space)
{
	const struct address_space_mapping *items;
	size_t n;

	items = address_space_mappings(space, &n);
	for (size_t i = 0; i < n; i++)
		if (items[i].image->kind == IMAGE_FILE && items[i].image->file)
			return items[i].image;
	fail_msg("no file");
	return NULL;
}

static void *probed(char value)
{
	char *ret = malloc(1);

	assert_non_null(ret);
	*ret = value;
	return ret;
}

/* An image is freed with the last process of a program, and made again with the next one. What is
 * known of its file holds for the new image. */
static void test_new_image(void **state)
{
	struct runtime_images images = {.kind = &kind};
	struct address_space_cache *caches[2];
	struct image *files[2];
	struct root proc;

	(void)state;
	assert_int_equal(root_open("/proc", &proc), 0);
	for (size_t i = 0; i < array_size(caches); i++) {
		const struct runtime_image *known;
		struct address_space *space;
		uint64_t bias;

		assert_int_equal(address_space_cache_new(&proc, &caches[i]), 0);
		space = ownspace(caches[i], 1);
		files[i] = file_of(space);
		if (!i) {
			assert_null(runtime_images_mapped(&images, space, &bias));
			runtime_images_add(&images, &files[i]->id, probed('p'), NULL);
		}
		known = runtime_images_mapped(&images, space, &bias);
		assert_non_null(known);
		assert_int_equal(*(const char *)runtime_image_probed(known), 'p');
		assert_int_equal(*(const char *)runtime_image_exe(known), 'p');
	}
	assert_ptr_not_equal(files[0], files[1]);
	for (size_t i = 0; i < array_size(caches); i++)
		address_space_cache_free(caches[i]);
	runtime_images_deinit(&images);
	root_deinit(&proc);
}

/* The mark of a file without the runtime saves the search. */
static void test_marked(void **state)
{
	struct runtime_images images = {.kind = &kind};
	struct address_space_cache *cache;
	struct address_space *space;
	struct root proc;
	uint64_t bias;

	(void)state;
	assert_int_equal(root_open("/proc", &proc), 0);
	assert_int_equal(address_space_cache_new(&proc, &cache), 0);
	space = ownspace(cache, 1);
	runtime_images_add(&images, &file_of(space)->id, probed('p'), NULL);
	file_of(space)->no_runtimes = 1u << FRAME_RUNTIME_PYTHON;
	assert_null(runtime_images_mapped(&images, space, &bias));
	file_of(space)->no_runtimes = ~(1u << FRAME_RUNTIME_PYTHON);
	assert_non_null(runtime_images_mapped(&images, space, &bias));
	address_space_cache_free(cache);
	runtime_images_deinit(&images);
	root_deinit(&proc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new_image),
		cmocka_unit_test(test_marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
