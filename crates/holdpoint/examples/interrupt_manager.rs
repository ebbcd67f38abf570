//! A workflow that has no agent here asks a person, is restarted while it waits, and gets its answer.
//!
//! ```console
//! $ cargo run -p holdpoint --example interrupt_manager
//! ```

use std::{error::Error, path::Path, time::Duration};

use holdpoint::{
    Engine, InterruptKind, InterruptStatus, Kit, Options, Principal, PrincipalKind,
    manager::{Interrupt, InterruptManager, InterruptOptions, ManagerError, Page, Response},
};
use serde_json::json;

/// A manager as each process makes it.
async fn manager(folder: &Path, name: &str) -> Result<InterruptManager, Box<dyn Error>> {
    let url = format!("sqlite:{}", folder.join("interrupts.db").display());
    let store = holdpoint::open(&url, Default::default()).await?;
    let engine = Engine::new(store, Kit::new(), Options::default(), None);
    let by = Principal::new(PrincipalKind::Service, "local", name);
    let manager = InterruptManager::new(engine, by).with_log(|failure| eprintln!("{failure}"));
    manager.register_named_handler(
        InterruptKind::Approval,
        "chat",
        |interrupt: Interrupt| async move {
            println!("  chat: {} ({})", interrupt.title, interrupt.id);
            Ok(())
        },
    );
    Ok(manager)
}

/// The same question each time the workflow comes to this node.
fn question() -> InterruptOptions {
    InterruptOptions::new(InterruptKind::Approval, "release-7", "deploy")
        .title("Deploy release 7?")
        .data(json!({"hosts": 40}))
        .option("now", "Now")
        .option("tonight", "Tonight")
        .timeout(Duration::from_secs(3_600))
        .checkpoint_id("release-7/step-3")
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;

    println!("The workflow asks, and its process ends while it waits.");
    let first = manager(folder.path(), "workflow").await?;
    let asked = first.create_pending(question()).await?;
    let waiter = {
        let first = first.clone();
        tokio::spawn(async move { first.create(question()).await })
    };
    waiter.abort();
    drop((waiter.await, first));

    println!("In another process, Ann finds the question and answers.");
    let inbox = manager(folder.path(), "inbox").await?;
    let pending = inbox.pending(Some("release-7")).await?;
    assert_eq!(pending.first(), Some(&asked));
    let wrong = inbox.resolve(asked.id, Response::choose("never")).await;
    let wrong = wrong.err().ok_or("there is no such option")?;
    println!("  {wrong}");
    assert_eq!(wrong.code(), "invalid_argument");
    let answer = Response::choose("tonight").by("ann").comment("after six");
    inbox.resolve(asked.id, answer).await?;

    println!("The workflow is started again, asks again, and has its answer.");
    let second = manager(folder.path(), "workflow").await?;
    let response = second.create(question()).await?;
    println!("  {}", serde_json::to_string(&response)?);
    assert!(response.is_approved());
    assert_eq!(response.option_id.as_deref(), Some("tonight"));
    assert_eq!(response.user_id.as_deref(), Some("ann"));

    println!("What is no longer wanted is canceled, and whoever waits is told.");
    let next =
        InterruptOptions::new(InterruptKind::Review, "release-7", "notes").title("Read this");
    let next = second.create_pending(next).await?;
    second.cancel(next.id).await?;
    let canceled = second.wait(next.id).await;
    assert!(matches!(canceled, Err(ManagerError::Canceled { .. })));
    for interrupt in inbox.list(None, None, Page::default()).await? {
        println!("  {}: {}", interrupt.node_id, interrupt.status.as_str());
    }
    let resolved = Some(InterruptStatus::Resolved);
    assert_eq!(inbox.list(None, resolved, Page::ALL).await?.len(), 1);
    Ok(())
}
