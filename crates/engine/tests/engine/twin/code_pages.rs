//! Code that a file's huge pages hold and code that was copied to huge pages of anonymous memory cost the same, to the
//! count, on any machine: the model of what the first gains says what the second does.

use lookaside_engine::{Outcome, PagePolicy, ProcessRange, Setup};
use lookaside_trace::{Block, Event, Kind, MapSource};
use proptest::prelude::*;

use super::{config, run_engine, run_twin, setups};

/// Code of 9 MiB and a bit, whose begin and end are in the middle of a huge page.
const CODE: (u64, u64) = (0x4000_3000, 0x4090_5000);
/// What of it lies in whole aligned pages of 1 and of 2 MiB, but for one of them.
const WINDOWS: (u64, u64) = (0x4020_0000, 0x4080_0000);
const DATA: (u64, u64) = (0x5000_0000, 0x5080_0000);

fn map((start, end): (u64, u64), prot: u8, source: &MapSource) -> (u32, Event) {
    (0, Event::Map { addr: start, len: end - start, prot, source: source.clone(), site: 0 })
}

/// How the code is mapped.
#[derive(Clone, Copy)]
enum CodeIn {
    /// The program's file.
    File,
    /// Anonymous memory.
    Memory,
    /// The whole windows in anonymous memory, as the preloaded library leaves them; what is before and behind in the file.
    WindowsInMemory,
}

impl CodeIn {
    fn maps(self) -> Vec<(u32, Event)> {
        let file = |at: u64| MapSource::File { path: "/bin/program".into(), offset: at - CODE.0 };
        let code = |part: (u64, u64)| match self {
            Self::Memory => map(part, 5, &MapSource::Anonymous),
            Self::File | Self::WindowsInMemory => map(part, 5, &file(part.0)),
        };
        match self {
            Self::File | Self::Memory => vec![code(CODE)],
            Self::WindowsInMemory => {
                vec![code((CODE.0, WINDOWS.0)), map(WINDOWS, 5, &MapSource::Anonymous), code((WINDOWS.1, CODE.1))]
            }
        }
    }

    fn policy(self) -> PagePolicy {
        let ranges = vec![ProcessRange { process: None, start: WINDOWS.0, end: WINDOWS.1 }];
        match self {
            Self::File => PagePolicy::SelectiveFiles(ranges),
            Self::Memory | Self::WindowsInMemory => PagePolicy::Selective(ranges),
        }
    }

    /// A program that executes and reads what `words` say.
    fn block(self, words: &[u64]) -> Block {
        let mut block = Block { process: 1, thread: 1, ..Block::default() };
        block.events = self.maps();
        block.events.push(map(DATA, 3, &MapSource::Heap));
        for word in words {
            // Three of four are fetches; half of these in the whole windows.
            let (kind, (start, end)) = match word >> 62 {
                0 => (Kind::Load, DATA),
                1 => (Kind::Fetch, CODE),
                _ => (Kind::Fetch, WINDOWS),
            };
            block.push(kind, start + word % (end - start));
        }
        block
    }

    fn setup(self, setup: &Setup) -> Setup {
        let mut setup = setup.clone();
        (setup.os.pages, setup.os.huge_page) = (self.policy(), None);
        setup
    }
}

/// Without what names mappings: which row of them is a page's, and their own.
fn unnamed(mut outcome: Outcome) -> Outcome {
    outcome.regions.clear();
    outcome.pages.iter_mut().for_each(|page| page.region = None);
    outcome
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..config() })]

    #[test]
    fn copied_code_costs_what_a_files_huge_pages_cost(
        setup in setups(),
        words in prop::collection::vec(any::<u64>(), 1..600),
    ) {
        let run = |code: CodeIn| {
            let (setup, blocks) = (code.setup(&setup), [code.block(&words)]);
            let (steps, outcome) = run_engine(&setup, &blocks)?;
            let (_, twins) = run_twin(&setup, &blocks);
            prop_assert_eq!(&outcome, &twins);
            Ok((steps, unnamed(outcome)))
        };
        let file = run(CodeIn::File)?;
        prop_assert_eq!(&file, &run(CodeIn::Memory)?);
        prop_assert_eq!(&file, &run(CodeIn::WindowsInMemory)?);
    }
}

/// What the cases above compare is code on huge pages, and it costs less than in small ones.
#[test]
fn windows_of_code_are_huge_and_save_walks() {
    let mut skylake = Setup::new(lookaside_machine::preset("skylake").expect("a preset"));
    let words: Vec<u64> = (0..20_000).map(|i| lookaside_engine::os::mix(3, i, 0, 0)).collect();
    let run = |setup: &Setup| run_engine(setup, &[CodeIn::File.block(&words)]).expect("a good setup").1;
    let small = run(&skylake);
    skylake = CodeIn::File.setup(&skylake);
    let huge = run(&skylake);
    let in_windows = |outcome: &Outcome| {
        let its = outcome.pages.iter().filter(|page| (WINDOWS.0..WINDOWS.1).contains(&page.addr));
        its.map(|page| page.size).collect::<Vec<_>>()
    };
    assert_eq!(in_windows(&huge), [lookaside_machine::PageSize::M2; 3]);
    assert!(in_windows(&small).len() > 1000);
    assert!(
        huge.fetch.cost.walks * 2 < small.fetch.cost.walks,
        "{} and {}",
        huge.fetch.cost.walks,
        small.fetch.cost.walks
    );
}
