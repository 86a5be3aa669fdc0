//! The program's seconds as a function of what its huge windows cost with small pages.

use lookaside_stats::{figure, median, Figure, RESAMPLES};

use super::layout::dearest;
use super::windows::MosaicWindow;
use crate::mosaic_gain::{MosaicGain, MosaicRow};

/// One run of a mosaic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MosaicRun {
    /// Seconds of CPU in user mode.
    pub user_seconds: f64,
    /// Of the cycles of all windows, the share of those that were huge, each for the part of the run in which it was;
    /// from 0 to 1.
    pub covered: f64,
}

/// A mosaic's runs, by round.
#[derive(Clone, Debug, PartialEq)]
pub struct RanMosaic {
    /// What it is.
    pub name: String,
    /// Windows of it.
    pub windows: usize,
    /// Its runs: as many as any other has.
    pub runs: Vec<MosaicRun>,
}

/// Mosaics that a line is fitted on at the least: with one left out there is a point more than it has terms.
const LEAST: usize = 4;
/// Mosaics that a parabola is fitted on at the least, by the same rule.
const LEAST_FOR_PARABOLA: usize = 5;
/// What must be covered in some mosaic: the answer is for all, and no run is followed to more than twice as far as it
/// goes.
const LEAST_COVERED: f64 = 0.5;

/// Fits the model on mosaics of these windows, of which the first has none huge. A parabola is taken where it
/// foretells mosaics left out better than a line.
///
/// # Errors
/// In a line: why that can't be told.
pub fn fit(windows: &[MosaicWindow], windows_share: f64, ran: &[RanMosaic], seed: u64) -> Result<MosaicGain, String> {
    if ran.len() < LEAST {
        return Err(format!(
            "{} windows of 2 MiB cost something and can be huge: too few to make {LEAST} different sets of them",
            windows.len()
        ));
    }
    let rounds = ran.iter().map(|mosaic| mosaic.runs.len()).min().unwrap_or(0);
    let middle = |mosaic: &RanMosaic, of: fn(&MosaicRun) -> f64| median(mosaic.runs.iter().map(of));
    let points = ran.iter().map(|mosaic| {
        let seconds = middle(mosaic, |run| run.user_seconds).filter(|seconds| *seconds > 0.0)?;
        Some((middle(mosaic, |run| run.covered)?, seconds))
    });
    let points: Vec<(f64, f64)> =
        points.collect::<Option<_>>().ok_or("some run took no user time that could be counted")?;
    let most = points.iter().map(|(covered, _)| *covered).fold(0.0, f64::max);
    if most < LEAST_COVERED {
        return Err(format!(
            "no run had more than {:.0} % of the cost in huge pages, over its time: the program is too short for its \
             windows to become huge while it runs, or its memory was not found again",
            most * 100.0
        ));
    }
    let tried = [2, 3].into_iter().filter(|terms| *terms == 2 || points.len() >= LEAST_FOR_PARABOLA);
    let tried = tried.filter_map(|terms| Some((terms, left_out(&points, terms)?)));
    let mean = |foretold: &[f64]| errors(&points, foretold).sum::<f64>() / points.len() as f64;
    let best = tried.min_by(|(_, a), (_, b)| mean(a).total_cmp(&mean(b)));
    let (terms, foretold) = best.ok_or("all runs had the same in huge pages")?;
    let fitted = polynomial(&points, terms).ok_or("all runs had the same in huge pages")?;
    let mean_left_out_error = mean(&foretold);
    let Figure { value: ratio, low, high } = ratio(ran, terms, seed).ok_or("there is no complete round")?;
    let half = half_of_gain(&fitted);
    let rows = ran.iter().zip(&points).zip(&foretold);
    Ok(MosaicGain {
        rounds: rounds as u32,
        windows: windows.len() as u32,
        windows_share,
        ratio,
        low: low * (1.0 - mean_left_out_error),
        high: high * (1.0 + mean_left_out_error),
        half_windows: half.map(|share| dearest(windows, share) as u32),
        mean_left_out_error,
        most_left_out_error: errors(&points, &foretold).fold(0.0, f64::max),
        mosaics: rows
            .map(|((ran, (covered, seconds)), foretold)| MosaicRow {
                name: ran.name.clone(),
                windows: ran.windows as u32,
                covered: *covered,
                user_seconds: *seconds,
                left_out_seconds: *foretold,
            })
            .collect(),
        terms: fitted,
    })
}

/// Nothing covered ÷ all covered, with its interval over resampled rounds.
fn ratio(ran: &[RanMosaic], terms: usize, seed: u64) -> Option<Figure> {
    let column = |of: fn(&MosaicRun) -> f64| ran.iter().map(move |mosaic| mosaic.runs.iter().map(of).collect());
    let lists: Vec<Vec<f64>> = column(|run| run.covered).chain(column(|run| run.user_seconds)).collect();
    let lists: Vec<&[f64]> = lists.iter().map(Vec::as_slice).collect();
    let of = |medians: &[f64]| {
        let (covered, seconds) = medians.split_at(ran.len());
        let points: Vec<(f64, f64)> = covered.iter().copied().zip(seconds.iter().copied()).collect();
        polynomial(&points, terms).map_or(f64::NAN, |fitted| value(&fitted, 0.0) / value(&fitted, 1.0))
    };
    figure(&lists, of, seed, RESAMPLES).filter(|found| [found.value, found.low, found.high].iter().all(|n| *n > 0.0))
}

/// The share that has to be covered for half of what covering all gains; `None` = that gains nothing.
fn half_of_gain(terms: &[f64]) -> Option<f64> {
    /// Steps in which it is looked for: percent.
    const STEPS: u32 = 100;
    let (small, all) = (value(terms, 0.0), value(terms, 1.0));
    let enough = |share: &f64| value(terms, *share) <= (small + all) / 2.0;
    (all < small).then(|| (0..=STEPS).map(|step| f64::from(step) / f64::from(STEPS)).find(enough))?
}

/// What a model of all other points foretells of each; `None` = some can't be fitted.
fn left_out(points: &[(f64, f64)], terms: usize) -> Option<Vec<f64>> {
    let foretold = (0..points.len()).map(|out| {
        let others: Vec<(f64, f64)> = [&points[..out], &points[out + 1..]].concat();
        Some(value(&polynomial(&others, terms)?, points[out].0))
    });
    foretold.collect()
}

/// How far off, as shares of the measured seconds.
fn errors<'a>(points: &'a [(f64, f64)], foretold: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
    points.iter().zip(foretold).map(|((_, seconds), foretold)| (foretold / seconds - 1.0).abs())
}

fn value(terms: &[f64], at: f64) -> f64 {
    terms.iter().rev().fold(0.0, |sum, term| sum * at + term)
}

/// The polynomial of so many terms with the least squares of what it is off; `None` = the points don't settle it.
fn polynomial(points: &[(f64, f64)], terms: usize) -> Option<Vec<f64>> {
    /// A pivot below this part of the number of points is none: the shares that were covered differ by less than a
    /// thousandth then.
    const NO_PIVOT: f64 = 1e-7;
    // The normal equations, a row each, with their right side behind.
    let mut rows: Vec<Vec<f64>> = (0..terms)
        .map(|row| {
            let moments = (0..terms).map(|column| points.iter().map(|(x, _)| x.powi((row + column) as i32)).sum());
            moments.chain([points.iter().map(|(x, y)| y * x.powi(row as i32)).sum()]).collect()
        })
        .collect();
    for at in 0..terms {
        let pivot = (at..terms).max_by(|a, b| rows[*a][at].abs().total_cmp(&rows[*b][at].abs()))?;
        rows.swap(at, pivot);
        let pivot = rows[at].clone();
        if pivot[at].abs() < NO_PIVOT * points.len() as f64 {
            return None;
        }
        for (_, equation) in rows.iter_mut().enumerate().filter(|(row, _)| *row != at) {
            let factor = equation[at] / pivot[at];
            equation.iter_mut().zip(&pivot).for_each(|(term, of)| *term -= factor * of);
        }
    }
    let found: Vec<f64> = rows.iter().enumerate().map(|(at, equation)| equation[terms] / equation[at]).collect();
    found.iter().all(|term| term.is_finite()).then_some(found)
}

#[cfg(test)]
mod tests;
