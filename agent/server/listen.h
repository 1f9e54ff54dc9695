/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_LISTEN_H
#define PODPROF_SERVER_LISTEN_H

#include <stdbool.h>
#include <sys/socket.h>

/* "127.0.0.1:7070" or "[::1]:7070". "[::]:7070" is all addresses, IPv4's too. Names are not
 * resolved, so the flag itself shows the address. Port 0 lets the kernel choose. */

struct listen_address {
	struct sockaddr_storage addr;
	socklen_t len;
};

/* "[ffff:...:255.255.255.255]:65535" with its NUL. Reached: wrong usage. */
#define LISTEN_TEXT_MAX 64

/* False for any other form. */
bool listen_parse(const char *s, struct listen_address *ret) __attribute__((warn_unused_result));
/* Only this machine's own processes can connect. */
bool listen_is_loopback(const struct listen_address *a);

/**
 * struct listen_plan - the server's addresses
 * @metrics: for metrics and health
 * @ui:      for everything
 * @is_one:  they are the same
 */
struct listen_plan {
	struct listen_address metrics;
	struct listen_address ui;
	bool is_one;
};

enum listen_outcome {
	LISTEN_OK = 0,
	LISTEN_BAD,    /* @listen is no address */
	LISTEN_BAD_UI, /* @ui_listen is none */
};

/* Without @ui_listen (NULL) the page stays on loopback: at @listen if that is on loopback, else on
 * 127.0.0.1 at the next port. 0 or a listen_outcome. */
int listen_plan(const char *listen, const char *ui_listen, struct listen_plan *ret);
/* A listening socket, non-blocking, owned by the caller. "[::]" without IPv6 in the kernel is
 * "0.0.0.0". 0 or -errno. */
int listen_open(const struct listen_address *a, int *ret_fd);
/* Whether two addresses are equal, whatever their ports. */
bool listen_same_host(const struct sockaddr *a, const struct sockaddr *b);
/* The remedy for this error, for the end of its message. */
const char *listen_hint(int error);
/* The same, for an address of @plan, which may be in the way of the other one. */
const char *listen_plan_hint(const struct listen_plan *plan, int error);
/* As listen_parse() takes it. */
void listen_name(const struct listen_address *a, char ret[LISTEN_TEXT_MAX]);
/* The actual address of @fd; "" for a socket that does not listen. */
void listen_text(int fd, char ret[LISTEN_TEXT_MAX]);

#endif
