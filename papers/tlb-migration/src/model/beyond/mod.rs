//! Beyond the paper: what its chapter 9 leaves to future work. A predictor, the best cap, recorded programs, a periodic
//! task.

mod caps;
mod jitter;
mod phases;
mod sets;
mod variants;

use lookaside_harness::{Effort, ModelResult, BACKGROUND};
use lookaside_machine::Machine;

use crate::machines::ProgramSteps;
use variants::BeyondRows;

/// All of it.
pub(super) fn run(machine: &Machine, effort: Effort, progress: &mut dyn FnMut(&str)) -> ModelResult<BeyondRows> {
    progress("beyond the paper: recorded programs");
    let most = match effort {
        Effort::Usual => usize::MAX,
        Effort::Quick => 12_000,
    };
    let programs: ModelResult<Vec<ProgramSteps>> =
        BACKGROUND.iter().map(|sample| Ok(ProgramSteps::read(&mut sample.open()?, most)?)).collect();
    let programs = programs?;
    let mut told = phases::run(machine)?;
    let (rows, series) = sets::run(machine, &programs)?;
    told.0.extend(rows);
    told.1.extend(series);
    progress("beyond the paper: caps");
    let (rows, series) = caps::run(machine, &programs)?;
    told.0.extend(rows);
    told.1.extend(series);
    progress("beyond the paper: a periodic task");
    told.0.extend(jitter::run(machine, &programs, effort)?);
    Ok(told)
}
