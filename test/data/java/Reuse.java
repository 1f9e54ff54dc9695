// SPDX-License-Identifier: Apache-2.0
// Classes that are made, run for some milliseconds and unloaded, for ever. The process has the name of the one
// that runs.

import java.io.ByteArrayOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.function.LongConsumer;

public class Reuse {
	public static class Made implements LongConsumer {
		public void accept(long end) {
			outer000000(end);
		}

		static void outer000000(long end) {
			inner000000(end);
		}

		static void inner000000(long end) {
			burn(end);
		}
	}

	static class Maker extends ClassLoader {
		LongConsumer make(byte[] bytes) throws ReflectiveOperationException {
			Class<?> made = defineClass("Reuse$Made", bytes, 0, bytes.length);

			return (LongConsumer) made.getDeclaredConstructor().newInstance();
		}
	}

	public static void burn(long end) {
		while (System.nanoTime() < end)
			;
	}

	static byte[] read() throws IOException {
		ByteArrayOutputStream out = new ByteArrayOutputStream();
		byte[] some = new byte[4096];

		try (InputStream in = Reuse.class.getResourceAsStream("Reuse$Made.class")) {
			for (int n; (n = in.read(some)) > 0;)
				out.write(some, 0, n);
		}
		return out.toByteArray();
	}

	/* The bytes of a class whose functions have another number. */
	static byte[] number(byte[] bytes, String number) {
		String text = new String(bytes, StandardCharsets.ISO_8859_1).replace("000000", number);

		return text.getBytes(StandardCharsets.ISO_8859_1);
	}

	static void name(FileOutputStream comm, String name) throws IOException {
		comm.write(name.getBytes(StandardCharsets.ISO_8859_1));
	}

	public static void main(String[] args) throws Exception {
		ArrayDeque<LongConsumer> kept = new ArrayDeque<>();
		byte[] bytes = read();

		System.out.println("ready");
		try (FileOutputStream comm = new FileOutputStream("/proc/self/comm")) {
			for (int k = 1;; k++) {
				String number = String.format("%06d", k % 1000000);
				LongConsumer made = new Maker().make(number(bytes, number));

				name(comm, "g" + number);
				made.accept(System.nanoTime() + 3000000);
				name(comm, "none");
				kept.add(made);
				while (kept.size() > 20 + k % 40)
					kept.remove();
				if (k % 20 == 0)
					System.gc();
			}
		}
	}
}
