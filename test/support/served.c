// SPDX-License-Identifier: Apache-2.0
#include "support/served.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "server/listen.h"
#include "support/test.h"

static void on_stop(void *ctx, int fd, uint32_t events)
{
	struct served *s = ctx;
	uint64_t count;

	(void)events;
	assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
	loop_stop(s->loop);
}

void served_init(struct served *s)
{
	assert_int_equal(loop_new(&s->loop), 0);
	s->stop_fd = eventfd(0, EFD_CLOEXEC);
	assert_true(s->stop_fd >= 0);
	assert_int_equal(loop_add_fd(s->loop, s->stop_fd, EPOLLIN, on_stop, s, &s->stop), 0);
}

static void *run(void *ctx)
{
	struct served *s = ctx;

	return loop_run(s->loop) ? s : NULL;
}

void served_start(struct served *s)
{
	assert_int_equal(pthread_create(&s->thread, NULL, run, s), 0);
}

void served_stop(struct served *s)
{
	uint64_t one = 1;
	void *failed;

	assert_int_equal(write(s->stop_fd, &one, sizeof(one)), sizeof(one));
	assert_int_equal(pthread_join(s->thread, &failed), 0);
	assert_null(failed);
}

void served_deinit(struct served *s)
{
	loop_remove(s->stop);
	loop_free(s->loop);
	close(s->stop_fd);
}

int served_connect(const char *address)
{
	struct listen_address a;
	int fd;

	assert_true(listen_parse(address, &a));
	fd = socket(a.addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a.addr, a.len), 0);
	return fd;
}

void served_exchange(const char *address, const char *request, size_t n, struct buf *ret)
{
	int fd = served_connect(address);
	char piece[4096];
	ssize_t got;

	while (n) {
		got = send(fd, request, n, MSG_NOSIGNAL);
		if (got < 0)
			break;
		request += got;
		n -= (size_t)got;
	}
	while ((got = recv(fd, piece, sizeof(piece), 0)) > 0)
		assert_int_equal(buf_append(ret, piece, (size_t)got), 0);
	close(fd);
	if (!ret->data)
		assert_int_equal(buf_puts(ret, ""), 0);
}

int served_get(const char *address, const char *target, struct buf *ret)
{
	_cleanup_(buf_deinit) struct buf reply = BUF_INIT(ret->max + (64u << 10));
	const char *body;
	char request[256];
	int n = snprintf(request, sizeof(request),
			 "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", target);

	served_exchange(address, request, (size_t)n, &reply);
	body = memmem(reply.data, reply.len, "\r\n\r\n", 4);
	assert_non_null(body);
	body += 4;
	buf_reset(ret);
	assert_int_equal(buf_append(ret, body, reply.len - (size_t)(body - reply.data)), 0);
	return atoi(reply.data + strlen("HTTP/1.1 ")); // NOLINT(cert-err34-c): three digits
}
