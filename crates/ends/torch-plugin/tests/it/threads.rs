//! Many threads at once.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::library::{Driver, Plugin, folder, is_child, run_again};
use crate::recorded::{replayed_stats, value, verify};

const THREADS: usize = 4;
const STEPS: usize = 1500;

/// A small generator; the sizes crowd around the thresholds.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }

    fn size(&mut self) -> usize {
        let near = [512, 4096, 1 << 20, (1 << 20) + 1, 5 << 20, 10 << 20, 21 << 20][self.below(7)];
        near + self.below(700)
    }
}

/// Memory in use by any thread; what is allocated twice is found here.
struct MemoryInUse(Mutex<BTreeMap<usize, usize>>);

impl MemoryInUse {
    fn add(&self, start: usize, size: usize) {
        let mut map = self.0.lock().unwrap();
        let before = map.range(..start + size).next_back();
        assert!(before.is_none_or(|(base, length)| base + length <= start), "{start:#x} is in use already");
        map.insert(start, size);
    }

    fn remove(&self, start: usize) {
        assert!(self.0.lock().unwrap().remove(&start).is_some());
    }
}

fn work(plugin: &Plugin, in_use: &MemoryInUse, streams: &[usize], thread: usize) {
    let mut random = Random(17 + thread as u64);
    let mut live = Vec::new();
    let own = streams[thread];
    for _ in 0..STEPS {
        if live.len() < 12 && random.below(5) < 3 {
            let size = random.size();
            let addr = plugin.malloc(isize::try_from(size).unwrap(), own);
            assert_ne!(addr, 0);
            in_use.add(addr, size);
            live.push(addr);
            if random.below(4) == 0 {
                plugin.record_stream(addr, streams[random.below(streams.len())]);
            }
        } else if !live.is_empty() {
            let addr = live.swap_remove(random.below(live.len()));
            // Before it is free: then another thread may get it at once.
            in_use.remove(addr);
            plugin.free(addr, own);
        }
    }
    for addr in live {
        in_use.remove(addr);
        plugin.free(addr, own);
    }
}

fn in_child() {
    let driver = Driver::open();
    let streams: Vec<usize> =
        std::iter::once(0).chain((1..THREADS).map(|_| driver.create_stream())).collect();
    let plugin = Plugin::load();
    plugin.record_start();
    let in_use = MemoryInUse(Mutex::default());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (plugin, in_use, streams) = (&plugin, &in_use, &streams);
            scope.spawn(move || work(plugin, in_use, streams, thread));
        }
    });
    assert_eq!(plugin.stat("allocated_bytes.all.current"), 0);
    let path = folder("threads").join("run.jsonl");
    plugin.record_finish(&path);
    println!("peak {}", plugin.stat("allocated_bytes.all.peak"));
    println!("segments {}", plugin.stat("reserved_bytes.all.peak"));
    plugin.empty_cache();
    assert_eq!(plugin.stat("reserved_bytes.all.current"), 0);
}

fn run(name: &str, settings: &[(&str, &str)]) {
    if is_child() {
        return in_child();
    }
    let output = run_again(name, settings);
    let path = folder("threads").join("run.jsonl");
    verify(&path);
    let stats = replayed_stats(&path);
    assert!(output.contains(&format!("peak {}", value(&stats, "allocated_bytes.all.peak"))), "{output}");
    assert!(output.contains(&format!("segments {}", value(&stats, "reserved_bytes.all.peak"))), "{output}");
}

#[test]
fn threads_share_the_allocator() {
    run("threads::threads_share_the_allocator", &[]);
    if !is_child() {
        run(
            "threads::threads_share_the_allocator",
            &[("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")],
        );
    }
}
