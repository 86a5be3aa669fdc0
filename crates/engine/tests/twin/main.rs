//! The fast engine against its slow twin, on random machines and random traces.

mod array;
mod events;
mod generate;
mod hardware;
mod model;
mod rows;
mod space;
mod walk;

use generate::{blocks, columns, ops, setups};
use lookaside_engine::{AccessResult, Engine, Outcome, Setup};
use lookaside_trace::Block;
use model::Twin;
use proptest::prelude::*;

/// `PROPTEST_CASES` asks for more than the default, which keeps the whole file within seconds.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(150);
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::default() }
}

fn run_twin(setup: &Setup, blocks: &[Block]) -> (Vec<AccessResult>, Outcome) {
    let mut twin = Twin::new(setup);
    for block in blocks {
        twin.run(block);
    }
    let steps = std::mem::take(&mut twin.steps);
    (steps.iter().map(|step| step.result(&setup.machine)).collect(), twin.finish())
}

fn run_engine(setup: &Setup, blocks: &[Block]) -> Result<(Vec<AccessResult>, Outcome), TestCaseError> {
    let mut engine = Engine::new(setup.clone()).map_err(|e| TestCaseError::fail(e.to_string()))?;
    let mut results = Vec::new();
    for block in blocks {
        engine.run_traced(block, &mut |result| results.push(result));
    }
    Ok((results, engine.outcome()))
}

proptest! {
    #![proptest_config(config())]

    /// The generators make only machines that the machine room accepts.
    #[test]
    fn random_machines_are_valid(setup in setups()) {
        let text = lookaside_machine::to_toml(&setup.machine);
        let read = lookaside_machine::parse(&text, "random").map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(read, setup.machine);
    }

    /// Rules that hold in every outcome of the twin itself: a twin that counts nothing would agree with anything.
    #[test]
    fn the_twin_keeps_its_books(setup in setups(), ops in ops(300), columns in columns()) {
        let mut twin = Twin::new(&setup);
        for block in blocks(&ops, columns, |_| false) {
            twin.run(&block);
        }
        let steps = std::mem::take(&mut twin.steps);
        let outcome = twin.finish();
        let walks = steps.iter().filter(|s| s.hit.is_none()).count() as u64;
        prop_assert_eq!(outcome.data.cost.walks + outcome.fetch.cost.walks, walks);
        let references: usize = steps.iter().map(|s| s.references.len()).sum();
        prop_assert_eq!(outcome.data.cost.walk_references + outcome.fetch.cost.walk_references, references as u64);
    }

    /// Access by access, and every count and row.
    #[test]
    fn the_engine_is_its_twin(setup in setups(), ops in ops(400), columns in columns()) {
        let blocks = blocks(&ops, columns, |_| false);
        let (twin_results, twin) = run_twin(&setup, &blocks);
        let (results, outcome) = run_engine(&setup, &blocks)?;
        for (i, (engine, twin)) in results.iter().zip(&twin_results).enumerate() {
            prop_assert_eq!(engine, twin, "access {} of {}: the engine's is left", i, results.len());
        }
        prop_assert_eq!(results.len(), twin_results.len());
        prop_assert_eq!(outcome, twin, "the engine's is left");
    }

    /// Where blocks end makes no difference, nor whether anyone looks on.
    #[test]
    fn blocks_may_end_anywhere(setup in setups(), ops in ops(300), columns in columns(), cuts in any::<u64>()) {
        let (_, whole) = run_engine(&setup, &blocks(&ops, columns, |_| false))?;
        let mut engine = Engine::new(setup).map_err(|e| TestCaseError::fail(e.to_string()))?;
        for block in blocks(&ops, columns, |i| cuts >> (i % 64) & 1 == 1) {
            engine.run(&block);
        }
        prop_assert_eq!(engine.outcome(), whole);
    }
}
