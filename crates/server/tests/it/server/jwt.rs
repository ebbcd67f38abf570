//! Tokens of issuers that the configuration names.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use aws_lc_rs::{
    encoding::AsDer as _,
    rand::SystemRandom,
    rsa::KeySize,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
        EcdsaSigningAlgorithm, Ed25519KeyPair, RsaKeyPair,
    },
};
use axum::{Json, Router, extract::State, http::StatusCode, routing::get};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use holdpoint_core::PrincipalKind;
use holdpoint_definition::{Issuer, IssuerKeys, IssuerTenant, ServerFile};
use holdpoint_server::{Access, Opening};
use jsonwebtoken::{Algorithm, EncodingKey, Header, get_current_timestamp, jwk::Jwk};
use reqwest::Method;
use serde_json::{Value, json};

use super::support::{World, read};

const ISSUER: &str = "https://id.example.com";

/// A key of an issuer.
struct Signer {
    kid: &'static str,
    algorithm: Algorithm,
    key: EncodingKey,
}

impl Signer {
    fn curve(kid: &'static str, algorithm: Algorithm, by: &'static EcdsaSigningAlgorithm) -> Self {
        let made = EcdsaKeyPair::generate_pkcs8(by, &SystemRandom::new()).unwrap();
        Self {
            kid,
            algorithm,
            key: EncodingKey::from_ec_der(made.as_ref()),
        }
    }

    fn p256(kid: &'static str) -> Self {
        Self::curve(kid, Algorithm::ES256, &ECDSA_P256_SHA256_FIXED_SIGNING)
    }

    fn p384(kid: &'static str) -> Self {
        Self::curve(kid, Algorithm::ES384, &ECDSA_P384_SHA384_FIXED_SIGNING)
    }

    fn edwards(kid: &'static str) -> Self {
        let made = Ed25519KeyPair::generate_pkcs8v1(&SystemRandom::new()).unwrap();
        Self {
            kid,
            algorithm: Algorithm::EdDSA,
            key: EncodingKey::from_ed_der(made.as_ref()),
        }
    }

    fn rsa(kid: &'static str, algorithm: Algorithm) -> Self {
        let made = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        let made = made.as_der().unwrap();
        // A key of this size begins so far into what it is wrapped in.
        let inner = &made.as_ref()[26..];
        Self {
            kid,
            algorithm,
            key: EncodingKey::from_rsa_der(inner),
        }
    }

    /// What the issuer shows of it.
    fn public(&self) -> Value {
        let jwk = Jwk::from_encoding_key(&self.key, self.algorithm).unwrap();
        let mut jwk = serde_json::to_value(jwk).unwrap();
        jwk["kid"] = json!(self.kid);
        jwk
    }

    fn sign(&self, claims: &Value) -> String {
        let mut header = Header::new(self.algorithm);
        header.kid = Some(self.kid.to_owned());
        jsonwebtoken::encode(&header, claims, &self.key).unwrap()
    }

    /// A token with any header, signed in this key's way whatever the header says.
    fn sign_as(&self, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", encode(header), encode(claims));
        let signature =
            jsonwebtoken::crypto::sign(message.as_bytes(), &self.key, self.algorithm).unwrap();
        format!("{message}.{signature}")
    }
}

fn encode(part: &Value) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(part.to_string())
}

fn set(signers: &[&Signer]) -> Value {
    let keys: Vec<Value> = signers.iter().map(|signer| signer.public()).collect();
    json!({ "keys": keys })
}

/// Good claims of ann at acme, with these in their place; null takes one away.
fn claims(changes: &Value) -> Value {
    let now = get_current_timestamp();
    let mut claims = json!({
        "iss": ISSUER, "aud": "holdpoint", "exp": now + 300, "iat": now, "sub": "ann", "org": "acme",
        "roles": ["payer"], "permissions": ["pay"],
    });
    let all = claims.as_object_mut().unwrap();
    for (claim, value) in changes.as_object().unwrap() {
        if value.is_null() {
            all.remove(claim);
        } else {
            all.insert(claim.clone(), value.clone());
        }
    }
    claims
}

fn issuer(name: &str, keys: IssuerKeys) -> Issuer {
    Issuer {
        issuer: name.to_owned(),
        audience: "holdpoint".to_owned(),
        keys,
        tenant: IssuerTenant::Claim {
            claim: "org".to_owned(),
            tenants: BTreeSet::from(["acme".to_owned(), "beta".to_owned()]),
        },
        name_claim: "sub".to_owned(),
        roles_claim: Some("roles".to_owned()),
        permissions_claim: Some("permissions".to_owned()),
        allow_private: vec!["127.0.0.1".to_owned()],
    }
}

/// A server that trusts an issuer with these keys, from a file.
async fn trusting(signers: &[&Signer]) -> (World, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jwks.json");
    std::fs::write(&file, set(signers).to_string()).unwrap();
    let issuer = issuer(ISSUER, IssuerKeys::File(file));
    (world(issuer).await, folder)
}

async fn world(issuer: Issuer) -> World {
    World::new(Access::Keys, |file| file.issuers = vec![issuer]).await
}

async fn ask(world: &World, token: &str) -> (u16, Value) {
    let request = world.request(Method::GET, "/api/v1/runs");
    read(request.bearer_auth(token).send().await.unwrap()).await
}

/// Asserts that a token is refused, and is not said again.
async fn refused(world: &World, token: &str, what: &str) -> String {
    let (status, problem) = ask(world, token).await;
    assert_eq!(
        (status, &problem["code"]),
        (401, &json!("unauthorized")),
        "{what}: {problem}"
    );
    let said = problem["error"].as_str().unwrap().to_owned();
    for part in token.split('.').filter(|part| part.len() > 8) {
        assert!(!said.contains(part), "{what}: {said}");
    }
    said
}

async fn begin(world: &World, token: &str, session: &str) -> String {
    let body = json!({"agent_id": "clerk", "session_id": session, "input": "go"});
    let begun = world.posting("/api/v1/runs", &body).bearer_auth(token);
    let (status, begun) = read(begun.send().await.unwrap()).await;
    assert_eq!(status, 201, "{begun}");
    let run = begun["run_id"].as_str().unwrap().to_owned();
    for _ in 0..500 {
        let shown = world.request(Method::GET, &format!("/api/v1/runs/{run}"));
        let (_, shown) = read(shown.bearer_auth(token).send().await.unwrap()).await;
        if shown["status"] == "waiting" {
            return run;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{run} does not wait");
}

/// Everybody who is named in a value.
fn actors(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if let (Some(name), Some(tenant)) = (fields.get("name"), fields.get("tenant")) {
                found.insert(format!("{} {tenant} {name}", fields["kind"]));
            }
            fields.values().for_each(|value| actors(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| actors(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test]
async fn a_good_token_lets_its_user_in_and_their_name_is_on_what_they_do() {
    let signers = [
        Signer::p256("a"),
        Signer::p384("b"),
        Signer::edwards("c"),
        Signer::rsa("d", Algorithm::RS256),
        Signer::rsa("e", Algorithm::PS512),
    ];
    let (world, _keys) = trusting(&signers.iter().collect::<Vec<_>>()).await;
    for signer in &signers {
        let (status, answer) = ask(&world, &signer.sign(&claims(&json!({})))).await;
        assert_eq!(status, 200, "{:?}: {answer}", signer.algorithm);
    }
    let token = signers[0].sign(&claims(&json!({"aud": ["other", "holdpoint"]})));
    let run = begin(&world, &token, "s").await;
    let approve = json!({"decisions": [{"type": "approve"}]});
    let path = format!("/api/v1/runs/{run}/resume");
    let decide = world.posting(&path, &approve).bearer_auth(&token);
    let (status, decided) = read(decide.send().await.unwrap()).await;
    assert_eq!(status, 200, "{decided}");
    let trace = world.request(Method::GET, &format!("/api/v1/runs/{run}/trace"));
    let (_, trace) = read(trace.bearer_auth(&token).send().await.unwrap()).await;
    let mut found = BTreeSet::new();
    actors(&trace, &mut found);
    assert!(found.contains("\"user\" \"acme\" \"ann\""), "{trace}");
    // What claims say of kinds and rights is heard only where that is configured.
    let (_, key) = world.key(PrincipalKind::User, "acme", "ann").await;
    let shown = world.request(Method::GET, &format!("/api/v1/runs/{run}"));
    assert_eq!(
        read(shown.bearer_auth(&key).send().await.unwrap()).await.0,
        200
    );
    let other = signers[1].sign(&claims(&json!({"org": "beta"})));
    let shown = world.request(Method::GET, &format!("/api/v1/runs/{run}"));
    assert_eq!(
        read(shown.bearer_auth(&other).send().await.unwrap())
            .await
            .0,
        404
    );
}

#[tokio::test]
async fn whatever_is_wrong_with_a_token_it_lets_nobody_in() {
    let (known, rsa) = (Signer::p256("a"), Signer::rsa("r", Algorithm::RS256));
    let (world, _keys) = trusting(&[&known, &rsa]).await;
    let good = known.sign(&claims(&json!({})));
    assert_eq!(ask(&world, &good).await.0, 200);
    let before = world.contents();
    let now = get_current_timestamp();
    for (changes, said) in [
        (
            json!({"iss": "https://evil.example"}),
            "issuer that is unknown",
        ),
        (
            json!({"iss": "https://id.example.com/"}),
            "issuer that is unknown",
        ),
        (json!({"iss": [ISSUER]}), "cannot be read"),
        (json!({"iss": null}), "cannot be read"),
        (json!({"aud": "other"}), "another audience"),
        (json!({"aud": null}), "another audience"),
        (json!({"exp": now - 120}), "expired"),
        (json!({"exp": null}), "never expires"),
        (json!({"exp": "soon"}), "`exp` is no time"),
        (json!({"nbf": now + 120}), "not valid yet"),
        (json!({"iat": now + 120}), "not valid yet"),
        (json!({"org": "globex"}), "does not speak for its tenant"),
        (json!({"org": null}), "`org`"),
        (json!({"sub": null}), "`sub`"),
        (json!({"sub": "holdpoint"}), "Holdpoint itself"),
        (json!({"sub": "system.timer"}), "Holdpoint itself"),
        (json!({"sub": "_ann"}), "cannot be a name"),
        (json!({"sub": "ann@example.com"}), "cannot be a name"),
        (json!({"permissions": ["pay", "*"]}), "no token can give"),
        (json!({"permissions": "*"}), "no token can give"),
        (json!({"roles": {"payer": true}}), "`roles`"),
        (json!({"pad": "x".repeat(9_000)}), "longer than 8192 bytes"),
    ] {
        let token = known.sign(&claims(&changes));
        let what = changes.to_string();
        let answer = refused(&world, &token, &what[..what.len().min(60)]).await;
        assert!(answer.contains(said), "{what}: {answer}");
    }

    let (claims, forger) = (claims(&json!({})), Signer::p256("a"));
    let head = |alg: &str| json!({"alg": alg, "typ": "JWT", "kid": "a"});
    let mut tampered: Vec<&str> = good.split('.').collect();
    let grown = encode(
        &json!({"iss": ISSUER, "aud": "holdpoint", "exp": now + 300, "sub": "eve", "org": "acme"}),
    );
    tampered[1] = &grown;
    // The public key as the secret of a signature that needs one: in every spelling that somebody may have of it.
    let public = rsa.public();
    let modulus = public["n"].as_str().unwrap();
    let confused = [
        modulus.as_bytes().to_vec(),
        BASE64_URL_SAFE_NO_PAD.decode(modulus).unwrap(),
        public.to_string().into_bytes(),
        Vec::new(),
    ]
    .map(|secret| {
        let mut header = Header::new(Algorithm::HS256);
        header.kid = Some("r".to_owned());
        jsonwebtoken::encode(&header, &claims, &EncodingKey::from_secret(&secret)).unwrap()
    });
    let mut wrong = vec![
        (forger.sign(&claims), "signature is not"),
        (tampered.join("."), "signature is not"),
        (good[..good.len() - 4].to_owned(), "signature is not"),
        (Signer::p256("b").sign(&claims), "key that its issuer does not have"),
        (known.sign_as(&json!({"alg": "ES256"}), &claims), "does not say with which key"),
        (known.sign_as(&head("RS256"), &claims), "in a way (`alg`)"),
        (known.sign_as(&head("ES384"), &claims), "in a way (`alg`)"),
        (known.sign_as(&head("none"), &claims), "cannot be read"),
        (known.sign_as(&head("None"), &claims), "cannot be read"),
        (
            known.sign_as(&json!({"alg": "ES256", "kid": "a", "crit": ["exp"]}), &claims),
            "`crit`",
        ),
        (
            // A key that the token brings along is nobody's.
            forger.sign_as(
                &json!({"alg": "ES256", "kid": "a", "jwk": forger.public(), "jku": "https://evil.example"}),
                &claims,
            ),
            "signature is not",
        ),
        (format!("{}.{}.", encode(&head("none")), encode(&claims)), "cannot be read"),
        (format!("{}.{}.", encode(&head("ES256")), encode(&claims)), "signature is not"),
        ("..".to_owned(), "cannot be read"),
        ("a.b.c".to_owned(), "cannot be read"),
        (format!("hp_{good}"), "unknown here"),
        (format!("{good}.x"), "unknown here"),
    ];
    wrong.extend(confused.map(|token| (token, "in a way (`alg`)")));
    for (token, said) in wrong {
        let answer = refused(&world, &token, said).await;
        assert!(answer.contains(said), "{said}: {answer}");
    }
    assert_eq!(world.contents(), before);
    assert_eq!(ask(&world, &good).await.0, 200);
}

#[tokio::test]
async fn without_an_issuer_a_token_is_refused_as_any_key_that_is_unknown() {
    let world = World::new(Access::Keys, |_| {}).await;
    let token = Signer::p256("a").sign(&claims(&json!({})));
    let unknown = ask(&world, "nonsense").await;
    assert_eq!(unknown.0, 401);
    assert_eq!(ask(&world, &token).await, unknown);
}

#[tokio::test]
async fn keys_and_tokens_stand_beside_each_other_and_an_agents_key_still_never_decides() {
    let signer = Signer::p256("a");
    let (world, _keys) = trusting(&[&signer]).await;
    let (_, bot) = world.key(PrincipalKind::Agent, "acme", "bot").await;
    // Whatever a token says of it, it stands for a user.
    let token = signer.sign(&claims(&json!({"kind": "agent", "sub": "bot"})));
    let run = begin(&world, &bot, "s").await;
    let path = format!("/api/v1/runs/{run}/resume");
    let approve = json!({"decisions": [{"type": "approve"}]});
    for (carried, expected) in [(&bot, 403), (&token, 200)] {
        let decide = world.posting(&path, &approve).bearer_auth(carried);
        let (status, answer) = read(decide.send().await.unwrap()).await;
        assert_eq!(status, expected, "{answer}");
    }
}

#[tokio::test]
async fn with_dev_tokens_are_not_looked_at_and_no_issuer_is_asked() {
    let place = Place::open().await;
    let mine = issuer(&place.url(), IssuerKeys::Discovery);
    let world = World::new(Access::Dev, |file| file.issuers = vec![mine]).await;
    for carried in ["nonsense", "a.b.c"] {
        assert_eq!(ask(&world, carried).await.0, 200, "{carried}");
    }
    assert_eq!(place.asked(), (0, 0));
}

/// An issuer on this machine.
struct Place {
    port: u16,
    shown: Arc<Shown>,
}

#[derive(Default)]
struct Shown {
    keys: Mutex<Value>,
    configuration: Mutex<Value>,
    asked_for_keys: AtomicUsize,
    asked_for_configuration: AtomicUsize,
}

impl Place {
    async fn open() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shown = Arc::new(Shown::default());
        let keys = |State(shown): State<Arc<Shown>>| async move {
            shown.asked_for_keys.fetch_add(1, Ordering::SeqCst);
            Json(shown.keys.lock().unwrap().clone())
        };
        let configuration = |State(shown): State<Arc<Shown>>| async move {
            shown.asked_for_configuration.fetch_add(1, Ordering::SeqCst);
            Json(shown.configuration.lock().unwrap().clone())
        };
        let elsewhere = || async { (StatusCode::FOUND, [("location", "/jwks")]) };
        let router = Router::new()
            .route("/jwks", get(keys))
            .route("/elsewhere", get(elsewhere))
            .route("/long", get(|| async { " ".repeat(300 << 10) }))
            .route("/.well-known/openid-configuration", get(configuration))
            .with_state(Arc::clone(&shown));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let place = Self { port, shown };
        place.says(&place.url(), &format!("{}/jwks", place.url()));
        place
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn at(&self, path: &str) -> IssuerKeys {
        IssuerKeys::Url(format!("{}{path}", self.url()))
    }

    fn shows(&self, signers: &[&Signer]) {
        *self.shown.keys.lock().unwrap() = set(signers);
    }

    fn says(&self, issuer: &str, jwks_uri: &str) {
        let said =
            json!({"issuer": issuer, "jwks_uri": jwks_uri, "response_types_supported": ["code"]});
        *self.shown.configuration.lock().unwrap() = said;
    }

    /// How often keys and the configuration were asked for.
    fn asked(&self) -> (usize, usize) {
        let count = |counter: &AtomicUsize| counter.load(Ordering::SeqCst);
        (
            count(&self.shown.asked_for_keys),
            count(&self.shown.asked_for_configuration),
        )
    }
}

#[tokio::test]
async fn a_key_that_is_not_known_is_sought_once_and_not_with_every_request() {
    let place = Place::open().await;
    let (old, new, never) = (Signer::p256("old"), Signer::p256("new"), Signer::p256("no"));
    place.shows(&[&old]);
    let world = world(issuer(ISSUER, place.at("/jwks"))).await;
    let [by_old, by_new, by_nobody] =
        [&old, &new, &never].map(|signer| signer.sign(&claims(&json!({}))));
    for _ in 0..5 {
        assert_eq!(ask(&world, &by_old).await.0, 200);
    }
    assert_eq!(place.asked().0, 1);
    place.shows(&[&new]);
    let many = (0..8).map(|_| ask(&world, &by_new));
    for (status, answer) in futures::future::join_all(many).await {
        assert_eq!(status, 200, "{answer}");
    }
    assert_eq!(place.asked().0, 2);
    // The key that is gone is gone, and nobody can make us ask for others again and again.
    for token in [&by_old, &by_nobody] {
        for _ in 0..5 {
            let said = refused(&world, token, "gone").await;
            assert!(said.contains("does not have"), "{said}");
        }
    }
    assert_eq!(place.asked(), (2, 0));
}

#[tokio::test]
async fn an_issuer_is_believed_about_itself_only() {
    let signer = Signer::rsa("a", Algorithm::RS512);
    let discovered = |place: &Place| issuer(&place.url(), IssuerKeys::Discovery);
    let place = Place::open().await;
    place.shows(&[&signer]);
    let token = signer.sign(&claims(&json!({"iss": place.url()})));
    let trusting = world(discovered(&place)).await;
    assert_eq!(ask(&trusting, &token).await.0, 200);
    assert_eq!(place.asked(), (1, 1));
    // It says that it is another one; it sends us to a host that is not named.
    let keys = format!("{}/jwks", place.url());
    let named = format!("http://localhost:{}/jwks", place.port);
    for (says, at) in [
        ("https://id.example.com", keys.as_str()),
        (&format!("{}/", place.url()), &keys),
        (&place.url(), &named),
        (&place.url(), "file:///etc/passwd"),
        (&place.url(), "https://169.254.169.254/latest/meta-data"),
    ] {
        place.says(says, at);
        let world = world(discovered(&place)).await;
        let (status, problem) = ask(&world, &token).await;
        assert_eq!(
            (status, &problem["code"]),
            (503, &json!("issuer_unavailable")),
            "{says} {at}"
        );
    }
    assert_eq!(place.asked().0, 1);
}

#[tokio::test]
async fn keys_are_fetched_from_addresses_that_are_allowed_and_a_server_starts_without_them() {
    let signer = Signer::edwards("a");
    let place = Place::open().await;
    place.shows(&[&signer]);
    let token = signer.sign(&claims(&json!({})));
    let at = |path: &str, allow: &[&str]| Issuer {
        allow_private: allow.iter().map(|host| (*host).to_owned()).collect(),
        ..issuer(ISSUER, place.at(path))
    };
    for (path, allow) in [
        ("/jwks", &[][..]),
        ("/jwks", &["10.0.0.1", "localhost"]),
        ("/elsewhere", &["127.0.0.1"]),
        ("/nowhere", &["127.0.0.1"]),
        ("/long", &["127.0.0.1"]),
    ] {
        let world = world(at(path, allow)).await;
        let (status, problem) = ask(&world, &token).await;
        assert_eq!(
            (status, &problem["code"]),
            (503, &json!("issuer_unavailable")),
            "{path} {allow:?}"
        );
        let said = problem["error"].as_str().unwrap();
        assert!(
            !said.contains("127.0.0.1"),
            "where it is, the log says: {said}"
        );
        // Whoever has a key does not notice.
        let (_, key) = world.key(PrincipalKind::User, "acme", "ann").await;
        assert_eq!(ask(&world, &key).await.0, 200);
    }
    assert_eq!(place.asked(), (0, 0));
    let world = world(at("/jwks", &["127.0.0.1"])).await;
    assert_eq!(ask(&world, &token).await.0, 200);
}

#[tokio::test]
async fn a_file_without_usable_keys_is_told_before_anything_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jwks.json");
    for (text, said) in [
        ("{", "not a JSON Web Key Set"),
        (r#"{"keys": []}"#, "has no key for signatures"),
        (
            r#"{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}"#,
            "has no key for signatures",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let configuration = ServerFile {
            listen: ([127, 0, 0, 1], 0).into(),
            store: format!("sqlite:{}", folder.path().join("main.db").display()),
            issuers: vec![issuer(ISSUER, IssuerKeys::File(file.clone()))],
            ..ServerFile::default()
        };
        let error = Opening::new(configuration, Access::Keys).start().await;
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with("the issuer `https://id.example.com`: "),
            "{error}"
        );
        assert!(error.contains(said), "{error}");
    }
}

#[tokio::test]
async fn a_stream_ends_with_the_token_that_opened_it() {
    let signer = Signer::p256("a");
    let (world, _keys) = trusting(&[&signer]).await;
    let lasting = signer.sign(&claims(&json!({})));
    let run = begin(&world, &lasting, "s").await;
    // It has ended, and is good for ten more seconds because clocks differ.
    let ending = signer.sign(&claims(&json!({"exp": get_current_timestamp() - 50})));
    let path = format!("/api/v1/runs/{run}/stream");
    let open = async |token: &str| {
        let stream = world.request(Method::GET, &path).bearer_auth(token);
        let stream = stream.send().await.unwrap();
        assert_eq!(stream.status(), 200);
        stream
    };
    let (mut lasting, ending) = (open(&lasting).await, open(&ending).await);
    let told = tokio::time::timeout(Duration::from_secs(40), ending.text()).await;
    let told = told.expect("the stream ends").unwrap();
    assert!(told.contains("event: closing"), "{told}");
    // The other one beats on.
    let first = lasting.chunk().await.unwrap().unwrap();
    let mut heard = String::from_utf8_lossy(&first).into_owned();
    while !heard.contains("heartbeat") {
        let more = tokio::time::timeout(Duration::from_secs(40), lasting.chunk()).await;
        heard.push_str(&String::from_utf8_lossy(&more.unwrap().unwrap().unwrap()));
    }
    assert!(!heard.contains("event: closing"), "{heard}");
}
