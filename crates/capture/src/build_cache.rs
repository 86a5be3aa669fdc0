//! A cache of what is compiled at its first use: the Valgrind tool, the QEMU plugin.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// Where the build is kept; `None` without a home.
pub(crate) fn folder(recipe: &dyn BuildRecipe) -> Option<PathBuf> {
    Some(lookaside_host::cache_folder()?.join(recipe.name()).join(recipe.key()))
}

/// Whether it is in the cache already.
pub(crate) fn is_built(recipe: &dyn BuildRecipe) -> bool {
    folder(recipe).is_some_and(|folder| recipe.is_complete(&folder))
}

/// The build, made now if need be; in a temporary folder where no cache can be written.
pub(crate) fn build(recipe: &dyn BuildRecipe) -> Result<CachedBuild, String> {
    let built = |folder: &Path, temporary| -> Result<CachedBuild, String> {
        let folder = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(CachedBuild { folder, temporary })
    };
    let cached = folder(recipe);
    if let Some(folder) = cached.as_ref().filter(|folder| recipe.is_complete(folder)) {
        return built(folder, None);
    }
    let in_cache = cached.as_ref().and_then(|folder| {
        let parent = folder.parent()?;
        fs::create_dir_all(parent).ok()?;
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
        Err(_) if recipe.is_complete(&target) => {}
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
