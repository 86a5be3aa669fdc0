//! Where things are kept for a user's later commands.

use std::path::PathBuf;

/// The user's folder of what can be made again: `lookaside` in `$XDG_CACHE_HOME`, or in `~/.cache` (XDG Base Directory
/// Specification). `None` where that is not set and there is no home: none is made. It need not be there.
pub fn cache_folder() -> Option<PathBuf> {
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(home()?.join(".cache")))?;
    Some(caches.join("lookaside"))
}

/// The folder of what has to outlive a command and a restart of it: `lookaside` in `$XDG_STATE_HOME`, else
/// `/var/lib/lookaside` for root, and `~/.local/state/lookaside` for others (XDG Base Directory Specification). `None`
/// where there is no home. It need not be there.
pub fn state_folder() -> Option<PathBuf> {
    match absolute("XDG_STATE_HOME") {
        Some(folder) => Some(folder.join("lookaside")),
        None if rustix::process::geteuid().is_root() => Some("/var/lib/lookaside".into()),
        None => Some(home()?.join(".local/state/lookaside")),
    }
}

/// A name of 16 digits for what depends on all these texts, the same for ever. (FNV-1a of 64 bits, each text ended by a
/// byte that is in none. It tells apart what differs by chance, not what somebody forges.)
pub fn cache_name<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let bytes = texts.into_iter().flat_map(|text| text.bytes().chain([0xff]));
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("{hash:016x}")
}

/// A folder that a variable names, where it names one by its whole path.
fn absolute(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The user's own folder.
fn home() -> Option<PathBuf> {
    absolute("HOME").filter(|home| home.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_texts_one_by_one() {
        assert_eq!(cache_name([]), "cbf29ce484222325"); // the hash's published start
        assert_eq!(cache_name(["ab", "c"]), cache_name(["ab", "c"]));
        assert_ne!(cache_name(["ab", "c"]), cache_name(["a", "bc"]));
        assert_ne!(cache_name(["ab", ""]), cache_name(["ab"]));
    }
}
