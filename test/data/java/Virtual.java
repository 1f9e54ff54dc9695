// SPDX-License-Identifier: Apache-2.0
// Calls of known functions in a virtual thread that waits in the innermost one, so that its frames are moved to the
// heap and come back one after the other. Before 21, it is another thread.

import java.util.concurrent.locks.LockSupport;

public class Virtual {
	static final int DEPTH = 60;
	static volatile long sink;

	static long burn(long x) {
		for (int i = 0; i < 20000; i++)
			x = x * 31 + i;
		return x;
	}

	static long leaf(long x) {
		LockSupport.parkNanos(1000000);
		return burn(x);
	}

	static long deep(int n, long x, long a, long b, long c, long d, double e, long f, long g) {
		if (n == 0)
			return leaf(x);
		if (n % 4 == 0)
			x = burn(x);
		x = deep(n - 1, x + n, a, b, c, d, e, f, g) + a;
		return n % 4 == 0 ? burn(x) + g : x + f;
	}

	static void turns() {
		while (true)
			sink = deep(DEPTH - 1, sink, 1, 2, 3, 4, 5, 6, 7);
	}

	public static void main(String[] args) throws Exception {
		Runnable turns = Virtual::turns;

		try {
			Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, turns);
		} catch (NoSuchMethodException e) {
			new Thread(turns).start();
		}
		System.out.println("ready");
		Thread.sleep(Long.MAX_VALUE);
	}
}
