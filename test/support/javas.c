// SPDX-License-Identifier: Apache-2.0
#include "support/javas.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/test.h"

/* Class files for every release from 8 on. */
#define COMPILE "javac --release 8 -Xlint:-options -d %s test/data/java/*.java"

/* The directories have several names: links. */
static void add(struct javas *javas, const char *path)
{
	char *real = realpath(path, NULL);

	assert_non_null(real);
	for (size_t i = 0; i < javas->n; i++)
		if (strcmp(javas->paths[i], real) == 0) {
			free(real);
			return;
		}
	assert_true(javas->n < JAVAS_MAX);
	javas->paths[javas->n++] = real;
}

void javas_find(struct javas *ret)
{
	char command[256];
	glob_t found = {0};

	*ret = (struct javas){.classes = "/tmp/podprof-java-XXXXXX"};
	assert_int_equal(glob("/usr/lib/jvm/*/bin/java", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++)
		add(ret, found.gl_pathv[i]);
	globfree(&found);
	assert_non_null(mkdtemp(ret->classes));
	snprintf(command, sizeof(command), COMPILE, ret->classes);
	assert_int_equal(system(command), 0);
}

void javas_deinit(struct javas *javas)
{
	char command[128];

	for (size_t i = 0; i < javas->n; i++)
		free(javas->paths[i]);
	snprintf(command, sizeof(command), "rm -rf %s", javas->classes);
	assert_int_equal(system(command), 0);
}

void javas_run(const struct javas *javas, const char *path, const char *const *options,
	       const char *program, const char *arg, struct goprocess *p)
{
	const char *args[JAVAS_ARGS_MAX] = {0};
	size_t n = 0;

	for (; options[n]; n++) {
		assert_true(n < JAVAS_ARGS_MAX - 5);
		args[n] = options[n];
	}
	args[n++] = "-cp";
	args[n++] = javas->classes;
	args[n++] = program;
	args[n] = arg;
	goprocess_start(p, path, args, NULL);
}
