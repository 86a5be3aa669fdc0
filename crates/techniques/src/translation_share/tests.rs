use super::*;

/// A TLB of 64 entries and nothing else: each read takes one cycle, each walk four times 100.
const MACHINE: &str = r#"
    name = "hand"
    clock_mhz = 1000.0
    [page_table]
    format = "x86-64-4level"
    [[tlb]]
    name = "tlb"
    level = 1
    serves = ["load", "store"]
    page_sizes = ["4K"]
    entries = 64
    ways = "full"
    replacement = "lru"
    tags = ["asid"]
    hit_cycles = 0.0
    [memory]
    cycles = 100.0
"#;
const START: u64 = 1 << 32;

fn setup() -> Setup {
    Setup::new(lookaside_machine::parse(MACHINE, "hand.toml").expect("a machine"))
}

fn memory(mib: u64, huge: bool) -> Vec<MemoryRange> {
    let bytes = mib << 20;
    let huge_bytes = if huge { bytes } else { 0 };
    vec![MemoryRange { start: START, end: START + bytes, resident_bytes: bytes, huge_bytes }]
}

/// 20 bursts of 40 samples; `at` makes an offset of the number of a sample and of random bits.
fn bursts(mut at: impl FnMut(u64, u64) -> Option<u64>) -> Vec<Vec<WaitingSample>> {
    let mut rng = SplitMix64::new(9);
    let mut sample = |number| WaitingSample { thread: 1, addr: at(number, rng.next_u64()).map_or(0, |at| START + at) };
    (0..20).map(|burst| (0..40).map(|number| sample(burst * 1000 + number)).collect()).collect()
}

fn share(bursts: &[Vec<WaitingSample>], memory: &[MemoryRange]) -> TranslationShare {
    translation_share(bursts, memory, &setup()).expect("a machine that runs").expect("samples enough")
}

/// 65,536 pages, 64 of which the TLB has: of 1,000 reads 999 walk, which takes 400 cycles; each read takes one beside. So
/// 399.6 of 400.6 cycles are walks: 99.75 %.
#[test]
fn random_reads_by_hand() {
    let found = share(&bursts(|_, random| Some(random % (256 << 20))), &memory(256, false));
    assert!((found.share - 0.9975).abs() < 0.001, "{found:?}");
    assert!(found.low <= found.share && found.share <= found.high && found.high - found.low < 0.1, "{found:?}");
    assert_eq!((found.samples, found.resolved), (800, 800));
}

#[test]
fn half_of_the_time_elsewhere_is_half_of_the_share() {
    let found = share(&bursts(|number, random| (number % 2 == 0).then_some(random % (256 << 20))), &memory(256, false));
    assert!((found.share - 0.49875).abs() < 0.001, "{found:?}");
    assert!(found.low <= found.share && found.share <= found.high && found.resolved == 400, "{found:?}");
}

#[test]
fn what_stays_near_and_what_is_hot_and_what_is_huge_costs_nothing() {
    // 100 KB between two samples, and a new place for each burst.
    let ordered =
        bursts(|number, _| Some((number / 1000 * 7919 % 2000 * 100_000 + number % 1000 * 100_000) % (256 << 20)));
    let found = share(&ordered, &memory(256, false));
    assert!(found.share < 0.05, "{found:?}");
    // 64 pages fit.
    let hot = share(&bursts(|_, random| Some(random % (64 << 12))), &memory(256, false));
    assert!(hot.share < 0.02, "{hot:?}");
    let huge = share(&bursts(|_, random| Some(random % (256 << 20))), &memory(256, true));
    assert_eq!((huge.share, huge.high), (0.0, 0.0));
}

#[test]
fn few_samples_say_nothing() {
    let all = bursts(|_, random| Some(random % (256 << 20)));
    assert_eq!(translation_share(&all[..2], &memory(256, false), &setup()).expect("it runs"), None);
    let wide = translation_share(&all[..3], &memory(256, false), &setup()).expect("it runs").expect("120 samples");
    assert_eq!(wide.low, 0.0, "three bursts have no interval: {wide:?}");
    assert_eq!(TranslationShare::of_several(&[]), None);
}
