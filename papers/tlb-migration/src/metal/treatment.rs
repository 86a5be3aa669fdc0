//! How pages are accessed, what the new CPU's caches hold, and what is done for the first accesses.

use schemars::JsonSchema;
use serde::Serialize;

/// How pages are accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MovePattern {
    /// In ascending order, as the paper's benchmark does; no address needs what another access reads, so that the
    /// processor overlaps them.
    Sweep,
    /// In an order by the seed; each address is what the access before it reads, so that latencies add up.
    Chase,
}

/// What the new CPU's caches hold when the thread comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Caches {
    /// What the thread left there when it was there last: its data and its page-table lines.
    Kept,
    /// Other data: a buffer of twice their size was read there before.
    Thrashed,
}

/// What is done for the first accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Treatment {
    /// Nothing: all translations are lost.
    Nothing,
    /// A prefetch of each page, at another line than is accessed.
    Direct,
    /// A prefetch for each 64-byte line of page-table entries, of one page in eight at most: where there is one, of a
    /// page that is not accessed.
    Indirect,
    /// Nothing, and the same addresses in 2 MiB pages.
    Huge,
    /// Nothing, and nothing needed: the thread was there before, and its translations are still there. A control, that
    /// is no remedy.
    Returns,
}

impl MovePattern {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Sweep, Self::Chase];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sweep => "sweep",
            Self::Chase => "chase",
        }
    }
}

impl Caches {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Kept, Self::Thrashed];

    /// In two words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kept => "caches kept",
            Self::Thrashed => "caches thrashed",
        }
    }
}

impl Treatment {
    /// All, without first.
    pub const ALL: [Self; 5] = [Self::Nothing, Self::Direct, Self::Indirect, Self::Huge, Self::Returns];
    /// Those that are held against nothing.
    pub const REMEDIES: [Self; 3] = [Self::Direct, Self::Indirect, Self::Huge];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Direct => "direct",
            Self::Indirect => "indirect",
            Self::Huge => "huge pages",
            Self::Returns => "returns",
        }
    }
}
