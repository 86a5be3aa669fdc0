//! A partition as a line of text, which the preloaded heap reads where nothing can be allocated yet.
//!
//! `SHIFT;PAGES;LEVEL;…`: log2 of the page size; most pages, or `-`; for each level `MASK,…/FIRST-LAST=ROOM,…`:
//! hexadecimal masks of the index, then sets and how many pages each may have, `*` for any number. Sets that are not
//! named have none.

use lookaside_machine::{ColorLevel, Partition, Partitions};

use super::pick::Picker;

/// What a line says.
#[derive(Debug)]
pub(crate) struct PartitionLine {
    pub(crate) shift: u32,
    pub(crate) pages: u64,
}

/// The line of one of a file's partitions.
///
/// # Errors
/// There is none of that name; the names there are.
pub fn spec(file: &Partitions, name: &str) -> Result<String, String> {
    let Some(partition) = file.partition(name) else {
        let known: Vec<&str> = file.partitions.iter().map(|partition| partition.name.as_str()).collect();
        return Err(format!("{name:?} is no partition; known: {}", known.join(", ")));
    };
    let pages = partition.pages.map_or("-".into(), |pages| pages.to_string());
    let levels: String = file.levels.iter().filter_map(|level| of_level(level, partition)).collect();
    Ok(format!("{};{pages}{levels}", file.page_size.shift()))
}

fn of_level(level: &ColorLevel, partition: &Partition) -> Option<String> {
    let shares: Vec<_> = partition.shares.iter().filter(|share| share.level == level.name).collect();
    if shares.is_empty() {
        return None;
    }
    let masks: Vec<String> = level.index.masks(level.sets).iter().map(|mask| format!("{mask:x}")).collect();
    let mut ranges: Vec<(u32, u32, String)> = Vec::new();
    for share in shares {
        let room = share.ways.map_or("*".into(), |ways| ways.to_string());
        let mut sets = share.sets.clone();
        sets.sort_unstable();
        for set in sets {
            match ranges.last_mut() {
                Some((_, last, same)) if *last + 1 == set && *same == room => *last = set,
                _ => ranges.push((set, set, room.clone())),
            }
        }
    }
    let ranges: Vec<String> = ranges.iter().map(|(first, last, room)| format!("{first}-{last}={room}")).collect();
    Some(format!(";{}/{}", masks.join(","), ranges.join(",")))
}

/// Reads a line into a picker that has every page. Allocates nothing.
pub(crate) fn read(line: &[u8], picker: &mut Picker) -> Option<PartitionLine> {
    let mut fields = std::str::from_utf8(line).ok()?.split(';');
    let shift = fields.next()?.parse().ok().filter(|shift| (12..=30).contains(shift))?;
    let pages = match fields.next()? {
        "-" => u64::MAX,
        pages => pages.parse().ok()?,
    };
    for field in fields {
        let (masks, ranges) = field.split_once('/')?;
        let masks = masks.split(',').filter(|mask| !mask.is_empty());
        let level = picker.add(masks.map(|mask| u64::from_str_radix(mask, 16).ok()))?;
        for range in ranges.split(',') {
            let (sets, room) = range.split_once('=')?;
            let (first, last) = sets.split_once('-')?;
            let room = if room == "*" { None } else { Some(room.parse().ok()?) };
            level.set_room(first.parse().ok()?, last.parse().ok()?, room)?;
        }
    }
    Some(PartitionLine { shift, pages })
}

#[cfg(test)]
mod tests {
    use super::{read, spec};
    use crate::color::pick::Picker;
    use lookaside_machine::{preset, PageSize, Partition, Partitions, Share};
    use proptest::prelude::*;

    fn file(sets: Vec<u32>, ways: Option<u32>, pages: Option<u64>) -> Partitions {
        let machine = preset("skylake").expect("a preset");
        let levels = machine.color_levels(PageSize::K4);
        let shares = vec![Share { level: levels[1].name.clone(), sets, ways }];
        let partition = Partition { name: "p".into(), pages, contiguous_pages: 1, shares };
        Partitions { machine: machine.name, page_size: PageSize::K4, levels, partitions: vec![partition] }
    }

    proptest! {
        #[test]
        fn a_line_is_read_as_it_was_written(
            sets in proptest::collection::btree_set(0u32..128, 1..40), ways in proptest::option::of(1u32..12), pages in proptest::option::of(1u64..99)
        ) {
            let file = file(sets.into_iter().collect(), ways, pages);
            let line = spec(&file, "p").expect("a line");
            let mut read_back = Box::new(Picker::EVERY);
            let spec = read(line.as_bytes(), &mut read_back).expect(&line);
            prop_assert_eq!((spec.shift, spec.pages), (12, pages.unwrap_or(u64::MAX)));
            let wanted = Picker::new(&file.levels, &file.partitions[0]);
            prop_assert_eq!(format!("{read_back:?}"), format!("{wanted:?}"));
        }

        #[test]
        fn any_line_is_read_or_refused(line in "[0-9a-f;,/=*-]{0,60}") {
            let _ = read(line.as_bytes(), &mut Box::new(Picker::EVERY));
        }
    }

    #[test]
    fn sets_in_a_row_with_the_same_room_are_one_range() {
        let mut file = file(vec![9, 2, 1, 3], Some(2), None);
        let level = file.partitions[0].shares[0].level.clone();
        let share = |sets: &[u32], ways| Share { level: level.clone(), sets: sets.to_vec(), ways };
        file.partitions[0].shares.extend([share(&[10], Some(3)), share(&[11, 12], None), share(&[14], None)]);
        let line = spec(&file, "p").expect("a line");
        assert_eq!(line.split('/').nth(1), Some("1-3=2,9-9=2,10-10=3,11-12=*,14-14=*"));
        assert!(line.starts_with("12;-;") && line.matches(';').count() == 2, "the other level is not bound: {line}");
    }

    #[test]
    fn unknown_partitions_are_named() {
        assert_eq!(spec(&file(vec![1], None, None), "q"), Err("\"q\" is no partition; known: p".into()));
        assert_eq!(spec(&file(vec![1, 2, 3, 9], Some(2), Some(7)), "p").expect("a line").split(';').nth(1), Some("7"));
    }
}
