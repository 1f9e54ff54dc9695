// SPDX-License-Identifier: Apache-2.0
// Sleeps for so many seconds in inner(), which outer() calls for main().

public class Wait {
	static volatile long sink;

	static long inner(long x) throws InterruptedException {
		Thread.sleep(20);
		return x + 1;
	}

	static long outer(long x) throws InterruptedException {
		return inner(x) + 1;
	}

	public static void main(String[] args) throws InterruptedException {
		long end = System.nanoTime() + Long.parseLong(args[0]) * 1000000000L;

		while (System.nanoTime() < end)
			sink = outer(sink);
	}
}
