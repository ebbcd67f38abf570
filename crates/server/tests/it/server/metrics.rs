//! How a server does, in numbers.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use holdpoint_core::{Principal, PrincipalKind};
use holdpoint_definition::MetricsAccess;
use holdpoint_server::Access;
use reqwest::Method;
use serde_json::{Value, json};

use super::support::{World, read};

/// What a server shows, read as strictly as a stranger would.
#[derive(Debug, Default)]
struct Shown {
    /// What each family is.
    types: BTreeMap<String, String>,
    /// By name and labels.
    samples: BTreeMap<String, f64>,
}

impl Shown {
    fn parse(text: &str) -> Self {
        let mut shown = Self::default();
        let body = text.strip_suffix("# EOF\n").unwrap();
        for line in body.lines() {
            if let Some(comment) = line.strip_prefix("# ") {
                let mut words = comment.splitn(3, ' ');
                let (what, name) = (words.next().unwrap(), words.next().unwrap());
                let rest = words.next().unwrap();
                match what {
                    "TYPE" => {
                        assert!(["counter", "gauge", "histogram"].contains(&rest), "{line}");
                        let twice = shown.types.insert(name.to_owned(), rest.to_owned());
                        assert_eq!(twice, None, "{line}");
                    }
                    "HELP" | "UNIT" => {}
                    other => panic!("{other}"),
                }
                continue;
            }
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            let good = |char: char| char.is_ascii_lowercase() || "_0123456789".contains(char);
            assert!(
                name.starts_with("holdpoint_") && name.chars().all(good),
                "{line}"
            );
            labels(series.strip_prefix(name).unwrap());
            let family = shown.family_of(name);
            assert!(family.is_some(), "no type: {line}");
            let value: f64 = value.parse().unwrap();
            let twice = shown.samples.insert(series.to_owned(), value);
            assert_eq!(twice, None, "{line}");
        }
        shown.expect_whole_histograms();
        shown
    }

    /// The family that a sample belongs to.
    fn family_of(&self, name: &str) -> Option<(&str, &str)> {
        self.types
            .iter()
            .find(|(family, kind)| {
                let suffixes: &[&str] = match kind.as_str() {
                    "counter" => &["_total"],
                    "histogram" => &["_bucket", "_sum", "_count"],
                    _ => &[""],
                };
                let rest = name.strip_prefix(family.as_str());
                rest.is_some_and(|rest| suffixes.contains(&rest))
            })
            .map(|(family, kind)| (family.as_str(), kind.as_str()))
    }

    /// Buckets only grow, and the last has all.
    fn expect_whole_histograms(&self) {
        let counts = self.samples.iter().filter(|(series, _)| {
            let name = series.split('{').next().unwrap();
            name.ends_with("_count") && self.family_of(name).unwrap().1 == "histogram"
        });
        for (series, count) in counts {
            let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
            let family = name.strip_suffix("_count").unwrap();
            let own = labels.trim_end_matches('}');
            let buckets = self.samples.iter().filter_map(|(series, value)| {
                let rest = series.strip_prefix(&format!("{family}_bucket{{"))?;
                let rest = rest.strip_suffix('}')?;
                let mut parts: BTreeSet<&str> = rest.split(',').collect();
                let le = *parts.iter().find(|part| part.starts_with("le="))?;
                parts.remove(le);
                let others = parts.into_iter().collect::<Vec<_>>().join(",");
                let le = le.strip_prefix("le=\"")?.strip_suffix('"')?;
                let bound = le.parse::<f64>().ok()?;
                (others == own).then_some((bound, *value))
            });
            let mut buckets: Vec<(f64, f64)> = buckets.collect();
            buckets.sort_by(|left, right| left.0.total_cmp(&right.0));
            assert!(buckets.len() > 5, "{series}");
            assert!(buckets.is_sorted_by(|left, right| left.1 <= right.1));
            assert_eq!(buckets.last(), Some(&(f64::INFINITY, *count)), "{series}");
        }
    }

    /// All counters that are not zero, and how often histograms were told something.
    fn counted(&self) -> BTreeMap<String, u64> {
        let counts = self.samples.iter().filter(|(series, value)| {
            let name = series.split('{').next().unwrap();
            let kind = self.family_of(name).unwrap().1;
            let is_count = kind == "counter" || (kind == "histogram" && name.ends_with("_count"));
            is_count && **value > 0.0
        });
        let whole = |(series, value): (&String, &f64)| {
            let series = series.strip_prefix("holdpoint_").unwrap();
            (series.to_owned(), format!("{value}").parse().unwrap())
        };
        counts.map(whole).collect()
    }

    fn value(&self, series: &str) -> f64 {
        let found = self.samples.get(&format!("holdpoint_{series}"));
        *found.unwrap_or_else(|| panic!("{series} is not shown: {self:#?}"))
    }
}

/// Whether labels are spelt as they must be.
fn labels(text: &str) {
    if text.is_empty() {
        return;
    }
    let inner = text.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
    for label in inner.unwrap().split("\",") {
        let (name, value) = label.split_once("=\"").unwrap();
        assert!(name.chars().all(|it| it.is_ascii_lowercase()), "{text}");
        assert!(!value.trim_end_matches('"').contains('"'), "{text}");
    }
}

async fn scrape(world: &World) -> Shown {
    let response = world.request(Method::GET, "/metrics").send().await.unwrap();
    assert_eq!(response.status(), 200);
    let format = response.headers()["content-type"].to_str().unwrap();
    assert!(
        format.starts_with("application/openmetrics-text"),
        "{format}"
    );
    Shown::parse(&response.text().await.unwrap())
}

/// The sum of what these servers counted.
async fn counted(worlds: &[&World]) -> BTreeMap<String, u64> {
    let mut sum = BTreeMap::new();
    for world in worlds {
        for (series, count) in scrape(world).await.counted() {
            *sum.entry(series).or_insert(0) += count;
        }
    }
    sum
}

/// Waits until these servers have counted this and nothing else. A commit can be read a moment before it is counted.
async fn expect(worlds: &[&World], expected: &[(&str, u64)]) {
    let expected: BTreeMap<String, u64> = expected
        .iter()
        .map(|(series, count)| ((*series).to_owned(), *count))
        .collect();
    for _ in 0..200 {
        if counted(worlds).await == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(counted(worlds).await, expected);
}

async fn question_of(world: &World, run: &str) -> String {
    let (_, shown) = world.get(&format!("/api/v1/runs/{run}")).await;
    shown["interrupts"][0]["id"].as_str().unwrap().to_owned()
}

fn answer(id: &str, decision: &str) -> Value {
    json!({ id: {"type": decision} })
}

#[tokio::test]
async fn what_is_begun_answered_rejected_and_repeated_is_counted_exactly() {
    let world = World::dev().await;
    expect(&[&world], &[]).await;
    let approved = world.waiting("s1").await;
    let rejected = world.waiting("s2").await;
    let path = format!("/api/v1/runs/{approved}/resume");
    let id = question_of(&world, &approved).await;
    for replayed in [None, Some("true")] {
        let sent = world.posting(&path, &answer(&id, "approve"));
        let response = sent.header("Idempotency-Key", "k1").send().await.unwrap();
        assert_eq!(response.status(), 200);
        let said = response.headers().get("idempotency-replayed");
        assert_eq!(said.map(|it| it.to_str().unwrap()), replayed);
    }
    world.until(&approved, "finished").await;
    let (code, problem) = world.post(&path, &answer(&id, "reject")).await;
    assert_eq!((code, &problem["code"]), (409, &json!("already_decided")));
    let no = json!({"decisions": [{"type": "reject", "message": "no"}]});
    let path = format!("/api/v1/runs/{rejected}/resume");
    assert_eq!(world.post(&path, &no).await.0, 200);
    world.until(&rejected, "finished").await;
    expect(
        &[&world],
        &[
            ("runs_started_total{agent=\"clerk\"}", 2),
            ("runs_ended_total{agent=\"clerk\",outcome=\"finished\"}", 2),
            (
                "questions_raised_total{kind=\"approval\",cause=\"human_approval\"}",
                2,
            ),
            ("questions_closed_total{status=\"resolved\"}", 1),
            ("questions_closed_total{status=\"rejected\"}", 1),
            ("time_to_decision_seconds_count{kind=\"approval\"}", 2),
            ("resume_attempts_total", 2),
            ("resume_successes_total", 2),
            ("resume_latency_seconds_count", 2),
            (
                "duplicate_effects_prevented_total{by=\"already_decided\"}",
                1,
            ),
            (
                "duplicate_effects_prevented_total{by=\"idempotency_key\"}",
                1,
            ),
        ],
    )
    .await;
    let shown = scrape(&world).await;
    assert_eq!(shown.value("resume_success_ratio"), 1.0);
    assert_eq!(shown.value("human_takeover_ratio"), 0.0);
    assert_eq!(shown.value("duplicate_side_effects_total"), 0.0);
    let latency = shown.value("resume_latency_seconds_sum");
    assert!((0.0..10.0).contains(&latency), "{latency}");
}

#[tokio::test]
async fn a_person_who_settles_an_error_has_taken_over() {
    let world = World::dev().await;
    let body = json!({"agent_id": "approval-agent", "session_id": "s", "input": "fail"});
    let (_, begun) = world.post("/api/v1/runs", &body).await;
    let run = begun["run_id"].as_str().unwrap();
    world.until(run, "waiting").await;
    let give_up = json!({"decisions": [{"type": "reject"}]});
    let path = format!("/api/v1/runs/{run}/resume");
    assert_eq!(world.post(&path, &give_up).await.0, 200);
    world.until(run, "failed").await;
    expect(
        &[&world],
        &[
            ("runs_started_total{agent=\"approval-agent\"}", 1),
            (
                "runs_ended_total{agent=\"approval-agent\",outcome=\"failed\"}",
                1,
            ),
            (
                "questions_raised_total{kind=\"error\",cause=\"model_error\"}",
                1,
            ),
            ("questions_closed_total{status=\"rejected\"}", 1),
            ("time_to_decision_seconds_count{kind=\"error\"}", 1),
            ("resume_attempts_total", 1),
            ("resume_successes_total", 1),
            ("human_takeovers_total", 1),
        ],
    )
    .await;
    assert_eq!(scrape(&world).await.value("human_takeover_ratio"), 1.0);
}

#[tokio::test]
async fn a_question_from_outside_is_no_run_and_asked_again_it_is_the_same() {
    let world = World::dev().await;
    let ask = json!({"workflow_id": "flow", "node_id": "n", "type": "approval", "title": "Ship?"});
    let (code, asked) = world.post("/api/v1/interrupts", &ask).await;
    assert_eq!(code, 201, "{asked}");
    assert_eq!(world.post("/api/v1/interrupts", &ask).await.0, 200);
    let id = asked["id"].as_str().unwrap();
    let path = format!("/api/v1/interrupts/{id}/resolve");
    let (code, said) = world.post(&path, &json!({"approved": true})).await;
    assert_eq!(code, 200, "{said}");
    expect(
        &[&world],
        &[
            (
                "questions_raised_total{kind=\"approval\",cause=\"human_approval\"}",
                1,
            ),
            ("questions_closed_total{status=\"resolved\"}", 1),
            ("time_to_decision_seconds_count{kind=\"approval\"}", 1),
            ("duplicate_effects_prevented_total{by=\"same_question\"}", 1),
        ],
    )
    .await;
}

/// Each server sees what the other commits, and counts only its own.
#[tokio::test]
async fn two_servers_on_one_store_count_everything_once() {
    const RUNS: u64 = 6;
    let first = World::dev().await;
    let second = first.beside().await;
    let mut runs = Vec::new();
    for at in 0..RUNS {
        let (here, there) = if at % 2 == 0 {
            (&first, &second)
        } else {
            (&second, &first)
        };
        let run = here.waiting(&format!("s{at}")).await;
        let id = question_of(there, &run).await;
        runs.push((run, id));
    }
    for (run, id) in &runs {
        let path = format!("/api/v1/runs/{run}/resume");
        let body = answer(id, "approve");
        let (here, there) = tokio::join!(first.post(&path, &body), second.post(&path, &body));
        let mut codes = [here.0, there.0];
        codes.sort_unstable();
        assert_eq!(codes, [200, 409], "{here:?} {there:?}");
    }
    for (run, _) in &runs {
        first.until(run, "finished").await;
    }
    let expected = [
        ("runs_started_total{agent=\"clerk\"}", RUNS),
        (
            "runs_ended_total{agent=\"clerk\",outcome=\"finished\"}",
            RUNS,
        ),
        (
            "questions_raised_total{kind=\"approval\",cause=\"human_approval\"}",
            RUNS,
        ),
        ("questions_closed_total{status=\"resolved\"}", RUNS),
        ("time_to_decision_seconds_count{kind=\"approval\"}", RUNS),
        ("resume_attempts_total", RUNS),
        ("resume_successes_total", RUNS),
        ("resume_latency_seconds_count", RUNS),
        (
            "duplicate_effects_prevented_total{by=\"already_decided\"}",
            RUNS,
        ),
    ];
    expect(&[&first, &second], &expected).await;
    // Both did something, or nothing would be shown by their sum.
    for world in [&first, &second] {
        let own = counted(&[world]).await;
        assert_eq!(own["runs_started_total{agent=\"clerk\"}"], RUNS / 2);
    }
}

#[tokio::test]
async fn what_stands_still_is_looked_at() {
    let first = World::dev().await;
    let run = first.waiting("s1").await;
    first.waiting("s2").await;
    let stream = format!("/api/v1/runs/{run}/stream");
    // It looks at the store as soon as it starts.
    let second = first.beside().await;
    let stream = second.request(Method::GET, &stream).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    let mut shown = scrape(&second).await;
    for _ in 0..200 {
        if shown.value("waiting{cause=\"human_approval\"}") == 2.0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        shown = scrape(&second).await;
    }
    assert_eq!(shown.value("waiting{cause=\"human_approval\"}"), 2.0);
    assert_eq!(shown.value("waiting{cause=\"write_unknown\"}"), 0.0);
    assert_eq!(shown.value("waiting_capped"), 0.0);
    assert_eq!(shown.value("streams_open"), 1.0);
    let up = shown.samples.iter();
    let up: Vec<_> = up
        .filter(|(series, _)| series.starts_with("holdpoint_store_up{"))
        .collect();
    assert_eq!(up.len(), 2, "{up:?}");
    assert!(up.iter().all(|(_, value)| **value == 1.0), "{up:?}");
    drop(stream);
}

#[tokio::test]
async fn metrics_are_for_whoever_may_read_them() {
    let world = World::new(Access::Keys, |_| {}).await;
    let key = async |name: &str, permissions: &[&str]| {
        let mut principal = Principal::new(PrincipalKind::Service, "acme", name);
        principal.permissions = permissions.iter().map(|it| (*it).to_owned()).collect();
        let made = world.keys().create(principal, None, "").await.unwrap();
        made.key
    };
    let get = async |key: Option<&str>| {
        let mut request = world.request(Method::GET, "/metrics");
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        read(request.send().await.unwrap()).await
    };
    let (code, problem) = get(None).await;
    assert_eq!((code, &problem["code"]), (401, &json!("unauthorized")));
    for permissions in [&[][..], &["metrics"], &["metrics.write", "runs.read"]] {
        let (code, problem) = get(Some(&key("ann", permissions).await)).await;
        assert_eq!((code, &problem["code"]), (403, &json!("forbidden")));
    }
    for permissions in [["metrics.read"], ["*"]] {
        let key = key("prometheus", &permissions).await;
        let body = json!({"agent_id": "plain", "session_id": "s", "input": "hello"});
        let begun = world.posting("/api/v1/runs", &body).bearer_auth(&key);
        begun.send().await.unwrap();
        let (code, text) = get(Some(&key)).await;
        assert_eq!(code, 200);
        let text = text.as_str().unwrap();
        Shown::parse(text);
        // Whose runs they are is nobody's business.
        assert!(
            !text.contains("acme") && !text.contains("prometheus"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn metrics_that_are_open_need_no_key_and_nothing_else_is_opened_with_them() {
    let open = |file: &mut holdpoint_server::ServerFile| file.metrics = MetricsAccess::Open;
    let world = World::new(Access::Keys, open).await;
    Shown::parse(&{
        let response = world.request(Method::GET, "/metrics").send().await.unwrap();
        assert_eq!(response.status(), 200);
        response.text().await.unwrap()
    });
    for path in ["/", "/metrics/", "/api/v1/runs", "/api/v1/agents"] {
        assert_eq!(world.get(path).await.0, 401, "{path}");
    }
}
