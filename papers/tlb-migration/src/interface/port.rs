//! The hardware's half of the four interfaces: registers in front of a TLB.

use std::collections::VecDeque;

use super::entry::Entry;
use super::error::InterfaceError;
use super::layout::{join, split};
use super::packed::{pack, packed_pairs, unpack, Pair};
use super::version::{Version, AGES};

/// What to write to version 1's operation register to commit an entry (section 5.2).
pub const COMMIT: u32 = 0xffff_ffff;
/// A register of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Register {
    /// The TLB Data Read Operation Register: write-only.
    Operation,
    /// Data Register 0 to 2.
    Data(usize),
    /// Beyond the paper, versions 3 and 4: a stream has entries younger than this, 1 to [`AGES`]; at first all. Holds
    /// from the next stream on.
    Younger,
}

/// A TLB's entry and whether it was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The entry, valid.
    pub entry: Entry,
    /// Accessed since it was restored: the used bit of versions 3 and 4. An entry that a walk brought in is used.
    pub used: bool,
    /// Beyond the paper: whole periods since it was used, below [`AGES`]; 0 where the TLB does not count them.
    pub age: u8,
}

/// The TLB behind a port.
pub trait Slots {
    /// How many.
    fn slots(&self) -> u32;

    /// What is in one; none if it is not valid.
    fn slot(&self, index: u32) -> Option<Slot>;

    /// Takes an entry in where the TLB's replacement says, in place of one for the same page; not used yet.
    fn insert(&mut self, entry: Entry);
}

/// The registers of one core. Errors change nothing; a stream of version 4 that is refused at its end is dropped whole.
#[derive(Clone, Debug)]
pub struct Port {
    version: Version,
    /// As last written, or filled by the operation register.
    data: [u32; 3],
    /// Registers of the entry at hand that were written.
    written: [bool; 3],
    /// Versions 1 and 2: an entry was asked for.
    filled: bool,
    /// Versions 3 and 4: the stream's ASID. None in the others.
    asid: Option<u8>,
    /// What is left to stream out, or why it cannot be, which matters only to who reads; and which of its pair's
    /// registers is next.
    out: Result<VecDeque<Pair>, InterfaceError>,
    next_read: usize,
    /// Version 4: what came in.
    packed: Vec<Pair>,
    /// As [`Register::Younger`] was written.
    younger: u8,
}

impl Port {
    /// Registers that nothing was written to.
    pub fn new(version: Version) -> Self {
        Self {
            version,
            data: [0; 3],
            written: [false; 3],
            filled: false,
            asid: None,
            out: Ok(VecDeque::new()),
            next_read: 0,
            packed: Vec::new(),
            younger: AGES,
        }
    }

    /// Writes a register.
    ///
    /// # Errors
    /// There is no such register or index, it is not its turn, or what would be committed is no valid entry.
    pub fn write(&mut self, register: Register, value: u32, tlb: &mut impl Slots) -> Result<(), InterfaceError> {
        match (register, self.version) {
            (Register::Operation, Version::V1) if value == COMMIT => self.commit_v1(tlb),
            (Register::Operation, Version::V1 | Version::V2) => self.fill(value, tlb),
            (Register::Operation, Version::V3 | Version::V4) => self.start(value, tlb),
            (Register::Data(register), _) => self.write_data(register, value, tlb),
            (Register::Younger, _) => self.set_younger(value),
        }
    }

    /// Reads a register. The last data register of a stream's pair goes on to the next.
    ///
    /// # Errors
    /// There is no such register, it cannot be read, or it is not its turn; or an entry of the stream has no code.
    pub fn read(&mut self, register: Register) -> Result<u32, InterfaceError> {
        let register = match register {
            Register::Data(register) => register,
            Register::Operation => return Err(InterfaceError::WriteOnly),
            Register::Younger => return self.check_ages().map(|()| self.younger.into()),
        };
        self.check_register(register)?;
        match self.version {
            Version::V1 | Version::V2 if self.filled => Ok(self.data[register]),
            Version::V3 | Version::V4 if self.asid.is_some() => {
                self.check_order(register, self.next_read)?;
                let out = self.out.as_mut().map_err(|error| *error)?;
                // Behind the end there are zeros.
                let value = out.front().map_or(0, |pair| pair[register]);
                if register == 1 {
                    out.pop_front();
                }
                self.next_read = 1 - register;
                Ok(value)
            }
            _ => Err(self.not_started()),
        }
    }

    /// Version 1 and 2: the operation register takes an index, and fills the data registers.
    fn fill(&mut self, index: u32, tlb: &impl Slots) -> Result<(), InterfaceError> {
        if index >= tlb.slots() {
            return Err(InterfaceError::Index { index, entries: tlb.slots() });
        }
        let word = match (tlb.slot(index), self.version) {
            (None, _) => 0,
            (Some(slot), Version::V1) => slot.entry.encode_v1()?,
            (Some(slot), _) => slot.entry.encode_v2()?.into(),
        };
        (self.data, self.written, self.filled) = (split(word), [false; 3], true);
        Ok(())
    }

    /// Version 3 and 4: the operation register takes the ASID as it is now, which begins a stream in either direction.
    ///
    /// "All valid TLB entries matching this ASID": those that carry it, global or not, for the layout has a bit for
    /// global ones. Those not used since they were restored stay behind; the paper brings the used bit in between
    /// versions 3 and 4, so both have it.
    fn start(&mut self, value: u32, tlb: &impl Slots) -> Result<(), InterfaceError> {
        let asid = u8::try_from(value).map_err(|_| InterfaceError::Asid { value })?;
        let slots = (0..tlb.slots()).filter_map(|index| tlb.slot(index));
        let relevant = slots.filter(|slot| slot.used && slot.age < self.younger && slot.entry.asid == asid);
        let relevant = relevant.map(|slot| slot.entry);
        let out = match self.version {
            Version::V4 => pack(&relevant.collect::<Vec<_>>()).map(VecDeque::from),
            _ => relevant.map(|entry| Ok(split(entry.encode_v3()?.into()))).collect(),
        };
        *self = Self { asid: Some(asid), out, younger: self.younger, ..Self::new(self.version) };
        Ok(())
    }

    fn set_younger(&mut self, value: u32) -> Result<(), InterfaceError> {
        self.check_ages()?;
        let younger = u8::try_from(value).ok().filter(|younger| (1..=AGES).contains(younger));
        self.younger = younger.ok_or(InterfaceError::Age { value })?;
        Ok(())
    }

    fn write_data(&mut self, register: usize, value: u32, tlb: &mut impl Slots) -> Result<(), InterfaceError> {
        self.check_register(register)?;
        let streams = matches!(self.version, Version::V3 | Version::V4);
        if streams && self.asid.is_none() {
            return Err(self.not_started());
        }
        let ordered = self.version != Version::V1;
        if ordered {
            self.check_order(register, usize::from(self.written[0]))?;
        }
        if ordered && register == 1 {
            self.take_pair([self.data[0], value], tlb)?;
            self.written = [false; 3];
        } else {
            self.written[register] = true;
        }
        self.data[register] = value;
        Ok(())
    }

    /// Version 2 to 4: the last register was written.
    fn take_pair(&mut self, pair: Pair, tlb: &mut impl Slots) -> Result<(), InterfaceError> {
        let word = join(pair) as u64;
        let entry = match (self.version, self.asid) {
            (Version::V4, Some(asid)) => return self.take_packed(pair, asid, tlb),
            (_, Some(asid)) => Entry::decode_v3(word, asid)?,
            (_, None) => Entry::decode_v2(word)?,
        };
        tlb.insert(entry.ok_or(self.invalid())?);
        Ok(())
    }

    /// Version 1: all three registers are an entry, in whatever order they were written.
    fn commit_v1(&mut self, tlb: &mut impl Slots) -> Result<(), InterfaceError> {
        if let Some(register) = self.written.iter().position(|written| !written) {
            return Err(InterfaceError::Unwritten { version: self.version, register });
        }
        tlb.insert(Entry::decode_v1(join(self.data))?.ok_or(self.invalid())?);
        self.written = [false; 3];
        Ok(())
    }

    /// Version 4: a pair is kept until the zeroed one, "to signal the hardware when to start unpacking the stream".
    fn take_packed(&mut self, pair: Pair, asid: u8, tlb: &mut impl Slots) -> Result<(), InterfaceError> {
        let entries = tlb.slots();
        let too_many = InterfaceError::TooMany { entries };
        if pair != [0, 0] {
            if self.packed.len() == packed_pairs(entries as usize) {
                return Err(too_many);
            }
            self.packed.push(pair);
            return Ok(());
        }
        let unpacked = match unpack(&std::mem::take(&mut self.packed), asid) {
            Ok(unpacked) if unpacked.len() > entries as usize => Err(too_many),
            unpacked => unpacked,
        };
        if unpacked.is_err() {
            self.written = [false; 3];
        }
        unpacked?.into_iter().for_each(|entry| tlb.insert(entry));
        Ok(())
    }

    /// Only a stream is chosen by hardware.
    fn check_ages(&self) -> Result<(), InterfaceError> {
        match self.version {
            Version::V1 | Version::V2 => Err(InterfaceError::NoAges { version: self.version }),
            Version::V3 | Version::V4 => Ok(()),
        }
    }

    fn check_register(&self, register: usize) -> Result<(), InterfaceError> {
        if register < self.version.registers() {
            Ok(())
        } else {
            Err(InterfaceError::NoRegister { version: self.version, register })
        }
    }

    fn check_order(&self, register: usize, expected: usize) -> Result<(), InterfaceError> {
        if register == expected {
            Ok(())
        } else {
            Err(InterfaceError::Order { version: self.version, register, expected })
        }
    }

    fn not_started(&self) -> InterfaceError {
        InterfaceError::NotStarted { version: self.version, wanted: self.version.wanted() }
    }

    fn invalid(&self) -> InterfaceError {
        InterfaceError::Invalid { version: self.version }
    }
}
