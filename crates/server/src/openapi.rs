//! What the API says of itself.

use std::collections::BTreeMap;

use utoipa::{
    IntoResponses, OpenApi, ToSchema,
    openapi::{
        RefOr, Required, Response, ResponseBuilder,
        content::ContentBuilder,
        path::{Parameter, ParameterBuilder, ParameterIn},
        schema::{ObjectBuilder, Ref, SchemaType, Type},
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use crate::problem::{CODES, Problem};

/// Everything that may go wrong, on every route: one shape, and the statuses of the table of codes.
#[derive(Debug)]
pub(crate) struct Problems;

impl IntoResponses for Problems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let mut codes: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
        for (code, status) in CODES {
            codes.entry(*status).or_default().push(code);
        }
        let shape = || {
            let schema = RefOr::Ref(Ref::from_schema_name(Problem::name()));
            ContentBuilder::new().schema(Some(schema)).build()
        };
        let response = |codes: Vec<&str>| {
            ResponseBuilder::new()
                .description(codes.join(", "))
                .content("application/json", shape())
                .build()
        };
        let responses = codes.into_iter();
        responses
            .map(|(status, codes)| (status.to_string(), RefOr::T(response(codes))))
            .collect()
    }
}

/// One event of a stream, as a parser of Server-Sent Events hands it out.
#[derive(Debug, ToSchema)]
#[expect(
    dead_code,
    reason = "it only describes: streams are written by `frames`"
)]
pub(crate) struct StreamEvent {
    /// What it is; a bare one has no name.
    event: Option<String>,
    /// Its place in the journal, where it is an event of it.
    id: Option<String>,
    /// What it says: a text, or JSON in one line.
    data: String,
}

#[derive(Debug, OpenApi)]
#[openapi(
    info(
        title = "Holdpoint",
        description = "Durable human-in-the-loop for AI agents: an agent stops before a risky action, the stop survives \
                       anything, a person decides, and the agent goes on from exactly where it was.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    components(schemas(Problem)),
    modifiers(&Keys),
    tags(
        (name = "chat", description = "Talk to an agent, and confirm what it asks"),
        (name = "runs", description = "Runs: begun, watched, answered, stopped, forked"),
        (name = "interrupts", description = "Questions of any program, and of the agents here: asked, awaited, answered"),
        (name = "webhooks", description = "What could not be told to webhooks: seen, sent again, discarded"),
        (name = "agents", description = "Which agents there are"),
        (name = "server", description = "How the server is"),
    )
)]
pub(crate) struct Api;

struct Keys;

impl utoipa::Modify for Keys {
    fn modify(&self, api: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(
                "An API key, made with `holdpoint keys create`, or a token of an issuer that the server trusts",
            ))
            .build();
        let components = api.components.get_or_insert_default();
        components.add_security_scheme("key", SecurityScheme::Http(scheme));
        let needed =
            utoipa::openapi::security::SecurityRequirement::new("key", Vec::<String>::new());
        api.security = Some(vec![needed]);
    }
}

/// The document that `/openapi.json` serves.
#[must_use]
pub fn document() -> utoipa::openapi::OpenApi {
    let mut api = crate::router::api().into_openapi();
    for item in api.paths.paths.values_mut() {
        if let Some(operation) = &mut item.post {
            let parameters = operation.parameters.get_or_insert_default();
            parameters.push(idempotency_key().into());
        }
    }
    api
}

/// The header that every request may have which begins or decides something.
fn idempotency_key() -> Parameter {
    let text = ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::String))
        .min_length(Some(1))
        .max_length(Some(crate::once::MAX_KEY))
        .pattern(Some("^[!-~]+$"));
    ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(
            "A name of the caller's own for this request. The same request under the same name is done once, however \
             often it is sent within 24 hours.",
        ))
        .schema(Some(text))
        .build()
}
