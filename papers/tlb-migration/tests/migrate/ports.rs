//! Registers in front of a TLB: saved on one core and restored on another, by each version, and out of turn.

use lookaside_tlb_migration::*;
use proptest::prelude::*;

use crate::naive::{entries, page};

const OP: Register = Register::Operation;

/// Fully associative, least recently used out first: the front of a list.
#[derive(Clone, Debug, Default, PartialEq)]
struct List {
    slots: u32,
    held: Vec<Slot>,
}

impl List {
    fn of(slots: u32, entries: &[Entry]) -> Self {
        Self { slots, held: entries.iter().map(|entry| Slot { entry: *entry, used: true, age: 0 }).collect() }
    }

    fn entries(&self) -> Vec<Entry> {
        self.held.iter().map(|slot| slot.entry).collect()
    }
}

impl Slots for List {
    fn slots(&self) -> u32 {
        self.slots
    }

    fn slot(&self, index: u32) -> Option<Slot> {
        self.held.get(index as usize).copied()
    }

    fn insert(&mut self, entry: Entry) {
        self.held.retain(|slot| (slot.entry.asid, slot.entry.v_page) != (entry.asid, entry.v_page));
        if self.held.len() == self.slots as usize {
            self.held.remove(0);
        }
        self.held.push(Slot { entry, used: false, age: 0 });
    }
}

fn data(register: usize) -> Register {
    Register::Data(register)
}

/// What software stores: the registers of entries of this ASID, as it would read them.
fn save(version: Version, tlb: &mut List, asid: u8) -> Result<Vec<Vec<u32>>, InterfaceError> {
    let mut port = Port::new(version);
    let mut stored = Vec::new();
    let read = |port: &mut Port| (0..version.registers()).map(|n| port.read(data(n))).collect::<Result<Vec<u32>, _>>();
    if matches!(version, Version::V1 | Version::V2) {
        for index in 0..tlb.slots {
            port.write(OP, index, tlb)?;
            let registers = read(&mut port)?;
            // ASID and valid bit are the low nine bits in both.
            if registers[0] & 0x1ff == 0x100 | u32::from(asid) {
                stored.push(registers);
            }
        }
    } else {
        port.write(OP, asid.into(), tlb)?;
        loop {
            let registers = read(&mut port)?;
            if registers == [0, 0] {
                break;
            }
            stored.push(registers);
        }
    }
    Ok(stored)
}

/// Writes them back, for the ASID that the process has now.
fn restore(version: Version, tlb: &mut List, asid: u8, stored: &[Vec<u32>]) -> Result<(), InterfaceError> {
    let mut port = Port::new(version);
    let streams = matches!(version, Version::V3 | Version::V4);
    if streams {
        port.write(OP, asid.into(), tlb)?;
    }
    let end = [vec![0, 0]];
    for registers in stored.iter().chain(if version == Version::V4 { end.iter() } else { [].iter() }) {
        for (n, value) in registers.iter().enumerate() {
            // The ASID may have rolled over: without streams it is up to software (section 5.2).
            let value = if n == 0 && !streams { value & !0xff | u32::from(asid) } else { *value };
            port.write(data(n), value, tlb)?;
        }
        if version == Version::V1 {
            port.write(OP, COMMIT, tlb)?;
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn entries_of_an_asid_move(held in proptest::collection::vec((entries(true), any::<bool>()), 0..64), asid: u8, new: u8) {
        let mut from = List { slots: 64, held: Vec::new() };
        for (entry, same) in held {
            from.insert(Entry { asid: if same { asid } else { entry.asid }, ..entry });
        }
        from.held.iter_mut().for_each(|slot| slot.used = true);
        let expected: Vec<Slot> = (from.held.iter().filter(|slot| slot.entry.asid == asid))
            .map(|slot| Slot { entry: Entry { asid: new, ..slot.entry }, used: false, age: 0 })
            .collect();
        for version in [Version::V1, Version::V2, Version::V3, Version::V4] {
            let mut to = List { slots: 64, held: Vec::new() };
            let stored = match save(version, &mut from, asid) {
                Err(InterfaceError::ZeroPair { .. }) if version == Version::V4 => continue,
                stored => stored.unwrap(),
            };
            restore(version, &mut to, new, &stored).unwrap();
            prop_assert_eq!(&to.held, &expected, "{}", version);
            // Restored and not used since: versions 3 and 4 leave them behind.
            let again = save(version, &mut to, new).unwrap().len();
            let stays = matches!(version, Version::V3 | Version::V4);
            prop_assert_eq!(again, if stays { 0 } else { stored.len() });
        }
    }
}

#[test]
fn a_full_tlb_moves() {
    let pages: Vec<Entry> = (0..64).map(|n| page(3, 0x1000 + n)).collect();
    for (version, words) in [(Version::V1, 192), (Version::V2, 128), (Version::V3, 128), (Version::V4, 112)] {
        let stored = save(version, &mut List::of(64, &pages), 3).unwrap();
        assert_eq!(stored.iter().map(Vec::len).sum::<usize>(), words);
        let mut to = List { slots: 64, held: Vec::new() };
        restore(version, &mut to, 3, &stored).unwrap();
        assert_eq!(to.entries(), pages);
    }
}

#[test]
fn version_1_commits_by_the_constant() {
    let mut tlb = List { slots: 4, held: Vec::new() };
    let mut port = Port::new(Version::V1);
    let word = page(1, 7).encode_v1().unwrap();
    let registers: [u32; 3] = layout::split(word);
    for n in [2, 0] {
        port.write(data(n), registers[n], &mut tlb).unwrap();
    }
    let error = port.write(OP, COMMIT, &mut tlb).unwrap_err();
    assert_eq!(error.to_string(), "V1: entry committed before Data Register 1 was written");
    port.write(data(1), registers[1], &mut tlb).unwrap();
    assert!(tlb.held.is_empty());
    port.write(OP, COMMIT, &mut tlb).unwrap();
    assert_eq!(tlb.entries(), [page(1, 7)]);
    // Each entry anew; and an index that is neither the constant nor in the TLB.
    assert!(port.write(OP, COMMIT, &mut tlb).is_err());
    let error = port.write(OP, 4, &mut tlb).unwrap_err();
    assert_eq!(error.to_string(), "TLB index 0x4: there are 4 entries");
    // An empty entry reads as zeros, which are no entry to write.
    port.write(OP, 3, &mut tlb).unwrap();
    assert_eq!([0, 1, 2].map(|n| port.read(data(n)).unwrap()), [0; 3]);
    (0..3).for_each(|n| port.write(data(n), 0, &mut tlb).unwrap());
    assert_eq!(port.write(OP, COMMIT, &mut tlb).unwrap_err().to_string(), "V1: the entry written is not valid");
}

#[test]
fn version_2_commits_by_the_last_register() {
    let mut tlb = List { slots: 4, held: Vec::new() };
    let mut port = Port::new(Version::V2);
    let [low, high]: [u32; 2] = layout::split(page(1, 7).encode_v2().unwrap().into());
    let error = port.write(data(1), high, &mut tlb).unwrap_err();
    assert_eq!(error.to_string(), "V2: Data Register 1 accessed where Data Register 0 is next");
    port.write(data(0), low, &mut tlb).unwrap();
    assert!(matches!(port.write(data(0), low, &mut tlb), Err(InterfaceError::Order { expected: 1, .. })));
    assert!(tlb.held.is_empty());
    port.write(data(1), high, &mut tlb).unwrap();
    assert_eq!(tlb.entries(), [page(1, 7)]);
    let error = port.write(data(2), 0, &mut tlb).unwrap_err();
    assert_eq!(error.to_string(), "V2 has no Data Register 2");
    assert_eq!(port.write(OP, COMMIT, &mut tlb), Err(InterfaceError::Index { index: COMMIT, entries: 4 }));
}

#[test]
fn streams_begin_with_an_asid_and_go_in_order() {
    for version in [Version::V3, Version::V4] {
        let mut tlb = List::of(4, &[page(1, 7), page(2, 8)]);
        let mut port = Port::new(version);
        let words = format!("{version}: data accessed before an ASID was written to the operation register");
        assert_eq!(port.read(data(0)).unwrap_err().to_string(), words);
        assert_eq!(port.write(data(0), 1, &mut tlb).unwrap_err().to_string(), words);
        let error = port.write(OP, 256, &mut tlb).unwrap_err();
        assert_eq!(error.to_string(), "ASID 0x100 written to the operation register: it has 8 bits");
        port.write(OP, 1, &mut tlb).unwrap();
        assert_eq!(port.read(OP).unwrap_err().to_string(), "the operation register is write-only");
        assert!(matches!(port.read(data(1)), Err(InterfaceError::Order { register: 1, expected: 0, .. })));
        let word = u64::from(port.read(data(0)).unwrap()) | u64::from(port.read(data(1)).unwrap()) << 32;
        assert_eq!(Entry::decode_v3(word, 1), Ok(Some(page(1, 7))), "one entry, and a zero byte behind it");
        for _ in 0..3 {
            assert_eq!([port.read(data(0)), port.read(data(1))], [Ok(0), Ok(0)]);
        }
        assert!(matches!(port.write(data(1), 0, &mut tlb), Err(InterfaceError::Order { .. })));
    }
    let mut port = Port::new(Version::V1);
    assert!(matches!(port.read(data(0)), Err(InterfaceError::NotStarted { wanted: "index", .. })));
}

#[test]
fn version_3_takes_no_end_and_version_4_waits_for_it() {
    let mut tlb = List { slots: 7, held: Vec::new() };
    let mut port = Port::new(Version::V3);
    port.write(OP, 1, &mut tlb).unwrap();
    port.write(data(0), 0, &mut tlb).unwrap();
    assert_eq!(port.write(data(1), 0, &mut tlb), Err(InterfaceError::Invalid { version: Version::V3 }));

    let mut port = Port::new(Version::V4);
    port.write(OP, 1, &mut tlb).unwrap();
    let mut put = |tlb: &mut List, pair: Pair| port.write(data(0), pair[0], tlb).and(port.write(data(1), pair[1], tlb));
    let pairs = pack(&[page(9, 5), page(9, 6)]).unwrap();
    pairs[..2].iter().for_each(|pair| put(&mut tlb, *pair).unwrap());
    assert!(tlb.held.is_empty());
    put(&mut tlb, [0, 0]).unwrap();
    assert_eq!(tlb.entries(), [page(1, 5), page(1, 6)], "of the stream's ASID");
    // Refused at its end, a stream is dropped whole, and the next can come.
    put(&mut tlb, [u32::MAX, u32::MAX]).unwrap();
    assert!(put(&mut tlb, [0, 0]).is_err());
    put(&mut tlb, pairs[0]).unwrap();
    assert!(put(&mut tlb, [0, 0]).is_err(), "half of the second entry is missing");
    // Eight entries fill seven pairs as seven do.
    let eight: Vec<Entry> = (0..8).map(|n| page(1, n)).collect();
    let pairs = pack(&eight).unwrap();
    pairs[..7].iter().for_each(|pair| put(&mut tlb, *pair).unwrap());
    let error = put(&mut tlb, [0, 0]).unwrap_err();
    assert_eq!(error.to_string(), "V4: stream of more than 7 entries, as many as the TLB has");
    assert_eq!(tlb.held.len(), 2);
    for _ in 0..7 {
        put(&mut tlb, pairs[0]).unwrap();
    }
    assert_eq!(put(&mut tlb, pairs[0]), Err(InterfaceError::TooMany { entries: 7 }));
}

#[test]
fn what_cannot_be_streamed_out_does_not_keep_a_stream_from_coming_in() {
    let large = Entry { page: ArmPageSize::Large, v_page: 0x10, p_page: 0x10, ..page(1, 0) };
    for version in [Version::V3, Version::V4] {
        let mut tlb = List::of(4, &[large]);
        let mut port = Port::new(version);
        port.write(OP, 1, &mut tlb).unwrap();
        assert_eq!(port.read(data(0)), Err(InterfaceError::PageSize { layout: "V3", shift: 16 }));
        let pairs = pack(&[page(1, 5)]).unwrap();
        for pair in pairs.iter().take(if version == Version::V4 { 2 } else { 1 }) {
            port.write(data(0), pair[0], &mut tlb).and(port.write(data(1), pair[1], &mut tlb)).unwrap();
        }
        assert_eq!(tlb.entries(), [large, page(1, 5)]);
    }
}

/// Beyond the paper: a stream of entries that were used lately.
#[test]
fn a_stream_leaves_out_what_is_too_old() {
    for version in [Version::V3, Version::V4] {
        let mut tlb = List::of(8, &(0..8).map(|n| page(1, 10 + n)).collect::<Vec<_>>());
        (0..AGES).zip(&mut tlb.held).for_each(|(age, slot)| slot.age = age);
        let mut port = Port::new(version);
        assert_eq!(port.read(Register::Younger), Ok(AGES.into()), "all");
        for younger in 1..=u32::from(AGES) {
            port.write(Register::Younger, younger, &mut tlb).unwrap();
            assert_eq!(port.read(Register::Younger), Ok(younger));
            for stream in 0..2 {
                port.write(OP, 1, &mut tlb).unwrap();
                let mut pairs: Vec<Pair> = Vec::new();
                while pairs.last() != Some(&[0, 0]) {
                    pairs.push([port.read(data(0)).unwrap(), port.read(data(1)).unwrap()]);
                }
                pairs.pop();
                let entries = match version {
                    Version::V4 => unpack(&pairs, 1).unwrap(),
                    _ => pairs
                        .iter()
                        .map(|pair| Entry::decode_v3(layout::join(*pair) as u64, 1).unwrap().unwrap())
                        .collect(),
                };
                let pages: Vec<u32> = entries.iter().map(|entry| entry.v_page).collect();
                assert_eq!(pages, (10..10 + younger).collect::<Vec<_>>(), "{version}, stream {stream}");
            }
        }
        for value in [0, 9, 256 + 3] {
            let error = port.write(Register::Younger, value, &mut tlb).unwrap_err();
            let words = format!("entries younger than {value}: 1 to 8 can be asked for, the last of which is all");
            assert_eq!(error.to_string(), words);
        }
        assert_eq!(port.read(Register::Younger), Ok(8), "as before");
    }
    for version in [Version::V1, Version::V2] {
        let mut port = Port::new(version);
        let words = format!("{version} does not choose entries by age: V3 and V4 do");
        assert_eq!(port.write(Register::Younger, 1, &mut List::default()).unwrap_err().to_string(), words);
        assert_eq!(port.read(Register::Younger).unwrap_err().to_string(), words);
    }
}
