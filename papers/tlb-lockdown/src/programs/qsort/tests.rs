//! Words sorted, against Rust's own sort, and how.

use lookaside_workloads::kernel::Unseen;
use proptest::prelude::*;

use super::*;

fn sorted(text: &[u8]) -> Vec<u8> {
    let mut qsort = Qsort::of(&ProgramSpec::new(ProgramInput::Small, 1), text).expect("memory");
    while qsort.step(&mut Unseen) {}
    let heading = format!("\nSorting {} words.\n\n", qsort.input.lines());
    qsort.printer.output.text.strip_prefix(heading.as_bytes()).expect("a heading").to_vec()
}

fn naively(text: &[u8]) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    // A word that is the beginning of another comes first: the end of a line is less than all letters.
    lines.sort();
    lines.concat()
}

#[test]
fn the_input_is_sorted() {
    for seed in 1..4 {
        let text = text(seed, SMALL);
        assert_eq!(text.iter().filter(|&&byte| byte == b'\n').count() as u64, SMALL);
        assert!(text.split(|&byte| byte == b'\n').all(|word| (word.len() as u64) < RECORD_BYTES));
        assert!(sorted(&text) == naively(&text), "seed {seed}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Few letters: many words are equal, or the beginning of others; some differ late.
    #[test]
    fn any_words_are_sorted(words in proptest::collection::vec("[a-c]{1,3}|a{7,17}[a-c]?", 0..200)) {
        let text: String = words.iter().map(|word| format!("{word}\n")).collect();
        prop_assert_eq!(sorted(text.as_bytes()), naively(text.as_bytes()));
    }
}

#[test]
fn words_in_order_and_against_it_are_sorted() {
    let lines: Vec<String> = (0..3000).map(|i| format!("{i:06}\n")).collect();
    let reversed: String = lines.iter().rev().map(String::as_str).collect();
    assert!(sorted(lines.concat().as_bytes()) == lines.concat().as_bytes());
    assert!(sorted(reversed.as_bytes()) == lines.concat().as_bytes());
}

/// As many comparisons as merging halves takes, and each record that is not in its place moves once, or twice to close
/// a cycle.
#[test]
fn pointers_are_merged_and_records_move_once() {
    let mut qsort = Qsort::new(&ProgramSpec::new(ProgramInput::Small, 1)).expect("memory");
    while !matches!(qsort.phase, QsortPhase::Sort) {
        qsort.next(&mut Unseen);
    }
    let before = qsort.records.to_vec();
    let mut block = lookaside_trace::Block::default();
    while !matches!(qsort.phase, QsortPhase::Permute(_)) {
        qsort.next(&mut block);
    }
    // Its own instructions, and those of the jump to the library's function.
    let compared = block.addr.iter().filter(|addr| **addr == COMPARE.entry()).count() / 2;
    // n log2 n - 1.25 n in the mean (Knuth, volume 3, section 5.2.4).
    assert!((119_000..=123_000).contains(&compared), "{compared}");
    assert!(before == *qsort.records, "records stay");
    let order: Vec<u32> = qsort.pointers.to_vec();
    while !matches!(qsort.phase, QsortPhase::Print(_)) {
        qsort.next(&mut Unseen);
    }
    let bytes = RECORD_BYTES as usize;
    for (record, from) in qsort.records.chunks_exact(bytes).zip(order) {
        assert!(*record == before[from as usize * bytes..][..bytes]);
    }
}
