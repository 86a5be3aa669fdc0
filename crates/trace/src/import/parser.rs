//! What the parser of a format does, and what it gives.

use std::collections::VecDeque;

use super::input::Input;
use crate::damage::DamageLog;
use crate::{Event, Kind, TraceError, TraceInfo, WindowEvent};

/// One access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImportedAccess {
    pub(crate) kind: Kind,
    pub(crate) addr: u64,
    pub(crate) size: u8,
    pub(crate) ip: u64,
    pub(crate) repeat: u32,
}

/// What a parser finds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ParsedItem {
    /// What follows is of this process and thread.
    Thread(u32, u32),
    /// An access.
    Access(ImportedAccess),
    /// An event.
    Event(Event),
    /// An event of a window; its place is where it stands.
    OfWindow(WindowEvent),
}

/// Which columns a format fills.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ImportedColumns {
    pub(crate) size: bool,
    pub(crate) ip: bool,
    pub(crate) repeat: bool,
}

/// A format.
pub(crate) trait Parser: Send {
    /// Reads some more, appends what it finds; `false` at the end. Items are appended in pieces of bounded size.
    fn parse(
        &mut self,
        input: &mut Input,
        items: &mut VecDeque<ParsedItem>,
        damage: &mut DamageLog,
    ) -> Result<bool, TraceError>;

    /// The columns. Asked after the first call of `parse`.
    fn columns(&self) -> ImportedColumns;

    /// What the trace says of itself, as far as it is known after the first items.
    fn describe(&self, info: &mut TraceInfo);
}
