//! Models that have the first TLB level in common: one of them asks it, and the others see what it had not.
//!
//! They count walks only, so that what the data caches hold does not hang on the TLBs, and differ in nothing but the later
//! levels. So the one's counts of everything before these are the others', too.

use std::sync::Arc;

use lookaside_machine::{Machine, Walker};
use lookaside_trace::Block;

use crate::batch::Batch;
use crate::classes::{CLASSES, KINDS};
use crate::counts::EngineCounts;
use crate::interval_state::IntervalUnits;
use crate::plan::{EnginePlan, WalkPlan};
use crate::{Detail, Engine, Outcome, Setup, SetupError, WalkModel};

/// One model, or several that have the first level in common; each with its number among all.
#[derive(Debug)]
pub(crate) struct ModelGroup {
    number: usize,
    leader: Engine,
    followers: Vec<FollowingModel>,
    /// What the leader's first level had not of a block.
    passed: Block,
}

/// A model that sees only what the leader's first level had not.
#[derive(Debug)]
struct FollowingModel {
    number: usize,
    /// The whole machine's.
    plan: Arc<EnginePlan>,
    /// Without the first level.
    engine: Engine,
}

impl ModelGroup {
    /// Groups of setups; of those that could be one, so many that all CPUs have one.
    ///
    /// # Errors
    /// A setup is impossible.
    pub(crate) fn of(setups: Vec<Setup>, cpus: usize) -> Result<Vec<Self>, SetupError> {
        let mut alike: Vec<(Setup, Vec<usize>)> = Vec::new();
        let mut groups: Vec<Self> = Vec::new();
        for (number, setup) in setups.into_iter().enumerate() {
            let plan = EnginePlan::new(&setup)?;
            let mut leader = None;
            if let Some(common) = common_part(&setup, &plan) {
                let known = alike.iter().position(|(other, _)| *other == common).unwrap_or_else(|| {
                    alike.push((common, Vec::new()));
                    alike.len() - 1
                });
                let its = &mut alike[known].1;
                if its.len() < cpus {
                    its.push(groups.len());
                } else {
                    leader = its.iter().copied().min_by_key(|&group| groups[group].followers.len());
                }
            }
            match leader {
                Some(group) => {
                    let group = &mut groups[group];
                    group.leader.passed.get_or_insert_default();
                    group.followers.push(FollowingModel::new(number, setup, plan)?);
                }
                None => {
                    let leader = Engine::by_plan(setup, plan);
                    groups.push(Self { number, leader, followers: Vec::new(), passed: Block::default() });
                }
            }
        }
        Ok(groups)
    }

    /// Runs a block.
    pub(crate) fn run(&mut self, batch: &mut Option<Box<Batch>>, block: &Block) {
        self.leader.run_by(batch, |leader| leader.run(block));
        let Some(passed) = &self.leader.passed else { return };
        let stretches = passed.of(block, &mut self.passed);
        for follower in &mut self.followers {
            follower.engine.run_by(batch, |engine| engine.run_passed(&self.passed, &stretches));
        }
    }

    /// What each model counted, with its number.
    pub(crate) fn outcomes(mut self) -> Vec<(usize, Outcome)> {
        let mut outcomes = vec![(self.number, self.leader.outcome())];
        for follower in self.followers {
            outcomes.push((follower.number, follower.outcome(&mut self.leader)));
        }
        outcomes
    }
}

/// What models of a group have in common; none if this one is of none.
fn common_part(setup: &Setup, plan: &EnginePlan) -> Option<Setup> {
    let counts_walks_only =
        plan.walks == WalkPlan::CountOnly && setup.detail == Detail::Totals && setup.locks.is_empty();
    // A page that is hit without a walk is touched all the same, which entries of several pages would show.
    let coalesces = setup.machine.tlbs.iter().any(|tlb| tlb.coalesce_pages > 1);
    let hits_are_walked_for = !coalesces || plan.narrow || plan.tlbs.iter().all(|tlb| tlb.global);
    let begins_at_first = plan.routes.iter().flatten().all(|route| route.levels.first().is_none_or(|at| at.level == 1));
    (counts_walks_only && hits_are_walked_for && begins_at_first).then(|| {
        let mut common = Setup { machine: unnamed(&setup.machine), walks: WalkModel::CountOnly, ..setup.clone() };
        common.machine.tlbs.retain(|tlb| tlb.level == 1);
        common
    })
}

/// A machine without what its outcome alone depends on, or nothing where walks are counted only.
fn unnamed(machine: &Machine) -> Machine {
    Machine {
        name: String::new(),
        description: String::new(),
        sources: Vec::new(),
        walker: Walker::default(),
        walk_caches: Vec::new(),
        timing: None,
        origins: Default::default(),
        not_determined: Vec::new(),
        ..machine.clone()
    }
}

impl FollowingModel {
    fn new(number: usize, setup: Setup, plan: EnginePlan) -> Result<Self, SetupError> {
        let mut later = EnginePlan::new(&setup)?;
        later.drop_first_level();
        Ok(Self { number, plan: Arc::new(plan), engine: Engine::by_plan(setup, later) })
    }

    /// What it would have counted by itself.
    fn outcome(mut self, leader: &mut Engine) -> Outcome {
        let mut counts = self.counts(leader);
        let mut begins: Vec<_> = leader
            .intervals
            .begins
            .iter()
            .zip(&self.engine.intervals.begins)
            .map(|(&(cpu_ns, first), &(_, later))| (cpu_ns, first.with_later_levels(later)))
            .collect();
        let mut swap = |leader: &mut Engine| {
            std::mem::swap(&mut leader.setup, &mut self.engine.setup);
            std::mem::swap(&mut leader.plan, &mut self.plan);
            std::mem::swap(&mut leader.counts, &mut counts);
            std::mem::swap(&mut leader.intervals.begins, &mut begins);
        };
        swap(leader);
        let outcome = leader.outcome();
        swap(leader);
        outcome
    }

    /// The leader's counts of the first level and all around, and its own of what came after.
    fn counts(&self, leader: &Engine) -> EngineCounts {
        let own = &self.engine.counts;
        let mut counts = EngineCounts { walk_caches: own.walk_caches.clone(), ..leader.counts.clone() };
        for (kind, class) in (0..KINDS).flat_map(|kind| (0..CLASSES).map(move |class| (kind, class))) {
            if !self.plan.routes[kind][class].levels.is_empty() {
                counts.reached[kind][class].truncate(1);
                counts.reached[kind][class].extend(&own.reached[kind][class]);
            }
        }
        (counts.tlbs, counts.invalidated) = (own.tlbs.clone(), own.invalidated.clone());
        let first_level = |engine: &Engine| {
            let tlbs = engine.setup.machine.tlbs.iter().enumerate();
            tlbs.filter(|(_, tlb)| tlb.level == 1).map(|(number, _)| number).collect::<Vec<_>>()
        };
        for (its, leaders) in first_level(&self.engine).into_iter().zip(first_level(leader)) {
            counts.tlbs[its] = leader.counts.tlbs[leaders].clone();
            counts.invalidated[its] = leader.counts.invalidated[leaders];
        }
        counts
    }
}

impl EnginePlan {
    /// Leaves what another model asks: the first level, and the data caches.
    fn drop_first_level(&mut self) {
        for route in self.routes.iter_mut().flatten().filter(|route| !route.levels.is_empty()) {
            route.levels.remove(0);
        }
        self.alike.apart = self.routes.each_ref().map(|routes| routes.iter().any(|route| route.levels.is_empty()));
        self.has_data_caches = false;
        self.data_route = Default::default();
        (self.cache_order, self.walk_route, self.caches) = Default::default();
    }
}

impl IntervalUnits {
    /// Of a leader: with what a follower counted of the later levels in place of its own.
    fn with_later_levels(self, later: Self) -> Self {
        let translation = self.first_level + later.translation;
        Self { walks: later.walks, walk: later.walk, translation, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_has_a_model_that_asks_the_first_level() {
        let setup = |l2: u32, walks: WalkModel| {
            let machine = lookaside_machine::preset("zen4").expect("a preset");
            let machine = machine.with_overrides(&[format!("tlb.l2d.hit_cycles={l2}")]).expect("a good machine");
            Setup { walks, detail: Detail::Totals, ..Setup::new(machine) }
        };
        let mut setups: Vec<Setup> = (0..20).map(|l2| setup(l2, WalkModel::CountOnly)).collect();
        setups.insert(3, setup(3, WalkModel::Full));
        let groups = ModelGroup::of(setups, 2).expect("good setups");
        let sizes: Vec<_> = groups.iter().map(|group| (group.number, group.followers.len())).collect();
        assert_eq!(sizes, [(0, 9), (1, 9), (3, 0)]);
    }
}
