//! Asks arrays in many forms (`array_forms.rs`) for a batch: each page's name is worked out once.

use crate::array_forms::ROUTES;
use crate::batch::{Batch, KeyLists};
use crate::classes::CLASSES;
use crate::context::AccessContext;
use crate::engine::Engine;
use crate::lookup::LookupKeys;
use crate::stages::MAX_ITEMS;

impl Engine {
    /// Asks all forms for a batch's items.
    pub(crate) fn ask_forms(&mut self, batch: &mut Batch, context: &AccessContext) {
        let Some(forms) = &context.plan.forms else { return };
        let Batch { lists, simd, addr, at, tags, route, len, .. } = batch;
        let KeyLists { items, sets, words, missed, .. } = lists;
        for array in &forms.arrays {
            let mut numbers = [0; MAX_ITEMS];
            let tlb = &context.plan.tlbs[array.number];
            let name = tlb.tag_name();
            let mut came = [0; ROUTES];
            let mut n = 0;
            for item in 0..*len {
                let route = usize::from(route[item]) % ROUTES;
                if !array.is_asked[route] {
                    continue;
                }
                let layout = &tlb.layouts[route % CLASSES];
                let is_usual = name == context.plan.usual_name;
                let chunk = if is_usual { tags[item] } else { self.chunks.at(at[item] as usize).tags[name] };
                items[n] = route as u16;
                words[n] = layout.tag(chunk, addr[item]);
                numbers[n] = addr[item] >> layout.set_shift;
                came[route] += 1;
                n += 1;
            }
            let mut forms = self.hardware.tlbs[context.routing.tlbs[array.number]].forms.iter_mut();
            for its in &array.by_index {
                for (set, &number) in sets.iter_mut().zip(&numbers[..n]) {
                    *set = its.index.set_of(number) as u32;
                }
                let keys = LookupKeys { sets: &sets[..n], words: &words[..n], seconds: &[] };
                for form in forms.by_ref().take(its.forms.len()) {
                    form.look_up_list(*simd, keys, (&came, &items[..n]), missed, &mut self.counts.forms[form.place..]);
                }
            }
        }
    }
}
