// SPDX-License-Identifier: Apache-2.0
// C++ without frame pointers: 31 functions deep with frames of different sizes. See workloads.py.
#include <ctime>
#include <cstdint>
#include <cstdlib>

static volatile uint64_t sink;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return static_cast<uint64_t>(ts.tv_sec) * 1000000000 + static_cast<uint64_t>(ts.tv_nsec);
}

template <int Depth> struct Level {
	[[gnu::noinline]] static uint64_t down(uint64_t until)
	{
		volatile char frame[16 + Depth * 8];

		frame[until % sizeof(frame)] = Depth;
		return Level<Depth - 1>::down(until) + static_cast<uint64_t>(frame[until % sizeof(frame)]);
	}
};

template <> struct Level<0> {
	[[gnu::noinline]] static uint64_t down(uint64_t until)
	{
		uint64_t x = until;

		while (now_ns(CLOCK_PROCESS_CPUTIME_ID) < until)
			for (int i = 0; i < 20000; i++)
				x = x * 6364136223846793005u + 1442695040888963407u;
		return x;
	}
};

int main(int argc, char **argv)
{
	const double share = argc > 1 ? atof(argv[1]) : 0.25;
	const uint64_t period_ns = 20000000;
	uint64_t next = now_ns(CLOCK_MONOTONIC);

	for (;;) {
		struct timespec at;

		sink = sink + Level<30>::down(now_ns(CLOCK_PROCESS_CPUTIME_ID) +
					      static_cast<uint64_t>(share * period_ns));
		next += period_ns;
		at.tv_sec = static_cast<time_t>(next / 1000000000);
		at.tv_nsec = static_cast<long>(next % 1000000000);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
	}
}
