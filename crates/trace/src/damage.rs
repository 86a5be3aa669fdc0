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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damages_beyond_the_list_are_counted_in_one_that_reaches_over_all() {
        let mut log = DamageLog::default();
        for i in 0..LISTED as u64 + 3 {
            log.push(10 * i, 4, "bad");
        }
        assert_eq!(log.list().len(), LISTED + 1);
        assert_eq!(log.list()[LISTED - 1], Damage { offset: 9990, len: 4, reason: "bad".into() });
        let reason = "3 further damaged parts, the last: bad".to_string();
        assert_eq!(log.list()[LISTED], Damage { offset: 10_000, len: 24, reason });
    }
}
