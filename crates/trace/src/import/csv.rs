//! CSV with a row of column names: an address is needed; kind, size, instruction, process and thread are not.

use std::collections::VecDeque;

use super::lines::{kind, number, size, LineParser};
use super::parser::{ImportedAccess, ImportedColumns, ParsedItem};
use crate::{Kind, TraceInfo};

/// A column's meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CsvColumn {
    Addr,
    Kind,
    Size,
    Ip,
    Process,
    Thread,
    /// Not for us.
    Other,
}

/// CSV's lines, split at commas, semicolons or tabs, whichever the names are split at.
#[derive(Default)]
pub(crate) struct Csv {
    columns: Vec<CsvColumn>,
    separator: u8,
}

/// Meaning of the names in a header row, and what splits them.
fn header(line: &[u8]) -> Option<(Vec<CsvColumn>, u8)> {
    let separator = *line.iter().find(|b| matches!(b, b',' | b';' | b'\t')).unwrap_or(&b',');
    let columns: Vec<CsvColumn> = fields(line, separator)
        .map(|name| match &name.to_ascii_lowercase()[..] {
            b"addr" | b"address" | b"vaddr" | b"va" => CsvColumn::Addr,
            b"kind" | b"type" | b"op" | b"rw" | b"access" => CsvColumn::Kind,
            b"size" | b"bytes" | b"len" => CsvColumn::Size,
            b"ip" | b"pc" => CsvColumn::Ip,
            b"pid" | b"process" => CsvColumn::Process,
            b"tid" | b"thread" => CsvColumn::Thread,
            _ => CsvColumn::Other,
        })
        .collect();
    columns.contains(&CsvColumn::Addr).then_some((columns, separator))
}

/// Whether the line is a header row that names an address.
pub(crate) fn is_header(line: &[u8]) -> bool {
    header(line).is_some()
}

fn fields(line: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    line.split(move |&b| b == separator).map(|f| {
        let f = f.trim_ascii();
        f.strip_prefix(b"\"").and_then(|f| f.strip_suffix(b"\"")).unwrap_or(f)
    })
}

impl Csv {
    fn has(&self, column: CsvColumn) -> bool {
        self.columns.contains(&column)
    }
}

impl LineParser for Csv {
    const EXPECTED: &'static str =
        "a first row naming the columns (addr, and any of kind, size, ip, pid, tid), then rows as `0x7ffc1000,load,8`";

    fn line(&mut self, line: &[u8], items: &mut VecDeque<ParsedItem>) -> Result<bool, String> {
        if line.starts_with(b"#") {
            return Ok(false);
        }
        if self.columns.is_empty() {
            (self.columns, self.separator) = header(line).ok_or("no column is named addr")?;
            return Ok(false);
        }
        let mut access = ImportedAccess { kind: Kind::Load, addr: 0, size: 0, ip: 0, repeat: 0 };
        let (mut process, mut thread) = (None, None);
        let mut fields = fields(line, self.separator);
        for &column in &self.columns {
            let field = fields.next().ok_or("fewer fields than the first row")?;
            let id = || number(field).and_then(|v| u32::try_from(v).ok());
            let put = match column {
                CsvColumn::Addr => number(field).map(|v| access.addr = v),
                CsvColumn::Kind => kind(field).map(|v| access.kind = v),
                // Not known is no reason to refuse the access.
                CsvColumn::Size if field.is_empty() => Some(()),
                CsvColumn::Size => size(field).map(|v| access.size = v),
                CsvColumn::Ip if field.is_empty() => Some(()),
                CsvColumn::Ip => number(field).map(|v| access.ip = v),
                CsvColumn::Process => id().map(|v| process = Some(v)),
                CsvColumn::Thread => id().map(|v| thread = Some(v)),
                CsvColumn::Other => Some(()),
            };
            put.ok_or_else(|| format!("no {column:?} in `{}`", String::from_utf8_lossy(field)).to_lowercase())?;
        }
        if process.is_some() || thread.is_some() {
            // One of them alone stands for both.
            let process = process.or(thread).unwrap_or(0);
            items.push_back(ParsedItem::Thread(process, thread.unwrap_or(process)));
        }
        items.push_back(ParsedItem::Access(access));
        Ok(true)
    }

    fn columns(&self) -> ImportedColumns {
        ImportedColumns { size: self.has(CsvColumn::Size), ip: self.has(CsvColumn::Ip), repeat: false }
    }

    fn describe(&self, info: &mut TraceInfo) {
        info.recorder = "csv-import".into();
    }
}
