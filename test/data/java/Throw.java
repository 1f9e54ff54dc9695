// SPDX-License-Identifier: Apache-2.0
// So many seconds in inner(), which outer() calls for main(), and which an exception leaves through middle().

public class Throw {
	static class Fault extends RuntimeException {
		Fault() {
			super("fault", null, false, false);
		}
	}

	static final Fault FAULT = new Fault();
	static volatile long sink;

	static long inner(long x) {
		for (int i = 0; i < 2000; i++)
			x = x * 31 + i;
		sink = x;
		throw FAULT;
	}

	static long middle(long x) {
		return inner(x) + 1;
	}

	static long outer(long x) {
		try {
			return middle(x);
		} catch (Fault e) {
			return x + 1;
		}
	}

	public static void main(String[] args) {
		long end = System.nanoTime() + Long.parseLong(args[0]) * 1000000000L;

		while (System.nanoTime() < end)
			sink = outer(sink);
	}
}
