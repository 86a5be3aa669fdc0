//! The preset nearest to real CPUs.

use lookaside_machine::{nearest_preset, preset, CpuId};
use proptest::prelude::*;

/// Preset and reason for a `/proc/cpuinfo` text.
fn nearest(cpuinfo: &str) -> (&'static str, String) {
    nearest_preset(&CpuId::from_cpuinfo(cpuinfo))
}

/// The head of an x86 `/proc/cpuinfo`.
fn x86(vendor: &str, family: u32, model: u32, name: &str) -> String {
    format!(
        "processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: {name}\n\
         stepping\t: 1\nmicrocode\t: 0x1000065\ncpu MHz\t\t: 2596.152\ncache size\t: 1024 KB\n\
         TLB size\t: 3584 4K pages\nclflush size\t: 64\n"
    )
}

#[test]
fn a_zen_4_server_in_a_virtual_machine() {
    let text = x86("AuthenticAMD", 25, 17, "AMD EPYC");
    let cpu = CpuId::X86 { vendor: "AuthenticAMD".into(), family: 25, model: 17, name: "AMD EPYC".into() };
    assert_eq!(CpuId::from_cpuinfo(&text), cpu);
    assert_eq!(
        nearest(&text),
        (
            "ryzen-5900x",
            "AMD family 25 model 17 (Zen 4): no preset; nearest is ryzen-5900x (Zen 3), L1 DTLB 64 instead of 72 \
             entries, L2 DTLB 2048 instead of 3072, L2 cache 512K instead of 1M"
                .into()
        )
    );
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
        (85, "skylake"),      // Platinum 8175M, 8259CL
        (158, "skylake"),     // i7-8700K
        (106, "golden-cove"), // Platinum 8375C
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
        ("0x41", "0xd40", "neoverse-n1"), // Graviton 3
        ("0x41", "0xd08", "neoverse-n1"), // Raspberry Pi 4
        ("0x61", "0x022", "neoverse-n1"), // Apple M1 under Linux
        ("0x41", "0xc09", "cortex-a9"),   // Sabre Lite
        ("0x69", "0xb11", "sa1100"),      // SA-1110
    ] {
        assert_eq!(nearest(&text(implementer, part)).0, expected, "{implementer} {part}");
    }
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
                vendor: vendors[(family % 4) as usize].into(), family: family % 30, model: model % 256, name: String::new(),
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
