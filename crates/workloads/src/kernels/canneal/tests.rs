use lookaside_trace::{Block, Kind};

use super::*;
use crate::observer::Unseen;

/// Length of all wires, from scratch: each is a link at both its ends.
fn length(anneal: &Canneal) -> i64 {
    let place = |i: u32| anneal.locations[anneal.elements[i as usize].location as usize];
    let mut twice = 0;
    for (i, element) in anneal.elements.iter().enumerate() {
        for &other in &anneal.links[element.links as usize..(element.links + element.count) as usize] {
            twice += place(i as u32).distance(place(other));
        }
    }
    assert_eq!(twice % 2, 0, "a wire that only one end knows of");
    twice / 2
}

fn small(seed: u64, rounds: u64) -> Canneal {
    Canneal::new(&WorkloadSpec { seed, rounds, ..WorkloadSpec::new(30_000) }).expect("memory")
}

#[test]
fn the_kept_length_is_that_from_scratch() {
    for seed in 0..5 {
        let mut anneal = small(seed, 400);
        let (before, cells) = (length(&anneal), anneal.locations.to_vec());
        let mut steps = 0;
        while anneal.step(&mut Unseen) {
            steps += 1;
            if steps % 97 == 0 {
                assert_eq!(length(&anneal), before + anneal.change, "seed {seed}");
            }
        }
        let after = length(&anneal);
        assert_eq!(after, before + anneal.change, "seed {seed}");
        assert!(after < before * 9 / 10, "seed {seed}: {before} before, {after} after");
        // Still one element a location, and the locations where they were.
        let mut taken: Vec<u64> = anneal.elements.iter().map(|element| element.location).collect();
        taken.sort_unstable();
        assert!(taken.into_iter().eq(0..anneal.elements.len() as u64));
        assert_eq!(*anneal.locations, *cells);
        assert_eq!(anneal.done, anneal.exchanges);
        assert!(!anneal.step(&mut Unseen), "the end stays the end");
    }
}

/// Wires lead from each element to five others and back.
#[test]
fn links_are_known_at_both_ends() {
    let anneal = small(3, 1);
    let side = (anneal.elements.len() as f64).sqrt().ceil() as u32;
    assert!(anneal.locations.iter().all(|location| location.x < side && location.y < side));
    for (i, links) in anneal.links.chunks(10).enumerate() {
        for pair in links.chunks(2) {
            let [drives, driven] = [pair[0], pair[1]].map(|other| &anneal.links[other as usize * 10..][..10]);
            assert!(drives.contains(&(i as u32)) && driven.contains(&(i as u32)));
        }
    }
}

#[test]
fn temperature_decides_what_is_accepted() {
    let run = |temperature: f64| {
        let mut anneal = small(8, 50);
        (anneal.temperature, anneal.round) = (temperature, u64::MAX);
        let mut block = Block::default();
        while anneal.step(&mut block) {}
        let accepted = block.kind.iter().filter(|&&kind| kind == Kind::Store).count() as u64 / 2;
        (accepted, anneal.done, anneal.change)
    };
    let (hot, tried, _) = run(1e12);
    assert_eq!(hot, tried);
    let (cold, tried, change) = run(1e-9);
    assert!(cold > 0 && cold < tried / 2 && change < 0, "{cold} of {tried}, {change}");
    let (warm, _, _) = run(50.0);
    assert!(cold < warm && warm < hot, "{cold} {warm} {hot}");
    let mut anneal = small(8, 2);
    while anneal.step(&mut Unseen) {}
    assert_eq!(anneal.temperature, 2000.0 / 1.5 / 1.5);
}

#[test]
fn accesses_are_those_of_the_netlist() {
    let mut anneal = small(4, 100);
    anneal.temperature = 1.0;
    let [elements, links, locations] = [0, 1, 2].map(|i: usize| anneal.room.regions()[i].stream_start);
    let netlist: Vec<Vec<u32>> = anneal.links.chunks(10).map(<[u32]>::to_vec).collect();
    let mut at: Vec<u64> = anneal.elements.iter().map(|element| element.location).collect();
    let mut block = Block::default();
    while anneal.step(&mut block) {}
    let mut seen = block.kind.iter().copied().zip(block.addr.iter().copied()).peekable();
    let (mut done, mut exchanged) = (0, 0);
    let mut last = None;
    while seen.peek().is_some() {
        let mut next = || seen.next().expect("a whole exchange");
        let load = |(kind, addr): (Kind, u64)| {
            assert_eq!(kind, Kind::Load);
            addr
        };
        let [a, b] = [load(next()), load(next())].map(|addr| (addr - elements) / 32);
        assert!(a != b && last.is_none_or(|last| last == a));
        last = Some(b);
        let places = [a, b].map(|i| locations + 8 * at[i as usize]);
        assert_eq!([load(next()), load(next())], places);
        for (element, partner) in [(a, b), (b, a)] {
            for (k, &other) in netlist[element as usize].iter().enumerate() {
                assert_eq!(load(next()), links + 40 * element + 4 * k as u64);
                if u64::from(other) != element && u64::from(other) != partner {
                    assert_eq!(load(next()), elements + 32 * u64::from(other));
                    assert_eq!(load(next()), locations + 8 * at[other as usize]);
                }
            }
        }
        done += 1;
        if seen.next_if(|&access| access == (Kind::Store, elements + 32 * a)).is_some() {
            assert_eq!(seen.next(), Some((Kind::Store, elements + 32 * b)));
            at.swap(a as usize, b as usize);
            exchanged += 1;
        }
    }
    assert_eq!(done, anneal.done);
    assert!(exchanged > 10, "{exchanged} exchanges");
    assert!(at.into_iter().eq(anneal.elements.iter().map(|element| element.location)));
}

#[test]
fn the_exponential_is_one() {
    for i in 0..=4000 {
        let x = f64::from(i) / 100.0;
        let (ours, systems) = (exp_of_minus(x), (-x).exp());
        assert!((ours - systems).abs() <= 1e-8 * systems, "e^-{x}: {ours}, {systems}");
    }
    assert_eq!((exp_of_minus(0.0), exp_of_minus(1e300)), (1.0, 0.0));
}

/// Linked in parts and at once, each element has its own links, location and cell.
#[test]
fn the_netlist_does_not_depend_on_its_parts() {
    let spec = WorkloadSpec { seed: 9, ..WorkloadSpec::new(4 << 20) };
    let anneal = Canneal::new(&spec).expect("memory");
    let elements = anneal.elements.len() as u64;
    assert!(elements > 2 * PART as u64, "{elements} elements");
    let mut random = SplitMix64::new(spec.seed);
    let nets: [Shuffle; NETS as usize] = std::array::from_fn(|_| Shuffle::new(elements, random.next_u64()));
    let places = Shuffle::new(elements, random.next_u64());
    let side = (elements - 1).isqrt() + 1;
    for i in 0..elements {
        let element = anneal.elements[i as usize];
        assert_eq!((element.links, element.count, element.location), (10 * i, 10, places.apply(i)), "element {i}");
        let links: Vec<u32> = nets.iter().flat_map(|net| [net.apply(i) as u32, net.invert(i) as u32]).collect();
        assert_eq!(anneal.links[10 * i as usize..][..10], links, "links of element {i}");
        assert_eq!(anneal.locations[i as usize], Location { x: (i % side) as u32, y: (i / side) as u32 }, "cell {i}");
    }
}
