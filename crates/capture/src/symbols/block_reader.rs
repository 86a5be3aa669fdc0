//! A file that is read in blocks: names of symbols are asked for one by one, hundreds of bytes each time.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

/// Names of some thousand functions.
const BLOCK_BYTES: u64 = 64 << 10;

/// Reads a file from wherever it is asked to, and remembers the last block. Nothing else moves the file's own position.
#[derive(Debug)]
pub(super) struct BlockReader<'a> {
    file: &'a File,
    position: u64,
    /// What the file has from `start` on.
    block: Vec<u8>,
    start: u64,
}

impl<'a> BlockReader<'a> {
    pub(super) fn new(file: &'a File) -> Self {
        Self { file, position: 0, block: Vec::new(), start: 0 }
    }

    /// What the block has from the position on.
    fn rest(&self) -> &[u8] {
        let within = self.position.checked_sub(self.start).and_then(|within| usize::try_from(within).ok());
        within.and_then(|within| self.block.get(within..)).unwrap_or_default()
    }
}

impl Read for BlockReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = if into.len() as u64 >= BLOCK_BYTES {
            self.file.read_at(into, self.position)?
        } else {
            if self.rest().is_empty() {
                self.start = self.position / BLOCK_BYTES * BLOCK_BYTES;
                self.block.resize(BLOCK_BYTES as usize, 0);
                let read = self.file.read_at(&mut self.block, self.start);
                self.block.truncate(*read.as_ref().unwrap_or(&0));
                read?;
            }
            self.rest().read(into)?
        };
        self.position += n as u64;
        Ok(n)
    }
}

impl Seek for BlockReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Held to the file itself: the same bytes from every position, whatever was read before.
        #[test]
        fn reads_what_the_file_does(
            len in 0usize..200_000,
            reads in prop::collection::vec((0u64..210_000, 0usize..70_000, 0usize..3), 1..20),
        ) {
            let mut file = tempfile::tempfile().expect("a file");
            let bytes: Vec<u8> = (0..len).map(|i| (i * 31 % 251) as u8).collect();
            file.write_all(&bytes).expect("written");
            let mut reader = BlockReader::new(&file);
            for (position, wanted, how) in reads {
                let to = match how {
                    0 => SeekFrom::Start(position),
                    1 => SeekFrom::End(position as i64 - len as i64),
                    _ => SeekFrom::Current(position as i64 - reader.position as i64),
                };
                prop_assert_eq!(reader.seek(to).expect("a position"), position);
                let mut read = vec![0; wanted];
                let mut n = 0;
                while let Ok(more @ 1..) = reader.read(&mut read[n..]) {
                    n += more;
                }
                let from = (position as usize).min(len);
                prop_assert_eq!(&read[..n], &bytes[from..len.min(from + wanted)]);
                prop_assert_eq!(reader.position, position + n as u64);
            }
            prop_assert!(reader.seek(SeekFrom::Current(i64::MIN)).is_err());
        }
    }
}
