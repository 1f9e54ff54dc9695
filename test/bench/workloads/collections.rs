// SPDX-License-Identifier: Apache-2.0
// Names of the standard library's generic functions, inlined and not. See names.py.
use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::time::{Duration, Instant};

#[inline(never)]
fn fill(n: u64) -> (BTreeMap<String, u64>, HashMap<u64, Vec<u64>>) {
    let mut sorted = BTreeMap::new();
    let mut hashed: HashMap<u64, Vec<u64>> = HashMap::new();
    for i in 0..n {
        sorted.insert(format!("key-{}", i * 7919 % 4096), i);
        hashed.entry(i % 512).or_default().push(i * 31 % 1000);
    }
    (sorted, hashed)
}

#[inline(never)]
fn sum(sorted: &BTreeMap<String, u64>, hashed: &mut HashMap<u64, Vec<u64>>) -> u64 {
    for values in hashed.values_mut() {
        values.sort_unstable();
    }
    let keys: usize = sorted.keys().filter(|key| key.ends_with('7')).map(|key| key.len()).sum();
    keys as u64 + hashed.values().flat_map(|values| values.iter()).sum::<u64>()
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(5);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(seconds) {
        let (sorted, mut hashed) = fill(20000);
        black_box(sum(&sorted, &mut hashed));
    }
}
