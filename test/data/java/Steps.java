// SPDX-License-Identifier: Apache-2.0
// A cycle of known calls, for ever. test/unit/bpf/test_walkruntime.c steps through it and has the list of its stacks; comments
// name the lines of the calls, as caller > callee.

import java.util.Arrays;
import java.util.Comparator;

public class Steps {
	static class Order implements Comparator<Object> {
		public int compare(Object a, Object b) {
			return leaf(4); // compare > leaf
		}
	}

	static class Fault extends RuntimeException {
		Fault() {
			super("fault", null, false, false);
		}
	}

	static final Object[] TWO = {1, 2};
	static final Order ORDER = new Order();
	static final Fault FAULT = new Fault();
	static int sink;
	int x;

	Steps() {
		x = leaf(3); // <init> > leaf
	}

	static int leaf(int x) {
		return x * 31 + 7;
	}

	static void thrower() {
		sink = leaf(1); // thrower > leaf
		throw FAULT;
	}

	static long wide(int n, long a, long b, long c, long d, long e, long f) {
		return n + leaf(5) + a + b + c + d + e + f; // wide > leaf
	}

	static void cycle() {
		sink += leaf(0); // cycle > leaf
		Arrays.sort(TWO, ORDER); // cycle > compare
		try {
			thrower(); // cycle > thrower
		} catch (Fault e) {
			sink++;
		}
		sink += wide(1, 2, 3, 4, 5, 6, sink); // cycle > wide
		sink += new Steps().x; // cycle > <init>
	}

	static void run(long turns) {
		for (; turns != 0; turns--)
			cycle(); // run > cycle
	}

	public static void main(String[] args) {
		run(20000);
		System.out.println("ready");
		run(1L << 60);
	}
}
