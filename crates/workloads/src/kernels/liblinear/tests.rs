use lookaside_trace::{Block, Kind};

use super::*;
use crate::observer::Unseen;

type Row = Vec<(usize, f64)>;

/// Features and values of each row.
fn rows(solver: &LibLinear) -> Vec<Row> {
    let row = |&first: &u64| {
        let nodes = solver.nodes[first as usize..].iter().take_while(|node| node.index != 0);
        nodes.map(|node| (node.index as usize - 1, node.value)).collect()
    };
    solver.rows.iter().map(row).collect()
}

fn dot(row: &Row, weights: &[f64]) -> f64 {
    row.iter().map(|&(feature, value)| weights[feature] * value).sum()
}

/// The solution of the problem, by the conditions that only it meets (Karush, Kuhn, Tucker), and by the dual's gap.
#[test]
fn it_ends_at_the_minimum() {
    for (seed, bytes) in [(1, 60_000), (2, 200_000)] {
        let mut solver =
            LibLinear::new(&WorkloadSpec { seed, rounds: 300, ..WorkloadSpec::new(bytes) }).expect("memory");
        let rows = rows(&solver);
        while solver.step(&mut Unseen) {}
        let mut weights = vec![0.0; FEATURES as usize];
        for (row, (&alpha, &label)) in rows.iter().zip(solver.alphas.iter().zip(solver.labels.iter())) {
            for &(feature, value) in row {
                weights[feature] += alpha * label * value;
            }
        }
        for (feature, (&kept, &weight)) in solver.weights.iter().zip(&weights).enumerate() {
            assert!((kept - weight).abs() < 1e-9, "weight {feature}: {kept}, from scratch {weight}");
        }
        let square: f64 = weights.iter().map(|weight| weight * weight).sum();
        let (mut primal, mut dual) = (0.5 * square, -0.5 * square);
        let mut supports = 0;
        for (i, row) in rows.iter().enumerate() {
            let (alpha, margin) = (solver.alphas[i], 1.0 - solver.labels[i] * dot(row, &weights));
            let gradient = DIAGONAL * alpha - margin;
            assert!(alpha >= 0.0);
            assert!(if alpha > 0.0 { gradient.abs() < 1e-6 } else { gradient > -1e-6 }, "row {i}: {alpha}, {gradient}");
            primal += margin.max(0.0).powi(2);
            dual += alpha - 0.5 * DIAGONAL * alpha * alpha;
            supports += u32::from(alpha > 0.0);
        }
        assert!((primal - dual).abs() < 1e-6 * primal, "primal {primal}, dual {dual}");
        assert!(supports > 10, "{supports} rows support the plane");
        assert!(!solver.step(&mut Unseen), "the end stays the end");
    }
}

/// A solver over plain lists, which takes the order of rows from the stream, makes the same accesses and ends at the
/// same bits.
#[test]
fn accesses_and_values_are_those_of_a_plain_solver() {
    use Kind::{Load, Store};
    let mut solver = LibLinear::new(&WorkloadSpec { rounds: 3, ..WorkloadSpec::new(60_000) }).expect("memory");
    let rows = rows(&solver);
    let [nodes, firsts, labels, alphas, squares, order, weights] =
        [0, 1, 2, 3, 4, 5, 6].map(|i: usize| solver.room.regions()[i].stream_start);
    let mut block = Block::default();
    while solver.step(&mut block) {}
    let seen: Vec<(Kind, u64)> = block.kind.iter().copied().zip(block.addr.iter().copied()).collect();

    let (mut weight, mut alpha) = (vec![0.0; FEATURES as usize], vec![0.0; rows.len()]);
    let mut shuffled: Vec<usize> = (0..rows.len()).collect();
    let mut expected = Vec::new();
    for _ in 0..3 {
        let mut visited = vec![false; rows.len()];
        for here in 0..rows.len() {
            let there = ((seen[expected.len()].1 - order) / 4) as usize;
            assert!((here..rows.len()).contains(&there));
            expected.extend([there, here].map(|at| (Load, order + 4 * at as u64)));
            expected.extend([there, here].map(|at| (Store, order + 4 * at as u64)));
            shuffled.swap(here, there);
            let i = shuffled[here];
            assert!(!std::mem::replace(&mut visited[i], true), "row {i} comes twice");
            expected.extend([(Load, labels + 8 * i as u64), (Load, firsts + 8 * i as u64)]);
            let first = solver.rows[i];
            let node = |k: usize| (Load, nodes + 16 * (first + k as u64));
            let place = |feature: usize| weights + 8 * feature as u64;
            let mut product = 0.0;
            for (k, &(feature, value)) in rows[i].iter().enumerate() {
                expected.extend([node(k), (Load, place(feature))]);
                product += weight[feature] * value;
            }
            expected.extend([node(rows[i].len()), (Load, alphas + 8 * i as u64)]);
            let gradient = solver.labels[i] * product - 1.0 + DIAGONAL * alpha[i];
            if (alpha[i] == 0.0 && gradient >= 0.0) || gradient.abs() <= 1e-12 {
                continue;
            }
            let mut square = DIAGONAL;
            rows[i].iter().for_each(|(_, value)| square += value * value);
            let new = f64::max(alpha[i] - gradient / square, 0.0);
            expected.extend([(Load, squares + 8 * i as u64), (Store, alphas + 8 * i as u64)]);
            for (k, &(feature, value)) in rows[i].iter().enumerate() {
                expected.extend([node(k), (Load, place(feature)), (Store, place(feature))]);
                weight[feature] += (new - alpha[i]) * solver.labels[i] * value;
            }
            expected.push(node(rows[i].len()));
            alpha[i] = new;
        }
    }
    assert!(seen == expected, "{} accesses, {} expected", seen.len(), expected.len());
    assert_eq!((solver.weights.to_vec(), solver.alphas.to_vec()), (weight, alpha));
}

#[test]
fn rows_are_sorted_and_sparse() {
    let solver = LibLinear::new(&WorkloadSpec::new(1 << 20)).expect("memory");
    let rows = rows(&solver);
    assert_eq!(rows.iter().map(Vec::len).sum::<usize>(), 28 * rows.len());
    for row in &rows {
        assert!((14..=42).contains(&row.len()));
        assert!(row.windows(2).all(|w| w[0].0 < w[1].0) && row.iter().all(|(feature, _)| *feature < 4096));
    }
    let positive = solver.labels.iter().filter(|&&label| label == 1.0).count();
    assert!((rows.len() / 3..rows.len() * 2 / 3).contains(&positive), "{positive} of {}", rows.len());
    assert!(solver.labels.iter().all(|label| label.abs() == 1.0));
}
