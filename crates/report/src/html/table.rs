//! Tables of a page: complete up to their cap, sortable, scrolled in their own box.

use super::escape::Esc;
use super::paint::class;
use crate::line::Paint;
use crate::table::{Bar, Cell, Fill, Table, TableRow};
use crate::{num, text};

/// Text of more columns gets room to wrap in.
const SHORT: usize = 24;

/// The table; nothing if it has no rows. One without a caption is what its heading says.
pub fn render(table: &Table, heading: &str) -> String {
    if table.is_empty() {
        return String::new();
    }
    let (name, class) = match table.caption.is_empty() {
        true => (heading, r#" class="unseen""#),
        false => (table.caption.as_str(), ""),
    };
    let mut out = format!(
        r#"<div class="scroll" tabindex="0" role="region" aria-label="{}">{}</div>"#,
        Esc(name),
        element(table, &format!("<caption{class}>{}</caption>", Esc(name)))
    );
    let left_out = table.row_count().saturating_sub(table.page_rows);
    if left_out > 0 {
        let left_out = num::grouped(left_out as u64);
        let all_by = table.all_by;
        out += &format!(r#"<p class="sub">{left_out} more rows are left out here; {all_by} has them all.</p>"#);
    }
    out
}

/// A bar of parts on a track; said in words beside it.
pub fn bar(bar: &Bar) -> String {
    let mut x: f64 = 0.0;
    let mut out = String::from(
        r#"<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" height="10"/>"#,
    );
    for &(share, fill) in &bar.parts {
        let width = if share.is_finite() { (share * 100.0).clamp(0.0, (100.0 - x).max(0.0)) } else { 0.0 };
        let class = match fill {
            Fill::First => "fill",
            Fill::Second => "fill2",
            Fill::Worse => "worse",
        };
        out += &format!(r#"<rect class="{class}" x="{x:.2}" width="{width:.2}" height="10"/>"#);
        x += width;
    }
    out + "</svg>"
}

fn element(table: &Table, caption: &str) -> String {
    // Rows that belong to others can't be sorted.
    let sortable = table.rows.iter().all(|row| matches!(row, TableRow::Cells(_)));
    let class = if sortable { r#" class="sortable""# } else { "" };
    let mut out = format!("<table{class}>{caption}<thead><tr>");
    for column in &table.columns {
        let class = if column.right { r#" class="n""# } else { "" };
        out += &format!(r#"<th scope="col"{class}>{}</th>"#, Esc(&column.header));
    }
    out += "</tr></thead><tbody>\n";
    let mut shown = 0;
    for row in &table.rows {
        match row {
            TableRow::Cells(_) if shown == table.page_rows => break,
            TableRow::Cells(cells) => {
                shown += 1;
                out += "<tr>";
                for (i, (cell, column)) in cells.iter().zip(&table.columns).enumerate() {
                    out += &cell_element(cell, column.right, i == 0);
                }
                out += "</tr>\n";
            }
            TableRow::Group(cells) => {
                let heads = cells.iter().zip(&table.columns).map(|(cell, column)| {
                    let class = if column.right { r#" class="n""# } else { "" };
                    format!(r#"<th scope="col"{class}>{}</th>"#, Esc(&cell.text))
                });
                out += &format!("<tr class=\"group\">{}</tr>\n", heads.collect::<String>());
            }
            TableRow::Below(paint, remark) => {
                out += &format!(
                    "<tr class=\"below\"><td class=\"text {}\" colspan=\"{}\">{}</td></tr>\n",
                    super::paint::class(*paint),
                    table.columns.len(),
                    Esc(remark)
                );
            }
        }
    }
    out + "</tbody></table>"
}

fn cell_element(cell: &Cell, right: bool, first: bool) -> String {
    // What is no number is sorted below all that are.
    let key = match cell.value {
        Some(value) => format!(r#" data-v="{}""#, if value.is_finite() { value } else { -1e308 }),
        None => String::new(),
    };
    let words = match cell.paint {
        Paint::Plain | Paint::Mark | Paint::Strong => Esc(&cell.text).to_string(),
        paint => format!(r#"<span class="{}">{}</span>"#, class(paint), Esc(&cell.text)),
    };
    let bar = cell.bar.as_ref().map(bar).unwrap_or_default();
    if first && !right {
        return format!(r#"<th scope="row"{key}>{words}{bar}</th>"#);
    }
    let class = match (&cell.bar, right) {
        (Some(_), _) => "",
        (None, true) => r#" class="n""#,
        (None, false) if text::width(&cell.text) > SHORT => r#" class="text""#,
        (None, false) => "",
    };
    format!("<td{class}{key}>{words}{bar}</td>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Column;

    #[test]
    fn rows_beyond_the_cap_are_counted() {
        let mut table = Table::new([Column::left("a"), Column::right("b")]).caption("c");
        (0..1003u64).for_each(|n| table.row(["row".into(), Cell::count(n)]));
        let html = render(&table, "A table");
        assert_eq!(html.matches("<th scope=\"row\">").count(), 1000);
        assert!(html.contains("3 more rows are left out here"));
    }

    #[test]
    fn long_text_alone_gets_room_to_wrap_in() {
        let mut table = Table::new(["a", "b", "c"].map(Column::left));
        table.row(["row", "a word", "a sentence of a few words that may wrap"].map(Cell::from));
        let html = render(&table, "A table");
        assert!(html.contains("<td>a word</td><td class=\"text\">a sentence"), "{html}");
    }

    #[test]
    fn names_are_escaped_and_numbers_have_their_key() {
        let mut table = Table::new([Column::left("<a>"), Column::right("b"), Column::right("c")]);
        table.row(["</th>".into(), Cell::share(0.5).bar(Bar::of_two(0.25, 0.25)), Cell::none().paint(Paint::Bad)]);
        let html = render(&table, "A table");
        assert!(
            html.contains("<th scope=\"col\">&lt;a&gt;</th>") && html.contains("<th scope=\"row\">&lt;/th&gt;</th>")
        );
        assert!(html.contains("<td data-v=\"0.5\">50.0\u{a0}%<svg"), "{html}");
        assert!(html.contains(r#"data-v="-1e308"#) || html.contains("data-v=\"-1000"), "{html}");
        assert!(html.contains("class=\"sortable\""));
        table.below(Paint::Dim, "why & how");
        let html = render(&table, "A table");
        assert!(html.contains("colspan=\"3\">why &amp; how</td>") && !html.contains("sortable"), "{html}");
    }
}
