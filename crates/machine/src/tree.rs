//! The shape of a tree pseudo-LRU's tree: two-way nodes over any number of ways, numbered from the left.

/// Most ways of a tree of a number of ways that is no power of two.
pub const MAX_UNEVEN_TREE_WAYS: u32 = 64;

/// Ways on the left of a node that is over so many (2 or more): half of a power of two. Of other numbers, at the root
/// as near half as can be, and below it as large a power of two as leaves something on the right: 12 are 6 and 6, each
/// of them 4 and 2.
///
/// That is the shape of the second-level TLB of Zen 4, of three that were tried: it alone predicts all of 77 sequences
/// of one `lookaside machine probe --only policy`. Others may have others.
pub fn tree_left_ways(ways: u32, is_root: bool) -> u32 {
    match is_root {
        true => ways.div_ceil(2),
        false => ways.next_power_of_two() / 2,
    }
}

/// Nodes above the way that has the fewest of them. A set keeps one page more than that, of those used last, whatever
/// goes in between: each use of another page turns one node of a way's path towards it at most, and the fill that takes
/// it finds all turned.
pub fn tree_least_depth(ways: u32) -> u32 {
    fn below(ways: u32, is_root: bool) -> u32 {
        if ways < 2 {
            return 0;
        }
        let left = tree_left_ways(ways, is_root);
        1 + below(left, false).min(below(ways - left, false))
    }
    below(ways, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_powers_of_two_and_six_and_six_of_twelve() {
        for log2 in 1..12 {
            assert_eq!([true, false].map(|is_root| tree_left_ways(1 << log2, is_root)), [1 << (log2 - 1); 2]);
            assert_eq!(tree_least_depth(1 << log2), log2);
        }
        assert_eq!((tree_left_ways(12, true), tree_left_ways(6, false)), (6, 4));
        // Of 9 = 5 + 4 the fifth is alone on the right of its node.
        let depths = [1, 3, 5, 6, 9, 12, 20, 24].map(tree_least_depth);
        assert_eq!(depths, [0, 1, 2, 2, 2, 3, 3, 4]);
    }
}
