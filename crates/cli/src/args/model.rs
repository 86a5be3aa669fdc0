//! The machine and the operating system that are modelled: the arguments that `analyze` and `simulate` share.

use clap::{Args, ValueEnum};
use lookaside_engine::{FrameLayout, PagePolicy};

#[derive(Args)]
pub struct ModelArgs {
    /// Preset name or description file (repeatable with `simulate`)
    /// [default: this machine, measured at the first use]
    #[arg(long, short, value_name = "NAME|FILE")]
    pub machine: Vec<String>,
    /// Without --machine, take the preset closest to this CPU; measure nothing
    #[arg(long, conflicts_with = "machine")]
    pub no_probe: bool,
    /// Override a value of the machine, for example tlb.stlb.ways=24 (repeatable)
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Page sizes used by the modelled OS
    #[arg(long, value_enum, default_value = "base")]
    pub pages: PagePolicyArg,
    /// How the modelled OS places frames: contiguous, random, or fragmented:N (runs of N pages)
    #[arg(long, default_value = "contiguous", value_parser = parse_frames)]
    pub frames: FrameLayout,
    /// Seed for random replacement and frame placement
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PagePolicyArg {
    /// Small pages only
    Base,
    /// Transparent huge pages wherever a mapping can hold one
    Thp,
}

impl From<PagePolicyArg> for PagePolicy {
    fn from(arg: PagePolicyArg) -> Self {
        match arg {
            PagePolicyArg::Base => Self::Base,
            PagePolicyArg::Thp => Self::Thp,
        }
    }
}

fn parse_frames(text: &str) -> Result<FrameLayout, String> {
    match text.split_once(':') {
        None if text == "contiguous" => Ok(FrameLayout::Contiguous),
        None if text == "random" => Ok(FrameLayout::Random),
        Some(("fragmented", n)) => match n.parse::<u64>() {
            Ok(run_pages) if run_pages.is_power_of_two() => Ok(FrameLayout::Fragmented { run_pages }),
            _ => Err(format!("{n:?} is not a power of two")),
        },
        _ => Err("write contiguous, random or fragmented:N".into()),
    }
}
