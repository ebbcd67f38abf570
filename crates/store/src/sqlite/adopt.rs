//! Making a backup the store to go on with.

use super::{
    marks::{self, Mark},
    writer::{Desk, Verdict, Write},
};
use crate::Unavailable;

/// How far epochs are raised: more than a thread's lease is ever taken.
const STEP: i64 = 1_000_000;

/// Takes the mark of a backup away, and every driver of the past its right to append.
pub(super) struct Adopt;

impl Write for Adopt {
    type Done = ();
    type Error = Unavailable;

    const IS_APPEND: bool = false;

    fn write(&self, Desk { tx, .. }: &Desk<'_>) -> Verdict<(), Unavailable> {
        // Not what was found when the transaction began: the mark may be gone by another write of it.
        if marks::remove(tx, Mark::Backup)? {
            tx.execute(
                "UPDATE threads SET epoch = epoch + ?1, owner = NULL, boot = NULL, until = NULL",
                [STEP],
            )?;
        }
        Ok(Ok(()))
    }
}
