//! A cache of what is compiled at its first use: the Valgrind tool, the QEMU plugin.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use lookaside_host::is_only_ours;
use tempfile::TempDir;

/// A folder with a finished build.
pub(crate) struct CachedBuild {
    /// As `/proc/PID/exe` and the like show it.
    pub(crate) folder: PathBuf,
    /// Where no cache can be written, the folder lives as long as this.
    pub(crate) temporary: Option<TempDir>,
}

/// How to build one thing.
pub(crate) trait BuildRecipe {
    /// Name of its folder in the cache, as `valgrind`.
    fn name(&self) -> &str;

    /// Names this build: it changes with everything that goes into it.
    fn key(&self) -> String;

    /// Whether a folder has all of it.
    fn is_complete(&self, folder: &Path) -> bool;

    /// Builds it in an empty folder; with the last file it is complete.
    fn compile(&self, folder: &Path) -> Result<(), String>;
}

/// Where the build is kept; `None` without a home, and in one where others could put something in its place.
pub(crate) fn folder(recipe: &dyn BuildRecipe) -> Option<PathBuf> {
    let folder = lookaside_host::cache_folder()?.join(recipe.name()).join(recipe.key());
    lookaside_host::is_only_ours(&folder).then_some(folder)
}

/// Whether it is in the cache already, and nobody else can have written to it.
pub(crate) fn is_built(recipe: &dyn BuildRecipe) -> bool {
    folder(recipe).is_some_and(|folder| is_sound(recipe, &folder))
}

fn is_sound(recipe: &dyn BuildRecipe, folder: &Path) -> bool {
    let is_ours = |entry: io::Result<fs::DirEntry>| entry.is_ok_and(|entry| is_only_ours(&entry.path()));
    recipe.is_complete(folder) && fs::read_dir(folder).is_ok_and(|mut entries| entries.all(is_ours))
}

/// The build, made now if need be; in a temporary folder where no cache can be written.
pub(crate) fn build(recipe: &dyn BuildRecipe) -> Result<CachedBuild, String> {
    let built = |folder: &Path, temporary| -> Result<CachedBuild, String> {
        let folder = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(CachedBuild { folder, temporary })
    };
    let cached = folder(recipe);
    if let Some(folder) = cached.as_ref().filter(|folder| is_sound(recipe, folder)) {
        return built(folder, None);
    }
    let in_cache = cached.as_ref().and_then(|folder| {
        let parent = folder.parent()?;
        // Whatever the mask: a folder that others may write to would not be used.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).ok()?;
        tempfile::Builder::new().prefix(".build-").tempdir_in(parent).ok()
    });
    let Some((target, fresh)) = cached.zip(in_cache) else {
        let temporary = tempfile::Builder::new()
            .prefix("lookaside-build-")
            .tempdir()
            .map_err(|error| format!("no folder to build in: {error}"))?;
        recipe.compile(temporary.path())?;
        let folder = temporary.path().to_path_buf();
        return built(&folder, Some(temporary));
    };
    recipe.compile(fresh.path())?;
    // Of two processes that build the same at the same time, the second drops its build.
    match fs::rename(fresh.path(), &target) {
        Ok(()) => {
            let _ = fresh.keep();
        }
        Err(_) if is_sound(recipe, &target) => {}
        Err(error) => return Err(format!("{}: {error}", target.display())),
    }
    built(&target, None)
}

/// Runs a compiler in `folder`; its first complaint is the error, after `what`.
pub(crate) fn compile(command: &mut Command, folder: &Path, what: &str) -> Result<(), String> {
    let output = command.current_dir(folder).output().map_err(|error: io::Error| format!("running gcc: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text
        .lines()
        .find(|line| line.contains("error:") || line.contains("undefined"))
        .or(text.lines().next())
        .unwrap_or("no message");
    Err(format!("{what}: {line}"))
}

/// A program in the `PATH`.
pub(crate) fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    struct OneFile;

    impl BuildRecipe for OneFile {
        fn name(&self) -> &str {
            "one"
        }

        fn key(&self) -> String {
            "1".into()
        }

        fn is_complete(&self, folder: &Path) -> bool {
            folder.join("file").is_file()
        }

        fn compile(&self, folder: &Path) -> Result<(), String> {
            fs::write(folder.join("file"), "x").map_err(|error| error.to_string())
        }
    }

    #[test]
    fn a_build_that_others_can_have_written_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        assert!(!is_sound(&OneFile, folder.path()), "nothing is there");
        OneFile.compile(folder.path()).unwrap();
        let file = folder.path().join("file");
        mode(&file, 0o755);
        assert!(is_sound(&OneFile, folder.path()));
        mode(&file, 0o775);
        assert!(!is_sound(&OneFile, folder.path()));
        mode(&file, 0o755);
        mode(folder.path(), 0o777);
        assert!(!is_sound(&OneFile, folder.path()));
    }
}
