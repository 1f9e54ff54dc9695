/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_GOFIXTURE_H
#define PODPROF_TEST_SUPPORT_GOFIXTURE_H

#include <stddef.h>

/* Go programs that tests look at, built by build-go.sh (which says what @go and @variant may be)
 * and kept below build/. Test programs run in the tree's top directory. */

/* The path of the built program, owned by the caller; the test fails where it cannot be built. */
char *gofixture_build(const char *src, const char *go, const char *variant);

/* The Go commands and versions to test with: the words of $PODPROF_TEST_GO ("make check-go"), else
 * the command in PATH and Debian's own where there is one besides it. Never 0; the strings live as
 * long as the program. */
#define GOFIXTURE_GOS_MAX 32
size_t gofixture_gos(const char *ret[GOFIXTURE_GOS_MAX]);

/* The same for a test that looks at many releases: the words of $PODPROF_TEST_GO, else the oldest
 * that podprof reads, Debian stable's, and the two newest. They are fetched. */
size_t gofixture_releases(const char *ret[GOFIXTURE_GOS_MAX]);

/* The N of go1.N, from a path that gofixture_build() returned. */
unsigned int gofixture_minor(const char *path);

#endif
