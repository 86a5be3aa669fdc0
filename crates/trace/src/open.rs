//! Opening a trace whatever its format.

use std::fs::File;
use std::io::{BufReader, Read};

use crate::native::MAGIC;
use crate::{NativeReader, Source, TraceError};

/// Opens the trace at `path` (`-`: standard input), finding out its format by itself.
///
/// # Errors
/// Where it can't be read, or its format isn't known.
pub fn open(path: &str) -> Result<Box<dyn Source + Send>, TraceError> {
    let io_error = |source| TraceError::Io { what: path.into(), source };
    let mut input: Box<dyn Read + Send> = match path {
        "-" => Box::new(BufReader::new(std::io::stdin())),
        _ => Box::new(File::open(path).map_err(io_error)?),
    };
    let mut head = Vec::new();
    input.by_ref().take(MAGIC.len() as u64).read_to_end(&mut head).map_err(io_error)?;
    if head == MAGIC {
        return Ok(Box::new(NativeReader::new(std::io::Cursor::new(head).chain(input), path)?));
    }
    Err(TraceError::Format { what: path.into(), place: "byte 0".into(), reason: "not a lookaside trace (.lkt)".into() })
}
