//! Repeats a measurement until two results agree.

use crate::bench::Halt;
use crate::finding::Finding;

/// Times that a question is put at most until two answers are the same.
const LOOKS: usize = 4;

/// Puts a question until two answers are the same; else gives all of them. `None` is no answer.
pub(super) fn until_answers_agree<T>(
    mut look: impl FnMut() -> Result<Option<T>, Halt>,
    same: impl Fn(&T, &T) -> bool,
) -> Result<Result<(T, T), Vec<T>>, Halt> {
    let mut seen: Vec<T> = Vec::new();
    for _ in 0..LOOKS {
        let Some(last) = look()? else { continue };
        if let Some(at) = seen.iter().position(|other| same(other, &last)) {
            return Ok(Ok((seen.swap_remove(at), last)));
        }
        seen.push(last);
    }
    Ok(Err(seen))
}

/// A measurement that this machine refuses is no reason to end the others.
pub(super) fn refused<T>(result: Result<Finding<T>, Halt>) -> Result<Finding<T>, Halt> {
    match result {
        Err(Halt::Metal(error)) => Ok(Finding::not_determined(error.to_string())),
        other => other,
    }
}
