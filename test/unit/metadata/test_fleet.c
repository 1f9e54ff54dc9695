// SPDX-License-Identifier: Apache-2.0
/*
 * A hundred nodes and an API server that goes away: the requests before, during and after.
 * docs/design/metadata.md computes the load of a large cluster from these counts.
 */
#include "support/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/http.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "metadata/apiserver.h"
#include "metadata/pods.h"
#include "support/tree.h"
#include "support/until.h"

#define NODES		100
#define CONNECTIONS_MAX 1024
#define REQUEST_BYTES	2048
#define LIST(version)                                                        \
	"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" version \
	"\"},\"items\":[{\"metadata\":"                                      \
	"{\"uid\":\"u\",\"namespace\":\"s\",\"name\":\"n\"}}]}"

struct fleet;

struct connection {
	struct fleet *fleet;
	struct loop_source *source;
	int fd;
	bool watches;
	char bytes[REQUEST_BYTES];
	size_t n;
};

/* @forgets: the server has lost its earlier versions. */
struct fleet {
	struct loop *loop;
	struct http *http;
	struct tree folder;
	char token_file[96];
	char url[64];
	struct apiserver *nodes[NODES];
	struct pods *pods[NODES];

	int listener;
	struct loop_source *accepting;
	struct sockaddr_in address;
	struct connection connections[CONNECTIONS_MAX];
	size_t n_connections;
	bool forgets;
	size_t n_lists;
	size_t n_watches;
	size_t n_gone;
	size_t n_failed; /* failed requests, counted by the nodes */
};

/* ---------------------------------------------------------------- the server */

static void hang_up(struct connection *c)
{
	loop_remove(c->source);
	close(c->fd);
	c->fd = -1;
	c->watches = false;
}

static void reply(const struct connection *c, const char *head, const char *body)
{
	char text[1024];
	int n = snprintf(text, sizeof(text), "HTTP/1.1 %s\r\n\r\n%s", head, body);

	assert_int_equal(send(c->fd, text, (size_t)n, MSG_NOSIGNAL), n);
}

static void answer(struct connection *c)
{
	struct fleet *f = c->fleet;
	const char *list = f->forgets ? LIST("9") : LIST("5");
	char head[64];

	if (!strstr(c->bytes, "watch=1")) {
		f->n_lists++;
		snprintf(head, sizeof(head), "200 OK\r\nContent-Length: %zu", strlen(list));
		reply(c, head, list);
	} else if (f->forgets && strstr(c->bytes, "resourceVersion=5&")) {
		f->n_gone++;
		reply(c, "410 Gone\r\nContent-Length: 0", "");
	} else {
		f->n_watches++;
		c->watches = true;
		reply(c, "200 OK\r\nTransfer-Encoding: chunked", "");
	}
	c->n = 0;
}

static void on_bytes(void *ctx, int fd, uint32_t events)
{
	struct connection *c = ctx;
	ssize_t n = recv(fd, c->bytes + c->n, REQUEST_BYTES - 1 - c->n, MSG_DONTWAIT);

	(void)events;
	if (n <= 0) {
		hang_up(c);
		return;
	}
	c->n += (size_t)n;
	c->bytes[c->n] = '\0';
	if (strstr(c->bytes, "\r\n\r\n"))
		answer(c);
}

static void on_connection(void *ctx, int listener, uint32_t events)
{
	struct fleet *f = ctx;
	struct connection *c = &f->connections[f->n_connections];

	(void)events;
	assert_true(f->n_connections++ < CONNECTIONS_MAX);
	*c = (struct connection){.fleet = f};
	c->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(c->fd >= 0);
	assert_int_equal(loop_add_fd(f->loop, c->fd, EPOLLIN, on_bytes, c, &c->source), 0);
}

static void server_start(struct fleet *f)
{
	socklen_t len = sizeof(f->address);
	const int on = 1;

	f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(f->listener >= 0);
	assert_int_equal(setsockopt(f->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	assert_int_equal(bind(f->listener, (struct sockaddr *)&f->address, len), 0);
	assert_int_equal(listen(f->listener, 256), 0);
	assert_int_equal(getsockname(f->listener, (struct sockaddr *)&f->address, &len), 0);
	assert_int_equal(
		loop_add_fd(f->loop, f->listener, EPOLLIN, on_connection, f, &f->accepting), 0);
}

static void server_stop(struct fleet *f)
{
	loop_remove(f->accepting);
	close(f->listener);
	for (size_t i = 0; i < f->n_connections; i++)
		if (f->connections[i].fd >= 0)
			hang_up(&f->connections[i]);
}

/* ---------------------------------------------------------------- the nodes */

static void on_reply(void *ctx, const struct podclient_reply *r)
{
	struct fleet *f = ctx;

	f->n_failed += r->outcome != PODCLIENT_OK;
}

static int setup(void **state)
{
	struct fleet *f = calloc(1, sizeof(*f));

	unsetenv("http_proxy");
	unsetenv("all_proxy");
	tree_init(&f->folder);
	tree_write(f->folder.fd, "token", "secret");
	snprintf(f->token_file, sizeof(f->token_file), "%s/token", f->folder.path);
	f->address = (struct sockaddr_in){.sin_family = AF_INET,
					  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_int_equal(loop_new(&f->loop), 0);
	assert_int_equal(http_new(f->loop, &f->http), 0);
	server_start(f);
	snprintf(f->url, sizeof(f->url), "http://127.0.0.1:%d", ntohs(f->address.sin_port));
	for (int i = 0; i < NODES; i++) {
		struct podclient_opts opts = {
			.http = f->http, .url = f->url, .token_file = f->token_file};

		assert_int_equal(pods_new(&f->pods[i]), 0);
		opts.pods = f->pods[i];
		assert_int_equal(apiserver_new(f->loop, &opts, "n", on_reply, f, &f->nodes[i]), 0);
	}
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fleet *f = *state;

	for (int i = 0; i < NODES; i++) {
		apiserver_free(f->nodes[i]);
		pods_free(f->pods[i]);
	}
	server_stop(f);
	http_free(f->http);
	loop_free(f->loop);
	tree_deinit(&f->folder);
	free(f);
	return 0;
}

static bool all_watch(void *ctx)
{
	const struct fleet *f = ctx;
	size_t n = 0;

	for (size_t i = 0; i < f->n_connections; i++)
		n += f->connections[i].watches;
	return n == NODES;
}

static bool all_failed(void *ctx)
{
	return ((struct fleet *)ctx)->n_failed >= NODES;
}

/* Each node makes a list and a watch; after an outage a watch from the last version. */
static void outage(void **state)
{
	struct fleet *f = *state;

	loop_until(f->loop, all_watch, f);
	assert_int_equal(f->n_lists, NODES);
	assert_int_equal(f->n_watches, NODES);
	assert_int_equal(f->n_failed, 0);
	server_stop(f);
	loop_until(f->loop, all_failed, f);
	server_start(f);
	loop_until(f->loop, all_watch, f);
	assert_int_equal(f->n_lists, NODES);
	assert_int_equal(f->n_watches, 2 * NODES);
	for (int i = 0; i < NODES; i++)
		assert_int_equal(pods_count(f->pods[i]), 1);
}

/* After a server has lost its versions, each node lists once, and not again. */
static void restart_without_memory(void **state)
{
	struct fleet *f = *state;

	loop_until(f->loop, all_watch, f);
	server_stop(f);
	f->forgets = true;
	server_start(f);
	loop_until(f->loop, all_watch, f);
	assert_int_equal(f->n_gone, NODES);
	assert_int_equal(f->n_lists, 2 * NODES);
	assert_int_equal(f->n_watches, 2 * NODES);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(outage), TEST(restart_without_memory)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
