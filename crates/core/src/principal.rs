//! Who acts.

use std::{collections::BTreeSet, fmt};

use serde::{Deserialize, Serialize};

/// What kind of being a principal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PrincipalKind {
    /// A person who authenticated.
    User,
    /// A program that authenticated, or Holdpoint itself.
    Service,
    /// An agent. It may ask, and never decides.
    Agent,
    /// The operator at this machine, known by the operating system's user name.
    Local,
}

/// The part of a principal that every event carries.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Actor {
    /// The tenant it belongs to.
    pub tenant: String,
    /// Its name, unique within tenant and kind.
    pub name: String,
    /// What it is.
    pub kind: PrincipalKind,
}

impl Actor {
    /// Whether it may answer questions, and give or take back grants.
    #[must_use]
    pub const fn may_decide(&self) -> bool {
        match self.kind {
            PrincipalKind::User | PrincipalKind::Service | PrincipalKind::Local => true,
            PrincipalKind::Agent => false,
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            PrincipalKind::User => "user",
            PrincipalKind::Service => "service",
            PrincipalKind::Agent => "agent",
            PrincipalKind::Local => "local",
        };
        write!(f, "{kind}:{}", self.name)
    }
}

/// Who acts, with what it may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// Who it is.
    pub actor: Actor,
    /// The roles it has.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub roles: BTreeSet<String>,
    /// What it may do.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub permissions: BTreeSet<String>,
    /// By what it showed who it is.
    #[serde(default, skip_serializing_if = "Credential::is_unsaid")]
    pub credential: Credential,
}

/// By what somebody showed who they are: whoever knows what they may do now can tell by it whether to know them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Credential {
    /// Nobody said: the operator at this machine, or whoever a program that embeds Holdpoint speaks for.
    #[default]
    Unsaid,
    /// A key that a server keeps.
    Key,
    /// A token of an issuer, which says itself what they may do.
    Token,
}

impl Credential {
    const fn is_unsaid(&self) -> bool {
        matches!(self, Self::Unsaid)
    }
}

impl Principal {
    /// The tenant of everything done from the command line.
    pub const LOCAL_TENANT: &'static str = "local";

    /// The operator at this machine.
    #[must_use]
    pub fn local(os_user: &str) -> Self {
        Self::new(PrincipalKind::Local, Self::LOCAL_TENANT, os_user)
    }

    /// Stands for every permission.
    pub const EVERYTHING: &'static str = "*";

    /// Whether it has a permission. The operator at the machine has all of them.
    #[must_use]
    pub fn may(&self, permission: &str) -> bool {
        self.actor.kind == PrincipalKind::Local
            || self.permissions.contains(permission)
            || self.permissions.contains(Self::EVERYTHING)
    }

    /// A principal without roles or permissions.
    #[must_use]
    pub fn new(kind: PrincipalKind, tenant: &str, name: &str) -> Self {
        let actor = Actor {
            tenant: tenant.to_owned(),
            name: name.to_owned(),
            kind,
        };
        Self {
            actor,
            roles: BTreeSet::new(),
            permissions: BTreeSet::new(),
            credential: Credential::Unsaid,
        }
    }

    /// With those of its permissions that are among these, too: what it came with, and still may do.
    #[must_use]
    pub fn limited_to(mut self, now: &BTreeSet<String>) -> Self {
        if self.permissions.contains(Self::EVERYTHING) {
            self.permissions.clone_from(now);
        } else if !now.contains(Self::EVERYTHING) {
            self.permissions.retain(|it| now.contains(it));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(permissions: &[&str]) -> Principal {
        let mut principal = Principal::new(PrincipalKind::User, "acme", "ann");
        principal.permissions = set(permissions);
        principal
    }

    fn set(permissions: &[&str]) -> BTreeSet<String> {
        permissions.iter().map(|&it| it.to_owned()).collect()
    }

    #[test]
    fn nobody_gains_what_they_did_not_come_with() {
        let now = |came: &[&str], now: &[&str]| with(came).limited_to(&set(now)).permissions;
        assert_eq!(now(&["mail"], &["mail", "money"]), set(&["mail"]));
        assert_eq!(now(&["mail", "money"], &["mail"]), set(&["mail"]));
        assert_eq!(now(&["mail"], &["*"]), set(&["mail"]));
        assert_eq!(now(&["*"], &["mail"]), set(&["mail"]));
        assert_eq!(now(&["*"], &["*"]), set(&["*"]));
        assert_eq!(now(&["*"], &[]), set(&[]));
    }
}
