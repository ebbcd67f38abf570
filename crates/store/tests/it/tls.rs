//! A database that is reached over TLS, and one that is not who it says it is.

use holdpoint_store::{Options, PostgresStore, Store as _};
use holdpoint_test_postgres::{Certificate, Database, Programs, Server};

#[tokio::test]
async fn a_connection_is_encrypted_and_the_certificate_is_always_checked() {
    let programs = Programs::find_or_install().unwrap();
    let certificate = Certificate::make(&programs).unwrap();
    let settings = certificate.settings();
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let server = Server::start(programs, &settings).unwrap();
    let database = Database::on(&server.url()).unwrap();
    let by_name = database.url().replace("127.0.0.1", "localhost");
    let trusted = certificate.file();
    let open = async |url: String| PostgresStore::open(&url, &Options::default()).await;

    let root = format!("sslrootcert={}", trusted.display());
    let store = open(format!("{by_name}?sslmode=require&{root}"))
        .await
        .unwrap();
    assert_eq!(store.count_threads().await, Ok(0));
    let encrypted = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
                     WHERE application_name = 'holdpoint' AND ssl";
    let plain = encrypted.replace("AND ssl", "AND NOT ssl");
    assert_ne!(database.numbers(encrypted).unwrap(), [0]);
    assert_eq!(database.numbers(&plain).unwrap(), [0]);
    drop(store);

    // Nobody vouches for it; it has another name; and it is not asked who it is.
    for (url, is_let_in) in [
        (format!("{by_name}?sslmode=require"), false),
        (format!("{}?sslmode=require&{root}", database.url()), false),
        (format!("{by_name}?sslmode=disable"), true),
    ] {
        let opened = open(url.clone()).await;
        assert_eq!(opened.is_ok(), is_let_in, "{url}: {opened:?}");
    }
}

#[tokio::test]
async fn a_server_that_shows_the_certificate_of_an_authority_is_told_what_to_show_instead() {
    let programs = Programs::find_or_install().unwrap();
    let certificate = Certificate::make_authority(&programs).unwrap();
    let settings = certificate.settings();
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let server = Server::start(programs, &settings).unwrap();
    let url = format!(
        "{}/postgres?sslmode=verify-full&sslrootcert={}",
        server.url().replace("127.0.0.1", "localhost"),
        certificate.file().display()
    );
    let opened = PostgresStore::open(&url, &Options::default()).await;
    let said = opened.unwrap_err().to_string();
    assert!(
        said.contains("its certificate is that of an authority"),
        "{said}"
    );
}
