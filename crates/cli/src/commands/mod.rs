//! The commands, one file each.

mod artifacts;
mod backup;
mod cancel;
mod check;
mod grants;
mod keys;
mod pause;
mod recover;
mod resume;
mod run;
mod runs;
mod serve;
mod show;
mod stops;
mod store;
mod trace;
mod webhooks;

use crate::{
    args::{Cli, Command, KeysCommand, StoreCommand, WebhooksCommand},
    exit::Exit,
    session::Output,
};

/// Runs a command to its exit code.
pub(crate) async fn run(cli: Cli) -> Exit {
    let output = Output::of(match &cli.command {
        Command::Run(args) => args.threads.common.json,
        Command::Resume(args) => args.threads.common.json,
        Command::Runs(args) => args.threads.common.json,
        Command::Recover(args) => args.common.json,
        Command::Show(args)
        | Command::Trace(args)
        | Command::Cancel(args)
        | Command::Pause(args)
        | Command::Continue(args) => args.threads.common.json,
        Command::Artifacts(args) => args.threads.common.json,
        Command::Grants(args) => args.threads.common.json,
        Command::Check(args) => args.json,
        Command::Serve(_) => false,
        Command::Keys(args) => match &args.command {
            KeysCommand::Create(args) => args.common.json,
            KeysCommand::List(args) => args.common.json,
            KeysCommand::Revoke(args) => args.common.json,
        },
        Command::Webhooks(args) => match &args.command {
            WebhooksCommand::List(threads) => threads.common.json,
            WebhooksCommand::Dead(args)
            | WebhooksCommand::Resend(args)
            | WebhooksCommand::Discard(args) => args.threads.common.json,
            WebhooksCommand::Remove(args) => args.common.json,
        },
        Command::Backup(args) => args.common.json,
        Command::Store(args) => match &args.command {
            StoreCommand::Copy(args) => args.json,
            StoreCommand::Check(args) => args.common.json,
        },
    });
    let result = match cli.command {
        Command::Run(args) => run::run(&args).await,
        Command::Resume(args) => resume::resume(&args).await,
        Command::Runs(args) => runs::runs(&args).await,
        Command::Show(args) => show::show(&args).await,
        Command::Trace(args) => trace::trace(&args).await,
        Command::Recover(args) => recover::recover(&args).await,
        Command::Cancel(args) => cancel::cancel(&args).await,
        Command::Pause(args) => pause::pause(&args).await,
        Command::Continue(args) => pause::go_on(&args).await,
        Command::Artifacts(args) => artifacts::artifacts(&args).await,
        Command::Grants(args) => grants::grants(&args).await,
        Command::Check(args) => check::check(&args).await,
        Command::Serve(args) => serve::serve(&args).await,
        Command::Keys(args) => keys::keys(&args).await,
        Command::Webhooks(args) => webhooks::webhooks(&args).await,
        Command::Backup(args) => backup::backup(&args).await,
        Command::Store(args) => store::store(&args).await,
    };
    result.unwrap_or_else(|failure| {
        match output {
            Output::Json => failure.print_json(),
            Output::Plain => failure.print(),
        }
        failure.exit()
    })
}
