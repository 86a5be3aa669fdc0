//! Edges and corners of pictures whose edges and corners are known, and areas by their definition.

use lookaside_workloads::kernel::Unseen;

use super::super::image::{neighbourhood, MASK};
use super::*;
use crate::programs::spec::ProgramInput;

fn done(picture: Picture) -> Susan {
    let mut susan = Susan::of(&ProgramSpec::new(ProgramInput::Small, 1), picture).expect("memory");
    while susan.step(&mut Unseen) {}
    susan
}

fn picture(width: u64, height: u64, grey: impl Fn(u64, u64) -> u8) -> Picture {
    let pixels = (0..width * height).map(|at| grey(at % width, at / width)).collect();
    Picture { width, height, pixels }
}

const SQUARE: std::ops::Range<u64> = 14..34;

fn square() -> Picture {
    picture(50, 48, |x, y| if SQUARE.contains(&x) && SQUARE.contains(&y) { 180 } else { 50 })
}

fn marked(susan: &Susan) -> Vec<(u64, u64)> {
    let width = susan.image.width;
    (0..susan.image.len()).filter(|&at| susan.marks[at as usize] > 0).map(|at| (at % width, at / width)).collect()
}

#[test]
fn the_mask_is_a_circle_of_37_pixels() {
    let naive: Vec<(i32, i32)> = (-3..=3)
        .flat_map(|y| (-3..=3).map(move |x| (x, y)))
        .filter(|&(x, y)| (x, y) != (0, 0) && ((x * x + y * y) as f64).sqrt() < 3.4)
        .collect();
    assert_eq!(neighbourhood().flatten().collect::<Vec<_>>(), naive);
    assert_eq!(naive.len() as i32 + 1, MASK);
}

#[test]
fn edges_of_a_square_are_where_they_are() {
    let susan = done(square());
    let marked = marked(&susan);
    // On the last pixel inside or the first outside.
    let near = |at: u64| [13, 14, 33, 34].contains(&at);
    let along = |at: u64| (13..=34).contains(&at);
    assert!(marked.iter().all(|&(x, y)| near(x) && along(y) || near(y) && along(x)), "{marked:?}");
    let is = |x, y| u64::from(marked.contains(&(x, y)));
    for at in 17..31 {
        for (inside, outside) in [(14, 13), (33, 34)] {
            assert_eq!((is(at, inside) + is(at, outside), is(inside, at) + is(outside, at)), (1, 1), "{at}");
        }
    }
}

#[test]
fn a_line_is_one_edge_whichever_way_it_runs() {
    for (name, on) in [
        ("across", (|_, y| y == 20) as fn(u64, u64) -> bool),
        ("down", |x, _| x == 20),
        ("falling", |x, y| x == y),
        ("rising", |x, y| x + y == 40),
    ] {
        let susan = done(picture(41, 41, |x, y| if on(x, y) { 200 } else { 20 }));
        let marked = marked(&susan);
        let missing: Vec<(u64, u64)> = (6..35)
            .flat_map(|y| (6..35).map(move |x| (x, y)))
            .filter(|&(x, y)| on(x, y) && !marked.contains(&(x, y)))
            .collect();
        assert!(missing.is_empty(), "{name}: {missing:?}");
    }
}

#[test]
fn corners_of_a_square_are_at_its_corners() {
    let susan = done(square());
    let found: Vec<(u32, u32)> =
        susan.corners[..2 * susan.corner_count as usize].chunks(2).map(|at| (at[0], at[1])).collect();
    assert_eq!(found, [(14, 14), (33, 14), (14, 33), (33, 33)]);
}

#[test]
fn a_picture_without_corners_or_edges_has_none() {
    let susan = done(picture(40, 40, |x, y| (100 + (x * 5 + y * 3) % 7) as u8));
    assert_eq!((marked(&susan).len(), susan.corner_count), (0, 0));
    let half = done(picture(40, 40, |x, _| if x < 20 { 30 } else { 220 }));
    assert_eq!(half.corner_count, 0);
}

/// Every response to the picture of the runs, by the formula.
#[test]
fn responses_are_the_papers() {
    let picture = Picture::new(&ProgramSpec::new(ProgramInput::Small, 1));
    let mut susan = Susan::of(&ProgramSpec::new(ProgramInput::Small, 1), picture.clone()).expect("memory");
    let pixel = |x: i64, y: i64| f64::from(picture.pixels[(y * picture.width as i64 + x) as usize]);
    while susan.phase != SusanPhase::EdgesThin {
        assert!(susan.step(&mut Unseen));
    }
    for at in 0..susan.image.len() {
        let (x, y) = ((at % picture.width) as i64, (at / picture.width) as i64);
        let whole = (3..picture.width as i64 - 3).contains(&x) && (3..picture.height as i64 - 3).contains(&y);
        let alike = |(dx, dy)| {
            let difference: f64 = pixel(x + dx, y + dy) - pixel(x, y);
            (100.0 * (-(difference / 20.0).powi(6)).exp()).round() as i32
        };
        let around = (-3..=3).flat_map(|dy| (-3..=3).map(move |dx| (dx, dy)));
        let area = |_| around.filter(|(dx, dy)| dx * dx + dy * dy <= 10).map(alike).sum::<i32>();
        let expected = if whole { (2775 - area(())).max(0) } else { 0 };
        assert_eq!(susan.responses[at as usize], expected, "{x} {y}");
    }
    let edges = susan.responses.iter().filter(|response| **response > 0).count();
    assert!((500..4000).contains(&edges), "{edges}");
}
