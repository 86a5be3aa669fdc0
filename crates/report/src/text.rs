//! Text for terminals: names made harmless, widths, cutting and wrapping.

use unicode_width::UnicodeWidthChar;

/// One line of harmless text: control characters (an escape sequence in a file name), line breaks and
/// characters that turn the writing direction or take no room become `\u{fffd}`.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if is_harmful(c) { '\u{fffd}' } else { c }).collect()
}

fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Terminal columns that `text` takes.
pub fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

fn char_width(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// `text` in at most `max` columns, its end cut off and marked by `…`.
pub fn cut_end(text: &str, max: usize) -> String {
    if width(text) <= max {
        return text.to_string();
    }
    let mut out = take(text.chars(), max.saturating_sub(1));
    if max > 0 {
        out.push('…');
    }
    out
}

/// `text` in at most `max` columns, cut in the middle: a path keeps its file, a function its line.
pub fn cut_middle(text: &str, max: usize) -> String {
    if width(text) <= max {
        return text.to_string();
    }
    if max < 8 {
        return cut_end(text, max);
    }
    let tail_columns = (max - 1) * 3 / 5;
    let tail: String = take(text.chars().rev(), tail_columns).chars().rev().collect();
    let head = take(text.chars(), max - 1 - width(&tail));
    format!("{head}…{tail}")
}

fn take(chars: impl Iterator<Item = char>, columns: usize) -> String {
    let mut used = 0;
    chars
        .take_while(|&c| {
            used += char_width(c);
            used <= columns
        })
        .collect()
}

/// `text` in lines of at most `max` columns, broken at spaces, and inside words that are longer than a line.
pub fn wrap(text: &str, max: usize) -> Vec<String> {
    let max = max.max(2); // a wide character must fit
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut word = word.to_string();
        if !line.is_empty() && width(&line) + 1 + width(&word) > max {
            lines.push(std::mem::take(&mut line));
        }
        while width(&word) > max {
            let part = take(word.chars(), max);
            word = word[part.len()..].to_string();
            lines.push(part);
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// The same text in ASCII, each character in as many columns as before.
pub fn ascii(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let replacement = match c {
                ' '..='~' => c,
                '·' | '–' | '—' | '─' | '−' => '-',
                '→' | '▸' => '>',
                '×' => 'x',
                '…' => '~',
                '│' | '┊' | '┤' | '├' | '╎' => '|',
                '└' | '┴' | '┼' | '┬' => '+',
                '█' | '▉' | '▊' | '▋' => '#',
                '▌' | '▍' | '▎' | '▏' => '=',
                '≥' => '>',
                '≤' => '<',
                '≈' => '~',
                '\u{a0}' | '\u{2800}' => ' ',
                '\u{2801}'..='\u{28ff}' => '*',
                _ => '?',
            };
            std::iter::repeat_n(replacement, char_width(c))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_move_the_cursor() {
        assert_eq!(clean("a\x1b[2Jb\nc\u{202e}d\u{200b}"), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d\u{fffd}");
    }

    #[test]
    fn cutting_keeps_both_ends_and_the_width() {
        assert_eq!(cut_middle("/usr/lib/x86_64-linux-gnu/libc.so.6", 20), "/usr/lib…u/libc.so.6");
        assert_eq!(cut_end("abcdef", 4), "abc…");
        assert_eq!(cut_end("日本語", 4), "日…");
        assert_eq!(width(&cut_middle("日本語日本語日本語", 9)), 9);
        assert_eq!(cut_end("abc", 0), "");
    }

    #[test]
    fn wrapping_breaks_long_words() {
        assert_eq!(wrap("one two abcdefghij k", 7), ["one two", "abcdefg", "hij k"]);
        assert!(wrap("", 10).is_empty());
    }

    #[test]
    fn ascii_keeps_columns() {
        assert_eq!(ascii("a·b→日⡇"), "a-b>??*");
    }
}
