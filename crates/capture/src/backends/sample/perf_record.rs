//! The records that perf events write into their ring buffers, read from bytes.

/// Registers of a 64-bit user program when it was interrupted, by the machine's own numbers:
/// RAX RCX RDX RBX RSP RBP RSI RDI R8 … R15.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// The values.
    pub general: [u64; 16],
}

/// Where the kernel puts AX BX CX DX SI DI BP SP in [`Registers::general`].
const MACHINE_NUMBER: [usize; 8] = [0, 3, 1, 2, 6, 7, 5, 4];

/// A clock sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockSample {
    /// Process.
    pub process: u32,
    /// Thread.
    pub thread: u32,
    /// The next instruction to be executed.
    pub ip: u64,
    /// `None` for a 32-bit program, or where the kernel had none.
    pub registers: Option<Registers>,
}

/// A record of a kind that we use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PerfRecord {
    /// A clock sample.
    Sample(ClockSample),
    /// A mapping was made or changed.
    Map {
        /// Process.
        process: u32,
        /// Thread that made it.
        thread: u32,
        /// First byte.
        addr: u64,
        /// Bytes.
        len: u64,
        /// Offset in the file.
        offset: u64,
        /// As in mmap.
        prot: u8,
        /// File, or the kernel's name.
        name: String,
    },
    /// The process replaced itself.
    Exec {
        /// Process.
        process: u32,
        /// Its new short name.
        name: String,
    },
    /// A process or thread began.
    Fork {
        /// Process.
        process: u32,
        /// Its thread.
        thread: u32,
        /// The process that forked.
        parent: u32,
        /// The thread that forked.
        parent_thread: u32,
    },
    /// A thread ended.
    Exit {
        /// Process.
        process: u32,
        /// Thread.
        thread: u32,
    },
    /// Records were lost because nobody emptied the ring in time.
    Lost {
        /// How many.
        count: u64,
    },
}

const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const LOST_SAMPLES: u32 = 13;
const MISC_COMM_EXEC: u16 = 1 << 13;
const REGISTERS_64_BIT: u64 = 2;

/// Reads one record with its header: its time (ns) and content; `None` for kinds that we don't use and for nonsense.
pub fn parse(bytes: &[u8]) -> Option<(u64, PerfRecord)> {
    let mut body = RecordBody(bytes);
    let kind = body.u32()?;
    let misc = (body.u32()? & 0xffff) as u16;
    if kind == SAMPLE {
        return sample(body);
    }
    // Thread and time close every other record (`sample_id_all`).
    let (rest, trailer) = body.0.split_at_checked(body.0.len().checked_sub(16)?)?;
    let time = RecordBody(trailer.get(8..)?).u64()?;
    let mut body = RecordBody(rest);
    let record = match kind {
        MMAP2 => {
            let (process, thread) = (body.u32()?, body.u32()?);
            let (addr, len, offset) = (body.u64()?, body.u64()?, body.u64()?);
            let (_device, _inode, _generation) = (body.u64()?, body.u64()?, body.u64()?);
            let (prot, _flags) = (body.u32()?, body.u32()?);
            PerfRecord::Map { process, thread, addr, len, offset, prot: (prot & 7) as u8, name: body.text() }
        }
        COMM if misc & MISC_COMM_EXEC != 0 => {
            let (process, _thread) = (body.u32()?, body.u32()?);
            PerfRecord::Exec { process, name: body.text() }
        }
        FORK | EXIT => {
            let (process, parent, thread, parent_thread) = (body.u32()?, body.u32()?, body.u32()?, body.u32()?);
            match kind {
                FORK => PerfRecord::Fork { process, thread, parent, parent_thread },
                _ => PerfRecord::Exit { process, thread },
            }
        }
        LOST => {
            body.u64()?;
            PerfRecord::Lost { count: body.u64()? }
        }
        LOST_SAMPLES => PerfRecord::Lost { count: body.u64()? },
        _ => return None,
    };
    Some((time, record))
}

fn sample(mut body: RecordBody<'_>) -> Option<(u64, PerfRecord)> {
    let ip = body.u64()?;
    let (process, thread) = (body.u32()?, body.u32()?);
    let time = body.u64()?;
    let _period = body.u64()?;
    let registers = if body.u64()? == REGISTERS_64_BIT { Some(registers(&mut body)?) } else { None };
    Some((time, PerfRecord::Sample(ClockSample { process, thread, ip, registers })))
}

fn registers(body: &mut RecordBody<'_>) -> Option<Registers> {
    let mut registers = Registers::default();
    for number in MACHINE_NUMBER {
        registers.general[number] = body.u64()?;
    }
    for number in 8..16 {
        registers.general[number] = body.u64()?;
    }
    Some(registers)
}

/// Fields one after the other, in the machine's byte order.
struct RecordBody<'a>(&'a [u8]);

impl RecordBody<'_> {
    fn u32(&mut self) -> Option<u32> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*head))
    }

    fn u64(&mut self) -> Option<u64> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*head))
    }

    /// Text up to its closing zero.
    fn text(&self) -> String {
        let text = self.0.split(|&byte| byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }
}

#[cfg(test)]
pub mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A record with its header, as the kernel writes it; samples have their time among the fields.
    pub fn record(kind: u32, misc: u16, fields: &[u64], text: &str, time: Option<u64>) -> Vec<u8> {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend(misc.to_le_bytes());
        bytes.extend([0, 0]);
        fields.iter().for_each(|field| bytes.extend(field.to_le_bytes()));
        bytes.extend(text.as_bytes());
        bytes.extend(vec![
            0;
            text.len().next_multiple_of(8) - text.len()
                + if text.len().is_multiple_of(8) { 8 } else { 0 }
        ]);
        if text.is_empty() {
            bytes.truncate(bytes.len() - 8);
        }
        if let Some(time) = time {
            bytes.extend(0u64.to_le_bytes());
            bytes.extend(time.to_le_bytes());
        }
        let len = bytes.len() as u16;
        bytes[6..8].copy_from_slice(&len.to_le_bytes());
        bytes
    }

    /// Two fields of 32 bits as one of 64.
    pub fn pair(low: u64, high: u64) -> u64 {
        low | high << 32
    }

    /// A sample of code whose registers are not known.
    pub fn sample_at(time: u64, process: u32, thread: u32, ip: u64) -> Vec<u8> {
        let fields = [ip, pair(process.into(), thread.into()), time, 500_000, 0];
        record(SAMPLE, 0, &fields, "", None)
    }

    pub fn exec_at(time: u64, process: u32, name: &str) -> Vec<u8> {
        record(COMM, MISC_COMM_EXEC, &[pair(process.into(), process.into())], name, Some(time))
    }

    pub fn lost_at(time: u64, count: u64) -> Vec<u8> {
        record(LOST, 0, &[1, count], "", Some(time))
    }

    #[test]
    fn reads_each_kind() {
        let map = record(MMAP2, 0, &[pair(7, 8), 0x1000, 0x2000, 0x300, 0, 0, 0, pair(5, 2)], "/bin/x", Some(99));
        let expected = PerfRecord::Map {
            process: 7,
            thread: 8,
            addr: 0x1000,
            len: 0x2000,
            offset: 0x300,
            prot: 5,
            name: "/bin/x".into(),
        };
        assert_eq!(parse(&map), Some((99, expected)));
        let exec = record(COMM, MISC_COMM_EXEC, &[pair(7, 8)], "x", Some(5));
        assert_eq!(parse(&exec), Some((5, PerfRecord::Exec { process: 7, name: "x".into() })));
        assert_eq!(parse(&record(COMM, 0, &[pair(7, 8)], "x", Some(5))), None);
        let fork = record(FORK, 0, &[pair(7, 6), pair(8, 5), 1], "", Some(3));
        let expected = PerfRecord::Fork { process: 7, thread: 8, parent: 6, parent_thread: 5 };
        assert_eq!(parse(&fork), Some((3, expected)));
        let lost = record(LOST, 0, &[1, 42], "", Some(3));
        assert_eq!(parse(&lost), Some((3, PerfRecord::Lost { count: 42 })));
        let lost = record(LOST_SAMPLES, 0, &[43], "", Some(4));
        assert_eq!(parse(&lost), Some((4, PerfRecord::Lost { count: 43 })));
        let exit = record(EXIT, 0, &[pair(7, 6), pair(8, 5), 1], "", Some(3));
        assert_eq!(parse(&exit), Some((3, PerfRecord::Exit { process: 7, thread: 8 })));
    }

    #[test]
    fn a_sample_of_32_bit_code_has_no_registers() {
        for abi in [0, 1] {
            let mut fields = vec![0x401000, pair(7, 8), 77, 500_000, abi];
            fields.extend([9; 16]);
            let sample = ClockSample { process: 7, thread: 8, ip: 0x401000, registers: None };
            assert_eq!(parse(&record(SAMPLE, 0, &fields, "", None)), Some((77, PerfRecord::Sample(sample))), "{abi}");
        }
    }

    #[test]
    fn registers_come_in_machine_order() {
        // AX BX CX DX SI DI BP SP R8…R15
        let kernel: Vec<u64> = (100..116).collect();
        let mut fields = vec![0x401000, pair(7, 8), 77, 500_000, REGISTERS_64_BIT];
        fields.extend(kernel);
        let (time, parsed) = parse(&record(SAMPLE, 0, &fields, "", None)).unwrap();
        let PerfRecord::Sample(sample) = parsed else { panic!("{parsed:?}") };
        let registers = sample.registers.unwrap();
        assert_eq!((time, sample.ip, sample.process, sample.thread), (77, 0x401000, 7, 8));
        // RAX RCX RDX RBX RSP RBP RSI RDI, R8…
        assert_eq!(registers.general[..9], [100, 102, 103, 101, 107, 106, 104, 105, 108]);
        assert_eq!(registers.general[15], 115);
    }

    proptest! {
        #[test]
        fn nonsense_is_no_record(kind in 0u32..16, misc: u16, body in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = kind.to_le_bytes().to_vec();
            bytes.extend(misc.to_le_bytes());
            bytes.extend([0, 0]);
            bytes.extend(body);
            parse(&bytes);
            parse(&bytes[..bytes.len().min(7)]);
        }
    }
}
