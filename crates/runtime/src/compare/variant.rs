//! The variants of a program that are compared, and what each needs of the system.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;

use lookaside_host::{kernel_version, TransparentHugePages};

use super::error::CompareError;
use super::preloaded_baker::PreloadedBaker;
use crate::bake::{BakeBackend, Settings};
use crate::hugepages::{
    self, harmless_filters, remote_collapse, CodeBudget, CollapseSide, CODE_FILTERS_VARIABLE, CODE_REPORT_VARIABLE,
    CODE_VARIABLE, CODE_WEIGHTS_VARIABLE,
};

/// Where the system says which memory gets huge pages, and for 2 MiB pages alone.
const THP: [&str; 2] = ["hugepages-2048kB/enabled", "enabled"];

/// One way to run the program.
#[derive(Clone, Debug, PartialEq)]
pub enum Variant {
    /// With small pages only: huge pages off by `prctl`. What all others are compared with.
    Base,
    /// The same again: a control. What it differs by is noise.
    NoThp,
    /// As the system's settings have it: nothing is switched.
    AsIs,
    /// With huge pages: on by `prctl`, and `malloc` asks for them where the system waits to be asked.
    Thp,
    /// Small pages but for what is asked for, and the windows that it is seen in most made huge.
    Huge(hugepages::HugePageSettings),
    /// Small pages but for what is asked for, and the windows of the plan in this file made huge.
    Planned(PathBuf),
    /// Small pages but for what is asked for, and code on huge pages, by the preloaded library.
    Text(CodeBudget),
    /// The same for the windows of the plan in this file.
    PlannedText(PathBuf),
    /// As base, and its page tables are read by the kernel, from outside.
    Scan(Settings),
    /// As base, with the baker in it, by the preloaded library: what `LOOKASIDE_BAKE` is set to.
    Inside(String),
}

/// How huge pages are switched by `prctl`, for the program and all that it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thp {
    Off,
    On,
    /// Off but where they are asked for, as a collapse does.
    Asked,
}

impl Thp {
    /// Switches them for the calling process. A system call and nothing else, for between fork and exec.
    pub(super) fn switch(self) -> std::io::Result<()> {
        /// `PR_THP_DISABLE_EXCEPT_ADVISED` of `linux/prctl.h`, since Linux 6.18.
        const EXCEPT_ADVISED: libc::c_ulong = 1 << 1;
        let (off, but): (libc::c_ulong, libc::c_ulong) = match self {
            Self::Off => (1, 0),
            Self::On => (0, 0),
            Self::Asked => (1, EXCEPT_ADVISED),
        };
        // SAFETY: takes numbers only.
        match unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, off, but, 0, 0) } {
            0 => Ok(()),
            // An older kernel: as the system has them. Where that is `always`, a note says so.
            _ if self == Self::Asked => Self::On.switch(),
            _ => Err(std::io::Error::last_os_error()),
        }
    }
}

/// Whether the system gives huge pages to all, and the kernel cannot keep them to what is asked for.
pub(super) fn gives_to_all() -> bool {
    gives_to_all_in(&TransparentHugePages::here(), kernel_version())
}

fn gives_to_all_in(settings: &TransparentHugePages, kernel: Option<(u32, u32)>) -> bool {
    let always = chosen(settings).is_some_and(|word| word == "always");
    always && kernel.is_some_and(|version| version < (6, 18))
}

impl fmt::Display for Variant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base => out.write_str("base"),
            Self::NoThp => out.write_str("nothp"),
            Self::AsIs => out.write_str("asis"),
            Self::Thp => out.write_str("thp"),
            Self::Huge(settings) => write!(out, "hugepages:{settings}"),
            Self::Planned(file) => write!(out, "hugepages:{}", file.display()),
            Self::Text(CodeBudget::All) => out.write_str("text"),
            Self::Text(budget) => write!(out, "text:{budget}"),
            Self::PlannedText(file) => write!(out, "text:{}", file.display()),
            Self::Scan(settings) => write!(out, "bake:{settings}"),
            Self::Inside(settings) => write!(out, "bake:{settings}"),
        }
    }
}

impl Variant {
    /// Reads a list as it is written on the command line: `base,thp,bake:prefetch,stride=16,sleep=1ms,bake:scan`. A
    /// part with a `=` belongs to the `bake:` before it. Base is there, and first, whether it is named or not.
    ///
    /// # Errors
    /// In a line: a variant that is none, a setting that cannot be, one that is there twice.
    pub fn list(text: &str) -> Result<Vec<Self>, CompareError> {
        let mut names: Vec<String> = Vec::new();
        for part in text.split(',') {
            match names.last_mut() {
                Some(before) if before.starts_with("bake:") && part.contains('=') && !part.starts_with("bake:") => {
                    before.push(',');
                    before.push_str(part);
                }
                _ => names.push(part.to_string()),
            }
        }
        let mut variants: Vec<Self> = Vec::new();
        for name in &names {
            let variant = Self::read(name)?;
            if variants.contains(&variant) {
                let line = format!("variants: {name} is listed twice; use nothp to repeat base as a control");
                return Err(CompareError::Bad(line));
            }
            variants.push(variant);
        }
        variants.retain(|variant| *variant != Self::Base);
        variants.insert(0, Self::Base);
        Ok(variants)
    }

    fn read(name: &str) -> Result<Self, CompareError> {
        Ok(match name {
            "base" => Self::Base,
            "nothp" => Self::NoThp,
            "asis" => Self::AsIs,
            "thp" => Self::Thp,
            "text" => Self::Text(CodeBudget::All),
            _ => {
                let bad = |e: String| CompareError::Bad(format!("variants: {name}: {e}"));
                if let Some(budget) = name.strip_prefix("text:") {
                    return match budget.parse() {
                        Ok(budget) => Ok(Self::Text(budget)),
                        Err(_) if hugepages::names_plan(budget) => Ok(Self::PlannedText(budget.into())),
                        Err(e) => Err(bad(format!("{e}, or a file of hugepages plan --text"))),
                    };
                }
                if let Some(settings) = name.strip_prefix("hugepages:") {
                    return Ok(match hugepages::names_plan(settings) {
                        true => Self::Planned(settings.into()),
                        false => {
                            Self::Huge(settings.parse().map_err(|e: hugepages::HugePageError| bad(e.to_string()))?)
                        }
                    });
                }
                let Some(text) = name.strip_prefix("bake:") else {
                    return Err(CompareError::Bad(format!(
                        "variants: `{name}`: no such variant; there are base, thp, nothp, asis, text, \
                         hugepages:auto:K, hugepages:PLAN.toml, bake:SETTINGS (as bake:auto, bake:scan,sleep=1ms)"
                    )));
                };
                let settings: Settings = text.parse().map_err(|e: crate::bake::BakeError| bad(e.to_string()))?;
                match settings.backend {
                    _ if settings.auto => Self::Inside(text.to_string()),
                    BakeBackend::Module | BakeBackend::Scan => Self::Scan(settings),
                    BakeBackend::Load => {
                        return Err(CompareError::Bad(format!(
                            "variants: {name}: loads fault pages in and are for programs that start the baker \
                             themselves; bake:prefetch never faults"
                        )))
                    }
                    BakeBackend::Prefetch(_) | BakeBackend::Mincore => Self::Inside(settings.to_string()),
                }
            }
        })
    }

    /// What it is, in a few words.
    pub fn words(&self) -> &'static str {
        match self {
            Self::Base => "small pages only (huge pages off by prctl)",
            Self::NoThp => "the same as base: a control",
            Self::AsIs => "as the system's settings have it",
            Self::Thp => "huge pages on, asked for by malloc",
            Self::Huge(_) => "small pages, except K windows with the most samples, chosen while it runs",
            Self::Planned(_) => "small pages, except the windows of a plan, found while it runs",
            Self::Text(_) => "small pages, except code: whole windows of the program and its libraries, before main",
            Self::PlannedText(_) => "small pages, except the windows of code of a plan, before main",
            Self::Scan(_) => "as base; page tables read by the kernel, from outside",
            Self::Inside(_) => "as base; baked by the preloaded library",
        }
    }

    /// How huge pages are to be switched; `None` = not at all.
    pub(super) fn thp(&self) -> Option<Thp> {
        match self {
            Self::Base | Self::NoThp | Self::Scan(_) | Self::Inside(_) => Some(Thp::Off),
            Self::Thp => Some(Thp::On),
            Self::Huge(_) | Self::Planned(_) | Self::Text(_) | Self::PlannedText(_) => Some(Thp::Asked),
            Self::AsIs => None,
        }
    }

    /// Environment variables that differ from ours.
    pub(super) fn environment(&self, inside: Option<&PreloadedBaker>) -> Vec<(&'static str, OsString)> {
        match (self, inside) {
            (Self::Thp, _) => {
                let tunables = std::env::var_os("GLIBC_TUNABLES");
                vec![("GLIBC_TUNABLES", joined(tunables, OsStr::new("glibc.malloc.hugetlb=1")))]
            }
            (Self::Inside(settings), Some(inside)) => vec![
                ("LD_PRELOAD", joined(std::env::var_os("LD_PRELOAD"), inside.file.as_os_str())),
                ("LOOKASIDE_BAKE", settings.into()),
                ("LOOKASIDE_BAKE_STATS", inside.report.clone().into_os_string()),
            ],
            (Self::Huge(_) | Self::Planned(_), Some(inside)) => vec![
                ("LD_PRELOAD", joined(std::env::var_os("LD_PRELOAD"), inside.file.as_os_str())),
                (remote_collapse::VARIABLE, remote_collapse::VALUE.into()),
            ],
            (Self::Text(_) | Self::PlannedText(_), Some(inside)) => {
                let (budget, weights) = match self {
                    Self::PlannedText(file) => inside.code_plans.get(file).map(|(budget, file)| (*budget, Some(file))),
                    Self::Text(budget) => Some((*budget, None)),
                    _ => None,
                }
                .unwrap_or((CodeBudget::All, None));
                let weights = weights.map(|file| (CODE_WEIGHTS_VARIABLE, file.clone().into_os_string()));
                let filters = harmless_filters().map(|count| (CODE_FILTERS_VARIABLE, count.to_string().into()));
                let set = [
                    ("LD_PRELOAD", joined(std::env::var_os("LD_PRELOAD"), inside.file.as_os_str())),
                    (CODE_VARIABLE, budget.to_string().into()),
                    (CODE_REPORT_VARIABLE, inside.report.clone().into_os_string()),
                ];
                set.into_iter().chain(weights).chain(filters).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether it puts code on huge pages.
    pub fn is_text(&self) -> bool {
        matches!(self, Self::Text(_) | Self::PlannedText(_))
    }

    /// Whether the preloaded library has to be there: to bake from inside, or to make huge pages where there is no
    /// right to do it from outside.
    pub fn needs_preload(&self) -> bool {
        match self {
            Self::Inside(_) | Self::Text(_) | Self::PlannedText(_) => true,
            Self::Huge(_) | Self::Planned(_) => hugepages::collapse_side() == Ok(CollapseSide::Inside),
            _ => false,
        }
    }
}

/// Both, parted by a colon.
fn joined(first: Option<OsString>, second: &OsStr) -> OsString {
    let mut all = first.filter(|first| !first.is_empty()).unwrap_or_default();
    if !all.is_empty() {
        all.push(":");
    }
    all.push(second);
    all
}

/// Finds out whether the system can give huge pages to those who ask.
///
/// # Errors
/// In a line: they are off, or not built in.
pub(super) fn check_thp() -> Result<(), CompareError> {
    check_thp_in(&TransparentHugePages::here())
}

fn check_thp_in(settings: &TransparentHugePages) -> Result<(), CompareError> {
    match chosen(settings).as_deref() {
        Some("always" | "madvise") => Ok(()),
        Some(word) => Err(CompareError::Bad(format!(
            "variant thp: huge pages are off on this system ({word}); as root: echo madvise > {}, or leave thp out",
            settings.path(THP[1]).display()
        ))),
        None => Err(CompareError::Bad("variant thp: this kernel has no transparent huge pages; leave thp out".into())),
    }
}

/// The word that counts: of the first setting that is there and does not say `inherit`.
fn chosen(settings: &TransparentHugePages) -> Option<String> {
    let mut words = THP.into_iter().filter_map(|setting| settings.chosen(setting).ok()?);
    words.find(|word| word != "inherit")
}

#[cfg(test)]
mod tests;
