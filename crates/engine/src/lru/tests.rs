//! Sets in order of use against lists.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::lookup::LookupResult;
use crate::lru::LruSets;

/// One set as a list, the most recent first.
#[derive(Default)]
struct Slow(Vec<(u32, u32)>);

impl Slow {
    fn access(&mut self, key: (u32, u32)) -> bool {
        let at = self.0.iter().position(|&k| k == key);
        if let Some(at) = at {
            let key = self.0.remove(at);
            self.0.insert(0, key);
        }
        at.is_some()
    }

    fn fill(&mut self, key: (u32, u32), ways: usize) -> LookupResult {
        self.0.insert(0, key);
        if self.0.len() > ways {
            self.0.pop();
            return LookupResult::Evicted;
        }
        LookupResult::New
    }

    fn access_or_fill(&mut self, key: (u32, u32), ways: usize) -> LookupResult {
        if self.access(key) {
            LookupResult::Hit
        } else {
            self.fill(key, ways)
        }
    }
}

proptest! {
    #[test]
    fn narrow_sets_are_lists(ways in 1..=MAX_WAYS, ops in vec((0..4u8, 0..2usize, 0..80u32), 0..600)) {
        let mut fast = LruSets::new(2, ways, false);
        let mut slow = [Slow::default(), Slow::default()];
        for (op, set, tag) in ops {
            match op {
                0 | 1 => {
                    let expected = slow[set].access_or_fill((tag, 0), ways);
                    prop_assert_eq!(fast.access_or_fill(set, tag), expected);
                }
                2 => prop_assert_eq!(fast.access(set, tag), slow[set].access((tag, 0))),
                _ => {
                    let gone = fast.update(|t, _| (t % 7 != tag % 7).then_some(t));
                    let before = slow[0].0.len() + slow[1].0.len();
                    slow.iter_mut().for_each(|s| s.0.retain(|(t, _)| t % 7 != tag % 7));
                    prop_assert_eq!(gone as usize, before - slow[0].0.len() - slow[1].0.len());
                }
            }
        }
        let mut all = Vec::new();
        fast.for_each(|tag, second| all.push((tag, second)));
        prop_assert_eq!(&all, &slow.map(|s| s.0).concat());
    }

    #[test]
    fn wide_sets_are_lists(ways in 1..=MAX_WAYS, ops in vec((0..2usize, 0..9u32, 0..9u32), 0..600)) {
        let mut fast = LruSets::new(2, ways, true);
        let mut slow = [Slow::default(), Slow::default()];
        for (set, a, b) in ops {
            // All ones in either word is a key like others.
            let key = [a, b].map(|word| if word == 8 { u32::MAX - u32::from(a == b) } else { word });
            let expected = slow[set].access_or_fill((key[0], key[1]), ways);
            prop_assert_eq!(fast.access_or_fill_wide(set, key[0], key[1]), expected);
        }
    }

    #[test]
    fn masks_go_with_their_tags(ways in 1..=20usize, ops in vec((any::<bool>(), 0..24u32, 0..4u32), 0..400)) {
        let mut fast = LruSets::new(1, ways, true);
        let mut slow: Vec<(u32, u32)> = Vec::new();
        for (fill, tag, bit) in ops {
            let at = slow.iter().position(|(t, _)| *t == tag);
            if fill {
                let (mask, expected) = match at {
                    Some(at) => (slow.remove(at).1, LookupResult::Hit),
                    None if slow.len() < ways => (0, LookupResult::New),
                    None => { slow.pop(); (0, LookupResult::Evicted) }
                };
                slow.insert(0, (tag, mask | 1 << bit));
                prop_assert_eq!(fast.fill_masked(0, tag, 1 << bit), expected);
            } else {
                let at = at.filter(|&at| slow[at].1 >> bit & 1 == 1);
                if let Some(at) = at {
                    let entry = slow.remove(at);
                    slow.insert(0, entry);
                }
                prop_assert_eq!(fast.access_masked(0, tag, 1 << bit), at.is_some());
            }
        }
    }
}
