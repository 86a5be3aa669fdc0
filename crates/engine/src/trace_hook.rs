//! Shows a caller what each access did in the model.

use lookaside_machine::Stage;

use crate::stages::MAX_ITEMS;

/// What one access did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AccessResult {
    /// Level and number of the TLB array that hit; `None` = it walked.
    pub hit: Option<(u32, usize)>,
    /// The hit was in a lockable entry.
    pub locked: bool,
    /// References of its walk, in order.
    pub references: Vec<Reference>,
    /// How many of its walk's references memory served.
    pub memory_references: u64,
    /// Translation cycles: the hit's or the walk's.
    pub cycles: f64,
    /// Number of the data cache that served the access itself; `None` = memory, or no data caches.
    pub data_server: Option<usize>,
    /// Memory served the access itself, after data caches.
    pub is_from_memory: bool,
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

/// What of the accesses is to be seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SeenPart {
    /// Nothing.
    #[default]
    Nothing,
    /// What each did, but for the references of its walk.
    Waits,
    /// All.
    All,
}

/// What is seen of accesses, each of which is then an item of its own.
#[derive(Clone, Debug)]
pub(crate) struct SeenAccesses {
    pub(crate) part: SeenPart,
    /// References of a batch's walks, in order.
    pub(crate) references: Vec<Reference>,
    /// By item: it hit in a lockable entry; it goes on with an ascending walk.
    pub(crate) locked: [bool; MAX_ITEMS],
    pub(crate) streamed: [bool; MAX_ITEMS],
    /// Those that are done.
    pub(crate) results: Vec<AccessResult>,
}

impl Default for SeenAccesses {
    fn default() -> Self {
        let nothing = [false; MAX_ITEMS];
        let (references, results) = (Vec::new(), Vec::new());
        Self { part: SeenPart::Nothing, references, locked: nothing, streamed: nothing, results }
    }
}

impl SeenAccesses {
    /// Is each access seen?
    pub(crate) fn is_any(&self) -> bool {
        self.part != SeenPart::Nothing
    }
}
