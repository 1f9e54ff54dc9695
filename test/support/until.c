// SPDX-License-Identifier: Apache-2.0
#include "support/until.h"

#include "support/test.h"

#include "base/loop.h"
#include "base/nsec.h"

struct until {
	struct loop *loop;
	bool (*done)(void *ctx);
	void *ctx;
	uint64_t deadline_ns;
};

static void until_check(void *ctx)
{
	struct until *until = ctx;

	if (until->done(until->ctx) || nsec_monotonic() > until->deadline_ns)
		loop_stop(until->loop);
}

void loop_until(struct loop *loop, bool (*done)(void *ctx), void *ctx)
{
	struct until until = {loop, done, ctx, nsec_monotonic() + UNTIL_SECONDS * NSEC_PER_SEC};
	struct loop_source *timer;

	assert_int_equal(loop_add_timer(loop, until_check, &until, &timer), 0);
	assert_int_equal(loop_arm(timer, 0, 2 * NSEC_PER_MSEC), 0);
	assert_int_equal(loop_run(loop), 0);
	loop_remove(timer);
	if (!done(ctx))
		fail_msg("not done after %d s", UNTIL_SECONDS);
}
