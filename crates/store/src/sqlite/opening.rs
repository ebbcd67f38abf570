//! From a path to a store: what may be wrong with a file, and what can still be done with it.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use rusqlite::{Connection, ErrorCode};
use tokio::sync::watch;

use super::{
    backup::Source,
    connection::{self, Sight},
    keeper::Keeper,
    owners::Owners,
    reader::Readers,
    schema::{self, FORMAT, Found},
    trouble::{Place, explain},
    writer::Writer,
};
use crate::{OpenError, Options};

/// The parts of an opened store.
pub(super) struct Opened {
    pub(super) readers: Readers,
    /// Or why nothing can be written.
    pub(super) writer: Result<Writer, String>,
    pub(super) owners: Arc<Owners>,
}

/// What is at a path.
enum Site {
    /// Nothing, or an empty file.
    Vacant,
    /// A store of ours.
    Store(Sight),
}

pub(super) fn open(
    path: &Path,
    options: &Options,
    changes: watch::Sender<u64>,
) -> Result<Opened, OpenError> {
    let failed =
        |error: io::Error| unusable(format!("`{}` cannot be used: {error}", path.display()));
    let site = survey(path)?;
    let (conn, sight) = match site {
        Site::Vacant => (
            Ok(prepare(path).map_err(|error| error.describe(path))?),
            Sight::Shared,
        ),
        Site::Store(Sight::Frozen) => (Err(read_only(path)), Sight::Frozen),
        Site::Store(Sight::Shared) => match prepare(path) {
            Ok(conn) => (Ok(conn), Sight::Shared),
            Err(Unprepared::Sqlite(error)) if is_forbidden(&error) => {
                (Err(read_only(path)), Sight::Shared)
            }
            Err(error) => return Err(error.describe(path)),
        },
    };
    let conns = Readers::connect(path, sight).map_err(|error| unusable(explain(path, &error)))?;
    let owners = Owners::join(path, options.clock())
        .map_err(|error| unusable(format!("this machine gives no random numbers: {error}")))?;
    let owners = Arc::new(owners);
    let place = Place::new(path).map_err(failed)?;
    let writer = match conn {
        Ok(conn) => {
            let keeper =
                connection::keeper(path).map_err(|error| unusable(explain(path, &error)))?;
            let keeper = Keeper::start(keeper).map_err(failed)?;
            let owners = Arc::clone(&owners);
            Ok(Writer::start(conn, keeper, place.clone(), owners, changes).map_err(failed)?)
        }
        Err(reason) => Err(reason),
    };
    let readers = Readers::start(Source { place, sight }, conns).map_err(failed)?;
    Ok(Opened {
        readers,
        writer,
        owners,
    })
}

/// Looks at what is there, without changing anything: it may not be ours.
fn survey(path: &Path) -> Result<Site, OpenError> {
    let shown = path.display();
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => Err(unusable(format!(
            "`{shown}` is a folder, not a database file"
        ))),
        Ok(meta) if meta.len() == 0 => Ok(Site::Vacant),
        Ok(_) => inspect(path).map(Site::Store),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
                Err(unusable(format!(
                    "there is no folder `{}` to keep `{shown}` in",
                    folder.display()
                )))
            }
            Some(_) | None => Ok(Site::Vacant),
        },
        Err(error) => Err(unusable(format!("`{shown}` cannot be looked at: {error}"))),
    }
}

fn inspect(path: &Path) -> Result<Sight, OpenError> {
    let look = |sight| connection::reader(path, sight).and_then(|conn| schema::inspect(&conn));
    let (found, sight) = match look(Sight::Shared) {
        // Somebody died while they changed the file as a whole, by the older kind of log. What it says nobody knows until
        // it is put back, and that takes somebody who may write.
        Err(error) if is_forbidden(&error) && has_log(path, "-journal") => {
            let mended = connection::keeper(path).and_then(|conn| schema::inspect(&conn));
            (mended, Sight::Shared)
        }
        // What was written last may still be in a log that a frozen sight does not see.
        Err(error) if is_forbidden(&error) && !has_log(path, "-wal") => {
            (look(Sight::Frozen), Sight::Frozen)
        }
        found => (found, Sight::Shared),
    };
    let found = found.map_err(|error| unusable(explain(path, &error)))?;
    accept(path, found)?;
    Ok(sight)
}

/// Whether the log with this ending stands beside a file, and says something.
fn has_log(path: &Path, ending: &str) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push(ending);
    fs::metadata(PathBuf::from(log)).is_ok_and(|meta| meta.len() > 0)
}

/// Why there is no connection to write with.
enum Unprepared {
    Sqlite(rusqlite::Error),
    Found(OpenError),
}

impl From<rusqlite::Error> for Unprepared {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl Unprepared {
    fn describe(self, path: &Path) -> OpenError {
        match self {
            Self::Sqlite(error) => unusable(explain(path, &error)),
            Self::Found(error) => error,
        }
    }
}

fn prepare(path: &Path) -> Result<Connection, Unprepared> {
    let mut conn = connection::writer(path)?;
    let found = schema::migrate(&mut conn)?;
    accept(path, found).map_err(Unprepared::Found)?;
    Ok(conn)
}

fn accept(path: &Path, found: Found) -> Result<(), OpenError> {
    let shown = path.display();
    match found {
        Found::Empty | Found::Known(_) => Ok(()),
        Found::Newer(found) => Err(OpenError::Newer {
            store: format!("`{shown}`"),
            found,
            reads: FORMAT,
        }),
        Found::Altered(found) => Err(unusable(format!(
            "`{shown}` says it has format {found}, but is not laid out as this version knows that format"
        ))),
        Found::Foreign => Err(unusable(format!(
            "`{shown}` is a database of another program"
        ))),
    }
}

/// Whether this user is not let to do it, so that less may still be possible.
fn is_forbidden(error: &rusqlite::Error) -> bool {
    [
        ErrorCode::ReadOnly,
        ErrorCode::CannotOpen,
        ErrorCode::PermissionDenied,
    ]
    .into_iter()
    .any(|code| error.sqlite_error_code() == Some(code))
}

fn read_only(path: &Path) -> String {
    format!(
        "`{}` was opened to be read only: the file or its folder may not be written by this user",
        path.display()
    )
}

fn unusable(reason: String) -> OpenError {
    OpenError::Unusable { reason }
}
