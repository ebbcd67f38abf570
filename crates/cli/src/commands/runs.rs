//! `holdpoint runs`: all runs in a table, the newest last.

use holdpoint_core::Index;
use holdpoint_engine::RunSummary;
use serde_json::json;

use crate::{
    args::Runs,
    exit::Exit,
    failure::Failure,
    safe_text::{columns, line},
    session::{Output, Session},
    terminal, zone,
};

/// Lists all runs.
///
/// # Errors
///
/// The store fails.
pub(crate) async fn runs(args: &Runs) -> Result<Exit, Failure> {
    let session = Session::open_to_read(&args.threads).await?;
    let runs = session.engine.summaries(session.tenant()).await?;
    match session.output {
        Output::Json => {
            for run in &runs {
                terminal::json(&json!({
                    "run_id": run.run_id,
                    "thread_id": run.thread_id,
                    "agent": run.agent,
                    "session": run.session,
                    "status": run.status,
                    "cause": run.cause,
                    "started_at": zone::rfc3339(run.started_at),
                }));
            }
        }
        Output::Plain if runs.is_empty() => terminal::note(&nothing(&session).await?),
        Output::Plain => print_table(&runs),
    }
    Ok(Exit::Done)
}

/// Who sees nothing may be looking in the wrong place.
async fn nothing(session: &Session) -> Result<String, Failure> {
    let tenants = session.engine.store().tenants(Index::Run).await?;
    let others: Vec<String> = tenants.iter().map(|tenant| line(tenant)).collect();
    Ok(if others.is_empty() {
        "there are no runs yet".to_owned()
    } else {
        let (ours, others) = (line(session.tenant()), others.join(", "));
        format!("there are no runs of tenant {ours}; `--tenant` shows those of: {others}")
    })
}

fn print_table(runs: &[RunSummary]) {
    let heading = [
        "STARTED",
        "STATUS",
        "CAUSE",
        "AGENT/SESSION",
        "RUN",
        "THREAD",
    ];
    let mut rows = vec![heading.map(str::to_owned)];
    rows.extend(runs.iter().map(|run| {
        [
            zone::short(run.started_at),
            run.status.to_owned(),
            line(run.cause.as_deref().unwrap_or("-")),
            format!("{}/{}", line(&run.agent), line(&run.session)),
            run.run_id.to_string(),
            run.thread_id.to_string(),
        ]
    }));
    let mut widths = [0; 6];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(columns(cell));
        }
    }
    for row in &rows {
        let cells: Vec<String> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell}{}", " ".repeat(width - columns(cell))))
            .collect();
        terminal::data(cells.join("  ").trim_end());
    }
}
