//! Walks as the machine that runs the tests counts them, where it does: to the page, and no time is asserted.

use lookaside_machine::PageSize;
use lookaside_probe::{ChainAccess, HostMachine, Metal, MetalError, PageChain};

/// More small pages than any TLB known has entries for (Zen 5: 4096; Golden Cove: 2048), four times over.
const MANY: u64 = 1 << 14;

#[test]
fn of_a_few_pages_hardly_one_is_walked_for_and_of_far_too_many_most_are() {
    let mut host = match HostMachine::new(256 << 20) {
        Ok(host) => host,
        Err(MetalError::Unsupported(reason)) => return eprintln!("LEFT OUT: {reason}"),
        Err(error) => panic!("{error}"),
    };
    let chain = |pages: &[u64], host: &mut HostMachine| {
        host.walks(&PageChain { size: PageSize::K4, touch: ChainAccess::Load, pages }, pages.len(), 20)
    };
    if !host.counts_walks() {
        assert!(matches!(chain(&[1, 2], &mut host), Err(MetalError::Cannot(_))));
        return eprintln!("LEFT OUT: this system tells nothing of walks");
    }
    // In an order that no prefetcher knows; each of them once.
    let pages: Vec<u64> = (0..MANY).map(|i| (i * 0x9e5) % MANY).collect();
    let least = |walks: Vec<f64>| walks.into_iter().fold(f64::INFINITY, f64::min);
    let few = least(chain(&pages[..8], &mut host).expect("walks of few"));
    let many = chain(&pages, &mut host).expect("walks of many");
    assert!(few <= 2.0, "of 8 pages {few} are always walked for");
    assert!(many.iter().all(|walks| (MANY as f64 / 2.0..=MANY as f64).contains(walks)), "of {MANY} pages {many:?}");
    // Half of a round at a time.
    let half =
        host.walks(&PageChain { size: PageSize::K4, touch: ChainAccess::Load, pages: &pages }, pages.len() / 2, 2);
    assert!(half.expect("walks of half").iter().all(|walks| *walks <= MANY as f64 / 2.0));
}
