//! A new input while a run stands still, and commands that name their run.

use holdpoint_core::{
    Command, Confirmation, Effect, Event, FramePath, Hooks, Limits, ModelTrouble, Refusal,
    RunOutcome, Status, Supersede,
};

use crate::thread::{Thread, held, names, plain, user};

fn anew(supersede: Supersede) -> Command {
    let mut start = Thread::start_command(Limits::default());
    if let Command::StartRun {
        supersede: wanted, ..
    } = &mut start
    {
        *wanted = supersede;
    }
    start
}

fn asked() -> Thread {
    let mut thread = Thread::thinking();
    thread.confirm = Some(Confirmation::standard());
    thread.reply("Are you sure?", vec![]);
    thread
}

fn failed() -> Thread {
    let mut thread = Thread::thinking();
    thread.drive(Command::ModelFailed {
        frame: FramePath::root(),
        attempt: 1,
        trouble: ModelTrouble::Rejected {
            error: "401".to_owned(),
        },
    });
    thread
}

#[test]
fn a_run_that_waits_makes_way_in_one_append() {
    for mut thread in [asked(), Thread::asked(vec![held("c1", "{}")]), failed()] {
        let old = thread.state.run.as_ref().unwrap().id;
        let events = thread.tell(user("ann"), anew(Supersede::Waiting)).unwrap();
        let expected = [
            "interrupt_closed",
            "stop_requested",
            "run_ended",
            "run_started",
        ];
        assert_eq!(names(&events), expected);
        let cancelled = Event::RunEnded {
            outcome: RunOutcome::Cancelled,
        };
        assert_eq!(events[2], cancelled);
        assert_ne!(thread.state.run.as_ref().unwrap().id, old);
        assert_eq!(thread.state.status(), Some(Status::Running));
        assert!(thread.state.interrupts.is_empty() && thread.state.actions.is_empty());
    }
}

#[test]
fn a_run_whose_model_failed_makes_way_for_whoever_only_wants_to_go_on() {
    let events = failed().tell(user("ann"), anew(Supersede::Failed));
    assert_eq!(events.unwrap().len(), 4);
    let refused = asked().tell(user("ann"), anew(Supersede::Failed));
    assert_eq!(refused.unwrap_err().code(), "interrupt_pending");
    let refused = failed().tell(user("ann"), anew(Supersede::Nothing));
    assert_eq!(refused.unwrap_err().code(), "interrupt_pending");
}

#[test]
fn what_is_in_the_air_or_in_doubt_makes_way_for_nothing() {
    let mut thinking = Thread::thinking();
    let refused = thinking.tell(user("ann"), anew(Supersede::Waiting));
    assert_eq!(refused, Err(Refusal::RunActive));
    let (mut doubtful, action) = Thread::started(Effect::Write, Hooks::default());
    doubtful.end(action, 1, crate::thread::lost());
    let before = doubtful.state.clone();
    let refused = doubtful.tell(user("ann"), anew(Supersede::Waiting));
    assert_eq!(refused.unwrap_err().code(), "interrupt_pending");
    assert_eq!(doubtful.state, before);
    let (mut started, _) = Thread::started(Effect::Write, plain());
    let refused = started.tell(user("ann"), anew(Supersede::Waiting));
    assert_eq!(refused, Err(Refusal::RunActive));
}

#[test]
fn a_command_for_a_run_that_is_over_does_not_reach_the_next_one() {
    let mut thread = asked();
    let old = thread.state.run.as_ref().map(|run| run.id);
    thread.tell(user("ann"), anew(Supersede::Waiting)).unwrap();
    let new = thread.state.run.as_ref().map(|run| run.id);
    let commands = [
        |run| Command::Pause { run },
        |run| Command::Continue { run },
        |run| Command::Cancel { run },
    ];
    for command in commands {
        let refused = thread.tell(user("ann"), command(old));
        assert_eq!(refused, Err(Refusal::RunOver));
    }
    for command in commands {
        assert!(thread.tell(user("ann"), command(new)).is_ok());
    }
}

#[test]
fn an_agent_stops_its_own_runs_only_and_lets_none_go_on() {
    let bot = holdpoint_core::Principal::new(
        holdpoint_core::PrincipalKind::Agent,
        crate::thread::TENANT,
        "bot",
    );
    let mut anns = asked();
    for command in [
        Command::Cancel { run: None },
        Command::Pause { run: None },
        Command::Continue { run: None },
    ] {
        let refused = anns.tell(bot.clone(), command);
        assert_eq!(refused.unwrap_err().code(), "forbidden");
    }
    let refused = anns.tell(bot.clone(), anew(Supersede::Waiting));
    assert_eq!(refused.unwrap_err().code(), "interrupt_pending");
    let mut own = Thread::new();
    own.tell(bot.clone(), Thread::start_command(Limits::default()))
        .unwrap();
    own.tell(bot.clone(), Command::Pause { run: None }).unwrap();
    let refused = own.tell(bot.clone(), Command::Continue { run: None });
    assert_eq!(refused.unwrap_err().code(), "forbidden");
    assert!(own.tell(bot, Command::Cancel { run: None }).is_ok());
}
