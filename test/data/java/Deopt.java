// SPDX-License-Identifier: Apache-2.0
// So many seconds in inner(), which outer() calls for main(). Compiled code of outer() knows one class of shapes. inner() loads
// another one by name, for the verifier would load it earlier. From then on, the frame of outer() is one of code that is not valid
// any more. Each turn has its own classes.

import java.net.URL;
import java.net.URLClassLoader;
import java.util.function.LongUnaryOperator;

public class Deopt {
	static class Shape {
		long area(long x) {
			return x + 1;
		}
	}

	static class Square extends Shape {
		long area(long x) {
			return x * x;
		}
	}

	public static class Turn implements LongUnaryOperator {
		static Shape shape = new Shape();

		static long inner(long x) {
			try {
				shape = (Shape) Class.forName("Deopt$Square").getDeclaredConstructor().newInstance();
			} catch (ReflectiveOperationException e) {
				throw new AssertionError(e);
			}
			for (int i = 0; i < 2000000; i++)
				x = x * 31 + i;
			return x;
		}

		static long outer(long x) {
			return inner(shape.area(x)) + shape.area(x);
		}

		public long applyAsLong(long x) {
			return outer(x);
		}
	}

	static volatile long sink;

	public static void main(String[] args) throws Exception {
		long end = System.nanoTime() + Long.parseLong(args[0]) * 1000000000L;
		URL[] here = {Deopt.class.getProtectionDomain().getCodeSource().getLocation()};

		while (System.nanoTime() < end)
			try (URLClassLoader loader = new URLClassLoader(here, null)) {
				Class<?> turn = loader.loadClass("Deopt$Turn");

				sink = ((LongUnaryOperator) turn.getConstructor().newInstance()).applyAsLong(sink);
			}
	}
}
