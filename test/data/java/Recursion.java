// SPDX-License-Identifier: Apache-2.0
// Calls of known functions in known order, for ever: the first argument says what the innermost one does.

public class Recursion {
	interface Step {
		long run(long x);
	}

	static class Named implements Step {
		public long run(long x) {
			return leaf(x) + 1;
		}
	}

	static final int DEPTH = 6;
	static volatile long sink;
	static int turns;
	static boolean sleeps;
	static Step[] steps = {new Named(), x -> leaf(x) + 2};

	static long tiny(long x) {
		return x * 31 + 7;
	}

	static long leaf(long x) {
		if (sleeps)
			rest();
		for (int i = 0; i < turns; i++)
			x = x * 31 + i;
		return tiny(x);
	}

	static void rest() {
		try {
			Thread.sleep(1);
		} catch (InterruptedException e) {
			sleeps = false;
		}
	}

	static long deep(int n, long x, long a, long b, long c, long d, double e, long f) {
		if (n == 0)
			return steps[(int) (x & 1)].run(x);
		return deep(n - 1, x + n, a, b, c, d, e, f) + a;
	}

	static long outer(long x) {
		return deep(DEPTH - 1, x, 1, 2, 3, 4, 5, 6) + 1;
	}

	public static void main(String[] args) {
		sleeps = args[0].equals("sleep");
		turns = args[0].equals("burn") ? 4000 : 1;
		System.out.println("ready");
		while (true)
			sink = outer(sink);
	}
}
