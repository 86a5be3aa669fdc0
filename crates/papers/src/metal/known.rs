//! What the experiments take as given, as the papers take it from data sheets: the geometry of both levels. It comes
//! from the probe, which knows nothing of the experiments.

use lookaside_probe::{first_level, second_level, twice, Bench, FoundLevel, Geometry, Halt, Level};

/// A level that is known.
#[derive(Clone, Debug)]
pub(super) struct Array {
    pub(super) geometry: Geometry,
    pub(super) level: Level,
}

/// Both levels, or why one is not known.
pub(super) struct Known {
    pub(super) first: Result<Array, String>,
    pub(super) second: Result<Array, String>,
}

pub(super) fn find(bench: &mut Bench<'_>, progress: &mut dyn FnMut(&str)) -> Result<Known, Halt> {
    progress("geometry of the first level");
    let first = array("L1 DTLB", twice(bench, first_level)?.0);
    let second = match &first {
        Ok(first) => {
            progress("geometry of the second level");
            let found = twice(bench, |bench| second_level(bench, &first.geometry, &first.level))?.0;
            array("L2 TLB", found)
        }
        Err(reason) => Err(reason.clone()),
    };
    Ok(Known { first, second })
}

fn array(name: &str, found: FoundLevel) -> Result<Array, String> {
    match (found.geometry.value(), found.level) {
        (Some(geometry), Some(level)) => Ok(Array { geometry: geometry.clone(), level }),
        _ => Err(format!("the {name}'s geometry is not determined: {}", found.geometry.reason().unwrap_or_default())),
    }
}

impl Array {
    /// The geometry in words.
    pub(super) fn words(&self) -> String {
        let Geometry { entries, ways, sets, .. } = self.geometry;
        match sets {
            1 => format!("{entries} entries, fully associative"),
            _ => format!("{entries} entries, {sets} sets of {ways} ways"),
        }
    }

    /// The set index in words.
    pub(super) fn index_words(&self) -> String {
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
