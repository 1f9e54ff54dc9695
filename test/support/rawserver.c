// SPDX-License-Identifier: Apache-2.0
#include "support/rawserver.h"

#include "support/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS_MAX 64
#define REQUEST_BYTES	4096

struct rawserver {
	const struct rawserver_answer *script;
	size_t n_script;
	int listener;
	pthread_t thread;
	char url[64];
	atomic_bool ending;
	atomic_size_t n_requests;
	char *requests[CONNECTIONS_MAX];
	int held[CONNECTIONS_MAX];
	size_t n_held;
};

static void read_request(struct rawserver *server, int fd)
{
	char bytes[REQUEST_BYTES + 1];
	size_t n = 0;

	while (n < REQUEST_BYTES) {
		ssize_t more = recv(fd, bytes + n, REQUEST_BYTES - n, 0);

		if (more <= 0)
			return;
		n += (size_t)more;
		bytes[n] = '\0';
		if (strstr(bytes, "\r\n\r\n"))
			break;
	}
	bytes[strcspn(bytes, "\r\n")] = '\0';
	assert_true(server->n_requests < CONNECTIONS_MAX);
	server->requests[server->n_requests] = strdup(bytes);
	server->n_requests++;
}

/* The peer may already be gone; no error. */
static void send_bytes(struct rawserver *server, int fd, const struct rawserver_answer *answer)
{
	size_t n = answer->n ? answer->n : strlen(answer->bytes), at = 0;

	while (at < n && !server->ending) {
		ssize_t sent =
			send(fd, answer->bytes + at, answer->slowly ? 1 : n - at, MSG_NOSIGNAL);

		if (sent <= 0)
			return;
		at += (size_t)sent;
		if (answer->slowly)
			usleep(1000);
	}
}

static void end(struct rawserver *server, int fd, enum rawserver_end how)
{
	static const struct linger at_once = {.l_onoff = 1};

	if (how == RAWSERVER_HOLD && server->n_held < CONNECTIONS_MAX) {
		server->held[server->n_held++] = fd;
		return;
	}
	if (how == RAWSERVER_RESET)
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(fd);
}

static void *serve(void *ctx)
{
	struct rawserver *server = ctx;

	for (size_t i = 0;; i++) {
		const struct rawserver_answer *answer =
			&server->script[i < server->n_script ? i : server->n_script - 1];
		int fd = accept(server->listener, NULL, NULL);

		if (fd < 0)
			return NULL;
		read_request(server, fd);
		send_bytes(server, fd, answer);
		end(server, fd, answer->end);
	}
}

struct rawserver *rawserver_new(const struct rawserver_answer *script, size_t n)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rawserver *server = calloc(1, sizeof(*server));
	socklen_t len = sizeof(address);

	server->script = script;
	server->n_script = n;
	server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(server->listener >= 0);
	assert_int_equal(bind(server->listener, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(server->listener, 16), 0);
	assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &len), 0);
	snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%d", ntohs(address.sin_port));
	assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
	return server;
}

void rawserver_free(struct rawserver *server)
{
	if (!server)
		return;
	server->ending = true;
	shutdown(server->listener, SHUT_RDWR);
	pthread_join(server->thread, NULL);
	close(server->listener);
	for (size_t i = 0; i < server->n_held; i++)
		close(server->held[i]);
	for (size_t i = 0; i < server->n_requests; i++)
		free(server->requests[i]);
	free(server);
}

const char *rawserver_url(const struct rawserver *server)
{
	return server->url;
}

const char *rawserver_request(struct rawserver *server, size_t i)
{
	return i < server->n_requests ? server->requests[i] : NULL;
}
