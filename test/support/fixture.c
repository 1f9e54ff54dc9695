// SPDX-License-Identifier: Apache-2.0
#include "support/fixture.h"

#include "support/test.h"

#include <fcntl.h>
#include <string.h>

#include "procmap/image.h"

/* A test is build/test/unit/MODULE/test_x, build/tsan/test/unit/MODULE/test_x,
 * build/test/bpf/test_x or build/test/bench/bench_x, fixtures are in build/test/fixtures. */
const char *fixture_path(const char *name, char ret[FIXTURE_PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", ret, FIXTURE_PATH_MAX - 1);
	char *at;

	assert_true(n > 0);
	ret[n] = '\0';
	at = strstr(ret, "/tsan/test/unit/");
	if (!at)
		at = strstr(ret, "/test/unit/");
	if (!at)
		at = strstr(ret, "/test/bpf/");
	if (!at)
		at = strstr(ret, "/test/bench/");
	assert_non_null(at);
	n = at - ret;
	snprintf(at, (size_t)(FIXTURE_PATH_MAX - n), "/test/fixtures/%s", name);
	assert_int_equal(access(ret, R_OK), 0);
	return ret;
}

struct image *fixture_image_at(const char *path)
{
	struct image *image;
	int elf, fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(image_new_file(fd, path, &image, &elf), 0);
	assert_int_equal(elf, 0);
	return image;
}

struct image *fixture_image(const char *name)
{
	char path[FIXTURE_PATH_MAX];

	return fixture_image_at(fixture_path(name, path));
}
