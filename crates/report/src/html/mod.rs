//! A document as one self-contained page: no network, no script needed, light and dark, narrow and wide.
//!
//! The page is well-formed XML too. Same document, same text. All text in it is escaped, and its content policy lets
//! nothing be loaded from anywhere.

mod cards;
mod escape;
mod paint;
mod table;

use std::collections::HashSet;

use crate::chart::{self, Chart};
use crate::document::{Document, DocumentBlock, Fact, Medium, Part, Section};

use paint::rich;

pub(crate) use escape::Esc;

/// Draws the document.
pub fn render(document: &Document) -> String {
    let mut page = PageIds { ids: HashSet::new() };
    let mut out = head(&document.full_title());
    out += &header(document);
    out += "<main>\n";
    for part in &document.parts {
        out += &match part {
            Part::Section(section) => page.section(section),
            Part::Pair(left, right) => match (page.section(left), page.section(right)) {
                (left, right) if left.is_empty() || right.is_empty() => left + &right,
                (left, right) => format!("<div class=\"pair\">{left}{right}</div>\n"),
            },
        };
    }
    if !document.notes.is_empty() {
        let notes = Section::new("Notes").with(DocumentBlock::List(document.notes.clone()));
        out += &page.section(&notes);
    }
    out + "</main>\n" + &foot(&document.version)
}

/// The page up to its body.
fn head(title: &str) -> String {
    format!(
        r#"<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"/>
<title>{}</title>
<style>/*<![CDATA[*/
{}/*]]>*/</style></head>
<body>
"#,
        Esc(title),
        include_str!("style.css")
    )
}

/// What follows the main part.
fn foot(version: &str) -> String {
    format!(
        "<footer>Made by Lookaside {}. The same data for programs: --json.</footer>\n<script>//<![CDATA[\n{}//]]></script>\n</body></html>\n",
        Esc(version),
        include_str!("script.js")
    )
}

fn header(document: &Document) -> String {
    let subtitle = match document.subtitle.is_empty() {
        true => String::new(),
        false => format!(r#" <span class="mono">{}</span>"#, Esc(&document.subtitle)),
    };
    let mut out = format!("<header><h1>{}{subtitle}</h1>", Esc(&document.title));
    for sentence in &document.answer {
        out += &format!(r#"<p class="answer">{}</p>"#, rich(sentence));
    }
    for banner in &document.banners {
        out += &format!(r#"<p class="banner">{}</p>"#, rich(banner));
    }
    if !document.facts.is_empty() {
        out += &facts(&document.facts);
    }
    out + "</header>\n"
}

fn facts(facts: &[Fact]) -> String {
    let fact = |fact: &Fact| format!("<dt>{}</dt><dd>{}</dd>", Esc(&fact.label), rich(&fact.words));
    format!("<dl>{}</dl>", facts.iter().map(fact).collect::<String>())
}

/// What has to be known of the page so far.
struct PageIds {
    ids: HashSet<String>,
}

impl PageIds {
    fn section(&mut self, section: &Section) -> String {
        if section.is_empty() || section.medium == Medium::Terminal {
            return String::new();
        }
        if let [DocumentBlock::Cards(cards)] = section.blocks.as_slice() {
            return cards::render(cards);
        }
        let id = self.id(&section.heading);
        // A page may break inside what has long tables.
        let long =
            section.blocks.iter().any(|block| matches!(block, DocumentBlock::Table(_) | DocumentBlock::Details(..)));
        let class = if long { r#" class="long""# } else { "" };
        let mut out = format!(r#"<section{class} aria-labelledby="{id}"><h2 id="{id}">{}</h2>"#, Esc(&section.heading));
        if !section.lead.is_empty() {
            out += &format!(r#"<p class="lead">{}</p>"#, rich(&section.lead));
        }
        out += &section.blocks.iter().map(|of| block(of, &section.heading)).collect::<String>();
        out + "</section>\n"
    }

    /// A name from the heading that nothing on the page has yet.
    fn id(&mut self, heading: &str) -> String {
        let words = heading.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let base = format!("s-{}", words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-"));
        let numbered = (2..).map(|n| format!("{base}-{n}"));
        let free = std::iter::once(base.clone()).chain(numbered).find(|id| !self.ids.contains(id)).unwrap_or(base);
        self.ids.insert(free.clone());
        free
    }
}

/// A block below this heading.
fn block(block: &DocumentBlock, heading: &str) -> String {
    match block {
        DocumentBlock::Heading(words) => format!("<h3>{}</h3>", Esc(words)),
        DocumentBlock::Text(text) => format!("<p>{}</p>", rich(text)),
        DocumentBlock::List(items) => {
            let items: String = items.iter().map(|item| format!("<li>{}</li>", rich(item))).collect();
            format!("<ul>{items}</ul>")
        }
        DocumentBlock::Facts(list) => facts(list),
        DocumentBlock::Cards(cards) => cards::render(cards),
        DocumentBlock::Table(table) => table::render(table, heading),
        DocumentBlock::Chart(chart) => chart::legend(chart) + &figure(chart),
        DocumentBlock::Charts(charts) => grid(charts),
        DocumentBlock::Details(summary, blocks) => {
            let inner: String = blocks.iter().map(|of| self::block(of, heading)).collect();
            format!("<details><summary>{}</summary>{inner}</details>", Esc(summary))
        }
    }
}

fn figure(chart: &Chart) -> String {
    let unit = match chart.unit() {
        Some(unit) => format!("<br/>{}", Esc(unit)),
        None => String::new(),
    };
    format!("<figure><figcaption>{}{unit}</figcaption>{}</figure>", Esc(&chart.title), chart::svg(chart))
}

/// Charts beside each other, below the legend of the one that has most to explain.
fn grid(charts: &[Chart]) -> String {
    let legend = charts.iter().map(chart::legend).max_by_key(String::len).unwrap_or_default();
    let mini = charts.iter().all(Chart::is_mini);
    let class = if mini { "multiples" } else { "charts" };
    format!("{legend}<div class=\"{class}\">{}</div>", charts.iter().map(figure).collect::<String>())
}
