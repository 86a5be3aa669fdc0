//! What holds, without keys: who is where, and who shares what.

use std::collections::{BTreeMap, BTreeSet};

use lookaside_runtime::domains::{CompartmentAccess, DomainsError, MOST_SHARED};

/// Compartments by the order in which they were made.
#[derive(Clone, Debug, PartialEq)]
pub struct Naive {
    /// Those that there are.
    pub alive: BTreeSet<usize>,
    /// What the second may do with the first's memory.
    pub shared: BTreeMap<(usize, usize), bool>,
    /// What each thread entered and has not left.
    pub stacks: Vec<Vec<usize>>,
    pub keys: usize,
}

impl Naive {
    pub fn new(keys: usize, threads: usize) -> Self {
        Self { alive: BTreeSet::new(), shared: BTreeMap::new(), stacks: vec![Vec::new(); threads], keys }
    }

    /// Whether a thread may read it, and write.
    pub fn may(&self, thread: usize, compartment: usize) -> (bool, bool) {
        match self.stacks[thread].last() {
            Some(inner) if *inner == compartment => (true, true),
            Some(inner) => self.shared.get(&(compartment, *inner)).map_or((false, false), |writable| (true, *writable)),
            None => (false, false),
        }
    }

    /// Whose memory one has to have a key.
    fn needs(&self, compartment: usize) -> BTreeSet<usize> {
        let shares = self.shared.keys().filter(|(_, with)| *with == compartment).map(|(owner, _)| *owner);
        shares.chain([compartment]).collect()
    }

    /// Those that have to have a key now.
    pub fn pinned(&self) -> BTreeSet<usize> {
        self.stacks.iter().flatten().flat_map(|entered| self.needs(*entered)).collect()
    }

    fn is(&self, compartment: usize) -> Result<(), DomainsError> {
        self.alive.contains(&compartment).then_some(()).ok_or(DomainsError::NoSuch)
    }

    fn entries(&self, wanted: impl Fn(usize) -> bool) -> Result<(), DomainsError> {
        match self.stacks.iter().flatten().filter(|entered| wanted(**entered)).count() {
            0 => Ok(()),
            entries => Err(DomainsError::InUse { entries: entries as u32 }),
        }
    }

    pub fn enter(&mut self, thread: usize, compartment: usize) -> Result<(), DomainsError> {
        self.is(compartment)?;
        let (needs, pinned) = (self.needs(compartment), self.pinned());
        let (needed, left) = (needs.difference(&pinned).count(), self.keys - pinned.len());
        if needed > left {
            return Err(DomainsError::AllPinned { needed, left, keys: self.keys });
        }
        self.stacks[thread].push(compartment);
        Ok(())
    }

    pub fn leave(&mut self, thread: usize, compartment: usize) -> Result<(), DomainsError> {
        self.is(compartment)?;
        let stack = &mut self.stacks[thread];
        match stack.iter().rposition(|entered| *entered == compartment) {
            None => Err(DomainsError::NotEntered),
            Some(at) if at + 1 < stack.len() => Err(DomainsError::NotInnermost),
            Some(_) => {
                stack.pop();
                Ok(())
            }
        }
    }

    pub fn share(&mut self, compartment: usize, with: usize, access: CompartmentAccess) -> Result<(), DomainsError> {
        self.is(compartment)?;
        self.is(with)?;
        if compartment == with {
            return Err(DomainsError::WithItself);
        }
        self.entries(|entered| entered == with)?;
        let pair = (compartment, with);
        if access == CompartmentAccess::None {
            self.shared.remove(&pair);
        } else if !self.shared.contains_key(&pair) && self.needs(with).len() > MOST_SHARED {
            return Err(DomainsError::TooManyShared);
        } else {
            self.shared.insert(pair, access == CompartmentAccess::Write);
        }
        Ok(())
    }

    pub fn destroy(&mut self, compartment: usize) -> Result<(), DomainsError> {
        self.is(compartment)?;
        self.entries(|entered| self.needs(entered).contains(&compartment))?;
        self.alive.remove(&compartment);
        self.shared.retain(|(owner, with), _| *owner != compartment && *with != compartment);
        Ok(())
    }
}
