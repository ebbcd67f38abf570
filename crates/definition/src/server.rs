//! How a server is configured.
//!
//! A file of `kind: Server`, in which everything may be left out. What it names is looked for at once, so that a server
//! does not find out later what is missing.

mod agents;
mod issuer;
mod limits;
mod mapping;
mod metrics;
mod origin;
mod outbound;
mod provider;
mod size;
mod tenant;
mod webhook;

use std::{
    collections::BTreeSet,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use holdpoint_yaml::{Content, Field, Fields, Node, Problems, Report, quoted};

pub use agents::agent_files;
pub use issuer::{Issuer, IssuerKeys, IssuerTenant};
pub use limits::ServerLimits;
pub use metrics::MetricsAccess;
pub use webhook::Webhook;

use crate::{command::Base, frame::API_VERSION, load, names::Names, store};

const KIND: &str = "Server";
const KEYS: [&str; 13] = [
    "listen",
    "store",
    "agents",
    "models",
    "providers",
    "stores",
    "auth",
    "cors",
    "limits",
    "log",
    "metrics",
    "webhooks",
    "public_url",
];
const PORT: u16 = 8888;
const STORE_FILE: &str = "holdpoint.db";

/// How a server is configured. The default is what holds without a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFile {
    /// Where it is spoken to: `127.0.0.1:8888` when unsaid.
    pub listen: SocketAddr,
    /// The url of the store in which threads are kept unless an agent asks for another: `sqlite:holdpoint.db` when
    /// unsaid. Its path is absolute where a file was read, and else seen from where the process works. `env:NAME` is for
    /// whoever reads the environment; see [`ServerFile::resolve`].
    pub store: String,
    /// Files of agents, and folders with such files; see [`agent_files`]. Absolute, and there when they were read.
    pub agents: Vec<PathBuf>,
    /// What names in agents' files stand for. Paths are absolute, and scenarios were there when they were read.
    pub names: Names,
    /// Whose tokens stand for users; nobody's when unsaid.
    pub issuers: Vec<Issuer>,
    /// The origins whose web pages may speak to it, as browsers send them; none when unsaid.
    pub origins: Vec<String>,
    /// How much it takes.
    pub limits: ServerLimits,
    /// How it writes its log.
    pub log: LogFormat,
    /// Who may read its metrics.
    pub metrics: MetricsAccess,
    /// Who outside is told what becomes of questions; nobody when unsaid.
    pub webhooks: Vec<Webhook>,
    /// Where people reach it, as an origin: for links, and to know its own pages by.
    pub public_url: Option<String>,
}

/// How a log is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl Default for ServerFile {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            store: format!("{}{STORE_FILE}", store::SQLITE),
            agents: Vec::new(),
            names: Names::default(),
            issuers: Vec::new(),
            origins: Vec::new(),
            limits: ServerLimits::default(),
            log: LogFormat::default(),
            metrics: MetricsAccess::default(),
            webhooks: Vec::new(),
            public_url: None,
        }
    }
}

impl ServerFile {
    /// Puts what the environment says in the place of `env:NAME`, wherever a store is named.
    ///
    /// # Errors
    ///
    /// The names of variables that are not set.
    pub fn resolve(
        &mut self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<(), BTreeSet<String>> {
        let mut missing = BTreeSet::new();
        let stores = self.names.stores.values_mut();
        for url in stores.chain([&mut self.store]) {
            if let Some(name) = store::store_variable(url) {
                match variable(name) {
                    Some(value) => *url = value,
                    None => drop(missing.insert(name.to_owned())),
                }
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        Err(missing)
    }
}

/// Reads how a server is configured. Relative paths are seen from the folder of the file.
///
/// # Errors
///
/// All problems of the file at once.
pub fn load_server(path: &Path) -> Result<ServerFile, Problems> {
    let file_name = path.display().to_string();
    let text = holdpoint_yaml::read_file(path, &file_name)
        .map_err(|problem| Problems::new(vec![problem]))?;
    let base = load::base_of(&file_name, load::folder_of(path))?;
    let mut report = Report::new(&file_name);
    let root = holdpoint_yaml::parse(&text, KIND, &mut report);
    let server = root.and_then(|root| read(&root, &base, &mut report));
    report.finish()?;
    server.ok_or_else(|| load::unread(&file_name))
}

/// Reads the tree of a file. `None` only if a problem was reported.
fn read(root: &Node, base: &Base, report: &mut Report) -> Option<ServerFile> {
    let fields = Fields::open(&Field::root(root), &["apiVersion", "kind", "spec"], report)?;
    fields.expect_word("apiVersion", API_VERSION, report);
    fields.expect_word("kind", KIND, report);
    let unsaid = ServerFile {
        store: format!("{}{}", store::SQLITE, base.resolve(STORE_FILE)),
        ..ServerFile::default()
    };
    let Some(spec) = fields.optional("spec") else {
        return Some(unsaid);
    };
    let fields = Fields::open(&spec, &KEYS, report)?;
    let listen = match fields.optional("listen") {
        None => Some(unsaid.listen),
        Some(field) => read_listen(&field, report),
    };
    let store = match fields.optional("store") {
        None => Some(unsaid.store),
        Some(field) => store::read(&field, base, report),
    };
    let agents = match fields.optional("agents") {
        None => Some(Vec::new()),
        Some(field) => read_agents(&field, base, report),
    };
    let names = mapping::read(&fields, base, report);
    let issuers = match fields.optional("auth") {
        None => Some(Vec::new()),
        Some(field) => issuer::read_all(&field, base, report),
    };
    let origins = match fields.optional("cors") {
        None => Some(Vec::new()),
        Some(field) => origin::read_all(&field, report),
    };
    let limits = match fields.optional("limits") {
        None => Some(unsaid.limits),
        Some(field) => limits::read(&field, report),
    };
    let log = match fields.optional("log") {
        None => Some(unsaid.log),
        Some(field) => {
            let words = [("text", LogFormat::Text), ("json", LogFormat::Json)];
            field.one_of("a way to write a log", &words, report)
        }
    };
    let metrics = match fields.optional("metrics") {
        None => Some(unsaid.metrics),
        Some(field) => metrics::read(&field, report),
    };
    let webhooks = match fields.optional("webhooks") {
        None => Some(Vec::new()),
        Some(field) => webhook::read_all(&field, report),
    };
    let public_url = match fields.optional("public_url") {
        None => Some(None),
        Some(field) => origin::read(&field, report).map(Some),
    };
    Some(ServerFile {
        listen: listen?,
        store: store?,
        agents: agents?,
        names: names?,
        issuers: issuers?,
        origins: origins?,
        limits: limits?,
        log: log?,
        metrics: metrics?,
        webhooks: webhooks?,
        public_url: public_url?,
    })
}

fn read_listen(field: &Field<'_>, report: &mut Report) -> Option<SocketAddr> {
    let address = match &field.node.content {
        Content::Text(text) => text.parse().ok(),
        Content::Null
        | Content::Bool(_)
        | Content::Number(_)
        | Content::List(_)
        | Content::Map(_) => None,
    };
    if address.is_none() {
        let message = format!(
            "must be an IP address and a port, not {}",
            field.node.describe()
        );
        let help = "write for instance `127.0.0.1:8888`; one of IPv6 needs quotes: \"[::1]:8888\"";
        field.problem(&message, help, report);
    }
    address
}

fn read_agents(field: &Field<'_>, base: &Base, report: &mut Report) -> Option<Vec<PathBuf>> {
    let items = field.items("list files and folders, for instance [agents/]", report)?;
    let mut paths = Vec::new();
    let mut seen = BTreeSet::new();
    let mut complete = true;
    for item in items {
        let Some(text) = item.some_text(report) else {
            complete = false;
            continue;
        };
        let path = PathBuf::from(base.resolve(text));
        if !path.is_file() && !path.is_dir() {
            let message = format!("there is no file or folder `{}`", path.display());
            let help = "relative paths are seen from the folder of this YAML file";
            item.problem(&message, help, report);
        } else if !seen.insert(path.clone()) {
            let message = format!("{} is listed twice", quoted(text));
            item.problem(&message, "keep one of them", report);
        }
        paths.push(path);
    }
    complete.then_some(paths)
}
