//! The ledger, read as an outsider: what really happened, whatever any process of ours believes.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value;

/// What was done.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger(Vec<Value>);

impl Ledger {
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        let lines = text.lines().map(serde_json::from_str);
        Self(lines.collect::<Result<_, _>>().unwrap())
    }

    /// Every effect: what was done, and how often. The key is left out, since under two keys it would be done twice too.
    pub(crate) fn effects(&self) -> BTreeMap<(String, String), usize> {
        let mut effects = BTreeMap::new();
        for line in self.0.iter().filter(|line| line["key"].is_string()) {
            let word = |name: &str| line["args"][name].as_str().unwrap_or_default().to_owned();
            *effects
                .entry((word("order_id"), word("amount")))
                .or_default() += 1;
        }
        effects
    }

    pub(crate) fn effect_count(&self) -> usize {
        self.effects().values().sum()
    }

    /// How often something was done under a key.
    pub(crate) fn done(&self, key: &str) -> usize {
        self.count("key", key)
    }

    /// The amount of everything that was done under a key.
    pub(crate) fn amounts(&self, key: &str) -> Vec<&str> {
        let done = self.0.iter().filter(|line| line["key"] == *key);
        done.filter_map(|line| line["args"]["amount"].as_str())
            .collect()
    }

    /// How often something was undone under a key.
    pub(crate) fn undone(&self, key: &str) -> usize {
        self.count("reverses", key)
    }

    /// How often anything was done or undone.
    pub(crate) fn acts(&self) -> usize {
        self.effect_count() + self.reversal_count()
    }

    /// How often somebody was about to act, where that is noted.
    pub(crate) fn attempts(&self) -> usize {
        let attempts = self.0.iter().filter(|line| line["attempt"].is_string());
        attempts.count()
    }

    pub(crate) fn reversal_count(&self) -> usize {
        let reversals = self.0.iter().filter(|line| line["reverses"].is_string());
        reversals.count()
    }

    fn count(&self, kind: &str, key: &str) -> usize {
        self.0.iter().filter(|line| line[kind] == *key).count()
    }
}
