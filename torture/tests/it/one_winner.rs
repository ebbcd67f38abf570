//! Exactly one answer wins, however many come at once.

use crate::{
    contest::Arena,
    duel::{ANSWERS, Duel, Stand},
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
        arena.fight(&session).count(&session, &mut tally);
    }
    tally.conclude();
}

#[test]
fn of_a_hundred_different_answers_from_two_processes_exactly_one_wins() {
    let questions = Effort::asked_for().pick(20, 1_000);
    let mut tally = Tally::new(
        "one winner",
        format!(
            "{questions} questions, {} different answers each",
            2 * ANSWERS
        ),
    );
    let mut duel = Duel::new(Build::Sound);
    let before = duel.ledger().effect_count();
    let stands = [
        Stand::Waiting,
        Stand::Waiting,
        Stand::Paused,
        Stand::Waiting,
    ];
    let numbered = (0..questions).zip(stands.into_iter().cycle());
    let parked: Vec<_> = numbered
        .map(|(number, stand)| duel.park(number, stand))
        .collect();
    let (mut winners, mut counted) = (Vec::new(), 0);
    for (number, parked) in parked.iter().enumerate() {
        let fought = duel.fight(parked);
        tally.effects += fought.effects;
        counted += usize::from(fought.commits.is_some());
        winners.extend(fought.winners);
        tally.judge(&format!("q{number}"), 0, &fought.problems);
    }
    let effects = duel.ledger().effect_count() - before;
    let by_one = winners.iter().filter(|by| by.starts_with("one-")).count();
    println!(
        "{} winners, {by_one} of them in one process; commits counted for {counted} questions",
        winners.len()
    );
    tally.conclude();
    assert_eq!((winners.len(), effects), (questions, questions));
    assert!(counted * 10 >= questions * 9, "{counted} questions counted");
}

#[test]
fn questions_of_several_stores_do_not_disturb_each_other() {
    let mut tally = Tally::new("one winner", "several stores at once");
    let stores: Vec<usize> = (0..Effort::asked_for().pick(4, 16)).collect();
    let contests = pool::each(&stores, |_| Arena::new(Build::Sound).fight("s"));
    for (store, contest) in stores.iter().zip(contests) {
        contest.count(&format!("store {store}"), &mut tally);
    }
    tally.conclude();
}
