// SPDX-License-Identifier: Apache-2.0
// So many seconds in inner(), which outer() calls for main(): it makes, links and reads objects, with all that a garbage collector
// adds to such code.

public class Heap {
	static class Node {
		Node next;
		long value;

		Node(Node next, long value) {
			this.next = next;
			this.value = value;
		}
	}

	static final Node[] heads = new Node[64];
	static volatile long sink;

	static long inner(long x) {
		for (int i = 0; i < 2000; i++) {
			int at = (int) (x >>> 32 & 63);

			heads[at] = new Node(i % 16 == 0 ? null : heads[at], x);
			for (Node n = heads[i & 63]; n != null; n = n.next)
				x = x * 31 + n.value + 7;
		}
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
