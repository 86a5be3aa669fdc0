//! What is written for other tools, to the byte.

use std::io::{self, Write};

use crate::import::try_open;
use lookaside_trace::{write_champsim, write_text, ChampSimLosses, Format};

/// ChampSim's records of a text, as words.
fn records(text: &str) -> (Vec<[u64; 8]>, ChampSimLosses) {
    let mut out = Vec::new();
    let losses = write_champsim(&mut *try_open(text.as_bytes(), Some(Format::Text)).unwrap(), &mut out).unwrap();
    let word = |record: &[u8], i: usize| u64::from_le_bytes(record[8 * i..][..8].try_into().unwrap());
    (out.chunks(64).map(|record| std::array::from_fn(|i| word(record, i))).collect(), losses)
}

/// Words 2 and 3 are for stores, 4 to 7 for the loads before them.
#[test]
fn accesses_of_an_instruction_share_a_record_while_there_is_room() {
    // The fetch of an instruction says its address itself.
    let mut text = "I 0x400 4\n".to_string();
    for access in ["R 1", "R 2", "R 3", "R 4", "R 5", "W 6", "W 7", "W 8", "R 9"] {
        text += &format!("{access} 8 ip=0x400\n");
    }
    text += "R 10 8 ip=0x404\nI 0x404\nR 11 8 ip=0x404\n";
    let (got, losses) = records(&text);
    let expected = [
        [0x400, 0, 0, 0, 1, 2, 3, 4],
        [0x400, 0, 6, 7, 5, 0, 0, 0],
        [0x400, 0, 8, 0, 0, 0, 0, 0],
        [0x400, 0, 0, 0, 9, 0, 0, 0],
        [0x404, 0, 0, 0, 10, 0, 0, 0],
        [0x404, 0, 0, 0, 11, 0, 0, 0],
    ];
    assert_eq!(got, expected);
    assert_eq!(losses, ChampSimLosses { records: 6, accesses: 13, ..ChampSimLosses::default() });
}

#[test]
fn any_loss_is_a_loss() {
    assert!(ChampSimLosses { records: 1, accesses: 1, ..ChampSimLosses::default() }.is_none());
    for text in ["R 1\nE {\"free\":{\"addr\":64}}\n", "R 1\nR 0\n", "P 1 1\nR 1\nP 1 2\nR 1\n"] {
        let (_, losses) = records(text);
        assert!(!losses.is_none(), "{text}: {losses:?}");
        assert_eq!(losses.events + losses.zero_addresses + losses.thread_changes, 1, "{text}");
    }
}

/// Knows whether it was flushed after the last byte.
#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    flushed: bool,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flushed = false;
        self.bytes.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flushed = true;
        Ok(())
    }
}

#[test]
fn the_head_of_a_text_has_the_events_before_its_last_access() {
    let lines =
        ["P 3 4", "R 0x10 8", "E {\"free\":{\"addr\":1}}", "W 0x20 ip=0x5", "E {\"free\":{\"addr\":2}}", "I 0x30 x=7"];
    let text = lines.join("\n") + "\n";
    for (limit, shown) in [(Some(0), 0), (Some(1), 2), (Some(2), 4), (Some(3), 6), (Some(4), 6), (None, 6)] {
        let mut out = Output::default();
        write_text(&mut *try_open(text.as_bytes(), Some(Format::Text)).unwrap(), limit, &mut out).unwrap();
        let written = String::from_utf8(out.bytes).unwrap();
        assert!(written.starts_with("T {") && out.flushed);
        assert_eq!(written.lines().skip(1).collect::<Vec<_>>(), lines[..shown], "{limit:?}");
    }
}
