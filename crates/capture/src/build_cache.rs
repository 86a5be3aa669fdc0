//! A cache of what is compiled at its first use: the Valgrind tool, the QEMU plugin.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use lookaside_host::is_only_ours;
use tempfile::TempDir;

/// A folder with a finished build.
pub(crate) struct CachedBuild {
    /// As `/proc/PID/exe` and the like show it.
    pub(crate) folder: PathBuf,
    /// Where it is in no cache, the folder lives as long as this.
    pub(crate) temporary: Option<TempDir>,
    /// Why it was built for this time alone.
    pub(crate) unkept: Option<String>,
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

/// Where the build is kept; else why there is no such place.
fn kept_folder(recipe: &dyn BuildRecipe) -> Result<PathBuf, String> {
    let cache = lookaside_host::cache_folder()
        .ok_or("there is no place to keep it: HOME names no folder, and XDG_CACHE_HOME is not set")?;
    let folder = cache.join(recipe.name());
    match is_only_ours(&folder) {
        true => Ok(folder.join(recipe.key())),
        false => Err(format!(
            "other users can write to {} or to a folder above it; take that away with chmod go-w",
            folder.display()
        )),
    }
}

/// Whether it is in the cache already, and nobody else can have written to it.
pub(crate) fn is_built(recipe: &dyn BuildRecipe) -> bool {
    kept_folder(recipe).is_ok_and(|folder| is_sound(recipe, &folder))
}

fn is_sound(recipe: &dyn BuildRecipe, folder: &Path) -> bool {
    let is_ours = |entry: io::Result<fs::DirEntry>| entry.is_ok_and(|entry| is_only_ours(&entry.path()));
    recipe.is_complete(folder)
        && is_only_ours(folder)
        && fs::read_dir(folder).is_ok_and(|mut entries| entries.all(is_ours))
}

/// The build, made now if need be; in a temporary folder where it can't be kept.
pub(crate) fn build(recipe: &dyn BuildRecipe) -> Result<CachedBuild, String> {
    build_at(recipe, kept_folder(recipe))
}

fn build_at(recipe: &dyn BuildRecipe, kept: Result<PathBuf, String>) -> Result<CachedBuild, String> {
    let built = |folder: &Path, temporary, unkept| {
        let folder = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(CachedBuild { folder, temporary, unkept })
    };
    if let Some(folder) = kept.as_ref().ok().filter(|folder| is_sound(recipe, folder)) {
        return built(folder, None, None);
    }
    match kept.and_then(|folder| Ok((folder_beside(&folder)?, folder))) {
        Ok((fresh, folder)) => {
            compile_into(recipe, fresh.path())?;
            put(recipe, fresh, &folder)?;
            built(&folder, None, None)
        }
        Err(why) => {
            let temporary = tempfile::Builder::new().prefix("lookaside-build-").permissions(private()).tempdir();
            let temporary = temporary.map_err(|error| format!("no folder to build in: {error}"))?;
            compile_into(recipe, temporary.path())?;
            let folder = temporary.path().to_path_buf();
            let why = format!("what {} needs was built for this run only: {why}", recipe.name());
            built(&folder, Some(temporary), Some(why))
        }
    }
}

/// A new folder beside this one of the cache.
fn folder_beside(folder: &Path) -> Result<TempDir, String> {
    let parent = folder.parent().unwrap_or(folder);
    let failed = |error: io::Error| format!("{}: {error}", parent.display());
    // Whatever the mask: a folder that others may write to would not be used.
    fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(failed)?;
    tempfile::Builder::new().prefix(".build-").permissions(private()).tempdir_in(parent).map_err(failed)
}

/// Of a folder that this user alone may look into.
fn private() -> fs::Permissions {
    fs::Permissions::from_mode(0o700)
}

/// Puts a finished build in its place. Of two processes that build the same at the same time, the second drops its own;
/// what is there and not sound was written under another mask, and goes.
fn put(recipe: &dyn BuildRecipe, fresh: TempDir, folder: &Path) -> Result<(), String> {
    let rename = || fs::rename(fresh.path(), folder);
    let renamed = match rename() {
        Err(_) if is_sound(recipe, folder) => return Ok(()),
        Err(_) => fs::remove_dir_all(folder).and_then(|()| rename()),
        done => done,
    };
    renamed.map_err(|error| format!("{}: {error}", folder.display()))?;
    let _ = fresh.keep();
    Ok(())
}

/// Builds it there; whatever the mask, nobody else may write to the files.
fn compile_into(recipe: &dyn BuildRecipe, folder: &Path) -> Result<(), String> {
    recipe.compile(folder)?;
    let closed = fs::read_dir(folder).and_then(|entries| {
        for entry in entries {
            let entry = entry?;
            let mut permissions = entry.metadata()?.permissions();
            permissions.set_mode(permissions.mode() & 0o7755);
            // A link has no rights of its own, and leads out of the folder.
            if !entry.file_type()?.is_symlink() {
                fs::set_permissions(entry.path(), permissions)?;
            }
        }
        Ok(())
    });
    closed.map_err(|error| format!("{}: {error}", folder.display()))
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
            let file = folder.join("file");
            fs::write(&file, "x").map_err(|error| error.to_string())?;
            // As under a mask of 000.
            fs::set_permissions(file, fs::Permissions::from_mode(0o666)).map_err(|error| error.to_string())
        }
    }

    #[test]
    fn a_build_is_made_once_whatever_the_mask() {
        let cache = tempfile::tempdir().unwrap();
        let folder = cache.path().join("one/1");
        let built = || build_at(&OneFile, Ok(folder.clone())).unwrap();
        let file = folder.join("file");
        for _ in 0..2 {
            let CachedBuild { folder: made, temporary, unkept } = built();
            assert_eq!((made, temporary.is_none(), unkept), (folder.canonicalize().unwrap(), true, None));
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o644);
            fs::write(&file, "kept").unwrap();
        }
        // One that others may have written is made anew in its place, and nothing is left beside it.
        for (others_may_write, mode) in [(&file, 0o664), (&folder, 0o775)] {
            fs::set_permissions(others_may_write, fs::Permissions::from_mode(mode)).unwrap();
            fs::write(&file, "theirs").unwrap();
            built();
            assert_eq!(fs::read(&file).unwrap(), b"x");
            assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        }
        assert_eq!(fs::read_dir(folder.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn what_cannot_be_kept_is_built_all_the_same_and_said() {
        let cache = tempfile::tempdir().unwrap();
        let file = cache.path().join("in-the-way");
        fs::write(&file, "x").unwrap();
        for kept in [Ok(file.join("one/1")), Err("in-the-way".to_string())] {
            let built = build_at(&OneFile, kept).unwrap();
            assert!(built.folder.join("file").is_file() && built.temporary.is_some());
            assert!(built.unkept.is_some_and(|why| why.contains("one needs") && why.contains("in-the-way")));
        }
    }

    #[test]
    fn a_build_that_others_can_have_written_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        assert!(!is_sound(&OneFile, folder.path()), "nothing is there");
        compile_into(&OneFile, folder.path()).unwrap();
        let file = folder.path().join("file");
        assert!(is_sound(&OneFile, folder.path()));
        mode(&file, 0o775);
        assert!(!is_sound(&OneFile, folder.path()));
        mode(&file, 0o755);
        mode(folder.path(), 0o777);
        assert!(!is_sound(&OneFile, folder.path()));
    }
    #[test]
    fn of_two_that_build_the_same_the_second_drops_its_own() {
        let cache = tempfile::tempdir().unwrap();
        let folder = cache.path().join("one/1");
        for content in ["first", "second"] {
            let fresh = folder_beside(&folder).unwrap();
            compile_into(&OneFile, fresh.path()).unwrap();
            fs::write(fresh.path().join("file"), content).unwrap();
            put(&OneFile, fresh, &folder).unwrap();
            assert_eq!(fs::read(folder.join("file")).unwrap(), b"first");
            assert_eq!(fs::read_dir(folder.parent().unwrap()).unwrap().count(), 1);
        }
    }

    /// In a process whose environment is another test's.
    #[test]
    fn says_where_it_is_kept_for_another_test() {
        if std::env::var_os("LOOKASIDE_TEST_KEPT").is_some() {
            let before = is_built(&OneFile);
            let built = build(&OneFile).unwrap();
            let kept = kept_folder(&OneFile).map(|folder| folder.display().to_string());
            println!("kept: {kept:?}, {before}, {}, {}", built.unkept.is_none(), is_built(&OneFile));
        }
    }

    #[test]
    fn a_build_is_kept_where_nobody_else_can_write() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        let said = |variable: Option<&Path>| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "build_cache::tests::says_where_it_is_kept_for_another_test", "--nocapture"]);
            command.env_remove("HOME").env_remove("XDG_CACHE_HOME").env("LOOKASIDE_TEST_KEPT", "1");
            command.envs(variable.map(|cache| ("XDG_CACHE_HOME", cache)));
            let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
            text.split_once("kept: ").and_then(|(_, rest)| rest.lines().next()).unwrap_or(&text).to_string()
        };
        let kept = format!("Ok({:?})", cache.join("lookaside/one/1").display().to_string());
        assert_eq!(said(Some(&cache)), format!("{kept}, false, true, true"));
        assert_eq!(said(Some(&cache)), format!("{kept}, true, true, true"));
        fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).unwrap();
        let why = format!(
            "other users can write to {} or to a folder above it; take that away with chmod go-w",
            cache.join("lookaside/one").display()
        );
        assert_eq!(said(Some(&cache)), format!("Err({why:?}), false, false, false"));
        let why = "there is no place to keep it: HOME names no folder, and XDG_CACHE_HOME is not set";
        assert_eq!(said(None), format!("Err({why:?}), false, false, false"));
    }

    #[test]
    fn a_compilers_first_complaint_is_the_error() {
        let folder = tempfile::tempdir().unwrap();
        let said = |script: &str| compile(Command::new("sh").args(["-c", script]), folder.path(), "building one");
        let complaint = |line: &str| Err(format!("building one: {line}"));
        assert_eq!(said("touch made; echo a.c:1: error: none >&2"), Ok(()));
        assert!(folder.path().join("made").is_file());
        for (output, line) in [
            ("a.c: In function\na.c:1: error: one\na.c:2: error: two", "a.c:1: error: one"),
            ("ld: in function\na.c: undefined reference to one\nerror: ld", "a.c: undefined reference to one"),
            ("gcc: no such file\nmore", "gcc: no such file"),
            ("", "no message"),
        ] {
            assert_eq!(said(&format!("printf '{output}' >&2; exit 1")), complaint(line));
        }
        let none = compile(&mut Command::new("/no/such/compiler"), folder.path(), "building one");
        assert!(none.is_err_and(|why| why.starts_with("running gcc: ")));
    }

    #[test]
    fn a_program_is_found_in_the_path() {
        let shell = in_path("sh").expect("a shell");
        assert!(shell.is_file() && shell.ends_with("sh") && shell.is_absolute());
        assert_eq!(in_path("no-such-program-anywhere"), None);
    }
}
