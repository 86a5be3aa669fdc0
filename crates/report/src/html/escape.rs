//! Text from anywhere inside HTML.

use std::fmt;

use crate::text;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        let evil = "</td><script>alert('x')</script>\x1b&\"";
        let expected = "&lt;/td&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;\u{fffd}&amp;&quot;";
        assert_eq!(Esc(evil).to_string(), expected);
    }
}
