// SPDX-License-Identifier: Apache-2.0
// Rust with frame pointers (the standard library has none), in a thread. See workloads.py.
use std::hint::black_box;
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_millis(20);

#[inline(never)]
fn leaf(burst: Duration) -> u64 {
    let begin = Instant::now();
    let mut x = 1u64;
    while begin.elapsed() < burst {
        for _ in 0..20000 {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1);
        }
        black_box(x);
    }
    x
}

#[inline(never)]
fn down(depth: u64, burst: Duration) -> u64 {
    let below = if depth == 0 { leaf(burst) } else { down(depth - 1, burst) };
    black_box(below) ^ depth
}

fn main() {
    let share: f64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(0.15);
    let burn = move || loop {
        let begin = Instant::now();
        black_box(down(10, PERIOD.mul_f64(share)));
        std::thread::sleep(PERIOD.saturating_sub(begin.elapsed()));
    };
    std::thread::spawn(burn).join().unwrap();
}
