//! Noisy sets (Panchamukhi 2014, section 6.0.6): entries that the system itself uses, and that tasks cannot count on.
//!
//! The rule, for each set of a TLB that the machine's description has a [`Disturbance`] of (a figure that is not 0 is
//! clearly above the median set's; see there):
//!
//! - A system call, or a switch to another process and back, that puts `x` entries out of the full set uses `x` of its
//!   own there: `x` ways, rounded up, are set aside; of the two the larger number. As long as the system comes with the
//!   same pages each time, tasks that use no more than the rest lose nothing, whatever the policy.
//! - Evictions by the second come from interrupts and from others; how many entries these use at once, no rate tells.
//!   The set is left out whole, as the paper did with all noisy ones.

use lookaside_machine::{ColorLevel, Disturbance, Machine};

/// Ways of each set of a level that are set aside for the system; at most the level's. `None`: the description has no
/// figures, so that nothing is known to be needed.
pub fn set_aside(machine: &Machine, level: &ColorLevel) -> Option<Vec<u32>> {
    let measured = machine.disturbances.iter().find(|disturbance| disturbance.tlb == level.name)?;
    if [&measured.evictions_per_second, &measured.evictions_per_system_call, &measured.evictions_per_context_switch]
        .iter()
        .all(|figures| figures.is_empty())
    {
        return None;
    }
    Some((0..level.sets as usize).map(|set| ways_of(measured, set, level.ways)).collect())
}

fn ways_of(measured: &Disturbance, set: usize, ways: u32) -> u32 {
    let figure = |figures: &[f64]| figures.get(set).copied().unwrap_or_default();
    if figure(&measured.evictions_per_second) > 0.0 {
        return ways;
    }
    let entries =
        figure(&measured.evictions_per_system_call).max(figure(&measured.evictions_per_context_switch)).ceil();
    // Descriptions hold figures from 0 on; what is too large for the type becomes its largest value.
    (entries as u32).min(ways)
}

#[cfg(test)]
mod tests {
    use lookaside_machine::{preset, Disturbance, PageSize};

    use super::set_aside;

    #[test]
    fn acts_take_ways_and_rates_take_sets() {
        let mut machine = preset("xeon-e5-2650").expect("a preset");
        let level = machine.color_levels(PageSize::K4).swap_remove(0);
        assert_eq!(set_aside(&machine, &level), None);
        let figures = |at: &[(usize, f64)]| {
            let mut all = vec![0.0; 16];
            at.iter().for_each(|&(set, figure)| all[set] = figure);
            all
        };
        machine.disturbances.push(Disturbance {
            tlb: "l1d-4k".into(),
            evictions_per_second: figures(&[(3, 0.5)]),
            evictions_per_system_call: figures(&[(1, 0.4), (2, 9.0), (5, 1.5)]),
            evictions_per_context_switch: figures(&[(5, 2.2), (6, 1.0)]),
        });
        let aside = set_aside(&machine, &level).expect("figures");
        assert_eq!(aside, [0, 1, 4, 4, 0, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        // One list measured, the others not.
        machine.disturbances[0].evictions_per_second.clear();
        assert_eq!(set_aside(&machine, &level).expect("figures")[3], 0);
        machine.disturbances[0].evictions_per_system_call.clear();
        machine.disturbances[0].evictions_per_context_switch.clear();
        assert_eq!(set_aside(&machine, &level), None);
    }
}
