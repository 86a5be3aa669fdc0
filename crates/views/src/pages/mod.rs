//! The analysis as one self-contained page: no network, no script needed, light and dark, narrow and wide.

mod causes;
pub mod comparison;
mod curve;
mod gain;
mod heat;
mod lines;
mod method;
pub mod migration;
mod parts;
pub mod reproduction;
mod stretched;
mod summary;
pub mod switching;
pub mod validation;
mod walks;

use lookaside_techniques::Analysis;

use crate::analysis_facts as facts;
use parts::Esc;

/// Draws the whole analysis as an HTML page that is well-formed XML too. Same analysis, same text.
/// All names in it are escaped, and its content policy lets nothing be loaded from anywhere.
pub fn render(analysis: &Analysis) -> String {
    let mut page = head(&format!("Translation cost: {}", facts::command(analysis)));
    page += &summary::header(analysis);
    page += "<main>\n";
    page += &summary::cards(analysis);
    page += &gain::section(analysis);
    page += &causes::remedies(analysis);
    page += &pair(&curve::section(analysis), &walks::section(analysis));
    page += &heat::section(analysis);
    page += &causes::attributed(analysis);
    if !facts::is_sampled(analysis) {
        page += &causes::rows(analysis);
    }
    page += &method::section(analysis);
    page + "</main>\n" + &foot(&analysis.version)
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
        include_str!("../../../report/src/html/style.css")
    )
}

/// What follows the main part.
fn foot(version: &str) -> String {
    format!(
        "<footer>Made by Lookaside {}. The same data for programs: --json.</footer>\n<script>//<![CDATA[\n{}//]]></script>\n</body></html>\n",
        Esc(version),
        include_str!("../../../report/src/html/script.js")
    )
}

/// Two sections beside each other where there is room, or the one that there is.
fn pair(left: &str, right: &str) -> String {
    if left.is_empty() || right.is_empty() {
        return format!("{left}{right}");
    }
    format!("<div class=\"pair\">{left}{right}</div>\n")
}
