//! The book and the command line agree: each command line that a page shows is understood.

#[path = "../../tests/cli/book_pages.rs"]
mod book_pages;

use std::fs;

use super::CommandLine;
use book_pages::pages;

/// The commands of a page's blocks of `console` or `sh`, in which a line may go on after a backslash.
fn command_lines(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut kind = None;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("```") {
            kind = kind.xor(Some(name)).filter(|name| !name.is_empty());
            continue;
        }
        let line = match kind {
            Some("console") => line.strip_prefix("$ ").or(line.strip_prefix("# ")),
            Some("sh") => Some(line),
            _ => None,
        };
        let Some(line) = line else { continue };
        let mut whole = line.to_string();
        while let Some(begun) = whole.strip_suffix('\\') {
            whole = format!("{begun} {}", lines.next().unwrap_or_default().trim());
        }
        found.push(whole);
    }
    found
}

/// The words of the part of a line that begins with `lookaside`, up to a comment, a pipe or a redirection.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut quote, mut begun) = (String::new(), None, false);
    for char in line.chars().chain([' ']) {
        match (quote, char) {
            (Some(end), _) if char == end => quote = None,
            (Some(_), _) => word.push(char),
            (None, '\'' | '"') => (quote, begun) = (Some(char), true),
            (None, ' ') => {
                if begun || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            (None, _) => word.push(char),
        }
    }
    let first = words.iter().position(|word| word == "lookaside")?;
    // What stands before it may be sudo, or variables.
    let before = words[..first].iter().all(|word| word == "sudo" || word == "exec" || word.contains('='));
    let ends = |word: &String| {
        word.starts_with(['>', '<']) || ["#", "|", "&&", "||", ";", "&", "2>"].iter().any(|end| word == end)
    };
    let len = words[first..].iter().position(ends).unwrap_or(words.len() - first);
    before.then(|| words[first..first + len].to_vec())
}

#[test]
fn all_command_lines_of_the_book_are_understood() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for path in pages() {
        let page = fs::read_to_string(&path).expect("text");
        for line in command_lines(&page) {
            let Some(words) = words(&line) else { continue };
            seen += 1;
            if let Err(e) = CommandLine::grouped().try_get_matches_from(&words) {
                if e.use_stderr() {
                    wrong.push(format!("{}: {line}: {}", path.display(), e.to_string().lines().next().unwrap_or("")));
                }
            }
        }
    }
    assert!(seen > 50, "{seen} command lines only");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn words_end_where_a_shell_would_end_them() {
    let of = |line| words(line).expect("a command");
    assert_eq!(of("sudo lookaside top --once | head # all"), ["lookaside", "top", "--once"]);
    assert_eq!(of("A=1 lookaside analyze perl -e 'a b' \"\""), ["lookaside", "analyze", "perl", "-e", "a b", ""]);
    assert_eq!(words("ls lookaside"), None);
}

/// A heading's anchor, as hosts of Markdown make it.
fn anchor(heading: &str) -> String {
    let kept: String =
        heading.to_lowercase().chars().filter(|char| char.is_alphanumeric() || " -_".contains(*char)).collect();
    kept.replace(' ', "-")
}

#[test]
fn all_links_of_the_book_lead_somewhere() {
    let mut wrong = Vec::new();
    for path in pages() {
        let page = fs::read_to_string(&path).expect("text");
        let links = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://") && !link.contains(' ')) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().expect("a folder").join(file) };
            let there = target.exists();
            let heads = |text: String| {
                text.lines().any(|line| line.starts_with('#') && anchor(line.trim_start_matches('#').trim()) == heading)
            };
            let has = heading.is_empty() || target.is_dir() || fs::read_to_string(&target).is_ok_and(heads);
            if !there || !has {
                wrong.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
