//! What to run.

use lookaside_workloads::Pages;

/// Which of MiBench's two inputs, or one between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProgramInput {
    /// As in its `small` runs.
    #[default]
    Small,
    /// As in its `large` runs.
    Large,
    /// So much that the run takes, on the model of the lockdown paper's machine (preset `cortex-a9`, each program
    /// alone), about the cycles of its section V.2: basicmath 14.4 million for 15, by a fifth of the small input's
    /// cubics; qsort 38.8 for 37, by 14,500 words, where the small input has 10,000; susan 28.9 for 33, by the large
    /// picture. The model takes a cycle for each access and instruction, and what data caches and translation cost; the
    /// kernel's work takes none. The paper says neither which of MiBench's inputs it runs nor how often, and has no
    /// smoothing.
    Paper,
}

/// What to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramSpec {
    /// How much a round does.
    pub input: ProgramInput,
    /// Seed of what is random in the input.
    pub seed: u64,
    /// How often the program does its work, from the input on: 1 to 2^32 - 1.
    pub rounds: u64,
    /// Page sizes of the native run.
    pub pages: Pages,
}

impl ProgramSpec {
    /// With seed 1, on base pages.
    pub fn new(input: ProgramInput, rounds: u64) -> Self {
        Self { input, seed: 1, rounds, pages: Pages::Base }
    }
}
