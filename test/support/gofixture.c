// SPDX-License-Identifier: Apache-2.0
#include "support/gofixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/test.h"

#define GOFIXTURE_DEBIAN_GO "/usr/lib/go-1.19/bin/go"

char *gofixture_build(const char *src, const char *go, const char *variant)
{
	char command[1024], line[4096];
	char *path = NULL;
	FILE *out;

	assert_true(snprintf(command, sizeof(command),
			     "test/support/build-go.sh build/test/go %s %s %s", src, go,
			     variant) < (int)sizeof(command));
	out = popen(command, "r"); // NOLINT(bugprone-command-processor,cert-env33-c)
	assert_non_null(out);
	if (fgets(line, sizeof(line), out)) {
		line[strcspn(line, "\n")] = '\0';
		path = strdup(line);
	}
	if (pclose(out) != 0 || !path)
		fail_msg("cannot build %s with %s as %s", src, go, variant);
	return path;
}

/* The words of $PODPROF_TEST_GO; 0 if unset. */
static size_t wanted(const char *ret[GOFIXTURE_GOS_MAX])
{
	static char words[1024];
	const char *list = getenv("PODPROF_TEST_GO");
	size_t n = 0;
	char *rest;

	if (!list || !*list)
		return 0;
	assert_true(snprintf(words, sizeof(words), "%s", list) < (int)sizeof(words));
	for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		assert_true(n < GOFIXTURE_GOS_MAX);
		ret[n++] = word;
	}
	assert_true(n > 0);
	return n;
}

size_t gofixture_gos(const char *ret[GOFIXTURE_GOS_MAX])
{
	size_t n = wanted(ret);

	if (n)
		return n;
	ret[n++] = "go";
	if (access(GOFIXTURE_DEBIAN_GO, X_OK) == 0)
		ret[n++] = GOFIXTURE_DEBIAN_GO;
	return n;
}

size_t gofixture_releases(const char *ret[GOFIXTURE_GOS_MAX])
{
	static const char *const releases[] = {"1.16.15", "1.24.13", "1.26.8", "1.27.3"};
	size_t n = wanted(ret);

	if (n)
		return n;
	memcpy(ret, releases, sizeof(releases));
	return array_size(releases);
}

unsigned int gofixture_minor(const char *path)
{
	const char *name = strrchr(path, '/');
	const char *version = name ? strstr(name, "-go1.") : NULL;

	if (!version) {
		fail_msg("no version in %s", path);
		return 0;
	}
	return (unsigned int)strtoul(version + strlen("-go1."), NULL, 10);
}
