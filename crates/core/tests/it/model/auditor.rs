//! The auditor: knows of each action only what DESIGN says about starting things, and watches the journal.

use std::collections::{BTreeMap, BTreeSet};

use holdpoint_core::{
    ActionId, AfterUnknown, Ask, Decision, Digest, Effect, Entry, Event, Fate, Finish, FramePath,
    Grant, GrantId, Interrupt, InterruptId, InterruptKind, Lookup, Outcome, Params, PrincipalKind,
    Scope, Subject, ToolKind, Verdict,
};

use crate::thread::TENANT;

/// What the auditor knows of an action.
#[derive(Debug, Default)]
pub(super) struct Watched {
    write: bool,
    /// It leaves something behind: neither a read nor an entry of a stepped tool.
    has_effect: bool,
    compensation: bool,
    stepped: bool,
    frame: FramePath,
    /// The grant that lets it pass.
    grant: Option<GrantId>,
    /// A person must allow it.
    gated: bool,
    /// Guardrails have found something about it.
    flagged: bool,
    tool: String,
    params: Params,
    /// The one call that may run.
    hash: Digest,
    /// The call that a person allowed.
    allowed: Option<Digest>,
    starts: u32,
    /// Since the last start a lookup said not found, or a person not committed.
    cleared: bool,
    /// An attempt reported that it took effect.
    done: bool,
    closed: bool,
    /// It was found in a backup, and may have been made elsewhere.
    doubted: bool,
    key: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Auditor {
    pub(super) actions: BTreeMap<ActionId, Watched>,
    stopped: bool,
    paused: bool,
    /// The frames that stand at breakpoints.
    held: BTreeMap<InterruptId, FramePath>,
    /// The questions whether a restored run goes on.
    restored: BTreeSet<InterruptId>,
    /// What people granted in this thread, with how often it was used.
    grants: BTreeMap<GrantId, Grant>,
    tasks: BTreeMap<FramePath, ActionId>,
    /// What is held back in each frame: the words, and whether a person lets them be said.
    words: BTreeMap<FramePath, (String, bool)>,
    /// About which frame's words the questions are.
    reviews: BTreeMap<InterruptId, FramePath>,
}

impl Auditor {
    fn watched(&mut self, id: ActionId) -> &mut Watched {
        self.actions
            .get_mut(&id)
            .expect("an action nobody asked for")
    }

    /// Nothing starts in this frame now, unless it undoes something.
    fn expect_going(&self, frame: &FramePath) {
        assert!(!self.stopped, "started after the stop");
        assert!(!self.paused, "started during the pause");
        let mut held = self.held.values();
        assert!(!held.any(|held| held == frame), "started at a breakpoint");
        assert!(self.restored.is_empty(), "nobody said that it goes on");
    }

    /// Somebody allowed exactly this.
    fn expect_right(&self, id: ActionId) {
        let watched = &self.actions[&id];
        let allowed = watched.allowed == Some(watched.hash);
        assert!(
            !watched.gated || allowed || watched.grant.is_some(),
            "nobody allowed it"
        );
        let grant = watched.grant.filter(|_| !allowed);
        if let Some(grant) = grant.and_then(|grant| self.grants.get(&grant)) {
            assert!(!grant.revoked, "the grant was taken back");
        }
    }

    fn see_use(&mut self, grant: GrantId) {
        let grant = self.grants.get_mut(&grant).expect("a grant nobody gave");
        grant.used += 1;
        assert!(!grant.revoked, "a grant was used that was taken back");
        let enough = grant.terms.uses.is_none_or(|uses| grant.used <= uses);
        assert!(enough, "a grant was used too often");
    }

    pub(super) fn see(&mut self, entry: &Entry) {
        match &entry.event {
            Event::RunStarted { .. } => {
                (self.stopped, self.paused) = (false, false);
                self.words.clear();
            }
            Event::OutputHeld { frame, reply, .. } => {
                let words = (reply.text.clone(), false);
                assert!(
                    self.words.insert(frame.clone(), words).is_none(),
                    "held twice"
                );
            }
            Event::Paused => self.paused = true,
            Event::Continued => self.paused = false,
            Event::InterruptRaised(interrupt) => {
                self.see_review(interrupt);
                let node = |subject: &Subject| matches!(subject, Subject::Node { .. });
                if interrupt.asks.iter().any(|ask| node(&ask.subject)) {
                    self.held.insert(interrupt.id, interrupt.frame.clone());
                }
                let restored = |subject: &Subject| matches!(subject, Subject::Restored { .. });
                if interrupt.asks.iter().any(|ask| restored(&ask.subject)) {
                    self.restored.insert(interrupt.id);
                }
            }
            Event::InterruptClosed {
                interrupt,
                rejected,
                ..
            } => {
                self.held.remove(interrupt);
                self.restored.remove(interrupt);
                for action in rejected {
                    self.watched(*action).closed = true;
                }
            }
            Event::GrantRevoked { grant } => {
                let grant = self.grants.get_mut(grant);
                grant.expect("a grant nobody gave").revoked = true;
            }
            Event::FrameOpened { frame, action, .. } => {
                self.expect_right(*action);
                let watched = self.watched(*action);
                assert!(!watched.closed && watched.starts == 0, "a task given twice");
                watched.starts = 1;
                let parent = watched.frame.clone();
                self.expect_going(&parent);
                let before = self.tasks.insert(frame.clone(), *action);
                assert_ne!(before, Some(*action), "a path used twice");
            }
            Event::FrameClosed { frame } => {
                let task = self.tasks[frame];
                self.watched(task).closed = true;
            }
            Event::StepStarted {
                action,
                step,
                attempt,
                key,
                effect,
                params,
                ..
            } => {
                self.expect_right(*action);
                let call = self.watched(*action);
                assert!(
                    call.stepped && !call.closed && call.starts > 0,
                    "not entered"
                );
                let (frame, tool) = (call.frame.clone(), call.tool.clone());
                self.expect_going(&frame);
                let fresh = || Watched {
                    write: *effect == Effect::Write,
                    has_effect: *effect != Effect::Read,
                    frame,
                    tool,
                    params: params.clone(),
                    ..Watched::default()
                };
                self.actions.entry(*step).or_insert_with(fresh);
                assert_eq!(self.watched(*step).params, *params, "another step");
                self.started(*step, *attempt, key);
            }
            Event::ActionUnknown {
                action,
                then: AfterUnknown::GiveUp,
                ..
            } => self.watched(*action).closed = true,
            Event::ActionWithheld { action, .. } => {
                let watched = self.watched(*action);
                assert!(watched.starts > 0 && !watched.closed, "not in flight");
                watched.cleared = true;
            }
            Event::ModelStarted { frame, .. } => {
                self.expect_going(frame);
                assert!(
                    !self.words.contains_key(frame),
                    "asked again, with words held back"
                );
            }
            Event::ModelReplied {
                frame, calls, text, ..
            } => {
                if let Some((words, cleared)) = self.words.remove(frame) {
                    let by_person = entry.header.by.kind == PrincipalKind::User && calls.is_empty();
                    assert!(
                        by_person || cleared && words == *text,
                        "nobody let that be said"
                    );
                }
                for called in calls {
                    if let Fate::Action {
                        id,
                        version,
                        effect,
                        verdict,
                        kind,
                        grant,
                        ..
                    } = &called.fate
                    {
                        if let Some(used) = grant {
                            assert!(matches!(verdict, Verdict::Ask(terms) if !terms.always_ask));
                            self.see_use(used.grant);
                        }
                        let params = Params::parse(&called.call.arguments).unwrap();
                        let watched = Watched {
                            write: *effect == Effect::Write && *kind == ToolKind::Plain,
                            has_effect: *effect != Effect::Read && *kind == ToolKind::Plain,
                            stepped: *kind == ToolKind::Stepped,
                            frame: frame.clone(),
                            grant: grant.as_ref().map(|used| used.grant),
                            gated: *verdict != Verdict::Allow,
                            flagged: !verdict.flags().is_empty(),
                            tool: called.call.name.clone(),
                            hash: params.hash(&called.call.name, version),
                            params,
                            ..Watched::default()
                        };
                        assert!(self.actions.insert(*id, watched).is_none(), "an id twice");
                    }
                }
            }
            Event::Answered {
                interrupt,
                decisions,
                ..
            } => {
                self.held.remove(interrupt);
                self.restored.remove(interrupt);
                let given = decisions.iter().filter_map(|it| it.grant.as_deref());
                for grant in given.filter(|it| it.terms.scope == Scope::Thread) {
                    self.grants.insert(grant.id, grant.clone());
                }
                if let Some(frame) = self.reviews.remove(interrupt) {
                    match &decisions[0].decision {
                        Decision::Approve { .. } => {
                            self.words.get_mut(&frame).expect("held").1 = true;
                        }
                        Decision::Reject { .. } => drop(self.words.remove(&frame)),
                        _ => {}
                    }
                }
                assert_ne!(entry.header.by.kind, PrincipalKind::Agent);
                assert_eq!(entry.header.by.tenant, TENANT);
                for decided in decisions {
                    if self.actions.contains_key(&decided.action_id) {
                        self.decided(decided.action_id, &decided.decision, decided.params_hash);
                    }
                }
            }
            Event::ActionStarted {
                action,
                attempt,
                key,
                ..
            } => {
                let watched = self.watched(*action);
                let (compensation, frame) = (watched.compensation, watched.frame.clone());
                if !compensation {
                    self.expect_right(*action);
                    self.expect_going(&frame);
                }
                self.started(*action, *attempt, key);
            }
            Event::ActionFinished {
                action, outcome, ..
            } => {
                let watched = self.watched(*action);
                watched.done |= matches!(outcome, Finish::Done { .. });
                watched.closed |= watched.done || !watched.compensation;
            }
            Event::LateOutcome {
                action,
                outcome: Outcome::Done { .. },
                ..
            } => {
                // What an earlier entry of a stepped tool says is of no use.
                let watched = self.watched(*action);
                watched.done |= !watched.stepped;
            }
            Event::ActionLookedUp {
                action,
                lookup: Lookup::NotFound,
                ..
            } => self.watched(*action).cleared = true,
            Event::CompensationBound {
                action,
                compensation,
            } => {
                let original = self.watched(*action);
                assert!(
                    original.starts > 0 && original.has_effect,
                    "there is nothing to undo"
                );
                let bound = Watched {
                    write: true,
                    compensation: true,
                    key: original.key.clone(),
                    ..Watched::default()
                };
                original.closed = true;
                self.actions.insert(*compensation, bound);
            }
            Event::Restored { held, doubted, .. } => {
                self.words.retain(|_, (_, cleared)| !*cleared);
                for id in held {
                    let watched = self.watched(*id);
                    (watched.gated, watched.allowed, watched.grant) = (true, None, None);
                }
                for id in doubted {
                    let watched = self.watched(*id);
                    (watched.doubted, watched.cleared) = (true, false);
                }
                // Whoever was allowed something, and is not asked about, must have been forgotten.
                for (id, watched) in &self.actions {
                    let waits = watched.starts == 0 && !watched.closed && !watched.compensation;
                    let allowed = watched.allowed.is_some() || watched.grant.is_some();
                    assert!(
                        !(waits && allowed && !watched.stepped) || self.stopped,
                        "{id} is allowed"
                    );
                }
            }
            Event::Repinned { actions, .. } => {
                for restated in actions {
                    let watched = self.watched(restated.action);
                    assert!(
                        watched.starts == 0 || watched.stepped,
                        "what was started was restated"
                    );
                    watched.hash = watched.params.hash(&watched.tool, &restated.tool.version);
                    // What nobody can approve any more, nobody has to review.
                    watched.flagged &= restated.verdict != Verdict::Deny;
                    (watched.gated, watched.allowed) = (true, None);
                }
            }
            Event::WarrantVoided { action, .. } => {
                let watched = self.watched(*action);
                (watched.gated, watched.allowed) = (true, None);
            }
            Event::StopRequested { closed, .. } => {
                self.stopped = true;
                self.words.clear();
                for action in closed {
                    self.watched(*action).closed = true;
                }
            }
            _ => {}
        }
    }

    /// What guardrails found is asked about as a review, and nothing else is.
    fn see_review(&mut self, interrupt: &Interrupt) {
        let flagged = |ask: &Ask| {
            let call = matches!(ask.subject, Subject::Action { .. });
            call && self.actions[&ask.action_id].flagged
        };
        let held = |ask: &Ask| matches!(ask.subject, Subject::Output { .. });
        let asks = &interrupt.asks;
        let expected = asks.iter().any(|ask| flagged(ask) || held(ask));
        if interrupt.kind != InterruptKind::Error {
            assert_eq!(
                interrupt.kind == InterruptKind::Review,
                expected,
                "{asks:?}"
            );
        }
        if asks.iter().any(held) {
            self.reviews.insert(interrupt.id, interrupt.frame.clone());
        }
    }

    /// A call is made or a step taken.
    fn started(&mut self, id: ActionId, attempt: u32, key: &String) {
        let others = self
            .actions
            .iter()
            .filter(|(other, watched)| **other != id && !watched.compensation);
        let keys: BTreeSet<_> = others.filter_map(|(_, other)| other.key.clone()).collect();
        let watched = self.watched(id);
        assert!(!watched.closed, "what was settled was started again");
        assert!(!watched.doubted, "what may have been done was started");
        assert!(
            !watched.write || watched.starts == 0 || watched.cleared,
            "a write was repeated blindly"
        );
        assert!(!watched.done, "what was done was started again");
        assert!(
            watched.key.is_none() || watched.key.as_ref() == Some(key),
            "another key"
        );
        assert!(
            watched.compensation || !keys.contains(key),
            "another action's key"
        );
        assert_eq!(attempt, watched.starts + 1);
        (watched.starts, watched.cleared) = (attempt, false);
        watched.key = Some(key.clone());
    }

    fn decided(&mut self, id: ActionId, decision: &Decision, about: Option<Digest>) {
        let watched = self.watched(id);
        match decision {
            Decision::Approve { .. } => {
                assert_eq!(about, Some(watched.hash), "something else was approved");
                watched.allowed = about;
            }
            Decision::Edit { edited_action } => {
                watched.params = edited_action.args.clone();
                watched.hash = about.unwrap();
                (watched.allowed, watched.key) = (about, None);
            }
            Decision::Reject { .. } | Decision::Respond { .. } | Decision::Committed { .. } => {
                watched.closed = true
            }
            Decision::NotCommitted => (watched.cleared, watched.doubted) = (true, false),
            Decision::Compensate | Decision::Answer { .. } => {}
        }
    }
}
