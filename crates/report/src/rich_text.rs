//! A sentence whose pieces may be painted.

use crate::line::{Line, Paint};
use crate::text;

/// Text in painted pieces. Whatever it is made of is [`text::clean`] from then on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RichText {
    pieces: Vec<(Paint, String)>,
}

impl RichText {
    /// No text.
    pub fn new() -> Self {
        Self::default()
    }

    /// One piece in this paint.
    pub fn painted(paint: Paint, words: impl AsRef<str>) -> Self {
        Self::new().paint(paint, words)
    }

    /// Appends a piece in this paint.
    #[must_use]
    pub fn paint(mut self, paint: Paint, words: impl AsRef<str>) -> Self {
        self.pieces.push((paint, text::clean(words.as_ref())));
        self
    }

    /// Appends plain words.
    #[must_use]
    pub fn plain(self, words: impl AsRef<str>) -> Self {
        self.paint(Paint::Plain, words)
    }

    /// Appends words that the eye should find.
    #[must_use]
    pub fn strong(self, words: impl AsRef<str>) -> Self {
        self.paint(Paint::Strong, words)
    }

    /// Appends something to type.
    #[must_use]
    pub fn code(self, words: impl AsRef<str>) -> Self {
        self.paint(Paint::Code, words)
    }

    /// The pieces in order.
    pub fn pieces(&self) -> &[(Paint, String)] {
        &self.pieces
    }

    /// The words without their paint.
    pub fn words(&self) -> String {
        self.pieces.iter().map(|(_, words)| words.as_str()).collect()
    }

    /// There are no words.
    pub fn is_empty(&self) -> bool {
        self.pieces.iter().all(|(_, words)| words.is_empty())
    }

    /// Lines of at most `width` columns, broken at spaces.
    pub fn wrap(&self, width: usize) -> Vec<Line> {
        let mut left = self.pieces.iter().flat_map(|(paint, words)| words.chars().map(|c| (*paint, c))).peekable();
        let painted = |part: String| {
            let mut line = Line::new();
            let mut run: Option<(Paint, String)> = None;
            for c in part.chars() {
                // Only spaces at the breaks are not in the lines.
                let paint = left.find(|(_, other)| *other == c).map_or(Paint::Plain, |(paint, _)| paint);
                match &mut run {
                    Some((of, words)) if *of == paint => words.push(c),
                    _ => {
                        if let Some((of, words)) = run.replace((paint, c.to_string())) {
                            line.push(of, words);
                        }
                    }
                }
            }
            if let Some((paint, words)) = run {
                line.push(paint, words);
            }
            line
        };
        text::wrap(&self.words(), width).into_iter().map(painted).collect()
    }
}

impl<T: AsRef<str>> From<T> for RichText {
    fn from(words: T) -> Self {
        Self::painted(Paint::Plain, words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Style;

    #[test]
    fn wrapped_words_keep_their_paint() {
        let text = RichText::from("one two ").strong("three four").plain("  five\n");
        let style = Style { color: true, ..Style::default() };
        let lines: Vec<String> = text.wrap(10).iter().map(|line| line.render(&style)).collect();
        assert_eq!(lines, ["one two", "\x1b[0;1mthree four\x1b[0m", "five\u{fffd}"]);
    }
}
