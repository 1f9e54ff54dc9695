// SPDX-License-Identifier: Apache-2.0
#include "base/line_reader.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/root.h"

/**
 * struct line_reader - a window that moves over the file
 * @have:      bytes in @window, all of the incomplete line
 * @oversized: the incomplete line is being skipped
 * @n_skipped: the caller's
 */
struct line_reader {
	line_reader_fn fn;
	void *ctx;
	char *window;
	size_t have;
	bool oversized;
	size_t *n_skipped;
};

static int read_some(int fd, char *to, size_t room, size_t *ret)
{
	ssize_t n;

	do
		n = read(fd, to, room);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return root_outcome(errno);
	*ret = (size_t)n;
	return 0;
}

static int end_line(struct line_reader *l, struct strview line)
{
	if (!l->oversized)
		return l->fn(l->ctx, line);
	l->oversized = false;
	(*l->n_skipped)++;
	return 0;
}

/* Passes on the complete lines and keeps the bytes behind the last. */
static int take_lines(struct line_reader *l)
{
	struct strview t = strview_of_bytes(l->window, l->have), line;
	int r = 0;

	while (!r && memchr(t.p, '\n', strview_len(&t)) && strview_until(&t, '\n', &line))
		r = end_line(l, line);
	l->have = strview_len(&t);
	memmove(l->window, t.p, l->have);
	if (l->have == LINE_READER_MAX) {
		l->oversized = true;
		l->have = 0;
	}
	return r;
}

int line_reader_read(int fd, line_reader_fn fn, void *ctx, size_t *ret_skipped)
{
	_cleanup_(freep) char *window = malloc(LINE_READER_MAX);
	struct line_reader l = {.fn = fn, .ctx = ctx, .window = window, .n_skipped = ret_skipped};
	size_t n = 1;
	int r = 0;

	if (!window)
		return -ENOMEM;
	*ret_skipped = 0;
	while (!r && n > 0) {
		r = read_some(fd, window + l.have, LINE_READER_MAX - l.have, &n);
		l.have += r ? 0 : n;
		if (!r)
			r = take_lines(&l);
	}
	if (!r && (l.have || l.oversized))
		r = end_line(&l, strview_of_bytes(window, l.have));
	return r;
}
