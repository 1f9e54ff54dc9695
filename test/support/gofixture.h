/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_GOFIXTURE_H
#define PODPROF_TEST_SUPPORT_GOFIXTURE_H

#include <stddef.h>

/* Go programs for tests, built by build-go.sh (see there for @go and @variant) and kept below
 * build/. Test programs run in the top directory. */

/* The path of the built program, owned by the caller; the test fails where it cannot be built. */
char *gofixture_build(const char *src, const char *go, const char *variant);

/* The Go commands and versions to test with: the words of $PODPROF_TEST_GO ("make check-go"), else
 * the command in PATH and a different Go from Debian. Never 0; the strings live as long as the
 * program. */
#define GOFIXTURE_GOS_MAX 32
size_t gofixture_gos(const char *ret[GOFIXTURE_GOS_MAX]);

/* The same for a test of many releases: the words of $PODPROF_TEST_GO, else the oldest supported
 * release, Debian stable's, and the two newest. Downloads the releases. */
size_t gofixture_releases(const char *ret[GOFIXTURE_GOS_MAX]);

/* The N of go1.N, from a path of gofixture_build(). */
unsigned int gofixture_minor(const char *path);

#endif
