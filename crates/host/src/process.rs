//! A process, as `/proc/PID` shows it.

use std::fs::File;
use std::path::PathBuf;

use crate::error::read;
use crate::vma::{parse_smaps, Vma};
use crate::HostError;

/// A process of this system, by its folder in `/proc`. That it exists is seen when something of it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    folder: String,
}

impl Process {
    /// The calling one.
    pub fn own() -> Self {
        Self { folder: "/proc/self".into() }
    }

    /// The process or thread with this number.
    pub fn of(pid: u32) -> Self {
        Self { folder: format!("/proc/{pid}") }
    }

    /// The path of one of its files, for a message or to be opened.
    pub fn path(&self, file: &str) -> PathBuf {
        format!("{}/{file}", self.folder).into()
    }

    /// Its virtual memory areas with what of them is in memory. That takes the kernel some 10 ms a GiB in small pages.
    ///
    /// # Errors
    /// There is no such process, or it may not be looked at.
    pub fn smaps(&self) -> Result<Vec<Vma>, HostError> {
        Ok(parse_smaps(&read(self.path("smaps"))?))
    }

    /// The sum of its areas, named `[rollup]`; an empty one for a kernel thread.
    ///
    /// # Errors
    /// There is no such process, or it may not be looked at.
    pub fn smaps_rollup(&self) -> Result<Vma, HostError> {
        Ok(parse_smaps(&read(self.path("smaps_rollup"))?).into_iter().next().unwrap_or_default())
    }

    /// Its list of areas as the kernel writes it; empty where it has ended.
    ///
    /// # Errors
    /// There is no such process, or it may not be looked at.
    pub fn maps_text(&self) -> Result<String, HostError> {
        read(self.path("maps"))
    }

    /// Numbers of its threads.
    ///
    /// # Errors
    /// There is no such process.
    pub fn threads(&self) -> Result<Vec<u32>, HostError> {
        let path = self.path("task");
        let tasks = std::fs::read_dir(&path).map_err(|e| HostError::io(&path, e))?;
        Ok(tasks.flatten().filter_map(|task| task.file_name().to_str()?.parse().ok()).collect())
    }

    /// One of its threads, as a process of its own.
    pub fn thread(&self, tid: u32) -> Self {
        Self { folder: format!("{}/task/{tid}", self.folder) }
    }

    /// Its name: at most 15 bytes of the program's.
    ///
    /// # Errors
    /// There is no such process.
    pub fn comm(&self) -> Result<String, HostError> {
        read(self.path("comm")).map(|text| text.trim_end_matches('\n').to_string())
    }

    /// Its command line, word by word; empty where it has ended.
    ///
    /// # Errors
    /// There is no such process.
    pub fn command(&self) -> Result<Vec<String>, HostError> {
        let text = read(self.path("cmdline"))?;
        let mut words: Vec<String> = text.split('\0').map(str::to_string).collect();
        words.pop();
        Ok(words)
    }

    /// The file of the program that it runs.
    ///
    /// # Errors
    /// There is no such process, or it may not be looked at.
    pub fn exe(&self) -> Result<PathBuf, HostError> {
        self.link("exe")
    }

    /// What one of its open files is: a path, or the kernel's name as `pipe:[7]`.
    ///
    /// # Errors
    /// There is no such process or file, or it may not be looked at.
    pub fn open_file(&self, descriptor: i32) -> Result<PathBuf, HostError> {
        self.link(&format!("fd/{descriptor}"))
    }

    /// Where a link in its folder leads.
    ///
    /// # Errors
    /// There is no such process or link, or it may not be looked at.
    pub fn link(&self, file: &str) -> Result<PathBuf, HostError> {
        let path = self.path(file);
        std::fs::read_link(&path).map_err(|e| HostError::io(&path, e))
    }

    /// Fields of `stat` from the third on (proc_pid_stat(5)), as numbers; what is no number is 0.
    ///
    /// # Errors
    /// There is no such process.
    pub fn stat(&self) -> Result<Vec<u64>, HostError> {
        Ok(parse_stat(&read(self.path("stat"))?))
    }

    /// A line `NAME: text` of `status` (proc_pid_status(5)), as `SigIgn`; `None` where there is no such line.
    ///
    /// # Errors
    /// There is no such process.
    pub fn status(&self, name: &str) -> Result<Option<String>, HostError> {
        Ok(line(&read(self.path("status"))?, name).map(str::to_string))
    }

    /// A line `NAME: N kB` of `status`, as `RssAnon`, in bytes; `None` where there is no such line.
    ///
    /// # Errors
    /// There is no such process.
    pub fn status_bytes(&self, name: &str) -> Result<Option<u64>, HostError> {
        Ok(self.status(name)?.and_then(|value| kib(&value)))
    }

    /// What a file in its folder says, as it is.
    ///
    /// # Errors
    /// There is no such process or file, or it may not be looked at.
    pub fn bytes(&self, file: &str) -> Result<Vec<u8>, HostError> {
        let path = self.path(file);
        std::fs::read(&path).map_err(|e| HostError::io(&path, e))
    }

    /// Opens a file in its folder for reading.
    ///
    /// # Errors
    /// There is no such process or file, or it may not be looked at.
    pub fn open(&self, file: &str) -> Result<File, HostError> {
        let path = self.path(file);
        File::open(&path).map_err(|e| HostError::io(&path, e))
    }

    /// Clears the referenced bits of all its pages. The kernel holds `mmap_lock` for writing meanwhile.
    ///
    /// # Errors
    /// There is no such process, it may not be written to, or the kernel was built without `CONFIG_PROC_PAGE_MONITOR`.
    pub fn clear_referenced(&self) -> Result<(), HostError> {
        let path = self.path("clear_refs");
        std::fs::write(&path, "1").map_err(|e| HostError::io(&path, e))
    }
}

/// The text behind `NAME:` at the beginning of a line.
pub(crate) fn line<'text>(text: &'text str, name: &str) -> Option<&'text str> {
    let value = |line: &'text str| line.strip_prefix(name)?.trim_start().strip_prefix(':');
    text.lines().find_map(value).map(str::trim)
}

/// `N kB` in bytes.
pub(crate) fn kib(text: &str) -> Option<u64> {
    text.strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1024)
}

fn parse_stat(text: &str) -> Vec<u64> {
    // The second is the program's name, which can have blanks and brackets.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_whitespace().map(|word| word.parse().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn this_process_is_read() {
        let own = Process::own();
        let here = &own as *const Process as u64;
        let smaps = own.smaps().expect("our own");
        assert!(smaps.iter().any(|vma| vma.overlaps(&(here..here + 1)) && vma.resident_bytes > 0));
        let rollup = own.smaps_rollup().expect("our own");
        assert!(rollup.name == "[rollup]" && rollup.resident_bytes > 0, "{rollup:?}");
        assert!(own.maps_text().expect("our own").lines().count() > 1);
        assert!(own.threads().expect("our own").contains(&std::process::id()));
        assert_eq!(own.exe().expect("our own"), std::env::current_exe().expect("a path"));
        assert!(own.command().expect("our own")[0].contains("host"));
        assert!(own.status_bytes("VmRSS").expect("our own").is_some_and(|bytes| bytes > 0));
        assert_eq!(own.status("NoSuchLine").expect("our own"), None);
        assert_eq!(own.stat().expect("our own").get(1), Some(&u64::from(std::os::unix::process::parent_id())));
        let main = own.thread(std::process::id()).comm().expect("our first thread");
        assert!(!main.is_empty() && !main.contains('\n'), "{main:?}");
    }

    #[test]
    fn who_is_not_there_is_missing() {
        let nobody = Process::of(4_194_305);
        assert!(nobody.smaps().expect_err("nobody").is_missing());
        assert!(nobody.threads().expect_err("nobody").is_missing());
        let error = nobody.exe().expect_err("nobody");
        assert!(error.is_missing() && error.to_string().starts_with("/proc/4194305/exe: "), "{error}");
        assert!(nobody.clear_referenced().expect_err("nobody").is_missing());
    }

    #[test]
    fn a_name_with_brackets_is_no_field() {
        assert_eq!(parse_stat("7 (a) R 9) S 1 2 -3 4\n"), [0, 1, 2, 0, 4]);
        assert_eq!(parse_stat(""), [0u64; 0]);
        assert_eq!(parse_stat("7 (no end"), [0u64; 0]);
    }

    #[test]
    fn lines_are_found_by_their_whole_name() {
        let text = "VmRSSes: 1 kB\nVmRSS:\t  12 kB\nSigIgn:\t0000000000001000\nflags\t\t: a b\n";
        assert_eq!(line(text, "VmRSS").and_then(kib), Some(12 << 10));
        assert_eq!((line(text, "SigIgn"), line(text, "flags")), (Some("0000000000001000"), Some("a b")));
        assert_eq!(
            (line(text, "Vm"), kib("12"), kib("x kB"), kib("18446744073709551615 kB")),
            (None, None, None, None)
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC*", name in "[a-zA-Z]{0,5}") {
            parse_stat(&text);
            line(&text, &name).and_then(kib);
        }
    }
}
