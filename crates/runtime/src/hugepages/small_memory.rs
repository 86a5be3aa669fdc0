//! Why memory of a process is in small pages, and where.

use std::collections::BTreeMap;

use lookaside_host::{free_huge_blocks, Process, TransparentHugePages, Vma};
use serde::Serialize;

use super::collapse::switched_off;
use super::error::HugePageError;
use super::pages::{area, windows_of};
use super::windows::{FitWindow, MappedArea, Unfit, WINDOW_BYTES, WINDOW_PAGES};
use crate::bake::PAGE_BYTES;

/// Bytes of the largest mapping whose pages are looked at: 4,096 calls of some 70 µs. Programs reserve terabytes.
const MOST_SCANNED: u64 = 64 << 30;

/// Why memory is in small pages (Documentation/admin-guide/mm/transhuge.rst).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SmallReason {
    /// It lies in no whole 2 MiB of its mapping.
    Alignment,
    /// More small pages of its 2 MiB are empty than khugepaged fills up (`max_ptes_none`).
    Sparse,
    /// The system gives no huge pages (`enabled` is `never`).
    Never,
    /// The system gives them to who asks (`enabled` is `madvise`), and the program does not.
    NotAsked,
    /// The program excluded it (`MADV_NOHUGEPAGE`).
    Excluded,
    /// Huge pages are switched off for the process (`PR_SET_THP_DISABLE`).
    SwitchedOff,
    /// The system has no free 2 MiB in one piece.
    Fragmented,
    /// Nothing stands against it: khugepaged has not come to it yet.
    NotYet,
    /// It is a file's.
    File,
    /// It is shared.
    Shared,
    /// Stacks, locked and watched memory.
    Other,
}

impl SmallReason {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Alignment,
        Self::Sparse,
        Self::Never,
        Self::NotAsked,
        Self::Excluded,
        Self::SwitchedOff,
        Self::Fragmented,
        Self::NotYet,
        Self::File,
        Self::Shared,
        Self::Other,
    ];

    /// In one word, for a table: the four that somebody set are `policy`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Alignment => "alignment",
            Self::Sparse => "sparse",
            Self::Never | Self::NotAsked | Self::Excluded | Self::SwitchedOff => "policy",
            Self::Fragmented => "fragmented",
            Self::NotYet => "khugepaged",
            Self::File => "file",
            Self::Shared => "shared",
            Self::Other => "other",
        }
    }

    /// As JSON and OpenMetrics have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::NotAsked => "not-asked",
            Self::Excluded => "excluded",
            Self::SwitchedOff => "switched-off",
            Self::NotYet => "not-yet",
            other => other.word(),
        }
    }
}

/// What the system's settings allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HugePageRules {
    /// What of `always`, `madvise` and `never` holds for pages of 2 MiB.
    pub enabled: String,
    /// Empty small pages of a huge one that khugepaged fills up at most.
    pub most_empty: u32,
    /// Free pieces of 2 MiB; `None` = not known.
    pub free_blocks: Option<u64>,
}

impl HugePageRules {
    /// As they are here now.
    pub fn here() -> Self {
        let settings = TransparentHugePages::here();
        let chosen = |setting: &str| settings.chosen(setting).ok().flatten();
        let of_size = chosen("hugepages-2048kB/enabled").filter(|word| word != "inherit");
        let most_empty = settings.text("khugepaged/max_ptes_none").ok().and_then(|text| text.trim().parse().ok());
        Self {
            enabled: of_size.or_else(|| chosen("enabled")).unwrap_or_else(|| "never".into()),
            most_empty: most_empty.unwrap_or(WINDOW_PAGES - 1),
            free_blocks: free_huge_blocks(),
        }
    }
}

/// A part of a process's memory, and what of it is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPart {
    /// First byte.
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
    /// Bytes in memory.
    pub resident_bytes: u64,
    /// Of those, bytes in huge pages.
    pub huge_bytes: u64,
}

/// A process's memory in small pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SmallMemory {
    /// Bytes in small pages, by why they are; 0 is left out.
    pub bytes_by_reason: BTreeMap<SmallReason, u64>,
    /// All of its memory, by address; windows in huge pages are parts of their own.
    pub parts: Vec<MemoryPart>,
}

impl SmallMemory {
    /// Looks at a process. Where the kernel does not show its pages (before Linux 6.7), parts and reasons are those of
    /// whole mappings.
    ///
    /// # Errors
    /// There is no such process, or it may not be looked at.
    pub fn of(pid: u32, rules: &HugePageRules) -> Result<Self, HugePageError> {
        let vmas = Process::of(pid).smaps().map_err(|e| HugePageError::Bad(format!("process {pid}: {e}")))?;
        let areas: Vec<MappedArea> = vmas.iter().map(area).collect();
        let scanned = |area: &MappedArea| {
            let unfit = area.unfit.or_else(|| (!is_scanned(area)).then_some(Unfit::Special));
            MappedArea { unfit, ..area.clone() }
        };
        let windows = windows_of(pid, &areas.iter().map(scanned).collect::<Vec<_>>()).ok();
        Ok(Self::made_of(&vmas, &areas, windows.as_deref(), rules, switched_off(pid)))
    }

    /// The reason of most of it.
    pub fn main_reason(&self) -> Option<SmallReason> {
        self.bytes_by_reason.iter().max_by_key(|(_, bytes)| **bytes).map(|(reason, _)| *reason)
    }

    fn made_of(
        vmas: &[Vma],
        areas: &[MappedArea],
        windows: Option<&[FitWindow]>,
        rules: &HugePageRules,
        switched_off: bool,
    ) -> Self {
        let mut small = Self::default();
        for (index, (vma, area)) in vmas.iter().zip(areas).enumerate() {
            let its: Option<Vec<&FitWindow>> = windows
                .filter(|_| is_scanned(area))
                .map(|all| all.iter().filter(|window| window.area == index).collect());
            small.add_parts(vma, its.as_deref());
            let mut left = vma.resident_bytes.saturating_sub(vma.huge_bytes());
            if let Some(reason) = reason_of_all(vma, area, rules, switched_off) {
                small.add(reason, left);
                continue;
            }
            match its {
                Some(its) => {
                    for window in its.iter().filter(|window| !window.is_huge()) {
                        let bytes = (u64::from(window.small_pages) * PAGE_BYTES).min(left);
                        left -= bytes;
                        small.add(reason_of_window(window, rules), bytes);
                    }
                    small.add(SmallReason::Alignment, left);
                }
                None => {
                    let outside = (vma.end - vma.start).saturating_sub(whole_windows(vma)).min(left);
                    small.add(SmallReason::Alignment, outside);
                    small.add(reason_without_windows(rules), left - outside);
                }
            }
        }
        small
    }

    fn add(&mut self, reason: SmallReason, bytes: u64) {
        if bytes > 0 {
            *self.bytes_by_reason.entry(reason).or_default() += bytes;
        }
    }

    /// A mapping, cut where huge pages begin and end.
    fn add_parts(&mut self, vma: &Vma, windows: Option<&[&FitWindow]>) {
        let huge: Vec<u64> =
            windows.into_iter().flatten().filter(|window| window.is_huge()).map(|window| window.start).collect();
        if huge.is_empty() {
            let (resident_bytes, huge_bytes) = (vma.resident_bytes, vma.huge_bytes());
            return self.parts.push(MemoryPart { start: vma.start, end: vma.end, resident_bytes, huge_bytes });
        }
        let small_bytes = vma.resident_bytes.saturating_sub(huge.len() as u64 * WINDOW_BYTES);
        let between = (vma.end - vma.start).saturating_sub(huge.len() as u64 * WINDOW_BYTES).max(1);
        // How small pages spread over what is between is not told: evenly.
        let part = |start: u64, end: u64| MemoryPart {
            start,
            end,
            resident_bytes: (small_bytes as f64 * (end - start) as f64 / between as f64) as u64,
            huge_bytes: 0,
        };
        let mut at = vma.start;
        for start in huge {
            if start > at {
                self.parts.push(part(at, start));
            }
            let (resident_bytes, huge_bytes) = (WINDOW_BYTES, WINDOW_BYTES);
            match self.parts.last_mut().filter(|last| last.huge_bytes > 0 && last.end == start) {
                Some(last) => {
                    last.end += WINDOW_BYTES;
                    last.resident_bytes += WINDOW_BYTES;
                    last.huge_bytes += WINDOW_BYTES;
                }
                None => self.parts.push(MemoryPart { start, end: start + WINDOW_BYTES, resident_bytes, huge_bytes }),
            }
            at = start + WINDOW_BYTES;
        }
        if at < vma.end {
            self.parts.push(part(at, vma.end));
        }
    }
}

/// Whether a mapping's pages are looked at.
fn is_scanned(area: &MappedArea) -> bool {
    area.resident_bytes > 0 && area.end - area.start <= MOST_SCANNED
}

/// The bytes of a mapping that lie in whole windows of it.
fn whole_windows(vma: &Vma) -> u64 {
    let first = vma.start.checked_next_multiple_of(WINDOW_BYTES).unwrap_or(u64::MAX);
    (vma.end & !(WINDOW_BYTES - 1)).saturating_sub(first)
}

/// Why all of a mapping is in small pages, whatever its pages are.
fn reason_of_all(vma: &Vma, area: &MappedArea, rules: &HugePageRules, switched_off: bool) -> Option<SmallReason> {
    match area.unfit {
        Some(Unfit::File) => return Some(SmallReason::File),
        Some(Unfit::Shared) if vma.is_file() && !vma.name.ends_with(" (deleted)") => return Some(SmallReason::File),
        Some(Unfit::Shared) => return Some(SmallReason::Shared),
        Some(Unfit::NoHugePage) => return Some(SmallReason::Excluded),
        Some(Unfit::Special | Unfit::Reserved | Unfit::Locked | Unfit::Watched) => return Some(SmallReason::Other),
        None => {}
    }
    match rules.enabled.as_str() {
        _ if switched_off => Some(SmallReason::SwitchedOff),
        "always" => None,
        "madvise" if vma.has_flag(&["hg"]) => None,
        "madvise" => Some(SmallReason::NotAsked),
        _ => Some(SmallReason::Never),
    }
}

fn reason_of_window(window: &FitWindow, rules: &HugePageRules) -> SmallReason {
    match WINDOW_PAGES.saturating_sub(window.small_pages) > rules.most_empty {
        true => SmallReason::Sparse,
        false => reason_without_windows(rules),
    }
}

fn reason_without_windows(rules: &HugePageRules) -> SmallReason {
    match rules.free_blocks {
        Some(0) => SmallReason::Fragmented,
        _ => SmallReason::NotYet,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn rules(enabled: &str) -> HugePageRules {
        HugePageRules { enabled: enabled.into(), most_empty: 511, free_blocks: Some(7) }
    }

    fn vma(start: u64, end: u64, name: &str, rights: &str, flags: &str, resident: u64) -> Vma {
        Vma {
            start: start * MIB,
            end: end * MIB,
            name: name.into(),
            rights: rights.into(),
            flags: flags.into(),
            resident_bytes: resident * MIB,
            ..Vma::default()
        }
    }

    fn window(start: u64, area: usize, small_pages: u32, huge_pages: u32) -> FitWindow {
        FitWindow { start: start * MIB, area, small_pages, huge_pages, swapped_pages: 0 }
    }

    fn small(vmas: &[Vma], windows: Option<&[FitWindow]>, rules: &HugePageRules, off: bool) -> Vec<(SmallReason, u64)> {
        let areas: Vec<MappedArea> = vmas.iter().map(area).collect();
        let small = SmallMemory::made_of(vmas, &areas, windows, rules, off);
        small.bytes_by_reason.iter().map(|(reason, bytes)| (*reason, bytes / MIB)).collect()
    }

    #[test]
    fn what_a_mapping_is_says_why_all_of_it_is_small() {
        let one = |name: &str, rights: &str, flags: &str, enabled: &str, off: bool| {
            small(&[vma(1, 9, name, rights, flags, 4)], None, &rules(enabled), off)[0].0
        };
        assert_eq!(one("/lib/x", "r-xp", "", "always", false), SmallReason::File);
        assert_eq!(one("/lib/x", "r--s", "", "always", false), SmallReason::File);
        assert_eq!(one("/dev/zero (deleted)", "rw-s", "", "always", false), SmallReason::Shared);
        assert_eq!(one("[stack]", "rw-p", "gd", "always", false), SmallReason::Other);
        assert_eq!(one("", "rw-p", "nh", "always", false), SmallReason::Excluded);
        assert_eq!(one("", "rw-p", "", "madvise", false), SmallReason::NotAsked);
        assert_eq!(one("", "rw-p", "hg", "never", false), SmallReason::Never);
        assert_eq!(one("", "rw-p", "hg", "madvise", true), SmallReason::SwitchedOff);
        assert_eq!(small(&[vma(1, 9, "", "rw-p", "hg", 0)], None, &rules("madvise"), false), []);
    }

    /// From 1 to 9 MiB there are three whole windows, from 2 to 8.
    #[test]
    fn windows_tell_edges_from_what_is_sparse_and_what_khugepaged_has_not_come_to() {
        let vmas = [Vma { anonymous_huge_bytes: 2 * MIB, ..vma(1, 9, "[heap]", "rw-p", "", 6) }];
        let windows = [window(2, 0, 0, 512), window(4, 0, 512, 0), window(6, 0, 256, 0)];
        let is = |rules: &HugePageRules| small(&vmas, Some(&windows), rules, false);
        let edges = (SmallReason::Alignment, 1);
        assert_eq!(is(&rules("always")), [edges, (SmallReason::NotYet, 3)]);
        let strict = HugePageRules { most_empty: 255, ..rules("always") };
        assert_eq!(is(&strict), [edges, (SmallReason::Sparse, 1), (SmallReason::NotYet, 2)]);
        let full = HugePageRules { free_blocks: Some(0), ..rules("always") };
        assert_eq!(is(&full), [edges, (SmallReason::Fragmented, 3)]);
        // Without a look at the pages: 2 MiB outside of whole windows at most.
        assert_eq!(
            small(&vmas, None, &rules("always"), false),
            [(SmallReason::Alignment, 2), (SmallReason::NotYet, 2)]
        );
    }

    #[test]
    fn parts_are_cut_at_huge_pages() {
        let vmas = [Vma { anonymous_huge_bytes: 4 * MIB, ..vma(1, 9, "[heap]", "rw-p", "", 6) }];
        let areas: Vec<MappedArea> = vmas.iter().map(area).collect();
        let windows = [window(2, 0, 0, 512), window(4, 0, 0, 512), window(6, 0, 256, 0)];
        let parts = SmallMemory::made_of(&vmas, &areas, Some(&windows), &rules("always"), false).parts;
        let parts: Vec<[u64; 4]> = parts
            .iter()
            .map(|part| [part.start / MIB, part.end / MIB, part.resident_bytes >> 10, part.huge_bytes / MIB])
            .collect();
        assert_eq!(parts, [[1, 2, 512, 0], [2, 6, 4096, 4], [6, 9, 1536, 0]]);
    }

    /// 128 GiB, as a runtime reserves it: nobody goes through that, and what is in memory counts all the same.
    #[test]
    fn what_is_reserved_is_not_gone_through() {
        let vast = vma(2, 2 + (128 << 10), "", "rw-p", "", 5);
        let [of_vast, of_small, of_empty] = [vast.clone(), vma(2, 8, "", "rw-p", "", 5), vma(2, 8, "", "rw-p", "", 0)]
            .map(|vma| is_scanned(&area(&vma)));
        assert!(!of_vast && of_small && !of_empty);
        assert_eq!(small(&[vast], Some(&[]), &rules("always"), false), [(SmallReason::NotYet, 5)]);
    }

    #[test]
    fn reasons_have_names_of_their_own() {
        let mut names: Vec<&str> = SmallReason::ALL.iter().map(|reason| reason.name()).collect();
        for (reason, name) in SmallReason::ALL.iter().zip(&names) {
            assert_eq!(serde_json::to_string(reason).expect("a name"), format!("\"{name}\""));
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SmallReason::ALL.len());
    }

    #[test]
    fn this_process_has_small_memory_of_files() {
        let small = SmallMemory::of(std::process::id(), &HugePageRules::here()).expect("its own");
        assert!(small.bytes_by_reason.contains_key(&SmallReason::File), "{small:?}");
        assert!(small.parts.windows(2).all(|pair| pair[0].end <= pair[1].start));
    }
}
