// SPDX-License-Identifier: Apache-2.0
#include "support/nodes.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "support/test.h"

void nodes_find(struct nodes *ret)
{
	glob_t found = {0};

	*ret = (struct nodes){0};
	assert_int_equal(glob("/usr/bin/node", 0, NULL, &found), 0);
	(void)glob("/opt/node*/bin/node", GLOB_APPEND, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc && ret->n < NODES_MAX; i++) {
		ret->paths[ret->n] = strdup(found.gl_pathv[i]);
		assert_non_null(ret->paths[ret->n++]);
	}
	globfree(&found);
}

void nodes_deinit(struct nodes *nodes)
{
	for (size_t i = 0; i < nodes->n; i++)
		free(nodes->paths[i]);
}

void nodes_run(const char *path, const char *const *options, const char *script, const char *arg,
	       struct goprocess *p)
{
	const char *args[NODES_ARGS_MAX] = {0};
	size_t n = 0;

	for (; options[n]; n++) {
		assert_true(n < NODES_ARGS_MAX - 3);
		args[n] = options[n];
	}
	args[n++] = script;
	args[n] = arg;
	goprocess_start(p, path, args, NULL);
}
