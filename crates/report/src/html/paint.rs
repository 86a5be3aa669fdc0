//! Words with a paint, which is a class in the page.

use super::escape::Esc;
use crate::line::Paint;
use crate::rich_text::RichText;

/// Painted words.
pub(super) fn rich(text: &RichText) -> String {
    let piece = |(paint, words): &(Paint, String)| match paint {
        Paint::Plain | Paint::Mark => Esc(words).to_string(),
        Paint::Strong => format!("<strong>{}</strong>", Esc(words)),
        Paint::Code => format!("<code>{}</code>", Esc(words)),
        paint => format!(r#"<span class="{}">{}</span>"#, class(*paint), Esc(words)),
    };
    text.pieces().iter().map(piece).collect()
}

/// The class of a paint.
pub(super) fn class(paint: Paint) -> &'static str {
    match paint {
        Paint::Plain | Paint::Mark => "",
        Paint::Strong => "strong",
        Paint::Dim => "muted",
        Paint::Good => "good",
        Paint::Warn => "warn",
        Paint::Bad => "bad",
        Paint::Code => "mono",
    }
}
