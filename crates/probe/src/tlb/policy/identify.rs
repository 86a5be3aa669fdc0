//! Identifies the replacement policy: measures access sequences to one set under which policies miss differently often.
//!
//! A set is reset (filled with pages in a known order), then pages are used again, new ones come, and what is still
//! there is looked at. Each rule is played on paper on many such sequences; those are measured that tell rules apart
//! best. One look proposes the policy that alone predicts all that is measured, another with other sequences and other
//! pages confirms it. What is measured twice alike and predicted by none is an answer too.

use crate::bench::{ChainBench, Halt};
use crate::finding::Finding;
use crate::tlb::geometry::Geometry;
use crate::tlb::level_meter::LevelMeter;
use crate::tlb::policy::choose_sequences::{choose, shrink};
use crate::tlb::policy::rules::rules;
use crate::tlb::policy::rules::RuleSet;
use crate::tlb::policy::sequence::TrialSequence;
use crate::tlb::policy::set_meter::{SequenceMisses, SetMeter};
use crate::tlb::policy::trial::TlbPolicy;
use crate::tlb::policy::trial::Trial;
use crate::tlb::policy::trial::TrialRole;
use crate::tlb::policy::trial::DISTURBED;
use crate::tlb::policy::trial::WITHIN;

/// Attempts at one level, of which two have to end alike.
const ATTEMPTS: usize = 5;
/// Sequences measured by each look.
const SEQUENCES: usize = 6;
/// Measurements of a sequence, and of one whose measurements do not agree.
const TIMES: (usize, usize) = (7, 21);
/// Before it is measured, a sequence's misses are thought to be off by what so many hundredths of its times make.
const EXPECTED_PERCENT: f64 = 0.4;
/// A rule predicts a measurement that is off by no more than what so many hundredths of its times make, ...
const WITHIN_PERCENT: f64 = 0.15;
/// ... and so many times the quartiles' distance of the measurements, whose median is taken, ...
const WITHIN_SPREADS: f64 = 1.0;
/// Predictions that are further off than this many times what is allowed rule a rule out.
const OUT: f64 = 1.5;
/// Nor is one said to follow none of the rules where one is no further off than this.
const NONE: f64 = 3.0;
/// ... or in so many trials and one more no further off than this.
const NONE_OFTEN: (usize, f64) = (2, 1.5);
/// Trials tell two rules apart where these predict misses so many times what is allowed apart, ...
const APART: f64 = 2.0;
/// ... and a rule that is out by so many of those that tell it from another, which are at least this part of them, is
/// refuted: what other trials may excuse as disturbed falls on the very ones that it is about.
const REFUTING: (usize, f64) = (2, 1.0 / 3.0);
/// A miss has to add between these parts of what it added when the geometry was found: to its crowds at that, where not
/// every access missed.
const SANE: (f64, f64) = (0.4, 3.0);

/// The policy of a level whose geometry is known, and the trials; first the telling one, if there is one.
pub fn policy(
    bench: &mut ChainBench<'_>,
    level: &LevelMeter,
    geometry: &Geometry,
) -> Result<(Finding<TlbPolicy>, Vec<Trial>), Halt> {
    let ways = geometry.ways as usize;
    if ways < 2 {
        return Ok((Finding::not_determined("a set of one way has no choice"), Vec::new()));
    }
    let Some(instrument) = SetMeter::new(bench, level, geometry) else {
        return Ok((Finding::not_determined("the level above cannot be kept out of the way"), Vec::new()));
    };
    let mut look = PolicyTest { level, instrument, known: RuleSet { ways, rules: rules(ways) }, near: 0 };
    let mut trials = [Vec::new(), Vec::new()];
    let mut failed = Vec::new();
    let mut before = None;
    for near in 0..ATTEMPTS {
        look.near = near % 2;
        match look.attempt(bench, &mut trials)? {
            // Two attempts have to end alike: what nearly fits a rule fits it now and then.
            Ok(policy) if before.is_none() => before = Some(policy),
            Ok(policy) if before != Some(policy) => {
                failed.push(format!("one attempt reads {}, another {policy}", before.unwrap_or(policy)));
                break;
            }
            Ok(policy) => {
                let mut trials = trials.concat();
                let mut evidence = look.evidence(policy, &trials);
                if let Some(telling) = look.telling(bench, policy, &trials)? {
                    trials.insert(0, telling);
                }
                evidence.append(&mut failed);
                return Ok((Finding::confirmed(policy, evidence), trials));
            }
            Err(reason) => failed.push(reason),
        }
    }
    let reason = failed.pop().unwrap_or_else(|| "too few attempts agree".into());
    Ok((Finding::NotDetermined { reason, evidence: failed, asked: true }, trials.concat()))
}

/// All that looking at a level takes.
struct PolicyTest<'a> {
    level: &'a LevelMeter,
    instrument: SetMeter<'a>,
    known: RuleSet,
    /// Which pages are taken: other ones in each attempt.
    near: usize,
}

impl PolicyTest<'_> {
    /// Two looks that agree. What was measured by them is added to what former attempts have measured.
    fn attempt(
        &self,
        bench: &mut ChainBench<'_>,
        trials: &mut [Vec<Trial>; 2],
    ) -> Result<Result<TlbPolicy, String>, Halt> {
        let expected = |sequence: &TrialSequence| EXPECTED_PERCENT * self.instrument.misses_a_percent(sequence);
        let [first, second] = choose(bench, &self.known, &expected, SEQUENCES)?;
        let proposed = match self.look(bench, &first, TrialRole::Proposes, &mut trials[0])? {
            Ok(policy) => policy,
            Err(reason) => return Ok(Err(reason)),
        };
        // What no rule predicts has to be seen again as it was.
        let again: &[TrialSequence] = if proposed == TlbPolicy::NoneOfThese { &first } else { &[] };
        let second: Vec<TrialSequence> = second.iter().chain(again).cloned().collect();
        let confirmed = self.look(bench, &second, TrialRole::Confirms, &mut trials[1])?;
        for old in &trials[0] {
            if let Some(new) = trials[1].iter().find(|new| new.sequence() == old.sequence()) {
                if (new.misses - old.misses).abs() > new.allowed + old.allowed {
                    let (a, b) = (old.misses, new.misses);
                    return Ok(Err(format!("a sequence had {a:.1} misses, and {b:.1} with other pages")));
                }
            }
        }
        let all = self.verdict(&trials.concat());
        Ok(match confirmed {
            Ok(confirmed) if confirmed == proposed && all == Ok(confirmed) => Ok(confirmed),
            Ok(confirmed) if confirmed == proposed => {
                let all = all.map_or_else(|reason| reason, |policy| policy.to_string());
                Err(format!("both looks read {proposed}, but with all before them: {all}"))
            }
            Ok(other) => Err(format!("one look reads {proposed}, another {other}")),
            Err(reason) => Err(format!("one look reads {proposed}; another: {reason}")),
        })
    }

    /// What sequences say, alone or with those before.
    fn look(
        &self,
        bench: &mut ChainBench<'_>,
        sequences: &[TrialSequence],
        role: TrialRole,
        trials: &mut Vec<Trial>,
    ) -> Result<Result<TlbPolicy, String>, Halt> {
        let before = trials.len();
        for sequence in sequences {
            match self.trial(bench, sequence, role)? {
                Ok(trial) => trials.push(trial),
                Err(reason) => return Ok(Err(reason)),
            }
        }
        Ok(self.verdict(&trials[before..]).or_else(|_| self.verdict(trials)))
    }

    /// Measures a sequence, more often where measurements differ.
    fn trial(
        &self,
        bench: &mut ChainBench<'_>,
        sequence: &TrialSequence,
        role: TrialRole,
    ) -> Result<Result<Trial, String>, Halt> {
        let within = |m: &SequenceMisses| {
            WITHIN_PERCENT * m.misses_a_percent + WITHIN_SPREADS * m.spread + WITHIN * m.misses.abs()
        };
        let expected = EXPECTED_PERCENT * self.instrument.misses_a_percent(sequence);
        let mut measured = self.instrument.measure(bench, sequence, TIMES.0, self.near)?;
        let sane = |m: &SequenceMisses| {
            let part = m.miss_ticks / self.level.miss_ticks;
            (SANE.0..SANE.1).contains(&part)
        };
        if !sane(&measured) || within(&measured) > expected + WITHIN * measured.misses.abs() {
            measured = self.instrument.measure(bench, sequence, TIMES.1, self.near)?;
        }
        if !sane(&measured) {
            let (now, before) = (measured.miss_ticks, self.level.miss_ticks);
            return Ok(Err(format!("a miss adds {now:.1} ticks here, and {before:.1} when the geometry was found")));
        }
        let Some(predicted) = self.known.predict(sequence) else {
            return Ok(Err("a sequence that says nothing".to_string()));
        };
        let (history, looks) = sequence.pages.split_at(sequence.pages.len() - sequence.looks);
        Ok(Ok(Trial {
            role,
            reset: sequence.reset,
            history: history.to_vec(),
            looks: looks.to_vec(),
            misses: measured.misses,
            spread: measured.spread,
            allowed: within(&measured),
            predicted: self.known.rules.iter().map(|(name, ..)| name.clone()).zip(predicted).collect(),
        }))
    }

    /// How far off a rule is, in parts of what is allowed, the trials where it is furthest off first; but for one in so
    /// many trials, which may have been disturbed.
    fn offs(&self, trials: &[Trial], rule: usize) -> Vec<f64> {
        let mut offs: Vec<f64> = trials.iter().map(|trial| trial.off(rule)).collect();
        offs.sort_by(|a, b| b.total_cmp(a));
        offs.drain(..trials.len() / DISTURBED);
        offs
    }

    /// The trials that tell a rule from some other policy's speak against it.
    fn is_refuted(&self, trials: &[Trial], rule: usize) -> bool {
        let rivals = (0..self.known.rules.len()).filter(|&rival| self.known.rules[rival].1 != self.known.rules[rule].1);
        rivals.into_iter().any(|rival| {
            let tells =
                |trial: &&Trial| trial.predicted[rule].1.apart(&trial.predicted[rival].1) > APART * trial.allowed;
            let telling: Vec<&Trial> = trials.iter().filter(tells).collect();
            let against = telling.iter().filter(|trial| trial.off(rule) >= OUT).count();
            against >= REFUTING.0 && against as f64 >= REFUTING.1 * telling.len() as f64
        })
    }

    /// The policy that alone predicts the trials.
    fn verdict(&self, trials: &[Trial]) -> Result<TlbPolicy, String> {
        let judged = |rule| (self.offs(trials, rule), self.is_refuted(trials, rule));
        let judged: Vec<(Vec<f64>, bool)> = (0..self.known.rules.len()).map(judged).collect();
        let rules = || judged.iter().zip(&self.known.rules);
        let mut policies: Vec<TlbPolicy> = rules()
            .filter(|((offs, refuted), _)| offs[0] <= 1.0 && !refuted)
            .map(|(_, (_, policy, _))| *policy)
            .collect();
        policies.sort();
        policies.dedup();
        let out = |offs: &[f64]| match policies.is_empty() {
            false => offs[0] >= OUT,
            true => offs[0] >= NONE || offs.get(NONE_OFTEN.0).is_some_and(|&off| off >= NONE_OFTEN.1),
        };
        // Other rules than the four need only not fit.
        let foil = |policy: TlbPolicy| policy == TlbPolicy::NoneOfThese && !policies.is_empty();
        let unsure = rules().find(|((offs, refuted), (_, policy, _))| {
            !refuted && !out(offs) && !policies.contains(policy) && !foil(*policy)
        });
        let words = policies.iter().map(TlbPolicy::to_string).collect::<Vec<_>>().join(", ");
        match (&policies[..], unsure) {
            ([], None) => Ok(TlbPolicy::NoneOfThese),
            (&[policy], None) => Ok(policy),
            ([], Some(((offs, _), (name, ..)))) => {
                Err(format!("nearest {name}, off by {:.1} times what is allowed", offs[0]))
            }
            (_, Some((_, (name, ..)))) => Err(format!("besides {words}, {name} is not ruled out")),
            (_, None) => Err(format!("several policies fit: {words}")),
        }
    }

    /// The rules that fit best, in words.
    fn evidence(&self, policy: TlbPolicy, trials: &[Trial]) -> Vec<String> {
        let rules = self.known.rules.iter().enumerate();
        let mut offs: Vec<(f64, &str)> =
            rules.map(|(i, (name, ..))| (self.offs(trials, i)[0], name.as_str())).collect();
        offs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let lines = offs.iter().map(|(off, name)| format!("{name}: off by at most {off:.1} times what is allowed"));
        let mut lines: Vec<String> = lines.collect();
        if policy == TlbPolicy::NoneOfThese {
            lines[0].insert_str(0, "nearest: ");
        }
        lines
    }

    /// The shortest sequence that tells the confirmed policy from all others, measured.
    fn telling(&self, bench: &mut ChainBench<'_>, policy: TlbPolicy, trials: &[Trial]) -> Result<Option<Trial>, Halt> {
        if policy == TlbPolicy::NoneOfThese {
            // What nobody can play cannot be shortened on paper.
            let alone = trials.iter().filter(|trial| self.verdict(std::slice::from_ref(trial)) == Ok(policy));
            let shortest = alone.min_by_key(|trial| trial.len()).cloned();
            return Ok(shortest.map(|trial| Trial { role: TrialRole::Telling, ..trial }));
        }
        let allowed = |sequence: &TrialSequence| EXPECTED_PERCENT * self.instrument.misses_a_percent(sequence);
        let measured = trials.iter().map(Trial::sequence).collect();
        for sequence in shrink(bench, &self.known, &allowed, policy, measured)? {
            if let Ok(trial) = self.trial(bench, &sequence, TrialRole::Telling)? {
                if self.verdict(std::slice::from_ref(&trial)) == Ok(policy) {
                    return Ok(Some(trial));
                }
            }
        }
        Ok(None)
    }
}
