// SPDX-License-Identifier: Apache-2.0
#include "support/pythons.h"

#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "support/test.h"

#define OF_DEBIAN    "/usr/bin/python3"
#define ANSWER_BYTES (256u << 20)

void pythons_find(struct pythons *ret)
{
	glob_t found = {0};

	*ret = (struct pythons){0};
	assert_int_equal(access(OF_DEBIAN, X_OK), 0);
	ret->paths[ret->n++] = strdup(OF_DEBIAN);
	if (glob("~/.pyenv/versions/3.*/bin/python3", GLOB_TILDE, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc && ret->n < PYTHONS_MAX; i++)
			ret->paths[ret->n++] = strdup(found.gl_pathv[i]);
	globfree(&found);
}

void pythons_deinit(struct pythons *pythons)
{
	for (size_t i = 0; i < pythons->n; i++)
		free(pythons->paths[i]);
}

unsigned int pythons_minor(const char *path)
{
	_cleanup_(freep) char *file = realpath(path, NULL);
	const char *at = file ? strrchr(file, '/') : NULL;
	unsigned int minor = 0;

	assert_non_null(at);
	assert_int_equal(sscanf(at, "/python3.%u", &minor), 1); // NOLINT(cert-err34-c)
	return minor;
}

void pythons_run(const char *path, const char *script, struct goprocess *p, char **ret_answer)
{
	pythons_run_with(path, script, NULL, p, ret_answer);
}

void pythons_run_with(const char *path, const char *script, const char *arg, struct goprocess *p,
		      char **ret_answer)
{
	char answer[] = "/tmp/podprof-python-XXXXXX", source[256];
	_cleanup_(close_fdp) int fd = mkstemp(answer);
	const char *const args[] = {source, answer, arg, NULL};
	struct buf b;

	assert_true(fd >= 0);
	snprintf(source, sizeof(source), "test/data/python/%s", script);
	goprocess_start(p, path, args, "PYTHONDONTWRITEBYTECODE=1;PYTHONUTF8=1");
	buf_init(&b, ANSWER_BYTES);
	assert_int_equal(root_read_fd(fd, &b), 0);
	unlink(answer);
	*ret_answer = buf_take(&b);
	assert_non_null(*ret_answer);
}

static void add_frame(struct pythons_truth *t, char *fields)
{
	struct pythons_frame *f = &t->frames[t->n_frames];
	char *rest;

	assert_true(t->n && t->n_frames < PYTHONS_FRAMES_MAX);
	f->name = strtok_r(fields, "\t", &rest);
	f->file = strtok_r(NULL, "\t", &rest);
	f->line = (uint32_t)strtoul(strtok_r(NULL, "\t", &rest), NULL, 10);
	t->n_frames++;
	t->threads[t->n - 1].n++;
}

void pythons_start(const char *path, struct goprocess *p, struct pythons_truth **ret)
{
	struct pythons_truth *t = calloc(1, sizeof(*t));
	char *rest;

	assert_non_null(t);
	pythons_run(path, "frames.py", p, &t->text);
	for (char *line = strtok_r(t->text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		if (line[0] == 'F') {
			add_frame(t, line + 2);
			continue;
		}
		assert_true(t->n < PYTHONS_THREADS);
		t->threads[t->n++] = (struct pythons_thread){.id = strtoull(line + 2, NULL, 10),
							     .frames = &t->frames[t->n_frames]};
	}
	*ret = t;
}

void pythons_truth_free(struct pythons_truth *truth)
{
	if (truth)
		free(truth->text);
	free(truth);
}

uint64_t pythons_line_of(const char *source, const char *text)
{
	const char *at = strstr(source, text);
	uint64_t line = 1;

	assert_non_null(at);
	for (const char *p = source; p < at; p++)
		line += *p == '\n';
	return line;
}
