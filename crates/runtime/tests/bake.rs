//! The baker on real memory: what it touches, what it leaves alone, and that it stops.

use std::time::{Duration, Instant};

use lookaside_runtime::bake::{BakeStats, BakedRegion, Baker, HelperState, Settings, Target};

/// Bytes of memory that is its own mapping.
struct Area(*mut u8, usize);

impl Area {
    fn new(bytes: usize) -> Self {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping wherever the system likes.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        // SAFETY: advice about it: small pages, so that each is counted.
        unsafe { libc::madvise(at, bytes, libc::MADV_NOHUGEPAGE) };
        Self(at.cast(), bytes)
    }

    fn region(&self) -> BakedRegion {
        BakedRegion { start: self.0 as u64, len: self.1 as u64 }
    }

    /// Pages that have a frame.
    fn resident(&self) -> usize {
        let mut vec = vec![0u8; self.1 / 4096];
        // SAFETY: our mapping, a byte a page.
        assert_eq!(unsafe { libc::mincore(self.0.cast(), self.1, vec.as_mut_ptr().cast()) }, 0);
        vec.iter().filter(|&&byte| byte & 1 == 1).count()
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: our mapping.
        unsafe { libc::munmap(self.0.cast(), self.1) };
    }
}

/// Waits until it has gone so many rounds; a minute is not enough for a machine that never lets the helper run.
fn after_rounds(baker: &Baker, rounds: u64) -> BakeStats {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let stats = baker.stats();
        if stats.rounds >= rounds {
            return stats;
        }
        assert!(Instant::now() < end, "{stats:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn settings(text: &str) -> Settings {
    text.parse().expect("settings")
}

/// Backends that this kernel has and that must not give a page a frame.
fn harmless() -> Vec<Settings> {
    ["prefetch:t0", "prefetch:t1", "prefetch:t2", "mincore", "scan"]
        .iter()
        .map(|text| settings(text))
        .filter(|settings| Baker::start(settings, &[]).is_ok())
        .collect()
}

fn settings_work(text: &str) -> bool {
    Baker::start(&settings(text), &[]).is_ok()
}

#[test]
fn untouched_memory_stays_untouched() {
    let area = Area::new(16 << 20);
    let all = harmless();
    assert!(all.len() >= 4, "prefetch and mincore are everywhere");
    for settings in all {
        let baker = Baker::start(&settings, &[area.region()]).expect("a baker");
        let stats = after_rounds(&baker, 3);
        assert!(stats.touches >= 3 * 4096 / 8, "{settings}: {stats:?}");
        assert_eq!((area.resident(), stats.failed_calls), (0, 0), "{settings}");
    }
}

#[test]
fn loads_touch_one_page_in_a_stride() {
    let area = Area::new(4 << 20);
    let baker = Baker::start(&settings("load,stride=8,nops=2"), &[area.region()]).expect("a baker");
    after_rounds(&baker, 1);
    let stats = baker.stop();
    assert!(stats.touches >= stats.rounds * 1024 / 8 && stats.rounds >= 1, "{stats:?}");
}

#[test]
fn memory_that_is_gone_harms_no_prefetch_and_no_kernel_call() {
    for settings in harmless() {
        let area = Area::new(64 << 20);
        let region = area.region();
        let baker = Baker::start(&settings, &[region]).expect("a baker");
        drop(area); // unmapped while it is a region
        after_rounds(&baker, 3);
    }
}

#[test]
fn what_is_taken_out_is_not_touched_any_more() {
    let keep = Area::new(1 << 20);
    let baker = Baker::start(&settings("load,stride=1"), &[keep.region()]).expect("a baker");
    for _ in 0..50 {
        let area = Area::new(2 << 20);
        baker.add(area.region()).expect("a region");
        let middle = BakedRegion { start: area.region().start + (1 << 20), len: 4096 };
        baker.remove(middle).expect("a region");
        baker.remove(area.region()).expect("a region");
        drop(area); // a load from it would end the test's process
    }
    assert!(baker.stop().failed_calls == 0);
}

#[test]
fn without_regions_it_sleeps_and_wakes() {
    let area = Area::new(1 << 20);
    let baker = Baker::start(&settings("mincore"), &[]).expect("a baker");
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(baker.stats().rounds, 0);
    baker.set_regions(&[area.region()]).expect("a region");
    after_rounds(&baker, 1);
    baker.set_regions(&[]).expect("no regions");
    let (before, _) = (baker.stats().touches, std::thread::sleep(Duration::from_millis(20)));
    // A round that had begun may have ended, and no more.
    assert!(baker.stats().touches <= before + 256);
    baker.stop();
}

#[test]
fn a_long_sleep_does_not_keep_stop_waiting() {
    let area = Area::new(1 << 20);
    let baker = Baker::start(&settings("mincore,sleep=60s"), &[area.region()]).expect("a baker");
    after_rounds(&baker, 1);
    let rounds = baker.stop().rounds; // would take a minute
    assert_eq!(rounds, 1);
}

/// Where others want the CPUs, as other tests do, it leaves them to these.
#[test]
fn auto_bakes_while_the_program_works_and_rests_while_it_does_not() {
    let area = Area::new(64 << 20);
    let touched = area.region().len / 2;
    // SAFETY: our mapping.
    unsafe { area.0.write_bytes(1, touched as usize) };
    let resident = area.resident();
    let baker = Baker::start(&settings("auto"), &[area.region()]).expect("a baker");
    let until = |wanted: &[HelperState], mut work: Box<dyn FnMut()>| {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let state = baker.state();
            if wanted.contains(&state) {
                return state;
            }
            assert!(Instant::now() < end, "{state:?}, never {wanted:?}");
            work();
        }
    };
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        until(&[HelperState::NoCpu], Box::new(|| std::thread::sleep(Duration::from_millis(1))));
        return assert_eq!(baker.stop().rounds, 0);
    }
    let works = Box::new(|| (0..1000).for_each(|n| _ = std::hint::black_box(n)));
    let first = until(&[HelperState::Baking, HelperState::Warm, HelperState::Crowded], works);
    until(&[HelperState::Idle], Box::new(|| std::thread::sleep(Duration::from_millis(5))));
    let within = baker.status();
    let backend = if std::path::Path::new("/dev/lookaside").exists() { "module" } else { "prefetch:t0" };
    assert_eq!((within.bake.as_str(), within.backend.as_str()), ("auto,share=0.5", backend));
    assert!(within.pause_nanos <= 2_000_000, "{within:?}");
    let stats = baker.stop();
    // What was not touched is left alone, where the kernel tells what that is.
    assert_eq!((area.resident(), stats.failed_calls), (resident, 0), "{stats:?}");
    if settings_work("scan") {
        assert!(stats.touches <= (stats.rounds + 1) * touched / 4096 / 8, "{stats:?}");
        assert!(stats.rounds > 0 || first == HelperState::Crowded, "{stats:?}");
    }
}

#[test]
fn auto_has_nothing_to_do_where_no_page_has_a_frame() {
    if !settings_work("scan") {
        return;
    }
    let area = Area::new(64 << 20);
    let baker = Baker::start(&settings("auto"), &[area.region()]).expect("a baker");
    for _ in 0..100 {
        assert!(matches!(baker.state(), HelperState::Looking | HelperState::NoCpu), "{:?}", baker.state());
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!((baker.stop().touches, area.resident()), (0, 0));
}

#[test]
fn mistakes_are_refused() {
    let refused =
        |regions: &[BakedRegion]| Baker::start(&Settings::default(), regions).expect_err("refused").to_string();
    assert!(refused(&[BakedRegion { start: 0x1000, len: 0 }]).contains("has no bytes"));
    assert!(refused(&[BakedRegion { start: u64::MAX - 10, len: 100 }]).contains("beyond"));
    let other = Baker::start_for(Target::Process(1), &settings("prefetch"), &[]).expect_err("refused").to_string();
    assert!(other.contains("scan and module reach other processes"), "{other}");
    let cpu = Baker::start(&settings("prefetch,cpu=99999"), &[]).expect_err("refused").to_string();
    assert!(cpu.contains("taskset"), "{cpu}");
}
