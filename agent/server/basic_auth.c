// SPDX-License-Identifier: Apache-2.0
/*
 * RFC 7617: "Authorization: Basic " and base64 of "name:password".
 *
 * Each pair of name and password with an unknown result costs one bcrypt, also for an unknown name,
 * so the time of an answer does not tell which names exist. The worker computes one at a time and
 * sleeps while its share of CPU time is in debt. A flood of wrong passwords fills the queue: the
 * ceiling for an address keeps room for others, and remembered passwords need no place in it.
 */
#include "server/basic_auth.h"

#include <crypt.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/cpu_share.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/secret.h"
#include "base/strview.h"
#include "base/worker.h"
#include "server/httpd.h"

#define TAG_BYTES 32
#define NAP_NS	  (20 * NSEC_PER_MSEC)
#define RETRY_S	  5

enum auth_outcome {
	AUTH_OK,      /* computed now */
	AUTH_KNOWN,   /* remembered as right */
	AUTH_REFUSED, /* wrong, computed or remembered */
	AUTH_ABSENT,  /* no name and password */
	AUTH_BUSY,
	AUTH_GONE, /* the client left first */
	AUTH_OUTCOME_MAX,
};

/* A keyed hash of a name, a password and the stored hash. */
struct tag {
	unsigned char bytes[TAG_BYTES];
};

/* A ring; zeros are no tag that occurs. */
struct memory {
	struct tag tags[BASIC_AUTH_REMEMBERED_MAX];
	size_t next;
};

struct basic_auth {
	struct worker *worker;
	struct cpu_share share;
	struct web_user users[WEB_USERS_MAX];
	size_t n_users;
	char fake[WEB_HASH_LEN + 1]; /* for unknown names */
	unsigned char key[TAG_BYTES];
	struct memory right, wrong;
	struct check *checks; /* waiting or running */
	_Atomic bool is_ending;
	uint64_t outcomes[AUTH_OUTCOME_MAX];
};

/* One bcrypt. */
struct check {
	struct work work;
	struct check *prev, *next;
	struct basic_auth *auth;
	struct httpd_later *later;
	struct sockaddr_storage addr;
	struct tag tag;
	char password[BASIC_AUTH_BYTES_MAX];
	char hash[WEB_HASH_LEN + 1];
	bool is_known_name;
	uint64_t since_ns;
	_Atomic bool is_abandoned;
	bool is_late; /* not computed */
	bool is_right;
};

/* ---------------------------------------------------------------- the header */

/* Decodes base64 with its padding, up to a NUL behind. False for anything else. */
static bool decode(struct strview text, char *to, size_t size, size_t *ret_n)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const size_t n = strview_len(&text);
	unsigned char bytes[(BASIC_AUTH_BYTES_MAX / 3 + 1) * 4];
	size_t padding;
	int got;

	if (!n || n % 4 || n / 4 * 3 > sizeof(bytes))
		return false;
	padding = text.p[n - 1] == '=' ? 1 + (text.p[n - 2] == '=') : 0;
	/* EVP_DecodeBlock() is generous with blanks and other characters */
	if (strspn(text.p, alphabet) != n - padding)
		return false;
	got = EVP_DecodeBlock(bytes, (const unsigned char *)text.p, (int)n);
	if (got < 0 || (size_t)got - padding >= size)
		return false;
	*ret_n = (size_t)got - padding;
	memcpy(to, bytes, *ret_n);
	to[*ret_n] = '\0';
	OPENSSL_cleanse(bytes, sizeof(bytes));
	return true;
}

bool basic_credentials_parse(const char *header, struct basic_credentials *ret)
{
	struct strview text = strview_of(header ? header : "");
	char both[BASIC_AUTH_BYTES_MAX];
	char *colon;
	size_t n;

	if (strview_len(&text) < 6 || strncasecmp(text.p, "Basic ", 6) != 0)
		return false;
	text.p += 6;
	strview_skip_blanks(&text);
	if (!decode(text, both, sizeof(both), &n))
		return false;
	colon = strlen(both) == n ? strchr(both, ':') : NULL;
	if (colon) {
		*colon = '\0';
		memcpy(ret->name, both, (size_t)(colon - both) + 1);
		memcpy(ret->password, colon + 1, n - (size_t)(colon - both));
	}
	OPENSSL_cleanse(both, sizeof(both));
	return colon;
}

/* ---------------------------------------------------------------- memory */

/* Each part with its length before it. */
static bool tag_of(const struct basic_auth *a, const struct basic_credentials *c, const char *hash,
		   struct tag *ret)
{
	const char *const parts[] = {c->name, c->password, hash};
	unsigned char text[3 * (sizeof(uint32_t) + BASIC_AUTH_BYTES_MAX)];
	unsigned int len = TAG_BYTES;
	size_t n = 0;
	bool ok;

	for (size_t i = 0; i < array_size(parts); i++) {
		uint32_t part = (uint32_t)strlen(parts[i]);

		memcpy(text + n, &part, sizeof(part));
		memcpy(text + n + sizeof(part), parts[i], part);
		n += sizeof(part) + part;
	}
	ok = HMAC(EVP_sha256(), a->key, sizeof(a->key), text, n, ret->bytes, &len);
	OPENSSL_cleanse(text, sizeof(text));
	return ok;
}

static bool remembers(const struct memory *m, const struct tag *tag)
{
	for (size_t i = 0; i < array_size(m->tags); i++)
		if (CRYPTO_memcmp(m->tags[i].bytes, tag->bytes, TAG_BYTES) == 0)
			return true;
	return false;
}

static void remember(struct memory *m, const struct tag *tag)
{
	m->tags[m->next] = *tag;
	m->next = (m->next + 1) % array_size(m->tags);
}

/* ---------------------------------------------------------------- on the worker */

/* Whether the check still has a use, once the share of CPU time allows for it. */
static bool check_may_run(struct check *check)
{
	struct basic_auth *a = check->auth;
	uint64_t now_ns, wait_ns;

	for (;;) {
		now_ns = nsec_monotonic();
		if (atomic_load(&check->is_abandoned) || atomic_load(&a->is_ending) ||
		    now_ns - check->since_ns > BASIC_AUTH_AGE_MAX_NS)
			return false;
		wait_ns = cpu_share_wait_ns(&a->share, now_ns);
		if (!wait_ns)
			return true;
		wait_ns = wait_ns < NAP_NS ? wait_ns : NAP_NS;
		(void)nanosleep(&(struct timespec){.tv_nsec = (long)wait_ns}, NULL);
	}
}

static void check_run(struct work *work)
{
	struct check *check = container_of(work, struct check, work);
	_cleanup_(freep) struct crypt_data *data = NULL;
	uint64_t begun_ns = cpu_share_thread_ns();
	const char *hash;

	check->is_late = !check_may_run(check);
	if (check->is_late)
		return;
	data = calloc(1, sizeof(*data));
	hash = data ? crypt_r(check->password, check->hash, data) : NULL;
	check->is_late = !hash;
	check->is_right = hash && check->is_known_name && strlen(hash) == WEB_HASH_LEN &&
			  CRYPTO_memcmp(hash, check->hash, WEB_HASH_LEN) == 0;
	if (data)
		OPENSSL_cleanse(data, sizeof(*data));
	cpu_share_charge(&check->auth->share, nsec_monotonic(), cpu_share_thread_ns() - begun_ns);
}

/* ---------------------------------------------------------------- answers */

static void refuse(struct httpd_response *ret)
{
	httpd_fail(ret, 401, "a name and a password are needed");
	ret->is_challenge = true;
	ret->is_essential = true;
}

static void put_off(struct httpd_response *ret)
{
	httpd_fail(ret, 503, "too many new passwords to check, come again later");
	ret->retry_after_s = RETRY_S;
	ret->is_essential = true;
}

static void check_free(struct check *check)
{
	OPENSSL_cleanse(check, sizeof(*check));
	free(check);
}

static enum auth_outcome check_outcome(const struct check *check)
{
	if (atomic_load(&check->is_abandoned))
		return AUTH_GONE;
	if (check->work.cancelled || check->is_late)
		return AUTH_BUSY;
	return check->is_right ? AUTH_OK : AUTH_REFUSED;
}

static void check_done(struct work *work)
{
	struct check *check = container_of(work, struct check, work);
	struct httpd_response response = {.body = BUF_INIT(HTTPD_BODY_MAX)};
	const enum auth_outcome outcome = check_outcome(check);
	struct basic_auth *a = check->auth;

	DL_DELETE(a->checks, check);
	a->outcomes[outcome]++;
	if (!work->cancelled && !check->is_late)
		remember(check->is_right ? &a->right : &a->wrong, &check->tag);
	if (outcome == AUTH_OK) {
		httpd_later_allow(check->later);
	} else {
		if (outcome == AUTH_REFUSED)
			refuse(&response);
		else
			put_off(&response);
		httpd_later_answer(check->later, &response);
	}
	check_free(check);
}

static void on_gone(void *ctx)
{
	struct check *check = ctx;

	atomic_store(&check->is_abandoned, true);
}

/* ---------------------------------------------------------------- requests */

static const struct web_user *find(const struct basic_auth *a, const char *name)
{
	for (size_t i = 0; i < a->n_users; i++)
		if (strcmp(a->users[i].name, name) == 0)
			return &a->users[i];
	return NULL;
}

static bool has_place(const struct basic_auth *a, const struct sockaddr_storage *addr)
{
	const struct check *check;
	size_t n = 0, n_same = 0;

	DL_FOREACH(a->checks, check)
	{
		n++;
		n_same += listen_same_host((const struct sockaddr *)&check->addr,
					   (const struct sockaddr *)addr);
	}
	return n <= BASIC_AUTH_QUEUE_MAX && n_same < BASIC_AUTH_PER_ADDRESS;
}

static bool begin(struct basic_auth *a, const struct httpd_request *request,
		  const struct basic_credentials *c, const struct web_user *user,
		  const struct tag *tag)
{
	struct check *check = NULL;
	struct sockaddr_storage addr;

	httpd_client(request, &addr);
	if (has_place(a, &addr))
		check = calloc(1, sizeof(*check));
	if (check)
		check->later = httpd_later(request);
	if (!check || !check->later) {
		free(check);
		return false;
	}
	check->work = (struct work){.run = check_run, .done = check_done};
	check->auth = a;
	check->addr = addr;
	check->tag = *tag;
	check->is_known_name = user;
	check->since_ns = nsec_monotonic();
	memcpy(check->password, c->password, sizeof(check->password));
	memcpy(check->hash, user ? user->hash : a->fake, sizeof(check->hash));
	DL_APPEND(a->checks, check);
	httpd_later_on_gone(check->later, on_gone, check);
	if (worker_submit(a->worker, &check->work)) {
		check->work.cancelled = 1; /* as a check without a place */
		check_done(&check->work);
	}
	return true;
}

/* The outcome now, or AUTH_OUTCOME_MAX: a check is under way. */
static enum auth_outcome ask(struct basic_auth *a, const struct httpd_request *request,
			     const struct basic_credentials *c)
{
	const struct web_user *user = find(a, c->name);
	struct tag tag;

	if (!tag_of(a, c, user ? user->hash : a->fake, &tag))
		return AUTH_BUSY;
	if (remembers(&a->right, &tag))
		return AUTH_KNOWN;
	if (remembers(&a->wrong, &tag))
		return AUTH_REFUSED;
	if (atomic_load(&a->is_ending))
		return AUTH_BUSY;
	return begin(a, request, c, user, &tag) ? AUTH_OUTCOME_MAX : AUTH_BUSY;
}

int basic_auth_check(void *ctx, const struct httpd_request *request, struct httpd_response *ret)
{
	struct basic_auth *a = ctx;
	struct basic_credentials c;
	enum auth_outcome outcome = AUTH_ABSENT;

	if (basic_credentials_parse(httpd_header(request, "Authorization"), &c)) {
		outcome = ask(a, request, &c);
		OPENSSL_cleanse(&c, sizeof(c));
	}
	if (outcome == AUTH_OUTCOME_MAX)
		return HTTPD_GUARD_LATER;
	a->outcomes[outcome]++;
	if (outcome == AUTH_KNOWN)
		return HTTPD_GUARD_ALLOW;
	if (outcome == AUTH_BUSY)
		put_off(ret);
	else
		refuse(ret);
	return HTTPD_GUARD_ANSWER;
}

/* ---------------------------------------------------------------- the whole */

/* As costly as the costliest hash, and of no password. */
static void make_fake(struct basic_auth *a)
{
	const char *cost = "10";

	for (size_t i = 0; i < a->n_users; i++)
		if (i == 0 || strncmp(a->users[i].hash + 4, cost, 2) > 0)
			cost = a->users[i].hash + 4;
	snprintf(a->fake, sizeof(a->fake), "$2y$%.2s$%.53s", cost,
		 "......................................................");
}

static void users_free(struct web_user *users, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(users[i].name);
		secret_forget(users[i].hash);
	}
}

int basic_auth_set(struct basic_auth *a, const struct web_user *users, size_t n)
{
	struct web_user copies[WEB_USERS_MAX];
	bool ok = true;

	for (size_t i = 0; i < n; i++) {
		copies[i].name = strdup(users[i].name);
		copies[i].hash = strdup(users[i].hash);
		ok = ok && copies[i].name && copies[i].hash;
	}
	if (!ok) {
		users_free(copies, n);
		return -ENOMEM;
	}
	users_free(a->users, a->n_users);
	memcpy(a->users, copies, n * sizeof(copies[0]));
	a->n_users = n;
	make_fake(a);
	return 0;
}

int basic_auth_new(struct loop *loop, struct basic_auth **ret)
{
	struct basic_auth *a = calloc(1, sizeof(*a));
	int r = 0;

	if (!a)
		return -ENOMEM;
	a->share = (struct cpu_share){.parts = BASIC_AUTH_PARTS, .burst_ns = BASIC_AUTH_BURST_NS};
	make_fake(a);
	if (RAND_bytes(a->key, sizeof(a->key)) != 1)
		r = -EIO;
	if (!r)
		r = worker_new(loop, "web-auth", BASIC_AUTH_QUEUE_MAX, &a->worker);
	if (r)
		basic_auth_free(a);
	else
		*ret = a;
	return r;
}

void basic_auth_free(struct basic_auth *a)
{
	if (!a)
		return;
	atomic_store(&a->is_ending, true);
	worker_free(a->worker);
	users_free(a->users, a->n_users);
	OPENSSL_cleanse(a->key, sizeof(a->key));
	free(a);
}

void basic_auth_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc checks = {
		"podprof_http_auth", METRIC_COUNTER,
		"HTTP requests by the outcome of basic authentication.", NULL};
	static const char *const names[AUTH_OUTCOME_MAX] = {
		[AUTH_OK] = "ok",	  [AUTH_KNOWN] = "remembered", [AUTH_REFUSED] = "refused",
		[AUTH_ABSENT] = "absent", [AUTH_BUSY] = "busy",	       [AUTH_GONE] = "abandoned",
	};
	const struct basic_auth *a = ctx;

	metric_by_name(sink, &checks, "outcome", a->outcomes, names, AUTH_OUTCOME_MAX);
}
