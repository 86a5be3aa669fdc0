//! Makes blocks of what a parser finds.

use std::collections::VecDeque;

use super::input::Input;
use super::parser::{ParsedItem, Parser};
use crate::damage::DamageLog;
use crate::{Block, Damage, Kind, Source, TraceError, TraceInfo, WindowEvent, BLOCK_ACCESSES};

/// Makes blocks of what a parser finds.
pub(crate) struct Importer<P> {
    parser: P,
    input: Input,
    info: TraceInfo,
    items: VecDeque<ParsedItem>,
    process: u32,
    thread: u32,
    damage: DamageLog,
    ended: bool,
}

impl<P: Parser> Importer<P> {
    /// Reads the first items, so that what is no trace at all is told at once.
    pub(crate) fn new(input: Input, parser: P) -> Result<Self, TraceError> {
        let mut importer = Importer {
            parser,
            input,
            info: TraceInfo::default(),
            items: VecDeque::new(),
            process: 0,
            thread: 0,
            damage: DamageLog::default(),
            ended: false,
        };
        while importer.items.len() < BLOCK_ACCESSES && importer.more()? {}
        if importer.items.is_empty() {
            let (place, reason) = match importer.damage.list().first() {
                Some(d) => (format!("byte {}", d.offset), d.reason.clone()),
                None => ("byte 0".into(), "no access in it".into()),
            };
            return Err(TraceError::Format { what: importer.input.what, place, reason });
        }
        let accesses = importer.items.iter().filter_map(|i| match i {
            ParsedItem::Access(a) => Some(a),
            _ => None,
        });
        importer.info.has_fetches = accesses.clone().any(|a| a.kind == Kind::Fetch);
        importer.info.has_ip = accesses.clone().any(|a| a.ip != 0);
        importer.parser.describe(&mut importer.info);
        Ok(importer)
    }

    fn more(&mut self) -> Result<bool, TraceError> {
        self.ended = self.ended || !self.parser.parse(&mut self.input, &mut self.items, &mut self.damage)?;
        Ok(!self.ended)
    }
}

impl<P: Parser> Source for Importer<P> {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn next_block(&mut self, block: &mut Block) -> Result<bool, TraceError> {
        block.clear();
        let columns = self.parser.columns();
        loop {
            while let Some(item) = self.items.pop_front() {
                match item {
                    ParsedItem::Thread(process, thread) => {
                        if !block.is_empty() && (process, thread) != (self.process, self.thread) {
                            self.items.push_front(ParsedItem::Thread(process, thread));
                            return Ok(true);
                        }
                        (self.process, self.thread) = (process, thread);
                        continue;
                    }
                    ParsedItem::Event(event) => block.push_event(event),
                    ParsedItem::OfWindow(event) => {
                        block.window_events.push(WindowEvent { at: block.addr.len() as u32, ..event });
                    }
                    ParsedItem::Access(a) => {
                        block.push(a.kind, a.addr);
                        block.size.extend(columns.size.then_some(a.size));
                        block.ip.extend(columns.ip.then_some(a.ip));
                        block.repeat.extend(columns.repeat.then_some(a.repeat));
                    }
                }
                (block.process, block.thread) = (self.process, self.thread);
                let most = block.len().max(block.events.len()).max(block.window_events.len());
                if most >= BLOCK_ACCESSES {
                    return Ok(true);
                }
            }
            if !self.more()? && self.items.is_empty() {
                return Ok(!block.is_empty());
            }
        }
    }

    fn damage(&self) -> &[Damage] {
        self.damage.list()
    }
}
