//! What the papers' crates share: one row, one rule, one verdict, and the measuring of a machine.
//!
//! A [`Paper`] has its published values as TOML, each with the rule that says when ours holds. Its experiments run the
//! model, or measure this machine, and give a finding a row. [`Paper::reproduce`] and [`Paper::measure`] set them side
//! by side; a row that does not hold, that was fitted or that nobody has reproduced stays in the table and says so.
//!
//! ```
//! use lookaside_harness::{Effort, ModelExperiments, ModelFindings, Ours, Paper, RowFinding, RowVerdict};
//!
//! const PAPER: Paper = Paper {
//!     name: "example",
//!     cite: "A. Author, A Title, 2024",
//!     model: ModelExperiments {
//!         values: r#"
//!             [[row]]
//!             id = "entries"
//!             place = "Table 1"
//!             what = "entries of the TLB"
//!             published = 64
//!             rule = "equal"
//!         "#,
//!         run: |_effort, _progress| {
//!             let finding = RowFinding { ours: Ours::Value(64.0), note: String::new() };
//!             let findings = vec![("entries", finding)];
//!             Ok(ModelFindings { machine: "made up".into(), findings, ..ModelFindings::default() })
//!         },
//!     },
//!     metal: None,
//! };
//!
//! let found = PAPER.reproduce(Effort::Quick, &mut |_| ())?;
//! assert_eq!(found.rows[0].verdict, RowVerdict::Holds);
//! assert_eq!((found.holding(), found.counted().count()), (1, 1));
//! # Ok::<(), lookaside_harness::ModelFailed>(())
//! ```

pub mod cpus;
pub mod metal;
mod paper;
mod parallel;
mod reproduction;
mod row;
mod samples;
mod values;
mod view;

pub use paper::{Effort, ModelExperiments, ModelFailed, ModelFindings, ModelResult, Paper, RunModel};
pub use parallel::in_parallel;
pub use reproduction::{PaperCurve, Reproduction};
pub use row::{Ours, PaperRow, Published, RowFinding, RowVerdict, Rule};
pub use samples::{Sample, BACKGROUND};
pub use values::{rows, PublishedValue};
pub use view::{view, REPRODUCTION_SCHEMA};
