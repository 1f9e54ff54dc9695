/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_LISTEN_H
#define PODPROF_SERVER_LISTEN_H

#include <stdbool.h>
#include <sys/socket.h>

/* "127.0.0.1:7070" or "[::1]:7070". Names are not resolved, so the flag itself shows the address.
 * Port 0 lets the kernel choose. */

struct listen_address {
	struct sockaddr_storage addr;
	socklen_t len;
};

/* "[ffff:...:255.255.255.255]:65535" with its NUL. Reached: wrong usage. */
#define LISTEN_TEXT_MAX 64

bool listen_parse(const char *s, struct listen_address *ret) __attribute__((warn_unused_result));
/* Only this machine's own processes can connect. */
bool listen_is_loopback(const struct listen_address *a);
/* A listening socket, non-blocking. -errno. */
int listen_open(const struct listen_address *a, int *ret_fd);
/* The remedy for this error, for the end of its message. */
const char *listen_hint(int error);
/* The actual address of @fd; "" for a socket that does not listen. */
void listen_text(int fd, char ret[LISTEN_TEXT_MAX]);

#endif
