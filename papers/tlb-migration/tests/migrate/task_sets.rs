//! Beyond the paper: programs, task sets and periodic tasks under the modelled Linux.

use lookaside_machine::preset;
use lookaside_tlb_migration::machines::*;
use lookaside_tlb_migration::Version;
use lookaside_trace::{Block, Event, Kind, Source, TraceError, TraceInfo};

const NOTHING: Along = Along { version: Version::V3, cap: None, predictor: None };
const ALL: Along = Along { cap: Some(64), ..NOTHING };

fn young(period: u32, younger_than: u8) -> Along {
    let predictor = Predictor { period_lookups: period.try_into().unwrap(), younger_than };
    Along { predictor: Some(predictor), ..ALL }
}

/// So often round these pages.
fn rounds(pages: std::ops::Range<u32>, times: u32) -> impl Iterator<Item = u32> {
    (0..times).flat_map(move |_| pages.clone())
}

fn run(programs: &[ProgramSteps], one_process: bool, along: &Along, schedule: &MoveSchedule) -> MigrationCounts {
    MigratingTasks::new(&preset("gem5-armv7").unwrap(), programs, one_process, along).unwrap().run(schedule).unwrap()
}

const ONE_MOVE: MoveSchedule = MoveSchedule {
    times: 1,
    slice_accesses: 340,
    turn_slices: 1,
    move_slices: 1,
    moves: Moves::Running,
    flushes: true,
};

/// 40 pages once, ten of them on and on; then a move, and these ten again.
#[test]
fn what_was_used_long_ago_is_not_taken_along() {
    let program = ProgramSteps::over((0..40).chain(rounds(0..10, 31)), 14);
    let programs = [program];
    let of = |along| run(&programs, true, &along, &ONE_MOVE);
    let without = of(NOTHING);
    assert_eq!((without.moves, without.restored), (1, Restored::default()));
    let all = of(ALL);
    assert_eq!(all.restored, Restored { entries: 40, used: 10 });
    assert_eq!(without.walks - all.walks, 10, "the kernel walks for its own before they are restored");
    // Of four rounds of ten: the kernel's 14 lookups on the way to saving are less than one.
    let predicted = of(young(40, 2));
    assert_eq!(predicted.restored, Restored { entries: 10, used: 10 });
    assert_eq!(predicted.walks, all.walks);
    assert!(predicted.cycles < all.cycles, "30 entries less are saved and restored");
    // Those used last: the kernel's seven, then the program's.
    let capped = of(Along { cap: Some(10), ..ALL });
    assert_eq!(capped.restored.entries + 7, 10);
    assert_eq!(of(young(40, 2)), predicted, "the same again");
}

#[test]
fn a_balancer_evens_out_the_load_and_moves_on() {
    let programs: Vec<ProgramSteps> = (0..6).map(|_| ProgramSteps::over(rounds(0..30, 200), 5)).collect();
    let schedule = MoveSchedule {
        times: 1,
        slice_accesses: 500,
        turn_slices: 2,
        move_slices: 1,
        moves: Moves::Waiting,
        flushes: false,
    };
    let without = run(&programs, false, &NOTHING, &schedule);
    // 12 slices each; while six or five tasks are there, one moves after each slice.
    assert!(without.moves >= 10, "{without:?}");
    for version in [Version::V1, Version::V2, Version::V3, Version::V4] {
        let nothing = Along { version, ..NOTHING };
        assert_eq!(run(&programs, false, &nothing, &schedule), without, "nothing goes through it");
        let came = run(&programs, false, &Along { version, ..ALL }, &schedule);
        assert_eq!(came.moves, without.moves);
        assert!(came.restored.used <= came.restored.entries && came.restored.entries > 0, "{came:?}");
        assert!(came.walks <= without.walks, "{came:?} {without:?}");
        assert_eq!(run(&programs, false, &Along { version, ..ALL }, &schedule), came, "the same again");
    }
    // Threads of one process whose pages lie apart.
    let (mut threads, mut next) = (Vec::new(), 0x100);
    for program in &programs {
        let (moved, behind) = program.moved_to(next);
        assert_eq!((moved.pages().len(), moved.accesses()), (30, program.accesses()));
        assert!(behind > next && moved.pages().iter().all(|page| (next..behind).contains(&(page >> 8))));
        threads.push(moved);
        next = behind;
    }
    let threads = run(&threads, true, &ALL, &schedule);
    assert_eq!(threads.moves, without.moves);
}

fn periodic() -> Periodic {
    Periodic {
        job: ProgramSteps::over(rounds(0..24, 10), 14),
        background: (0..4).map(|n| ProgramSteps::over(rounds(n * 7..n * 7 + 70, 20), 3)).collect(),
        between_accesses: 300,
        jobs: 40,
        move_every: 4,
        flushes: false,
        seed: 3,
    }
}

#[test]
fn jobs_that_are_moved_take_longer() {
    let machine = preset("gem5-armv7").unwrap();
    let periodic = periodic();
    let without = periodic.run(&machine, &NOTHING).unwrap();
    let with = periodic.run(&machine, &ALL).unwrap();
    assert_eq!(with, periodic.run(&machine, &ALL).unwrap(), "the same again");
    assert_eq!((without.response_cycles.len(), with.response_cycles.len()), (40, 40));
    assert_eq!(without.response_cycles[..3], with.response_cycles[..3], "nothing was moved yet");
    assert!(with.restored.entries > 0 && without.restored.entries == 0);
    let mean = |moved: bool| {
        let of = without.response_cycles.iter().zip(1u32..).filter(|(_, job)| job.is_multiple_of(4) == moved);
        let of: Vec<u64> = of.map(|(cycles, _)| *cycles).skip(1).collect();
        of.iter().sum::<u64>() as f64 / of.len() as f64
    };
    assert!(mean(true) > mean(false), "{} {}", mean(true), mean(false));
}

/// A recording in memory.
struct Recording(TraceInfo, Vec<Block>);

impl Source for Recording {
    fn info(&self) -> &TraceInfo {
        &self.0
    }

    fn next_block(&mut self, block: &mut Block) -> Result<bool, TraceError> {
        *block = self.1.pop().unwrap_or_default();
        Ok(!block.is_empty())
    }
}

fn recording(thread: u32, rows: &[(Kind, u64, u32)]) -> Block {
    Block {
        process: 1,
        thread,
        addr: rows.iter().map(|row| row.1).collect(),
        kind: rows.iter().map(|row| row.0).collect(),
        repeat: rows.iter().map(|row| row.2).collect(),
        ..Block::default()
    }
}

#[test]
fn a_recording_is_its_data_accesses_and_the_instructions_between() {
    use Kind::{Fetch, Load, Store};
    let info = TraceInfo { has_fetches: true, command: vec!["a".into(), "b".into()], ..TraceInfo::default() };
    let mut first = recording(
        1,
        &[(Fetch, 0x8000, 4), (Load, 0x5010, 2), (Store, 0x6000, 0), (Fetch, 0x9000, 0), (Load, 0x5020, 0)],
    );
    // Each before the access of its place.
    first.events.push((2, Event::Repeats { addr: 0x5000, kind: Load, count: 20 }));
    first.events.push((2, Event::Repeats { addr: 0x8000, kind: Fetch, count: 30 }));
    first.events.push((5, Event::Repeats { addr: 0x5000, kind: Load, count: 7 }));
    first.events.push((5, Event::Repeats { addr: 0x9000, kind: Fetch, count: 9 }));
    let second = recording(1, &[(Store, 0x7000, 0)]);
    let read =
        |most| ProgramSteps::read(&mut Recording(info.clone(), vec![second.clone(), first.clone()]), most).unwrap();
    let step = |instructions, va, repeats, stores| DataStep { instructions, va, repeats, stores };
    let steps =
        [step(5, 0x5010, 22, false), step(30, 0x6000, 0, true), step(1, 0x5020, 7, false), step(9, 0x7000, 0, true)];
    assert_eq!(read(9).steps(), steps);
    assert_eq!((read(9).accesses(), read(9).pages()), (33, vec![5, 6, 7]));
    assert_eq!(read(2).steps(), &steps[..2]);

    let refused = |info: &TraceInfo, blocks: &[Block]| {
        ProgramSteps::read(&mut Recording(info.clone(), blocks.to_vec()), 9).unwrap_err().to_string()
    };
    let wide = recording(1, &[(Load, 1 << 32, 0)]);
    assert_eq!(refused(&info, &[wide]), "a b: address 0x100000000 has more than 32 bits");
    assert_eq!(refused(&info, &[]), "a b: has no access to data");
    let other = recording(2, &[(Load, 0x1000, 0)]);
    assert_eq!(refused(&info, &[other, second.clone()]), "a b: has several threads: the model takes one");
    let words = "a b: the model needs instruction fetches, and all accesses but direct repeats";
    assert_eq!(refused(&TraceInfo { has_fetches: false, ..info.clone() }, std::slice::from_ref(&second)), words);
    assert_eq!(refused(&TraceInfo { filter_log2_classes: 4, ..info.clone() }, std::slice::from_ref(&second)), words);
}

#[test]
fn what_cannot_be_is_told() {
    let machine = preset("gem5-armv7").unwrap();
    let programs: Vec<ProgramSteps> = (0..7).map(|_| ProgramSteps::over(0..3, 1)).collect();
    let error = MigratingTasks::new(&machine, &programs, false, &NOTHING).unwrap_err().to_string();
    assert_eq!(error, "more than 6 processes: the model has no room for their page tables");
    assert!(MigratingTasks::new(&machine, &programs, true, &NOTHING).is_ok(), "threads of one");
    let by_index = Along { version: Version::V2, ..young(64, 2) };
    let error = MigratingTasks::new(&machine, &programs, true, &by_index).unwrap_err().to_string();
    assert_eq!(error, "V2 does not choose entries by age: V3 and V4 do");
    let mut lone = periodic();
    lone.background.pop();
    let error = lone.run(&machine, &NOTHING).unwrap_err().to_string();
    assert_eq!(error, "gem5-armv7: the model of TLB migration needs a program of the background for each core");
}
