//! How a server is configured.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use holdpoint_core::{InterruptKind, Span, Subscription};
use holdpoint_definition::{
    Issuer, IssuerKeys, IssuerTenant, LogFormat, MetricsAccess, Names, Problems, ServerFile,
    ServerLimits, Webhook, agent_files, load_server,
};
use insta::assert_snapshot;

use crate::{AGENT, SUPERAGENT, folder};

/// A folder with a scenario, an agent in it, and a folder with two more and with other things.
fn site() -> tempfile::TempDir {
    let dir = folder();
    let write = |file: &str, text: &str| fs::write(dir.path().join(file), text).unwrap();
    write("agent.yaml", AGENT);
    fs::create_dir_all(dir.path().join("agents/below.yaml")).unwrap();
    write("agents/b.yaml", SUPERAGENT);
    write("agents/a.yml", AGENT);
    write("agents/scenario.yaml", "kind: Scenario\nrules: []\n");
    write("agents/compose.yaml", "services: {}\n");
    write("agents/notes.txt", "kind: Agent\n");
    write("agents/.b.yaml", "kind: Agent\n");
    write("agents/below.yaml/c.yaml", AGENT);
    dir
}

fn server(dir: &Path, text: &str) -> Result<ServerFile, Problems> {
    let file = dir.join("server.yaml");
    fs::write(&file, text).unwrap();
    load_server(&file)
}

/// A file with these lines below `spec`.
fn spec(lines: &str) -> String {
    format!("apiVersion: holdpoint/v1\nkind: Server\nspec:\n{lines}")
}

fn issuer(issuer: &str, keys: IssuerKeys, tenant: &str) -> Issuer {
    Issuer {
        issuer: issuer.to_owned(),
        audience: "holdpoint".to_owned(),
        keys,
        tenant: IssuerTenant::Fixed(tenant.to_owned()),
        name_claim: "sub".to_owned(),
        roles_claim: None,
        permissions_claim: None,
        allow_private: Vec::new(),
    }
}

#[test]
fn a_whole_file_says_everything_with_absolute_paths() {
    let dir = site();
    let base = dir.path().to_str().unwrap();
    let text = spec(
        r#"  listen: "[::1]:9000"
  store: sqlite:data/main.db
  agents: [agents/, ./agent.yaml]
  models: {gpt-4o: "scripted:scenario.yaml", "llama3:8b": "scripted:./scenario.yaml"}
  stores: {redis: "sqlite:/srv/chat.db", memory: "memory:"}
  auth:
    jwt:
      - {issuer: "https://id.example.com", audience: holdpoint, tenant: acme}
      - issuer: corp
        audience: "https://holdpoint.corp.example"
        keys: {file: scenario.yaml}
        tenantClaim: org
        tenants: [beta, acme]
        name_claim: preferred_username
        roles_claim: groups
        permissions_claim: "https://corp.example/permissions"
      - {issuer: "http://127.0.0.1:9/x/", audience: holdpoint, keys: discovery, tenant: t, allow_private: [127.0.0.1]}
      - {issuer: other, audience: holdpoint, keys: {url: "https://other.example/jwks"}, tenant: t}
  cors: {origins: ["https://app.example.com", "http://localhost:3000"]}
  limits: {body: 64KiB, batch: 1, streams: 2, streamsPerKey: 3, pending_per_user: 4, pendingPerRun: 5}
  log: json
  metrics: {open: true}
  public_url: https://approve.example.com
  webhooks:
    - {name: pager, url: "https://hooks.example.com/x?team=ops", secret: PAGER_SECRET}
    - name: own.one
      url: http://127.0.0.1:9/hook
      secret: OWN_1
      types: [review, approval]
      tenants: [beta, acme]
      timeout: 5s
      giveUpAfter: 24h
      allow_private: [127.0.0.1]
"#,
    );
    let names = |names: [(&str, String); 2]| {
        let names = names.into_iter();
        names
            .map(|(name, meaning)| (name.to_owned(), meaning))
            .collect::<BTreeMap<_, _>>()
    };
    let scenario = || format!("scripted:{base}/scenario.yaml");
    let expected = ServerFile {
        listen: "[::1]:9000".parse().unwrap(),
        store: format!("sqlite:{base}/data/main.db"),
        agents: vec![dir.path().join("agents"), dir.path().join("agent.yaml")],
        names: Names {
            models: names([("gpt-4o", scenario()), ("llama3:8b", scenario())]),
            stores: names([
                ("redis", "sqlite:/srv/chat.db".to_owned()),
                ("memory", "memory:".to_owned()),
            ]),
            ..Names::default()
        },
        issuers: vec![
            issuer("https://id.example.com", IssuerKeys::Discovery, "acme"),
            Issuer {
                audience: "https://holdpoint.corp.example".to_owned(),
                tenant: IssuerTenant::Claim {
                    claim: "org".to_owned(),
                    tenants: BTreeSet::from(["acme".to_owned(), "beta".to_owned()]),
                },
                name_claim: "preferred_username".to_owned(),
                roles_claim: Some("groups".to_owned()),
                permissions_claim: Some("https://corp.example/permissions".to_owned()),
                ..issuer(
                    "corp",
                    IssuerKeys::File(dir.path().join("scenario.yaml")),
                    "",
                )
            },
            Issuer {
                allow_private: vec!["127.0.0.1".to_owned()],
                ..issuer("http://127.0.0.1:9/x/", IssuerKeys::Discovery, "t")
            },
            issuer(
                "other",
                IssuerKeys::Url("https://other.example/jwks".to_owned()),
                "t",
            ),
        ],
        origins: vec![
            "https://app.example.com".to_owned(),
            "http://localhost:3000".to_owned(),
        ],
        limits: ServerLimits {
            body: 65_536,
            batch: 1,
            streams: 2,
            streams_per_key: 3,
            pending_per_user: 4,
            pending_per_run: 5,
        },
        log: LogFormat::Json,
        metrics: MetricsAccess::Open,
        webhooks: vec![
            Webhook {
                name: "pager".to_owned(),
                url: "https://hooks.example.com/x?team=ops".to_owned(),
                secret: "PAGER_SECRET".to_owned(),
                subscription: Subscription::default(),
                timeout: Span::from_secs(15),
                give_up_after: Span::from_secs(72 * 3_600),
                allow_private: Vec::new(),
            },
            Webhook {
                name: "own.one".to_owned(),
                url: "http://127.0.0.1:9/hook".to_owned(),
                secret: "OWN_1".to_owned(),
                subscription: Subscription {
                    tenants: BTreeSet::from(["acme".to_owned(), "beta".to_owned()]),
                    kinds: BTreeSet::from([InterruptKind::Approval, InterruptKind::Review]),
                },
                timeout: Span::from_secs(5),
                give_up_after: Span::from_secs(24 * 3_600),
                allow_private: vec!["127.0.0.1".to_owned()],
            },
        ],
        public_url: Some("https://approve.example.com".to_owned()),
    };
    assert_eq!(server(dir.path(), &text), Ok(expected));
}

#[test]
fn whatever_is_unsaid_is_as_without_a_file_but_seen_from_its_folder() {
    let unsaid = ServerFile {
        listen: "127.0.0.1:8888".parse().unwrap(),
        store: "sqlite:holdpoint.db".to_owned(),
        agents: Vec::new(),
        names: Names::default(),
        issuers: Vec::new(),
        origins: Vec::new(),
        limits: ServerLimits {
            body: 1_048_576,
            batch: 100,
            streams: 1_000,
            streams_per_key: 100,
            pending_per_user: 10_000,
            pending_per_run: 64,
        },
        log: LogFormat::Text,
        metrics: MetricsAccess::Permitted,
        webhooks: Vec::new(),
        public_url: None,
    };
    assert_eq!(ServerFile::default(), unsaid);
    let dir = site();
    let expected = ServerFile {
        store: format!("sqlite:{}/holdpoint.db", dir.path().to_str().unwrap()),
        ..unsaid
    };
    for text in [
        "apiVersion: holdpoint/v1\nkind: Server\n".to_owned(),
        spec(
            "  auth: {}\n  cors: {}\n  limits: {}\n  models: {}\n  stores: {}\n  agents: []\n  metrics: {}\n  webhooks: []\n  providers: {}\n",
        ),
        spec("  metrics: {open: false}\n"),
    ] {
        assert_eq!(server(dir.path(), &text), Ok(expected.clone()), "{text}");
    }
}

#[test]
fn everything_else_is_a_problem_with_its_remedy() {
    let cases = [
        "  listen: localhost:8888\n",
        "  listen: 8888\n",
        "  listen: [::1]\n",
        "  store: redis://:secret@host\n",
        "  store: holdpoint.db\n",
        "  store: \"sqlite:\"\n",
        "  store: sqlite\n",
        "  agents: agents\n",
        "  agents: [agnets/, \"\", agent.yaml, ./agent.yaml]\n",
        "  models: [gpt-4o]\n",
        "  models: {gpt-4o: gpt-4o-mini, gpt-4: \"openai:gpt-4\", gpt: \"scripted:no.yaml\", \"\": \"scripted:scenario.yaml\", \"scripted:x\": \"scripted:scenario.yaml\"}\n",
        "  models: {a: \"llama3:8b\", b: \"openai:\", c: \"opnai:gpt-4o\"}\n",
        "  providers: [openai]\n",
        "  providers: {own: {}}\n",
        "  providers: {scripted: {api: openai, baseurl: \"https://x.example\"}}\n",
        "  providers: {\"a:b\": {api: anthropic, base_url: \"https://ann:secret@llm.example.com\", key: sk-secret}}\n",
        "  providers: {own: {api: openai-chat, base_url: \"http://llm.example.com/v1\", key: {env: sk-secret}, key_header: \"a b\"}}\n",
        "  providers: {own: {api: openai-chat, base_url: \"https://llm.example.com/v1?key=secret\", key: {}, headers: {Authorization: Bearer secret}, query: {api-version: 7, key: secret}}}\n",
        "  providers: {own: {api: openai-chat, base_url: llm.example.com, key: {env: A, file: b}, limit_field: tokens, silence: 0s, prices: {m: {input: 1}, n: {input: -1, output: 0.1234567}}}}\n",
        "  stores: {redis: \"redis://:secret@host\", etcd: 7}\n",
        "  cors: {origins: \"*\"}\n",
        "  cors: {origins: [\"*\", https://App.example.com/, \"null\"]}\n",
        "  cors: [\"https://app.example.com\"]\n",
        "  auth: [{issuer: a}]\n",
        "  auth: {jwt: {issuer: a}}\n",
        "  auth: {jwt: [{}]}\n",
        "  auth: {jwt: [{isuer: a, audiance: b, tenat: c}]}\n",
        "  auth: {jwt: [{issuer: \"\", audience: [], keys: discover, tenant: \"*\", name_claim: \"\", roles_claim: 7, permissions_claim: {}}]}\n",
        "  auth: {jwt: [{issuer: accounts.example.com, audience: b, tenant: _c}]}\n",
        "  auth: {jwt: [{issuer: \"http://id.example.com\", audience: b, tenant: c}]}\n",
        "  auth: {jwt: [{issuer: \"https://10.0.0.5\", audience: b, tenant: c, allow_private: [\"http://x\"]}]}\n",
        "  auth: {jwt: [{issuer: \"https://localhost\", audience: b, tenant: c}]}\n",
        "  auth: {jwt: [{issuer: \"http://localhost\", audience: b, tenant: c, allow_private: [127.0.0.1]}]}\n",
        "  auth: {jwt: [{issuer: \"https://id.example.com?a=b\", audience: b, tenant: c}]}\n",
        "  auth: {jwt: [{issuer: \"https://ann:secret@id.example.com\", audience: b, tenant: c}]}\n",
        "  auth: {jwt: [{issuer: a, audience: b, tenant: c, keys: {}}]}\n",
        "  auth: {jwt: [{issuer: a, audience: b, tenant: c, keys: {fiel: x}}]}\n",
        "  auth: {jwt: [{issuer: a, audience: b, tenant: c, keys: {file: no.json}}]}\n",
        "  auth: {jwt: [{issuer: a, audience: b, tenant: c, keys: {file: scenario.yaml, url: \"https://x.example\"}}]}\n",
        "  auth: {jwt: [{issuer: a, audience: b, tenant: c, keys: {url: \"http://x.example\"}}]}\n",
        "  auth: {jwt: [{issuer: a, audience: b, tenant: c, keys: [a]}]}\n",
        "  auth: {jwt: [{issuer: \"https://a.example\", audience: b, tenant: c, tenants: [c]}]}\n",
        "  auth: {jwt: [{issuer: \"https://a.example\", audience: b, tenant: c, tenant_claim: org}]}\n",
        "  auth: {jwt: [{issuer: \"https://a.example\", audience: b, tenant_claim: org}]}\n",
        "  auth: {jwt: [{issuer: \"https://a.example\", audience: b, tenant_claim: org, tenants: []}]}\n",
        "  auth: {jwt: [{issuer: \"https://a.example\", audience: b, tenant_claim: org, tenants: \"*\"}]}\n",
        "  auth: {jwt: [{issuer: \"https://a.example\", audience: b, tenant_claim: org, tenants: [\"*\", \"a b\", c, c]}]}\n",
        "  auth: {jwt: [{issuer: \"https://a.example\", audience: b, tenant: c}, {issuer: \"https://a.example\", audience: d, tenant: e}]}\n",
        "  limits: {body: 1MB, batch: 0, streams: many, pending_per_user: -1}\n",
        "  limits: {body: 10, streamsPerkey: 1}\n",
        "  log: xml\n",
        "  metrics: open\n",
        "  metrics: {open: everybody}\n",
        "  metrics: {opne: true}\n",
        "  webhooks: {name: a}\n",
        "  webhooks: [{}]\n",
        "  webhooks: [{nmae: a, ulr: b, secert: C}]\n",
        "  webhooks: [{name: a/b, url: \"http://hooks.example.com\", secret: whsec_abc, types: [aproval], tenants: [\"*\"], timeout: 0s, give_up_after: soon}]\n",
        "  webhooks: [{name: a, url: \"https://169.254.169.254/x\", secret: A, types: [], tenants: []}]\n",
        "  webhooks: [{name: a, url: \"https://hooks.example.com/{x}\", secret: A}]\n",
        "  webhooks: [{name: a, url: hooks.example.com, secret: 1A}]\n",
        "  webhooks: [{name: a, url: \"https://h.example\", secret: A}, {name: a, url: \"https://h.example\", secret: A}]\n",
        "  lisen: 127.0.0.1:8888\n",
        "  tools: []\n",
    ];
    let dir = site();
    let said = |text: &str| {
        let shown = match server(dir.path(), text) {
            Err(problems) => problems.to_string(),
            Ok(server) => format!("fine: {server:?}"),
        };
        shown.replace(dir.path().to_str().unwrap(), "DIR")
    };
    let mut all = String::new();
    for case in cases {
        all.push_str(&format!("# {}\n{}\n\n", case.trim(), said(&spec(case))));
    }
    for text in [
        "",
        "kind: Server\n",
        "apiVersion: superagent/v1\nkind: Server\n",
        "apiVersion: holdpoint/v1\nkind: Agent\nmetadata: {}\n",
        "apiVersion: holdpoint/v1\nkind: Server\nspec:\n",
    ] {
        let shown = text.trim_end().replace('\n', "\n# ");
        all.push_str(&format!("# {shown}\n{}\n\n", said(text)));
    }
    assert_snapshot!(all);
}

#[test]
fn a_file_that_is_not_there_is_a_problem_too() {
    let dir = site();
    let file = dir.path().join("no.yaml");
    let said = load_server(&file).unwrap_err().to_string();
    let expected = "cannot be read: No such file or directory (os error 2)";
    assert_eq!(said, format!("{}: {expected}", file.display()));
}

#[test]
fn a_folder_is_the_agents_in_it_by_name_and_nothing_else() {
    let dir = site();
    let path = |file: &str| dir.path().join(file);
    let found = agent_files(&[path("agents"), path("agent.yaml"), path("agents/a.yml")]);
    let expected = ["agents/a.yml", "agents/b.yaml", "agent.yaml"].map(path);
    assert_eq!(found.unwrap(), expected);
    assert_eq!(agent_files(&[]).unwrap(), Vec::<PathBuf>::new());
    // Whether a file that is named is an agent, loading it says.
    let named = [path("agents/scenario.yaml"), path("no.yaml")];
    assert_eq!(agent_files(&named).unwrap(), named);
}

#[test]
fn what_may_be_a_misspelt_agent_is_not_passed_over() {
    let dir = site();
    for text in [
        "kind: agent\n",
        "kind: Agnet\n",
        "apiVersion: holdpoint/v1\nknd: Agent\n",
        "apiVersion: superagent/v1\nspec: {}\n",
        "api_version: holdpoint/v1\nkind: [Agent]\n",
    ] {
        let folder = dir.path().join("misspelt");
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("a.yaml");
        fs::write(&file, text).unwrap();
        assert_eq!(agent_files(&[folder]).unwrap(), [file], "{text}");
    }
}

#[test]
fn a_folder_without_an_agent_is_a_problem_and_what_cannot_be_read_may_be_one() {
    let dir = site();
    let folder = |name: &str, files: &[(&str, &str)]| {
        let folder = dir.path().join(name);
        fs::create_dir(&folder).unwrap();
        for (file, text) in files {
            fs::write(folder.join(file), text).unwrap();
        }
        folder
    };
    let folders = [
        folder("empty", &[]),
        folder("other", &[("s.yaml", "kind: Scenario\n")]),
    ];
    let said = agent_files(&folders).unwrap_err().to_string();
    assert_snapshot!(said.replace(dir.path().to_str().unwrap(), "DIR"), @r"
    DIR/empty: has no agents: no `*.yaml` or `*.yml` file in it says `kind: Agent`
      help: folders in it are not looked at; list them as well
    DIR/other: has no agents: no `*.yaml` or `*.yml` file in it says `kind: Agent`
      help: folders in it are not looked at; list them as well
    ");
    let broken = folder("broken", &[("a.yaml", "kind: \"Agent"), ("b.yaml", "")]);
    let taken = agent_files(std::slice::from_ref(&broken)).unwrap();
    assert_eq!(taken, [broken.join("a.yaml"), broken.join("b.yaml")]);
    for file in taken {
        assert!(
            holdpoint_definition::load(&file).is_err(),
            "loading it says what is wrong"
        );
    }
}

#[test]
fn the_url_of_a_store_may_come_from_the_environment() {
    let dir = site();
    let text = spec("  store: env:RUNS\n  stores: {redis: env:CHATS, other: 'sqlite:o.db'}\n");
    let mut file = server(dir.path(), &text).unwrap();
    let known = |name: &str| (name == "RUNS").then(|| "postgres://ann:secret@db/runs".to_owned());
    let missing = file.clone().resolve(known).unwrap_err();
    assert_eq!(missing.into_iter().collect::<Vec<_>>(), ["CHATS"]);
    let known = |name: &str| Some(format!("postgres://db/{name}"));
    file.resolve(known).unwrap();
    assert_eq!(file.store, "postgres://db/RUNS");
    assert_eq!(file.names.stores["redis"], "postgres://db/CHATS");
    assert!(file.names.stores["other"].starts_with("sqlite:/"));
}

/// What containers are started with can be read.
#[test]
fn the_configuration_that_is_deployed_and_its_agents_have_no_problem() {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let file = load_server(&deploy.join("server.yaml")).unwrap();
    assert_eq!(file.store, "env:HOLDPOINT_STORE");
    let agents = agent_files(&file.agents).unwrap();
    assert_eq!(agents.len(), 1);
    for agent in agents {
        let loaded = holdpoint_definition::load(&agent).unwrap();
        assert_eq!(loaded.warnings, []);
    }
    // The manifests have the same in them.
    let manifests = fs::read_to_string(deploy.join("kubernetes/holdpoint.yaml")).unwrap();
    for name in ["server.yaml", "agents/refund.yaml", "agents/scenario.yaml"] {
        let text = fs::read_to_string(deploy.join(name)).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let shown: String = lines.map(|line| format!("    {line}\n")).collect();
        assert!(manifests.contains(&shown), "{name}:\n{shown}");
    }
}
