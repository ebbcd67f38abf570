//! Waiting for a store that is not there yet.

use std::time::Duration;

use holdpoint_store::{OpenError, Options, SharedStore, open};
use tokio::time::{Instant, sleep};

/// How long. A database that is started together with the server is there by then.
const PATIENCE: Duration = Duration::from_secs(60);
const BREATH: Duration = Duration::from_secs(1);

/// Opens a store, and waits for one that cannot be reached yet.
pub(crate) async fn reach(url: &str) -> Result<SharedStore, OpenError> {
    let until = Instant::now() + PATIENCE;
    let mut said = String::new();
    loop {
        match open(url, Options::default()).await {
            Err(OpenError::Away { reason }) if Instant::now() < until => {
                if reason != said {
                    tracing::warn!(
                        %reason,
                        "the store cannot be reached yet; trying again for {} seconds",
                        PATIENCE.as_secs()
                    );
                    said = reason;
                }
                sleep(BREATH).await;
            }
            opened => return opened,
        }
    }
}
