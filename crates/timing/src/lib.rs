//! Seconds with an interval: what the engine's counts cost a program, by the program's own clock and by its accesses
//! replayed on this machine. [`TimedCore`] is apart from these: cycles of a described machine, by what each access
//! waits for. `RULES.md` beside this crate has every rule in words.
//!
//! This crate measures nothing. `lookaside-capture` takes the [`NativeClock`], `lookaside-techniques` cuts the
//! [`VisitWindow`]s out of a recording, `lookaside-probe` replays them.
//!
//! ```
//! use lookaside_timing::{saved, ReplayRound, ReplayTimes, SiteTime};
//!
//! // A program of ten seconds, nine of them at one load with 50 M visits, a fiftieth of which were replayed; each takes
//! // 180 ns with small pages and 150 ns with huge ones if it waits for the one before, 10 and 9 ns if it doesn't; the
//! // instructions between two of them take 2 ns.
//! let sites = [SiteTime { seconds: 9.0, visits: 50_000_000, waiting_visits: 0.0, translation_cycles: 1e9 }];
//! let round = ReplayRound {
//!     chained_small: 0.18,
//!     chained_huge: 0.15,
//!     free_small: 0.010,
//!     free_huge: 0.009,
//!     instructions_alone: 0.002,
//! };
//! let replay = ReplayTimes {
//!     held_rounds: vec![round; 5],
//!     represented_visits: 1e6,
//!     represented_cost: 0.02,
//!     ..Default::default()
//! };
//! let saving = saved(&sites, 10.0, 50_000_000, &replay, 0.001).expect("rounds");
//! // All of the nine seconds are waiting: a sixth of them is translation.
//! assert!((saving.best - 1.5).abs() < 0.1);
//! ```

mod attribution;
mod code_place;
mod core_model;
mod faults;
mod native_clock;
mod replay_round;
mod saved;
mod saved_seconds;
mod site_time;
mod thread_turns;
mod visit_window;

pub use attribution::{attribute, SiteCounts};
pub use code_place::CodePlace;
pub use core_model::{AddressFlow, CoreParameters, FlowRegister, MemoryTimes, TimedAccess, TimedCore};
pub use faults::{FaultBill, FaultCosts};
pub use native_clock::{NativeClock, SampledPlace};
pub use replay_round::{ReplayRound, ReplayTimes};
pub use saved::saved;
pub use saved_seconds::SavedSeconds;
pub use site_time::SiteTime;
pub use thread_turns::{ThreadTurns, ThreadsAtATime};
pub use visit_window::{PageVisit, RunVisits, VisitLine, VisitWindow};
