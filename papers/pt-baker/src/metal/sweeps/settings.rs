//! The helper's settings that are measured: those of each figure.

use std::fmt;

/// NOPs after a touch: those of the model's Figure 6.10.
const NOPS: [u32; 5] = [0, 30, 100, 300, 1000];
/// Sleep after a round: those of the model's Figure 6.11, and none.
const SLEEPS_MICROSECONDS: [u32; 6] = [0, 100, 300, 1000, 3000, 10_000];
/// Pages from a touch to the next: around the eight entries of a line, and the 512 of a table (section 4.4.1).
const STRIDES_PAGES: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 512];
/// The stride of all other sweeps.
const LINE_PAGES: u32 = 8;
/// Sleep of the placement sweep. Figure 6.8 has sleep too: without, a helper on the program's CPU takes half of it.
const PLACED_SLEEP_MICROSECONDS: u32 = 1000;

/// Which of the paper's two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HelperLevel {
    /// Prefetches of the program's pages.
    User,
    /// The stock kernel reads the entries (`PAGEMAP_SCAN`): all of them, one after the other, so without stride or
    /// NOPs.
    Kernel,
}

/// Where the helper is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HelperPlace {
    /// On another core under the same last-level cache.
    OtherCore,
    /// On the other hardware thread of the program's core.
    Sibling,
    /// On the program's own CPU.
    Same,
}

/// One setting of the helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HelperSetting {
    /// Prefetches, or the kernel.
    pub level: HelperLevel,
    /// NOPs after a touch.
    pub nops: u32,
    /// Sleep after a round.
    pub sleep_microseconds: u32,
    /// Pages from a touch to the next.
    pub stride_pages: u32,
    /// Where.
    pub place: HelperPlace,
}

impl HelperSetting {
    /// Without pause, a touch a line of entries, on another core.
    pub(super) const fn plain(level: HelperLevel) -> Self {
        Self { level, nops: 0, sleep_microseconds: 0, stride_pages: LINE_PAGES, place: HelperPlace::OtherCore }
    }
}

impl fmt::Display for HelperSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.level {
            HelperLevel::User => write!(f, "prefetch, stride {}", self.stride_pages)?,
            HelperLevel::Kernel => f.write_str("scan")?,
        }
        if self.nops > 0 {
            write!(f, ", {} NOPs", self.nops)?;
        }
        if self.sleep_microseconds > 0 {
            write!(f, ", sleep {} µs", self.sleep_microseconds)?;
        }
        f.write_str(match self.place {
            HelperPlace::OtherCore => "",
            HelperPlace::Sibling => ", on the sibling",
            HelperPlace::Same => ", on the same CPU",
        })
    }
}

/// Every setting that is measured, once each.
pub(super) fn ways() -> Vec<HelperSetting> {
    let mut ways: Vec<HelperSetting> = Vec::new();
    for sweep in SWEEPS {
        for level in [HelperLevel::User, HelperLevel::Kernel] {
            for (_, way) in (sweep.points)(level) {
                if !ways.contains(&way) {
                    ways.push(way);
                }
            }
        }
    }
    ways
}

/// A figure's settings.
pub(super) struct SettingSweep {
    pub(super) name: &'static str,
    pub(super) x: &'static str,
    pub(super) points: fn(HelperLevel) -> Vec<(f64, HelperSetting)>,
}

/// The figures.
pub(super) const SWEEPS: [SettingSweep; 4] = [
    SettingSweep { name: "Figure 6.10, NOPs after a touch", x: "NOPs", points: by_nops },
    SettingSweep { name: "Figure 6.11, sleep after a round", x: "microseconds", points: by_sleep },
    SettingSweep { name: "section 4.4.1, stride from a touch to the next", x: "pages", points: by_stride },
    SettingSweep { name: "Figure 6.8, placement of the helper", x: "place", points: by_place },
];

pub(super) fn by_nops(level: HelperLevel) -> Vec<(f64, HelperSetting)> {
    let way = |nops: u32| (nops.into(), HelperSetting { nops, ..HelperSetting::plain(level) });
    if level == HelperLevel::User {
        NOPS.map(way).into()
    } else {
        Vec::new()
    }
}

pub(super) fn by_sleep(level: HelperLevel) -> Vec<(f64, HelperSetting)> {
    SLEEPS_MICROSECONDS
        .map(|sleep| (sleep.into(), HelperSetting { sleep_microseconds: sleep, ..HelperSetting::plain(level) }))
        .into()
}

pub(super) fn by_stride(level: HelperLevel) -> Vec<(f64, HelperSetting)> {
    let way = |stride_pages: u32| (stride_pages.into(), HelperSetting { stride_pages, ..HelperSetting::plain(level) });
    if level == HelperLevel::User {
        STRIDES_PAGES.map(way).into()
    } else {
        Vec::new()
    }
}

pub(super) fn by_place(level: HelperLevel) -> Vec<(f64, HelperSetting)> {
    let way =
        |place| HelperSetting { sleep_microseconds: PLACED_SLEEP_MICROSECONDS, place, ..HelperSetting::plain(level) };
    [HelperPlace::OtherCore, HelperPlace::Sibling, HelperPlace::Same]
        .map(|place| (f64::from(place as u8), way(place)))
        .into()
}
