//! One instruction's time and counts.

/// One instruction: its share of native time, and what the exact run counted of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SiteTime {
    /// Native user seconds.
    pub seconds: f64,
    /// Page visits.
    pub visits: u64,
    /// Of these visits, as many as wait for another by where their addresses come from, at the least.
    pub waiting_visits: f64,
    /// Modelled cycles of their translation.
    pub translation_cycles: f64,
}
