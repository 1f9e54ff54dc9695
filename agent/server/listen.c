// SPDX-License-Identifier: Apache-2.0
#include "server/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strview.h"

/* Connections waiting to be accepted: the loop accepts within milliseconds, and a client that finds
 * the queue full tries again a second later. */
#define LISTEN_BACKLOG 1024

/* Split at the last colon; "[...]" around an IPv6 address. */
static bool split(const char *s, char *host, size_t size, bool *ret_v6, uint16_t *ret_port)
{
	const char *colon = strrchr(s, ':');
	struct strview addr;
	uint64_t port;

	if (!colon || !strview_only_u64(strview_of(colon + 1), 10, &port) || port > UINT16_MAX)
		return false;
	addr = strview_of_bytes(s, (size_t)(colon - s));
	*ret_v6 = strview_char(&addr, '[');
	if (*ret_v6 && !strview_suffix(&addr, "]"))
		return false;
	if (strview_len(&addr) >= size)
		return false;
	snprintf(host, size, "%.*s", (int)strview_len(&addr), addr.p);
	*ret_port = (uint16_t)port;
	return true;
}

bool listen_parse(const char *s, struct listen_address *ret)
{
	struct listen_address a = {0};
	struct sockaddr_in *in = (struct sockaddr_in *)&a.addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&a.addr;
	char host[LISTEN_TEXT_MAX];
	uint16_t port;
	bool v6;

	if (!split(s, host, sizeof(host), &v6, &port))
		return false;
	if (v6) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		a.len = sizeof(*in6);
	} else {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		a.len = sizeof(*in);
	}
	if (inet_pton(v6 ? AF_INET6 : AF_INET, host,
		      v6 ? (void *)&in6->sin6_addr : (void *)&in->sin_addr) != 1)
		return false;
	*ret = a;
	return true;
}

bool listen_is_loopback(const struct listen_address *a)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)&a->addr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&a->addr;

	if (a->addr.ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
	return ntohl(in->sin_addr.s_addr) >> 24 == 127;
}

static uint16_t port_of(const struct listen_address *a)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)&a->addr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&a->addr;

	return ntohs(a->addr.ss_family == AF_INET6 ? in6->sin6_port : in->sin_port);
}

/* 127.0.0.1 and the port after @a's. */
static void loopback_beside(const struct listen_address *a, struct listen_address *ret)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&ret->addr;
	uint16_t port = port_of(a);

	*ret = (struct listen_address){.len = sizeof(*in)};
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (port) /* the kernel chooses for 0 */
		in->sin_port = htons(port == UINT16_MAX ? port - 1 : port + 1);
}

int listen_plan(const char *listen, const char *ui_listen, struct listen_plan *ret)
{
	struct listen_plan plan = {.is_one = false};

	if (!listen_parse(listen, &plan.metrics))
		return LISTEN_BAD;
	if (ui_listen && !listen_parse(ui_listen, &plan.ui))
		return LISTEN_BAD_UI;
	if (!ui_listen && listen_is_loopback(&plan.metrics))
		plan.ui = plan.metrics;
	else if (!ui_listen)
		loopback_beside(&plan.metrics, &plan.ui);
	plan.is_one = memcmp(&plan.metrics.addr, &plan.ui.addr, plan.ui.len) == 0;
	*ret = plan;
	return 0;
}

/* "[::]" */
static bool is_everywhere(const struct listen_address *a)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&a->addr;

	return a->addr.ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr);
}

/* "[::]" or "0.0.0.0" */
static bool is_all(const struct listen_address *a)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)&a->addr;

	return is_everywhere(a) ||
	       (a->addr.ss_family == AF_INET && in->sin_addr.s_addr == htonl(INADDR_ANY));
}

static int open_at(const struct listen_address *a, int *ret_fd)
{
	_cleanup_(close_fdp) int fd =
		socket(a->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int zero = 0, one = 1;

	if (fd < 0)
		return -errno;
	/* the default is net.ipv6.bindv6only */
	if (is_everywhere(a) && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero)) < 0)
		return -errno;
	/* a lingering connection of the last run must not prevent the start */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&a->addr, a->len) < 0)
		return -errno;
	if (listen(fd, LISTEN_BACKLOG) < 0)
		return -errno;
	*ret_fd = take_fd(fd);
	return 0;
}

int listen_open(const struct listen_address *a, int *ret_fd)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&a->addr;
	struct listen_address v4 = {.len = sizeof(struct sockaddr_in)};
	struct sockaddr_in *in = (struct sockaddr_in *)&v4.addr;
	int r = open_at(a, ret_fd);

	/* a kernel without IPv6, or with "ipv6.disable=1" */
	if (r != -EAFNOSUPPORT || !is_everywhere(a))
		return r;
	in->sin_family = AF_INET;
	in->sin_port = in6->sin6_port;
	return open_at(&v4, ret_fd);
}

bool listen_same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET6)
		return memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
			      &((const struct sockaddr_in6 *)b)->sin6_addr,
			      sizeof(struct in6_addr)) == 0;
	return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
	       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
}

const char *listen_hint(int error)
{
	switch (-error) {
	case EADDRINUSE:
		return "another program uses the port: stop this program or choose another port";
	case EADDRNOTAVAIL:
		return "no interface has this address: choose another";
	case EACCES:
		return "ports below 1024 need CAP_NET_BIND_SERVICE: choose another";
	default:
		return "choose another address";
	}
}

const char *listen_plan_hint(const struct listen_plan *plan, int error)
{
	const bool all = is_all(&plan->metrics) || is_all(&plan->ui);

	if (error == -EADDRINUSE && !plan->is_one && all &&
	    port_of(&plan->metrics) == port_of(&plan->ui))
		return "--listen and --ui-listen have the same port: give both the same address, "
		       "or another port";
	return listen_hint(error);
}

void listen_name(const struct listen_address *a, char ret[LISTEN_TEXT_MAX])
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)&a->addr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&a->addr;
	char host[INET6_ADDRSTRLEN] = "";

	ret[0] = '\0';
	if (a->addr.ss_family == AF_INET6) {
		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		snprintf(ret, LISTEN_TEXT_MAX, "[%s]:%u", host, port_of(a));
	} else if (a->addr.ss_family == AF_INET) {
		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		snprintf(ret, LISTEN_TEXT_MAX, "%s:%u", host, port_of(a));
	}
}

void listen_text(int fd, char ret[LISTEN_TEXT_MAX])
{
	struct listen_address a = {.len = sizeof(a.addr)};

	ret[0] = '\0';
	if (getsockname(fd, (struct sockaddr *)&a.addr, &a.len) == 0)
		listen_name(&a, ret);
}
