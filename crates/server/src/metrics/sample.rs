//! What waits now, looked at now and then.

use std::{sync::Arc, time::Duration};

use holdpoint_engine::Waiting;

use crate::world::{Served, World};

/// How often a store is looked at.
const EVERY: Duration = Duration::from_secs(15);

/// How many questions of a store are looked at: a million that are parked must cost no more than these.
const MOST: usize = 10_000;

/// Looks at what waits in one store.
pub(crate) async fn sample(world: Arc<World>, store: String, served: Served) {
    let mut waiting = Waiting::default();
    loop {
        match served.engine.waiting(&waiting, MOST).await {
            Ok(seen) => {
                world.metrics.saw_waiting(&store, &seen);
                waiting = seen;
            }
            // Whoever keeps the store going says so in the log; here the last look stands.
            Err(error) => tracing::debug!(%error, "what waits could not be looked at"),
        }
        tokio::select! {
            () = world.closing.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use holdpoint_core::{Cause, InterruptKind, Principal, PrincipalKind, Prompt};
    use holdpoint_engine::{Asking, Engine, Kit, Options};
    use holdpoint_store::MemoryStore;

    use super::*;

    fn asking(node: usize, kind: InterruptKind) -> Asking {
        Asking {
            workflow: "flow".to_owned(),
            node: format!("n{node}"),
            kind,
            prompt: Prompt {
                title: "Ship it?".to_owned(),
                ..Prompt::default()
            },
            expiry: None,
        }
    }

    #[tokio::test]
    async fn what_waits_is_counted_over_all_tenants_and_never_beyond_the_cap() {
        let store = Arc::new(MemoryStore::new(&Default::default()));
        let engine = Engine::new(store, Kit::new(), Options::default(), None);
        let nothing = Waiting::default();
        let none = engine.waiting(&nothing, 2).await.unwrap();
        assert_eq!(
            (none.by_cause(), none.is_capped()),
            (BTreeMap::new(), false)
        );
        let mut asked = Vec::new();
        for (node, tenant) in ["acme", "acme", "umbrella"].into_iter().enumerate() {
            let ann = Principal::new(PrincipalKind::User, tenant, "ann");
            for (twice, kind) in [InterruptKind::Approval, InterruptKind::Input]
                .into_iter()
                .enumerate()
            {
                let ask = asking(node * 2 + twice, kind);
                let question = engine.ask(&ann, ask).await.unwrap();
                asked.push((ann.clone(), question.interrupt));
            }
        }
        let all = |seen: &Waiting| seen.by_cause().values().sum::<usize>();
        for (limit, counted, capped) in [(0, 0, true), (3, 3, true), (5, 5, true), (6, 6, false)] {
            let seen = engine.waiting(&nothing, limit).await.unwrap();
            assert_eq!((all(&seen), seen.is_capped()), (counted, capped), "{limit}");
        }
        // A second look knows what the first one saw, and forgets what was closed since.
        let seen = engine.waiting(&nothing, 100).await.unwrap();
        let (ann, first) = &asked[0];
        engine.withdraw(ann, *first).await.unwrap();
        let again = engine.waiting(&seen, 100).await.unwrap();
        let expected = BTreeMap::from([(Cause::HumanApproval, 2), (Cause::HumanInput, 3)]);
        assert_eq!((again.by_cause(), again.is_capped()), (expected, false));
    }
}
