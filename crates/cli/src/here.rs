//! The machine at hand: measured when a command first needs it, and kept for later ones.

use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lookaside_host::{cache_folder, cache_name, kernel_release, system_product, CpuInfo};
use lookaside_machine::{preset, to_toml, Machine};

use crate::exit::Failure;
use crate::nearest::{described, nearest};
use crate::probing::{measured, ProbeTime};
use crate::say::say;

/// Measuring takes no longer, in all its attempts.
const MOST: Duration = Duration::from_secs(30);
/// Changes with what a file of an earlier version would lack.
const FORMAT: u32 = 2;

/// The machine at hand, and how its description came to be.
pub struct MachineHere {
    /// As measured; without a measurement the nearest preset.
    pub machine: Machine,
    /// Where its values are from, for people.
    pub reason: String,
    /// A level of its TLBs was measured.
    pub measured: bool,
}

impl MachineHere {
    /// As it was measured before, or is measured now: at most 30 s, said on standard error.
    pub fn find() -> Result<Self, Failure> {
        let Some(file) = kept_file() else { return Self::nearest(NO_HOME) };
        if let Some(machine) = read(&file) {
            return Ok(Self::of(machine));
        }
        // Where nothing can be kept, nobody waits for a measurement each time.
        if let Err(why) = in_folder(&file) {
            return Self::nearest(&why);
        }
        say(format_args!("measuring this machine, once, for at most {} s (--no-probe leaves it out)", MOST.as_secs()));
        let report = match measured(1, ProbeTime { attempt: MOST, all: Some(MOST) }, &|| false) {
            Ok(report) => report,
            Err(e) => return Self::nearest(&e.line),
        };
        let machine = described(&report)?;
        if !report.measured_a_level() {
            // What else was found stands, and is not kept: the next command tries again.
            let why = report.halted.clone().or(report.missing().into_iter().next().map(|(_, why)| why));
            let why = why.unwrap_or_else(|| "no pages were found that evict each other".into());
            let (_, nearness) = nearest();
            return Ok(Self {
                machine,
                reason: format!("{nearness}; no level of the TLB was measured: {why}"),
                measured: false,
            });
        }
        if let Err(e) = keep(&machine, &file) {
            say(format_args!("the measured description can't be saved: {e}"));
        }
        Ok(Self::of(machine))
    }

    /// As it was measured before; else the nearest preset. Nothing is measured now.
    pub fn kept() -> Result<Self, Failure> {
        match kept_file().and_then(|file| file.exists().then(|| read(&file)).flatten()) {
            Some(machine) => Ok(Self::of(machine)),
            None => Self::nearest("lookaside machine probe measures it, once"),
        }
    }

    /// The preset nearest to the running CPU, since nothing was measured.
    fn nearest(why: &str) -> Result<Self, Failure> {
        let (name, nearness) = nearest();
        Ok(Self { machine: preset(name)?, reason: format!("{nearness}; not measured: {why}"), measured: false })
    }

    fn of(machine: Machine) -> Self {
        let reason = "details: lookaside machine show this".into();
        let measured = machine.origins.any_measured();
        Self { machine, reason, measured }
    }
}

/// Keeps a description of this machine for later commands.
pub fn keep_for_later(machine: &Machine) -> Result<(), String> {
    keep(machine, &kept_file().ok_or(NO_HOME)?)
}

/// Where the description is kept; `None` without a home. Another CPU, microcode, kernel or kind of (virtual) machine
/// has another one.
fn kept_file() -> Option<PathBuf> {
    let cache = cache_folder()?;
    let cpu = CpuInfo::here();
    let of_cpu = ["vendor_id", "cpu family", "model", "stepping", "model name", "microcode", "CPU part"];
    let mut parts: Vec<String> = of_cpu.iter().map(|name| cpu.value(name).unwrap_or_default().to_string()).collect();
    let virtual_machine = cpu.has_flag("hypervisor") == Some(true);
    parts.extend([kernel_release(), system_product(), virtual_machine.to_string(), FORMAT.to_string()]);
    Some(cache.join("machine").join(cache_name(parts.iter().map(String::as_str)) + ".toml"))
}

/// A kept description that is sound, and that nobody but this user and root can have written.
fn read(file: &Path) -> Option<Machine> {
    if !std::fs::symlink_metadata(file).ok()?.is_file() || !lookaside_host::is_only_ours(file) {
        say(format_args!(
            "{}: ignored: it is no regular file, or other users can write to it or to a folder above it",
            file.display()
        ));
        return None;
    }
    match lookaside_machine::load(file) {
        Ok(machine) => Some(machine),
        Err(e) => {
            say(format_args!("{e}; measured again"));
            None
        }
    }
}

/// Said where a description has no place.
const NO_HOME: &str = "there is no place to keep it: HOME names no folder, and XDG_CACHE_HOME is not set";

fn keep(machine: &Machine, file: &Path) -> Result<(), String> {
    // Renamed when it is whole: whoever reads meanwhile sees the old one or the new one.
    let mut whole = in_folder(file)?;
    let said = |e: std::io::Error| format!("{}: {e}", file.display());
    whole.write_all(to_toml(machine).as_bytes()).map_err(said)?;
    whole.persist(file).map(drop).map_err(|e| said(e.error))
}

/// A new file in a file's folder, which is made if it is not there.
fn in_folder(file: &Path) -> Result<tempfile::NamedTempFile, String> {
    let folder = file.parent().unwrap_or(file);
    let said = |e: std::io::Error| format!("{}: {e}", folder.display());
    if folder.is_absolute() && !lookaside_host::is_only_ours(folder) {
        return Err(format!("{}: other users may write there", folder.display()));
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(said)?;
    tempfile::NamedTempFile::new_in(folder).map_err(said)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_kept_is_read_again_unless_others_may_write_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("lookaside/machine/1.toml");
        assert!(read(&file).is_none());
        let machine = preset("zen4").expect("a preset");
        keep(&machine, &file).expect("it can be kept");
        assert_eq!(read(&file), Some(machine.clone()));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o620)).expect("ours");
        assert_eq!(read(&file), None);
        std::fs::remove_file(&file).expect("ours");
        std::os::unix::fs::symlink("/etc/passwd", &file).expect("ours");
        assert_eq!(read(&file), None);
        std::fs::remove_file(&file).expect("ours");
        std::fs::write(&file, "name = ").expect("ours");
        assert_eq!(read(&file), None);
        keep(&machine, &file).expect("it is written anew");
        assert_eq!(read(&file), Some(machine));
        let nowhere = Path::new("/proc/none/machine/1.toml");
        let refused = keep(&preset("zen4").expect("a preset"), nowhere);
        assert!(refused.is_err_and(|e| e.starts_with("/proc/none/machine: ")));
    }
}
