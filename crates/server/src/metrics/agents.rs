//! Agents' names as labels: only so many, because every one of them is a series for ever.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

/// How many agents are told apart.
pub(super) const MOST: usize = 100;

/// What all others are called.
pub(super) const OTHER: &str = "other";

/// The agents that are told apart.
#[derive(Debug, Default)]
pub(super) struct Agents {
    known: Mutex<HashSet<Arc<str>>>,
}

impl Agents {
    /// What an agent is called.
    pub(super) fn label(&self, name: &str) -> Arc<str> {
        // What a poisoned lock holds is whole: a name is inserted or not.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(name) {
            return Arc::clone(known);
        }
        if known.len() >= MOST {
            return OTHER.into();
        }
        let label: Arc<str> = name.into();
        known.insert(Arc::clone(&label));
        label
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_agents_are_told_apart_and_the_rest_are_one() {
        let agents = Agents::default();
        let labels: HashSet<Arc<str>> = (0..1_000)
            .map(|at| agents.label(&format!("agent-{at}")))
            .collect();
        assert_eq!(labels.len(), MOST + 1);
        assert_eq!(&*agents.label("agent-99"), "agent-99");
        assert_eq!(&*agents.label("agent-100"), OTHER);
        assert_eq!(&*agents.label("agent-7"), "agent-7");
    }
}
