//! Where values stand on an axis, and which of its numbers are named.

use super::{Lines, Points, Scale};
use crate::num;

/// Values that differ by more stand on a logarithmic axis, where the axis may choose.
const FACTOR: f64 = 10.0;

/// Room beyond the outermost values, as a share of their distance.
const ROOM: f64 = 0.06;

/// What an axis spans, in its scale's own measure (values, or their logarithms).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    low: f64,
    width: f64,
    log: Option<Base>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Two,
    Ten,
}

impl Range {
    /// Around these values; `None` where none can be placed.
    pub fn over(values: impl Iterator<Item = f64> + Clone, scale: Scale) -> Option<Self> {
        let finite = values.filter(|value| value.is_finite());
        let ends = |values: &mut dyn Iterator<Item = f64>| {
            values.fold(None, |ends: Option<(f64, f64)>, x| Some(ends.map_or((x, x), |(a, b)| (a.min(x), b.max(x)))))
        };
        match scale {
            Scale::Linear | Scale::Even => ends(&mut finite.clone()).map(|(low, high)| Self::padded(low, high, None)),
            Scale::Auto => {
                let (low, high) = ends(&mut finite.clone())?;
                match low > 0.0 && high / low > FACTOR {
                    true => Some(Self::padded(low.log10(), high.log10(), Some(Base::Ten))),
                    false => Some(Self::padded(low.min(0.0), high.max(0.0), None)),
                }
            }
            Scale::Log10 => {
                let (low, high) = ends(&mut finite.filter(|value| *value > 0.0))?;
                let high = high.log10();
                Some(Self::padded(low.log10().min(high - 1.0), high, Some(Base::Ten)))
            }
            Scale::Log2 => {
                let (low, high) = ends(&mut finite.filter(|value| *value > 0.0))?;
                let low = low.log2().floor();
                Some(Self { low, width: (high.log2().ceil() - low).max(1.0), log: Some(Base::Two) })
            }
        }
    }

    fn padded(low: f64, high: f64, log: Option<Base>) -> Self {
        let room = ((high - low) * ROOM).max(high.abs() * 1e-3).max(1e-12);
        Self { low: low - room, width: high - low + 2.0 * room, log }
    }

    /// Share of the axis; what is no number, or too small for a logarithm, is at its beginning.
    pub fn at(&self, value: f64) -> f64 {
        let measure = match self.log {
            None => value,
            Some(_) if value <= 0.0 => return 0.0,
            Some(Base::Two) => value.log2(),
            Some(Base::Ten) => value.log10(),
        };
        let share = (measure - self.low) / self.width;
        if share.is_nan() {
            return 0.0;
        }
        share.clamp(0.0, 1.0)
    }

    /// The value lies on the axis.
    pub fn holds(&self, value: f64) -> bool {
        let end = self.low + self.width;
        match self.log {
            None => (self.low..=end).contains(&value),
            Some(Base::Two) => value > 0.0 && (self.low..=end).contains(&value.log2()),
            Some(Base::Ten) => value > 0.0 && (self.low..=end).contains(&value.log10()),
        }
    }

    /// 0 has values on both its sides.
    pub fn crosses_zero(&self) -> bool {
        self.log.is_none() && self.low < 0.0 && self.low + self.width > 0.0
    }

    /// Numbers to be named, about `most` of them: share of the axis and name. A name that is that of the one before is
    /// left out.
    pub fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        let mut ticks: Vec<(f64, String)> = match self.log {
            None => {
                let decimals = self.decimals();
                self.round_numbers().into_iter().map(|x| (self.at(x), linear_name(x, decimals))).collect()
            }
            Some(Base::Two) => self.powers(most).map(|power| (self.share_of(power), binary_name(power))).collect(),
            Some(Base::Ten) if self.width > 2.2 => {
                self.powers(most).map(|power| (self.share_of(power), decimal_name(power))).collect()
            }
            Some(Base::Ten) => {
                let powers = self.low.floor() as i32..=(self.low + self.width).ceil() as i32;
                let numbers = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|times| times * 10f64.powi(power)));
                numbers.filter(|x| self.holds(*x)).map(|x| (self.at(x), num::rate(x))).collect()
            }
        };
        ticks.dedup_by(|later, before| later.1 == before.1);
        ticks
    }

    fn share_of(&self, power: i32) -> f64 {
        (f64::from(power) - self.low) / self.width
    }

    fn powers(&self, most: usize) -> impl Iterator<Item = i32> {
        let step = (self.width / most.max(1) as f64).ceil().max(1.0) as usize;
        (self.low.ceil() as i32..=(self.low + self.width).floor() as i32).step_by(step)
    }

    /// Distance of round numbers: 1, 2 or 5 times a power of ten, so that two to eleven are on the axis.
    fn step(&self) -> f64 {
        let about = self.width / 5.0;
        let power = 10f64.powf(about.log10().floor());
        let step = [1.0, 2.0, 5.0].map(|times| times * power).into_iter().find(|step| *step >= about);
        step.unwrap_or(10.0 * power)
    }

    /// Round numbers on the axis; none where numbers are too large for a step between them.
    fn round_numbers(&self) -> Vec<f64> {
        let step = self.step();
        let (first, last) = ((self.low / step).ceil(), ((self.low + self.width) / step).floor());
        if !(last - first).is_finite() {
            return Vec::new();
        }
        (0..=(last - first).min(10.0) as u32).map(|n| (first + f64::from(n)) * step).collect()
    }

    /// Decimals that tell round numbers from each other.
    fn decimals(&self) -> usize {
        // A step of 10^-2 has a logarithm a little off.
        (-(self.step().log10() + 1e-9).floor()).clamp(0.0, 9.0) as usize
    }
}

/// Ranges of a chart's axes.
pub(crate) struct Ranges {
    pub x: Range,
    pub y: Range,
}

impl Lines {
    /// What the axes span; `None` where there is nothing to draw.
    pub(crate) fn ranges(&self) -> Option<Ranges> {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let placed = || points().filter(|point| point.y.is_finite());
        placed().next()?;
        let xs = placed().map(|point| point.x).chain(self.marks.iter().map(|mark| mark.at.max(1.0)));
        let ys = points().flat_map(|point| {
            let (low, high) = point.interval.unwrap_or((point.y, point.y));
            [low, point.y, high]
        });
        let y = match self.y_range {
            Some((low, high)) => Range::over([low, high].into_iter(), self.y.scale)?,
            None => Range::over(ys.chain(self.levels.iter().map(|level| level.at)), self.y.scale)?,
        };
        let x = match self.x.scale {
            Scale::Even => Range { low: 0.0, width: 1.0, log: None },
            scale => match self.x_range {
                Some((low, high)) => Range::over([low, high].into_iter(), scale)?,
                None => Range::over(xs, scale)?,
            },
        };
        Some(Ranges { x, y })
    }
}

impl Points {
    /// What the axis spans; `None` where there is nothing to draw.
    pub(crate) fn range(&self) -> Option<Range> {
        let values = self.rows.iter().flat_map(|row| {
            let value = row.value.iter().flat_map(|point| {
                let (low, high) = point.interval.unwrap_or((point.y, point.y));
                [low, point.y, high]
            });
            value.chain(row.singles.iter().map(|(value, _)| *value)).chain(row.middle)
        });
        values.clone().find(|value| value.is_finite())?;
        Range::over(values.chain(self.reference), self.x.scale)
    }
}

fn linear_name(x: f64, decimals: usize) -> String {
    if decimals == 0 {
        return num::short(x);
    }
    let text = format!("{x:.decimals$}");
    // What rounding leaves of a zero has no sign.
    match text.strip_prefix('-') {
        Some(zero) if zero.bytes().all(|byte| matches!(byte, b'0' | b'.')) => zero.into(),
        _ => text,
    }
}

fn binary_name(power: i32) -> String {
    match power {
        0..=9 => (1u64 << power).to_string(),
        10..=19 => format!("{}Ki", 1u64 << (power - 10)),
        20..=29 => format!("{}Mi", 1u64 << (power - 20)),
        30..=39 => format!("{}Gi", 1u64 << (power - 30)),
        _ => format!("2^{power}"),
    }
}

fn decimal_name(power: i32) -> String {
    match power {
        0.. => num::short(10f64.powi(power)),
        -4..0 => 10f64.powi(power).to_string(),
        _ => format!("1e{power}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(values: &[f64], scale: Scale) -> String {
        let range = Range::over(values.iter().copied(), scale).expect("an axis");
        range.ticks(6).into_iter().map(|(_, name)| name.replace('\u{a0}', "")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_axis_holds_its_numbers_whatever_they_are() {
        assert!(Range::over([f64::NAN].into_iter(), Scale::Linear).is_none());
        assert!(Range::over([0.0, -1.0].into_iter(), Scale::Log10).is_none());
        for numbers in [vec![0.0], vec![1.0, 1.0], vec![-5.0, 1e300], vec![1e-9, 2e-9], vec![1e-300, 1e300]] {
            for scale in [Scale::Linear, Scale::Log2, Scale::Log10, Scale::Auto] {
                let Some(range) = Range::over(numbers.iter().copied(), scale) else { continue };
                for x in &numbers {
                    assert!((0.0..=1.0).contains(&range.at(*x)) && range.width > 0.0);
                }
                assert!(range.ticks(6).len() <= 11, "{numbers:?} {scale:?}");
            }
        }
    }

    #[test]
    fn lines_are_at_round_numbers() {
        assert_eq!(names(&[0.44, 4.3], Scale::Linear), "1 2 3 4");
        assert_eq!(names(&[50.6, 338.0], Scale::Linear), "100 200 300");
        assert_eq!(names(&[0.97, 1.02], Scale::Linear), "0.98 1.00 1.02");
        assert_eq!(names(&[-0.03, 0.03], Scale::Linear), "-0.02 0.00 0.02");
    }

    #[test]
    fn what_differs_much_stands_on_a_logarithmic_axis() {
        assert_eq!(names(&[100.0, 5000.0], Scale::Auto), "100 200 500 1,000 2,000 5,000");
        assert_eq!(names(&[100.0, 400.0], Scale::Auto), "0 100 200 300 400");
        // Below 0 there is no logarithm.
        assert!(!names(&[-1.0, 5000.0], Scale::Auto).contains("200"));
        assert_eq!(names(&[1.0, 4096.0], Scale::Log2), "1 4 16 64 256 1Ki 4Ki");
        assert_eq!(names(&[0.01, 90_000.0], Scale::Log10), "0.01 1 100 10.0k");
    }
}
