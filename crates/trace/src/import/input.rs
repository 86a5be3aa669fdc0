//! Bytes to import from: a file or standard input, unpacked on the way if packed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Write};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};

use crate::damage::DamageLog;
use crate::TraceError;

/// Bytes looked at to find out a format.
const HEAD: usize = 1 << 16;
/// Piece size of archives that are unpacked by a thread of their own, and how many wait at most.
const PIECE: usize = 1 << 18;
const PIECES: usize = 4;
/// Most memory that unpacking xz may take: its largest preset needs 65 MiB.
const XZ_MEMORY: u64 = 128 << 20;
/// Packings within packings (`trace.gz` in a zip …) are followed so deep.
const LAYERS: usize = 4;

/// An opened, unpacked input.
pub(crate) struct Input {
    r: BufReader<Box<dyn Read + Send>>,
    /// Its name in errors.
    pub(crate) what: String,
    head: Vec<u8>,
    fault: ReadFault,
}

impl Input {
    /// Opens `path`, or standard input for `-`.
    pub(crate) fn open(path: &str) -> Result<Input, TraceError> {
        let io_error = |source| TraceError::Io { what: path.into(), source };
        if path == "-" {
            return Input::new(Box::new(io::stdin()), None, "standard input");
        }
        let file = File::open(path).map_err(io_error)?;
        if file.metadata().map_err(io_error)?.is_dir() {
            return Err(TraceError::Format {
                what: path.into(),
                place: "path".into(),
                reason: "is a directory; name a trace file in it".into(),
            });
        }
        let again = file.try_clone().map_err(io_error)?;
        Input::new(Box::new(file), Some(again), path)
    }

    /// Unpacks `r`; `file` is the same once more, where it can be sought in.
    pub(crate) fn new(r: Box<dyn Read + Send>, file: Option<File>, what: &str) -> Result<Input, TraceError> {
        let io_error = |source| TraceError::Io { what: what.into(), source };
        let fault = ReadFault::default();
        let (mut r, mut file) = (r, file);
        for _ in 0..=LAYERS {
            let mut head = Vec::new();
            r.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(io_error)?;
            let whole: Box<dyn Read + Send> = Box::new(Cursor::new(head.clone()).chain(r));
            match unpack(&head, whole, file.take(), &fault).map_err(io_error)? {
                Unpacked::Plain(whole) => {
                    return Ok(Input { r: BufReader::with_capacity(HEAD, whole), what: what.into(), head, fault })
                }
                Unpacked::Unpacking(inner) => r = inner,
            }
        }
        Err(TraceError::Format {
            what: what.into(),
            place: "byte 0".into(),
            reason: format!("is packed more than {LAYERS} times over; unpack it first"),
        })
    }

    /// The first bytes, up to 64 KiB, not consumed.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Everything, as a plain reader.
    pub(crate) fn into_reader(self) -> impl Read + Send {
        self.r
    }

    /// Buffered bytes; empty at the end.
    pub(crate) fn fill_buf(&mut self) -> Result<&[u8], TraceError> {
        match self.r.fill_buf() {
            Ok(bytes) => Ok(bytes),
            Err(source) => Err(TraceError::Io { what: self.what.clone(), source }),
        }
    }

    /// Steps over `n` of the buffered bytes.
    pub(crate) fn consume(&mut self, n: usize) {
        self.r.consume(n);
    }

    /// Fills `buf` as far as the input goes.
    pub(crate) fn read_full(&mut self, buf: &mut [u8]) -> Result<usize, TraceError> {
        let mut n = 0;
        while n < buf.len() {
            let bytes = self.fill_buf()?;
            if bytes.is_empty() {
                break;
            }
            let take = bytes.len().min(buf.len() - n);
            buf[n..n + take].copy_from_slice(&bytes[..take]);
            self.consume(take);
            n += take;
        }
        Ok(n)
    }

    /// At the end, `offset` unpacked bytes on: notes it if unpacking had to stop there.
    pub(crate) fn note_fault(&self, offset: u64, damage: &mut DamageLog) {
        if let Some(reason) = self.fault.take() {
            damage.push(offset, 0, &format!("unpacking stops after {offset} unpacked bytes: {reason}"));
        }
    }
}

/// Why unpacking ended early, once it has.
#[derive(Clone, Default)]
struct ReadFault(Arc<Mutex<Option<String>>>);

impl ReadFault {
    fn set(&self, reason: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }

    fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

enum Unpacked {
    Plain(Box<dyn Read + Send>),
    Unpacking(Box<dyn Read + Send>),
}

/// Unpacks by the magic that the input begins with. All ways stream: none takes memory in proportion to the output.
fn unpack(head: &[u8], r: Box<dyn Read + Send>, file: Option<File>, fault: &ReadFault) -> io::Result<Unpacked> {
    let inner: Box<dyn Read + Send> = match head {
        [0x1f, 0x8b, ..] => Box::new(flate2::read::MultiGzDecoder::new(r)),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, liblzma::stream::CONCATENATED)?;
            Box::new(liblzma::read::XzDecoder::new_stream(r, stream))
        }
        [0x04, 0x22, 0x4d, 0x18, ..] => Box::new(lz4_flex::frame::FrameDecoder::new(r)),
        // zstd refuses windows of more than 128 MiB by itself.
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(zstd::Decoder::new(r)?),
        [b'P', b'K', 3, 4, ..] => match file {
            Some(file) => Box::new(InputPieces::new(move |out| unzip_file(file, out))),
            None => Box::new(InputPieces::new(move |out| unzip_stream(r, out))),
        },
        _ => return Ok(Unpacked::Plain(r)),
    };
    Ok(Unpacked::Unpacking(Box::new(UntilFault { inner, fault: fault.clone(), ended: false })))
}

/// Ends at the first error of an unpacker, and keeps the reason: what came before is worth having.
struct UntilFault {
    inner: Box<dyn Read + Send>,
    fault: ReadFault,
    ended: bool,
}

impl Read for UntilFault {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.ended {
            return Ok(0);
        }
        match self.inner.read(buf) {
            Err(e) if e.kind() != io::ErrorKind::Interrupted => {
                self.ended = true;
                self.fault.set(e.to_string());
                Ok(0)
            }
            read => read,
        }
    }
}

/// The files of an archive one after another, by its directory.
fn unzip_file(file: File, out: &mut PieceSender) -> io::Result<()> {
    let mut archive = zip::ZipArchive::new(BufReader::new(file))?;
    for i in 0..archive.len() {
        io::copy(&mut archive.by_index(i)?, out)?;
    }
    Ok(())
}

/// The same without the directory, which is at the end.
fn unzip_stream(mut r: Box<dyn Read + Send>, out: &mut PieceSender) -> io::Result<()> {
    while let Some(mut file) = zip::read::read_zipfile_from_stream(&mut r)? {
        io::copy(&mut file, out)?;
    }
    Ok(())
}

/// What a thread writes, as a reader. The thread ends when this is dropped.
struct InputPieces {
    from: Receiver<io::Result<Vec<u8>>>,
    piece: Cursor<Vec<u8>>,
}

impl InputPieces {
    fn new(work: impl FnOnce(&mut PieceSender) -> io::Result<()> + Send + 'static) -> InputPieces {
        let (to, from) = sync_channel(PIECES);
        std::thread::spawn(move || {
            let mut sender = PieceSender { to, piece: Vec::new() };
            let done = work(&mut sender).and_then(|()| sender.flush());
            if let Err(e) = done {
                // Where nobody listens any more there is nobody to be told.
                let _ = sender.to.send(Err(e));
            }
        });
        InputPieces { from, piece: Cursor::default() }
    }
}

impl Read for InputPieces {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.piece.read(buf)? {
                0 if !buf.is_empty() => match self.from.recv() {
                    Ok(piece) => self.piece = Cursor::new(piece?),
                    Err(_) => return Ok(0),
                },
                n => return Ok(n),
            }
        }
    }
}

/// The writing end of [`InputPieces`].
struct PieceSender {
    to: SyncSender<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
}

impl Write for PieceSender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.piece) {
            piece if piece.is_empty() => Ok(()),
            piece => self.to.send(Ok(piece)).map_err(|_| io::ErrorKind::BrokenPipe.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interrupted once by a signal, then a byte, then broken.
    struct Signalled(u32);

    impl Read for Signalled {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            self.0 += 1;
            match self.0 {
                1 => Err(io::ErrorKind::Interrupted.into()),
                2 => {
                    buf[0] = 7;
                    Ok(1)
                }
                _ => Err(io::Error::other("broken")),
            }
        }
    }

    #[test]
    fn a_signal_is_no_fault_of_what_is_unpacked() {
        let fault = ReadFault::default();
        let mut r = UntilFault { inner: Box::new(Signalled(0)), fault: fault.clone(), ended: false };
        let mut out = Vec::new();
        assert_eq!(r.read_to_end(&mut out).expect("a fault is an end"), 1);
        assert_eq!((out, fault.take().as_deref()), (vec![7], Some("broken")));
        assert_eq!(r.read(&mut [0]).expect("it has ended"), 0);
        assert_eq!(fault.take(), None);
    }

    #[test]
    fn an_archive_comes_in_large_pieces_and_the_rest() {
        let mut pieces = InputPieces::new(|out| {
            for i in 0..24 {
                out.write_all(&[i; 1 << 15])?;
            }
            Ok(())
        });
        let mut first = [0; 1];
        assert_eq!(pieces.read(&mut first).expect("it can be read"), 1);
        assert_eq!(pieces.piece.get_ref().len(), 1 << 18);
        // Reading into nothing loses nothing.
        assert_eq!(pieces.read(&mut []).expect("it can be read"), 0);
        let mut rest = Vec::new();
        pieces.read_to_end(&mut rest).expect("it can be read");
        assert_eq!(pieces.piece.get_ref().len(), 1 << 18);
        let all: Vec<u8> = (0..24).flat_map(|i| [i; 1 << 15]).collect();
        assert!([&first[..], &rest].concat() == all);
    }
}
