use std::collections::VecDeque;

use lookaside_trace::{Block, Kind};

use super::*;
use crate::observer::Unseen;

/// A graph of 64 vertices with about this many edges each in place of the R-MAT one: paths of many lengths.
fn sparse(seed: u64, rounds: u64, edges_per_vertex: u64) -> Bc {
    let mut bc = Bc::new(&WorkloadSpec { seed, rounds, ..WorkloadSpec::new(104 * 64 + 100) }).expect("memory");
    assert_eq!(bc.depths.len(), 64);
    let mut random = SplitMix64::new(seed);
    let mut end = 0;
    for vertex in 0..64 {
        for _ in 0..random.below(2 * edges_per_vertex + 1) {
            bc.neighbours.as_mut()[end] = random.below(64) as u32;
            end += 1;
        }
        bc.first.as_mut()[vertex + 1] = end as u64;
    }
    bc
}

fn edges(bc: &Bc, vertex: usize) -> &[u32] {
    &bc.neighbours[bc.first[vertex] as usize..bc.first[vertex + 1] as usize]
}

/// Distances from a vertex, and how many walks are as short (parallel edges make several).
fn shortest(bc: &Bc, from: usize) -> Vec<Option<(u32, f64)>> {
    let mut found = vec![None; bc.depths.len()];
    // Walks of length k to each vertex, for k = 0, 1, …
    let mut walks = vec![0.0; bc.depths.len()];
    walks[from] = 1.0;
    for length in 0..bc.depths.len() as u32 {
        for (found, &walks) in found.iter_mut().zip(&walks) {
            if found.is_none() && walks > 0.0 {
                *found = Some((length, walks));
            }
        }
        let mut longer = vec![0.0; walks.len()];
        for (vertex, &walks) in walks.iter().enumerate() {
            for &other in edges(bc, vertex) {
                // As many as ever matter; all walks of 64 steps would be too many for a number.
                longer[other as usize] = f64::min(longer[other as usize] + walks, 1e200);
            }
        }
        walks = longer;
    }
    found
}

/// One source, seen.
fn source(bc: &mut Bc) -> Block {
    let (mut block, rounds) = (Block::default(), bc.rounds);
    while bc.rounds == rounds {
        bc.step(&mut block);
    }
    block
}

#[test]
fn scores_are_those_of_all_shortest_paths() {
    for (seed, edges_per_vertex) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 8)] {
        let mut bc = sparse(seed, 4, edges_per_vertex);
        let pairs: Vec<_> = (0..64).map(|vertex| shortest(&bc, vertex)).collect();
        let mut expected = vec![0.0; 64];
        for _ in 0..4 {
            source(&mut bc);
            let s = bc.queue[0] as usize;
            for t in (0..64).filter(|&t| t != s) {
                let Some((length, paths)) = pairs[s][t] else { continue };
                for v in (0..64).filter(|&v| v != s && v != t) {
                    if let (Some((before, to)), Some((after, on))) = (pairs[s][v], pairs[v][t]) {
                        if before + after == length {
                            expected[v] += to * on / paths;
                        }
                    }
                }
            }
        }
        for (v, (&score, &expected)) in bc.scores.iter().zip(&expected).enumerate() {
            assert!((score - expected).abs() <= 1e-9 * expected.max(1.0), "vertex {v}: {score}, expected {expected}");
        }
        assert!(expected.iter().any(|&score| score > 10.0), "some vertex is between others");
        assert!(!bc.step(&mut Unseen), "the end stays the end");
    }
}

#[test]
fn accesses_are_those_of_both_passes() {
    use Kind::{Load, Store};
    let mut bc = sparse(9, 1, 3);
    let [first, neighbours, depths, queue, paths, dependencies, scores] =
        [0, 1, 2, 3, 4, 5, 6].map(|i: usize| bc.room.regions()[i].stream_start);
    let block = source(&mut bc);
    let seen: Vec<(Kind, u64)> = block.kind.iter().copied().zip(block.addr.iter().copied()).collect();

    let mut expected: Vec<(Kind, u64)> =
        (0..64).flat_map(|v| [(Store, depths + 4 * v), (Store, paths + 8 * v)]).collect();
    let s = u64::from(bc.queue[0]);
    // Vertices that no edge leads out of are drawn anew.
    let tries = seen[128..].iter().take_while(|(kind, _)| *kind == Load).count();
    expected.extend(&seen[128..128 + tries - 2]);
    expected.extend([(Load, first + 8 * s), (Load, first + 8 * s + 8)]);
    expected.extend([(Store, depths + 4 * s), (Store, paths + 8 * s), (Store, queue)]);
    let enter =
        |v: u64| [(Load, depths + 4 * v), (Load, paths + 8 * v), (Load, first + 8 * v), (Load, first + 8 * v + 8)];
    let mut levels = vec![None; 64];
    levels[s as usize] = Some(0);
    let mut order = vec![s];
    let mut waiting = VecDeque::from([s]);
    let mut turn = 0;
    while let Some(v) = waiting.pop_front() {
        if turn > 0 {
            expected.push((Load, queue + 4 * turn));
        }
        turn += 1;
        expected.extend(enter(v));
        let level = levels[v as usize];
        for (k, &w) in edges(&bc, v as usize).iter().enumerate() {
            expected.push((Load, neighbours + 4 * (bc.first[v as usize] + k as u64)));
            let w = u64::from(w);
            expected.push((Load, depths + 4 * w));
            let next = level.map(|level: u32| level + 1);
            if levels[w as usize].is_none() {
                levels[w as usize] = next;
                expected.extend([(Store, depths + 4 * w), (Store, queue + 4 * order.len() as u64)]);
                order.push(w);
                waiting.push_back(w);
            }
            if levels[w as usize] == next {
                expected.extend([(Load, paths + 8 * w), (Store, paths + 8 * w)]);
            }
        }
    }
    for (turn, &v) in order.iter().enumerate().rev() {
        if turn + 1 < order.len() {
            expected.push((Load, queue + 4 * turn as u64));
        }
        expected.extend(enter(v));
        for (k, &w) in edges(&bc, v as usize).iter().enumerate() {
            expected.push((Load, neighbours + 4 * (bc.first[v as usize] + k as u64)));
            let w = u64::from(w);
            expected.push((Load, depths + 4 * w));
            if levels[w as usize] == levels[v as usize].map(|level| level + 1) {
                expected.extend([(Load, paths + 8 * w), (Load, dependencies + 8 * w)]);
            }
        }
        if turn > 0 {
            expected.extend([(Store, dependencies + 8 * v), (Load, scores + 8 * v), (Store, scores + 8 * v)]);
        }
    }
    assert!(order.len() > 32, "{} vertices reached", order.len());
    assert!(seen == expected, "{} accesses, {} expected", seen.len(), expected.len());
}

/// Few vertices have most of the edges, at either end.
#[test]
fn degrees_are_far_from_even() {
    let bc = Bc::new(&WorkloadSpec::new(1 << 20)).expect("memory");
    let vertices = bc.depths.len();
    let mut into = vec![0u64; vertices];
    for &vertex in &bc.neighbours[..bc.first[vertices] as usize] {
        into[vertex as usize] += 1;
    }
    let mut out: Vec<u64> = bc.first.windows(2).map(|w| w[1] - w[0]).collect();
    for degrees in [&mut into, &mut out] {
        degrees.sort_unstable_by(|a, b| b.cmp(a));
        let top: u64 = degrees[..vertices / 20].iter().sum();
        let all: u64 = degrees.iter().sum();
        assert!(top * 10 > all * 3, "a twentieth of the vertices has {top} of {all} edges");
        assert!(all * 100 > bc.neighbours.len() as u64 * 97, "{all} edges of {}", bc.neighbours.len());
    }
}

/// Drawn in parts and at once, the graph is what it is vertex after vertex.
#[test]
fn the_graph_does_not_depend_on_its_parts() {
    let spec = WorkloadSpec { seed: 9, ..WorkloadSpec::new(2 << 20) };
    let bc = Bc::new(&spec).expect("memory");
    let vertices = bc.depths.len();
    assert!(vertices > 2 * PART, "{vertices} vertices");
    let mut rmat = Rmat::new(vertices.ilog2(), spec.seed);
    let (mut neighbours, mut end) = (vec![0; bc.neighbours.len()], 0);
    for vertex in 0..vertices {
        let row = rmat.row(vertex as u64);
        let degree = rmat.degree(row, neighbours.len() as u64).min((neighbours.len() - end) as u64) as usize;
        rmat.edges_from(row, &mut neighbours[end..end + degree]);
        end += degree;
        assert_eq!(bc.first[vertex + 1], end as u64, "edges up to vertex {vertex}");
    }
    assert!(*bc.neighbours == *neighbours);
}
