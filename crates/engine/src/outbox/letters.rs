//! Letters in the outbox: what is due, what was delivered, what was given up and is sent again.

use std::sync::Arc;

use holdpoint_core::{
    Index, IndexChange, InterruptId, Letter, Principal, Refusal, Span, Timestamp, Tries,
};
use holdpoint_store::{Amendment, Cell, CellChange, CellThen, Direction, Scan, Space, Unavailable};

use crate::{Engine, Error, error::from_append};

/// The permission to see what could not be delivered, to send it again and to discard it.
pub const MANAGE: &str = "webhooks.manage";

/// How long is remembered what was tried in vain.
const REMEMBERED: Span = Span::from_secs(90 * 24 * 60 * 60);
/// How many letters are moved at once.
const AT_ONCE: usize = 200;

/// A letter that was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// It itself.
    pub letter: Letter,
    /// What was tried, as long as that is remembered.
    pub tries: Option<Tries>,
}

/// What becomes of letters that were given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Instead {
    Outbox,
    Nothing,
}

impl Engine {
    /// The tenants with something to deliver.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn tenants_to_tell(&self) -> Result<Vec<Arc<str>>, Error> {
        Ok(self.store().tenants(Index::Outbox).await?)
    }

    /// What is still to be delivered to an endpoint, by the age of the questions and, of each, in order; from after this
    /// one on.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn undelivered(
        &self,
        tenant: &str,
        endpoint: &str,
        after: Option<&Letter>,
        limit: usize,
    ) -> Result<Vec<Letter>, Error> {
        self.letters(Index::Outbox, tenant, endpoint, after, limit)
            .await
    }

    async fn letters(
        &self,
        index: Index,
        tenant: &str,
        endpoint: &str,
        after: Option<&Letter>,
        limit: usize,
    ) -> Result<Vec<Letter>, Error> {
        let after = after.map(|letter| letter.row(index));
        let after = after.unwrap_or_else(|| Letter::before_all(endpoint, index));
        let scan = Scan {
            index,
            key: None,
            up_to: None,
            direction: Direction::Forward,
            after: Some(after),
            limit,
        };
        let rows = self.store().scan(tenant, scan).await?;
        let letters = rows.iter().filter_map(Letter::of_row);
        Ok(letters.take_while(|it| it.endpoint == endpoint).collect())
    }

    /// A letter was delivered.
    ///
    /// # Errors
    ///
    /// The store fails; then it will be delivered again, under the same name.
    pub async fn delivered(&self, tenant: &str, letter: &Letter) -> Result<(), Error> {
        let amendment = Amendment {
            index: vec![IndexChange::Remove(letter.row(Index::Outbox))],
            cells: Vec::new(),
        };
        self.amend(tenant, amendment).await
    }

    /// A letter was not delivered. Returns when it is tried again, unless it was tried for so long and is given up.
    ///
    /// # Errors
    ///
    /// The store fails; then nothing of it is remembered.
    pub async fn not_delivered(
        &self,
        tenant: &str,
        letter: &Letter,
        error: &str,
        give_up_after: Span,
    ) -> Result<Option<Timestamp>, Error> {
        let now = self.store().now();
        let key = tries_key(letter);
        let cell = self.store().cell(tenant, Space::Outbox, &key).await?;
        let before = cell.as_ref();
        let before = before.and_then(|cell| serde_json::from_slice(&cell.value).ok());
        let tries = Tries::one_more(before, now, error.to_owned());
        let next_at = tries.next_at(give_up_after);
        let unwritable = |error: serde_json::Error| Unavailable::new(error.to_string());
        let remembered = CellChange {
            space: Space::Outbox,
            key,
            expect: cell.map_or(0, |cell| cell.version),
            then: CellThen::Set {
                value: serde_json::to_vec(&tries).map_err(unwritable)?,
                until: Some(now + REMEMBERED),
            },
        };
        let index = match next_at {
            Some(_) => Vec::new(),
            None => vec![
                IndexChange::Remove(letter.row(Index::Outbox)),
                IndexChange::Put(letter.row(Index::DeadLetter)),
            ],
        };
        let cells = vec![remembered];
        self.amend(tenant, Amendment { index, cells }).await?;
        Ok(next_at)
    }

    async fn amend(&self, tenant: &str, amendment: Amendment) -> Result<(), Error> {
        let amended = self.store().amend(tenant, amendment).await;
        amended.map(drop).map_err(from_append)
    }

    /// What was given up of what an endpoint should have heard, by the age of the questions; from after this one on.
    ///
    /// # Errors
    ///
    /// The principal may not see it; the store fails.
    pub async fn dead_letters(
        &self,
        by: &Principal,
        endpoint: &str,
        after: Option<&Letter>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, Error> {
        may_manage(by)?;
        let tenant = &by.actor.tenant;
        let letters = self.letters(Index::DeadLetter, tenant, endpoint, after, limit);
        let mut dead = Vec::new();
        for letter in letters.await? {
            let tries = self
                .store()
                .cell(tenant, Space::Outbox, &tries_key(&letter))
                .await?;
            let tries = tries.and_then(|cell| serde_json::from_slice(&cell.value).ok());
            dead.push(DeadLetter { letter, tries });
        }
        Ok(dead)
    }

    /// Puts what was given up back into the outbox: of one question, or of all. Returns how many letters that were.
    ///
    /// # Errors
    ///
    /// The principal may not; the store fails.
    pub async fn send_again(
        &self,
        by: &Principal,
        endpoint: &str,
        of: Option<InterruptId>,
    ) -> Result<usize, Error> {
        self.bury(by, endpoint, of, Instead::Outbox).await
    }

    /// Forgets what was given up: of one question, or of all. Returns how many letters that were.
    ///
    /// # Errors
    ///
    /// The principal may not; the store fails.
    pub async fn discard(
        &self,
        by: &Principal,
        endpoint: &str,
        of: Option<InterruptId>,
    ) -> Result<usize, Error> {
        self.bury(by, endpoint, of, Instead::Nothing).await
    }

    async fn bury(
        &self,
        by: &Principal,
        endpoint: &str,
        of: Option<InterruptId>,
        instead: Instead,
    ) -> Result<usize, Error> {
        may_manage(by)?;
        let tenant = &by.actor.tenant;
        let mut moved = 0;
        let mut after = None;
        loop {
            let letters = self
                .letters(Index::DeadLetter, tenant, endpoint, after.as_ref(), AT_ONCE)
                .await?;
            let Some(last) = letters.last().cloned() else {
                return Ok(moved);
            };
            let wanted = letters
                .iter()
                .filter(|it| of.is_none_or(|of| it.interrupt == of));
            let mut index = Vec::new();
            let mut cells = Vec::new();
            for letter in wanted {
                moved += 1;
                index.push(IndexChange::Remove(letter.row(Index::DeadLetter)));
                if instead == Instead::Outbox {
                    index.push(IndexChange::Put(letter.row(Index::Outbox)));
                }
                // What was tried before does not count any more.
                let key = tries_key(letter);
                if let Some(cell) = self.store().cell(tenant, Space::Outbox, &key).await? {
                    cells.push(CellChange {
                        space: Space::Outbox,
                        key,
                        expect: cell.version,
                        then: CellThen::Remove,
                    });
                }
            }
            self.amend(tenant, Amendment { index, cells }).await?;
            self.outbox().was_filled();
            after = Some(last);
        }
    }

    /// Forgets an endpoint, with everything that is still to be told to it and that was given up, in all tenants. Returns
    /// whether there was one.
    ///
    /// # Errors
    ///
    /// A server delivers to it; the store fails, and then some of it may be left.
    pub async fn unsubscribe(&self, endpoint: &str) -> Result<bool, Error> {
        if self.is_carried(endpoint).await? {
            let why = "a server delivers to it: take it out of the configuration first, and restart the server";
            return Err(Refusal::Stale(why).into());
        }
        let remove = |cell: Option<&Cell>| cell.map(|_| CellThen::Remove);
        let was = self.change_cell(Space::Endpoint, endpoint, remove).await?;
        self.outbox().learn(None);
        for index in [Index::Outbox, Index::DeadLetter] {
            for tenant in self.store().tenants(index).await? {
                loop {
                    let letters = self
                        .letters(index, &tenant, endpoint, None, AT_ONCE)
                        .await?;
                    if letters.is_empty() {
                        break;
                    }
                    let remove = |letter: &Letter| IndexChange::Remove(letter.row(index));
                    let amendment = Amendment {
                        index: letters.iter().map(remove).collect(),
                        cells: Vec::new(),
                    };
                    self.amend(&tenant, amendment).await?;
                }
            }
        }
        Ok(was.is_some())
    }
}

fn tries_key(letter: &Letter) -> String {
    let Letter {
        endpoint,
        interrupt,
        seq,
        ..
    } = letter;
    format!("{endpoint}/{interrupt}/{seq}")
}

fn may_manage(by: &Principal) -> Result<(), Refusal> {
    if !by.actor.may_decide() {
        let by = by.actor.to_string();
        return Err(Refusal::Forbidden { by });
    }
    if by.may(MANAGE) {
        return Ok(());
    }
    Err(Refusal::NotPermitted { permission: MANAGE })
}
