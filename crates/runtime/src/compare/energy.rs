//! Energy of the CPU packages, by RAPL through the kernel's powercap files.

use std::path::{Path, PathBuf};

/// One package's counter.
#[derive(Debug)]
struct Package {
    counter: PathBuf,
    /// The counter goes from here back to 0, in µJ.
    range: u64,
    last: u64,
}

/// Reads the packages' counters.
#[derive(Debug)]
pub(super) struct Meter {
    packages: Vec<Package>,
    microjoules: u64,
}

impl Meter {
    /// All packages under `powercap`.
    ///
    /// # Errors
    /// In a line: why energy cannot be read here.
    pub(super) fn open(powercap: &Path) -> Result<Self, String> {
        let none = "no RAPL here (virtual machines seldom have it)";
        let entries =
            std::fs::read_dir(powercap).map_err(|_| format!("energy: {} is not there: {none}", powercap.display()))?;
        let mut zones: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        zones.sort();
        let mut packages = Vec::new();
        for zone in zones {
            // A package's parts (core, uncore, dram) have names of their own and are in its sum.
            let name = std::fs::read_to_string(zone.join("name")).unwrap_or_default();
            // The same package may be there a second time, by memory-mapped registers.
            let twice = zone.file_name().is_some_and(|file| file.to_string_lossy().starts_with("intel-rapl-mmio"));
            if !name.starts_with("package-") || twice {
                continue;
            }
            let counter = zone.join("energy_uj");
            let last = number(&counter).map_err(|e| match e.kind() {
                std::io::ErrorKind::PermissionDenied => {
                    format!("energy: {}: only root may read it", counter.display())
                }
                _ => format!("energy: {}: {e}", counter.display()),
            })?;
            let range = zone.join("max_energy_range_uj");
            let range = number(&range).map_err(|e| format!("energy: {}: {e}", range.display()))?;
            packages.push(Package { counter, range, last });
        }
        if packages.is_empty() {
            return Err(format!("energy: {} names no package: {none}", powercap.display()));
        }
        Ok(Self { packages, microjoules: 0 })
    }

    /// Adds what was used since the last look. Between two looks no counter may go round twice: at 500 W the smallest
    /// range (65 kJ) lasts two minutes.
    pub(super) fn look(&mut self) -> Result<(), String> {
        for package in &mut self.packages {
            let now = number(&package.counter).map_err(|e| format!("energy: {}: {e}", package.counter.display()))?;
            let used = match now.checked_sub(package.last) {
                Some(used) => used,
                None => package.range.saturating_sub(package.last).saturating_add(now),
            };
            self.microjoules = self.microjoules.saturating_add(used);
            package.last = now;
        }
        Ok(())
    }

    /// Joules since the last call of this.
    pub(super) fn joules(&mut self) -> Result<f64, String> {
        self.look()?;
        Ok(std::mem::take(&mut self.microjoules) as f64 / 1e6)
    }
}

fn number(path: &Path) -> std::io::Result<u64> {
    let text = std::fs::read_to_string(path)?;
    text.trim().parse().map_err(|_| std::io::Error::new(std::io::ErrorKind::InvalidData, "holds no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(root: &Path, folder: &str, name: &str, energy: u64) -> PathBuf {
        let zone = root.join(folder);
        std::fs::create_dir_all(&zone).expect("a folder");
        std::fs::write(zone.join("name"), format!("{name}\n")).expect("written");
        std::fs::write(zone.join("energy_uj"), format!("{energy}\n")).expect("written");
        std::fs::write(zone.join("max_energy_range_uj"), "1000000000\n").expect("written");
        zone
    }

    #[test]
    fn packages_are_added_up_and_go_round() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        let first = zone(root, "intel-rapl:0", "package-0", 999_000_000);
        let second = zone(root, "intel-rapl:1", "package-1", 5_000_000);
        let core = zone(root, "intel-rapl:0:0", "core", 1);
        zone(root, "intel-rapl-mmio:0", "package-0", 1);
        let mut meter = Meter::open(root).expect("a meter");
        let set =
            |zone: &Path, energy: u64| std::fs::write(zone.join("energy_uj"), energy.to_string()).expect("written");
        set(&core, 900_000_000);
        set(&first, 2_000_000);
        set(&second, 7_500_000);
        meter.look().expect("a look");
        set(&second, 8_000_000);
        assert_eq!(meter.joules(), Ok(3.0 + 2.5 + 0.5));
        assert_eq!(meter.joules(), Ok(0.0));
        set(&first, 0);
        std::fs::write(first.join("energy_uj"), "-").expect("written");
        assert!(meter.joules().expect_err("no number").contains("intel-rapl:0"));
    }

    /// As of a counter that root alone may read.
    #[test]
    fn who_may_not_read_the_counter_is_told_who_may() {
        let folder = tempfile::tempdir().expect("a folder");
        let zone = zone(folder.path(), "intel-rapl:0", "package-0", 1);
        let counter = zone.join("energy_uj");
        let nobodys = std::os::unix::fs::PermissionsExt::from_mode(0o0);
        std::fs::set_permissions(&counter, nobodys).expect("our own");
        let refused = crate::rights::without_rights(|| Meter::open(folder.path()).map(|_| ()));
        assert_eq!(refused, Err(format!("energy: {}: only root may read it", counter.display())));
        std::fs::remove_file(&counter).expect("our own");
        let missing = Meter::open(folder.path()).map(|_| ()).expect_err("no counter");
        assert!(missing.starts_with(&format!("energy: {}: ", counter.display())), "{missing}");
        assert!(missing.contains("os error 2"), "{missing}");
    }

    #[test]
    fn what_is_missing_is_said_in_a_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = Meter::open(&folder.path().join("none")).expect_err("not there");
        assert!(error.contains("no RAPL here") && !error.contains('\n'), "{error}");
        zone(folder.path(), "dtpm", "other", 1);
        assert!(Meter::open(folder.path()).expect_err("no package").contains("names no package"));
    }
}
