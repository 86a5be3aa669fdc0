//! A process, as `/proc/PID` shows it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{openat, readlinkat, Dir, Mode, OFlags, CWD};
use rustix::io::retry_on_intr;

use crate::process_stat::{ProcessStat, ProcessStatus};
use crate::vma::{parse_smaps, Vma};
use crate::HostError;

/// A process of this system, by its folder in `/proc`. That it exists is seen when something of it is read.
#[derive(Clone, Debug)]
pub struct Process {
    folder: String,
    /// The same folder, open: it stays this process's when the number is given to another.
    held: Option<Arc<OwnedFd>>,
    /// `task/TID/` of a thread, else empty.
    within: String,
}

impl Process {
    /// The calling one.
    pub fn own() -> Self {
        Self { folder: "/proc/self".into(), held: None, within: String::new() }
    }

    /// The process or thread that has this number at the time of each read.
    pub fn of(pid: u32) -> Self {
        Self { folder: format!("/proc/{pid}"), ..Self::own() }
    }

    /// The process that has this number now. After it has ended every read fails, even if its number has been given to
    /// another. It costs a file descriptor.
    ///
    /// # Errors
    /// There is no such process.
    pub fn hold(pid: u32) -> Result<Self, HostError> {
        let process = Self::of(pid);
        let folder = process.open_at("", OFlags::DIRECTORY)?;
        Ok(Self { held: Some(Arc::new(folder)), ..process })
    }

    /// The path of one of its files, for a message or to be opened.
    pub fn path(&self, file: &str) -> PathBuf {
        format!("{}/{}{file}", self.folder, self.within).into()
    }

    /// Its virtual memory areas with what of them is in memory. That takes the kernel some 10 ms a GiB in small pages.
    ///
    /// # Errors
    /// There is no such process, or it may not be looked at.
    pub fn smaps(&self) -> Result<Vec<Vma>, HostError> {
        Ok(parse_smaps(&self.text("smaps")?))
    }

    /// The sum of its areas, named `[rollup]`; an empty one for a kernel thread.
    ///
    /// # Errors
    /// There is no such process, or it may not be looked at.
    pub fn smaps_rollup(&self) -> Result<Vma, HostError> {
        Ok(parse_smaps(&self.text("smaps_rollup")?).into_iter().next().unwrap_or_default())
    }

    /// Its areas alone: their addresses, rights and names. All else is 0.
    ///
    /// # Errors
    /// There is no such process, or it may not be looked at.
    pub fn maps(&self) -> Result<Vec<Vma>, HostError> {
        Ok(parse_smaps(&self.maps_text()?))
    }

    /// Its list of areas as the kernel writes it; empty where it has ended.
    ///
    /// # Errors
    /// There is no such process, or it may not be looked at.
    pub fn maps_text(&self) -> Result<String, HostError> {
        self.text("maps")
    }

    /// Numbers of its threads.
    ///
    /// # Errors
    /// There is no such process.
    pub fn threads(&self) -> Result<Vec<u32>, HostError> {
        Ok(self.numbers("task")?.collect())
    }

    /// One of its threads, as a process of its own.
    pub fn thread(&self, tid: u32) -> Self {
        Self { within: format!("task/{tid}/"), ..self.clone() }
    }

    /// Numbers of the processes that its threads have started and that are still its children. There are none where the
    /// kernel does not list them (`CONFIG_PROC_CHILDREN`).
    ///
    /// # Errors
    /// There is no such process.
    pub fn children(&self) -> Result<Vec<u32>, HostError> {
        let texts = self.threads()?.into_iter().filter_map(|tid| self.thread(tid).text("children").ok());
        let pids = |text: String| -> Vec<u32> { text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect() };
        Ok(texts.flat_map(pids).collect())
    }

    /// Its name: at most 15 bytes of the program's.
    ///
    /// # Errors
    /// There is no such process.
    pub fn comm(&self) -> Result<String, HostError> {
        self.text("comm").map(|text| text.strip_suffix('\n').unwrap_or(&text).to_string())
    }

    /// Its command line, word by word; empty where it has ended.
    ///
    /// # Errors
    /// There is no such process.
    pub fn command(&self) -> Result<Vec<String>, HostError> {
        let text = self.text("cmdline")?;
        let mut words: Vec<String> = text.split('\0').map(str::to_string).collect();
        words.pop();
        Ok(words)
    }

    /// The control group that it is in, by its path below the mount: of version 2, else that of the controller of memory.
    ///
    /// # Errors
    /// There is no such process, or the kernel has no control groups.
    pub fn control_group(&self) -> Result<String, HostError> {
        let text = self.text("cgroup")?;
        let path = control_group(&text).map(str::to_string);
        path.ok_or_else(|| HostError::text(self.path("cgroup"), "group", &text))
    }

    /// The file of the program that it runs.
    ///
    /// # Errors
    /// There is no such process, or it may not be looked at.
    pub fn exe(&self) -> Result<PathBuf, HostError> {
        self.link("exe")
    }

    /// Numbers of its open files, each read when it is asked for.
    ///
    /// # Errors
    /// There is no such process, or it may not be looked at.
    pub fn open_files(&self) -> Result<impl Iterator<Item = u32>, HostError> {
        self.numbers("fd")
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
        let (folder, path) = self.place(file);
        let target = readlinkat(folder, &path, Vec::new()).map_err(|e| HostError::io(self.path(file), e.into()))?;
        Ok(std::ffi::OsString::from_vec(target.into_bytes()).into())
    }

    /// What its `stat` says (proc_pid_stat(5)).
    ///
    /// # Errors
    /// There is no such process.
    pub fn stat(&self) -> Result<ProcessStat, HostError> {
        Ok(ProcessStat::of_text(&self.text("stat")?))
    }

    /// What its `status` says (proc_pid_status(5)).
    ///
    /// # Errors
    /// There is no such process.
    pub fn status(&self) -> Result<ProcessStatus, HostError> {
        Ok(ProcessStatus::of_text(self.text("status")?))
    }

    /// Calls that write, as `write` and `writev`, that it and its threads have made (proc_pid_io(5), `syscw`); of a
    /// thread, its own. Calls that send to a socket (`send`, `sendmsg`) are not among them.
    ///
    /// # Errors
    /// There is no such process, or it may not be looked at.
    pub fn write_calls(&self) -> Result<u64, HostError> {
        let text = self.text("io")?;
        let calls = crate::process_stat::line(&text, "syscw").and_then(|calls| calls.parse().ok());
        calls.ok_or_else(|| HostError::text(self.path("io"), "a line `syscw: N`", &text))
    }

    /// Nanoseconds of CPU time that a thread has used (Documentation/scheduler/sched-stats.rst, `/proc/<pid>/schedstat`);
    /// of a process, those of its first thread.
    ///
    /// # Errors
    /// There is no such thread, or the kernel does not tell (`CONFIG_SCHED_INFO`).
    pub fn run_nanos(&self) -> Result<u64, HostError> {
        let text = self.text("schedstat")?;
        let nanos = text.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
        nanos.ok_or_else(|| HostError::text(self.path("schedstat"), "three numbers", &text))
    }

    /// What a file in its folder says, as it is.
    ///
    /// # Errors
    /// There is no such process or file, or it may not be looked at.
    pub fn bytes(&self, file: &str) -> Result<Vec<u8>, HostError> {
        let mut bytes = Vec::new();
        self.open(file)?.read_to_end(&mut bytes).map_err(|e| HostError::io(self.path(file), e))?;
        Ok(bytes)
    }

    /// Opens a file in its folder for reading.
    ///
    /// # Errors
    /// There is no such process or file, or it may not be looked at.
    pub fn open(&self, file: &str) -> Result<File, HostError> {
        self.open_at(file, OFlags::RDONLY).map(File::from)
    }

    /// Clears the referenced bits of all its pages. The kernel holds `mmap_lock` for writing meanwhile.
    ///
    /// # Errors
    /// There is no such process, it may not be written to, or the kernel was built without `CONFIG_PROC_PAGE_MONITOR`.
    pub fn clear_referenced(&self) -> Result<(), HostError> {
        let mut file = File::from(self.open_at("clear_refs", OFlags::WRONLY)?);
        file.write_all(b"1").map_err(|e| HostError::io(self.path("clear_refs"), e))
    }

    /// The text of one of its files; bytes that are no UTF-8 are replaced.
    fn text(&self, file: &str) -> Result<String, HostError> {
        Ok(String::from_utf8_lossy(&self.bytes(file)?).into_owned())
    }

    /// The entries of a folder that are numbers.
    fn numbers(&self, folder: &str) -> Result<impl Iterator<Item = u32>, HostError> {
        let entries = Dir::new(self.open_at(folder, OFlags::DIRECTORY)?);
        let entries = entries.map_err(|e| HostError::io(self.path(folder), e.into()))?;
        Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str().ok()?.parse().ok()))
    }

    fn open_at(&self, file: &str, flags: OFlags) -> Result<OwnedFd, HostError> {
        let (folder, path) = self.place(file);
        let flags = flags | OFlags::CLOEXEC;
        let opened = retry_on_intr(|| openat(folder, &path, flags, Mode::empty()));
        opened.map_err(|e| HostError::io(self.path(file), io::Error::from(e)))
    }

    /// Where one of its files is: an open folder, and the path from there.
    fn place(&self, file: &str) -> (BorrowedFd<'_>, PathBuf) {
        match &self.held {
            Some(folder) => (folder.as_fd(), format!("{}{file}", self.within).into()),
            None => (CWD, self.path(file)),
        }
    }
}

/// Of lines as `0::/user.slice` (version 2) and `4:memory:/user.slice`.
fn control_group(text: &str) -> Option<&str> {
    let lines = || text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let path_of = |wanted: &str| {
        let is_wanted = |names: &str| names.split(',').any(|name| name == wanted);
        lines().find_map(|(names, path)| is_wanted(names).then_some(path))
    };
    // A system that has both versions keeps everybody at the top of the second one.
    let unified = path_of("");
    unified.filter(|path| *path != "/").or_else(|| path_of("memory")).or(unified)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_that_of_version_2_else_that_of_memory() {
        assert_eq!(control_group("0::/a.slice/b: c\n"), Some("/a.slice/b: c"));
        assert_eq!(control_group("5:cpu:/x\n4:pids,memory:/m\n0::/\n"), Some("/m"));
        assert_eq!(control_group("0::/\n"), Some("/"));
        assert_eq!((control_group("5:cpu:/x\n"), control_group("")), (None, None));
        assert!(Process::own().control_group().map_or(true, |group| group.starts_with('/')));
    }

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
        assert!(own.status().expect("our own").bytes("VmRSS").is_some_and(|bytes| bytes > 0));
        assert_eq!(own.stat().expect("our own").parent(), std::os::unix::process::parent_id());
        let maps = own.maps().expect("our own");
        assert!(maps.iter().any(|vma| vma.overlaps(&(here..here + 1)) && vma.resident_bytes == 0));
        let file = File::open("/dev/null").expect("a file");
        let number = std::os::fd::AsRawFd::as_raw_fd(&file);
        assert!(own.open_files().expect("our own").any(|one| one as i32 == number));
        assert_eq!(own.open_file(number).expect("our own"), std::path::Path::new("/dev/null"));
        let before = own.write_calls().expect("our own");
        std::fs::write("/dev/null", "x").expect("written");
        assert!(own.write_calls().expect("our own") > before);
        assert!(own.thread(std::process::id()).run_nanos().expect("our first thread") > 0);
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
        assert!(Process::hold(4_194_305).expect_err("nobody").is_missing());
        assert!(nobody.clear_referenced().expect_err("nobody").is_missing());
    }

    /// The path of one that is held is a message's: another process may have its number by now.
    #[test]
    fn what_is_held_and_has_ended_is_neither_read_nor_written_to_by_its_number() {
        let mut child = std::process::Command::new("true").spawn().expect("true is everywhere");
        let held = Process::hold(child.id()).expect("not waited for yet");
        child.wait().expect("it ends");
        let reused = Process { folder: "/proc/self".into(), ..held };
        assert!(reused.maps_text().is_err() && reused.exe().is_err() && reused.threads().is_err());
        assert!(reused.clear_referenced().is_err());
    }

    #[test]
    fn a_process_that_is_held_is_read_until_it_has_ended() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep is everywhere");
        let held = Process::hold(child.id()).expect("it runs");
        assert_eq!(held.stat().expect("it runs").parent(), std::process::id());
        assert_eq!(held.threads().expect("it runs"), [child.id()]);
        assert!(held.exe().is_ok() && held.thread(child.id()).stat().is_ok() && held.children().is_ok());
        assert!(Process::own().children().expect("our own").contains(&child.id()));
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        for error in [held.stat().map(|_| ()), held.exe().map(|_| ()), held.threads().map(|_| ())] {
            let error = error.expect_err("it has ended");
            assert!(error.is_missing() && error.to_string().starts_with(&format!("/proc/{}/", child.id())), "{error}");
        }
    }
}
