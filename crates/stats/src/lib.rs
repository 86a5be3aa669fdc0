//! Statistics that every crate shares: one definition of a [`median`] and its [`quantile`]s, one bootstrap for the
//! interval of a [`ratio`] or another [`figure`] of medians, one rank test's interval for a [`paired_shift`], one
//! jackknife for a [`ratio_of_sums`] over windows of a run, one estimate of how many kinds there are ([`Richness`]), and
//! one seeded generator, [`SplitMix64`].
//!
//! Same numbers, same seed, same result, on every machine.
//!
//! ```
//! use lookaside_stats::{median, ratio, SplitMix64, RESAMPLES};
//!
//! assert_eq!(median([4, 1, 3, 2]), Some(2.5));
//!
//! // Seconds of the same eight rounds before and after a change.
//! let before = [2.1, 2.0, 2.2, 2.1, 2.0, 2.3, 2.1, 2.0];
//! let after = [1.1, 1.0, 1.2, 1.0, 1.0, 1.1, 1.1, 1.0];
//! let gain = ratio(&before, &after, 1, RESAMPLES).expect("positive times");
//! assert!(gain.significant && 1.8 < gain.low && gain.high < 2.2);
//!
//! let mut order: Vec<usize> = (0..8).collect();
//! SplitMix64::new(42).shuffle(&mut order);
//! ```

mod bootstrap;
mod jackknife;
mod quantile;
mod richness;
mod signed_rank;
mod splitmix;

pub use bootstrap::{figure, ratio, Figure, Ratio, LEAST_ROUNDS, RESAMPLES};
pub use jackknife::ratio_of_sums;
pub use quantile::{median, quantile, quantile_sample, quantiles, Number};
pub use richness::Richness;
pub use signed_rank::{paired_shift, Shift};
pub use splitmix::{finalise, SplitMix64};
