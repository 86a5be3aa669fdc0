//! Events as plain text has them.

use serde::{Deserialize, Serialize};

use crate::{Event, Kind, WindowChange, WindowEvent};

/// Any event, in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TextEvent {
    /// [`WindowChange::Leave`]
    Leave { addr: u64, kind: Kind, others: u8, lines: u64 },
    /// [`WindowChange::Touch`]
    Touch { addr: u64, kind: Kind },
    /// Of no window.
    #[serde(untagged)]
    Other(Event),
}

impl From<&WindowEvent> for TextEvent {
    fn from(event: &WindowEvent) -> Self {
        let &WindowEvent { kind, addr, lines, .. } = event;
        match event.change {
            WindowChange::Leave { others } => Self::Leave { addr, kind, others, lines },
            WindowChange::Touch => Self::Touch { addr, kind },
        }
    }
}
