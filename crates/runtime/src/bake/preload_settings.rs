//! What is asked of the baker of an unmodified program: the value of `LOOKASIDE_BAKE` and of `lookaside bake run`.

use std::fmt;
use std::str::FromStr;

use super::error::BakeError;
use super::kernel::Scanner;
use super::module::Module;
use super::place;
use super::region::Target;
use super::settings::{BakeBackend, Settings};

/// A baker of an unmodified program: it finds the regions itself, and never loads.
#[derive(Clone, Debug, PartialEq)]
pub struct PreloadSettings {
    /// How it touches.
    pub settings: Settings,
}

impl PreloadSettings {
    /// Whether this system can do it, for a program that is started from here.
    ///
    /// # Errors
    /// A CPU that the program may not use, a kernel without the call.
    pub fn check(&self) -> Result<(), BakeError> {
        place::choose(self.settings.placement)?;
        match self.settings.backend {
            BakeBackend::Scan => drop(Scanner::open(Target::Own)?),
            BakeBackend::Module => drop(Module::open(Target::Own)?),
            _ => {}
        }
        Ok(())
    }
}

impl FromStr for PreloadSettings {
    type Err = BakeError;

    /// As [`Settings::from_str`] has it, without `load`.
    fn from_str(text: &str) -> Result<Self, BakeError> {
        let settings: Settings = text.parse().map_err(|e: BakeError| match text.split(',').next() {
            Some("") => {
                BakeError::Setting("no backend is given; there are auto, prefetch, module, scan, mincore".into())
            }
            _ => e,
        })?;
        if settings.backend == BakeBackend::Load {
            return Err(BakeError::Setting(
                "load: would fault pages in, and crash where the program unmaps them; use prefetch instead".into(),
            ));
        }
        Ok(Self { settings })
    }
}

/// As [`PreloadSettings::from_str`] reads it.
impl fmt::Display for PreloadSettings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        text.parse::<PreloadSettings>().expect_err(text).to_string()
    }

    #[test]
    fn what_is_written_is_read_and_written_again() {
        for text in ["auto,cpu=1,share=0.25", "prefetch:t2,stride=16,sleep=1000000ns"] {
            assert_eq!(text.parse::<PreloadSettings>().expect("a baker").to_string(), text);
        }
    }

    /// This test program, started again, may open no file.
    #[test]
    fn what_a_backend_has_to_open_is_opened_before_the_program_starts() {
        use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
        const ALONE: &str = "LOOKASIDE_TEST_NO_FILES";
        const NAME: &str =
            "bake::preload_settings::tests::what_a_backend_has_to_open_is_opened_before_the_program_starts";
        if std::env::var_os(ALONE).is_none() {
            let alone = std::process::Command::new(std::env::current_exe().expect("this program"))
                .args(["--exact", NAME])
                .env(ALONE, "1")
                .output()
                .expect("it starts");
            let said = String::from_utf8_lossy(&alone.stdout);
            return assert!(alone.status.success() && said.contains("1 passed"), "{said}");
        }
        setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..getrlimit(Resource::Nofile) }).expect("a limit");
        for (text, opened) in [
            ("scan", Some("pagemap")),
            ("module", Some("/dev/lookaside")),
            ("prefetch", None),
            ("mincore", None),
            ("auto", None),
        ] {
            let checked = text.parse::<PreloadSettings>().expect(text).check().map_err(|e| e.to_string());
            match opened {
                Some(file) => assert!(checked.as_ref().is_err_and(|why| why.contains(file)), "{text}: {checked:?}"),
                None => assert_eq!(checked, Ok(()), "{text}"),
            }
        }
    }

    #[test]
    fn a_cpu_that_the_program_may_not_use_is_refused_whatever_the_backend() {
        for text in ["scan,cpu=99999", "prefetch,cpu=99999", "auto,cpu=99999"] {
            let error = text.parse::<PreloadSettings>().expect(text).check().expect_err(text).to_string();
            assert!(error.starts_with("cpu=99999: "), "{error}");
        }
    }

    #[test]
    fn mistakes_get_a_line_each() {
        assert!(refused("load").contains("fault pages in"));
        assert!(refused("load,stride=9").contains("fault pages in"));
        assert!(refused("autos").contains("no such backend"));
        assert!(refused("").contains("no backend is given"));
    }
}
