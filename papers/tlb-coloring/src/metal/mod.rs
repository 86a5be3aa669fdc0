//! TLB coloring on this machine: the paper's microbenchmarks, then its task sets.

mod conflict;
mod malloc_comparison;
mod microbenchmarks;
mod penalty;
mod run_sets;
mod task_sets;
pub mod tasks;

use lookaside_harness::metal::MetalExperiments;

/// All of it.
pub(crate) const EXPERIMENTS: MetalExperiments = MetalExperiments {
    values: include_str!("../../values/metal.toml"),
    run: microbenchmarks::run,
    run_longer: |found, longer, progress| {
        let machine = longer.given.map_or_else(|| run_sets::described(longer.levels, longer.seed), Ok);
        run_sets::add(found, machine, longer.seed, longer.halt, progress);
    },
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn values_are_read_and_no_id_is_there_twice() {
        for values in [super::EXPERIMENTS.values, super::task_sets::VALUES, super::malloc_comparison::VALUES] {
            let ids: Vec<String> = lookaside_harness::rows(values).into_iter().map(|row| row.id).collect();
            let different: BTreeSet<&String> = ids.iter().collect();
            assert_eq!(ids.len(), different.len(), "{ids:?}");
        }
    }
}
