//! Partitions of a TLB: which sets, and how many entries of each, the pages of each task may use.
//!
//! The planner writes them, the coloured heap hands out pages by them, the model judges them. As TOML:
//!
//! ```toml
//! machine = "xeon-e5-2650"
//! page_size = "4K"
//!
//! [[level]]
//! name = "l1d-4k"
//! sets = 16
//! ways = 4
//! index = "linear"
//!
//! [[partition]]
//! name = "T1"
//! pages = 4
//! contiguous_pages = 2
//! shares = [{ level = "l1d-4k", sets = [0, 1], ways = 2 }]
//! ```
//!
//! *Isolation*: where the shares of all partitions come to no more than the ways of each set, no partition's page ever takes
//! another's entry, whatever the replacement policy: a set that is never asked for more than it holds never replaces
//! (Panchamukhi 2014, chapter 3, whose colours are the partitions of one set each).

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::load::{read_text, table, typed};
use crate::{IndexFn, Machine, MachineError, PageSize, Serves};

/// A file of partitions, checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Partitions {
    /// Name of the machine they were made for.
    pub machine: String,
    /// Size of the pages that are coloured.
    pub page_size: PageSize,
    /// The TLB arrays that pages are chosen by, first level first.
    #[serde(rename = "level")]
    pub levels: Vec<ColorLevel>,
    /// The partitions.
    #[serde(default, rename = "partition")]
    pub partitions: Vec<Partition>,
}

/// A TLB array as colouring sees it: what a page number's set is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ColorLevel {
    /// The array's name in the machine.
    pub name: String,
    /// Its sets; a power of two, at most [`MAX_COLOR_SETS`].
    pub sets: u32,
    /// Ways of each set.
    pub ways: u32,
    /// Set of a page number.
    #[serde(default)]
    pub index: IndexFn,
}

/// What one task or program may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Partition {
    /// Its name, unique in the file.
    pub name: String,
    /// Most pages that it may have at once; absent = as many as its shares allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<u64>,
    /// Longest run of contiguous pages that it must hold; at least 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub contiguous_pages: u64,
    /// Sets that its pages lie in, level by level. A level that no share names does not bind it.
    #[serde(default)]
    pub shares: Vec<Share>,
}

/// Sets of one level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// The level's name.
    pub level: String,
    /// Set numbers; no set stands twice in a partition's shares of one level.
    pub sets: Vec<u32>,
    /// Most pages in each of these sets; absent = as many as wanted, which isolates from others but not from itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ways: Option<u32>,
}

/// Most sets of a level that is coloured by: beyond any data TLB that is known (Zen 4's second level has 256).
pub const MAX_COLOR_SETS: u32 = 4096;

/// Most levels that a page is chosen by.
pub const MAX_COLOR_LEVELS: usize = 4;

/// Name of the partition that a file gives the coloured heap's own pages, in place of what the others leave.
pub const BOOKKEEPING: &str = "bookkeeping";

fn one() -> u64 {
    1
}

// What serde calls takes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_one(pages: &u64) -> bool {
    *pages == 1
}

impl ColorLevel {
    /// The set that a page number maps to.
    pub fn set_of(&self, vpn: u64) -> u32 {
        self.index.set_of(vpn, self.sets)
    }
}

impl Machine {
    /// The data TLB arrays for pages of a size, as colouring sees them: first level first, in the order of the
    /// description. Fully associative arrays have one set. An array that coalesces takes its index of the number of the
    /// block of pages: its masks stand so many bits higher here. That pages of a block may share an entry is not
    /// counted on.
    pub fn color_levels(&self, page_size: PageSize) -> Vec<ColorLevel> {
        let mut tlbs: Vec<_> = self.tlbs.iter().collect();
        tlbs.sort_by_key(|tlb| tlb.level);
        tlbs.into_iter()
            .filter(|tlb| tlb.serves.contains(&Serves::Load) && tlb.page_sizes.contains(&page_size))
            .map(|tlb| ColorLevel {
                name: tlb.name.clone(),
                sets: tlb.sets(),
                ways: tlb.ways.count(tlb.entries),
                index: index_of_pages(tlb),
            })
            .collect()
    }
}

/// The set index of an array as a function of the page number.
fn index_of_pages(tlb: &crate::Tlb) -> IndexFn {
    match (tlb.sets(), tlb.coalesce_pages.trailing_zeros()) {
        (0 | 1, _) | (_, 0) => tlb.index.clone(),
        (sets, block_bits) => IndexFn::Masks(tlb.index.masks(sets).iter().map(|mask| mask << block_bits).collect()),
    }
}

impl Partitions {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// It cannot be read, is no TOML, or holds what cannot be; one line, with the key's path.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, MachineError> {
        let (name, text) = read_text(path.as_ref())?;
        Self::parse(&text, &name)
    }

    /// Reads and checks TOML; `file_name` is what errors call it.
    ///
    /// # Errors
    /// As [`Partitions::load`].
    pub fn parse(text: &str, file_name: &str) -> Result<Self, MachineError> {
        let all: Self = typed(table(text, file_name)?, file_name)?;
        all.check().map_err(|(at, why)| MachineError::new(file_name, &at, &why))?;
        Ok(all)
    }

    /// Writes TOML that [`Partitions::parse`] reads back to an equal value.
    pub fn to_toml(&self) -> String {
        // Every type here has a TOML form.
        toml::to_string(self).unwrap_or_default()
    }

    /// The partition of a name.
    pub fn partition(&self, name: &str) -> Option<&Partition> {
        self.partitions.iter().find(|partition| partition.name == name)
    }

    /// The level of a name.
    pub fn level(&self, name: &str) -> Option<&ColorLevel> {
        self.levels.iter().find(|level| level.name == name)
    }

    /// Sets of a level that are promised to more pages than they have ways: `(set, promised)`. A share without a
    /// number of ways promises all that the set has.
    pub fn oversubscribed(&self, level: &ColorLevel) -> Vec<(u32, u64)> {
        let mut promised = vec![0u64; level.sets as usize];
        for share in self.partitions.iter().flat_map(|partition| &partition.shares) {
            if share.level == level.name {
                for set in &share.sets {
                    if let Some(sum) = promised.get_mut(*set as usize) {
                        *sum += u64::from(share.ways.unwrap_or(level.ways));
                    }
                }
            }
        }
        let over = |(_, promised): &(u32, u64)| *promised > u64::from(level.ways);
        (0..).zip(promised).filter(over).collect()
    }

    fn check(&self) -> Result<(), (String, String)> {
        if self.levels.is_empty() || self.levels.len() > MAX_COLOR_LEVELS {
            return Err(("level".into(), format!("write 1 to {MAX_COLOR_LEVELS} levels, found {}", self.levels.len())));
        }
        for (i, level) in self.levels.iter().enumerate() {
            let at = |key: &str| format!("level[{i}].{key}");
            if self.levels[..i].iter().any(|before| before.name == level.name) {
                return Err((at("name"), format!("{:?} stands twice", level.name)));
            }
            if !level.sets.is_power_of_two() || level.sets > MAX_COLOR_SETS {
                return Err((at("sets"), format!("{} is no power of two up to {MAX_COLOR_SETS}", level.sets)));
            }
            if level.ways == 0 {
                return Err((at("ways"), "is 0".into()));
            }
            let bits = level.sets.trailing_zeros() as usize;
            if level.index.masks(level.sets).len() != bits {
                return Err((
                    at("index"),
                    format!("{} sets have {bits} masks, found {}", level.sets, level.index.masks(level.sets).len()),
                ));
            }
            if let Some(mask) = level.index.first_dependent() {
                return Err((
                    at(&format!("index[{mask}]")),
                    "is a sum of those before it: some sets would never be used".into(),
                ));
            }
        }
        for (i, partition) in self.partitions.iter().enumerate() {
            let at = |key: &str| format!("partition[{i}].{key}");
            if self.partitions[..i].iter().any(|before| before.name == partition.name) {
                return Err((at("name"), format!("{:?} stands twice", partition.name)));
            }
            if partition.contiguous_pages == 0 {
                return Err((at("contiguous_pages"), "is 0; at least 1".into()));
            }
            if partition.pages.is_some_and(|pages| pages < partition.contiguous_pages) {
                return Err((at("pages"), format!("are fewer than the {} contiguous", partition.contiguous_pages)));
            }
            self.check_shares(partition).map_err(|(key, why)| (at(&key), why))?;
        }
        Ok(())
    }

    fn check_shares(&self, partition: &Partition) -> Result<(), (String, String)> {
        let mut seen = std::collections::HashSet::new();
        for (i, share) in partition.shares.iter().enumerate() {
            let at = |key: &str| format!("shares[{i}].{key}");
            let Some(level) = self.level(&share.level) else {
                let known: Vec<&str> = self.levels.iter().map(|level| level.name.as_str()).collect();
                return Err((at("level"), format!("{:?} is no level here; known: {}", share.level, known.join(", "))));
            };
            if share.sets.is_empty() {
                return Err((at("sets"), "is empty".into()));
            }
            for set in &share.sets {
                if *set >= level.sets {
                    return Err((at("sets"), format!("{set} is beyond the last set, {}", level.sets - 1)));
                }
                if !seen.insert((&level.name, *set)) {
                    return Err((at("sets"), format!("set {set} of {} stands twice", level.name)));
                }
            }
            if share.ways.is_some_and(|ways| ways == 0 || ways > level.ways) {
                return Err((at("ways"), format!("must be 1 to {}, the ways of {}", level.ways, level.name)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{ColorLevel, Partition, Partitions, Share};
    use crate::{preset, IndexFn, PageSize};

    fn file() -> Partitions {
        let machine = preset("xeon-e5-2650").expect("a preset");
        Partitions {
            machine: machine.name.clone(),
            page_size: PageSize::K4,
            levels: machine.color_levels(PageSize::K4),
            partitions: vec![
                Partition {
                    name: "T1".into(),
                    pages: Some(4),
                    contiguous_pages: 2,
                    shares: vec![Share { level: "l1d-4k".into(), sets: vec![0, 1], ways: Some(2) }],
                },
                Partition { name: "T2".into(), contiguous_pages: 1, ..Partition::default() },
            ],
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let all = file();
        assert_eq!(all.levels.iter().map(|l| (l.sets, l.ways)).collect::<Vec<_>>(), [(16, 4), (128, 4)]);
        let text = all.to_toml();
        assert_eq!(Partitions::parse(&text, "t").expect(&text), all);
        assert_eq!(text.matches("contiguous_pages").count(), 1, "one page is the least, and not written: {text}");
        let [t1, t2] = ["T1", "T2"].map(|name| all.partition(name));
        assert_eq!((t1, t2, all.partition("T3")), (Some(&all.partitions[0]), Some(&all.partitions[1]), None));
        assert_eq!((all.level("stlb"), all.level("T1")), (Some(&all.levels[1]), None));
    }

    #[test]
    fn as_many_levels_sets_and_pages_as_there_may_be_are_taken_and_one_more_is_not() {
        let level = |at: usize, sets| ColorLevel { name: format!("l{at}"), sets, ways: 4, index: IndexFn::Linear };
        let said = |all: Partitions| Partitions::parse(&all.to_toml(), "p").map(|_| ()).map_err(|e| e.to_string());
        let levels = |count, sets| Partitions {
            levels: (0..count).map(|at| level(at, sets)).collect(),
            partitions: Vec::new(),
            ..file()
        };
        assert_eq!([levels(1, 1), levels(4, 4096)].map(said), [Ok(()), Ok(())]);
        assert_eq!(said(levels(5, 16)), Err("p: level: write 1 to 4 levels, found 5".into()));
        assert_eq!(said(levels(1, 8192)), Err("p: level[0].sets: 8192 is no power of two up to 4096".into()));
        let none = Partitions::parse("machine = \"m\"\npage_size = \"4K\"\nlevel = []", "p").expect_err("no levels");
        assert_eq!(none.to_string(), "p: level: write 1 to 4 levels, found 0");
        let mut all = file();
        (all.partitions[0].pages, all.partitions[0].shares[0].ways) = (Some(2), Some(4));
        all.partitions[0].shares[0].sets = vec![0, 15];
        assert_eq!(said(all.clone()), Ok(()), "two pages in a row, four ways, the last set");
        all.partitions[0].shares[0].ways = Some(0);
        let why = "p: partition[0].shares[0].ways: must be 1 to 4, the ways of l1d-4k";
        assert_eq!(said(all), Err(why.into()));
    }

    #[test]
    fn what_cannot_be_is_one_line_with_its_place() {
        let text = file().to_toml();
        for (from, to, said) in [
            ("sets = [0, 1]", "sets = [0, 16]", "p.toml: partition[0].shares[0].sets: 16 is beyond the last set, 15"),
            ("sets = [0, 1]", "sets = [1, 1]", "p.toml: partition[0].shares[0].sets: set 1 of l1d-4k stands twice"),
            ("ways = 2", "ways = 5", "p.toml: partition[0].shares[0].ways: must be 1 to 4, the ways of l1d-4k"),
            ("pages = 4", "pages = 1", "p.toml: partition[0].pages: are fewer than the 2 contiguous"),
            ("sets = 128", "sets = 96", "p.toml: level[1].sets: 96 is no power of two up to 4096"),
            ("name = \"T2\"", "name = \"T1\"", "p.toml: partition[1].name: \"T1\" stands twice"),
            ("name = \"stlb\"", "name = \"l1d-4k\"", "p.toml: level[1].name: \"l1d-4k\" stands twice"),
            ("ways = 4", "ways = 0", "p.toml: level[0].ways: is 0"),
            ("index = \"linear\"", "index = [1, 2, 4]", "p.toml: level[0].index: 16 sets have 4 masks, found 3"),
            (
                "index = \"linear\"",
                "index = [1, 2, 4, 6]",
                "p.toml: level[0].index[3]: is a sum of those before it: some sets would never be used",
            ),
            ("contiguous_pages = 2", "contiguous_pages = 0", "p.toml: partition[0].contiguous_pages: is 0; at least 1"),
            ("sets = [0, 1]", "sets = []", "p.toml: partition[0].shares[0].sets: is empty"),
            (
                "level = \"l1d-4k\"",
                "level = \"l3\"",
                "p.toml: partition[0].shares[0].level: \"l3\" is no level here; known: l1d-4k, stlb",
            ),
        ] {
            assert!(text.contains(from), "{text}");
            let error = Partitions::parse(&text.replacen(from, to, 1), "p.toml").expect_err(to);
            assert_eq!(error.to_string(), said);
        }
    }

    #[test]
    fn blocks_that_are_coalesced_lie_in_one_set() {
        // Four pages an entry, 128 sets; the index is taken of the block's number (crates/engine/SEMANTICS.md).
        let levels = preset("ryzen-5900x").expect("a preset").color_levels(PageSize::K4);
        let sets: Vec<u32> = [0, 3, 4, 7, 508, 511, 512].map(|page| levels[1].set_of(page)).into();
        assert_eq!((levels[0].set_of(77), sets), (0, vec![0, 0, 1, 1, 127, 127, 0]));
    }

    #[test]
    fn a_set_promised_twice_is_oversubscribed() {
        let mut all = file();
        let l1 = all.levels[0].clone();
        assert_eq!(all.oversubscribed(&l1), []);
        all.partitions[1].shares.push(Share { level: "l1d-4k".into(), sets: vec![1, 2], ways: None });
        assert_eq!(all.oversubscribed(&l1), [(1, 6)]);
    }
}
