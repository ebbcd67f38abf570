//! Exactly one answer wins, however many come at once.

use crate::{
    contest::Arena,
    pool,
    programs::{Build, Effort},
    report::Tally,
};

#[test]
fn of_many_processes_that_answer_at_once_exactly_one_wins() {
    let rounds = Effort::asked_for().pick(12, 200);
    let mut tally = Tally::new(
        "one winner",
        format!("{rounds} questions, 8 processes each"),
    );
    let arena = Arena::new(Build::Sound);
    for round in 0..rounds {
        let session = format!("q{round}");
        let contest = arena.fight(&session);
        tally.points += 1;
        tally.effects += contest.effects;
        if contest.problems.is_empty() {
            tally.passed += usize::from(!contest.waited);
            tally.waited += usize::from(contest.waited);
        } else {
            let problems = contest.problems.join("\n  ");
            tally.violations.push(format!("{session}:\n  {problems}"));
        }
    }
    tally.conclude();
}

#[test]
fn questions_of_several_stores_do_not_disturb_each_other() {
    let mut tally = Tally::new("one winner", "several stores at once");
    let stores: Vec<usize> = (0..Effort::asked_for().pick(4, 16)).collect();
    let contests = pool::each(&stores, |_| Arena::new(Build::Sound).fight("s"));
    for contest in contests {
        tally.points += 1;
        tally.effects += contest.effects;
        if contest.problems.is_empty() {
            tally.passed += usize::from(!contest.waited);
            tally.waited += usize::from(contest.waited);
        } else {
            tally.violations.push(contest.problems.join("\n  "));
        }
    }
    tally.conclude();
}
