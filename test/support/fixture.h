/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_FIXTURE_H
#define PODPROF_TEST_SUPPORT_FIXTURE_H

/* Files made by the Makefile for tests, mostly ELF files from test/fixtures. */

#define FIXTURE_PATH_MAX 4096

/* The path of a fixture ("plain-pie"), next to the running test program. Returns @ret. */
const char *fixture_path(const char *name, char ret[FIXTURE_PATH_MAX]);

/* A fixture that is an ELF file; the reference is the caller's. */
struct image;
struct image *fixture_image(const char *name);
/* Another ELF file, by its path. */
struct image *fixture_image_at(const char *path);

#endif
