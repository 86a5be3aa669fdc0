//! Which set a page number belongs to, made ready to compute.

use lookaside_machine::IndexFn;

/// A set index, ready to compute.
#[derive(Clone, Debug)]
pub(crate) enum SetIndex {
    /// The low bits.
    Low { mask: u64 },
    /// XOR of the number shifted right by each of these, cut to the mask.
    Folds { shifts: Vec<u32>, mask: u64 },
    /// Any matrix: one table a byte of the number, XORed.
    Tables(Vec<[u32; 256]>),
}

impl SetIndex {
    /// The index of an array of so many sets.
    pub(crate) fn new(index: &IndexFn, sets: u32) -> Self {
        let masks = index.masks(sets);
        let first = masks.first().copied().unwrap_or(0);
        // Bits that a shift would push out of the word stay out of the fold too.
        let is_fold =
            masks.iter().enumerate().all(|(bit, &mask)| first.leading_zeros() as usize >= bit && mask == first << bit);
        if is_fold {
            let shifts = (0..64).filter(|bit| first >> bit & 1 == 1).collect();
            let mask = u64::from(sets - 1);
            return if first <= 1 { Self::Low { mask } } else { Self::Folds { shifts, mask } };
        }
        let set_of = |number: u64| {
            masks.iter().enumerate().fold(0, |set, (bit, mask)| set | ((number & mask).count_ones() & 1) << bit)
        };
        let table = |byte: u32| std::array::from_fn(|value| set_of((value as u64) << (8 * byte)));
        Self::Tables((0..8).map(table).collect())
    }

    /// The set of a page number.
    #[inline]
    pub(crate) fn set_of(&self, number: u64) -> usize {
        match self {
            Self::Low { mask } => (number & mask) as usize,
            Self::Folds { shifts, mask } => {
                (shifts.iter().fold(0, |folded, shift| folded ^ number >> shift) & mask) as usize
            }
            Self::Tables(tables) => {
                tables.iter().enumerate().fold(0, |set, (i, table)| set ^ table[(number >> (8 * i) & 255) as usize])
                    as usize
            }
        }
    }
}
