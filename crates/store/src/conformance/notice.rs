//! Time, owners, and noticing what others do.

use std::time::Duration;

use holdpoint_core::{Span, Timestamp};

use super::world::{World, append, key};
use crate::Appended;

/// A deadline that has passed stays passed.
pub async fn time_never_runs_backwards(World { here, clock, .. }: World) {
    let before = here.now();
    clock.set(Timestamp::from_micros(before.as_micros() - 1));
    assert_eq!(here.now(), before);
    clock.advance(Span::from_micros(1));
    assert_eq!(here.now(), before + Span::from_micros(1));
}

/// So that a lease says which of them holds it.
pub async fn each_handle_has_an_owner_of_its_own(World { here, there, .. }: World) {
    assert_eq!(here.owner(), here.owner());
    assert_ne!(here.owner(), there.owner());
}

/// A hint arrives, sooner or later.
pub async fn changes_of_another_handle_are_noticed_and_ones_own_are_not(
    World { here, there, .. }: World,
) {
    let (mut noticed, own) = (there.foreign_changes(), here.foreign_changes());
    let seen = *noticed.borrow_and_update();
    assert_eq!(
        here.append(append(&key("s"), 0)).await,
        Ok(Appended {
            version: 2,
            epoch: 0
        })
    );
    let told = tokio::time::timeout(Duration::from_secs(20), noticed.changed()).await;
    assert_eq!(told.map(|told| told.is_ok()), Ok(true));
    assert!(*noticed.borrow() > seen);
    assert_eq!(*own.borrow(), 0);
}
