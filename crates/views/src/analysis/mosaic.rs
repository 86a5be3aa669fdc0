//! What runs with different parts of the memory huge say.

use lookaside_report::{num, Cell, Column, Paint, RichText, Section, Table};
use lookaside_techniques::hugepages::mosaic::MosaicGain;
use lookaside_techniques::Analysis;

use super::totals::times;

/// How it is to be read.
const LEAD: &str =
    "Each row is runs with these windows of 2 MiB made huge while they run, and all other memory in small pages. Of \
     the cost: what the model's translation costs in these windows with small pages, each for the part of the run in \
     which it was huge. Left out: the user time that a model of the other rows predicts.";

/// The section; nothing where there is none.
pub fn section(analysis: &Analysis) -> Section {
    let Some(mosaic) = &analysis.huge_gain.mosaic else { return Section::default() };
    let mut table = Table::new([
        Column::left("HUGE IN PARTS"),
        Column::right("windows"),
        Column::right("of the cost"),
        Column::right("user time"),
        Column::right("left out"),
        Column::right("error"),
    ])
    .caption("User time with parts of the memory in huge pages")
    .shown(10, 3)
    .of("mosaic", "mosaics");
    for row in &mosaic.mosaics {
        let error = row.left_out_error();
        table.row([
            Cell::from(&row.name).paint(Paint::Strong),
            Cell::count(row.windows.into()),
            Cell::share(row.covered),
            Cell::seconds(row.user_seconds),
            Cell::seconds(row.left_out_seconds),
            Cell::number(error, signed(error)),
        ]);
    }
    Section::unheaded("Huge pages in parts").lead(LEAD).with(table)
}

/// The answer, for the facts.
pub fn answer(mosaic: &MosaicGain) -> RichText {
    let [ratio, low, high] = [mosaic.ratio, mosaic.low, mosaic.high].map(times);
    let windows = num::counted(mosaic.windows as usize, "window");
    let paint = match () {
        () if mosaic.low > 1.0 => Paint::Good,
        () if mosaic.high < 1.0 => Paint::Bad,
        () => Paint::Plain,
    };
    let all = format!("{ratio} times ({low} – {high}) with all {windows} of 2 MiB huge from the start");
    let half = mosaic
        .half_windows
        .map_or_else(String::new, |half| format!("; half of that: lookaside hugepages run --budget {half} CMD"));
    let [mean, most] = [mosaic.mean_left_out_error, mosaic.most_left_out_error].map(num::percent);
    RichText::painted(paint, all)
        .plain(format!("{half}; a layout left out of the fit is predicted within {mean} on average, {most} at worst"))
}

/// A share with its sign.
fn signed(share: f64) -> String {
    let sign = if share < 0.0 { "−" } else { "+" };
    format!("{sign}{}", num::percent(share.abs()))
}
