//! What is asked of the baker of an unmodified program: the value of `LOOKASIDE_BAKE` and of `lookaside run --bake`.

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
                "load: would fault pages in and crash where the program unmaps them; prefetch reads as well".into(),
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

    #[test]
    fn mistakes_get_a_line_each() {
        assert!(refused("load").contains("fault pages in"));
        assert!(refused("load,stride=9").contains("fault pages in"));
        assert!(refused("autos").contains("no such backend"));
        assert!(refused("").contains("no backend is given"));
    }
}
