//! Shows a caller what each access did in the model.

use lookaside_machine::Stage;

/// What one access did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AccessResult {
    /// Level and number of the TLB array that hit; `None` = it walked.
    pub hit: Option<(u32, usize)>,
    /// The hit was in a lockable entry.
    pub locked: bool,
    /// References of its walk, in order.
    pub references: Vec<Reference>,
    /// Translation cycles: the hit's or the walk's.
    pub cycles: f64,
    /// Number of the data cache that served the access itself; `None` = memory, or no data caches.
    pub data_server: Option<usize>,
    /// The access goes on with an ascending walk (`SEMANTICS.md` §7).
    pub streamed: bool,
    /// Cycles that it waited for its line beyond a hit in the first cache asked.
    pub stall_cycles: f64,
}

/// One reference to a page-table entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Physical address of the entry.
    pub address: u64,
    /// Its table's level, the leaf table being 1.
    pub level: u32,
    /// Whose table.
    pub stage: Stage,
    /// Number of the data cache that served it; `None` = memory.
    pub server: Option<usize>,
}

/// Sees what accesses do; [`NoTracer`] costs nothing.
pub(crate) trait AccessTracer {
    /// Whether it sees anything.
    const ENABLED: bool;
    /// A walk reference of the access under way.
    fn reference(&mut self, reference: Reference);
    /// The access is done; its references came before.
    fn access(&mut self, result: AccessResult);
}

/// Sees nothing.
pub(crate) struct NoTracer;

impl AccessTracer for NoTracer {
    const ENABLED: bool = false;
    fn reference(&mut self, _: Reference) {}
    fn access(&mut self, _: AccessResult) {}
}

/// Hands each access to a function, without its references.
pub(crate) struct WaitTracer<'a, F>(pub(crate) &'a mut F);

impl<F: FnMut(AccessResult)> AccessTracer for WaitTracer<'_, F> {
    const ENABLED: bool = true;

    fn reference(&mut self, _: Reference) {}

    fn access(&mut self, result: AccessResult) {
        (self.0)(result);
    }
}

/// Hands each access to a function.
pub(crate) struct CallbackTracer<'a, F> {
    see: &'a mut F,
    references: Vec<Reference>,
}

impl<'a, F: FnMut(AccessResult)> CallbackTracer<'a, F> {
    pub(crate) fn new(see: &'a mut F) -> Self {
        Self { see, references: Vec::new() }
    }
}

impl<F: FnMut(AccessResult)> AccessTracer for CallbackTracer<'_, F> {
    const ENABLED: bool = true;

    fn reference(&mut self, reference: Reference) {
        self.references.push(reference);
    }

    fn access(&mut self, result: AccessResult) {
        let references = std::mem::take(&mut self.references);
        (self.see)(AccessResult { references, ..result });
    }
}
