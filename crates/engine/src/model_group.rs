//! Models that have the first TLB level in common: one of them asks it, and the others see what it had not.
//!
//! They count walks only, so that what the data caches hold does not hang on the TLBs, and differ in nothing but the later
//! levels. So the one's counts of everything before these are the others', too.

use std::sync::Arc;

use lookaside_machine::{Machine, Walker};
use lookaside_trace::Block;

use crate::batch::Batch;
use crate::classes::{BASE, CLASSES, HUGE, KINDS};
use crate::counts::EngineCounts;
use crate::form_group::{common_forms, FormGroup, FormGroupPlan};
use crate::interval_state::IntervalUnits;
use crate::plan::{EnginePlan, WalkPlan};
use crate::{Detail, Engine, Outcome, PagePolicy, Setup, SetupError, WalkModel};

/// One model, or several that have the first level in common; each with its number among all.
#[derive(Debug)]
pub(crate) struct ModelGroup {
    number: usize,
    leader: Engine,
    followers: Vec<FollowingModel>,
    forms: Vec<FormGroup>,
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
        let mut groups: Vec<(Self, Vec<FormGroupPlan>)> = Vec::new();
        for (number, setup) in setups.into_iter().enumerate() {
            let plan = EnginePlan::new(&setup)?;
            let mut leaders: &[usize] = &[];
            if let Some(common) = common_part(&setup, &plan) {
                let known = alike.iter().position(|(other, _)| *other == common).unwrap_or_else(|| {
                    alike.push((common, Vec::new()));
                    alike.len() - 1
                });
                let its = &mut alike[known].1;
                if its.len() < cpus {
                    its.push(groups.len());
                } else {
                    leaders = its;
                }
            }
            if leaders.is_empty() {
                let leader = Engine::by_plan(setup, plan);
                let (followers, forms) = (Vec::new(), Vec::new());
                groups.push((Self { number, leader, followers, forms, passed: Block::default() }, Vec::new()));
            } else {
                follow(&mut groups, leaders, number, setup, plan)?;
            }
        }
        let ready = |(mut group, forms): (Self, Vec<FormGroupPlan>)| {
            for plan in forms {
                group.forms.extend(plan.ready()?);
            }
            Ok(group)
        };
        groups.into_iter().map(ready).collect()
    }

    /// Runs a block.
    pub(crate) fn run(&mut self, batch: &mut Option<Box<Batch>>, block: &Block) {
        self.leader.run_by(batch, |leader| leader.run(block));
        let Some(passed) = &self.leader.passed else { return };
        let stretches = passed.of(block, &mut self.passed);
        for follower in &mut self.followers {
            follower.engine.run_by(batch, |engine| engine.run_passed(&self.passed, &stretches));
        }
        for forms in &mut self.forms {
            forms.run_passed(batch, &self.passed, &stretches);
        }
    }

    /// What each model counted, with its number.
    pub(crate) fn outcomes(mut self) -> Vec<(usize, Outcome)> {
        let mut outcomes = vec![(self.number, self.leader.outcome())];
        for FollowingModel { number, plan, engine } in self.followers {
            let later: Vec<_> = engine.intervals.begins.iter().map(|(_, units)| *units).collect();
            let outcome = with_later_levels(&mut self.leader, engine.setup, plan, engine.counts, &later);
            outcomes.push((number, outcome));
        }
        for forms in self.forms {
            outcomes.extend(
                forms.outcomes(|setup, plan, own, later| with_later_levels(&mut self.leader, setup, plan, own, later)),
            );
        }
        outcomes
    }
}

/// Makes a model a follower of one of these leaders: where its arrays are asked already, or else where there is least to
/// ask.
fn follow(
    groups: &mut [(ModelGroup, Vec<FormGroupPlan>)],
    leaders: &[usize],
    number: usize,
    setup: Setup,
    plan: EnginePlan,
) -> Result<(), SetupError> {
    let load = |group: usize| {
        let (group, forms) = &groups[group];
        group.followers.len() + forms.iter().map(FormGroupPlan::forms).sum::<usize>()
    };
    let unnamed = Setup { machine: unnamed(&setup.machine), ..setup.clone() };
    let alike = common_forms(unnamed, &plan);
    let fitting = |group: usize| {
        let of = |forms: &FormGroupPlan| alike.as_ref().and_then(|alike| forms.new_forms(alike, &setup, &plan));
        groups[group].1.iter().enumerate().filter_map(|(place, forms)| Some((of(forms)?, place))).min()
    };
    let all = leaders.iter().map(|&group| (fitting(group), group));
    let best = all.min_by_key(|&(fitting, group)| (fitting.is_none_or(|(new, _)| new > 0), load(group)));
    let Some((fitting, group)) = best else { return Ok(()) };
    let (group, forms) = &mut groups[group];
    match (fitting, alike) {
        (Some((_, place)), _) => forms[place].add(number, setup, plan),
        (None, Some(alike)) => {
            let mut new = FormGroupPlan::new(alike);
            new.add(number, setup, plan);
            forms.push(new);
        }
        (None, None) => group.followers.push(FollowingModel::new(number, setup, plan)?),
    }
    group.leader.passed.get_or_insert_default();
    Ok(())
}

/// What models of a group have in common; none if this one is of none.
fn common_part(setup: &Setup, plan: &EnginePlan) -> Option<Setup> {
    let counts_walks_only =
        plan.walks == WalkPlan::CountOnly && setup.detail == Detail::Totals && setup.locks.is_empty();
    // A page that is hit without a walk is touched all the same, of which later levels see nothing. Without tag `global` a
    // kernel page's entry may serve a user address; and entries of base pages the huge page that their range becomes.
    let is_in_parts = plan.routes.iter().any(|classes| {
        let [base, huge] = [BASE, HUGE].map(|class| {
            let array = classes[class].levels.first()?.arrays[0];
            Some(plan.tlbs[array].layouts[class].page_shift)
        });
        base.is_some() && base == huge
    });
    let hits_are_walked_for =
        (plan.narrow || plan.tlbs.iter().all(|tlb| tlb.global)) && (setup.os.pages == PagePolicy::Base || !is_in_parts);
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
        later.drop_levels(1);
        Ok(Self { number, plan: Arc::new(plan), engine: Engine::by_plan(setup, later) })
    }
}

/// What a model of this setup and plan would have counted by itself: of the first level and all around what the leader
/// did, and `own` and `later` (by interval) of what came after.
fn with_later_levels(
    leader: &mut Engine,
    mut setup: Setup,
    mut plan: Arc<EnginePlan>,
    own: EngineCounts,
    later: &[IntervalUnits],
) -> Outcome {
    let mut counts = counts_with_later_levels(leader, &setup, &plan, own);
    let begins = leader.intervals.begins.iter().zip(later);
    let mut begins: Vec<_> =
        begins.map(|(&(cpu_ns, first), &later)| (cpu_ns, first.with_later_levels(later))).collect();
    let mut swap = |leader: &mut Engine| {
        std::mem::swap(&mut leader.setup, &mut setup);
        std::mem::swap(&mut leader.plan, &mut plan);
        std::mem::swap(&mut leader.counts, &mut counts);
        std::mem::swap(&mut leader.intervals.begins, &mut begins);
    };
    swap(leader);
    let outcome = leader.outcome();
    swap(leader);
    outcome
}

fn counts_with_later_levels(leader: &Engine, setup: &Setup, plan: &EnginePlan, own: EngineCounts) -> EngineCounts {
    let mut counts = EngineCounts { walk_caches: own.walk_caches, ..leader.counts.clone() };
    for (kind, class) in (0..KINDS).flat_map(|kind| (0..CLASSES).map(move |class| (kind, class))) {
        if !plan.routes[kind][class].levels.is_empty() {
            counts.reached[kind][class].truncate(1);
            counts.reached[kind][class].extend(&own.reached[kind][class]);
        }
    }
    (counts.tlbs, counts.invalidated) = (own.tlbs, own.invalidated);
    let first_level = |setup: &Setup| {
        let tlbs = setup.machine.tlbs.iter().enumerate();
        tlbs.filter(|(_, tlb)| tlb.level == 1).map(|(number, _)| number).collect::<Vec<_>>()
    };
    for (its, leaders) in first_level(setup).into_iter().zip(first_level(&leader.setup)) {
        counts.tlbs[its] = leader.counts.tlbs[leaders].clone();
        counts.invalidated[its] = leader.counts.invalidated[leaders];
    }
    counts
}

impl EnginePlan {
    /// Leaves what others ask: the first levels of each route, so many, and the data caches.
    pub(crate) fn drop_levels(&mut self, levels: usize) {
        for route in self.routes.iter_mut().flatten() {
            route.levels.drain(..levels.min(route.levels.len()));
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
            // Entries of several pages: no forms of each other.
            let second_level = [format!("tlb.l2d.hit_cycles={l2}"), "tlb.l2d.coalesce_pages=4".to_owned()];
            let machine = machine.with_overrides(&second_level).expect("a good machine");
            Setup { walks, detail: Detail::Totals, ..Setup::new(machine) }
        };
        let mut setups: Vec<Setup> = (0..20).map(|l2| setup(l2, WalkModel::CountOnly)).collect();
        setups.insert(3, setup(3, WalkModel::Full));
        let groups = ModelGroup::of(setups, 2).expect("good setups");
        let sizes: Vec<_> = groups.iter().map(|group| (group.number, group.followers.len())).collect();
        assert_eq!(sizes, [(0, 9), (1, 9), (3, 0)]);
    }

    #[test]
    fn each_form_of_an_array_is_asked_once() {
        let setup = |name: &str, ways: u32, policy: &str| {
            let machine = lookaside_machine::preset("skylake").expect("a preset");
            let second_level = [
                "tlb.stlb.index=\"linear\"".to_owned(),
                format!("tlb.stlb.ways={ways}"),
                format!("tlb.stlb.entries={}", 64 * ways),
                format!("tlb.stlb.replacement=\"{policy}\""),
            ];
            let mut machine = machine.with_overrides(&second_level).expect("a good machine");
            machine.name = name.to_owned();
            Setup { walks: WalkModel::CountOnly, detail: Detail::Totals, ..Setup::new(machine) }
        };
        let of_name = |name: &'static str| {
            let each = move |ways| ["lru", "fifo", "random"].map(|policy| setup(name, ways, policy));
            (1..=12).flat_map(each)
        };
        let setups: Vec<Setup> = of_name("one").chain(of_name("another")).collect();
        let groups = ModelGroup::of(setups, 2).expect("good setups");
        let forms = groups.iter().flat_map(|group| &group.forms).map(|group| group.forms()).collect::<Vec<_>>();
        // One stack, and 12 of each other policy.
        assert_eq!(forms.iter().sum::<usize>(), 1 + 12 + 12, "{forms:?}");
        assert!(forms.len() == 2 && forms[0].abs_diff(forms[1]) <= 1, "{forms:?}");
    }
}
