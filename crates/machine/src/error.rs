//! What is wrong with a machine file, in one line.

/// Why a machine cannot be had: which file, which key, what is wrong.
///
/// Printed it is one line, `presets/x.toml: tlb[1].ways: 12 does not divide entries 2048`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {at}{}{reason}", if at.is_empty() { "" } else { ": " })]
pub struct MachineError {
    /// The file, preset or command-line setting.
    pub file: String,
    /// Path of the key (`tlb[1].ways`), or `line 3, column 7` where the text is no TOML; empty = the file as a whole.
    pub at: String,
    /// What is wrong, and what would be right.
    pub reason: String,
}

impl MachineError {
    /// Builds one; control characters and excess length are cut so that it stays one readable line.
    pub(crate) fn new(file: &str, at: &str, reason: &str) -> Self {
        Self { file: one_line(file, 300), at: one_line(at, 200), reason: one_line(reason, 600) }
    }
}

/// Replaces control characters by spaces and cuts the text to `most` characters.
fn one_line(text: &str, most: usize) -> String {
    let mut line: String = text.chars().take(most).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(most).is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn a_line_is_cut_where_it_is_too_long_and_only_there() {
        assert_eq!(one_line("äöü", 3), "äöü");
        assert_eq!(one_line("äöüß", 3), "äöü…");
        // A control character of two bytes becomes a blank of one.
        assert_eq!(one_line("a\u{85}b\n", 4), "a b ");
    }
}
