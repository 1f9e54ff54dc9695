/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_TLS_FRONT_H
#define PODPROF_SERVER_TLS_FRONT_H

/*
 * TLS in front of the HTTP server: a thread accepts connections, does the handshakes, and passes
 * plain bytes between each client and the server over a pair of sockets. The server reads and
 * writes its end like a client's socket, on the loop. A flood of handshakes therefore takes CPU
 * time of this thread alone, and the thread keeps to a share of one CPU.
 */

#include <stdint.h>
#include <sys/socket.h>

#include <openssl/types.h>

#include "base/nsec.h"
#include "server/web_config.h"

struct loop;
struct metric_sink;
struct tls_front;

/* Listening sockets: the addresses of the server. Reached: - */
#define TLS_LISTENERS_MAX    2
/* Connections in their handshake, some 50 KiB each. Reached: a new one takes the place of the one
 * that has owed bytes for the longest time, or is closed;
 * `podprof_http_tls_connections_total{outcome="full"}`. */
#define TLS_HANDSHAKES_MAX   64
/* The same of one client's address. Reached: the same, `{outcome="per_address"}`. */
#define TLS_PER_ADDRESS_MAX  16
/* Nanoseconds for a handshake. Reached: `podprof_http_tls_connections_total{outcome="expired"}`. */
#define TLS_HANDSHAKE_MAX_NS (10 * NSEC_PER_SEC)
/* Connections whose handshake is done, and which the loop has not taken yet. Reached: a new one is
 * closed, `podprof_http_tls_connections_total{outcome="full"}`. */
#define TLS_READY_MAX	     64
/* Connections that the server has closed and whose client still reads. Reached: the oldest is
 * closed. */
#define TLS_CLOSING_MAX	     64
/* Nanoseconds for these. Reached: closed. */
#define TLS_CLOSING_MAX_NS   (30 * NSEC_PER_SEC)
/* TLS gets one part of so many of one CPU, once TLS_SHARE_BURST_NS of CPU time are used up: 250
 * handshakes a second of 1 ms each. Reached: handshakes and answers take longer. */
#define TLS_SHARE_PARTS	     4
#define TLS_SHARE_BURST_NS   NSEC_PER_SEC
/* Nanoseconds of a pause while the share is in debt. Reached: the thread takes more than its share.
 */
#define TLS_PAUSE_MAX_NS     (100 * NSEC_PER_MSEC)

/* Owns both. */
struct tls_settings {
	SSL_CTX *ctx;
	struct web_list sans; /* names of client_allowed_sans */
};
/* All zeros afterwards. */
void tls_settings_deinit(struct tls_settings *s);

struct tls_front_opts {
	struct loop *loop;
	uint64_t handshake_max_ns; /* 0: TLS_HANDSHAKE_MAX_NS */
	uint64_t closing_max_ns;   /* 0: TLS_CLOSING_MAX_NS */
	uint64_t owing_ns;	   /* before a new client may take the place; 0: 200 ms */
};

/* A connection after its handshake: @fd, taken, has the plain bytes. On the loop. */
typedef void (*tls_accept_fn)(void *ctx, int fd, const struct sockaddr_storage *addr);

/* Starts the thread. @settings are taken on success. 0 or -errno. */
int tls_front_new(const struct tls_front_opts *opts, struct tls_settings *settings,
		  struct tls_front **ret);
/* Accept connections of a listening socket, which is taken on success. 0 or -errno. */
int tls_front_listen(struct tls_front *f, int fd, tls_accept_fn accept, void *ctx);
/* Use other settings for new connections. @settings are taken. */
void tls_front_set(struct tls_front *f, struct tls_settings *settings);
/* Ends the thread and all connections. No accept function is called any more. NULL is allowed. */
void tls_front_free(struct tls_front *f);
/* A metric_collect_fn: podprof_http_tls_connections. */
void tls_front_collect(void *ctx, struct metric_sink *sink);

#endif
