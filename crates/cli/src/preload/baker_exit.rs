//! What the preloaded baker writes when its process exits.

use serde::Deserialize;

/// What the helper did in one process, as its library writes it at the exit: a line of JSON.
#[derive(Deserialize)]
pub struct BakerExit {
    /// How it touched; `auto` chose it.
    pub backend: String,
    /// What it did at the end.
    pub state: String,
    /// Error number of the call that the system refused; 0 = none.
    pub errno: i32,
    /// Nanoseconds of the process.
    pub elapsed_nanos: u64,
    /// Nanoseconds of CPU of the helper.
    pub cpu_nanos: u64,
    /// Rounds through all ranges.
    pub rounds: u64,
    /// Touches.
    pub touches: u64,
    /// Most bytes in small pages that were baked at a time.
    pub most_small_bytes: u64,
}

impl BakerExit {
    /// The lines of all processes that exited. A line that was cut, by a process that was killed, is left out.
    pub fn read_lines(lines: &str) -> Vec<Self> {
        lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}
