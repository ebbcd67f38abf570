//! Opening a link, and deciding on the page that it leads to.

use std::sync::Arc;

use axum::{
    extract::{Form as FormBody, State, rejection::FormRejection},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use holdpoint_core::{Bond, Holder, InterruptStatus, Span};
use holdpoint_engine::{Question, Request, question::Reply};

use super::{
    Shown, Waiting,
    form::{Complaint, Entered, PAGE, Sheet},
    guard::expect_own_page,
    html::{self, Visit},
    links,
};
use crate::{
    path::Path,
    problem::Problem,
    token::{Claims, Form, Giver, open, seal},
    world::{Served, World},
};

/// How many questions a list shows.
const LISTED: usize = 100;
/// How long the links of a list hold.
pub(crate) const AT_HAND: Span = Span::from_secs(60 * 60);

const NOTHING: &str = "Nothing was decided";
const NO_LINK: &str = "This link does not hold";

/// A link that holds, and what it leads to.
struct Opened<'w> {
    claims: Claims,
    key: String,
    served: &'w Served,
    question: Question,
}

/// What is shown instead.
struct Instead(Box<Response>);

impl From<Problem> for Instead {
    fn from(problem: Problem) -> Self {
        let title = match (problem.code, problem.status()) {
            ("forbidden" | "permission_lost", _) => NOTHING,
            (_, StatusCode::NOT_FOUND | StatusCode::FORBIDDEN) => NO_LINK,
            (_, StatusCode::SERVICE_UNAVAILABLE) => "Not now",
            (_, _) => "That did not work",
        };
        Self::new(html::notice(problem.status(), title, &problem.error))
    }
}

impl Instead {
    fn new(page: Response) -> Self {
        Self(Box::new(page))
    }

    /// What was not sent by one of our pages, or not whole.
    fn refused(status: StatusCode, why: &str) -> Self {
        Self::new(html::notice(status, NOTHING, why))
    }

    /// A link of which a part is missing, or which was never one.
    fn damaged(status: StatusCode) -> Self {
        let text = "This link is incomplete or damaged: copy it whole, or ask whoever sent it for a new one.";
        Self::new(html::notice(status, NO_LINK, text))
    }
}

/// What stands in an address, where a page is wanted whatever that is.
type Given = Result<Path<String>, Problem>;

/// What stands in an address, where it is a text.
///
/// # Errors
///
/// It is none.
fn whole(given: Given) -> Result<String, Instead> {
    let given = given.map_err(|_| Instead::damaged(StatusCode::NOT_FOUND));
    given.map(|Path(text)| text)
}

/// Says so on a page where an address leads nowhere: whoever comes here has a link in a browser.
pub(crate) async fn nowhere() -> Response {
    let Instead(page) = Instead::damaged(StatusCode::NOT_FOUND);
    *page
}

/// Opens a link. Nothing changes, however often it is fetched.
pub(crate) async fn show(State(world): State<Arc<World>>, link: Given) -> Response {
    let shown = async {
        let link = whole(link)?;
        let opened = opened(&world, &link).await?;
        let Opened { question, .. } = &opened;
        if question.status != InterruptStatus::Pending {
            return Ok(html::closed(StatusCode::OK, question));
        }
        ask(&world, &opened, StatusCode::OK, &Entered::default(), None).await
    };
    shown.await.unwrap_or_else(|Instead(page)| *page)
}

async fn opened<'w>(world: &'w World, link: &str) -> Result<Opened<'w>, Instead> {
    let (claims, key): (Claims, String) = open(Form::Link, link, world.keyring()?)
        .map_err(|_| Instead::damaged(StatusCode::FORBIDDEN))?;
    world.expect_good(claims.issuer_key.as_deref()).await?;
    let interrupt = claims.interrupt.to_string();
    let (served, question) = world.question(&claims.tenant, &interrupt).await?;
    let is_over = served.engine.store().now() >= claims.expires_at;
    // What is over may be looked at for as long as the link is kept.
    if is_over && question.status == InterruptStatus::Pending {
        let text = "Ask whoever sent it for a new one: what it is about still waits.";
        return Err(Instead::new(html::notice(
            StatusCode::GONE,
            "This link has expired",
            text,
        )));
    }
    Ok(Opened {
        claims,
        key,
        served,
        question,
    })
}

/// The page of a question that is pending.
async fn ask(
    world: &World,
    opened: &Opened<'_>,
    status: StatusCode,
    entered: &Entered,
    complaint: Option<&Complaint>,
) -> Result<Response, Instead> {
    let Opened {
        claims,
        served,
        question,
        ..
    } = opened;
    // It is only told beforehand: where it cannot be found out, the answer will say.
    let barred = served.engine.not_permitted(question).await;
    let barred = barred.unwrap_or_default();
    let shown = Shown {
        link: claims.id.clone(),
        subject: question.interrupt.subject(),
    };
    let proof = seal(Form::Page, &shown, world.keyring()?);
    let visit = Visit {
        user: &claims.user,
        proof: &proof,
        barred: &barred,
    };
    Ok(html::question(status, visit, question, entered, complaint))
}

/// Takes what somebody decided on the page.
pub(crate) async fn decide(
    State(world): State<Arc<World>>,
    link: Given,
    headers: HeaderMap,
    body: Result<FormBody<Vec<(String, String)>>, FormRejection>,
) -> Response {
    let taken = async {
        let link = whole(link)?;
        take(&world, &link, &headers, body).await
    };
    let taken = taken.await;
    taken.unwrap_or_else(|Instead(page)| *page)
}

async fn take(
    world: &World,
    link: &str,
    headers: &HeaderMap,
    body: Result<FormBody<Vec<(String, String)>>, FormRejection>,
) -> Result<Response, Instead> {
    let refused = |why: &str| Instead::refused(StatusCode::FORBIDDEN, why);
    expect_own_page(headers, &world.own_origins()).map_err(|why| {
        refused(&format!(
            "The form was not taken: {why}. Open the link itself and decide there."
        ))
    })?;
    let FormBody(entered) = body.map_err(|rejection| match rejection.status() {
        status @ StatusCode::PAYLOAD_TOO_LARGE => Instead::refused(
            status,
            "It was more than this server takes. Go back, and write less.",
        ),
        _ => refused("What was sent is no form."),
    })?;
    let mut entered = Entered(entered);
    let is_ambiguous = entered.drop_ambiguous();
    let opened = opened(world, link).await?;
    let Opened {
        claims,
        key,
        served,
        question,
    } = &opened;
    let proof = entered.get(PAGE).unwrap_or_default();
    let shown: Shown = match open(Form::Page, proof, world.keyring()?) {
        Ok((shown, _)) => shown,
        Err(_) => {
            return Err(refused(
                "It was not sent from the page that the link opens.",
            ));
        }
    };
    if shown.link != claims.id {
        return Err(refused("It was sent from the page of another link."));
    }
    if question.status != InterruptStatus::Pending {
        let late = served.engine.why_not_pending(question).await;
        world.count_late(&late.unwrap_or_else(|error| error));
        return Err(Instead::new(html::closed(StatusCode::CONFLICT, question)));
    }
    if shown.subject != question.interrupt.subject() {
        let complaint = Complaint::new(
            "What is asked has changed since. Look at it again, and decide on what stands here now.",
        );
        let empty = Entered::default();
        return ask(
            world,
            &opened,
            StatusCode::CONFLICT,
            &empty,
            Some(&complaint),
        )
        .await;
    }
    if is_ambiguous {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        let complaint = Complaint::new(
            "The form said something twice. Fill in what is missing now, and decide again.",
        );
        return ask(world, &opened, status, &entered, Some(&complaint)).await;
    }
    let reply = match Sheet::of(question).read(question, &entered) {
        Ok(reply) => reply,
        Err(complaint) => {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            return ask(world, &opened, status, &entered, Some(&complaint)).await;
        }
    };
    let said = reply.clone();
    let by = claims.holder();
    let asks = question.interrupt.asks.iter();
    let seen = asks.filter_map(|ask| Some((ask.action_id, ask.subject.params_hash()?)));
    let bond = Bond {
        pass: Some(Box::new(claims.pass(key.clone(), &by.actor))),
        seen: seen.collect(),
    };
    let (engine, asked) = (served.engine.clone(), question.clone());
    let work = async move {
        engine
            .respond(Request::from(&by), &asked, reply, bond)
            .await
    };
    match world.submit(served, &claims.tenant, Box::pin(work)).await {
        // What came of it is shown by the page itself, so that nothing is sent again when that is loaded again.
        Ok(_) => {
            let mut response = StatusCode::SEE_OTHER.into_response();
            let location = format!("/decide/{link}");
            if let Ok(location) = HeaderValue::from_str(&location) {
                response.headers_mut().insert(header::LOCATION, location);
            }
            Ok(response)
        }
        Err(problem) => told(world, link, &opened, (&entered, &said), problem).await,
    }
}

/// Says why an answer was not taken, on the page where it can be mended.
async fn told(
    world: &World,
    link: &str,
    before: &Opened<'_>,
    (entered, reply): (&Entered, &Reply),
    problem: Problem,
) -> Result<Response, Instead> {
    let status = problem.status();
    let complaint = match (problem.code, status) {
        (_, StatusCode::UNPROCESSABLE_ENTITY) => {
            Some(Complaint::about(&before.question, reply, &problem))
        }
        ("permission_lost", _) => Some(Complaint::new(format!(
            "Nothing was decided: {}. It can be rejected here.",
            problem.error
        ))),
        (_, _) => None,
    };
    if let Some(complaint) = complaint {
        return ask(world, before, status, entered, Some(&complaint)).await;
    }
    // Somebody was faster, or it changed in this very moment.
    let now = opened(world, link).await?;
    if now.question.status != InterruptStatus::Pending {
        return Ok(html::closed(StatusCode::CONFLICT, &now.question));
    }
    Err(problem.into())
}

/// Lists what waits for somebody.
pub(crate) async fn waiting(State(world): State<Arc<World>>, list: Given) -> Response {
    let shown = async {
        let list = whole(list)?;
        list_waiting(&world, &list).await
    };
    let shown = shown.await;
    shown.unwrap_or_else(|Instead(page)| *page)
}

async fn list_waiting(world: &World, list: &str) -> Result<Response, Instead> {
    let (waiting, _): (Waiting, String) = open(Form::Waiting, list, world.keyring()?)
        .map_err(|_| Instead::damaged(StatusCode::FORBIDDEN))?;
    world.expect_good(waiting.issuer_key.as_deref()).await?;
    let now = world.home()?.engine.store().now();
    if now >= waiting.expires_at {
        let text = "Ask whoever sent it for a new one.";
        return Err(Instead::new(html::notice(
            StatusCode::GONE,
            "This link has expired",
            text,
        )));
    }
    let (found, more) = world.open_questions(&waiting.tenant, LISTED).await?;
    // Whoever gave the list gives its links; they hold no longer than the list.
    let giver = Giver {
        actor: waiting.issuer.clone(),
        key: waiting.issuer_key.clone(),
    };
    let lasts = AT_HAND.min(waiting.expires_at.since(now));
    let mut items = Vec::new();
    for question in &found {
        let holder = Holder {
            user: waiting.user.clone(),
            roles: waiting.roles.clone(),
        };
        let link = links::to_question(world, question, &giver, holder, now, lasts)?;
        items.push((question, link.url().to_owned()));
    }
    Ok(html::waiting(&waiting.user, &items, more))
}
