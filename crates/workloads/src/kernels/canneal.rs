//! Simulated annealing of a netlist's placement, as PARSEC's canneal: two elements change places where that makes the
//! wires shorter or, at a temperature, not much longer.

use std::io;

use lookaside_stats::SplitMix64;
use lookaside_timing::FlowRegister;

use crate::at_once::at_once;
use crate::checksum::fold;
use crate::memory::{Array, WorkloadMemory};
use crate::observer::{AccessObserver, Plain};
use crate::shuffle::Shuffle;
use crate::workload::{Kernel, WorkloadSpec};

/// Exchanges a step.
const STEP: u64 = 8;
/// Nets that an element drives; as many drive it.
const NETS: u64 = 5;
/// Elements for each exchange of a round.
const ELEMENTS_PER_EXCHANGE: u64 = 16;
/// Elements linked by one thread without a break.
const PART: usize = 1 << 14;
/// PARSEC's temperature in the first round (PT-Baker uses it too), and what it is divided by after each.
const FIRST_TEMPERATURE: f64 = 2000.0;
const COOLING: f64 = 1.5;

/// The elements that may change places. They are drawn, so that their addresses are at hand.
const FIRST: FlowRegister = FlowRegister::new(1);
const SECOND: FlowRegister = FlowRegister::new(2);
/// A link of one of them.
const LINK: FlowRegister = FlowRegister::new(3);
/// The element that it leads to.
const OTHER: FlowRegister = FlowRegister::new(4);

/// An element of the netlist. It lies in half a line.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Element {
    /// First of its links, and how many there are: the elements that it drives, and those that drive it.
    links: u64,
    count: u64,
    /// Number of its location.
    location: u64,
    room: u64,
}

/// A place on the chip.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Location {
    x: u32,
    y: u32,
}

// SAFETY: numbers.
unsafe impl Plain for Element {}
// SAFETY: numbers.
unsafe impl Plain for Location {}

impl Location {
    /// Length of a wire along the grid.
    #[inline(always)]
    fn distance(self, other: Self) -> i64 {
        i64::from(self.x.abs_diff(other.x)) + i64::from(self.y.abs_diff(other.y))
    }
}

/// The annealing.
pub(super) struct Canneal {
    room: WorkloadMemory,
    elements: Array<Element>,
    links: Array<u32>,
    locations: Array<Location>,
    random: SplitMix64,
    temperature: f64,
    /// The element that was drawn last: the next exchange is with it.
    last: u64,
    /// Exchanges tried so far, those of one round, and how many there are to be.
    done: u64,
    round: u64,
    exchanges: u64,
    /// What the wires' length has changed by, and which exchanges were made.
    change: i64,
    sum: u64,
}

impl Canneal {
    /// Each element drives five others, drawn by five permutations, and is driven by five; the locations are the cells
    /// of the least square, in random order.
    pub(super) fn new(spec: &WorkloadSpec) -> io::Result<Self> {
        let each = size_of::<Element>() as u64 + 2 * NETS * 4 + size_of::<Location>() as u64;
        let elements = (spec.bytes / each).max(2);
        let mut room = WorkloadMemory::new(spec.pages);
        let mut anneal = Self {
            elements: room.array("elements", elements, true)?,
            links: room.array("links", elements * 2 * NETS, false)?,
            locations: room.array("locations", elements, false)?,
            room,
            random: SplitMix64::new(!spec.seed),
            temperature: FIRST_TEMPERATURE,
            last: 0,
            done: 0,
            round: elements.div_ceil(ELEMENTS_PER_EXCHANGE),
            exchanges: elements.div_ceil(ELEMENTS_PER_EXCHANGE).saturating_mul(spec.rounds),
            change: 0,
            sum: 0,
        };
        let side = (elements - 1).isqrt() + 1;
        let mut random = SplitMix64::new(spec.seed);
        let nets: [Shuffle; NETS as usize] = std::array::from_fn(|_| Shuffle::new(elements, random.next_u64()));
        let places = Shuffle::new(elements, random.next_u64());
        let linked = 2 * NETS as usize;
        let parts = (anneal.elements.as_mut().chunks_mut(PART).enumerate())
            .zip(anneal.links.as_mut().chunks_mut(PART * linked))
            .zip(anneal.locations.as_mut().chunks_mut(PART));
        at_once(parts, |(((number, elements), links), locations)| {
            let each = elements.iter_mut().zip(links.chunks_exact_mut(linked)).zip(locations);
            for (i, ((element, links), location)) in ((number * PART) as u64..).zip(each) {
                for (net, links) in nets.iter().zip(links.chunks_exact_mut(2)) {
                    (links[0], links[1]) = (net.apply(i) as u32, net.invert(i) as u32);
                }
                *element = Element { links: i * 2 * NETS, count: 2 * NETS, location: places.apply(i), room: 0 };
                *location = Location { x: (i % side) as u32, y: (i / side) as u32 };
            }
        });
        anneal.last = anneal.random.below(elements);
        Ok(anneal)
    }

    /// What the wires of `element` (number `i`, in a register), but for those to `but`, would be longer if it went from
    /// one place to another.
    #[inline(always)]
    fn longer(
        &self,
        (i, element, register): (u64, Element, FlowRegister),
        but: u64,
        [from, to]: [Location; 2],
        observer: &mut impl AccessObserver,
    ) -> i64 {
        let mut longer = 0;
        for link in element.links..element.links + element.count {
            let other = u64::from(self.links.load(link, observer.by(register).to(LINK)));
            // The wire between the two stays as long as it is, and one to itself has no length.
            if other != but && other != i {
                let location = self.elements.load(other, observer.by(LINK).to(OTHER)).location;
                let place = self.locations.load(location, observer.by(OTHER));
                longer += to.distance(place) - from.distance(place);
            }
        }
        longer
    }
}

/// e^-x for x of at least 0, to 8 digits, by the same operations on every machine: the system's own differ in the last
/// bit.
fn exp_of_minus(x: f64) -> f64 {
    if x > 40.0 {
        return 0.0; // below 2^-53, the finest that is drawn
    }
    let t = x / 4096.0;
    let mut power = 1.0 - t * (1.0 - t / 2.0 * (1.0 - t / 3.0 * (1.0 - t / 4.0)));
    for _ in 0..12 {
        power *= power;
    }
    power
}

impl Kernel for Canneal {
    const NAME: &'static str = "canneal";
    const OPERATION: &'static str = "exchange tried";

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let elements = self.elements.len() as u64;
        vec![("elements", elements), ("nets", elements * NETS)]
    }

    fn room(&self) -> &WorkloadMemory {
        &self.room
    }

    fn operations(&self) -> u64 {
        self.done
    }

    fn checksum(&self) -> u64 {
        fold(self.sum, self.change as u64)
    }

    #[inline]
    fn step(&mut self, observer: &mut impl AccessObserver) -> bool {
        let count = self.elements.len() as u64;
        for _ in 0..STEP.min(self.exchanges - self.done) {
            // As PARSEC: one of the two is new, the other in the cache already.
            let a = self.last;
            let b = (a + 1 + self.random.below(count - 1)) % count;
            let first = self.elements.load(a, observer.to(FIRST));
            let second = self.elements.load(b, observer.to(SECOND));
            let here = self.locations.load(first.location, observer.by(FIRST));
            let there = self.locations.load(second.location, observer.by(SECOND));
            let longer = self.longer((a, first, FIRST), b, [here, there], observer)
                + self.longer((b, second, SECOND), a, [there, here], observer);
            if longer < 0 || self.random.unit() < exp_of_minus(longer as f64 / self.temperature) {
                self.elements.store(a, Element { location: second.location, ..first }, observer);
                self.elements.store(b, Element { location: first.location, ..second }, observer);
                self.change += longer;
                self.sum = fold(self.sum, a ^ b << 32);
            }
            self.last = b;
            self.done += 1;
            if self.done.is_multiple_of(self.round) {
                self.temperature /= COOLING;
            }
        }
        self.done < self.exchanges
    }
}

#[cfg(test)]
mod tests;
