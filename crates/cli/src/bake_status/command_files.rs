//! The status files of running `lookaside bake` commands: written by each, read by `lookaside top`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lookaside_runtime::bake::{Identity, ProcessReport};

use lookaside_cli::exit::Failure;
use lookaside_cli::output::write_file;

/// Where root's bakers write.
const SYSTEM: &str = "/run/lookaside";

/// Where a user's bakers write.
fn of_user() -> Option<PathBuf> {
    let folder = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty())?;
    Some(PathBuf::from(folder).join("lookaside"))
}

/// The file of this process, removed when this is dropped.
pub struct CommandStatusFile {
    file: PathBuf,
}

impl CommandStatusFile {
    /// Where it can be written; else `None`: then `top` shows the helpers' CPU time alone.
    pub fn open() -> Option<Self> {
        let folders = [of_user(), rustix::process::geteuid().is_root().then(|| SYSTEM.into())];
        let folder = folders.into_iter().flatten().find(|folder| std::fs::create_dir_all(folder).is_ok())?;
        Some(Self { file: folder.join(format!("bake-{}.json", std::process::id())) })
    }

    /// What is known now, in place of what was.
    pub fn write(&self, report: &[ProcessReport]) -> Result<(), Failure> {
        let text = serde_json::to_string(report).map_err(|e| Failure::bad(format_args!("JSON: {e}")))?;
        write_file(&self.file, &text)
    }
}

impl Drop for CommandStatusFile {
    fn drop(&mut self) {
        // Gone or not: a file whose process is gone is not read.
        let _ = std::fs::remove_file(&self.file);
    }
}

/// The processes that bakers which still run bake now, by number.
pub fn running() -> BTreeMap<u32, ProcessReport> {
    let folders = [Some(PathBuf::from(SYSTEM)), of_user()];
    folders.into_iter().flatten().flat_map(|folder| baked_in(&folder)).collect()
}

fn baked_in(folder: &Path) -> BTreeMap<u32, ProcessReport> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let read = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.strip_prefix("bake-")?.strip_suffix(".json")?.parse().ok()?;
        Identity::of(name).ok()?;
        serde_json::from_str::<Vec<ProcessReport>>(&std::fs::read_to_string(&path).ok()?).ok()
    };
    let baked = files.filter_map(|file| read(file.path())).flatten();
    baked.filter(|baked| baked.running && !baked.let_go).map(|baked| (baked.pid, baked)).collect()
}

#[cfg(test)]
mod tests {
    use lookaside_runtime::bake::BakeStats;

    use super::*;

    #[test]
    fn status_files_of_running_bakers_are_read_and_no_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let baked = |pid: u32, running: bool| ProcessReport {
            pid,
            comm: "x".into(),
            running,
            let_go: false,
            mappings: 1,
            small_bytes: 2,
            stats: BakeStats { rounds: 3, ..BakeStats::default() },
            refused: None,
            within: None,
            rank: None,
        };
        let status = |writer: u32| CommandStatusFile { file: folder.path().join(format!("bake-{writer}.json")) };
        let ours = status(std::process::id());
        ours.write(&[baked(1, true), baked(2, false)]).expect("a file");
        // Of a process that is gone, and no such file.
        let gone = status(4_194_305);
        gone.write(&[baked(5, true)]).expect("a file");
        std::fs::write(folder.path().join("bake-1.json"), "[{").expect("a file");
        std::fs::write(folder.path().join("other.json"), "[]").expect("a file");
        let baked = baked_in(folder.path());
        assert_eq!(baked.values().map(|baked| (baked.pid, baked.stats.rounds)).collect::<Vec<_>>(), [(1, 3)]);
        drop(ours);
        assert!(baked_in(folder.path()).is_empty());
        assert!(baked_in(Path::new("/nonexistent")).is_empty());
    }
}
