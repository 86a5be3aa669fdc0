//! Has this message been processed before? A store that answers each message once keeps every answer, and finds it by
//! the message's digest, in a tree. Most messages are new: the search ends at the bottom of the tree, and no stored
//! answer is touched. A program whose accesses are skewed by what its data are for, and wait for each other: for
//! comparing huge pages for a tenth of the windows with huge pages for all.
//!
//! Why it looks so: a node of 64 bytes for each answer of 576 makes the tree a tenth of the memory, as an index of
//! common rows is. The tree is the plain one: digests are evenly spread, so that messages in the order of their arrival
//! keep it some 30 nodes deep (2 ln n on average), and no balancing is needed. Nodes lie in the order of their arrival,
//! answers too. Which node comes next is read from the one before, so nothing hides how long its translation takes;
//! nodes near the root are few and stay in TLBs and caches, the last six or so of a search don't. One message in eight
//! is a repeat, whose answer is read.
//!
//! ```console
//! $ cargo build --release -p lookaside-workloads --example seen_before
//! $ lookaside compare --variants base,thp,hugepages:auto:205 --warmup 0 --runs 5 --metric '([0-9.]+) ns each' -- \
//!       target/release/examples/seen_before 4096 6
//! ```
//!
//! Arguments: MiB of memory, rounds. Prints a line a round; the last one tells what it comes to once pages have been
//! chosen. Memory is `malloc`'s.

use std::time::Instant;

use lookaside_stats::SplitMix64;

/// Where a tree ends.
const NONE: u32 = u32::MAX;

/// One message in so many is a repeat.
const REPEATS: u64 = 8;

/// What is kept of a message to know it again: a node of the tree, one cache line.
#[repr(C, align(64))]
struct Node {
    digest: [u64; 4],
    /// Nodes with lesser or equal, and greater first words.
    below: [u32; 2],
    /// Number of its answer.
    answer: u64,
}

/// What it was answered.
type Answer = [u64; 72];

/// All that was processed.
struct Store {
    nodes: Vec<Node>,
    answers: Vec<Answer>,
}

impl Store {
    /// So many messages, one after another.
    fn filled(messages: usize) -> Self {
        let mut store = Self { nodes: Vec::with_capacity(messages), answers: Vec::with_capacity(messages) };
        (0..messages as u64).for_each(|number| store.keep(digest(number), number));
        store
    }

    /// Keeps a new message and its answer.
    fn keep(&mut self, digest: [u64; 4], number: u64) {
        let (mut at, mut leaf) = (0u32, None);
        while let Some(node) = self.nodes.get(at as usize) {
            let side = side(node, &digest);
            leaf = Some((at, side));
            at = node.below[side];
        }
        if let Some((leaf, side)) = leaf {
            self.nodes[leaf as usize].below[side] = self.nodes.len() as u32;
        }
        self.nodes.push(Node { digest, below: [NONE; 2], answer: self.answers.len() as u64 });
        self.answers.push(std::array::from_fn(|word| number ^ word as u64));
    }

    /// The answer to a message that was processed.
    fn find(&self, digest: &[u64; 4]) -> Option<&Answer> {
        let mut at = 0;
        // The root is the first; what `NONE` names is not there.
        while let Some(node) = self.nodes.get(at as usize) {
            if node.digest == *digest {
                return self.answers.get(node.answer as usize);
            }
            at = node.below[side(node, digest)];
        }
        None
    }
}

/// Where to go on from a node: without a branch, as a branch would be guessed wrong every other time.
fn side(node: &Node, digest: &[u64; 4]) -> usize {
    usize::from(digest[0] > node.digest[0])
}

/// A digest of a message: as evenly spread as a cryptographic one, and cheaper.
fn digest(number: u64) -> [u64; 4] {
    let mut random = SplitMix64::new(number);
    std::array::from_fn(|_| random.next_u64())
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let (Some(Ok(mib)), Some(Ok(rounds)), None) = (arguments.next(), arguments.next(), arguments.next()) else {
        eprintln!("usage: seen_before MIB ROUNDS, whole numbers");
        std::process::exit(2);
    };
    if !(1..=1 << 20).contains(&mib) {
        eprintln!("seen_before: 1 MiB to 1 TiB, not {mib} MiB");
        std::process::exit(2);
    }
    let messages = (mib << 20) / (size_of::<Node>() + size_of::<Answer>());
    let store = Store::filled(messages);
    let (mut random, mut new) = (SplitMix64::new(1), messages as u64);
    for round in 1..=rounds {
        let start = Instant::now();
        let (mut repeats, mut found, mut sum) = (0u64, 0u64, 0u64);
        for _ in 0..messages / 2 {
            let number = if random.below(REPEATS) == 0 {
                repeats += 1;
                random.below(messages as u64)
            } else {
                new += 1;
                new
            };
            if let Some(answer) = store.find(&digest(number)) {
                found += 1;
                sum = answer.iter().fold(sum, |sum, word| sum.wrapping_mul(31).wrapping_add(*word));
            }
        }
        let nanos = start.elapsed().as_secs_f64() * 1e9 / (messages / 2) as f64;
        println!("round {round}: {nanos:.2} ns each, {found} seen before, sum {sum:016x}");
        if found != repeats {
            eprintln!("seen_before: {repeats} were repeats: the search is wrong");
            std::process::exit(1);
        }
    }
}
