//! Speaking with the database: statements with their values, prepared where that is possible.
//!
//! A statement that is prepared once is planned once, and the plan of an append takes longer than the append. But it belongs
//! to one connection of the database. A pooler that hands those out for a transaction at a time, as PgBouncer does, may
//! give the next transaction another one, which knows nothing of it; so behind a pooler nothing is prepared, and what a
//! statement is and what its values are goes out at once.

use deadpool_postgres::{Object, Transaction};
use tokio_postgres::{
    Client, Error, Row,
    types::{ToSql, Type},
};

/// How the database is spoken with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// With statements that are prepared, on connections that are ours.
    Directly,
    /// Through a pooler that gives away a connection for a transaction at a time.
    Pooled,
}

/// A value of a statement.
pub(super) trait Value: Sync {
    /// It, and the type it has in the database.
    fn typed(&self) -> (&(dyn ToSql + Sync), Type);
}

/// Something that a column can hold.
pub(super) trait Kind {
    const TYPE: Type;
    const ARRAY: Type;
}

macro_rules! kinds {
    ($($rust:ty: $kind:ident, $array:ident;)+) => {
        $(
            impl Kind for $rust {
                const TYPE: Type = Type::$kind;
                const ARRAY: Type = Type::$array;
            }

            impl Value for $rust {
                fn typed(&self) -> (&(dyn ToSql + Sync), Type) {
                    (self, Type::$kind)
                }
            }
        )+
    };
}

kinds! {
    &[u8]: BYTEA, BYTEA_ARRAY;
    Vec<u8>: BYTEA, BYTEA_ARRAY;
    &str: TEXT, TEXT_ARRAY;
    String: TEXT, TEXT_ARRAY;
    bool: BOOL, BOOL_ARRAY;
    i16: INT2, INT2_ARRAY;
    i64: INT8, INT8_ARRAY;
}

impl<T: Kind> Kind for Option<T> {
    const TYPE: Type = T::TYPE;
    const ARRAY: Type = T::ARRAY;
}

impl<T: Kind + ToSql + Sync> Value for Option<T> {
    fn typed(&self) -> (&(dyn ToSql + Sync), Type) {
        (self, T::TYPE)
    }
}

impl<T: Kind + ToSql + Sync> Value for Vec<T> {
    fn typed(&self) -> (&(dyn ToSql + Sync), Type) {
        (self, T::ARRAY)
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct Line {
    connection: Object,
    manner: Manner,
}

/// A transaction on a connection.
pub(super) struct Deal<'a> {
    transaction: Transaction<'a>,
    manner: Manner,
}

/// What is the same on a connection and in a transaction, one way of asking beside the other.
macro_rules! speaking {
    ($speaker:ty, $inner:ident: $($ask:ident, $ask_typed:ident -> $answer:ty;)+) => {
        impl $speaker {
            $(
                pub(super) async fn $ask(
                    &self,
                    sql: &str,
                    values: &[&dyn Value],
                ) -> Result<$answer, Error> {
                    let typed: Vec<_> = values.iter().map(|value| value.typed()).collect();
                    match self.manner {
                        Manner::Directly => {
                            let statement = self.$inner.prepare_cached(sql).await?;
                            self.$inner.$ask(&statement, &untyped(&typed)).await
                        }
                        Manner::Pooled => self.$inner.$ask_typed(sql, &typed).await,
                    }
                }
            )+
        }
    };
    ($speaker:ty, $inner:ident) => {
        speaking! {
            $speaker, $inner:
            query, query_typed -> Vec<Row>;
            query_opt, query_typed_opt -> Option<Row>;
            query_one, query_typed_one -> Row;
            execute, execute_typed -> u64;
        }
    };
}

speaking!(Line, connection);
speaking!(Deal<'_>, transaction);

fn untyped<'a>(typed: &[(&'a (dyn ToSql + Sync), Type)]) -> Vec<&'a (dyn ToSql + Sync)> {
    typed.iter().map(|(value, _)| *value).collect()
}

impl Line {
    pub(super) const fn new(connection: Object, manner: Manner) -> Self {
        Self { connection, manner }
    }

    pub(super) async fn transaction(&mut self) -> Result<Deal<'_>, Error> {
        Ok(Deal {
            transaction: self.connection.transaction().await?,
            manner: self.manner,
        })
    }

    /// Does not give the connection back, because nobody knows what is going on on it.
    pub(super) fn forget(self) {
        drop(Object::take(self.connection));
    }

    pub(super) const fn manner(&self) -> Manner {
        self.manner
    }

    pub(super) fn client(&self) -> &Client {
        &self.connection
    }
}

impl Deal<'_> {
    pub(super) async fn commit(self) -> Result<(), Error> {
        self.transaction.commit().await
    }

    /// Statements without values.
    pub(super) async fn batch_execute(&self, sql: &str) -> Result<(), Error> {
        self.transaction.batch_execute(sql).await
    }
}
