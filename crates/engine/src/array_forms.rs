//! TLB arrays in many forms, of other sets, ways or policies: which there are, and where each counts. At work they are in
//! `form_store.rs`; which models they are of: `form_group.rs`.

use std::ops::Range;

use lookaside_machine::{IndexFn, Replacement};

use crate::assoc::ArrayShape;
use crate::classes::{CLASSES, KINDS};
use crate::set_index::SetIndex;
use crate::way_stack::{WayStacks, MOST_WAYS};

/// Routes of accesses through the TLBs: see [`crate::routing::tlb_route`].
pub(crate) const ROUTES: usize = KINDS * CLASSES;

/// Arrays in their forms.
#[derive(Debug, Default)]
pub(crate) struct FormsPlan {
    pub(crate) arrays: Vec<FormedArray>,
    /// Places in which forms count: see [`PlaceCounts`].
    pub(crate) places: usize,
}

/// An array of the machine that is asked in many forms.
#[derive(Debug)]
pub(crate) struct FormedArray {
    /// Its number in the machine file.
    pub(crate) number: usize,
    /// By route: does it ask it?
    pub(crate) is_asked: [bool; ROUTES],
    pub(crate) by_index: Vec<IndexedForms>,
}

/// Forms of one set index.
#[derive(Debug)]
pub(crate) struct IndexedForms {
    function: IndexFn,
    sets: usize,
    pub(crate) index: SetIndex,
    pub(crate) forms: Vec<FormPlan>,
}

/// One form; or, under LRU, one of each number of ways.
#[derive(Debug)]
pub(crate) struct FormPlan {
    /// Of the most ways.
    pub(crate) shape: ArrayShape,
    least_ways: usize,
    pub(crate) place: usize,
}

/// What tells the forms of an array of this number from each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FormKey<'a> {
    pub(crate) number: usize,
    pub(crate) shape: ArrayShape,
    pub(crate) function: &'a IndexFn,
}

/// Where a form is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FormId {
    array: usize,
    index: usize,
    form: usize,
    ways: usize,
}

/// What a form counts in one place. A stack has a place for each depth, and what an array of `w` ways counts is the sum of
/// the first `w`. What is invalidated in a place stands in [`crate::counts::EngineCounts::invalidated`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlaceCounts {
    /// By route.
    pub(crate) hits: [u64; ROUTES],
    /// Fills of invalid ways.
    pub(crate) filled: u64,
    /// Ways, in stacks, that became free for that.
    pub(crate) emptied: u64,
}

impl FormsPlan {
    /// Most ways of the form, if it is there.
    pub(crate) fn ways_of(&self, key: FormKey<'_>) -> Option<usize> {
        let arrays = self.arrays.iter().filter(|array| array.number == key.number);
        let its = arrays.flat_map(|array| &array.by_index).filter(|its| its.is_of(key));
        its.flat_map(|its| &its.forms).find(|form| form.is_of(key.shape)).map(|form| form.shape.ways)
    }

    /// Adds a form, if it is not there. `is_asked`: see [`FormedArray`].
    pub(crate) fn add(&mut self, key: FormKey<'_>, is_asked: [bool; ROUTES]) -> FormId {
        let array = self.arrays.iter().position(|array| array.number == key.number).unwrap_or_else(|| {
            self.arrays.push(FormedArray { number: key.number, is_asked, by_index: Vec::new() });
            self.arrays.len() - 1
        });
        let by_index = &mut self.arrays[array].by_index;
        let index = by_index.iter().position(|its| its.is_of(key)).unwrap_or_else(|| {
            let (function, sets) = (key.function.clone(), key.shape.sets);
            let index = SetIndex::new(&function, sets as u32);
            by_index.push(IndexedForms { function, sets, index, forms: Vec::new() });
            by_index.len() - 1
        });
        let (forms, ways) = (&mut by_index[index].forms, key.shape.ways);
        let form = forms.iter().position(|form| form.is_of(key.shape)).unwrap_or_else(|| {
            forms.push(FormPlan { shape: key.shape, least_ways: ways, place: 0 });
            forms.len() - 1
        });
        forms[form].shape.ways = forms[form].shape.ways.max(ways);
        forms[form].least_ways = forms[form].least_ways.min(ways);
        FormId { array, index, form, ways }
    }

    /// Gives each form its places, now that all are there.
    pub(crate) fn number_places(&mut self) {
        let forms = self.arrays.iter_mut().flat_map(|array| &mut array.by_index).flat_map(|its| &mut its.forms);
        self.places = forms.fold(0, |place, form| {
            form.place = place;
            place + if form.is_stack() { WayStacks::depths(form.shape.ways) } else { 1 }
        });
    }

    /// Forms that are simulated one by one.
    pub(crate) fn len(&self) -> usize {
        self.arrays.iter().flat_map(|array| &array.by_index).map(|its| its.forms.len()).sum()
    }

    /// Entries of all forms, `instances` being how many there are of an array.
    pub(crate) fn entries(&self, instances: impl Fn(usize) -> usize) -> usize {
        let of = |array: &FormedArray| {
            let forms = array.by_index.iter().flat_map(|its| &its.forms);
            forms.map(|form| form.shape.sets * form.shape.ways).sum::<usize>() * instances(array.number)
        };
        self.arrays.iter().map(of).sum()
    }

    /// Where a form counts.
    pub(crate) fn places_of(&self, id: FormId) -> Range<usize> {
        let form = &self.arrays[id.array].by_index[id.index].forms[id.form];
        form.place..form.place + if form.is_stack() { id.ways } else { 1 }
    }
}

impl IndexedForms {
    fn is_of(&self, key: FormKey<'_>) -> bool {
        self.function == *key.function && self.sets == key.shape.sets
    }
}

impl FormPlan {
    /// Is an array of this shape one of it, the sets being the same?
    fn is_of(&self, shape: ArrayShape) -> bool {
        let is_in_stack = |shape: ArrayShape| shape.replacement == Replacement::Lru && shape.ways <= MOST_WAYS;
        if is_in_stack(shape) {
            is_in_stack(self.shape)
        } else {
            (self.shape.replacement, self.shape.ways) == (shape.replacement, shape.ways)
        }
    }

    /// Is it of several numbers of ways?
    pub(crate) fn is_stack(&self) -> bool {
        self.least_ways < self.shape.ways
    }
}
