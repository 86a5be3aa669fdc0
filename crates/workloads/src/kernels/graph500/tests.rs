use std::collections::{BTreeSet, VecDeque};

use lookaside_trace::{Block, Kind};

use super::*;

/// Neighbours of each vertex, from the ends alone.
fn neighbours(graph: &Graph500) -> Vec<BTreeSet<u64>> {
    let mut sets = vec![BTreeSet::new(); graph.heads.len()];
    for edge in graph.ends.chunks(2) {
        sets[edge[0] as usize].insert(u64::from(edge[1]));
        sets[edge[1] as usize].insert(u64::from(edge[0]));
    }
    sets
}

/// Edges from the root to each vertex that can be reached, by a queue over sets of neighbours.
fn levels(sets: &[BTreeSet<u64>], root: u64) -> Vec<Option<u32>> {
    let mut levels = vec![None; sets.len()];
    let mut queue = VecDeque::from([(root, 0)]);
    levels[root as usize] = Some(0);
    while let Some((vertex, level)) = queue.pop_front() {
        for &other in &sets[vertex as usize] {
            if levels[other as usize].is_none() {
                levels[other as usize] = Some(level + 1);
                queue.push_back((other, level + 1));
            }
        }
    }
    levels
}

/// One search, seen.
fn search(graph: &mut Graph500) -> Block {
    let (mut block, rounds) = (Block::default(), graph.rounds);
    while graph.rounds == rounds {
        graph.step(&mut block);
    }
    block
}

#[test]
fn the_tree_has_the_levels_of_a_plain_search() {
    for seed in 0..5 {
        let mut graph = Graph500::new(&WorkloadSpec { seed, rounds: 3, ..WorkloadSpec::new(60_000) }).expect("memory");
        let sets = neighbours(&graph);
        for round in 0..3 {
            search(&mut graph);
            let root = graph.queue[0];
            let expected = levels(&sets, root);
            for (vertex, level) in expected.iter().enumerate() {
                // Up the tree to the root.
                let (mut at, mut up) = (vertex as u64, 0);
                if graph.tree[vertex] == 0 {
                    assert_eq!(*level, None, "seed {seed}, round {round}, vertex {vertex}");
                    continue;
                }
                while at != root {
                    let parent = graph.tree[at as usize] - 1;
                    assert!(sets[at as usize].contains(&parent), "{parent} is no neighbour of {at}");
                    (at, up) = (parent, up + 1);
                    assert!(up <= sets.len(), "a circle");
                }
                assert_eq!(*level, Some(up as u32), "seed {seed}, round {round}, vertex {vertex}");
            }
            assert!(expected.iter().flatten().count() > sets.len() / 2, "most vertices are reached");
        }
        assert!(!graph.step(&mut crate::observer::Unseen), "the end stays the end");
    }
}

#[test]
fn accesses_follow_the_lists() {
    let mut graph = Graph500::new(&WorkloadSpec::new(50_000)).expect("memory");
    let at = |graph: &Graph500, i: usize| graph.room.regions()[i].stream_start;
    let [ends, next, heads, tree, queue] = [0, 1, 2, 3, 4].map(|i| at(&graph, i));
    let block = search(&mut graph);
    let seen: Vec<(Kind, u64)> = block.kind.iter().copied().zip(block.addr.iter().copied()).collect();

    let vertices = graph.heads.len() as u64;
    let mut expected: Vec<(Kind, u64)> = (0..vertices).map(|v| (Kind::Store, tree + 8 * v)).collect();
    let root = graph.queue[0];
    // Roots without an edge are drawn anew.
    let tries = seen[vertices as usize..].iter().take_while(|(kind, _)| *kind == Kind::Load).count();
    expected.extend(&seen[vertices as usize..vertices as usize + tries - 1]);
    assert!(expected[vertices as usize..].iter().all(|(_, a)| graph.heads[((a - heads) / 8) as usize] == 0));
    expected.extend([(Kind::Load, heads + 8 * root), (Kind::Store, tree + 8 * root), (Kind::Store, queue)]);
    let (mut order, mut seen_vertices) = (vec![root], BTreeSet::from([root]));
    let mut turn = 0;
    let mut followed = 0;
    while turn < order.len() {
        let vertex = order[turn];
        if turn > 0 {
            expected.extend([(Kind::Load, queue + 8 * turn as u64), (Kind::Load, heads + 8 * vertex)]);
        }
        turn += 1;
        // The list of a vertex: its ends, the last one first.
        for p in (0..graph.ends.len()).rev().filter(|&p| u64::from(graph.ends[p]) == vertex) {
            let other = u64::from(graph.ends[p ^ 1]);
            expected.extend([(Kind::Load, ends + 4 * (p as u64 ^ 1)), (Kind::Load, tree + 8 * other)]);
            if seen_vertices.insert(other) {
                expected.push((Kind::Store, tree + 8 * other));
                expected.push((Kind::Store, queue + 8 * order.len() as u64));
                order.push(other);
            }
            expected.push((Kind::Load, next + 8 * p as u64));
            followed += 1;
        }
    }
    assert!(seen == expected, "{} accesses, {} expected", seen.len(), expected.len());
    assert_eq!(graph.followed, followed);
}

/// Drawn in parts and at once, the edges are what they are one after another.
#[test]
fn the_graph_does_not_depend_on_its_parts() {
    let spec = WorkloadSpec { seed: 9, ..WorkloadSpec::new(2 << 20) };
    let graph = Graph500::new(&spec).expect("memory");
    let edges = graph.ends.len() / 2;
    assert!(edges > 2 * PART, "{edges} edges");
    let mut rmat = Rmat::new(graph.heads.len().ilog2(), spec.seed);
    assert!(graph.ends.chunks(2).all(|ends| (ends[0], ends[1]) == rmat.edge()));
}
