//! Which calls a person must allow, and what the policy said of one.
//!
//! Conditions are text here. Whoever judges a call evaluates them, once; the verdict is data from then on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Allowed, OnTimeout, Span};

/// Which calls a person must allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// By tool name; `*` stands for every tool that is not named.
    pub interrupt_on: BTreeMap<String, Gate>,
    /// For tools that `interrupt_on` does not cover.
    pub default: Ruling,
}

/// What `interrupt_on` says of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// The first rule whose condition holds decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// What happens where none does.
    pub otherwise: Ruling,
    /// How a person is asked, where one is.
    #[serde(flatten)]
    pub terms: Terms,
}

/// One rule of a gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// A condition in CEL.
    pub when: String,
    /// What happens where it holds.
    pub then: Ruling,
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// It runs.
    #[default]
    Allow,
    /// A person is asked.
    Interrupt,
    /// It does not run.
    Deny,
}

/// How a person is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// What they may say.
    pub allowed: Allowed,
    /// What they are told; the default text names tool and arguments. In a gate it is a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Neither a rule nor a grant lets it pass without asking.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub always_ask: bool,
    /// What is approved runs only where the approval is given by a token.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requires_token: bool,
    /// How long the question stays open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// What happens then.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_timeout: OnTimeout,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Terms {
    /// These decisions, and nothing special.
    #[must_use]
    pub const fn new(allowed: Allowed) -> Self {
        Self {
            allowed,
            description: None,
            always_ask: false,
            requires_token: false,
            timeout: None,
            on_timeout: OnTimeout::Expire,
        }
    }

    /// Why no grant lets a call pass, where none does: it must always be asked about, or a grant is no token.
    #[must_use]
    pub const fn bars_grants(&self) -> Option<&'static str> {
        if self.always_ask {
            Some("this tool must always be asked about")
        } else if self.requires_token {
            Some("every call of this tool takes a token")
        } else {
            None
        }
    }
}

impl Gate {
    /// Nobody is asked.
    #[must_use]
    pub fn open() -> Self {
        Self {
            rules: Vec::new(),
            otherwise: Ruling::Allow,
            terms: Terms::new(Allowed::standard()),
        }
    }

    /// A person is asked, and may decide this.
    #[must_use]
    pub const fn ask(allowed: Allowed) -> Self {
        Self {
            rules: Vec::new(),
            otherwise: Ruling::Interrupt,
            terms: Terms::new(allowed),
        }
    }

    /// With a rule after those it has: where this condition in CEL holds, this happens.
    #[must_use]
    pub fn when(mut self, condition: impl Into<String>, then: Ruling) -> Self {
        self.rules.push(Rule {
            when: condition.into(),
            then,
        });
        self
    }

    /// Whether a person may have to be asked.
    #[must_use]
    pub fn may_ask(&self) -> bool {
        // A condition that cannot be evaluated asks.
        !self.rules.is_empty() || self.terms.always_ask || self.otherwise == Ruling::Interrupt
    }
}

/// Evaluates what a policy's own words say of one call.
pub trait Conditions {
    /// Whether this condition holds.
    ///
    /// # Errors
    ///
    /// Why that cannot be said.
    fn holds(&self, condition: &str) -> Result<bool, String>;

    /// What a person is told, from this template; `None` where it cannot be filled in, and the default text says it.
    fn describe(&self, template: &str) -> Option<String>;
}

/// What a policy says of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// What it says.
    pub verdict: Verdict,
    /// The rule that decided, where one did.
    pub rule: Option<String>,
}

impl Policy {
    /// Nobody is asked.
    #[must_use]
    pub const fn open() -> Self {
        Self {
            interrupt_on: BTreeMap::new(),
            default: Ruling::Allow,
        }
    }

    /// The name that stands for every tool that is not named.
    pub const ANY: &'static str = "*";

    /// What this policy says of a call to `tool`.
    #[must_use]
    pub fn judge(&self, tool: &str, conditions: &dyn Conditions) -> Judgement {
        let Some(gate) = self.gate(tool) else {
            return Judgement {
                verdict: Verdict::new(self.default, &Terms::new(Allowed::standard()), conditions),
                rule: None,
            };
        };
        let (ruling, rule) = gate.rule(conditions);
        let ruling = match ruling {
            Ruling::Allow if gate.terms.always_ask => Ruling::Interrupt,
            Ruling::Allow | Ruling::Interrupt | Ruling::Deny => ruling,
        };
        Judgement {
            verdict: Verdict::new(ruling, &gate.terms, conditions),
            rule,
        }
    }

    /// Whether a call to `tool` may have to be asked about.
    #[must_use]
    pub fn may_ask(&self, tool: &str) -> bool {
        self.gate(tool)
            .map_or(self.default == Ruling::Interrupt, Gate::may_ask)
    }

    /// Whether every call to `tool` is denied, whatever it is made with.
    #[must_use]
    pub fn denies(&self, tool: &str) -> bool {
        self.gate(tool).is_none() && self.default == Ruling::Deny
    }

    pub(crate) fn gate(&self, tool: &str) -> Option<&Gate> {
        self.interrupt_on
            .get(tool)
            .or_else(|| self.interrupt_on.get(Self::ANY))
    }
}

impl Gate {
    fn rule(&self, conditions: &dyn Conditions) -> (Ruling, Option<String>) {
        for rule in &self.rules {
            match conditions.holds(&rule.when) {
                Ok(true) => return (rule.then, Some(rule.when.clone())),
                Ok(false) => {}
                // Whatever cannot be told for sure is for a person to say.
                Err(reason) => {
                    let rule = format!("{}: {reason}", rule.when);
                    return (Ruling::Interrupt, Some(rule));
                }
            }
        }
        (self.otherwise, None)
    }
}

/// What the policy said of one call. Evaluated once, then data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Verdict {
    /// It may run.
    Allow,
    /// A person must allow it.
    Ask(Terms),
    /// It may not run.
    Deny,
}

impl Verdict {
    fn new(ruling: Ruling, terms: &Terms, conditions: &dyn Conditions) -> Self {
        match ruling {
            Ruling::Allow => Self::Allow,
            Ruling::Deny => Self::Deny,
            Ruling::Interrupt => {
                let template = terms.description.as_ref();
                Self::Ask(Terms {
                    description: template.and_then(|template| conditions.describe(template)),
                    ..terms.clone()
                })
            }
        }
    }

    /// Whether this verdict forbids something that `old` allowed.
    #[must_use]
    pub fn is_tighter_than(&self, old: &Self) -> bool {
        match (self, old) {
            (Self::Allow, Self::Allow | Self::Ask(_) | Self::Deny)
            | (Self::Ask(_) | Self::Deny, Self::Deny) => false,
            (Self::Ask(_) | Self::Deny, Self::Allow) | (Self::Deny, Self::Ask(_)) => true,
            (Self::Ask(new), Self::Ask(old)) => {
                let gone = |kind| !new.allowed.contains(kind);
                (new.always_ask && !old.always_ask)
                    || (new.requires_token && !old.requires_token)
                    || old.allowed.as_slice().iter().copied().any(gone)
            }
        }
    }

    /// What both verdicts allow: the old one is a floor that a new one may raise and never lowers.
    #[must_use]
    pub fn meet(&self, old: &Self) -> Self {
        match (self, old) {
            (Self::Deny, _) | (_, Self::Deny) => Self::Deny,
            (Self::Allow, Self::Allow | Self::Ask(_)) => old.clone(),
            (Self::Ask(_), Self::Allow) => self.clone(),
            (Self::Ask(new), Self::Ask(old)) => {
                let mut both = new.allowed.as_slice().to_vec();
                both.retain(|kind| old.allowed.contains(*kind));
                // Where nothing is left that both allow, it cannot be done at all.
                Allowed::new(both).map_or(Self::Deny, |allowed| {
                    Self::Ask(Terms {
                        allowed,
                        always_ask: new.always_ask || old.always_ask,
                        requires_token: new.requires_token || old.requires_token,
                        ..new.clone()
                    })
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DecisionKind;

    /// Takes the words for what they say.
    struct Literal;

    impl Conditions for Literal {
        fn holds(&self, condition: &str) -> Result<bool, String> {
            match condition {
                "true" => Ok(true),
                "false" => Ok(false),
                other => Err(format!("`{other}` is neither")),
            }
        }

        fn describe(&self, template: &str) -> Option<String> {
            Some(template.replace("{tool}", "rm"))
        }
    }

    fn policy(entries: &[(&str, Gate)], default: Ruling) -> Policy {
        Policy {
            interrupt_on: entries
                .iter()
                .map(|(name, gate)| ((*name).to_owned(), gate.clone()))
                .collect(),
            default,
        }
    }

    fn judge(policy: &Policy, tool: &str) -> Verdict {
        policy.judge(tool, &Literal).verdict
    }

    fn ask(kinds: &[DecisionKind]) -> Verdict {
        Verdict::Ask(Terms::new(Allowed::new(kinds.to_vec()).unwrap()))
    }

    fn standard() -> Verdict {
        Verdict::Ask(Terms::new(Allowed::standard()))
    }

    fn ruled(rules: &[(&str, Ruling)], otherwise: Ruling) -> Gate {
        let rule = |(when, then): &(&str, Ruling)| Rule {
            when: (*when).to_owned(),
            then: *then,
        };
        Gate {
            rules: rules.iter().map(rule).collect(),
            otherwise,
            ..Gate::open()
        }
    }

    #[test]
    fn a_named_gate_wins_over_the_star_and_the_star_over_the_default() {
        let gate = Gate::ask(Allowed::standard());
        let policy = policy(&[("read", Gate::open()), ("*", gate)], Ruling::Deny);
        assert_eq!(judge(&policy, "read"), Verdict::Allow);
        assert_eq!(judge(&policy, "anything"), standard());
    }

    #[test]
    fn an_empty_map_leaves_it_to_the_default() {
        assert_eq!(judge(&policy(&[], Ruling::Allow), "x"), Verdict::Allow);
        assert_eq!(judge(&policy(&[], Ruling::Deny), "x"), Verdict::Deny);
        assert_eq!(judge(&policy(&[], Ruling::Interrupt), "x"), standard());
    }

    #[test]
    fn the_first_rule_that_holds_decides() {
        let gate = ruled(
            &[
                ("false", Ruling::Deny),
                ("true", Ruling::Allow),
                ("true", Ruling::Deny),
            ],
            Ruling::Interrupt,
        );
        let judged = policy(&[("x", gate)], Ruling::Deny).judge("x", &Literal);
        assert_eq!(judged.verdict, Verdict::Allow);
        assert_eq!(judged.rule.as_deref(), Some("true"));
        let gate = ruled(&[("false", Ruling::Allow)], Ruling::Interrupt);
        let judged = policy(&[("x", gate)], Ruling::Allow).judge("x", &Literal);
        assert_eq!((judged.verdict, judged.rule), (standard(), None));
    }

    #[test]
    fn a_condition_that_cannot_be_evaluated_asks_a_person_whatever_comes_after() {
        for otherwise in [Ruling::Allow, Ruling::Interrupt, Ruling::Deny] {
            let gate = ruled(
                &[("odd", Ruling::Allow), ("true", Ruling::Allow)],
                otherwise,
            );
            let judged = policy(&[("x", gate)], Ruling::Allow).judge("x", &Literal);
            assert_eq!(judged.verdict, standard());
            assert_eq!(judged.rule.as_deref(), Some("odd: `odd` is neither"));
        }
    }

    #[test]
    fn what_must_always_be_asked_is_asked_whatever_the_rules_say() {
        let mut gate = ruled(&[("true", Ruling::Allow)], Ruling::Allow);
        gate.terms.always_ask = true;
        gate.terms.description = Some("really {tool}?".to_owned());
        let Verdict::Ask(terms) = judge(&policy(&[("x", gate)], Ruling::Allow), "x") else {
            panic!("not asked")
        };
        assert!(terms.always_ask);
        assert_eq!(terms.description.as_deref(), Some("really rm?"));
    }

    #[test]
    fn tighter_means_that_something_is_no_longer_allowed() {
        use DecisionKind::{Approve, Edit, Reject};
        let (wide, narrow) = (ask(&[Approve, Edit, Reject]), ask(&[Approve, Reject]));
        assert!(narrow.is_tighter_than(&wide) && !wide.is_tighter_than(&narrow));
        assert!(wide.is_tighter_than(&Verdict::Allow) && !Verdict::Allow.is_tighter_than(&wide));
        assert!(
            Verdict::Deny.is_tighter_than(&wide) && !Verdict::Deny.is_tighter_than(&Verdict::Deny)
        );
        let always = Verdict::Ask(Terms {
            always_ask: true,
            ..Terms::new(Allowed::standard())
        });
        assert!(always.is_tighter_than(&standard()) && !standard().is_tighter_than(&always));
        let by_token = Verdict::Ask(Terms {
            requires_token: true,
            ..Terms::new(Allowed::standard())
        });
        assert!(by_token.is_tighter_than(&standard()) && !standard().is_tighter_than(&by_token));
        for both in [by_token.meet(&standard()), standard().meet(&by_token)] {
            assert_eq!(both, by_token, "a new policy does not do without the token");
        }
    }
}
