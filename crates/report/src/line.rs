//! Painted lines: text whose width is known before its colours are put on.

use crate::text;

/// How to write for this terminal. The caller looks at `NO_COLOR`, the TTY and its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns; what is given outside 60–240 is taken as the nearer bound. No line is longer.
    pub width: usize,
    /// Put ANSI colours in.
    pub color: bool,
    /// `false`: nothing but ASCII.
    pub unicode: bool,
    /// Draw plots.
    pub plots: bool,
    /// Rows in each table of causes; `None` = as many as fit on one screen.
    pub top: Option<usize>,
}

impl Default for Style {
    /// What suits a file or pipe: 100 columns, no colour, no plots.
    fn default() -> Self {
        Self { width: 100, color: false, unicode: true, plots: false, top: None }
    }
}

impl Style {
    /// The width that is written for.
    pub fn columns(&self) -> usize {
        self.width.clamp(60, 240)
    }
}

/// What a piece of text means; a terminal shows it by colour or weight, and the words alone must do without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Paint {
    /// Nothing special.
    #[default]
    Plain,
    /// What the eye should find first.
    Strong,
    /// Secondary.
    Dim,
    /// Holds, saves.
    Good,
    /// Beware.
    Warn,
    /// Does not hold, costs.
    Bad,
    /// Bars and curves.
    Mark,
    /// Something to type.
    Code,
}

impl Paint {
    /// ANSI "select graphic rendition" parameters after a reset (ECMA-48 §8.3.117), of the colours that a user's theme
    /// sets.
    fn sgr(self) -> &'static str {
        match self {
            Self::Plain | Self::Code => "",
            Self::Strong => ";1",
            Self::Dim => ";2",
            Self::Good => ";32",
            Self::Warn => ";33",
            Self::Bad => ";31",
            Self::Mark => ";36",
        }
    }
}

/// One line of painted pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    pieces: Vec<(Paint, String)>,
}

impl Line {
    /// An empty line.
    pub fn new() -> Self {
        Self::default()
    }

    /// A line of one piece.
    pub fn of(paint: Paint, text: impl Into<String>) -> Self {
        Self::new().with(paint, text)
    }

    /// The line with a piece more.
    #[must_use]
    pub fn with(mut self, paint: Paint, text: impl Into<String>) -> Self {
        self.push(paint, text);
        self
    }

    /// Appends a piece; its text must be [`text::clean`].
    pub fn push(&mut self, paint: Paint, text: impl Into<String>) {
        self.pieces.push((paint, text.into()));
    }

    /// Appends another line's pieces.
    pub fn append(&mut self, other: Self) {
        self.pieces.extend(other.pieces);
    }

    /// Columns taken.
    pub fn width(&self) -> usize {
        self.pieces.iter().map(|(_, text)| text::width(text)).sum()
    }

    /// Adds spaces up to `columns`.
    pub fn pad_to(&mut self, columns: usize) {
        let have = self.width();
        if have < columns {
            self.push(Paint::Plain, " ".repeat(columns - have));
        }
    }

    /// Cuts what is beyond `columns`.
    pub fn cut_to(&mut self, columns: usize) {
        if self.width() <= columns {
            return;
        }
        let mut left = columns;
        for (_, piece) in &mut self.pieces {
            if text::width(piece) > left {
                *piece = text::cut_end(piece, left);
            }
            left -= text::width(piece);
        }
    }

    /// The line as a terminal takes it, without trailing spaces, no longer than the style's width.
    pub fn render(&self, style: &Style) -> String {
        let mut line = self.clone();
        line.cut_to(style.columns());
        for (_, piece) in &mut line.pieces {
            *piece = if style.unicode { piece.replace('\u{a0}', " ") } else { text::ascii(piece) };
        }
        line.trim_end();
        let mut out = String::new();
        let mut now = Paint::Plain;
        for (paint, piece) in &line.pieces {
            let blank = piece.trim_matches(' ').is_empty();
            if style.color && !blank && *paint != now {
                out.push_str(&format!("\x1b[0{}m", paint.sgr()));
                now = *paint;
            }
            out.push_str(piece);
        }
        if now != Paint::Plain {
            out.push_str("\x1b[0m");
        }
        out
    }

    fn trim_end(&mut self) {
        while let Some((_, last)) = self.pieces.last_mut() {
            last.truncate(last.trim_end_matches([' ', '\u{2800}']).len());
            if !last.is_empty() {
                break;
            }
            self.pieces.pop();
        }
    }
}

/// Lines as one text, each ended by a line feed.
pub fn render(lines: &[Line], style: &Style) -> String {
    lines.iter().map(|line| line.render(style) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_take_no_columns() {
        let line = Line::of(Paint::Bad, "ab").with(Paint::Plain, "cd  ");
        let style = Style { color: true, ..Style::default() };
        assert_eq!(line.width(), 6);
        assert_eq!(line.render(&style), "\x1b[0;31mab\x1b[0mcd");
        assert_eq!(line.render(&Style::default()), "abcd");
        let ascii = Style { unicode: false, ..Style::default() };
        // A mark that takes no column is not in ASCII: the space before it ends the line.
        assert_eq!(Line::of(Paint::Plain, "a \u{301}").render(&ascii), "a");
        assert_eq!(Line::of(Paint::Plain, "a\u{a0}b\u{a0}").with(Paint::Dim, " ").render(&Style::default()), "a b");
    }

    #[test]
    fn a_line_is_cut_at_the_width() {
        let long = Line::of(Paint::Plain, "x".repeat(70)).with(Paint::Dim, "y");
        let text = long.render(&Style { width: 60, ..Style::default() });
        assert_eq!(text, "x".repeat(59) + "…");
    }
}
