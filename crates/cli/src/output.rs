//! Printing: standard output that may close early, files, style.

use std::fs::Metadata;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::Args;
use lookaside_host::{check_place, create_file, folder_of};
use lookaside_report::{html, terminal, Document, Style};

use crate::exit::Failure;
use crate::say::say;

/// Where a command's result goes: every command that prints a table takes these.
#[derive(Args, Clone, Debug, Default)]
pub struct OutputArgs {
    /// Write the report as one HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print JSON in place of the text, or write it to a file beside the text
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

impl OutputArgs {
    /// Something else than text is wanted.
    pub fn asked(&self) -> bool {
        self.html.is_some() || self.json.is_some()
    }

    /// Standard output gets JSON, not text.
    pub fn prints_json(&self) -> bool {
        self.json.as_deref().is_some_and(|path| path.as_os_str() == "-")
    }

    /// The file that gets JSON.
    fn json_file(&self) -> Option<&Path> {
        self.json.as_deref().filter(|_| !self.prints_json())
    }

    /// Finds out whether the files can be written, before a program runs for hours.
    pub fn check(&self) -> Result<(), Failure> {
        self.html.as_deref().into_iter().chain(self.json_file()).try_for_each(check_writable)
    }

    /// Prints the result as text or JSON, then writes the files: one that can't be written any more must not cost the
    /// result.
    pub fn write(&self, document: &Document, json: &str, style: &Style) -> Result<(), Failure> {
        match self.prints_json() {
            true => print(json)?,
            false => print(&terminal::render(document, style))?,
        }
        self.write_files(document, json)
    }

    /// Writes the files alone.
    pub fn write_files(&self, document: &Document, json: &str) -> Result<(), Failure> {
        let json = self.json_file().map(|path| write_file(path, json));
        if let Some(path) = &self.html {
            write_file(path, &html::render(document))?;
            say(format_args!("report: {}", path.display()));
        }
        json.unwrap_or(Ok(()))
    }
}

/// Prints to standard output; a reader that has gone away (`| head`) is no error.
pub fn print(text: &str) -> Result<(), Failure> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|e| Failure::bad(format_args!("standard output: {e}"))),
    }
}

/// Finds out whether a file can be written, before a program runs for hours. Nothing is changed.
pub fn check_writable(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Err(Failure::bad(format_args!("{}: is a folder; name a file", path.display())));
    }
    check_place(path).map_err(|e| cannot_write(path, &e))?;
    if path.exists() && !path.is_file() {
        return Ok(()); // opening a pipe would wait for its reader
    }
    if path.is_file() {
        std::fs::OpenOptions::new().append(true).open(path).map_err(|e| cannot_write(path, &e))?;
    }
    tempfile::NamedTempFile::new_in(folder_of(path)).map_err(|e| cannot_write(path, &e))?;
    Ok(())
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    // A temporary file's error names that file, which means nothing to the user; its cause is the system's word.
    let why = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    Failure::bad(format_args!("{}: {why}; choose another place", path.display()))
}

/// Writes a file whole or not at all: readers never see half of it.
pub fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    let fail = |e: io::Error| cannot_write(path, &e);
    // A pipe or device can't be replaced, and a link (`/dev/stdout`) is not to be.
    if path.is_symlink() || path.exists() && !path.is_file() {
        return create_file(path).and_then(|mut file| file.write_all(text.as_bytes())).map_err(fail);
    }
    // As others may read it that is there already, and this user's; else as the user's mask says.
    let is_ours = |there: &Metadata| there.is_file() && there.uid() == rustix::process::geteuid().as_raw();
    let kept = path.symlink_metadata().ok().filter(is_ours).map(|there| there.permissions());
    let fresh = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    let mut file = tempfile::Builder::new().permissions(fresh).tempfile_in(folder_of(path)).map_err(fail)?;
    if let Some(kept) = kept {
        file.as_file().set_permissions(kept).map_err(fail)?;
    }
    file.write_all(text.as_bytes()).map_err(fail)?;
    file.persist(path).map_err(|e| fail(e.error))?;
    Ok(())
}

/// How to write to standard output.
pub fn style(top: Option<usize>) -> Style {
    let terminal = io::stdout().is_terminal();
    Style { width: width(), color: color(), unicode: unicode(), plots: terminal, top }
}

/// Whether more than ASCII can be shown: always in files, by the locale on a terminal.
fn unicode() -> bool {
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()));
    !io::stdout().is_terminal() || locale.is_some_and(|l| l.to_lowercase().replace('-', "").contains("utf8"))
}

/// Colour on standard output: a terminal, and NO_COLOR not set.
fn color() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// Columns of the terminal; 100 where there is none.
fn width() -> usize {
    rustix::termios::tcgetwinsize(io::stdout())
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|&columns| columns >= 40)
        .unwrap_or(100)
}

/// A spinner on standard error for what takes longer; nothing where that is no terminal.
pub fn spinner(what: &str) -> indicatif::ProgressBar {
    let bar = indicatif::ProgressBar::new_spinner();
    let style = indicatif::ProgressStyle::with_template("{spinner} {prefix} {msg} {elapsed}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.set_prefix(what.to_string());
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    bar
}

/// The same, but for nothing while a program runs that was started here: the terminal is the program's.
pub fn spinner_unless(what: &str, program_runs: bool) -> indicatif::ProgressBar {
    if program_runs {
        return indicatif::ProgressBar::hidden();
    }
    spinner(what)
}

/// 1234567 as `1.23 M`.
pub fn short_count(n: u64) -> String {
    match n {
        0..=9_999 => n.to_string(),
        10_000..=999_999 => format!("{:.0} k", n as f64 / 1e3),
        1_000_000..=999_999_999 => format!("{:.1} M", n as f64 / 1e6),
        _ => format!("{:.2} G", n as f64 / 1e9),
    }
}
