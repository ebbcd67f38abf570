//! `holdpoint runs`: all runs in a table, the newest last.

use holdpoint_engine::RunSummary;
use serde_json::json;

use crate::{
    args::Store,
    exit::Exit,
    failure::Failure,
    safe_text::{columns, line},
    session::{IfMissing, Output, Session},
    terminal, zone,
};

/// Lists all runs.
///
/// # Errors
///
/// The store fails.
pub(crate) async fn runs(args: &Store) -> Result<Exit, Failure> {
    let session = Session::open(&args.common, IfMissing::Refuse).await?;
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
        Output::Plain if runs.is_empty() => terminal::note("there are no runs yet"),
        Output::Plain => print_table(&runs),
    }
    Ok(Exit::Done)
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
