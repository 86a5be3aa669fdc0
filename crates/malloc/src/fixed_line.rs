//! A line of text where nothing may be allocated.

use std::fmt::Write;

/// Room for a line; what does not fit is cut.
pub(crate) struct FixedLine {
    bytes: [u8; 300],
    len: usize,
}

impl FixedLine {
    pub(crate) fn new(text: std::fmt::Arguments<'_>) -> Self {
        let mut line = Self { bytes: [0; 300], len: 0 };
        // A line that is cut is better than none.
        let _ = line.write_fmt(text);
        line
    }

    /// Writes it to a file; a full disk costs the line.
    pub(crate) fn put(&self, file: i32) {
        // SAFETY: as many bytes as there are.
        unsafe { libc::write(file, self.bytes.as_ptr().cast(), self.len) };
    }
}

impl Write for FixedLine {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let room = &mut self.bytes[self.len..];
        let fits = text.len().min(room.len());
        room[..fits].copy_from_slice(&text.as_bytes()[..fits]);
        self.len += fits;
        Ok(())
    }
}
