//! PT-Baker on this machine: the paper's TLB microbenchmark, then sweeps of its helper's settings.

mod microbenchmark;
mod prefetch;
mod sharing;
mod sweeps;
mod thrash;

use lookaside_harness::metal::MetalExperiments;

/// All of it.
pub(crate) const EXPERIMENTS: MetalExperiments = MetalExperiments {
    values: include_str!("../../values/metal.toml"),
    run: microbenchmark::run,
    run_longer: |found, longer, progress| {
        let halt = || (longer.halt)().map(|halt| halt.to_string());
        sweeps::run::add(found, longer.memory_bytes, longer.seed, &halt, progress);
    },
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn values_are_read_and_no_id_is_there_twice() {
        for values in [super::EXPERIMENTS.values, super::sweeps::VALUES] {
            let ids: Vec<String> = lookaside_harness::rows(values).into_iter().map(|row| row.id).collect();
            let different: BTreeSet<&String> = ids.iter().collect();
            assert_eq!(ids.len(), different.len(), "{ids:?}");
        }
    }
}
