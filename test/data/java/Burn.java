// SPDX-License-Identifier: Apache-2.0
// So many seconds in inner(), which outer() calls for main().

public class Burn {
	static volatile long sink;

	static long inner(long x) {
		for (int i = 0; i < 20000; i++)
			x = x * 31 + i;
		return x;
	}

	static long outer(long x) {
		return inner(x) + 1;
	}

	public static void main(String[] args) {
		long end = System.nanoTime() + Long.parseLong(args[0]) * 1000000000L;

		while (System.nanoTime() < end)
			sink = outer(sink);
	}
}
