//! Models of which one engine asks all later TLB arrays, each form of them once.
//!
//! They are followers of one leader (`model_group.rs`), so that all see the same accesses in the same order, and what an
//! array holds hangs on nothing but these and the events. A model can be one of them if, and only if,
//!
//! - each route has at most one array after the first level: what another level sees hangs on what this one had;
//! - entries of its later arrays are single pages: what a block covers is known when it is filled;
//! - no page is larger than a chunk, whose tags are the names in all forms;
//! - it differs from the others in the number of entries, the ways, the set index, the policy and the costs of its later
//!   arrays, and in its name, alone: which page has which name, and what invalidates it, is the same then;
//! - all forms together hold no more entries than half the tags that there are. (If tags ran out, entries would go that
//!   the model by itself would keep.)
//!
//! Arrays of the same sets, ways and policy are simulated once. LRU arrays of the same sets, of up to
//! [`crate::way_stack::MOST_WAYS`] ways, are one stack (`way_stack.rs`).

use std::ops::Range;
use std::sync::Arc;

use lookaside_machine::{IndexFn, Replacement, Ways};
use lookaside_trace::Block;

use crate::array_forms::{FormId, FormKey, FormsPlan, ROUTES};
use crate::batch::Batch;
use crate::classes::{CLASSES, KINDS};
use crate::counts::EngineCounts;
use crate::interval_state::IntervalUnits;
use crate::passed_rows::PassedStretch;
use crate::plan::EnginePlan;
use crate::routing::{kind_and_class, tlb_route};
use crate::tags::NUMBERS;
use crate::{Engine, Outcome, Setup};

/// The models, before they run.
#[derive(Debug)]
pub(crate) struct FormGroupPlan {
    alike: Setup,
    forms: FormsPlan,
    members: Vec<(FormedModel, Vec<FormId>)>,
}

/// Such models at work.
#[derive(Debug)]
pub(crate) struct FormGroup {
    engine: Engine,
    members: Vec<FormedModel>,
}

/// One of them.
#[derive(Debug)]
struct FormedModel {
    /// Its number among all models.
    number: usize,
    setup: Setup,
    plan: Arc<EnginePlan>,
    /// Its later arrays, with the places where their forms count.
    arrays: Vec<(usize, Range<usize>)>,
}

/// What models have in common whose later arrays are forms of each other's; none if this one is of none. `setup`: without
/// what the outcome alone depends on.
pub(crate) fn common_forms(mut setup: Setup, plan: &EnginePlan) -> Option<Setup> {
    let are_apart = plan.routes.iter().flatten().all(|route| {
        let mut later = route.levels.iter().skip(1);
        later.next().is_none_or(|level| level.arrays.len() == 1) && later.next().is_none()
    });
    let is_such = |number: &usize| {
        let shifts = plan.tlbs[*number].entry_shift.into_iter().flatten();
        plan.tlbs[*number].coalesce_shift == 0 && shifts.max().is_none_or(|shift| shift <= plan.chunk_shift)
    };
    let are_single_pages = later_arrays(plan).iter().all(is_such);
    for tlb in setup.machine.tlbs.iter_mut().filter(|tlb| tlb.level > 1) {
        (tlb.entries, tlb.ways, tlb.index, tlb.replacement) = (0, Ways::Count(1), IndexFn::Linear, Replacement::Lru);
        (tlb.name, tlb.hit_cycles) = (String::new(), 0.0);
    }
    (are_apart && are_single_pages).then_some(setup)
}

/// Arrays after the first level that any access asks.
fn later_arrays(plan: &EnginePlan) -> Vec<usize> {
    let levels = plan.routes.iter().flatten().flat_map(|route| route.levels.iter().skip(1));
    let mut arrays: Vec<usize> = levels.flat_map(|level| level.arrays.iter().copied()).collect();
    arrays.sort_unstable();
    arrays.dedup();
    arrays
}

fn form_key<'a>(setup: &'a Setup, plan: &EnginePlan, number: usize) -> FormKey<'a> {
    FormKey { number, shape: plan.tlbs[number].shape, function: &setup.machine.tlbs[number].index }
}

/// By route: does it ask an array?
fn is_asked(plan: &EnginePlan, number: usize) -> [bool; ROUTES] {
    std::array::from_fn(|route| {
        let (kind, class) = kind_and_class(route);
        plan.routes[kind][class].levels.iter().any(|level| level.arrays.contains(&number))
    })
}

impl FormGroupPlan {
    /// No models yet that have this in common: see [`common_forms`].
    pub(crate) fn new(alike: Setup) -> Self {
        Self { alike, forms: FormsPlan::default(), members: Vec::new() }
    }

    /// Of the arrays of a model that has this in common: how many are new. None if it does not fit in.
    pub(crate) fn new_forms(&self, alike: &Setup, setup: &Setup, plan: &EnginePlan) -> Option<usize> {
        // Others may have other arrays.
        if self.alike != *alike {
            return None;
        }
        let instances = |number: usize| plan.instance_of(plan.tlbs[number].shared_by, plan.hw_threads - 1) + 1;
        let (mut new, mut entries) = (0, self.forms.entries(instances));
        for number in later_arrays(plan) {
            let key = form_key(setup, plan, number);
            let known = self.forms.ways_of(key);
            new += usize::from(known.is_none());
            entries += instances(number) * key.shape.sets * key.shape.ways.saturating_sub(known.unwrap_or(0));
        }
        (entries <= NUMBERS as usize / 2).then_some(new)
    }

    /// Forms that are simulated one by one.
    pub(crate) fn forms(&self) -> usize {
        self.forms.len()
    }

    /// Adds a model of this number that fits in.
    pub(crate) fn add(&mut self, number: usize, setup: Setup, plan: EnginePlan) {
        let arrays = later_arrays(&plan);
        let form = |&array: &usize| self.forms.add(form_key(&setup, &plan, array), is_asked(&plan, array));
        let ids = arrays.iter().map(form).collect();
        let arrays = arrays.into_iter().map(|array| (array, 0..0)).collect();
        self.members.push((FormedModel { number, setup, plan: Arc::new(plan), arrays }, ids));
    }

    /// Makes ready to run; none if there is no model.
    ///
    /// # Errors
    /// As [`EnginePlan::new`]'s.
    pub(crate) fn ready(mut self) -> Result<Option<FormGroup>, crate::SetupError> {
        let Some((first, _)) = self.members.first() else { return Ok(None) };
        let setup = first.setup.clone();
        let mut plan = EnginePlan::new(&setup)?;
        plan.drop_levels(usize::MAX);
        self.forms.number_places();
        for (member, ids) in &mut self.members {
            let places = ids.iter().map(|&id| self.forms.places_of(id));
            member.arrays.iter_mut().zip(places).for_each(|(array, places)| array.1 = places);
        }
        plan.forms = Some(self.forms);
        let members = self.members.into_iter().map(|(member, _)| member).collect();
        Ok(Some(FormGroup { engine: Engine::by_plan(setup, plan), members }))
    }
}

impl FormGroup {
    /// Forms that are simulated one by one.
    #[cfg(test)]
    pub(crate) fn forms(&self) -> usize {
        self.engine.plan.forms.as_ref().map_or(0, FormsPlan::len)
    }

    /// Runs what the leader's first level had not of a block, as [`Engine::run_passed`] does.
    pub(crate) fn run_passed(&mut self, batch: &mut Option<Box<Batch>>, block: &Block, stretches: &[PassedStretch]) {
        self.engine.run_by(batch, |engine| engine.run_passed(block, stretches));
    }

    /// What each model counted, with its number. `outcome` makes it of the whole machine's plan, and of the counts and
    /// intervals of what came after the first level.
    pub(crate) fn outcomes(
        self,
        mut outcome: impl FnMut(Setup, Arc<EnginePlan>, EngineCounts, &[IntervalUnits]) -> Outcome,
    ) -> Vec<(usize, Outcome)> {
        let Self { mut engine, members } = self;
        let snapshots = std::mem::take(&mut engine.intervals.counts);
        let mut outcomes = Vec::new();
        for member in members {
            let counts = member.counts(&engine.plan, &engine.counts);
            let begins: Vec<_> = snapshots.iter().map(|all| member.units(&mut engine, all)).collect();
            outcomes.push((member.number, outcome(member.setup, member.plan, counts, &begins)));
        }
        outcomes
    }
}

impl FormedModel {
    /// What it would have counted after the first level, of all that the group's engine counted by its plan.
    fn counts(&self, of_group: &EnginePlan, all: &EngineCounts) -> EngineCounts {
        let mut own = EngineCounts::new(&self.plan);
        for (kind, class) in (0..KINDS).flat_map(|kind| (0..CLASSES).map(move |class| (kind, class))) {
            let came = all.reached[kind][class][0];
            own.reached[kind][class] = vec![came];
            let Some(level) = self.plan.routes[kind][class].levels.get(1) else { continue };
            let its = self.arrays.iter().find(|(array, _)| level.arrays.contains(array));
            let Some((array, places)) = its else { continue };
            let route = tlb_route(kind, class);
            let hits = all.forms[places.clone()].iter().map(|place| place.hits[route]).sum();
            own.reached[kind][class].push(came - hits);
            own.tlbs[*array].hits[kind][class] = hits;
            own.tlbs[*array].fills += came - hits;
        }
        for (array, places) in &self.arrays {
            let its = &all.forms[places.clone()];
            let free: u64 = its.iter().map(|place| place.filled).sum();
            let emptied: u64 = its.iter().map(|place| place.emptied).sum();
            own.tlbs[*array].evictions = own.tlbs[*array].fills + emptied - free;
            let first = of_group.tlbs.len();
            own.invalidated[*array] = all.invalidated[first + places.start..first + places.end].iter().sum();
        }
        own
    }

    /// What it had counted after the first level when the group's engine had counted this.
    fn units(&self, engine: &mut Engine, all: &EngineCounts) -> IntervalUnits {
        let (mut setup, mut plan) = (self.setup.clone(), Arc::clone(&self.plan));
        let mut counts = self.counts(&engine.plan, all);
        let mut swap = |engine: &mut Engine| {
            std::mem::swap(&mut engine.setup, &mut setup);
            std::mem::swap(&mut engine.plan, &mut plan);
            std::mem::swap(&mut engine.counts, &mut counts);
        };
        swap(engine);
        let units = engine.interval_units();
        swap(engine);
        units
    }
}
