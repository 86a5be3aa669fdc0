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
