//! What the experiments take as given, as the papers take it from data sheets: the geometry of both levels. It comes
//! from a description, or from the probe, which knows nothing of the experiments.

use lookaside_machine::{ColorLevel, Machine, PageSize};
use lookaside_probe::{
    first_level, gf2, given_first_level, given_second_level, second_level, until_two_agree, ChainBench, FoundLevel,
    Geometry, Halt, LevelMeter, LevelReport,
};

/// What the levels are called in reasons.
const FIRST: &str = "L1 DTLB";
/// See [`FIRST`].
const SECOND: &str = "L2 TLB";

/// Looks for a level.
type Find<'f> = dyn Fn(&mut ChainBench<'_>) -> Result<FoundLevel, Halt> + 'f;

/// A level that is known.
#[derive(Clone, Debug)]
pub struct KnownLevel {
    /// Sets, ways and index.
    pub geometry: Geometry,
    /// What a miss takes.
    pub level: LevelMeter,
}

/// Both levels, or why one is not known.
#[derive(Clone, Debug)]
pub struct ProbedLevels {
    /// The first level for data.
    pub first: Result<KnownLevel, String>,
    /// The second level.
    pub second: Result<KnownLevel, String>,
}

impl ProbedLevels {
    /// Looks for them; what it finds is put into `levels`, too. A level that its share of the time was too short for is
    /// not known, and the experiments go on.
    pub(crate) fn find(
        bench: &mut ChainBench<'_>,
        progress: &mut dyn FnMut(&str),
        levels: &mut Vec<LevelReport>,
    ) -> Result<Self, Halt> {
        let mut look = |number, what: &str, bench: &mut ChainBench<'_>, find: &Find<'_>| {
            progress(what);
            let (found, ticks) = match until_two_agree(bench, find) {
                Err(halt @ Halt::ShareUp(_)) => (FoundLevel::nothing(halt.to_string()), Vec::new()),
                found => found?,
            };
            levels.push(LevelReport::new(number, bench, &found, &ticks));
            Ok::<_, Halt>(found)
        };
        let first = array(&undetermined(FIRST), look(1, "geometry of the first level", bench, &first_level)?);
        let second = match &first {
            Ok(first) => {
                let find = |bench: &mut ChainBench<'_>| second_level(bench, &first.geometry, &first.level);
                array(&undetermined(SECOND), look(2, "geometry of the second level", bench, &find)?)
            }
            Err(reason) => Err(reason.clone()),
        };
        Ok(Self { first, second })
    }

    /// Takes them from a description; only what misses take is measured.
    pub(crate) fn given(
        bench: &mut ChainBench<'_>,
        machine: &Machine,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, Halt> {
        progress("what misses take");
        let levels = machine.color_levels(PageSize::K4);
        let unseen = |name: &str| format!("the {name} is not seen as {} describes it", machine.name);
        let [first, second] = [(0, FIRST), (1, SECOND)].map(|(at, name)| {
            levels.get(at).map(geometry).ok_or_else(|| format!("{} has no {name} for 4K pages", machine.name))
        });
        let first = match first {
            Ok(first) => array(&unseen(FIRST), given_first_level(bench, &first)?),
            Err(reason) => Err(reason),
        };
        let second = match (&first, &second) {
            (Ok(first), Ok(second)) => {
                array(&unseen(SECOND), given_second_level(bench, second, &first.geometry, &first.level)?)
            }
            (Err(reason), _) | (_, Err(reason)) => Err(reason.clone()),
        };
        Ok(Self { first, second })
    }
}

fn geometry(level: &ColorLevel) -> Geometry {
    let masks = if level.sets > 1 { gf2::reduce(&level.index.masks(level.sets)) } else { Vec::new() };
    Geometry { entries: level.sets * level.ways, ways: level.ways, sets: level.sets, masks }
}

fn undetermined(name: &str) -> String {
    format!("the {name}'s geometry is not determined")
}

/// A level; else what is missing, and why.
fn array(missing: &str, found: FoundLevel) -> Result<KnownLevel, String> {
    match (found.geometry.value(), found.level) {
        (Some(geometry), Some(level)) => Ok(KnownLevel { geometry: geometry.clone(), level }),
        _ => Err(format!("{missing}: {}", found.geometry.reason().unwrap_or_default())),
    }
}

impl KnownLevel {
    /// The geometry in words.
    pub fn words(&self) -> String {
        let Geometry { entries, ways, sets, .. } = self.geometry;
        match sets {
            1 => format!("{entries} entries, fully associative"),
            _ => format!("{entries} entries, {sets} sets of {ways} ways"),
        }
    }

    /// The set index in words.
    pub fn index_words(&self) -> String {
        let masks = &self.geometry.masks;
        let bits = |mask: &u64| {
            let bits = (0..u64::BITS).filter(|bit| mask >> bit & 1 == 1);
            bits.map(|bit| bit.to_string()).collect::<Vec<_>>().join("^")
        };
        match &masks[..] {
            [] => "one set: no bit chooses".into(),
            _ => format!("set by page-number bits {}", masks.iter().map(bits).collect::<Vec<_>>().join(" ")),
        }
    }
}
