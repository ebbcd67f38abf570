//! `holdpoint artifacts`: the results of a thread that are too long for its conversation.

use std::{
    fs::OpenOptions,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use holdpoint_core::{Artifact, ArtifactAddress};
use serde_json::json;

use crate::{
    args::Artifacts,
    exit::Exit,
    failure::Failure,
    session::{Output, Session},
    terminal, thread_name,
};

/// Lists them, or gives one.
///
/// # Errors
///
/// There is no such thread or no such result, the store fails, or what it has is not what was kept.
pub(crate) async fn artifacts(args: &Artifacts) -> Result<Exit, Failure> {
    let wanted = args.artifact.as_deref().map(address).transpose()?;
    let session = Session::open_to_read(&args.threads).await?;
    let key = thread_name::resolve(&session, &args.thread).await?;
    let state = session.state(&key).await?;
    let known = session.engine.artifacts(&key, &state).await?;
    let Some(wanted) = wanted else {
        for artifact in &known {
            list(artifact, session.output);
        }
        return Ok(Exit::Done);
    };
    let Some(artifact) = known.iter().find(|it| it.address == wanted) else {
        let message = format!("there is no `{wanted}` in that thread");
        return Err(Failure::refused("not_found", message)
            .help("without an artifact, it lists what there is"));
    };
    let text = session.engine.read_artifact(&key.tenant, artifact).await?;
    match (&args.output, session.output) {
        (Some(file), _) => write(file, &text)?,
        (None, Output::Json) => terminal::json(&json!({
            "address": artifact.address,
            "size": artifact.size,
            "digest": artifact.digest,
            "text": text,
        })),
        // Byte for byte for programs; for people, without what a terminal would obey.
        (None, Output::Plain) => terminal::whole(&text),
    }
    Ok(Exit::Done)
}

fn list(artifact: &Artifact, output: Output) {
    let Artifact {
        address,
        size,
        digest,
        ..
    } = artifact;
    match output {
        Output::Json => terminal::json(&json!({
            "address": address, "size": size, "digest": digest,
        })),
        Output::Plain => terminal::data(&format!("{address}  {size} bytes  {digest}")),
    }
}

/// As it stands in results, or without the scheme.
fn address(text: &str) -> Result<ArtifactAddress, Failure> {
    let path = text.strip_prefix(ArtifactAddress::SCHEME).unwrap_or(text);
    let read = format!("{}{path}", ArtifactAddress::SCHEME).parse();
    read.map_err(|_| {
        Failure::usage(format!("`{text}` names no artifact")).help("write artifact://NAME/vN")
    })
}

/// What a tool returned may be nobody else's business.
fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        let failure = Failure::unusable(
            "output_unusable",
            format!("`{}` cannot be written: {error}", file.display()),
        );
        if error.kind() == io::ErrorKind::AlreadyExists {
            failure.help("name a file that is not there yet")
        } else {
            failure
        }
    })
}
