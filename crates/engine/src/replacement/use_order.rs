//! LRU of at most 16 ways: the order of use in a word a set.

use super::set_policy::SetPolicy;
use crate::prefetch::prefetch;

/// Ways that the nibbles of a word can number.
pub(super) const MAX_WAYS: u32 = 16;

/// 1 in every nibble.
const ONES: u64 = 0x1111_1111_1111_1111;

/// Nibble 0 = the most recent way. Invalid ways are at the old end, the lowest-numbered last, so that the victim is
/// always the last nibble.
#[derive(Clone, Debug)]
pub(crate) struct UseOrder {
    order: Vec<u64>,
    ways: u32,
}

impl UseOrder {
    pub(super) fn new(sets: usize, ways: u32) -> Self {
        Self { order: vec![first_order(ways); sets], ways }
    }
}

impl SetPolicy for UseOrder {
    #[inline(always)]
    fn touch(&mut self, set: usize, way: u32) {
        self.order[set] = to_front(self.order[set], way);
    }

    #[inline(always)]
    fn replace(&mut self, set: usize, _: impl FnOnce() -> Option<u32>) -> u32 {
        let order = &mut self.order[set];
        let way = *order >> (4 * (self.ways - 1)) & 15;
        // All nibbles of ways move up by one, the last goes to the front.
        let all = u64::MAX >> (64 - 4 * self.ways);
        *order = *order & !all | *order << 4 & all | way;
        way as u32
    }

    fn invalidated(&mut self, set: usize, way: u32, is_valid: impl Fn(u32) -> bool) {
        let order = &mut self.order[set];
        let mut position = position_of(*order, way);
        while position + 1 < self.ways {
            let next = (*order >> (4 * (position + 1)) & 15) as u32;
            if !is_valid(next) && next < way {
                break;
            }
            *order = swap_with_next(*order, position);
            position += 1;
        }
    }

    #[inline(always)]
    fn prefetch(&self, set: usize) {
        prefetch(&self.order, set);
    }
}

/// No way is valid: the highest-numbered is in front, way 0 goes first.
fn first_order(ways: u32) -> u64 {
    (0..ways).fold(0, |order, way| order | u64::from(way) << (4 * (ways - 1 - way)))
        | (ways..MAX_WAYS).fold(0, |order, way| order | u64::from(way) << (4 * way))
}

/// Position of the nibble that holds `way`: the lowest zero nibble of the XOR.
#[inline]
fn position_of(order: u64, way: u32) -> u32 {
    let x = order ^ (ONES * u64::from(way));
    let zero = x.wrapping_sub(ONES) & !x & (ONES << 3);
    zero.trailing_zeros() / 4
}

/// Moves `way` to nibble 0; those before it move up by one.
#[inline]
fn to_front(order: u64, way: u32) -> u64 {
    let shift = 4 * position_of(order, way);
    let newer = (1u64 << shift) - 1;
    let kept = order & !(newer << 4 | 15);
    kept | (order & newer) << 4 | u64::from(way)
}

fn swap_with_next(order: u64, position: u32) -> u64 {
    let difference = (order >> (4 * position) ^ order >> (4 * position + 4)) & 15;
    order ^ difference << (4 * position) ^ difference << (4 * position + 4)
}
