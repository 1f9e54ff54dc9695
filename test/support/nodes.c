// SPDX-License-Identifier: Apache-2.0
#include "support/nodes.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test.h"

static void add(struct nodes *nodes, glob_t *found)
{
	for (size_t i = 0; i < found->gl_pathc && nodes->n < NODES_MAX; i++) {
		nodes->paths[nodes->n] = strdup(found->gl_pathv[i]);
		assert_non_null(nodes->paths[nodes->n++]);
	}
	globfree(found);
}

void nodes_find(struct nodes *ret)
{
	glob_t found = {0};

	*ret = (struct nodes){0};
	assert_int_equal(glob("/usr/bin/node", 0, NULL, &found), 0);
	(void)glob("/opt/node*/bin/node", GLOB_APPEND, NULL, &found);
	add(ret, &found);
}

void nodes_add_deno(struct nodes *nodes)
{
	glob_t found = {0};

	if (glob("/opt/deno*/bin/deno", 0, NULL, &found) == 0)
		add(nodes, &found);
}

void nodes_deinit(struct nodes *nodes)
{
	for (size_t i = 0; i < nodes->n; i++)
		free(nodes->paths[i]);
}

bool nodes_is_deno(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && strcmp(name, "/deno") == 0;
}

/* Deno has one option for all of V8's. Its arguments in front of the script: the script cannot
 * switch compilers off here, as its argument @arg says. V8 records the lines of bytecode at once.
 */
static size_t list_for_deno(const char *const *options, const char *arg,
			    char flags[NODES_FLAGS_BYTES], const char **ret)
{
	const char *compilers = strstr(arg, ",plain")	 ? "--no-maglev"
				: strstr(arg, ",maglev") ? "--no-turbofan"
							 : "--turbofan";
	size_t at = (size_t)snprintf(flags, NODES_FLAGS_BYTES,
				     "--v8-flags=--no-enable-lazy-source-positions,%s", compilers);

	for (size_t i = 0; options[i]; i++) {
		at += (size_t)snprintf(flags + at, NODES_FLAGS_BYTES - at, ",%s", options[i]);
		assert_true(at < NODES_FLAGS_BYTES);
	}
	ret[0] = "run";
	ret[1] = "--allow-all";
	ret[2] = flags;
	return 3;
}

void nodes_run(const char *path, const char *const *options, const char *script, const char *arg,
	       struct goprocess *p)
{
	const char *args[NODES_ARGS_MAX] = {0};
	char flags[NODES_FLAGS_BYTES];
	size_t n = 0;

	if (nodes_is_deno(path)) {
		n = list_for_deno(options, arg, flags, args);
	} else {
		for (; options[n]; n++) {
			assert_true(n < NODES_ARGS_MAX - 3);
			args[n] = options[n];
		}
	}
	args[n++] = script;
	args[n] = arg;
	goprocess_start(p, path, args, "DENO_NO_UPDATE_CHECK=1");
}
