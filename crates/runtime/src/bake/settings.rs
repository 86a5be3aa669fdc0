//! What a baker is told: the parameters of the paper (section 4.4), and how they are written.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;

use super::error::BakeError;
use super::module;

/// How page-table entries are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BakeBackend {
    /// A load of each page's first byte (Algorithm 2). Its data come into the caches too, and a page that has no frame
    /// gets one.
    Load,
    /// A prefetch of it (Algorithm 2): never faults.
    Prefetch(Hint),
    /// Our kernel module reads every n-th entry (Algorithms 3 and 4): no data.
    Module,
    /// The kernel reads the entries for `PAGEMAP_SCAN` (Linux 6.7 and later): no data, all pages.
    Scan,
    /// The kernel reads the entries for `mincore`: no data, all pages.
    Mincore,
}

/// Cache level that a prefetch asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hint {
    /// All levels.
    T0,
    /// The second and beyond.
    T1,
    /// The third and beyond; the second where there is no such instruction.
    T2,
}

/// Where the helper thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// On another core under the same last-level cache, if there is one that the program may use; else wherever the
    /// scheduler puts it (section 4.4.5). For another process's memory: wherever the scheduler puts it under the
    /// last-level cache of the CPU that the process last ran on.
    Auto,
    /// On the other hardware thread of the core that starts it.
    Sibling,
    /// On this CPU.
    Cpu(u32),
}

/// Largest stride in pages: 1 GiB of base pages.
const MOST_STRIDE_PAGES: u32 = 1 << 18;
/// Most NOPs between touches; the paper tries up to 1000 (Figure 6.10).
const MOST_NOPS: u32 = 1 << 20;
/// Longest sleep between rounds.
const MOST_SLEEP: Duration = Duration::from_secs(60);

/// Share of a CPU that `auto` uses at most, unless another is given.
const AUTO_SHARE: f64 = 0.5;

/// The parameters of a baker. [`Settings::from_str`] reads them as they are written on a command line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Settings {
    /// It paces itself by the time that its own touches take, and switches itself off where baking does not pay; by the
    /// kernel module where that is loaded, else by `backend`, a prefetch. For a program's own memory.
    pub auto: bool,
    /// How entries are touched.
    pub backend: BakeBackend,
    /// Pages from one touch to the next: 8 entries of 8 bytes are one 64-byte line (section 4.4.1). The stock kernel's
    /// calls (scan, mincore) read every entry and have none.
    pub stride_pages: u32,
    /// NOP instructions after each touch; not for scan and mincore.
    pub nops: u32,
    /// Pause after each round.
    pub sleep: Duration,
    /// Where the helper runs.
    pub placement: Placement,
    /// The helper uses at most this share of a CPU, by its CPU time: above 0, at most 1. Pauses are put in where it
    /// would be more.
    pub cpu_share: f64,
}

impl Default for Settings {
    /// Prefetches, every eighth page, on another core, no pauses.
    fn default() -> Self {
        Self {
            auto: false,
            backend: BakeBackend::Prefetch(Hint::T0),
            stride_pages: 8,
            nops: 0,
            sleep: Duration::ZERO,
            placement: Placement::Auto,
            cpu_share: 1.0,
        }
    }
}

impl Settings {
    /// Whether all of them can be.
    ///
    /// # Errors
    /// The first one that is out of range, with its range.
    pub fn check(&self) -> Result<(), BakeError> {
        let bad = |text: String| Err(BakeError::Setting(text));
        if self.auto && !(matches!(self.backend, BakeBackend::Prefetch(_)) && self.sleep.is_zero()) {
            return bad("auto: begins with a prefetch, and chooses the sleep itself".into());
        }
        if self.stride_pages == 0 || self.stride_pages > MOST_STRIDE_PAGES {
            return bad(format!("stride={}: 1 to {MOST_STRIDE_PAGES} pages are possible", self.stride_pages));
        }
        let most_nops = if self.backend == BakeBackend::Module { module::MOST_NOPS } else { MOST_NOPS };
        if self.nops > most_nops {
            return bad(format!("nops={}: at most {most_nops} are possible", self.nops));
        }
        if self.sleep > MOST_SLEEP {
            return bad(format!("sleep={:?}: at most {MOST_SLEEP:?} are possible", self.sleep));
        }
        check_share(self.cpu_share)
    }

    /// Whether they reach other processes' tables.
    ///
    /// # Errors
    /// They do not; which do.
    pub(crate) fn check_reach(&self) -> Result<(), BakeError> {
        let name = match (self.auto, self.backend) {
            (false, BakeBackend::Module | BakeBackend::Scan) => return Ok(()),
            (false, backend) => backend.to_string(),
            (true, _) => "auto".into(),
        };
        let text = format!("{name}: reaches only the program's own memory; scan and module reach other processes");
        Err(BakeError::Setting(text))
    }
}

/// Whether it can be a share of a CPU.
pub(crate) fn check_share(share: f64) -> Result<(), BakeError> {
    if share > 0.0 && share <= 1.0 {
        return Ok(());
    }
    Err(BakeError::Setting(format!("share={share}: above 0 and at most 1 is possible")))
}

impl FromStr for Settings {
    type Err = BakeError;

    /// `auto[,cpu=…][,share=0.5]`, or
    /// `BACKEND[,stride=PAGES][,nops=N][,sleep=TIME][,cpu=auto|sibling|NUMBER][,share=0.5]`, where BACKEND is `load`,
    /// `prefetch`, `prefetch:t0` (t1, t2), `module`, `scan` or `mincore`, and TIME has a unit: `500us`, `2ms`, `1s`.
    fn from_str(text: &str) -> Result<Self, BakeError> {
        let mut parts = text.split(',');
        let backend = parts.next().unwrap_or_default();
        let auto = backend == "auto";
        let mut settings = match auto {
            true => Self { auto, cpu_share: AUTO_SHARE, ..Self::default() },
            false => Self { backend: read_backend(backend)?, ..Self::default() },
        };
        let kernel = matches!(settings.backend, BakeBackend::Scan | BakeBackend::Mincore);
        let mut given: Vec<&str> = Vec::new();
        for part in parts {
            let (name, value) = part.split_once('=').ok_or_else(|| {
                BakeError::Setting(format!(
                    "`{part}`: a setting is written NAME=VALUE; there are stride, nops, sleep, cpu, share"
                ))
            })?;
            if given.contains(&name) {
                return Err(BakeError::Setting(format!("{name}: given twice")));
            }
            given.push(name);
            if kernel && matches!(name, "stride" | "nops") {
                return Err(BakeError::Setting(format!(
                    "{name}: {backend} reads every entry, one after the other; leave it out"
                )));
            }
            if auto && matches!(name, "stride" | "nops" | "sleep") {
                return Err(BakeError::Setting(format!("{name}: auto chooses it; name a backend to set it yourself")));
            }
            match name {
                "stride" => settings.stride_pages = number(name, value)?,
                "nops" => settings.nops = number(name, value)?,
                "sleep" => settings.sleep = read_time(value)?,
                "cpu" => {
                    settings.placement = match value {
                        "auto" => Placement::Auto,
                        "sibling" => Placement::Sibling,
                        cpu => Placement::Cpu(number(name, cpu)?),
                    }
                }
                "share" => settings.cpu_share = number(name, value)?,
                _ => {
                    return Err(BakeError::Setting(format!(
                        "`{name}`: no such setting; there are stride, nops, sleep, cpu, share"
                    )))
                }
            }
        }
        settings.check()?;
        Ok(settings)
    }
}

impl fmt::Display for BakeBackend {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Load => "load",
            Self::Prefetch(Hint::T0) => "prefetch:t0",
            Self::Prefetch(Hint::T1) => "prefetch:t1",
            Self::Prefetch(Hint::T2) => "prefetch:t2",
            Self::Module => "module",
            Self::Scan => "scan",
            Self::Mincore => "mincore",
        })
    }
}

/// As [`Settings::from_str`] reads it, all settings named that differ from the backend's own.
impl fmt::Display for Settings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = Self::default();
        match self.auto {
            true => out.write_str("auto")?,
            false => write!(out, "{}", self.backend)?,
        }
        if self.stride_pages != usual.stride_pages {
            write!(out, ",stride={}", self.stride_pages)?;
        }
        if self.nops != usual.nops {
            write!(out, ",nops={}", self.nops)?;
        }
        if self.sleep != usual.sleep {
            write!(out, ",sleep={}ns", self.sleep.as_nanos())?;
        }
        match self.placement {
            Placement::Auto => {}
            Placement::Sibling => write!(out, ",cpu=sibling")?,
            Placement::Cpu(cpu) => write!(out, ",cpu={cpu}")?,
        }
        if self.cpu_share != usual.cpu_share {
            write!(out, ",share={}", self.cpu_share)?;
        }
        Ok(())
    }
}

fn read_backend(text: &str) -> Result<BakeBackend, BakeError> {
    Ok(match text {
        "load" => BakeBackend::Load,
        "prefetch" | "prefetch:t0" => BakeBackend::Prefetch(Hint::T0),
        "prefetch:t1" => BakeBackend::Prefetch(Hint::T1),
        "prefetch:t2" => BakeBackend::Prefetch(Hint::T2),
        "module" => BakeBackend::Module,
        "scan" => BakeBackend::Scan,
        "mincore" => BakeBackend::Mincore,
        _ => {
            return Err(BakeError::Setting(format!(
            "`{text}`: no such backend; there are auto, load, prefetch (prefetch:t0, :t1, :t2), module, scan, mincore"
        )))
        }
    })
}

fn number<T: FromStr>(name: &str, text: &str) -> Result<T, BakeError> {
    text.parse().map_err(|_| BakeError::Setting(format!("{name}={text}: not a number that it can be")))
}

fn read_time(text: &str) -> Result<Duration, BakeError> {
    let bad = || BakeError::Setting(format!("sleep={text}: a time is a whole number with its unit: 500us, 2ms, 1s"));
    let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
    let count: u64 = text[..digits].parse().map_err(|_| bad())?;
    let nanos = match &text[digits..] {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(bad()),
    };
    count.checked_mul(nanos).map(Duration::from_nanos).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        text.parse::<Settings>().expect_err(text).to_string()
    }

    #[test]
    fn what_is_written_is_read() {
        let settings: Settings =
            "prefetch:t1,stride=512,nops=10,sleep=500us,cpu=3,share=0.25".parse().expect("settings");
        let expected = Settings {
            auto: false,
            backend: BakeBackend::Prefetch(Hint::T1),
            stride_pages: 512,
            nops: 10,
            sleep: Duration::from_micros(500),
            placement: Placement::Cpu(3),
            cpu_share: 0.25,
        };
        assert_eq!(settings, expected);
        assert_eq!("prefetch".parse::<Settings>().expect("settings"), Settings::default());
        for text in [
            "load",
            "prefetch:t2,nops=7",
            "module,stride=512,nops=9",
            "scan,sleep=2000000ns,cpu=sibling",
            "mincore,share=0.5",
            "auto,share=0.5",
            "auto,cpu=1,share=0.25",
        ] {
            assert_eq!(text.parse::<Settings>().expect("settings").to_string(), text);
        }
    }

    #[test]
    fn auto_uses_half_a_cpu_unless_told_otherwise_and_reaches_no_other_process() {
        let read = |text: &str| text.parse::<Settings>().expect(text);
        let auto = Settings { auto: true, cpu_share: AUTO_SHARE, ..Settings::default() };
        assert_eq!((read("auto"), read("auto,share=1").cpu_share), (auto.clone(), 1.0));
        assert!(auto.check_reach().expect_err("its own only").to_string().starts_with("auto: reaches only"));
        assert!(read("mincore").check_reach().expect_err("its own only").to_string().starts_with("mincore: "));
        assert_eq!((read("scan").check_reach(), read("module").check_reach()), (Ok(()), Ok(())));
        let scans = Settings { backend: BakeBackend::Scan, ..auto };
        assert!(scans.check().expect_err("no times").to_string().contains("begins with a prefetch"));
    }

    #[test]
    fn the_greatest_and_the_least_that_can_be_are_taken() {
        for text in [
            "load,stride=262144,nops=1048576,sleep=60s",
            "module,nops=65536,stride=1",
            "prefetch,share=1",
            "scan,share=0.000001,sleep=0ns",
        ] {
            assert!(text.parse::<Settings>().is_ok(), "{text}");
        }
        let sleep = |text: &str| format!("load,sleep={text}").parse::<Settings>().expect(text).sleep;
        assert_eq!(
            ["7ns", "7us", "7ms", "7s"].map(sleep),
            [7, 7_000, 7_000_000, 7_000_000_000].map(Duration::from_nanos)
        );
        assert!(refused("load,stride=262145").contains("1 to 262144"));
        assert!(refused("load,sleep=60000000001ns").contains("at most 60s"));
        assert!(refused("load,sleep=7m").contains("unit"));
    }

    #[test]
    fn mistakes_get_a_line_each() {
        assert!(refused("warm").contains("no such backend"));
        assert!(refused("").contains("no such backend"));
        assert!(refused("load,stride").contains("NAME=VALUE"));
        assert!(refused("load,step=2").contains("no such setting"));
        assert!(refused("load,stride=0").contains("1 to 262144"));
        assert!(refused("load,stride=-1").contains("not a number"));
        assert!(refused("load,stride=1,stride=2").contains("twice"));
        assert!(refused("scan,stride=8").contains("every entry"));
        assert!(refused("load,nops=1048577").contains("at most 1048576"));
        assert!(refused("module,nops=65537").contains("at most 65536"));
        assert!(refused("load,sleep=5").contains("unit"));
        assert!(refused("load,sleep=61s").contains("at most 60s"));
        assert!(refused("load,sleep=18446744073709551615s").contains("unit"));
        assert!(refused("load,share=0").contains("above 0"));
        assert!(refused("load,share=NaN").contains("above 0"));
        assert!(refused("auto,stride=8").contains("auto chooses it"));
        assert!(refused("auto,sleep=1ms").contains("auto chooses it"));
        assert!(refused("auto,share=2").contains("share=2"));
        assert!(refused("auto,speed=2").contains("no such setting"));
        assert!(refused("autos").contains("no such backend"));
        assert!(refused("load,cpu=first").contains("not a number"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused_in_one_line(text in "\\PC{0,40}") {
            if let Err(error) = text.parse::<Settings>() {
                proptest::prop_assert!(!error.to_string().contains('\n'));
            }
        }
    }
}
