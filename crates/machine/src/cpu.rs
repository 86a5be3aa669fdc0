//! Which preset is nearest to a CPU, and why, in a sentence to print.

/// What `/proc/cpuinfo` says of a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CpuId {
    /// An x86 CPU.
    X86 {
        /// As `vendor_id` writes it: `AuthenticAMD`, `GenuineIntel`.
        vendor: String,
        /// Family, extended family included.
        family: u32,
        /// Model, extended model included.
        model: u32,
        /// Stepping; 0 where the text has none. It tells Skylake servers from those after them.
        stepping: u32,
        /// `model name`; hypervisors make it up.
        name: String,
        /// Among its `flags` is `amx_tile`. Hypervisors may name an older model than the CPU is; what it can do is
        /// true.
        amx: bool,
    },
    /// An ARM CPU.
    Arm {
        /// Implementer code of the main ID register: 0x41 = Arm.
        implementer: u32,
        /// Part number of the first core listed.
        part: u32,
    },
    /// Neither, or no `/proc/cpuinfo`.
    Unknown,
}

impl CpuId {
    /// Reads the first CPU of a `/proc/cpuinfo` text; [`CpuId::Unknown`] of an empty one.
    pub fn from_cpuinfo(text: &str) -> Self {
        let value = |key: &str| {
            text.lines().find_map(|line| line.split_once(':').filter(|(k, _)| k.trim() == key)).map(|(_, v)| v.trim())
        };
        let decimal = |key: &str| value(key)?.parse::<u32>().ok();
        let hexadecimal = |key: &str| u32::from_str_radix(value(key)?.strip_prefix("0x")?, 16).ok();
        if let (Some(vendor), Some(family), Some(model)) = (value("vendor_id"), decimal("cpu family"), decimal("model"))
        {
            let name = value("model name").unwrap_or_default().to_string();
            let stepping = decimal("stepping").unwrap_or(0);
            let amx = value("flags").is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "amx_tile"));
            return Self::X86 { vendor: vendor.to_string(), family, model, stepping, name, amx };
        }
        match (hexadecimal("CPU implementer"), hexadecimal("CPU part")) {
            (Some(implementer), Some(part)) => Self::Arm { implementer, part },
            _ => Self::Unknown,
        }
    }
}

impl std::fmt::Display for CpuId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::X86 { vendor, family, model, .. } => {
                let vendor = match vendor.as_str() {
                    "AuthenticAMD" => "AMD",
                    "GenuineIntel" => "Intel",
                    "HygonGenuine" => "Hygon",
                    other => other,
                };
                write!(f, "{vendor} family {family} model {model}")
            }
            Self::Arm { implementer, part } => write!(f, "ARM implementer {implementer:#x} part {part:#x}"),
            Self::Unknown => f.write_str("this CPU"),
        }
    }
}

/// The preset nearest to a CPU, and a sentence that says how near it is.
pub fn nearest_preset(cpu: &CpuId) -> (&'static str, String) {
    let core = match cpu {
        CpuId::X86 { vendor, family, model, stepping, amx, .. } => match vendor.as_str() {
            "AuthenticAMD" | "HygonGenuine" => amd(*family, *model),
            "GenuineIntel" => match intel(*family, *model, *stepping) {
                named if *amx && named.preset != AMX.preset => AMX,
                named => named,
            },
            _ => SKYLAKE_GUESS,
        },
        CpuId::Arm { implementer, part } => arm(*implementer, *part),
        CpuId::Unknown => return ("skylake", "this CPU is not known: no preset; skylake stands in".into()),
    };
    let reason = match (core.name, core.differs) {
        ("", differs) => format!("{cpu} is not known: no preset; nearest is {}{differs}", preset_words(core.preset)),
        (name, "") => format!("{cpu} ({name}): preset {} has this core; clock and caches may differ", core.preset),
        (name, differs) => {
            format!("{cpu} ({name}): no preset; nearest is {}, {differs}", preset_words(core.preset))
        }
    };
    (core.preset, reason)
}

/// A core that is known, and the preset nearest to it.
#[derive(Clone, Copy)]
struct KnownCore {
    /// Empty = not known.
    name: &'static str,
    preset: &'static str,
    /// What the preset has instead; empty = the same TLBs.
    differs: &'static str,
}

const fn core(name: &'static str, preset: &'static str, differs: &'static str) -> KnownCore {
    KnownCore { name, preset, differs }
}

/// Of Intel's cores those since the Golden Cove of Sapphire Rapids have it.
const AMX: KnownCore =
    core("a name that is not its own: it has AMX", "golden-cove", "the first core with it; caches differ");
const SKYLAKE_GUESS: KnownCore = core("", "skylake", "");
const NEOVERSE_GUESS: KnownCore = core("", "neoverse-n1", "");

/// The preset with the name of its core.
fn preset_words(preset: &'static str) -> String {
    let core = match preset {
        "ryzen-5900x" => "Zen 3",
        "xeon-e5-2650" => "Sandy Bridge",
        "ice-lake-sp" => "Sunny Cove",
        _ => return preset.to_string(),
    };
    format!("{preset} ({core})")
}

// Family and model numbers as in Linux, arch/x86/kernel/cpu/amd.c and arch/x86/include/asm/intel-family.h; TLB sizes
// from the vendors' optimization manuals.
fn amd(family: u32, model: u32) -> KnownCore {
    match (family, model) {
        (23, 0..=0x2f) | (24, _) => core("Zen", "ryzen-5900x", "L2 DTLB 2048 entries in 16 ways instead of 1536 in 12"),
        (23, _) => core("Zen 2", "ryzen-5900x", "L2 DTLB 16 ways instead of 12"),
        (25, 0x10..=0x1f | 0x60..=0x7f | 0xa0..=0xaf) => core("Zen 4", "zen4", ""),
        (25, _) => core("Zen 3", "ryzen-5900x", ""),
        (26, 0x50..=0x5f | 0x80..=0xaf | 0xc0..=0xcf) => core("Zen 6", "zen5", "an older core"),
        (26, _) => core("Zen 5", "zen5", ""),
        (27.., _) => core("", "zen5", ", an older core"),
        _ => core("", "ryzen-5900x", ", a newer core with larger TLBs"),
    }
}

fn intel(family: u32, model: u32, stepping: u32) -> KnownCore {
    if family != 6 {
        return match family {
            0..=15 => core("", "xeon-e5-2650", ", a newer core with larger TLBs"),
            _ => core("", "golden-cove", ", an older core"),
        };
    }
    match model {
        0x2a | 0x2d => core("Sandy Bridge", "xeon-e5-2650", ""),
        0x3a | 0x3e => core("Ivy Bridge", "xeon-e5-2650", "whose TLBs are the same; caches differ"),
        0x1a | 0x1e | 0x1f | 0x2e | 0x25 | 0x2c | 0x2f => {
            core("Nehalem or Westmere", "xeon-e5-2650", "whose TLBs are alike; caches differ")
        }
        0x3c | 0x3f | 0x45 | 0x46 => core("Haswell", "skylake", "STLB 1536 entries in 12 ways instead of 1024 in 8"),
        0x3d | 0x47 | 0x4f | 0x56 => core("Broadwell", "skylake", "STLB 12 ways instead of 6"),
        0x4e | 0x5e | 0x8e | 0x9e | 0xa5 | 0xa6 => core("Skylake", "skylake", ""),
        // Skylake servers have stepping 4 at most, Cooper Lake 10 and 11.
        0x55 => match stepping {
            0..=4 => core("Skylake server", "cascade-lake", "whose TLBs are the same; L3 cache differs"),
            5..=9 => core("Cascade Lake", "cascade-lake", ""),
            _ => core("Cooper Lake", "cascade-lake", "whose TLBs are the same; L3 cache differs"),
        },
        0x66 => core("Cannon Lake", "skylake", "whose TLBs are alike; caches differ"),
        0x6a | 0x6c => core("Ice Lake server", "ice-lake-sp", ""),
        0x7d | 0x7e | 0xa7 => core("Sunny Cove", "ice-lake-sp", "whose TLBs are the same; caches differ"),
        0x8c | 0x8d => core("Willow Cove", "ice-lake-sp", "whose TLBs are alike; caches differ"),
        0x8f | 0x97 | 0x9a => core("Golden Cove", "golden-cove", ""),
        0xb7 | 0xba | 0xbf | 0xcf => core("Raptor Cove", "golden-cove", "whose TLBs are the same; caches differ"),
        0xaa | 0xac | 0xad | 0xae => core("Redwood Cove", "golden-cove", "whose TLBs are the same; caches differ"),
        0xbd | 0xc5 | 0xc6 | 0xb5 => core("Lion Cove", "golden-cove", "L1 DTLB 96 instead of 128 entries"),
        // Core 2 and before, and the first Atoms.
        0..=0x1d | 0x26..=0x29 => core("", "xeon-e5-2650", ", a newer core with larger TLBs"),
        // Small cores of the Silvermont line and after.
        0x37 | 0x4a | 0x4c | 0x4d | 0x5a | 0x5c | 0x5f | 0x7a | 0x86 | 0x96 | 0x9c | 0xaf | 0xb6 | 0xbe => {
            core("Atom", "skylake", "a larger core with other TLBs")
        }
        _ => core("", "golden-cove", ""),
    }
}

// Of Amazon's servers, Graviton 2 is Neoverse N1, Graviton 3 V1, Graviton 4 V2, and Graviton 5 V3.
/// Part numbers as in Linux, arch/arm64/include/asm/cputype.h; TLB sizes from Arm's technical reference manuals.
fn arm(implementer: u32, part: u32) -> KnownCore {
    match (implementer, part) {
        (0x44, 0xa11) => core("SA-1100", "sa1100", ""),
        (0x69, 0xb11) => core("SA-1110", "sa1100", "whose TLBs are the same"),
        (0x41, 0xc07) => core("Cortex-A7", "cortex-a7", ""),
        (0x41, 0xc05) => core("Cortex-A5", "cortex-a7", "main TLB 256 instead of 128 entries"),
        (0x41, 0xc09) => core("Cortex-A9", "cortex-a9", ""),
        (0x41, 0xc08) => core("Cortex-A8", "cortex-a9", "with a main TLB of 128 entries, which the A8 has not"),
        (0x41, 0xc0d | 0xc0e) => core("Cortex-A12 or A17", "cortex-a9", "main TLB 128 entries instead of 1024"),
        (0x41, 0xc0f) => core("Cortex-A15", "cortex-a9", "main TLB 128 entries instead of 512"),
        (0x41, 0xd03) => core("Cortex-A53", "neoverse-n1", "48 and 1280 TLB entries instead of 10 and 512"),
        (0x41, 0xd04) => core("Cortex-A35", "neoverse-n1", "48 and 1280 TLB entries instead of 10 and 512"),
        (0x41, 0xd05) => core("Cortex-A55", "neoverse-n1", "48 and 1280 TLB entries instead of 16 and 1024"),
        (0x41, 0xd07) => core("Cortex-A57", "neoverse-n1", "48 and 1280 TLB entries instead of 32 and 1024"),
        (0x41, 0xd08) => core("Cortex-A72", "neoverse-n1", "48 and 1280 TLB entries instead of 32 and 1024"),
        (0x41, 0xd0b) => core("Cortex-A76", "neoverse-n1", "whose TLBs are the same; caches differ"),
        (0x41, 0xd0c) => core("Neoverse N1", "neoverse-n1", ""),
        (0x41, 0xd40) => core("Neoverse V1", "neoverse-v1", ""),
        (0x41, 0xd49) => core("Neoverse N2", "neoverse-n1", "L1 DTLB 48 instead of 44 entries"),
        (0x41, 0xd4f) => core("Neoverse V2", "neoverse-v2", ""),
        (0x41, 0xd83 | 0xd84) => core("Neoverse V3", "neoverse-v2", "L1 DTLB 48 instead of 96 entries"),
        (0x41, 0xc00..=0xcff) => core("", "cortex-a9", ""),
        _ => NEOVERSE_GUESS,
    }
}
