//! A list of damages that cannot outgrow memory.

use crate::Damage;

/// Damages listed one by one; further ones are only counted, in a last entry.
const LISTED: usize = 1000;

/// Collects damages.
#[derive(Debug, Default)]
pub(crate) struct DamageLog {
    list: Vec<Damage>,
    unlisted: u64,
}

impl DamageLog {
    /// Notes that `len` bytes from `offset` on are left out.
    pub(crate) fn push(&mut self, offset: u64, len: u64, reason: &str) {
        if self.list.len() < LISTED {
            self.list.push(Damage { offset, len, reason: reason.into() });
            return;
        }
        if self.unlisted == 0 {
            self.list.push(Damage { offset, len: 0, reason: String::new() });
        }
        self.unlisted += 1;
        let unlisted = self.unlisted;
        if let Some(last) = self.list.last_mut() {
            last.len = offset.saturating_add(len).saturating_sub(last.offset);
            last.reason = format!("{unlisted} further damaged parts, the last: {reason}");
        }
    }

    /// The damages so far, in the order they were found.
    pub(crate) fn list(&self) -> &[Damage] {
        &self.list
    }
}
