//! Who has which key: a state machine over [`Keys`], which knows neither processor nor threads.
//!
//! A compartment *has* a key while its pages carry it; without one its pages are closed to all. A key is *clean* if no
//! page carries it, and changes hands without a flush. A compartment that a thread is in, or whose memory such a one
//! shares, is *pinned*: its key stays, so that no thread ever has a right to a key that changes hands.

use std::collections::BTreeMap;

use super::error::DomainsError;
use super::keys::{both, denied, granted, KeyCounts, Keys};
use super::limits::{MOST_DEEP, MOST_KEYS, MOST_SHARED};

/// Sizes are rounded up to pages.
pub const PAGE_BYTES: usize = 4096;

/// A compartment. Numbers are never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Compartment(pub(super) u64);

/// What a compartment may do with another's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompartmentAccess {
    /// Nothing.
    None,
    /// Read it.
    Read,
    /// Read and write it.
    Write,
}

/// Why an access faulted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The thread has no right to the page's key (SEGV_PKUERR).
    Key,
    /// The page is closed (SEGV_ACCERR).
    Closed,
}

/// Where a thread is: what it entered and has not left, innermost last.
#[derive(Debug, Default)]
pub struct Thread(Vec<Compartment>);

#[derive(Debug)]
struct CompartmentState {
    start: usize,
    bytes: usize,
    /// Some of its pages may carry this one, and none another.
    key: Option<u8>,
    /// All of them carry it.
    open: bool,
    /// Entered again since it got its key, or since the last flush.
    used: bool,
    /// Enters not left.
    entered: u32,
    /// The same of it, and of those that share its memory.
    pins: u32,
    /// Whose memory it shares; true = to write, too.
    shares: Vec<(Compartment, bool)>,
}

/// The compartments of a process.
#[derive(Debug)]
pub struct Policy {
    states: BTreeMap<Compartment, CompartmentState>,
    made: u64,
    /// Keys that we got, by bit; those of them that are clean.
    held: u16,
    clean: u16,
    /// The system has no more keys for us.
    all: bool,
    counts: KeyCounts,
}

impl Default for Policy {
    fn default() -> Self {
        Self::new()
    }
}

impl Policy {
    /// No compartments.
    pub const fn new() -> Self {
        let counts = KeyCounts {
            compartments: 0,
            keys: 0,
            switches: 0,
            recycled: 0,
            flushes: 0,
            protect_calls: 0,
            key_faults: 0,
            closed_faults: 0,
        };
        Self { states: BTreeMap::new(), made: 0, held: 0, clean: 0, all: false, counts }
    }

    /// A compartment of so many bytes, rounded up to pages, all zero.
    ///
    /// # Errors
    /// No bytes, or too many; no keys; no memory.
    pub fn create(&mut self, keys: &mut impl Keys, bytes: usize) -> Result<Compartment, DomainsError> {
        if bytes == 0 {
            return Err(DomainsError::Empty);
        }
        let rounded = bytes.checked_next_multiple_of(PAGE_BYTES).filter(|bytes| isize::try_from(*bytes).is_ok());
        let bytes = rounded.ok_or(DomainsError::TooLarge { bytes })?;
        if self.held == 0 {
            self.got(keys.alloc()?);
        }
        let start = keys.map(bytes).map_err(|errno| DomainsError::System { call: "mmap", errno })?;
        self.made += 1;
        let compartment = Compartment(self.made);
        let state = CompartmentState {
            start,
            bytes,
            key: None,
            open: false,
            used: false,
            entered: 0,
            pins: 0,
            shares: Vec::new(),
        };
        self.states.insert(compartment, state);
        Ok(compartment)
    }

    /// Gives its memory back; nobody shares it any more.
    ///
    /// # Errors
    /// No such compartment; a thread is in it or in one that shares its memory; the system refuses.
    pub fn destroy(&mut self, keys: &mut impl Keys, compartment: Compartment) -> Result<(), DomainsError> {
        let state = self.state(compartment)?;
        if state.pins > 0 {
            return Err(DomainsError::InUse { entries: state.pins });
        }
        let key = state.key;
        keys.unmap(state.start, state.bytes).map_err(|errno| DomainsError::System { call: "munmap", errno })?;
        self.clean |= key.map_or(0, |key| 1 << key);
        self.states.remove(&compartment);
        for other in self.states.values_mut() {
            other.shares.retain(|(shared, _)| *shared != compartment);
        }
        Ok(())
    }

    /// Its first address, and its bytes.
    ///
    /// # Errors
    /// No such compartment.
    pub fn memory(&self, compartment: Compartment) -> Result<(usize, usize), DomainsError> {
        self.state(compartment).map(|state| (state.start, state.bytes))
    }

    /// From now on, who enters `with` may use the memory of `compartment` this way.
    ///
    /// # Errors
    /// No such compartment; both are the same; a thread is in `with`; it shares too many.
    pub fn share(
        &mut self,
        compartment: Compartment,
        with: Compartment,
        access: CompartmentAccess,
    ) -> Result<(), DomainsError> {
        self.state(compartment)?;
        let state = self.states.get_mut(&with).ok_or(DomainsError::NoSuch)?;
        if compartment == with {
            return Err(DomainsError::WithItself);
        }
        if state.entered > 0 {
            return Err(DomainsError::InUse { entries: state.entered });
        }
        let at = state.shares.iter().position(|(shared, _)| *shared == compartment);
        match (at, access) {
            (None, CompartmentAccess::None) => {}
            (Some(at), CompartmentAccess::None) => drop(state.shares.remove(at)),
            (None, _) if state.shares.len() == MOST_SHARED => return Err(DomainsError::TooManyShared),
            (None, _) => state.shares.push((compartment, access == CompartmentAccess::Write)),
            (Some(at), _) => state.shares[at].1 = access == CompartmentAccess::Write,
        }
        Ok(())
    }

    /// The calling thread, which is `thread`, may use the memory of this compartment and what it shares, and no
    /// other's.
    ///
    /// # Errors
    /// No such compartment; too few keys beside those of pinned ones; too deep; the system refuses.
    pub fn enter(
        &mut self,
        keys: &mut impl Keys,
        thread: &mut Thread,
        compartment: Compartment,
    ) -> Result<(), DomainsError> {
        let needs = self.needs(compartment)?;
        if thread.0.len() == MOST_DEEP {
            return Err(DomainsError::TooDeep);
        }
        self.open(keys, needs.as_slice())?;
        self.pin(compartment);
        thread.0.push(compartment);
        self.switch(keys, thread);
        Ok(())
    }

    /// The calling thread is back where it was before it entered this compartment.
    ///
    /// # Errors
    /// No such compartment; the thread is not in it, or entered another since.
    pub fn leave(
        &mut self,
        keys: &mut impl Keys,
        thread: &mut Thread,
        compartment: Compartment,
    ) -> Result<(), DomainsError> {
        self.state(compartment)?;
        match thread.0.last() {
            Some(last) if *last == compartment => {}
            _ if thread.0.contains(&compartment) => return Err(DomainsError::NotInnermost),
            _ => return Err(DomainsError::NotEntered),
        }
        thread.0.pop();
        self.switch(keys, thread);
        self.unpin(compartment);
        Ok(())
    }

    /// The calling thread ends: it leaves all it is in.
    pub fn ends(&mut self, keys: &mut impl Keys, thread: &mut Thread) {
        let left = std::mem::take(&mut thread.0);
        if !left.is_empty() {
            self.switch(keys, thread);
        }
        for compartment in left {
            self.unpin(compartment);
        }
    }

    /// The process is a new one, of this thread alone.
    pub fn forked(&mut self, thread: &Thread) {
        for state in self.states.values_mut() {
            (state.entered, state.pins) = (0, 0);
        }
        for compartment in &thread.0 {
            self.pin(*compartment);
        }
    }

    /// Counts a fault; says whose memory it was, if a compartment's.
    pub fn fault(&mut self, fault: Fault, address: usize) -> Option<Compartment> {
        let hit =
            |state: &CompartmentState| address.checked_sub(state.start).is_some_and(|offset| offset < state.bytes);
        let (compartment, _) = self.states.iter().find(|(_, state)| hit(state))?;
        match fault {
            Fault::Key => self.counts.key_faults += 1,
            Fault::Closed => self.counts.closed_faults += 1,
        }
        Some(*compartment)
    }

    /// What happened so far.
    pub fn counts(&self) -> KeyCounts {
        KeyCounts { compartments: self.states.len() as u64, keys: u64::from(self.held.count_ones()), ..self.counts }
    }

    fn state(&self, compartment: Compartment) -> Result<&CompartmentState, DomainsError> {
        self.states.get(&compartment).ok_or(DomainsError::NoSuch)
    }

    /// It, and those whose memory it shares.
    fn needs(&self, compartment: Compartment) -> Result<Needs, DomainsError> {
        let shares = &self.state(compartment)?.shares;
        let mut needs = Needs { list: [compartment; MOST_KEYS], len: 1 + shares.len() };
        for (place, (shared, _)) in needs.list[1..].iter_mut().zip(shares) {
            *place = *shared;
        }
        Ok(needs)
    }

    fn got(&mut self, key: u8) {
        self.held |= 1 << key;
        self.clean |= 1 << key;
    }

    /// All of these have a key, and their pages carry it.
    fn open(&mut self, keys: &mut impl Keys, needs: &[Compartment]) -> Result<(), DomainsError> {
        let of = |state: &Self, wanted: fn(&CompartmentState) -> bool| {
            needs.iter().filter(|one| state.states.get(one).is_some_and(wanted)).count()
        };
        let lacking = of(self, |state| state.key.is_none());
        while !self.all && (self.clean.count_ones() as usize) < lacking {
            match keys.alloc() {
                Ok(key) => self.got(key),
                Err(_) => self.all = true,
            }
        }
        if (self.clean.count_ones() as usize) < lacking {
            let pinned = self.states.values().filter(|state| state.pins > 0).count();
            let (held, needed) = (self.held.count_ones() as usize, of(self, |state| state.pins == 0));
            let left = held.saturating_sub(pinned);
            if needed > left {
                return Err(DomainsError::AllPinned { needed, left, keys: held });
            }
            self.flush(keys, needs, lacking)?;
        }
        for one in needs {
            let Some(state) = self.states.get_mut(one) else { continue };
            state.used = state.open;
            if state.open {
                continue;
            }
            // There are as many as lack one: what is not pinned and not needed was idle, and is clean now.
            let key = state.key.unwrap_or(self.clean.trailing_zeros() as u8);
            self.clean &= !(1 << key);
            state.key = Some(key);
            self.counts.protect_calls += 1;
            keys.protect(state.start, state.bytes, Some(key)).map_err(refused)?;
            state.open = true;
        }
        Ok(())
    }

    /// Takes keys from compartments that are not pinned, until `wanted` are clean: from those that nobody came back to
    /// since the last flush, from all if these are too few. Neighbours are closed by one call.
    fn flush(&mut self, keys: &mut impl Keys, needs: &[Compartment], wanted: usize) -> Result<(), DomainsError> {
        self.counts.flushes += 1;
        let idle = |one: &Compartment, state: &CompartmentState| {
            state.key.is_some() && state.pins == 0 && !needs.contains(one)
        };
        let unused = self.states.iter().filter(|(one, state)| idle(one, state) && !state.used).count();
        let all = self.clean.count_ones() as usize + unused < wanted;

        let mut by_address: Vec<(usize, Compartment)> = self.states.iter().map(|(one, s)| (s.start, *one)).collect();
        by_address.sort_unstable();
        let mut run = ClosedRun::default();
        for (start, one) in by_address {
            let Some(state) = self.states.get_mut(&one) else { continue };
            let taken = idle(&one, state) && (all || !state.used);
            state.used = false;
            if start != run.end || !(taken || state.key.is_none()) {
                self.close(keys, std::mem::take(&mut run))?;
            }
            let Some(state) = self.states.get(&one) else { continue };
            if taken || state.key.is_none() {
                run.add(one, state.start, state.bytes, taken);
            }
        }
        self.close(keys, run)
    }

    /// Closes neighbours to all.
    fn close(&mut self, keys: &mut impl Keys, run: ClosedRun) -> Result<(), DomainsError> {
        if run.taken.is_empty() {
            return Ok(());
        }
        self.counts.protect_calls += 1;
        let closed = keys.protect(run.start, run.last - run.start, None);
        for one in run.taken {
            let Some(state) = self.states.get_mut(&one) else { continue };
            // Where it failed some pages may have been closed, and others still carry the key.
            state.open = false;
            if let Some(key) = state.key.filter(|_| closed.is_ok()) {
                state.key = None;
                self.clean |= 1 << key;
                self.counts.recycled += 1;
            }
        }
        closed.map_err(refused)
    }

    fn pin(&mut self, compartment: Compartment) {
        self.count(compartment, 1);
    }

    fn unpin(&mut self, compartment: Compartment) {
        self.count(compartment, -1);
    }

    /// What a compartment shares does not change while it is entered.
    fn count(&mut self, compartment: Compartment, more: i32) {
        let Ok(needs) = self.needs(compartment) else { return };
        for one in needs.as_slice() {
            if let Some(state) = self.states.get_mut(one) {
                state.pins = state.pins.saturating_add_signed(more);
                if *one == compartment {
                    state.entered = state.entered.saturating_add_signed(more);
                }
            }
        }
    }

    /// Sets the rights of where the calling thread is now: what corresponds to writing the DACR.
    fn switch(&mut self, keys: &mut impl Keys, thread: &Thread) {
        self.counts.switches += 1;
        let held = (1..=MOST_KEYS as u8).filter(|key| self.held & 1 << key != 0);
        let (mask, mut rights) = held.fold((0, 0), |(mask, none), key| (mask | both(key), none | denied(key)));
        let mut grant = |compartment: Compartment, writable: bool| {
            let key = self.states.get(&compartment).and_then(|state| state.key);
            if let Some(key) = key {
                rights = rights & !both(key) | granted(key, writable);
            }
        };
        if let Some(inner) = thread.0.last() {
            grant(*inner, true);
            for (shared, writable) in self.states.get(inner).map_or(&[][..], |state| &state.shares) {
                grant(*shared, *writable);
            }
        }
        keys.set_rights(mask, rights);
    }
}

fn refused(errno: i32) -> DomainsError {
    DomainsError::System { call: "pkey_mprotect", errno }
}

/// Compartments that need a key at once.
struct Needs {
    list: [Compartment; MOST_KEYS],
    len: usize,
}

impl Needs {
    fn as_slice(&self) -> &[Compartment] {
        &self.list[..self.len]
    }
}

/// Compartments without a gap between them, which are closed by one call.
#[derive(Default)]
struct ClosedRun {
    /// First address of the first that is taken, and behind the last that is.
    start: usize,
    last: usize,
    /// Behind the last seen, which is taken or was closed before.
    end: usize,
    taken: Vec<Compartment>,
}

impl ClosedRun {
    fn add(&mut self, one: Compartment, start: usize, bytes: usize, taken: bool) {
        if self.taken.is_empty() {
            self.start = start;
        }
        self.end = start + bytes;
        if taken {
            self.last = self.end;
            self.taken.push(one);
        }
    }
}
