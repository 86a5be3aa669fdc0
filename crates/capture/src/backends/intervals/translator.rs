//! Translates a program's code, block by block, into code that does the same and logs what it accesses.
//!
//! A block borrows two registers that its instructions don't use. Before each access, it computes the address into one
//! and stores that where the other points. Nothing that is added changes a flag. A block that ends with a direct jump
//! goes to the next one's translation itself; the targets of indirect jumps are looked up in a table. What is not
//! translated yet traps.

use std::collections::HashMap;
use std::ops::Range;

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, InstructionInfoFactory, MemoryOperand, Register};

use super::area::{CODE, CODE_BYTES, HASH_PLACES, KEYS, MORE_PLACES, PAGE, PLACES, SAVED, TARGET};
use super::block_maker::BlockMaker;
use super::block_plan::{BlockPlan, Exit};
use super::emitter::{link, Emitter, NotEncodable};
use super::instruction::{flow, register_of, registers, Flow};

/// Instructions of a block at most.
const MOST_INSTRUCTIONS: usize = 64;
/// The longest instruction.
const INSTRUCTION_BYTES: usize = 15;
/// Registers that can be borrowed: all but the stack pointer.
const BORROWED: u16 = !(1 << 4);
/// More than a block's translation takes.
const BLOCK_BYTES: u32 = 1 << 14;

/// Translated code and the table of its blocks, for an area at a certain address.
#[derive(Debug)]
pub(super) struct Translator {
    /// Of the area.
    base: u64,
    /// Behind [`CODE`].
    code: Vec<u8>,
    starts: HashMap<u64, u32>,
    exits: HashMap<u32, Exit>,
    /// Which register points into the log, by where a block begins.
    cursors: std::collections::BTreeMap<u32, Register>,
    /// Instructions and words of each block, by its number.
    sizes: Vec<(u32, u32)>,
    /// Addresses of each block's code, by its number.
    code_ranges: Vec<Range<u64>>,
    /// Plans of the last blocks, which nobody has asked for yet.
    new_plans: Vec<BlockPlan>,
    /// Of [`KEYS`], those in use, and of these the translations.
    table: HashMap<u32, (u64, u32)>,
    changed: Vec<(u32, u32)>,
    table_changed: Vec<u32>,
    /// Addresses of pages of code, and what they had when they were translated.
    pages: HashMap<u64, u32>,
    factory: InstructionInfoFactory,
}

/// A word of the table, by its place in the area.
pub(super) type TableWord = (u32, u64);

/// Reads the program's memory; gives how many bytes could be read.
pub(super) type ReadCode<'a> = dyn FnMut(u64, &mut [u8]) -> usize + 'a;

impl Translator {
    /// Nothing is translated yet. The area will be at `base`.
    pub(super) fn new(base: u64) -> Self {
        let mut translator = Self {
            base,
            code: Vec::new(),
            starts: HashMap::new(),
            exits: HashMap::new(),
            cursors: std::collections::BTreeMap::new(),
            sizes: Vec::new(),
            code_ranges: Vec::new(),
            new_plans: Vec::new(),
            table: HashMap::new(),
            changed: Vec::new(),
            table_changed: Vec::new(),
            pages: HashMap::new(),
            factory: InstructionInfoFactory::new(),
        };
        translator.begin();
        translator
    }

    /// The area's address.
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// Forgets what was translated. The plans stay.
    pub(super) fn forget(&mut self) {
        self.code.clear();
        self.starts.clear();
        self.exits.clear();
        self.cursors.clear();
        self.table.clear();
        self.changed.clear();
        self.table_changed.clear();
        self.pages.clear();
        self.begin();
    }

    /// What each block logs, from the first one on that this has not given yet. Their numbers go on.
    pub(super) fn take_plans(&mut self) -> Vec<BlockPlan> {
        std::mem::take(&mut self.new_plans)
    }

    /// Instructions of a block, and words that it logs behind its number.
    pub(super) fn size(&self, number: u64) -> Option<(u32, u32)> {
        self.sizes.get(usize::try_from(number).ok()?).copied()
    }

    /// Addresses of a block's code in the program.
    pub(super) fn code_range(&self, number: usize) -> Option<Range<u64>> {
        self.code_ranges.get(number).cloned()
    }

    /// All code.
    pub(super) fn code(&self) -> &[u8] {
        &self.code
    }

    /// The whole table: words in use, by their place in the area.
    pub(super) fn table_words(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.table.iter().flat_map(|(&entry, &(ip, place))| self.entry_words(entry, ip, place))
    }

    /// What has changed since this was called last: code by its place in the area, and words of the table.
    pub(super) fn take_changes(&mut self) -> (Vec<(u32, Vec<u8>)>, Vec<TableWord>) {
        let code = std::mem::take(&mut self.changed).into_iter();
        let code = code.map(|(from, to)| (CODE + from, self.code[from as usize..to as usize].to_vec())).collect();
        let entries = std::mem::take(&mut self.table_changed);
        let words = entries.iter().filter_map(|entry| self.table.get(entry).map(|&(ip, place)| (*entry, ip, place)));
        (code, words.flat_map(|(entry, ip, place)| self.entry_words(entry, ip, place)).collect())
    }

    fn entry_words(&self, entry: u32, ip: u64, place: u32) -> [(u32, u64); 2] {
        // The place before the key: what has a key has a place.
        [(PLACES + 8 * entry, self.address(place)), (KEYS + 8 * entry, ip.wrapping_neg())]
    }

    /// Address of translated code.
    pub(super) fn address(&self, place: u32) -> u64 {
        self.base + u64::from(CODE) + u64::from(place)
    }

    /// The place of translated code by its address.
    pub(super) fn place(&self, address: u64) -> Option<u32> {
        let place = address.checked_sub(self.base + u64::from(CODE))?;
        u32::try_from(place).ok().filter(|&place| (place as usize) < self.code.len())
    }

    /// Why the trap at `place` was taken.
    pub(super) fn exit(&self, place: u32) -> Option<Exit> {
        self.exits.get(&place).copied()
    }

    /// The register that points into the log in the block that has this place.
    pub(super) fn cursor(&self, place: u32) -> Option<Register> {
        self.cursors.range(..=place).next_back().map(|(_, &register)| register)
    }

    /// Pages of code that were translated, and a sum of what they had then.
    pub(super) fn pages(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.pages.iter().map(|(&page, &sum)| (page, sum))
    }

    /// Whether code that was translated lies there.
    pub(super) fn has_code_in(&self, range: Range<u64>) -> bool {
        self.pages.keys().any(|&page| page + PAGE > range.start && page < range.end)
    }

    /// No room for another block: [`Self::forget`] makes some.
    pub(super) fn is_full(&self) -> bool {
        self.code.len() as u32 + BLOCK_BYTES > CODE_BYTES
    }

    /// Where the translation of what is at `ip` begins, which is made where there is none; `None`: that can't be read.
    /// Call [`Self::is_full`] before.
    pub(super) fn translate(&mut self, ip: u64, read: &mut ReadCode) -> Option<u32> {
        if let Some(&start) = self.starts.get(&ip) {
            return Some(start);
        }
        let mut instructions = self.decode(ip, read)?;
        loop {
            let start = self.code.len() as u32;
            match self.emit(ip, &instructions) {
                Ok(plan) => {
                    self.sizes.push((plan.instructions, plan.words));
                    self.code_ranges.push(ip..instructions.last().map_or(ip, |(last, _)| last.next_ip()));
                    self.new_plans.push(plan);
                    self.starts.insert(ip, start);
                    self.changed.push((start, self.code.len() as u32));
                    return Some(start);
                }
                // What can't be moved from its place ends the block before it.
                Err(NotMovable { at }) => {
                    self.code.truncate(start as usize);
                    self.exits.retain(|&place, _| place < start);
                    self.cursors.remove(&start);
                    instructions.truncate(at);
                    if instructions.is_empty() {
                        self.refuse(ip);
                        return Some(start);
                    }
                }
            }
        }
    }

    /// The program goes from an indirect jump to this address, whose translation is at `place`.
    pub(super) fn know_target(&mut self, ip: u64, place: u32) {
        let first = hash(ip);
        let entry =
            (first..first + MORE_PLACES as u32).find(|entry| self.table.get(entry).is_none_or(|its| its.0 == ip));
        // Where there is none, each such jump traps.
        if let Some(entry) = entry.filter(|_| ip != 0) {
            self.table.insert(entry, (ip, place));
            self.table_changed.push(entry);
        }
    }

    /// A jump goes to this place from now on.
    pub(super) fn link(&mut self, site: u32, place: u32) {
        link(&mut self.code, site, place);
        self.changed.push((site, site + 4));
    }

    /// What comes before all blocks: the search in the table.
    fn begin(&mut self) {
        if self.dispatch().is_err() {
            self.code.clear();
        }
        self.changed.push((0, self.code.len() as u32));
    }

    /// Goes where [`TARGET`] says.
    fn dispatch(&mut self) -> Result<(), NotEncodable> {
        use Register::{EBX, RAX, RBX, RCX};
        let base = self.base + u64::from(CODE);
        let mut emitter = Emitter { code: &mut self.code, base };
        let saved = [(SAVED[0], RAX), (SAVED[1], RCX), (SAVED[2], RBX)];
        for (word, register) in saved {
            emitter.keep(word, register)?;
        }
        emitter.take(RAX, TARGET)?;
        emitter.number(RBX, 0)?;
        // The hash that `hash` computes; neither changes flags (crc32 and movzx don't).
        let made = |made: Result<Instruction, iced_x86::IcedError>| made.map_err(|_| NotEncodable);
        emitter.put(&made(Instruction::with2(Code::Crc32_r64_rm64, RBX, RAX))?)?;
        emitter.put(&made(Instruction::with2(Code::Movzx_r32_rm16, EBX, Register::BX))?)?;
        let search = emitter.code.len();
        emitter.take_at(RCX, KEYS, RBX)?;
        let key_sum = MemoryOperand::new(RCX, RAX, 1, 0, 0, false, Register::None);
        emitter.address(RCX, key_sum)?;
        let to_hit = jump_if_rcx_is_0(emitter.code);
        emitter.take_at(RCX, KEYS, RBX)?;
        let to_miss = jump_if_rcx_is_0(emitter.code);
        emitter.add(RBX, RBX, 1)?;
        let again = emitter.jump(None);
        link(emitter.code, again, search as u32);
        land(emitter.code, to_hit);
        emitter.take_at(RBX, PLACES, RBX)?;
        emitter.keep(TARGET, RBX)?;
        for (word, register) in saved {
            emitter.take(register, word)?;
        }
        emitter.jump_to_kept(TARGET)?;
        land(emitter.code, to_miss);
        for (word, register) in saved {
            emitter.take(register, word)?;
        }
        let trap = emitter.trap();
        self.exits.insert(trap, Exit::Indirect);
        Ok(())
    }

    /// The instructions from `ip` on that make a block.
    fn decode(&mut self, ip: u64, read: &mut ReadCode) -> Option<Vec<(Instruction, Vec<u8>)>> {
        let mut bytes = vec![0; MOST_INSTRUCTIONS * INSTRUCTION_BYTES];
        let len = read(ip, &mut bytes);
        bytes.truncate(len);
        if bytes.is_empty() {
            return None;
        }
        let mut decoder = Decoder::with_ip(64, &bytes, ip, DecoderOptions::NONE);
        let (mut block, mut used) = (Vec::new(), 0);
        while decoder.can_decode() && block.len() < MOST_INSTRUCTIONS {
            let from = decoder.position();
            let instruction = decoder.decode();
            used |= registers(&mut self.factory, &instruction);
            if (BORROWED & !used).count_ones() < 2 && !block.is_empty() {
                break;
            }
            let flow = flow(&instruction);
            if flow == Flow::Refused && !block.is_empty() {
                break; // a block of its own
            }
            block.push((instruction, bytes[from..decoder.position()].to_vec()));
            if flow != Flow::Next {
                break;
            }
        }
        let end = block.last().map_or(ip, |(last, _)| last.next_ip());
        for page in (ip / PAGE)..=((end - 1) / PAGE) {
            let page = page * PAGE;
            self.pages.entry(page).or_insert_with(|| {
                let mut whole = [0; PAGE as usize];
                let len = read(page, &mut whole);
                crc32fast::hash(&whole[..len])
            });
        }
        Some(block)
    }

    /// A trap for what can't be followed.
    fn refuse(&mut self, ip: u64) {
        let start = self.code.len() as u32;
        self.code.push(0xcc);
        self.exits.insert(start, Exit::Refused);
        self.starts.insert(ip, start);
        self.changed.push((start, start + 1));
    }

    fn emit(&mut self, ip: u64, block: &[(Instruction, Vec<u8>)]) -> Result<BlockPlan, NotMovable> {
        let used = block.iter().fold(0, |used, (one, _)| used | registers(&mut self.factory, one));
        let free: Vec<u32> = (0..16).filter(|register| BORROWED & !used & 1 << register != 0).collect();
        let &[cursor, scratch, ..] = &free[..] else { return Err(NotMovable { at: 0 }) };
        let [cursor, scratch] = [cursor, scratch].map(register_of);
        let start = self.code.len() as u32;
        let number = self.sizes.len() as i32;
        let base = self.base + u64::from(CODE);
        let mut maker = BlockMaker {
            emitter: Emitter { code: &mut self.code, base },
            factory: &mut self.factory,
            plan: BlockPlan::default(),
            exits: Vec::new(),
            cursor,
            scratch,
        };
        maker.begin(number).map_err(|_| NotMovable { at: 0 })?;
        let mut next = ip;
        for (at, (instruction, bytes)) in block.iter().enumerate() {
            let done = maker.instruction(instruction, bytes);
            done.map_err(|_| NotMovable { at })?;
            next = instruction.next_ip();
        }
        let last = block.len().saturating_sub(1);
        let flow = block.last().map_or(Flow::Refused, |(last, _)| flow(last));
        maker.end(flow, block.last(), next).map_err(|_| NotMovable { at: last })?;
        let BlockMaker { plan, exits, .. } = maker;
        for (place, exit) in exits {
            match exit {
                Exit::To { ip: target, site } if target == ip || self.starts.contains_key(&target) => {
                    let to = if target == ip { start } else { self.starts[&target] };
                    link(&mut self.code, site, to);
                    self.exits.insert(place, exit);
                }
                _ => drop(self.exits.insert(place, exit)),
            }
        }
        self.cursors.insert(start, cursor);
        Ok(plan)
    }
}

/// The instruction of this number can't be executed elsewhere.
struct NotMovable {
    at: usize,
}

/// Where an address is looked for first.
fn hash(ip: u64) -> u32 {
    crc32c(ip) & (HASH_PLACES as u32 - 1)
}

/// What the instruction `crc32` makes of eight bytes and 0 (Intel SDM 2A: polynomial 0x11EDC6F41, bits reflected).
fn crc32c(word: u64) -> u32 {
    let mut rest = word;
    for _ in 0..64 {
        rest = if rest & 1 == 1 { rest >> 1 ^ 0x82f6_3b78 } else { rest >> 1 };
    }
    rest as u32
}

/// `jrcxz`, which changes no flags; gives the place of its distance.
fn jump_if_rcx_is_0(code: &mut Vec<u8>) -> usize {
    code.extend([0xe3, 0]);
    code.len() - 1
}

/// The short jump goes here.
fn land(code: &mut [u8], site: usize) {
    code[site] = (code.len() - site - 1) as u8;
}
