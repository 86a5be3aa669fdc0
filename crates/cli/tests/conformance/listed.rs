//! The differences that are known, as the table in docs/reference/what-a-program-notices.md has them.

use crate::ways::Way;

const PAGE: &str = include_str!("../../../../docs/reference/what-a-program-notices.md");

/// Programs that differ under a way, and whether they always do.
pub struct Listed(Vec<(&'static str, bool)>);

/// How the reason of a difference begins that is not always there.
const AT_TIMES: &str = "at times: ";

/// A row: the program, the ways (or `all`), why.
fn rows() -> impl Iterator<Item = (&'static str, Vec<&'static str>, &'static str)> {
    PAGE.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.strip_suffix(" |")?.split(" | ");
        let program = cells.next()?.strip_suffix('`')?;
        Some((program, cells.next()?.split(", ").collect(), cells.next()?))
    })
}

impl Listed {
    pub fn of(way: &str) -> Self {
        let of_way = rows().filter(|(_, ways, _)| ways.contains(&way));
        Self(of_way.map(|(program, _, why)| (program, !why.starts_with(AT_TIMES))).collect())
    }

    /// Whether a program may differ; `None`: it may not, `Some(true)`: it always does.
    pub fn of_program(&self, program: &str) -> Option<bool> {
        self.0.iter().find(|(name, _)| *name == program).map(|(_, always)| *always)
    }

    /// Each row names a program that there is, ways that there are, and a reason.
    pub fn check(programs: &[&str]) {
        for (program, ways, why) in rows() {
            assert!(programs.contains(&program), "{program} is listed, and no program");
            assert!(!why.is_empty(), "{program}: no reason");
            for way in ways {
                assert!(Way::ALL.iter().any(|other| other.name == way), "{program}: {way} is no way");
            }
        }
    }
}
