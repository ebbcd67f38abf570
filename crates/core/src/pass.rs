//! What an answer is bound to besides its question: a pass that somebody was given for it, and what they have seen.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{
    ActionId, Actor, Digest, Interrupt, Principal, PrincipalKind, Refusal, RunId, Timestamp,
};

/// Leave for one person to answer one question, once. Whoever made sure that it is genuine hands it over; whether it is for
/// this question, and for now, is looked at here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// Tells it from all others.
    pub id: String,
    /// The key it is signed with.
    pub key: String,
    /// The run that asks.
    pub run: RunId,
    /// The nonce of the question.
    pub nonce: String,
    /// The plan under which it is asked.
    pub plan_version: u32,
    /// The digest of all that is asked: [`Interrupt::subject`].
    pub subject: Digest,
    /// Who it is for.
    pub user: String,
    /// From when on it does not hold any more.
    pub expires_at: Timestamp,
    /// Who gave it to them.
    pub issuer: Actor,
    /// Who hands it over, in the user's name or as the user.
    pub carrier: Actor,
}

/// By which pass an answer was given, as the journal keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Via {
    /// The pass.
    pub token: String,
    /// The key it was signed with.
    pub key: String,
    /// Who gave it to whoever answered.
    pub issuer: Actor,
    /// Who handed it over.
    pub carrier: Actor,
}

/// What an answer is bound to besides its question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bond {
    /// The pass by which it is given, where it is given by one.
    pub pass: Option<Box<Pass>>,
    /// What whoever answers has seen of the calls that they decide on, where they say so.
    pub seen: Vec<(ActionId, Digest)>,
}

impl Bond {
    /// Whether an answer by this person may be given to this question.
    ///
    /// # Errors
    ///
    /// The pass is for another question, another person or another time; what was seen is not what is asked about.
    pub(crate) fn check(
        &self,
        interrupt: &Interrupt,
        by: &Actor,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        if let Some(pass) = &self.pass {
            pass.check(interrupt, by, now)?;
        }
        for (id, seen) in &self.seen {
            let ask = interrupt.asks.iter().find(|ask| ask.action_id == *id);
            let asked = ask.and_then(|ask| ask.subject.params_hash());
            if asked != Some(*seen) {
                return Err(Refusal::ParamsChanged { action: *id });
            }
        }
        Ok(())
    }
}

/// Who may be given a pass, and with which roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The user.
    pub user: String,
    /// The roles that they answer with.
    pub roles: BTreeSet<String>,
}

impl Holder {
    /// The permission to give passes to others.
    pub const MAY_ISSUE: &'static str = "tokens.issue";

    /// Whom somebody may give a pass: themselves, with their own roles; others, who has the right to, with no roles but
    /// their own, and none where nothing is said.
    ///
    /// # Errors
    ///
    /// They may not.
    pub fn chosen(
        by: &Principal,
        user: Option<&str>,
        roles: Option<BTreeSet<String>>,
    ) -> Result<Self, Refusal> {
        let forbidden = || Refusal::Forbidden {
            by: by.actor.to_string(),
        };
        if !by.actor.may_decide() {
            return Err(forbidden());
        }
        let is_person = match by.actor.kind {
            PrincipalKind::User | PrincipalKind::Local => true,
            PrincipalKind::Service | PrincipalKind::Agent => false,
        };
        let user = user.unwrap_or(&by.actor.name);
        let own = is_person && user == by.actor.name;
        if !own && !by.may(Self::MAY_ISSUE) {
            return Err(Refusal::NotPermitted {
                permission: Self::MAY_ISSUE,
            });
        }
        let unsaid = if own {
            by.roles.clone()
        } else {
            BTreeSet::new()
        };
        let roles = roles.unwrap_or(unsaid);
        if !roles.is_subset(&by.roles) {
            return Err(Refusal::BadPass {
                why: "nobody gives roles that they do not have",
            });
        }
        Ok(Self {
            user: user.to_owned(),
            roles,
        })
    }
}

impl Pass {
    fn check(&self, interrupt: &Interrupt, by: &Actor, now: Timestamp) -> Result<(), Refusal> {
        let bad = |why| Err(Refusal::BadPass { why });
        if now >= self.expires_at {
            return Err(Refusal::PassExpired);
        }
        if self.user != by.name {
            return bad("it is for somebody else");
        }
        // Nobody comes with another person's; a service brings only what it gave out itself.
        match self.carrier.kind {
            PrincipalKind::Agent => {
                let by = self.carrier.to_string();
                return Err(Refusal::Forbidden { by });
            }
            PrincipalKind::User if self.carrier.name != self.user => {
                return bad("it is for somebody else");
            }
            PrincipalKind::Service if self.carrier != self.issuer => {
                return bad("another one gave it out");
            }
            PrincipalKind::User | PrincipalKind::Service | PrincipalKind::Local => {}
        }
        if self.run != interrupt.run || self.nonce != interrupt.nonce {
            return bad("it is for another question");
        }
        if self.plan_version != interrupt.plan_version {
            return bad("it is for another plan");
        }
        if self.subject != interrupt.subject() {
            return bad("what is asked is not what it was given for");
        }
        Ok(())
    }

    /// What is kept of it with the answer.
    pub(crate) fn via(&self) -> Via {
        Via {
            token: self.id.clone(),
            key: self.key.clone(),
            issuer: self.issuer.clone(),
            carrier: self.carrier.clone(),
        }
    }
}

impl Interrupt {
    /// The digest of all that is asked, in the form to which a pass is bound.
    #[must_use]
    pub fn subject(&self) -> Digest {
        let asked = ("holdpoint/subject/1", self.id, &self.asks);
        let text = serde_json_canonicalizer::to_string(&asked).unwrap_or_default();
        Digest::of(text.as_bytes())
    }
}
