//! The databases that are measured on: files of SQLite, and databases on a PostgreSQL server of the bench's own.

mod file;

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::{postgres::Postgres, workload::Backend};

/// A database of ours that was copied would be taken for a backup.
const FORGET_HOME: &str = "DO $$ BEGIN IF to_regclass('marks') IS NOT NULL THEN DELETE FROM marks WHERE name = 'home'; END IF; END $$";

/// A database. One on a server is dropped with this.
#[derive(Debug)]
pub(crate) enum Database {
    /// A file of SQLite.
    File(PathBuf),
    /// One of PostgreSQL.
    Server(holdpoint_test_postgres::Database),
}

impl Database {
    /// How a store names it.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::File(file) => format!("sqlite:{}", file.display()),
            Self::Server(database) => database.url(),
        }
    }

    /// Its file.
    ///
    /// # Errors
    ///
    /// It is on a server.
    pub(crate) fn file(&self) -> anyhow::Result<&Path> {
        match self {
            Self::File(file) => Ok(file),
            Self::Server(_) => anyhow::bail!("a database on a server is no file"),
        }
    }

    /// Leaves nothing to be done later that whoever is measured next would wait for. Nobody may have it open.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(crate) fn settle(&self) -> anyhow::Result<()> {
        match self {
            Self::File(file) => file::settle(file),
            // What autovacuum does within a minute or so, whether it has come to it or not.
            Self::Server(database) => database
                .execute("VACUUM ANALYZE")
                .and_then(|()| database.execute("CHECKPOINT")),
        }
    }

    /// How large it is with everything in its place: of SQLite the file, of PostgreSQL the tables with their indexes.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(crate) fn size(&self) -> anyhow::Result<u64> {
        match self {
            Self::File(file) => file::size(file),
            Self::Server(database) => {
                database.execute("CHECKPOINT")?;
                let sum = database.numbers(
                    "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
                     WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
                )?;
                Ok(sum.first().map_or(0, |sum| sum.unsigned_abs()))
            }
        }
    }

    /// Removes it, when nobody has it open any more.
    ///
    /// # Errors
    ///
    /// It cannot be removed.
    pub(crate) fn remove(self) -> anyhow::Result<()> {
        match self {
            Self::File(file) => file::remove(&file),
            Self::Server(database) => {
                drop(database);
                Ok(())
            }
        }
    }
}

/// Where databases are made, each with a name of its own.
#[derive(Debug)]
pub(crate) struct Databases<'a> {
    folder: &'a Path,
    files: usize,
    postgres: Option<Postgres>,
}

impl<'a> Databases<'a> {
    /// In this folder, and on this server if there is one.
    pub(crate) const fn new(folder: &'a Path, postgres: Option<Postgres>) -> Self {
        Self {
            folder,
            files: 0,
            postgres,
        }
    }

    /// The server.
    ///
    /// # Errors
    ///
    /// There is none.
    pub(crate) fn postgres(&self) -> anyhow::Result<&Postgres> {
        let postgres = self.postgres.as_ref();
        postgres.context("there is no PostgreSQL server")
    }

    /// A path that nobody has, which ends in this.
    pub(crate) fn path(&mut self, extension: &str) -> PathBuf {
        self.files += 1;
        self.folder.join(format!("{}.{extension}", self.files))
    }

    /// A new one, with nothing in it.
    ///
    /// # Errors
    ///
    /// The server cannot be reached.
    pub(crate) fn fresh(&mut self, backend: Backend) -> anyhow::Result<Database> {
        Ok(match backend {
            Backend::Sqlite => Database::File(self.path("db")),
            Backend::Postgres => {
                let database = self.postgres()?.create()?;
                // What making it has left to be written is no part of what is measured.
                database.execute("CHECKPOINT")?;
                Database::Server(database)
            }
        })
    }

    /// A copy of one that nobody has open. It is on the disk when this returns, so that nobody who is measured has to wait
    /// for that.
    ///
    /// # Errors
    ///
    /// It cannot be copied.
    pub(crate) fn copy(&mut self, of: &Database) -> anyhow::Result<Database> {
        match of {
            Database::File(file) => {
                let copy = self.path("db");
                file::copy(file, &copy)?;
                Ok(Database::File(copy))
            }
            Database::Server(database) => {
                let copy = database.copy()?;
                // It is as good as the original, which is not driven again.
                copy.execute(FORGET_HOME)?;
                copy.execute("CHECKPOINT")?;
                Ok(Database::Server(copy))
            }
        }
    }
}
