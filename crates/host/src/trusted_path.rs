//! Whether somebody else can have written what is about to be executed or believed.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Write permission of the group and of all others.
const OTHERS_WRITE: u32 = 0o022;
/// Only who owns an entry of such a folder may replace it.
const STICKY: u32 = 0o1000;

/// Whether only this user and root can have put there what lies at `path`, or can put something there while nothing
/// does: each folder above it belongs to one of them, and others may not write to it. Links are followed.
pub fn is_only_ours(path: &Path) -> bool {
    let Some(existing) = path.ancestors().find(|ancestor| ancestor.symlink_metadata().is_ok()) else { return false };
    let Ok(real) = existing.canonicalize() else { return false };
    real.ancestors().all(|part| {
        let Ok(stat) = part.metadata() else { return false };
        is_of_ours(&stat) && (stat.mode() & OTHERS_WRITE == 0 || stat.is_dir() && stat.mode() & STICKY != 0)
    })
}

/// Whether it is this user's or root's.
pub(crate) fn is_of_ours(stat: &Metadata) -> bool {
    stat.uid() == 0 || stat.uid() == rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir, set_permissions, write, Permissions};
    use std::os::unix::fs::{chown, symlink, PermissionsExt};

    use super::*;

    fn mode(path: &Path, mode: u32) {
        set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_others_may_write_to_is_not_only_ours() {
        let folder = tempfile::tempdir().unwrap();
        let (inner, file) = (folder.path().join("inner"), folder.path().join("inner/file"));
        create_dir(&inner).unwrap();
        write(&file, "x").unwrap();
        mode(&inner, 0o755);
        mode(&file, 0o644);
        assert!(is_only_ours(&file) && is_only_ours(&inner.join("not/there/yet")));
        for others in [0o664, 0o646] {
            mode(&file, others);
            assert!(!is_only_ours(&file), "{others:o}");
        }
        mode(&file, 0o600);
        for others in [0o775, 0o757] {
            mode(&inner, others);
            assert!(!is_only_ours(&file) && !is_only_ours(&inner.join("new")), "{others:o}");
        }
        // As `/tmp` is.
        mode(&inner, 0o1777);
        assert!(is_only_ours(&file));
        // What a link leads to counts; a link to nothing leads nowhere.
        let link = folder.path().join("link");
        symlink(&inner, &link).unwrap();
        mode(&inner, 0o777);
        assert!(!is_only_ours(&link.join("file")));
        let nowhere = folder.path().join("nowhere");
        symlink("/nothing/here", &nowhere).unwrap();
        assert!(!is_only_ours(&nowhere) && !is_only_ours(Path::new("")));
    }

    #[test]
    fn what_another_user_owns_is_not_only_ours() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("LEFT OUT: only root can give a folder away");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        create_dir(&home).unwrap();
        assert!(is_only_ours(&home.join("cache")));
        chown(&home, Some(65534), None).unwrap();
        assert!(!is_only_ours(&home) && !is_only_ours(&home.join("cache")));
    }
}
