//! Connections, and doing things on them.

use std::{future::Future, time::Duration};

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Pool, QueueMode, RecyclingMethod, Runtime, Timeouts,
};
use tokio::time::{Instant, sleep};

use super::{
    address::Address,
    line::{Line, Manner},
    trouble::{Teller, Trouble},
};
use crate::OpenError;

/// What is said first on a connection. Every statement here finds what it looks for by a key, whatever the tables hold: so it
/// is planned once and not for each call, and never in a way that walks a table, which is the better one only while that is
/// small. None is worth being compiled.
const MANNERS: &str = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off; \
                       SET jit = off";
/// How many connections a process has at most, besides the one that listens.
const CONNECTIONS: usize = 10;
/// How long one statement may take before the database is taken for gone.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// How long something is tried again before whoever asked is told.
const TRYING: Duration = Duration::from_secs(10);
/// How long is waited between two tries.
const BREATH: Duration = Duration::from_millis(50);

/// The connections to one database.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    pool: Pool,
    manner: Manner,
    pub(super) teller: Teller,
}

impl Connections {
    pub(super) fn new(address: &Address) -> Result<Self, OpenError> {
        let config = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let manager = Manager::from_config(address.config.clone(), address.tls.clone(), config);
        // What is said on a connection that a pooler lends is said to whoever gets it next.
        let manners = match address.manner {
            Manner::Directly => MANNERS,
            Manner::Pooled => "",
        };
        let pool = Pool::builder(manager)
            .max_size(CONNECTIONS)
            // A process of the server's that has just done the same has at hand what it needs.
            .queue_mode(QueueMode::Lifo)
            .post_create(Hook::async_fn(move |connection, _| {
                Box::pin(async move {
                    let said = connection.batch_execute(manners).await;
                    said.map_err(HookError::Backend)
                })
            }))
            .runtime(Runtime::Tokio1)
            .timeouts(Timeouts {
                wait: Some(PATIENCE),
                create: Some(PATIENCE),
                recycle: Some(PATIENCE),
            })
            .build()
            .map_err(|error| OpenError::Unusable {
                reason: error.to_string(),
            })?;
        Ok(Self {
            pool,
            manner: address.manner,
            teller: Teller::new(address.shown.clone()),
        })
    }

    /// A connection.
    pub(super) async fn get(&self) -> Result<Line, Trouble> {
        let connection = self.pool.get().await;
        let connection = connection.map_err(|error| self.teller.unreached(&error))?;
        Ok(Line::new(connection, self.manner))
    }
}

/// Does something on a connection, once: `work` comes to `Result<T, Trouble>`. A connection on which something failed that
/// leaves it in doubt is not used again.
//
// Not a function that is given a closure: its future could not be sent to other threads, as futures of closures that
// borrow cannot.
macro_rules! once {
    ($connections:expr, |$connection:ident| $work:expr) => {
        match $connections.get().await {
            Ok(mut lent) => {
                let done = {
                    let $connection = &mut lent;
                    let work = ::tokio::time::timeout($crate::postgres::pool::PATIENCE, $work);
                    work.await
                };
                let done = done.unwrap_or_else(|_| Err($connections.teller.silent()));
                if let Err($crate::postgres::trouble::Trouble {
                    fate: $crate::postgres::trouble::Fate::Unknown,
                    ..
                }) = &done
                {
                    lent.forget();
                }
                done
            }
            Err(trouble) => Err(trouble),
        }
    };
}

/// Does something that may be done twice, again and again while the database is away for a moment: `work` comes to
/// `Result<T, tokio_postgres::Error>`, and all of it to `Result<T, Unavailable>`.
macro_rules! again {
    ($connections:expr, |$connection:ident| $work:expr) => {{
        let tries = $crate::postgres::pool::Tries::default();
        loop {
            let done = $crate::postgres::pool::once!($connections, |$connection| async {
                $work
                    .await
                    .map_err(|error| $connections.teller.failed(&error))
            });
            match done {
                Ok(done) => break Ok(done),
                Err(trouble)
                    if trouble.fate != $crate::postgres::trouble::Fate::Never
                        && tries.go_on().await => {}
                Err(trouble) => break Err($crate::Unavailable::from(trouble)),
            }
        }
    }};
}

/// Does something that is done once, again while nothing of it was committed: `work` comes to `Result<T, Trouble>`.
macro_rules! change {
    ($connections:expr, |$connection:ident| $work:expr) => {{
        let tries = $crate::postgres::pool::Tries::default();
        loop {
            let done = $crate::postgres::pool::once!($connections, |$connection| $work);
            match done {
                Err(trouble)
                    if trouble.fate == $crate::postgres::trouble::Fate::Again
                        && tries.go_on().await => {}
                done => break done,
            }
        }
    }};
}

pub(super) use {again, change, once};

/// How long something has been tried.
#[derive(Debug)]
pub(super) struct Tries {
    until: Instant,
}

impl Default for Tries {
    fn default() -> Self {
        Self {
            until: Instant::now() + TRYING,
        }
    }
}

impl Tries {
    /// Whether to try once more; after a moment.
    pub(super) fn go_on(&self) -> impl Future<Output = bool> + Send + use<> {
        let until = self.until;
        async move {
            if Instant::now() >= until {
                return false;
            }
            sleep(BREATH).await;
            true
        }
    }
}
