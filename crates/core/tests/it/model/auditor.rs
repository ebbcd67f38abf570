//! The auditor: knows of each action only what DESIGN says about starting things, and watches the journal.

use std::collections::{BTreeMap, BTreeSet};

use holdpoint_core::{
    ActionId, Decision, Digest, Effect, Entry, Event, Fate, Finish, Lookup, Outcome, Params,
    PrincipalKind, Verdict,
};

use crate::thread::TENANT;

/// What the auditor knows of an action.
#[derive(Debug, Default)]
pub(super) struct Watched {
    write: bool,
    compensation: bool,
    /// A person must allow it.
    gated: bool,
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
    key: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Auditor {
    pub(super) actions: BTreeMap<ActionId, Watched>,
    stopped: bool,
}

impl Auditor {
    fn watched(&mut self, id: ActionId) -> &mut Watched {
        self.actions
            .get_mut(&id)
            .expect("an action nobody asked for")
    }

    pub(super) fn see(&mut self, entry: &Entry) {
        match &entry.event {
            Event::RunStarted { .. } => self.stopped = false,
            Event::ModelReplied { calls, .. } => {
                for called in calls {
                    if let Fate::Action {
                        id,
                        version,
                        effect,
                        verdict,
                        ..
                    } = &called.fate
                    {
                        let params = Params::parse(&called.call.arguments).unwrap();
                        let watched = Watched {
                            write: *effect == Effect::Write,
                            gated: *verdict != Verdict::Allow,
                            tool: called.call.name.clone(),
                            hash: params.hash(&called.call.name, version),
                            params,
                            ..Watched::default()
                        };
                        assert!(self.actions.insert(*id, watched).is_none(), "an id twice");
                    }
                }
            }
            Event::Answered { decisions, .. } => {
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
                let keys = self
                    .actions
                    .iter()
                    .filter(|(id, other)| *id != action && !other.compensation);
                let keys: BTreeSet<_> = keys.filter_map(|(_, other)| other.key.clone()).collect();
                let stopped = self.stopped;
                let watched = self.watched(*action);
                assert!(!watched.closed, "a closed action was started");
                assert!(!stopped || watched.compensation, "started after the stop");
                assert!(
                    !watched.gated || watched.allowed == Some(watched.hash),
                    "nobody allowed it"
                );
                assert!(
                    !watched.write || watched.starts == 0 || watched.cleared,
                    "a write was repeated blindly"
                );
                assert!(
                    !watched.write || !watched.done,
                    "a write that was done was started again"
                );
                assert!(
                    watched.key.is_none() || watched.key.as_ref() == Some(key),
                    "another key"
                );
                assert!(
                    watched.compensation || !keys.contains(key),
                    "another action's key"
                );
                assert_eq!(*attempt, watched.starts + 1);
                (watched.starts, watched.cleared) = (*attempt, false);
                watched.key = Some(key.clone());
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
            } => self.watched(*action).done = true,
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
                    original.starts > 0 && original.write,
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
            Event::Repinned { actions, .. } => {
                for restated in actions {
                    let watched = self.watched(restated.action);
                    assert_eq!(watched.starts, 0, "what was started was restated");
                    watched.hash = watched.params.hash(&watched.tool, &restated.tool.version);
                    (watched.gated, watched.allowed) = (true, None);
                }
            }
            Event::WarrantVoided { action, .. } => {
                let watched = self.watched(*action);
                (watched.gated, watched.allowed) = (true, None);
            }
            Event::StopRequested { closed, .. } => {
                self.stopped = true;
                for action in closed {
                    self.watched(*action).closed = true;
                }
            }
            _ => {}
        }
    }

    fn decided(&mut self, id: ActionId, decision: &Decision, about: Option<Digest>) {
        let watched = self.watched(id);
        match decision {
            Decision::Approve => {
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
            Decision::NotCommitted => watched.cleared = true,
            Decision::Compensate => {}
        }
    }
}
