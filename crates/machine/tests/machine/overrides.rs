//! Machine files on disk, and `--set`: what works, and the exact line for what does not.

use crate::common::{good, GOOD};
use lookaside_machine::{load, preset};

#[test]
fn files() {
    let error = load("no/such.toml").unwrap_err().to_string();
    assert!(error.starts_with("no/such.toml: cannot be read: "), "{error}");
    // A device without an end is refused, not read for ever.
    #[cfg(target_os = "linux")]
    {
        let error = load("/dev/zero").unwrap_err().to_string();
        assert_eq!(error, "/dev/zero: is longer than 1 MiB, which no file of this kind is");
    }
    let path = std::env::temp_dir().join(format!("lookaside-machine-{}.toml", std::process::id()));
    std::fs::write(&path, GOOD).unwrap();
    assert_eq!(load(&path), Ok(good()));
    std::fs::write(&path, b"name = \"\xff\"").unwrap();
    assert_eq!(load(&path).unwrap_err().reason, "is no UTF-8 text");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn overrides() {
    let set = |settings: &[&str]| {
        let settings: Vec<String> = settings.iter().map(|s| (*s).to_string()).collect();
        good().with_overrides(&settings).map_err(|e| e.to_string())
    };
    assert_eq!(set(&[]).unwrap(), good());

    let m =
        set(&["tlb.stlb.entries=4096", "tlb.stlb.ways = 16", "cache.l1d.size=64K", "walk_cache.pde.ways=4"]).unwrap();
    assert_eq!((m.tlbs[1].sets(), m.caches[0].size, m.walk_caches[0].sets()), (256, 65536, 4));
    let m =
        set(&["memory.cycles=99.5", "walker.first_cache_level=2", "clock_mhz=3000", "context_switch.action=flush-tlb"]);
    let m = m.unwrap();
    assert_eq!((m.memory.cycles, m.walker.first_cache_level, m.clock_mhz), (99.5, 2, 3000.0));
    let m = set(&["tlb.l1.ways=full", "tlb.l1.replacement=random", "tlb.l1.page_sizes=[4K, 2M, 1G]"]).unwrap();
    assert_eq!((m.tlbs[0].sets(), m.tlbs[0].page_sizes.len()), (1, 3));
    let m = set(&["tlb.l1.index=[0x11, 0x22, 0x44, 0x88]"]).unwrap();
    assert_eq!(m.tlbs[0].index.set_of(0x11, 16), 0);
    let m = set(&["page_table.host.format=aarch64-4k", "page_table.host.page_size=2M"]).unwrap();
    assert_eq!(m.page_table.host.unwrap().page_size.to_string(), "2M");

    for (settings, expected) in [
        (&["tlb.stlb"][..], "--set tlb.stlb: is no setting; write KEY=VALUE, as tlb.stlb.ways=12 or memory.cycles=200"),
        (&["tlb.stlb=3"], "--set tlb.stlb=3: write tlb.NAME.KEY=VALUE"),
        (&["tlb.l2.ways=3"], "--set tlb.l2.ways=3: no tlb is called \"l2\"; known: l1, stlb"),
        (&["=3"], "--set =3: has an empty key"),
        (&["memory..cycles=3"], "--set memory..cycles=3: has an empty key"),
        (&["clock_mhz.x=3"], "--set clock_mhz.x=3: clock_mhz has no keys inside"),
        (&["tlb.stlb.wais=12"], "m --set tlb.stlb.wais=12: tlb[1].wais: unknown key; known keys: name, level, serves, page_sizes, entries, ways, index, replacement, tags, lockable_entries, coalesce_pages, directory_entries, hit_cycles, shared_by"),
        (&["memory.ns=12"], "m --set memory.ns=12: memory.ns: unknown key; known keys: cycles or bytes_per_second"),
        (&["momory.cycles=1"], "m --set momory.cycles=1: momory: unknown key; known keys: name, description, sources, clock_mhz, topology, page_table, walker, tlb, walk_cache, cache, memory, stream, context_switch, disturbance, timing, origins, not_determined"),
        (&["memory.cycles=fast"], "m --set memory.cycles=fast: memory.cycles: expected a number, found string \"fast\""),
        (&["tlb.stlb.ways=12"], "m --set tlb.stlb.ways=12: tlb[1].ways: 12 does not divide entries 2048; only ways was set: set tlb.stlb.entries as well"),
        (&["tlb.stlb.entries=1000"], "m --set tlb.stlb.entries=1000: tlb[1].ways: entries 1000 in 8 ways are 125 sets, which is no power of two; only entries was set: set tlb.stlb.ways as well"),
        (&["cache.l1d.size=48K"], "m --set cache.l1d.size=48K: cache[0].ways: lines 768 in 8 ways are 96 sets, which is no power of two; only size was set: set cache.l1d.ways as well"),
        (
            &["walk_cache.pde.ways=3"],
            "m --set walk_cache.pde.ways=3: walk_cache[0].ways: 3 does not divide entries 16; only ways was set: set \
             walk_cache.pde.entries as well",
        ),
        (&["tlb.stlb.entries=1000", "tlb.stlb.ways=6"], "m --set tlb.stlb.entries=1000 --set tlb.stlb.ways=6: tlb[1].ways: 6 does not divide entries 1000"),
    ] {
        assert_eq!(set(settings).unwrap_err(), expected);
    }
    let bare = preset("sa1100").unwrap();
    assert_eq!(
        bare.with_overrides(&["walk_cache.pde.ways=3".into()]).unwrap_err().to_string(),
        "--set walk_cache.pde.ways=3: this machine has no walk_cache"
    );
    // A preset's masks fit its number of sets only.
    let skylake = preset("skylake").unwrap();
    assert_eq!(
        skylake.with_overrides(&["tlb.stlb.entries=3072".into()]).unwrap_err().to_string(),
        "skylake --set tlb.stlb.entries=3072: tlb[5].index: 7 masks for 256 sets, which need 8; set entries and ways together to keep the number of sets, or set tlb.stlb.index as well"
    );
    // Who set both, or the index, is not told to set them.
    for (settings, expected) in [
        (&["tlb.stlb.entries=3072", "tlb.stlb.ways=6"][..], "7 masks for 512 sets, which need 9"),
        (&["tlb.stlb.entries=3072", "tlb.stlb.index=[\"0x1\"]"][..], "1 masks for 256 sets, which need 8"),
    ] {
        let settings: Vec<String> = settings.iter().map(|s| s.to_string()).collect();
        let said = skylake.with_overrides(&settings).unwrap_err().to_string();
        assert!(said.ends_with(expected), "{said}");
    }
}

/// It is called by its own name, as there is no file.
#[test]
fn a_machine_that_was_changed_by_hand_is_checked() {
    assert_eq!(good().check(), Ok(()));
    let mut machine = good();
    machine.clock_mhz = 0.0;
    let checked = [machine.check(), machine.with_overrides(&[]).map(|_| ())];
    assert_eq!(checked.map(|found| found.unwrap_err().to_string()), ["m: clock_mhz: must be more than 0"; 2]);
    // What was set is looked at together.
    assert!(machine.with_overrides(&["clock_mhz=1".into()]).is_ok());
}
