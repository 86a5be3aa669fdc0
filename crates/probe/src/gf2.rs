//! Vectors and matrices over GF(2). A vector is a `u64`, a matrix a list of rows; adding is XOR.

/// The reduced row echelon form: pivots are the lowest bits, ascending; no pivot bit is set in another row. Two
/// matrices have the same row space, and so name the same sets, exactly if their forms are equal.
pub fn reduce(rows: &[u64]) -> Vec<u64> {
    let mut basis: Vec<u64> = Vec::new();
    for &row in rows {
        let rest = basis.iter().fold(row, |rest, &b| if rest & lowest(b) != 0 { rest ^ b } else { rest });
        if rest == 0 {
            continue;
        }
        for b in &mut basis {
            if *b & lowest(rest) != 0 {
                *b ^= rest;
            }
        }
        basis.push(rest);
    }
    basis.sort_unstable_by_key(|&row| row.trailing_zeros());
    basis
}

/// A basis of the vectors of `bits` bits that every row maps to 0.
pub fn null_space(rows: &[u64], bits: u32) -> Vec<u64> {
    let rows = reduce(rows);
    let pivots = rows.iter().fold(0, |all, &row| all | lowest(row));
    // Each free bit, with the pivots that it needs so that every row cancels.
    let free = (0..bits).map(|bit| 1u64 << bit).filter(|bit| pivots & bit == 0);
    free.map(|bit| rows.iter().filter(|&&row| row & bit != 0).fold(bit, |v, &row| v | lowest(row))).collect()
}

/// A basis of the same space whose first `k` vectors span the `2^k` smallest numbers that `k` of any can.
pub fn near_first(vectors: &[u64]) -> Vec<u64> {
    // The reduced form with the highest bits as pivots is that of the reversed bits.
    let reversed: Vec<u64> = vectors.iter().map(|v| v.reverse_bits()).collect();
    let mut basis: Vec<u64> = reduce(&reversed).into_iter().map(u64::reverse_bits).collect();
    basis.sort_unstable();
    basis
}

/// The value of `rows` for `vector`: bit `i` is the parity of row `i` and the vector.
pub fn apply(rows: &[u64], vector: u64) -> u64 {
    rows.iter().enumerate().map(|(i, row)| u64::from((row & vector).count_ones() & 1) << i).sum()
}

/// The sum of the vectors of `basis` that the bits of `choice` name.
pub(crate) fn combine(basis: &[u64], choice: u64) -> u64 {
    basis.iter().enumerate().filter(|(i, _)| choice >> i & 1 == 1).fold(0, |sum, (_, v)| sum ^ v)
}

/// Every sum of vectors of `basis`: `2^len` of them, 0 first.
pub fn span(basis: &[u64]) -> Vec<u64> {
    (0..1u64 << basis.len()).map(|choice| combine(basis, choice)).collect()
}

/// A basis of the part of `span(basis)` where the coordinates named by `functional` (not 0) sum to 0.
pub(crate) fn hyperplane(basis: &[u64], functional: u64) -> Vec<u64> {
    let pivot = functional.trailing_zeros() as usize;
    let rest = basis.iter().enumerate().filter(|&(i, _)| i != pivot);
    rest.map(|(i, v)| if functional >> i & 1 == 1 { v ^ basis[pivot] } else { *v }).collect()
}

fn lowest(row: u64) -> u64 {
    row & row.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_form_spans_the_same_rows(rows in proptest::collection::vec(0u64..256, 0..8)) {
            let sums = |rows: &[u64]| span(rows).into_iter().collect::<std::collections::BTreeSet<_>>();
            let form = reduce(&rows);
            prop_assert_eq!(sums(&form), sums(&rows));
            prop_assert_eq!(sums(&rows).len(), 1 << form.len());
            prop_assert_eq!(reduce(&form), form);
        }

        #[test]
        fn the_null_space_is_all_that_maps_to_nothing(rows in proptest::collection::vec(0u64..256, 0..8)) {
            let null = span(&null_space(&rows, 8)).into_iter().collect::<std::collections::BTreeSet<_>>();
            for v in 0..256 {
                prop_assert_eq!(null.contains(&v), apply(&rows, v) == 0);
            }
        }

        #[test]
        fn a_hyperplane_is_half_of_the_span(functional in 1u64..64) {
            let basis = [1u64, 6, 8, 16, 48, 64];
            let half: std::collections::BTreeSet<u64> = span(&hyperplane(&basis, functional)).into_iter().collect();
            let naive = (0..64u64).filter(|c| (c & functional).count_ones() % 2 == 0).map(|c| combine(&basis, c));
            prop_assert_eq!(half, naive.collect());
        }
    }
}
