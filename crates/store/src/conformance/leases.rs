//! Taking, holding and losing a thread's lease.

use std::sync::Arc;

use holdpoint_core::Span;

use super::world::{LASTS, World, append, drive, everything, key, lease, runnable, take};
use crate::{Append, AppendError, Appended, Fence, Holder, Lease, LeaseAfter, LeaseError, Store};

/// A lease of `store`'s process from now on, as another handle or itself sees it.
fn lease_of(store: &dyn Store, holder: Holder) -> Lease {
    Lease {
        owner: store.owner(),
        until: store.now() + LASTS,
        holder,
    }
}

/// Creating a thread and driving it is one commit.
pub async fn an_append_takes_the_lease_in_the_same_commit(World { here, there, .. }: World) {
    let key = key("s");
    assert_eq!(
        here.append(take(&key, 0, 0)).await,
        Ok(Appended {
            version: 2,
            epoch: 1
        })
    );
    assert_eq!(
        lease(&*here, &key).await,
        Some(lease_of(&*here, Holder::Us))
    );
    assert_eq!(
        lease(&*there, &key).await,
        Some(lease_of(&*here, Holder::MaybeAlive))
    );
    assert_eq!(
        here.append(drive(&key, 2, 1)).await,
        Ok(Appended {
            version: 4,
            epoch: 1
        })
    );
}

/// A thread has at most one driver.
pub async fn a_lease_is_not_taken_before_its_end(
    World {
        here, there, clock, ..
    }: World,
) {
    let key = key("s");
    assert_eq!(
        here.append(append(&key, 0)).await,
        Ok(Appended {
            version: 2,
            epoch: 0
        })
    );
    assert_eq!(here.take(&key, LASTS).await, Ok(1));
    let held = lease_of(&*here, Holder::MaybeAlive);
    clock.advance(Span::from_micros(LASTS.as_micros() - 1));
    assert_eq!(
        there.take(&key, LASTS).await,
        Err(LeaseError::Held { lease: held })
    );
}

/// Time alone frees a lease, with no help from its holder.
pub async fn a_lease_is_free_from_the_moment_it_ends(
    World {
        here, there, clock, ..
    }: World,
) {
    let key = key("s");
    assert_eq!(
        here.append(take(&key, 0, 0)).await,
        Ok(Appended {
            version: 2,
            epoch: 1
        })
    );
    clock.advance(LASTS);
    assert_eq!(there.take(&key, LASTS).await, Ok(2));
    assert_eq!(
        lease(&*there, &key).await,
        Some(lease_of(&*there, Holder::Us))
    );
}

/// One handle is one driver; who shares it must agree among themselves.
pub async fn the_holder_itself_does_not_take_its_lease_twice(World { here, .. }: World) {
    let key = key("s");
    assert_eq!(
        here.append(take(&key, 0, 0)).await,
        Ok(Appended {
            version: 2,
            epoch: 1
        })
    );
    let held = lease_of(&*here, Holder::Us);
    assert_eq!(
        here.take(&key, LASTS).await,
        Err(LeaseError::Held {
            lease: held.clone()
        })
    );
    let again = here.append(take(&key, 2, 1)).await;
    assert_eq!(
        again,
        Err(AppendError::LeaseHeld {
            lease: held,
            epoch: 1
        })
    );
}

/// Taking the lease and appending succeed together or not at all.
pub async fn an_append_that_cannot_take_the_lease_changes_nothing(
    World { here, there, .. }: World,
) {
    let key = key("s");
    assert_eq!(
        here.append(take(&key, 0, 0)).await,
        Ok(Appended {
            version: 2,
            epoch: 1
        })
    );
    let before = everything(&*here, &key).await;
    let refused = Append {
        index: vec![runnable(&key, 1)],
        ..take(&key, 2, 1)
    };
    let held = lease_of(&*here, Holder::MaybeAlive);
    assert_eq!(
        there.append(refused).await,
        Err(AppendError::LeaseHeld {
            lease: held,
            epoch: 1
        })
    );
    assert_eq!(everything(&*here, &key).await, before);
}

/// Whoever takes over has read the thread as the last driver left it.
pub async fn an_append_takes_only_the_lease_that_it_has_seen(
    World {
        here, there, clock, ..
    }: World,
) {
    let key = key("s");
    assert_eq!(
        here.append(take(&key, 0, 0)).await,
        Ok(Appended {
            version: 2,
            epoch: 1
        })
    );
    clock.advance(LASTS);
    let before = everything(&*here, &key).await;
    assert_eq!(
        there.append(take(&key, 2, 0)).await,
        Err(AppendError::Fenced { current: 1 })
    );
    assert_eq!(
        there.append(take(&key, 0, 0)).await,
        Err(AppendError::Conflict { current: 2 })
    );
    assert_eq!(everything(&*here, &key).await, before);
    assert_eq!(
        there.append(take(&key, 2, 1)).await,
        Ok(Appended {
            version: 4,
            epoch: 2
        })
    );
}

/// A driver that slept through its lease learns that it must stop, at whatever version it believes the thread to be.
pub async fn a_driver_that_was_taken_over_is_fenced(
    World {
        here, there, clock, ..
    }: World,
) {
    let key = key("s");
    assert_eq!(
        here.append(take(&key, 0, 0)).await,
        Ok(Appended {
            version: 2,
            epoch: 1
        })
    );
    clock.advance(LASTS);
    assert_eq!(there.take(&key, LASTS).await, Ok(2));
    let before = everything(&*here, &key).await;
    assert_eq!(
        here.append(drive(&key, 2, 1)).await,
        Err(AppendError::Fenced { current: 2 })
    );
    assert_eq!(
        there.append(drive(&key, 2, 2)).await,
        Ok(Appended {
            version: 4,
            epoch: 2
        })
    );
    assert_eq!(
        here.append(drive(&key, 2, 1)).await,
        Err(AppendError::Fenced { current: 2 })
    );
    assert_eq!(
        here.append(drive(&key, 4, 1)).await,
        Err(AppendError::Fenced { current: 2 })
    );
    assert_eq!(before.1.len() + 2, everything(&*here, &key).await.1.len());
}

/// An epoch is worth nothing to a process that did not take it.
pub async fn a_driver_with_another_process_epoch_is_fenced(World { here, there, .. }: World) {
    let key = key("s");
    assert_eq!(
        here.append(take(&key, 0, 0)).await,
        Ok(Appended {
            version: 2,
            epoch: 1
        })
    );
    assert_eq!(
        there.append(drive(&key, 2, 1)).await,
        Err(AppendError::Fenced { current: 1 })
    );
}

/// Answers, cancels and timers need no lease, and leave the driver's as it is.
pub async fn an_append_without_a_lease_is_accepted_while_another_drives(
    World { here, there, .. }: World,
) {
    let key = key("s");
    assert_eq!(
        here.append(take(&key, 0, 0)).await,
        Ok(Appended {
            version: 2,
            epoch: 1
        })
    );
    assert_eq!(
        there.append(append(&key, 2)).await,
        Ok(Appended {
            version: 4,
            epoch: 1
        })
    );
    assert_eq!(
        here.append(drive(&key, 2, 1)).await,
        Err(AppendError::Conflict { current: 4 })
    );
    assert_eq!(
        here.append(drive(&key, 4, 1)).await,
        Ok(Appended {
            version: 6,
            epoch: 1
        })
    );
    assert_eq!(
        lease(&*here, &key).await,
        Some(lease_of(&*here, Holder::Us))
    );
}

/// A late driver lost nothing as long as nobody took over.
pub async fn an_ended_lease_that_nobody_took_still_drives(
    World {
        here, there, clock, ..
    }: World,
) {
    let key = key("s");
    assert_eq!(
        here.append(take(&key, 0, 0)).await,
        Ok(Appended {
            version: 2,
            epoch: 1
        })
    );
    clock.advance(LASTS.saturating_add(LASTS));
    assert_eq!(
        here.append(drive(&key, 2, 1)).await,
        Ok(Appended {
            version: 4,
            epoch: 1
        })
    );
    assert_eq!(here.renew(&key, 1, LASTS).await, Ok(()));
    let held = lease_of(&*here, Holder::MaybeAlive);
    assert_eq!(
        there.take(&key, LASTS).await,
        Err(LeaseError::Held { lease: held })
    );
}

/// Renewing prolongs.
pub async fn a_renewed_lease_lasts_longer_and_never_shorter(World { here, clock, .. }: World) {
    let key = key("s");
    assert_eq!(
        here.append(take(&key, 0, 0)).await,
        Ok(Appended {
            version: 2,
            epoch: 1
        })
    );
    let before = lease_of(&*here, Holder::Us);
    assert_eq!(here.renew(&key, 1, Span::ZERO).await, Ok(()));
    assert_eq!(lease(&*here, &key).await, Some(before));
    clock.advance(Span::from_secs(1));
    assert_eq!(here.renew(&key, 1, LASTS).await, Ok(()));
    assert_eq!(
        lease(&*here, &key).await,
        Some(lease_of(&*here, Holder::Us))
    );
}

/// Nobody else's lease, and no earlier one, is prolonged or given back.
pub async fn a_lease_is_renewed_and_released_only_by_its_holder(
    World {
        here, there, clock, ..
    }: World,
) {
    let key = key("s");
    assert_eq!(
        here.append(take(&key, 0, 0)).await,
        Ok(Appended {
            version: 2,
            epoch: 1
        })
    );
    for fenced in [
        there.renew(&key, 1, LASTS).await,
        there.release(&key, 1, 2).await,
    ] {
        assert_eq!(fenced, Err(LeaseError::Fenced { current: 1 }));
    }
    clock.advance(LASTS);
    assert_eq!(there.take(&key, LASTS).await, Ok(2));
    for fenced in [
        here.renew(&key, 1, LASTS).await,
        here.release(&key, 1, 2).await,
    ] {
        assert_eq!(fenced, Err(LeaseError::Fenced { current: 2 }));
    }
    assert_eq!(
        lease(&*there, &key).await,
        Some(lease_of(&*there, Holder::Us))
    );
}

/// Work that arrived meanwhile is not left without a driver.
pub async fn a_lease_is_released_only_at_the_version_it_names(World { here, there, .. }: World) {
    let key = key("s");
    assert_eq!(
        here.append(take(&key, 0, 0)).await,
        Ok(Appended {
            version: 2,
            epoch: 1
        })
    );
    assert_eq!(
        there.append(append(&key, 2)).await,
        Ok(Appended {
            version: 4,
            epoch: 1
        })
    );
    assert_eq!(
        here.release(&key, 1, 2).await,
        Err(LeaseError::Conflict { current: 4 })
    );
    assert_eq!(
        lease(&*here, &key).await,
        Some(lease_of(&*here, Holder::Us))
    );
    assert_eq!(here.release(&key, 1, 4).await, Ok(()));
    assert_eq!(lease(&*here, &key).await, None);
    assert_eq!(there.take(&key, LASTS).await, Ok(2));
}

/// The append after which there is nothing to do gives the lease back, even the one it has just taken.
pub async fn an_append_can_release_the_lease(World { here, there, .. }: World) {
    let key = key("s");
    assert_eq!(
        here.append(take(&key, 0, 0)).await,
        Ok(Appended {
            version: 2,
            epoch: 1
        })
    );
    let last = Append {
        lease: LeaseAfter::Release,
        ..drive(&key, 2, 1)
    };
    assert_eq!(
        here.append(last).await,
        Ok(Appended {
            version: 4,
            epoch: 1
        })
    );
    assert_eq!(lease(&*here, &key).await, None);
    let only = Append {
        lease: LeaseAfter::Release,
        ..take(&key, 4, 1)
    };
    assert_eq!(
        there.append(only).await,
        Ok(Appended {
            version: 6,
            epoch: 2
        })
    );
    assert_eq!(lease(&*here, &key).await, None);
}

/// What was given back is not used again.
pub async fn a_released_lease_drives_no_more(World { here, .. }: World) {
    let key = key("s");
    assert_eq!(
        here.append(take(&key, 0, 0)).await,
        Ok(Appended {
            version: 2,
            epoch: 1
        })
    );
    assert_eq!(here.release(&key, 1, 2).await, Ok(()));
    assert_eq!(
        here.append(drive(&key, 2, 1)).await,
        Err(AppendError::Fenced { current: 1 })
    );
    assert_eq!(
        here.renew(&key, 1, LASTS).await,
        Err(LeaseError::Fenced { current: 1 })
    );
    assert_eq!(
        here.release(&key, 1, 2).await,
        Err(LeaseError::Fenced { current: 1 })
    );
}

/// Taking, renewing and releasing are no events.
pub async fn lease_changes_leave_the_thread_as_it_is(World { here, .. }: World) {
    let key = key("s");
    let first = Append {
        index: vec![runnable(&key, 1)],
        ..append(&key, 0)
    };
    assert_eq!(
        here.append(first).await,
        Ok(Appended {
            version: 2,
            epoch: 0
        })
    );
    let (before, records, rows) = everything(&*here, &key).await;
    assert_eq!(here.take(&key, LASTS).await, Ok(1));
    assert_eq!(here.renew(&key, 1, LASTS).await, Ok(()));
    assert_eq!(here.release(&key, 1, 2).await, Ok(()));
    let after = before.map(|head| crate::Head { epoch: 1, ..head });
    assert_eq!(everything(&*here, &key).await, (after, records, rows));
}

/// A lease is a thing of a thread.
pub async fn a_thread_that_does_not_exist_has_no_lease(World { here, .. }: World) {
    let key = key("s");
    assert_eq!(here.take(&key, LASTS).await, Err(LeaseError::NotFound));
    assert_eq!(here.renew(&key, 0, LASTS).await, Err(LeaseError::NotFound));
    assert_eq!(here.release(&key, 0, 0).await, Err(LeaseError::NotFound));
    let fence = Fence::Driver(0);
    let undriven = here
        .append(Append {
            fence,
            ..append(&key, 0)
        })
        .await;
    assert_eq!(undriven, Err(AppendError::Fenced { current: 0 }));
}

/// Whoever starts a server with the wish to adopt does not take the threads from those who drive them.
pub async fn adopting_a_store_that_is_no_backup_changes_nothing(World { here, there, .. }: World) {
    let key = key("s");
    assert!(here.append(take(&key, 0, 0)).await.is_ok());
    let before = everything(&*here, &key).await;
    assert_eq!(there.backup_made_at().await, Ok(None));
    assert_eq!(there.adopt().await, Ok(()));
    assert_eq!(everything(&*here, &key).await, before);
    assert_eq!(
        here.append(drive(&key, 2, 1)).await,
        Ok(Appended {
            version: 4,
            epoch: 1
        })
    );
}

/// Two servers find the same runnable thread.
pub async fn of_many_takers_exactly_one_wins(World { here, there, .. }: World) {
    let key = key("s");
    assert_eq!(
        here.append(append(&key, 0)).await,
        Ok(Appended {
            version: 2,
            epoch: 0
        })
    );
    let tasks: Vec<_> = (0..40)
        .map(|number| {
            let (store, key) = (
                Arc::clone(if number % 2 == 0 { &here } else { &there }),
                key.clone(),
            );
            tokio::spawn(async move { (store.owner(), store.take(&key, LASTS).await) })
        })
        .collect();
    let mut winners = Vec::new();
    let mut held = Vec::new();
    for task in tasks {
        match task.await {
            Ok((owner, Ok(epoch))) => winners.push((owner, epoch)),
            Ok((_, Err(LeaseError::Held { lease }))) => held.push(lease.owner),
            other => panic!("{other:?}"),
        }
    }
    let holder = lease(&*here, &key).await.map(|lease| lease.owner);
    assert_eq!(
        winners
            .iter()
            .map(|(owner, epoch)| (Some(*owner), *epoch))
            .collect::<Vec<_>>(),
        [(holder, 1)]
    );
    assert_eq!(held.into_iter().map(Some).collect::<Vec<_>>(), [holder; 39]);
}
