//! Where what a plan names lies in a plain run of its program.

use lookaside_techniques::lock::regions::Confidence;

use lookaside_report::num;
use lookaside_report::Paint;
use lookaside_report::{Cell, Column, Table};

/// A page or address in the plain run.
pub(crate) struct NativeLocation<'a> {
    /// Page number or address there.
    pub there: u64,
    /// The region, and bytes from its start.
    pub region: (&'a str, u64),
    pub confidence: Confidence,
    /// What that rests on.
    pub rests_on: &'a [String],
}

/// A table of locations; `what` heads the first column.
pub(crate) fn table(what: &str) -> Table {
    Table::new([
        Column::right(what),
        Column::right("there"),
        Column::left("region"),
        Column::left("sure"),
        Column::left("rests on").optional(1),
    ])
}

/// Adds a line: the location, or why there is none.
pub(crate) fn add(table: &mut Table, here: u64, location: Option<NativeLocation<'_>>, why: Option<&str>) {
    let here = format!("{here:#x}");
    let Some(location) = location else {
        let none = || Cell::from(num::NONE);
        return table.row([
            here.into(),
            none(),
            none(),
            Cell::painted(Paint::Bad, "no"),
            why.unwrap_or_default().into(),
        ]);
    };
    let (word, paint) = match location.confidence {
        Confidence::Exact => ("exact", Paint::Good),
        Confidence::Likely => ("likely", Paint::Plain),
        Confidence::Guess => ("a guess", Paint::Warn),
    };
    let (region, offset) = location.region;
    table.row([
        here.into(),
        format!("{:#x}", location.there).into(),
        format!("{region} +{offset:#x}").into(),
        Cell::painted(paint, word),
        location.rests_on.join("; ").into(),
    ]);
}
