//! The bricks of the page: escaped text, bars, tables. What comes out is well-formed XML too.

use std::fmt;

use lookaside_report::{num, text};

/// Rows that a table shows at most; the JSON has them all.
const MAX_ROWS: usize = 1000;

/// Text from anywhere as HTML text or attribute value: made harmless by [`text::clean`], then escaped.
pub struct Esc<'a>(pub &'a str);

impl fmt::Display for Esc<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in text::clean(self.0).chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c => fmt::Write::write_char(f, c)?,
            }
        }
        Ok(())
    }
}

/// A square in a legend.
pub fn swatch(class: &str) -> String {
    format!(r#"<svg viewBox="0 0 10 10" aria-hidden="true"><rect class="{class}" width="10" height="10"/></svg>"#)
}

/// A cell of a table.
pub enum Cell {
    /// Text; the first cell of a row is its head.
    Text(String),
    /// A number: what it is sorted by, how it is written.
    Number(f64, String),
}

impl Cell {
    /// A count with all its digits.
    pub fn count(n: u64) -> Self {
        Self::Number(n as f64, num::grouped(n))
    }

    /// A rate with three significant digits.
    pub fn rate(x: f64) -> Self {
        Self::Number(x, num::rate(x))
    }

    fn html(&self, first: bool) -> String {
        // What is no number is sorted below all that are.
        let key = |v: f64| if v.is_finite() { v } else { -1e308 };
        match self {
            Self::Text(text) if first => format!(r#"<th scope="row">{}</th>"#, Esc(text)),
            Self::Text(text) => format!(r#"<td class="text">{}</td>"#, Esc(text)),
            Self::Number(v, text) => format!(r#"<td class="n" data-v="{}">{}</td>"#, key(*v), Esc(text)),
        }
    }
}

/// A table that can be complete: caption, heads (`true` = of numbers), rows.
pub struct Table<'a> {
    /// What it shows; read out by screen readers.
    pub caption: &'a str,
    /// Column heads; numbers are set right.
    pub heads: Vec<(&'a str, bool)>,
    /// Cells of each row, the first naming it.
    pub rows: Vec<Vec<Cell>>,
}

impl Table<'_> {
    /// A table that is scrolled in its own box and can be sorted; nothing if it has no rows.
    pub fn scrolled(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let mut out = format!(
            r#"<div class="scroll" tabindex="0" role="region" aria-label="{}">{}</div>"#,
            Esc(self.caption),
            self.element("sortable")
        );
        if self.rows.len() > MAX_ROWS {
            let left_out = num::grouped((self.rows.len() - MAX_ROWS) as u64);
            out += &format!(r#"<p class="sub">{left_out} more rows are left out here; --json has them all.</p>"#);
        }
        out
    }

    fn element(&self, class: &str) -> String {
        let mut out = format!(r#"<table class="{class}"><caption>{}</caption><thead><tr>"#, Esc(self.caption));
        for (head, numeric) in &self.heads {
            let class = if *numeric { r#" class="n""# } else { "" };
            out += &format!(r#"<th scope="col"{class}>{}</th>"#, Esc(head));
        }
        out += "</tr></thead><tbody>\n";
        for row in self.rows.iter().take(MAX_ROWS) {
            out += "<tr>";
            for (i, cell) in row.iter().enumerate() {
                out += &cell.html(i == 0);
            }
            out += "</tr>\n";
        }
        out + "</tbody></table>"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        let evil = "</td><script>alert('x')</script>\x1b&\"";
        let expected = "&lt;/td&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;\u{fffd}&amp;&quot;";
        assert_eq!(Esc(evil).to_string(), expected);
    }

    #[test]
    fn rows_beyond_the_cap_are_counted() {
        let rows = (0..1003u64).map(|n| vec![Cell::Text("row".into()), Cell::count(n)]).collect();
        let html = Table { caption: "c", heads: vec![("a", false), ("b", true)], rows }.scrolled();
        assert_eq!(html.matches("<th scope=\"row\">").count(), 1000);
        assert!(html.contains("3 more rows are left out here"));
    }
}
