//! Planned windows in a plain run of the program.

use lookaside_techniques::hugepages::plan::{HugePlan, NativeRange, PlannedWindow};
use lookaside_techniques::hugepages::WINDOW_BYTES;
use lookaside_techniques::lock::layout::{RegionLayout, Runner};
use lookaside_techniques::lock::regions::{Confidence, RegionMatching};
use lookaside_techniques::plan::ProgramPlan as _;

use crate::files;

/// The profiled run has a file of two windows and two of half a one; in the plain run the first is shorter by a page,
/// and between the others lies something else.
fn matching() -> RegionMatching {
    let profiled = "00400000-00800000 r--p 00000000 fe:00 10 /bin/p\n\
        00a00000-00b00000 r--p 00000000 fe:00 11 /lib/a\n\
        00b00000-00c00000 r--p 00000000 fe:00 12 /lib/b\n";
    let native = "555555554000-555555953000 r--p 00000000 fe:00 10 /bin/p\n\
        7f0000000000-7f0000100000 r--p 00000000 fe:00 11 /lib/a\n\
        7f0000101000-7f0000201000 r--p 00000000 fe:00 12 /lib/b\n";
    let profiled = RegionLayout::from_listing(profiled, Runner::Valgrind, None);
    RegionMatching::new(&profiled, &RegionLayout::from_listing(native, Runner::Native, None))
}

#[test]
fn a_window_is_found_whole_or_it_is_said_why_not() {
    let mut plan: HugePlan = files::sample();
    let window = |process, address| PlannedWindow { process, address, region: None, ..plan.later[0].clone() };
    let windows = [(1, 0x40_0000), (1, 0x60_0000), (2, 0x40_0000)].map(|(process, address)| window(process, address));
    let later = [(1, 0xa0_0000), (1, 0xc0_0000)].map(|(process, address)| window(process, address));
    (plan.windows, plan.later) = (windows.into(), later.into());
    // What was known of another run is known no longer.
    plan.windows[0].not_native = Some("nobody looked".into());
    plan.find_natively(1, &matching());
    let found: Vec<_> =
        plan.windows.iter().chain(&plan.later).map(|of| (of.native.as_ref(), of.not_native.as_deref())).collect();
    let there = NativeRange {
        address: 0x5555_5555_4000,
        region: "p r-- +0x0".into(),
        offset_bytes: 0,
        confidence: Confidence::Likely,
        rests_on: vec!["same file, permission and offset".into(), "region has 4092 KiB, 4096 when profiled".into()],
    };
    assert_eq!(plan.windows[0].bytes, WINDOW_BYTES);
    assert_eq!(found[0], (Some(&there), None));
    for (found, why) in found[1..].iter().zip([
        "0x7ff000: no partner of p r-- +0x0: the native run does not map that part of the file with these permissions",
        "process 2 was started by the program; a plain run shows the program alone",
        "0xb00000: lies apart from the window's start in the plain run",
        "0xc00000: not mapped in the profiled run",
    ]) {
        assert_eq!(*found, (None, Some(why)));
    }
    plan.remarks_mut().push("of a plain run".into());
    assert_eq!(plan.remarks.last().map(String::as_str), Some("of a plain run"));
}
