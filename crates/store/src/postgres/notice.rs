//! Noticing what other processes commit, and telling them of what we do.
//!
//! All of it is a hint: a notification may come late, twice or not at all, and whoever depends on it looks at the store
//! anyway. So it is sent apart from what it tells of: inside of a commit it would make every commit wait for every other.

use std::{sync::Arc, time::Duration};

use futures::future::poll_fn;
use holdpoint_core::{OwnerId, Timestamp};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_postgres::{AsyncMessage, Client, Error, tls::MakeTlsConnect};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    address::Address,
    clock::{Reckoned, middle},
    line::Manner,
};

/// What is listened to.
const CHANNEL: &str = "holdpoint";
/// And a hint need not be on the disk before it counts: nobody's commit has to wait for that.
const LISTEN: &str = "LISTEN holdpoint; SET synchronous_commit = off";
/// How long notifications are gathered.
const GATHERING: Duration = Duration::from_millis(20);
/// How often the database is asked for the time.
const CLOCK: Duration = Duration::from_secs(10);
/// How long is waited before a lost connection is made again.
const BREATH: Duration = Duration::from_millis(500);
/// How long the database may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the one who listens needs.
pub(super) struct Listening {
    pub(super) address: Address,
    pub(super) us: OwnerId,
    pub(super) committed: Arc<Notify>,
    pub(super) changes: watch::Sender<u64>,
    /// The clock that is kept right; none where another is used.
    pub(super) clock: Option<Arc<Reckoned>>,
}

/// A connection that hears, and that nothing is read from yet.
pub(super) struct Ear {
    client: Client,
    connection: Talk,
}

type Talk = tokio_postgres::Connection<
    tokio_postgres::Socket,
    <MakeRustlsConnect as MakeTlsConnect<tokio_postgres::Socket>>::Stream,
>;

impl Ear {
    /// From now on nothing is missed for as long as the connection lasts. Behind a pooler nothing is heard, since what is
    /// listened on there is somebody else's connection the next moment; then others are noticed by looking alone.
    pub(super) async fn open(address: &Address) -> Result<Self, Error> {
        let Address {
            config,
            tls,
            manner,
            ..
        } = address;
        let (client, mut connection) = config.connect(tls.clone()).await?;
        let first = match manner {
            Manner::Directly => LISTEN,
            Manner::Pooled => "",
        };
        let listening = client.batch_execute(first);
        let hearing = poll_fn(|cx| connection.poll_message(cx));
        tokio::select! {
            listening = listening => listening?,
            // It ends only with the connection; the statement says how.
            _ = hearing => {}
        }
        Ok(Self { client, connection })
    }
}

impl Listening {
    /// Listens for ever. A connection that is lost is made again.
    pub(super) async fn run(self, ear: Ear) {
        let mut ear = Some(ear);
        loop {
            if let Some(ear) = ear.take() {
                // Why it ended is told by whoever reads or writes next.
                let _ = self.listen(ear).await;
            }
            sleep(BREATH).await;
            ear = Ear::open(&self.address).await.ok();
            // Whatever was said meanwhile was not heard.
            self.look();
        }
    }

    fn look(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    async fn listen(&self, ear: Ear) -> Result<(), Error> {
        let Ear {
            client,
            mut connection,
        } = ear;
        let messages = async {
            while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
                if let AsyncMessage::Notification(heard) = message?
                    && heard.payload() != self.us.to_string()
                {
                    self.look();
                }
            }
            Ok(())
        };
        tokio::select! {
            ended = messages => ended,
            ended = self.speak(&client) => ended,
        }
    }

    /// Tells others of what was committed here, and asks for the time.
    async fn speak(&self, client: &Client) -> Result<(), Error> {
        let mut next_clock = Instant::now() + CLOCK;
        loop {
            tokio::select! {
                () = self.committed.notified() => {
                    // Its name is hexadecimal digits.
                    let tell = format!("NOTIFY {CHANNEL}, '{}'", self.us);
                    client.batch_execute(&tell).await?;
                    sleep(GATHERING).await;
                }
                () = sleep_until(next_clock), if self.clock.is_some() => {
                    next_clock = Instant::now() + CLOCK;
                    match timeout(PATIENCE, self.ask_the_time(client)).await {
                        Ok(asked) => asked?,
                        // It is as good as gone.
                        Err(_) => return Ok(()),
                    }
                }
            }
        }
    }

    async fn ask_the_time(&self, client: &Client) -> Result<(), Error> {
        let sent = Instant::now();
        let said = time(client).await?;
        if let Some(clock) = &self.clock {
            clock.learn(said, middle(sent));
        }
        Ok(())
    }
}

/// What the database says the time is.
pub(super) async fn time(client: &Client) -> Result<Timestamp, Error> {
    let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    // With its (absent) types said, it need not be prepared: a pooler may stand between.
    let row = client.query_typed_one(sql, &[]).await?;
    Ok(Timestamp::from_micros(row.try_get(0)?))
}
