//! Several processes answer one question at once.

use crate::{
    process::Ended,
    programs::Build,
    report::Tally,
    scenario::Scenario,
    trace::Trace,
    world::{Setting, World},
};

const RIVALS: usize = 8;

/// What came of one question.
#[derive(Debug, Default)]
pub(crate) struct Contest {
    pub(crate) winners: usize,
    /// The winner's call was cut off at its deadline, as can happen on a busy machine, and a person is asked about it.
    pub(crate) waited: bool,
    pub(crate) effects: usize,
    pub(crate) problems: Vec<String>,
}

impl Contest {
    /// Adds it to what came of others.
    pub(crate) fn count(&self, label: &str, tally: &mut Tally) {
        tally.effects += self.effects;
        tally.judge(label, usize::from(self.waited), &self.problems);
    }

    /// Whether one answer counted twice.
    pub(crate) fn is_doubled(&self) -> bool {
        self.winners > 1 || self.effects > 1
    }
}

/// A store in which one question after another is fought over.
#[derive(Debug)]
pub(crate) struct Arena {
    world: World,
}

impl Arena {
    pub(crate) fn new(build: Build) -> Self {
        Self::on(build, &Scenario::write_without_lookup())
    }

    /// Where this is asked.
    pub(crate) fn on(build: Build, scenario: &Scenario) -> Self {
        Self {
            world: World::new(build, scenario),
        }
    }

    /// Asks a question and has all rivals approve it at once.
    pub(crate) fn fight(&self, session: &str) -> Contest {
        let mut contest = Contest::default();
        let before = self.world.ledger().effect_count();
        let asked = self.world.run(session, &Setting::PLAIN);
        let view = asked.only_line();
        let Some(question) = view["__interrupt__"][0]["id"].as_str() else {
            contest.problems.push(asked.explain());
            return contest;
        };
        let words = ["resume", session, "--interrupt", question, "--approve"];
        let rivals: Vec<_> = (0..RIVALS)
            .map(|_| self.world.spawn(&words, &Setting::PLAIN))
            .collect();
        let ended: Vec<Ended> = rivals.into_iter().map(|rival| rival.wait()).collect();
        for rival in &ended {
            match (rival.code(), rival.error_code()) {
                (Some(0), _) => contest.winners += 1,
                (Some(3), _) if rival.only_line()["cause"] == "write_unknown" => {
                    contest.winners += 1;
                    contest.waited = true;
                }
                (Some(4), Some("already_decided")) => {}
                (_, _) => contest.problems.push(rival.explain()),
            }
        }
        contest.effects = self.world.ledger().effect_count() - before;
        self.judge(session, &mut contest);
        contest
    }

    fn judge(&self, session: &str, contest: &mut Contest) {
        match Trace::read(&self.world, session) {
            Ok(trace) if trace.answers().values().sum::<usize>() == 1 => {}
            Ok(trace) => contest
                .problems
                .push(format!("answered: {:?}", trace.answers())),
            Err(problem) => contest.problems.push(problem),
        }
        // A call that was cut off may have been so before it acted.
        let effects = if contest.waited { 0..=1 } else { 1..=1 };
        if contest.winners != 1 || !effects.contains(&contest.effects) {
            let Contest {
                winners, effects, ..
            } = contest;
            contest
                .problems
                .push(format!("{winners} winners, {effects} effects"));
        }
    }
}
