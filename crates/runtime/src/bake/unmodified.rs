//! What is asked of the baker of an unmodified program: the value of `LOOKASIDE_BAKE` and of `lookaside run --bake`.

use std::fmt;
use std::str::FromStr;

use super::kernel::Scanner;
use super::module::Module;
use super::{place, Backend, BakeError, Settings, Target};

/// Share of a CPU that `auto` uses at most, unless another is given.
pub const AUTO_SHARE: f64 = 0.5;

/// A baker of an unmodified program: it finds the regions itself, and never loads.
#[derive(Clone, Debug, PartialEq)]
pub struct Unmodified {
    /// How it touches; with `auto` where it begins.
    pub settings: Settings,
    /// It paces itself, and switches itself off where it does not pay.
    pub auto: bool,
}

impl Unmodified {
    /// Whether this system can do it, for a program that is started from here.
    ///
    /// # Errors
    /// A CPU that the program may not use, a kernel without the call.
    pub fn check(&self) -> Result<(), BakeError> {
        place::choose(self.settings.placement)?;
        match self.settings.backend {
            Backend::Scan => drop(Scanner::open(Target::Own)?),
            Backend::Module => drop(Module::open(Target::Own)?),
            _ => {}
        }
        Ok(())
    }
}

impl FromStr for Unmodified {
    type Err = BakeError;

    /// `auto[,cpu=…][,share=0.5]`, or as [`Settings::from_str`] has it, without `load`.
    fn from_str(text: &str) -> Result<Self, BakeError> {
        let rest = match text.strip_prefix("auto") {
            Some(rest) if rest.is_empty() || rest.starts_with(',') => rest,
            _ => {
                let settings: Settings = text.parse().map_err(|e: BakeError| match text.split(',').next() {
                    Some("") => BakeError::Setting(
                        "no backend is given; there are auto, prefetch, module, scan, mincore".into(),
                    ),
                    _ => e,
                })?;
                if settings.backend == Backend::Load {
                    return Err(BakeError::Setting(
                        "load: would fault pages in and crash where the program unmaps them; prefetch reads as well"
                            .into(),
                    ));
                }
                return Ok(Self { settings, auto: false });
            }
        };
        let own = ["stride", "nops", "sleep"];
        if let Some(name) = rest.split(',').filter_map(|part| part.split('=').next()).find(|name| own.contains(name)) {
            return Err(BakeError::Setting(format!("{name}: auto chooses it; name a backend to set it yourself")));
        }
        let mut settings: Settings = format!("prefetch:t0{rest}").parse()?;
        if !rest.split(',').any(|part| part.starts_with("share=")) {
            settings.cpu_share = AUTO_SHARE;
        }
        Ok(Self { settings, auto: true })
    }
}

/// As [`Unmodified::from_str`] reads it.
impl fmt::Display for Unmodified {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.settings.to_string();
        match (self.auto, text.strip_prefix("prefetch:t0")) {
            (true, Some(rest)) => write!(out, "auto{rest}"),
            _ => out.write_str(&text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Placement;
    use super::*;

    fn refused(text: &str) -> String {
        text.parse::<Unmodified>().expect_err(text).to_string()
    }

    #[test]
    fn auto_and_backends_are_read() {
        let auto: Unmodified = "auto".parse().expect("a baker");
        assert_eq!((auto.auto, auto.settings.cpu_share), (true, AUTO_SHARE));
        let auto: Unmodified = "auto,cpu=1,share=0.25".parse().expect("a baker");
        assert_eq!((auto.auto, auto.settings.cpu_share, auto.settings.placement), (true, 0.25, Placement::Cpu(1)));
        assert_eq!(auto.to_string(), "auto,cpu=1,share=0.25");
        let fixed: Unmodified = "prefetch:t2,stride=16,sleep=1ms".parse().expect("a baker");
        assert_eq!((fixed.auto, fixed.settings.stride_pages), (false, 16));
        assert_eq!(fixed.to_string(), "prefetch:t2,stride=16,sleep=1000000ns");
    }

    #[test]
    fn mistakes_get_a_line_each() {
        assert!(refused("load").contains("fault pages in"));
        assert!(refused("load,stride=9").contains("fault pages in"));
        assert!(refused("auto,stride=8").contains("auto chooses it"));
        assert!(refused("auto,share=2").contains("share=2"));
        assert!(refused("auto,speed=2").contains("no such setting"));
        assert!(refused("autos").contains("no such backend"));
        assert!(refused("").contains("no backend is given"));
    }
}
