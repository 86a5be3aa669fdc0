//! Any text as each file that is planned by or planned: it gives a value or one clear line, and plans survive a round
//! trip.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lookaside_machine::Partitions;
use lookaside_techniques::color::tasks::TaskSet;
use lookaside_techniques::hugepages::plan::HugePlan;
use lookaside_techniques::lock::plan::LockPlan;
use lookaside_techniques::plan::Plan as _;

fn one_line(error: impl std::fmt::Display) {
    assert!(!error.to_string().contains('\n'), "{error}");
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match LockPlan::parse(text, "lock.toml") {
        Err(error) => one_line(error),
        Ok(plan) => assert_eq!(LockPlan::parse(&plan.to_toml(), "again.toml").as_ref(), Ok(&plan)),
    }
    match HugePlan::parse(text, "huge.toml") {
        Err(error) => one_line(error),
        Ok(plan) => assert_eq!(HugePlan::parse(&plan.to_toml(), "again.toml").as_ref(), Ok(&plan)),
    }
    match Partitions::parse(text, "partitions.toml") {
        Err(error) => one_line(error),
        Ok(plan) => assert_eq!(Partitions::parse(&plan.to_toml(), "again.toml").as_ref(), Ok(&plan)),
    }
    if let Err(error) = TaskSet::parse(text, "tasks.toml") {
        one_line(error);
    }
});
