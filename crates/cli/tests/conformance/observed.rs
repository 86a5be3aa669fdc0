//! What is to be seen of a program from outside.

use std::collections::BTreeMap;
use std::path::Path;

/// What a run of a program came to.
#[derive(Debug)]
pub struct Observed {
    /// Exit code; 128 + the number of the signal that ended it.
    pub code: i32,
    pub stdout: Vec<u8>,
    /// Without our own lines.
    pub stderr: Vec<u8>,
    /// What lies in its folder: a file's bytes, a link's target.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Processes that it left behind.
    pub left: usize,
    /// Lines of ours.
    pub our_lines: usize,
}

impl Observed {
    /// The program did not run: one line of ours said why.
    pub fn is_refused(&self) -> bool {
        let nothing = self.stdout.is_empty() && self.stderr.is_empty() && self.files.is_empty();
        self.code == 2 && self.our_lines == 1 && nothing
    }

    /// How another run differs, in a line.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let text = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            let mut short: String = text.chars().take(300).collect();
            if short.len() < text.len() {
                short.push('…');
            }
            format!("{short:?}")
        };
        if self.code != other.code {
            let said = text(&other.stderr);
            return Some(format!("code {} where it was {}; it said {said}", other.code, self.code));
        }
        for (what, ours, theirs) in
            [("standard output", &self.stdout, &other.stdout), ("standard error", &self.stderr, &other.stderr)]
        {
            if ours != theirs {
                return Some(format!("{what} {} where it was {}", text(theirs), text(ours)));
            }
        }
        if self.files != other.files {
            return Some(format!("files {:?} where they were {:?}", other.files.keys(), self.files.keys()));
        }
        (self.left != other.left).then(|| format!("{} processes left where there were {}", other.left, self.left))
    }
}

/// The files of a folder, by their paths in it.
pub fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(at) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&at) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            let name = path.strip_prefix(folder).expect("below").to_string_lossy().into_owned();
            let Ok(kind) = entry.file_type() else { continue };
            let bytes = match () {
                () if kind.is_dir() => {
                    folders.push(path);
                    b"folder".to_vec()
                }
                () if kind.is_symlink() => {
                    std::fs::read_link(&path).map_or_else(|_| Vec::new(), |to| to.into_os_string().into_encoded_bytes())
                }
                () if kind.is_file() => std::fs::read(&path).unwrap_or_default(),
                () => b"special".to_vec(),
            };
            found.insert(name, bytes);
        }
    }
    found
}

/// Bytes without the lines that begin with `lookaside: `, wherever in a line they do, and how many these are.
pub fn without_our_lines(bytes: &[u8]) -> (Vec<u8>, usize) {
    const OURS: &[u8] = b"lookaside: ";
    let (mut left, mut ours) = (Vec::new(), 0);
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let at = line.windows(OURS.len()).position(|part| part == OURS);
        left.extend_from_slice(&line[..at.unwrap_or(line.len())]);
        ours += usize::from(at.is_some());
    }
    (left, ours)
}
