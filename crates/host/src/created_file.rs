//! Files that are written anew, where others may have laid something in the way.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use super::trusted_path::is_of_ours;

/// Write permission of all.
const ALL_WRITE: u32 = 0o002;

/// Opens a file for writing and empties it, as [`File::create`] does. In a folder that all may write to, such as
/// `/tmp`, or that is another user's, it follows no link and takes no file of another user's: these may have been laid
/// there so that who writes by that name, perhaps root, overwrites or gives away something else.
///
/// # Errors
/// The system's; such a link or file.
pub fn create_file(path: &Path) -> io::Result<File> {
    if !others_may_lay(folder_of(path)) {
        return File::create(path);
    }
    check_place(path)?;
    let mut options = OpenOptions::new();
    // One's own pipe waits for its reader; another's, laid there this moment, must not hold anybody up.
    let is_pipe = path.symlink_metadata().is_ok_and(|there| there.file_type().is_fifo());
    let wait = if is_pipe { 0 } else { libc::O_NONBLOCK };
    options.write(true).create(true).truncate(false).custom_flags(libc::O_NOFOLLOW | wait);
    let file = options.open(path)?;
    let opened = file.metadata()?;
    check(&opened)?;
    if opened.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

/// Whether [`create_file`] would take what lies there now, if anything does. Nothing is changed.
///
/// # Errors
/// It would not, and why.
pub fn check_place(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(there) if others_may_lay(folder_of(path)) => check(&there),
        _ => Ok(()),
    }
}

/// Whether others can make entries in a folder. Of one that can't be looked at opening the file tells.
fn others_may_lay(folder: &Path) -> bool {
    folder.metadata().is_ok_and(|stat| stat.mode() & ALL_WRITE != 0 || !is_of_ours(&stat))
}

fn check(there: &Metadata) -> io::Result<()> {
    let refused = |what: &str| {
        let text = format!("is {what}, in a folder that other users may write to");
        Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
    };
    if there.is_symlink() {
        return refused("a link");
    }
    // Devices are root's, and meant: `/dev/null`.
    let is_device = there.file_type().is_char_device() || there.file_type().is_block_device();
    if is_ours(there) || is_device && there.uid() == 0 {
        return Ok(());
    }
    refused("another user's")
}

fn is_ours(stat: &Metadata) -> bool {
    stat.uid() == rustix::process::geteuid().as_raw()
}

/// The folder that a file lies in.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::fs::{read_to_string, set_permissions, write, Permissions};
    use std::io::Write;
    use std::os::unix::fs::{chown, symlink, PermissionsExt};

    use super::*;

    #[test]
    fn links_are_followed_where_only_their_owner_can_have_made_them() {
        let folder = tempfile::tempdir().unwrap();
        let [target, link, file] = ["target", "link", "file"].map(|name| folder.path().join(name));
        write(&target, "precious").unwrap();
        symlink(&target, &link).unwrap();
        let mode = |mode| set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
        for open in [0o1777, 0o777, 0o703] {
            mode(open);
            let error = create_file(&link).unwrap_err();
            assert_eq!(error.to_string(), "is a link, in a folder that other users may write to", "{open:o}");
            assert_eq!(read_to_string(&target).unwrap(), "precious");
            // A new one, and one's own again.
            for text in ["longer", "new"] {
                create_file(&file).unwrap().write_all(text.as_bytes()).unwrap();
                assert_eq!(read_to_string(&file).unwrap(), text);
            }
        }
        mode(0o755);
        create_file(&link).unwrap();
        assert_eq!(read_to_string(&target).unwrap(), "");
        create_file(Path::new("/dev/null")).unwrap();
    }

    #[test]
    fn what_another_user_laid_there_is_left_alone() {
        if !rustix::process::geteuid().is_root() {
            return eprintln!("LEFT OUT: only root can give a file away");
        }
        let folder = tempfile::tempdir().unwrap();
        set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
        let [file, pipe] = ["file", "pipe"].map(|name| folder.path().join(name));
        write(&file, "theirs").unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for theirs in [&file, &pipe] {
            chown(theirs, Some(65534), None).unwrap();
            assert!(create_file(theirs).unwrap_err().to_string().starts_with("is another user's"));
        }
        assert_eq!(read_to_string(&file).unwrap(), "theirs");
        // A folder of theirs, whoever may write there.
        set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        chown(folder.path(), Some(65534), None).unwrap();
        assert!(create_file(&file).is_err());
    }
}
