//! Cards beside each other: a figure for the eye, sentences, short lists.

use super::escape::Esc;
use super::paint::{class, rich};
use super::table::bar;
use crate::document::{Card, CardItem};

/// The cards, beside each other where there is room.
pub fn render(cards: &[Card]) -> String {
    format!("<div class=\"summary\">{}</div>\n", cards.iter().map(card).collect::<String>())
}

fn card(card: &Card) -> String {
    let mut out = format!(r#"<div class="card"><h2>{}</h2>"#, Esc(&card.title));
    if let Some((paint, figure)) = &card.figure {
        out += &format!(r#"<p class="big {}">{}</p>"#, class(*paint), Esc(figure));
    }
    out += &card.text.iter().map(|text| format!("<p>{}</p>", rich(text))).collect::<String>();
    for (heading, items) in card.lists.iter().filter(|(_, items)| !items.is_empty()) {
        if !heading.is_empty() {
            out += &format!("<h3>{}</h3>", Esc(heading));
        }
        out += &format!(r#"<ul class="bars">{}</ul>"#, items.iter().map(item).collect::<String>());
    }
    out + "</div>"
}

fn item(item: &CardItem) -> String {
    let mut out = format!(
        r#"<li><div class="row"><span class="name" title="{0}">{0}</span><span class="value">{1}</span></div>"#,
        Esc(&item.label),
        Esc(&item.value)
    );
    out += &item.bar.as_ref().map(bar).unwrap_or_default();
    if !item.detail.is_empty() {
        out += &format!(r#"<span class="how">{}</span>"#, Esc(&item.detail));
    }
    out + "</li>"
}
