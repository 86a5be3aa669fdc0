//! The preset nearest to real CPUs.

use lookaside_machine::{nearest_preset, preset, CpuId};
use proptest::prelude::*;

/// Preset and reason for a `/proc/cpuinfo` text.
fn nearest(cpuinfo: &str) -> (&'static str, String) {
    nearest_preset(&CpuId::from_cpuinfo(cpuinfo))
}

/// The head of an x86 `/proc/cpuinfo`.
fn x86(vendor: &str, family: u32, model: u32, name: &str) -> String {
    stepping(vendor, family, model, 1, name)
}

/// The same with a stepping.
fn stepping(vendor: &str, family: u32, model: u32, stepping: u32, name: &str) -> String {
    format!(
        "processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: {name}\n\
         stepping\t: {stepping}\nmicrocode\t: 0x1000065\ncpu MHz\t\t: 2596.152\ncache size\t: 1024 KB\n\
         TLB size\t: 3584 4K pages\nclflush size\t: 64\n"
    )
}

#[test]
fn a_zen_4_server_in_a_virtual_machine() {
    let text = x86("AuthenticAMD", 25, 17, "AMD EPYC");
    let cpu = CpuId::X86 {
        vendor: "AuthenticAMD".into(),
        family: 25,
        model: 17,
        stepping: 1,
        name: "AMD EPYC".into(),
        amx: false,
    };
    assert_eq!(CpuId::from_cpuinfo(&text), cpu);
    assert_eq!(
        nearest(&text),
        ("zen4", "AMD family 25 model 17 (Zen 4): preset zen4 has this core; clock and caches may differ".into())
    );
}

#[test]
fn amd_cores_by_family_and_model() {
    for (family, model, expected) in [
        (23, 49, "ryzen-5900x"), // EPYC 7R32
        (24, 0, "ryzen-5900x"),  // Hygon's
        (25, 1, "ryzen-5900x"),  // EPYC 7R13
        (25, 33, "ryzen-5900x"), // Ryzen 9 5900X
        (25, 0x10, "zen4"),      // EPYC 9654, 9R14
        (25, 0x1f, "zen4"),
        (25, 0x20, "ryzen-5900x"),
        (25, 0x61, "zen4"),     // Ryzen 9 7950X
        (25, 0x74, "zen4"),     // Ryzen 7 7840U
        (25, 0xa0, "zen4"),     // EPYC 9754
        (26, 2, "zen5"),        // EPYC 9655
        (26, 17, "zen5"),       // EPYC 9965
        (26, 0x44, "zen5"),     // Ryzen 9 9950X
        (26, 0x50, "zen5"),     // Zen 6
        (27, 0, "zen5"),        // not known yet
        (21, 2, "ryzen-5900x"), // Opteron 6300
    ] {
        let (name, reason) = nearest(&x86("AuthenticAMD", family, model, "AMD CPU"));
        assert_eq!(name, expected, "family {family} model {model}: {reason}");
    }
    let reason = |family, model| nearest(&x86("AuthenticAMD", family, model, "")).1;
    assert_eq!(
        reason(23, 49),
        "AMD family 23 model 49 (Zen 2): no preset; nearest is ryzen-5900x (Zen 3), L2 DTLB 16 ways instead of 12"
    );
    assert_eq!(reason(26, 0x50), "AMD family 26 model 80 (Zen 6): no preset; nearest is zen5, an older core");
    assert_eq!(reason(27, 0), "AMD family 27 model 0 is not known: no preset; nearest is zen5, an older core");
}

#[test]
fn skylake_servers_and_those_after_them_by_stepping() {
    let nearest = |number| nearest(&stepping("GenuineIntel", 6, 85, number, "Intel(R) Xeon(R)"));
    for (number, core) in [(4, "Skylake server"), (11, "Cooper Lake")] {
        assert_eq!(
            nearest(number),
            (
                "cascade-lake",
                format!(
                    "Intel family 6 model 85 ({core}): no preset; nearest is cascade-lake, whose TLBs are the same; L3 \
                     cache differs"
                )
            )
        );
    }
    for number in 5..=7 {
        assert_eq!(
            nearest(number).1,
            "Intel family 6 model 85 (Cascade Lake): preset cascade-lake has this core; clock and caches may differ"
        );
    }
    let none = "vendor_id : GenuineIntel\ncpu family : 6\nmodel : 85\n";
    assert!(matches!(CpuId::from_cpuinfo(none), CpuId::X86 { stepping: 0, .. }));
}

#[test]
fn what_a_cpu_can_do_says_more_than_the_model_that_a_hypervisor_names() {
    let with = |model, flags: &str| nearest(&(x86("GenuineIntel", 6, model, "Intel(R) Xeon(R)") + flags));
    assert_eq!(with(167, "flags\t\t: fpu avx512f\n").0, "ice-lake-sp");
    assert_eq!(
        with(167, "flags\t\t: fpu amx_bf16 amx_tile\n"),
        (
            "golden-cove",
            "Intel family 6 model 167 (a name that is not its own: it has AMX): no preset; nearest is golden-cove, the \
             first core with it; caches differ"
                .into()
        )
    );
    // A model that has it is what it says.
    assert_eq!(with(0xcf, "flags\t\t: amx_tile\n").1, with(0xcf, "").1);
}

#[test]
fn the_preset_s_own_core() {
    assert_eq!(
        nearest(&x86("AuthenticAMD", 25, 33, "AMD Ryzen 9 5900X 12-Core Processor")),
        (
            "ryzen-5900x",
            "AMD family 25 model 33 (Zen 3): preset ryzen-5900x has this core; clock and caches may differ".into()
        )
    );
    assert_eq!(
        nearest(&x86("GenuineIntel", 6, 94, "Intel(R) Core(TM) i7-6700 CPU @ 3.40GHz")).1,
        "Intel family 6 model 94 (Skylake): preset skylake has this core; clock and caches may differ"
    );
}

#[test]
fn intel_cores_by_model() {
    for (model, expected) in [
        (45, "xeon-e5-2650"), // E5-2650
        (62, "xeon-e5-2650"), // E5-2650 v2
        (63, "skylake"),      // E5-2680 v3
        (79, "skylake"),      // E5-2680 v4
        (85, "cascade-lake"), // Platinum 8175M, 8259CL
        (158, "skylake"),     // i7-8700K
        (106, "ice-lake-sp"), // Platinum 8375C
        (108, "ice-lake-sp"), // Xeon D-2700
        (126, "ice-lake-sp"), // i7-1065G7
        (140, "ice-lake-sp"), // i7-1185G7
        (143, "golden-cove"), // Platinum 8481C
        (151, "golden-cove"), // i9-12900K
        (173, "golden-cove"), // 6975P-C
        (250, "golden-cove"), // not known yet
    ] {
        let (name, reason) = nearest(&x86("GenuineIntel", 6, model, "Intel(R) CPU"));
        assert_eq!(name, expected, "model {model}: {reason}");
    }
    assert_eq!(
        nearest(&x86("GenuineIntel", 6, 250, "")).1,
        "Intel family 6 model 250 is not known: no preset; nearest is golden-cove"
    );
    assert_eq!(
        nearest(&x86("GenuineIntel", 6, 126, "")).1,
        "Intel family 6 model 126 (Sunny Cove): no preset; nearest is ice-lake-sp (Sunny Cove), whose TLBs are the same; \
         caches differ"
    );
}

/// Runs of models with the same words, as `first..=last words`.
fn runs(models: std::ops::RangeInclusive<u32>, words_of: impl Fn(u32) -> String) -> Vec<String> {
    let mut runs: Vec<(u32, u32, String)> = Vec::new();
    for model in models {
        let words = words_of(model);
        match runs.last_mut() {
            Some((_, last, same)) if *same == words => *last = model,
            _ => runs.push((model, model, words)),
        }
    }
    runs.into_iter().map(|(first, last, words)| format!("{first:#04x}..={last:#04x} {words}")).collect()
}

/// A name in parentheses, and the preset.
fn name_and_preset((preset, reason): (&str, String)) -> String {
    let name = reason.split_once(" (").filter(|(before, _)| !before.contains(':'));
    let name = name.and_then(|(_, rest)| rest.split_once(')')).map_or("-", |(name, _)| name);
    format!("{name}: {preset}")
}

/// Numbers as in Linux, arch/x86/include/asm/intel-family.h.
#[test]
fn all_models_of_intel_s_family_6() {
    let words = |model| name_and_preset(nearest(&x86("GenuineIntel", 6, model, "Intel(R) CPU")));
    let listed: Vec<String> =
        runs(0..=0xd0, words).into_iter().filter(|run| !run.ends_with("-: golden-cove")).collect();
    let expected = "\
        0x00..=0x19 -: xeon-e5-2650\n0x1a..=0x1a Nehalem or Westmere: xeon-e5-2650\n0x1b..=0x1d -: xeon-e5-2650\n\
        0x1e..=0x1f Nehalem or Westmere: xeon-e5-2650\n0x25..=0x25 Nehalem or Westmere: xeon-e5-2650\n\
        0x26..=0x29 -: xeon-e5-2650\n0x2a..=0x2a Sandy Bridge: xeon-e5-2650\n\
        0x2c..=0x2c Nehalem or Westmere: xeon-e5-2650\n0x2d..=0x2d Sandy Bridge: xeon-e5-2650\n\
        0x2e..=0x2f Nehalem or Westmere: xeon-e5-2650\n0x37..=0x37 Atom: skylake\n\
        0x3a..=0x3a Ivy Bridge: xeon-e5-2650\n0x3c..=0x3c Haswell: skylake\n0x3d..=0x3d Broadwell: skylake\n\
        0x3e..=0x3e Ivy Bridge: xeon-e5-2650\n0x3f..=0x3f Haswell: skylake\n0x45..=0x46 Haswell: skylake\n\
        0x47..=0x47 Broadwell: skylake\n0x4a..=0x4a Atom: skylake\n0x4c..=0x4d Atom: skylake\n\
        0x4e..=0x4e Skylake: skylake\n0x4f..=0x4f Broadwell: skylake\n0x55..=0x55 Skylake server: cascade-lake\n\
        0x56..=0x56 Broadwell: skylake\n0x5a..=0x5a Atom: skylake\n0x5c..=0x5c Atom: skylake\n\
        0x5e..=0x5e Skylake: skylake\n0x5f..=0x5f Atom: skylake\n0x66..=0x66 Cannon Lake: skylake\n\
        0x6a..=0x6a Ice Lake server: ice-lake-sp\n0x6c..=0x6c Ice Lake server: ice-lake-sp\n\
        0x7a..=0x7a Atom: skylake\n0x7d..=0x7e Sunny Cove: ice-lake-sp\n0x86..=0x86 Atom: skylake\n\
        0x8c..=0x8d Willow Cove: ice-lake-sp\n0x8e..=0x8e Skylake: skylake\n0x8f..=0x8f Golden Cove: golden-cove\n\
        0x96..=0x96 Atom: skylake\n0x97..=0x97 Golden Cove: golden-cove\n0x9a..=0x9a Golden Cove: golden-cove\n\
        0x9c..=0x9c Atom: skylake\n0x9e..=0x9e Skylake: skylake\n0xa5..=0xa6 Skylake: skylake\n\
        0xa7..=0xa7 Sunny Cove: ice-lake-sp\n0xaa..=0xaa Redwood Cove: golden-cove\n\
        0xac..=0xae Redwood Cove: golden-cove\n0xaf..=0xaf Atom: skylake\n0xb5..=0xb5 Lion Cove: golden-cove\n\
        0xb6..=0xb6 Atom: skylake\n0xb7..=0xb7 Raptor Cove: golden-cove\n0xba..=0xba Raptor Cove: golden-cove\n\
        0xbd..=0xbd Lion Cove: golden-cove\n0xbe..=0xbe Atom: skylake\n0xbf..=0xbf Raptor Cove: golden-cove\n\
        0xc5..=0xc6 Lion Cove: golden-cove\n0xcf..=0xcf Raptor Cove: golden-cove";
    assert_eq!(listed.join("\n"), expected);
    let other = |family| name_and_preset(nearest(&x86("GenuineIntel", family, 1, "")));
    assert_eq!([other(15), other(16), other(18)], ["-: xeon-e5-2650", "-: golden-cove", "-: golden-cove"]);
}

/// Numbers as in Linux, arch/x86/kernel/cpu/amd.c.
#[test]
fn all_models_of_amd_s_families_since_zen() {
    let words = |family| runs(0..=0xff, move |model| name_and_preset(nearest(&x86("AuthenticAMD", family, model, ""))));
    assert_eq!(words(22), ["0x00..=0xff -: ryzen-5900x"]);
    assert_eq!(words(23), ["0x00..=0x2f Zen: ryzen-5900x", "0x30..=0xff Zen 2: ryzen-5900x"]);
    assert_eq!(words(24), ["0x00..=0xff Zen: ryzen-5900x"]);
    let zen4 = |models: &str| format!("{models} Zen 4: zen4");
    let zen3 = |models: &str| format!("{models} Zen 3: ryzen-5900x");
    assert_eq!(
        words(25),
        [
            zen3("0x00..=0x0f"),
            zen4("0x10..=0x1f"),
            zen3("0x20..=0x5f"),
            zen4("0x60..=0x7f"),
            zen3("0x80..=0x9f"),
            zen4("0xa0..=0xaf"),
            zen3("0xb0..=0xff")
        ]
    );
    let zen5 = |models: &str| format!("{models} Zen 5: zen5");
    let zen6 = |models: &str| format!("{models} Zen 6: zen5");
    assert_eq!(
        words(26),
        [
            zen5("0x00..=0x4f"),
            zen6("0x50..=0x5f"),
            zen5("0x60..=0x7f"),
            zen6("0x80..=0xaf"),
            zen5("0xb0..=0xbf"),
            zen6("0xc0..=0xcf"),
            zen5("0xd0..=0xff")
        ]
    );
}

#[test]
fn the_nearest_preset_is_named_with_its_core() {
    let said = |family, model| nearest(&x86("GenuineIntel", family, model, "")).1;
    let haswell =
        "Intel family 6 model 63 (Haswell): no preset; nearest is skylake, STLB 1536 entries in 12 ways instead \
        of 1024 in 8";
    assert_eq!(said(6, 63), haswell);
    let ivy_bridge =
        "Intel family 6 model 58 (Ivy Bridge): no preset; nearest is xeon-e5-2650 (Sandy Bridge), whose TLBs \
        are the same; caches differ";
    assert_eq!(said(6, 58), ivy_bridge);
}

#[test]
fn a_raspberry_pi_2() {
    let text = "processor\t: 0\nmodel name\t: ARMv7 Processor rev 5 (v7l)\nBogoMIPS\t: 57.60\n\
        Features\t: half thumb fastmult vfp edsp neon vfpv3 tls vfpv4 idiva idivt vfpd32 lpae evtstrm\n\
        CPU implementer\t: 0x41\nCPU architecture: 7\nCPU variant\t: 0x0\nCPU part\t: 0xc07\nCPU revision\t: 5\n\n\
        Hardware\t: BCM2835\nRevision\t: a01041\n";
    assert_eq!(CpuId::from_cpuinfo(text), CpuId::Arm { implementer: 0x41, part: 0xc07 });
    assert_eq!(
        nearest(text).1,
        "ARM implementer 0x41 part 0xc07 (Cortex-A7): preset cortex-a7 has this core; clock and caches may differ"
    );
}

#[test]
fn arm_servers_and_boards() {
    let text = |implementer: &str, part: &str| {
        format!(
            "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd evtstrm aes\nCPU implementer\t: {implementer}\n\
             CPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: {part}\nCPU revision\t: 1\n"
        )
    };
    for (implementer, part, expected) in [
        ("0x41", "0xd0c", "neoverse-n1"), // Graviton 2, Altra
        ("0x41", "0xd40", "neoverse-v1"), // Graviton 3
        ("0x41", "0xd4f", "neoverse-v2"), // Graviton 4
        ("0x41", "0xd84", "neoverse-v2"), // Graviton 5
        ("0x41", "0xd49", "neoverse-n1"), // Yitian 710
        ("0x41", "0xd08", "neoverse-n1"), // Raspberry Pi 4
        ("0x61", "0x022", "neoverse-n1"), // Apple M1 under Linux
        ("0x41", "0xc09", "cortex-a9"),   // Sabre Lite
        ("0x69", "0xb11", "sa1100"),      // SA-1110
    ] {
        assert_eq!(nearest(&text(implementer, part)).0, expected, "{implementer} {part}");
    }
    assert_eq!(
        nearest(&text("0x41", "0xd0c")).1,
        "ARM implementer 0x41 part 0xd0c (Neoverse N1): preset neoverse-n1 has this core; clock and caches may differ"
    );
    // Part numbers as in Linux, arch/arm64/include/asm/cputype.h; names also where the preset is that of unknown ones.
    let arms = runs(0xc00..=0xdff, |part| name_and_preset(nearest(&text("0x41", &format!("{part:#x}")))));
    let known: Vec<&String> = arms.iter().filter(|run| !run.contains(" -: ")).collect();
    let expected = [
        "0xc05..=0xc05 Cortex-A5: cortex-a7",
        "0xc07..=0xc07 Cortex-A7: cortex-a7",
        "0xc08..=0xc08 Cortex-A8: cortex-a9",
        "0xc09..=0xc09 Cortex-A9: cortex-a9",
        "0xc0d..=0xc0e Cortex-A12 or A17: cortex-a9",
        "0xc0f..=0xc0f Cortex-A15: cortex-a9",
        "0xd03..=0xd03 Cortex-A53: neoverse-n1",
        "0xd04..=0xd04 Cortex-A35: neoverse-n1",
        "0xd05..=0xd05 Cortex-A55: neoverse-n1",
        "0xd07..=0xd07 Cortex-A57: neoverse-n1",
        "0xd08..=0xd08 Cortex-A72: neoverse-n1",
        "0xd0b..=0xd0b Cortex-A76: neoverse-n1",
        "0xd0c..=0xd0c Neoverse N1: neoverse-n1",
        "0xd40..=0xd40 Neoverse V1: neoverse-v1",
        "0xd49..=0xd49 Neoverse N2: neoverse-n1",
        "0xd4f..=0xd4f Neoverse V2: neoverse-v2",
        "0xd83..=0xd84 Neoverse V3: neoverse-v2",
    ];
    assert_eq!(known, expected);
    assert!(arms.contains(&"0xc10..=0xcff -: cortex-a9".to_string()), "{arms:?}");
    assert_eq!(name_and_preset(nearest(&text("0x44", "0xa11"))), "SA-1100: sa1100");
    assert_eq!(
        nearest(&text("0x61", "0x022")).1,
        "ARM implementer 0x61 part 0x22 is not known: no preset; nearest is neoverse-n1"
    );
}

#[test]
fn what_is_no_known_cpu_says_so() {
    let riscv = "processor\t: 0\nhart\t\t: 1\nisa\t\t: rv64imafdc\nmmu\t\t: sv39\nuarch\t\t: sifive,u74-mc\n";
    for text in [riscv, "", "vendor_id : GenuineIntel\ncpu family : x\n"] {
        assert_eq!(CpuId::from_cpuinfo(text), CpuId::Unknown);
        assert_eq!(nearest(text), ("skylake", "this CPU is not known: no preset; skylake stands in".into()));
    }
}

proptest! {
    #[test]
    fn every_cpu_has_a_preset_and_one_line(family in any::<u32>(), model in any::<u32>(), arm in any::<bool>()) {
        let vendors = ["GenuineIntel", "AuthenticAMD", "HygonGenuine", "CentaurHauls"];
        let cpu = match arm {
            true => CpuId::Arm { implementer: family % 0x80, part: model % 0x1000 },
            false => CpuId::X86 {
                vendor: vendors[(family % 4) as usize].into(),
                family: family % 30,
                model: model % 256,
                stepping: model >> 28,
                name: String::new(),
                amx: model & 1 << 9 != 0,
            },
        };
        let (name, reason) = nearest_preset(&cpu);
        prop_assert!(preset(name).is_ok());
        prop_assert!(reason.contains(name) && !reason.contains('\n'));
    }

    #[test]
    fn any_text_may_stand_for_cpuinfo(
        lines in proptest::collection::vec(
            (
                proptest::sample::select(vec!["vendor_id", "cpu family", "model", "CPU implementer", "CPU part", "x"]),
                proptest::sample::select(vec![":", "\t: ", "", " : 0x"]),
                prop_oneof![".{0,8}", any::<u64>().prop_map(|n| n.to_string())],
            ),
            0..8,
        ),
    ) {
        let text: String = lines.iter().map(|(key, colon, value)| format!("{key}{colon}{value}\n")).collect();
        prop_assert!(preset(nearest(&text).0).is_ok());
    }
}
