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
use model::Twin;
use proptest::prelude::*;

/// `PROPTEST_CASES` asks for more than the default, which keeps the whole file within seconds.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(150);
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::default() }
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
}
