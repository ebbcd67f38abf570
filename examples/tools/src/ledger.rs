//! A ledger: a file of JSON lines in which every effect is one line, so that a double effect can be seen.
//!
//! Three kinds of line: an effect `{"key", "epoch", "args", "pid"}`, a reversal `{"reverses", "epoch", "args", "pid"}`
//! and an attempt `{"attempt", "epoch", "pid"}`. Each is appended by a single write and synced before the program goes on.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    process,
};

use anyhow::Context;
use serde_json::{Value, json};

use crate::Call;

/// The ledger at one path.
#[derive(Debug, Clone)]
pub struct Ledger {
    path: PathBuf,
}

/// What a ledger holds, by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// How often each effect happened.
    pub effects: BTreeMap<String, usize>,
    /// How often each was reversed.
    pub reversals: BTreeMap<String, usize>,
    /// How often each was attempted, where attempts are noted.
    pub attempts: BTreeMap<String, usize>,
}

impl Tally {
    /// The keys whose effect happened more than once.
    #[must_use]
    pub fn doubled(&self) -> Vec<&str> {
        self.effects
            .iter()
            .filter(|(_, count)| **count > 1)
            .map(|(key, _)| key.as_str())
            .collect()
    }

    /// As JSON.
    #[must_use]
    pub fn to_value(&self) -> Value {
        json!({
            "effects": self.effects,
            "reversals": self.reversals,
            "attempts": self.attempts,
            "doubled": self.doubled(),
        })
    }
}

impl Ledger {
    /// The ledger at `path`, which need not exist yet.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Acts blindly: one more effect, whatever the ledger holds.
    ///
    /// # Errors
    ///
    /// If the line may not be on disk.
    pub fn act(&self, call: &Call) -> anyhow::Result<Value> {
        self.append(&json!({
            "key": call.key,
            "epoch": call.epoch,
            "args": call.args,
            "pid": process::id(),
        }))?;
        Ok(receipt(&Value::Object(call.args.clone())))
    }

    /// Acts once per key, however often it is called. Every call is noted as an attempt.
    ///
    /// # Errors
    ///
    /// If a line may not be on disk, or the ledger cannot be read.
    pub fn act_once(&self, call: &Call) -> anyhow::Result<Value> {
        // Between looking and acting nobody else may act. The lock goes with the process, even if it is killed.
        let lock = File::create(self.beside("lock")).context("the lock file cannot be made")?;
        lock.lock().context("the ledger cannot be locked")?;
        self.attempt(call)?;
        match self.standing(&call.key)? {
            Some(line) => Ok(receipt(&line["args"])),
            None => self.act(call),
        }
    }

    /// Notes that somebody is about to act.
    ///
    /// # Errors
    ///
    /// If the line may not be on disk.
    pub fn attempt(&self, call: &Call) -> anyhow::Result<()> {
        self.append(&json!({"attempt": call.key, "epoch": call.epoch, "pid": process::id()}))
    }

    /// Reverses an effect, blindly.
    ///
    /// # Errors
    ///
    /// If the line may not be on disk.
    pub fn reverse(&self, call: &Call) -> anyhow::Result<Value> {
        self.append(&json!({
            "reverses": call.key,
            "epoch": call.epoch,
            "args": call.args,
            "pid": process::id(),
        }))?;
        Ok(json!({"reversed": call.args}))
    }

    /// Whether the effect of this key stands, in the words of a lookup.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn look_up(&self, key: &str) -> anyhow::Result<Value> {
        Ok(match self.standing(key)? {
            Some(line) => json!({"status": "committed", "receipt": receipt(&line["args"])}),
            None => json!({"status": "not_found"}),
        })
    }

    /// Counts what the ledger holds.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn tally(&self) -> anyhow::Result<Tally> {
        let mut tally = Tally::default();
        for line in self.lines()? {
            for (kind, counts) in [
                ("key", &mut tally.effects),
                ("reverses", &mut tally.reversals),
                ("attempt", &mut tally.attempts),
            ] {
                if let Some(key) = line[kind].as_str() {
                    *counts.entry(key.to_owned()).or_default() += 1;
                }
            }
        }
        Ok(tally)
    }

    /// The first line of an effect that has not been reversed as often as it happened.
    fn standing(&self, key: &str) -> anyhow::Result<Option<Value>> {
        let lines = self.lines()?;
        let named = |kind: &str| lines.iter().filter(|line| line[kind] == *key).count();
        if named("key") <= named("reverses") {
            return Ok(None);
        }
        Ok(lines.iter().find(|line| line["key"] == *key).cloned())
    }

    fn lines(&self) -> anyhow::Result<Vec<Value>> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).context("the ledger cannot be read"),
        };
        // A line that cannot be read is an error: leaving it out could hide an effect.
        text.lines()
            .map(|line| {
                serde_json::from_str(line).with_context(|| format!("not a ledger line: `{line}`"))
            })
            .collect()
    }

    fn append(&self, line: &Value) -> anyhow::Result<()> {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path)
            .context("the ledger cannot be opened")?;
        let bytes = format!("{line}\n").into_bytes();
        // DURABILITY: one write, so that lines of several processes never mix; then on disk, before anything is said.
        let written = file.write(&bytes).context("the ledger cannot be written")?;
        anyhow::ensure!(
            written == bytes.len(),
            "the ledger took only a part of the line"
        );
        file.sync_all().context("the ledger cannot be synced")?;
        let folder = self
            .path
            .parent()
            .filter(|path| !path.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .context("the ledger's folder cannot be synced")
    }

    fn beside(&self, extension: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".");
        name.push(extension);
        name.into()
    }
}

/// The same for the call, its repetition and its lookup, so that a run ends alike whichever of them answered.
fn receipt(args: &Value) -> Value {
    json!({"recorded": args})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(key: &str) -> Call {
        let args = json!({"order_id": "A-1", "amount": 5})
            .as_object()
            .unwrap()
            .clone();
        Call {
            key: key.to_owned(),
            epoch: 3,
            args,
        }
    }

    #[test]
    fn a_blind_act_shows_its_doubles() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::at(dir.path().join("ledger.jsonl"));
        for key in ["a", "b", "a"] {
            ledger.act(&call(key)).unwrap();
        }
        let tally = ledger.tally().unwrap();
        assert_eq!(
            tally.effects,
            BTreeMap::from([("a".to_owned(), 2), ("b".to_owned(), 1)])
        );
        assert_eq!(tally.doubled(), ["a"]);
    }

    #[test]
    fn an_act_once_per_key_happens_once_even_when_many_try() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::at(dir.path().join("ledger.jsonl"));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| ledger.act_once(&call("a")).unwrap());
            }
        });
        let tally = ledger.tally().unwrap();
        assert_eq!((tally.effects["a"], tally.attempts["a"]), (1, 8));
    }

    #[test]
    fn a_lookup_finds_what_stands_and_answers_as_the_call_did() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::at(dir.path().join("ledger.jsonl"));
        assert_eq!(ledger.look_up("a").unwrap(), json!({"status": "not_found"}));
        let printed = ledger.act(&call("a")).unwrap();
        assert_eq!(
            ledger.look_up("a").unwrap(),
            json!({"status": "committed", "receipt": printed})
        );
        ledger.reverse(&call("a")).unwrap();
        assert_eq!(ledger.look_up("a").unwrap(), json!({"status": "not_found"}));
        assert_eq!(ledger.tally().unwrap().reversals["a"], 1);
    }

    #[test]
    fn a_torn_line_is_an_error_and_not_an_absence() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.jsonl");
        fs::write(&path, "{\"key\":\"a\"").unwrap();
        assert!(Ledger::at(path).look_up("a").is_err());
    }
}
