//! Results as HTML pages.

mod axis;
mod lines;
pub mod migration;
mod parts;
pub mod reproduction;
mod stretched;
pub mod switching;

use parts::Esc;

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
