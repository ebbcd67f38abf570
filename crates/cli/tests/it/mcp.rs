//! A Rust program that gives its agents the tools of MCP servers: the shipped one, under the real binary as watchdog.

use holdpoint_core::{Definition, Effect, McpServer, Principal, Runner};
use holdpoint_engine::{Engine, Error, Kit, Options};
use holdpoint_models::Scripted;
use holdpoint_tools::Watchdog;

use crate::support::{HOLDPOINT, World, example_tool};

const PLAY: &str = "apiVersion: holdpoint/v1\nkind: Scenario\nrules:\n  - when: {turn: 1}\n    call: [{tool: library__find_book, args: {title: tea}}]\n  - say: '{result}'\n";

async fn engine(world: &World) -> Engine {
    let store = format!("sqlite:{}", world.path().join("rust.db").display());
    let kit = Kit {
        watchdog: Watchdog::at(HOLDPOINT),
        ..Kit::new()
    };
    let kit = kit.with_model("played", Scripted::parse("play", PLAY).unwrap());
    let store = holdpoint_store::open(&store, holdpoint_store::Options::default())
        .await
        .unwrap();
    Engine::new(store, kit, Options::default(), None)
}

fn definition(world: &World, program: &str) -> Definition {
    let server = McpServer::stdio("library", [program], world.path().display().to_string());
    Definition::new("reader", "played").with_mcp_server(server)
}

#[tokio::test]
async fn publishing_asks_the_servers_and_a_person_is_asked_unless_something_is_said() {
    let world = World::new();
    let (engine, program) = (
        engine(&world).await,
        example_tool("holdpoint-example-library"),
    );
    let agent = engine.publish(Principal::LOCAL_TENANT, definition(&world, &program));
    let agent = agent.await.unwrap();
    let tools = agent.definition.tools.iter();
    let tools: Vec<_> = tools.map(|it| (it.name.as_str(), it.effect)).collect();
    assert_eq!(
        tools,
        [
            ("library__find_book", Effect::Write),
            ("library__lend_book", Effect::Write)
        ]
    );
    assert!(
        matches!(&agent.definition.tools[0].runner, Runner::Mcp { server, .. } if server == "library")
    );
    let by = Principal::local("ann");
    let run = engine.start(&by, &agent, "s", "go").await.unwrap();
    let thread = run.finish().await.unwrap();
    let [interrupt] = &thread.interrupts.values().collect::<Vec<_>>()[..] else {
        panic!("{thread:?}");
    };
    assert_eq!(interrupt.asks.len(), 1);
}

#[tokio::test]
async fn what_a_server_offered_before_counts_where_it_cannot_be_asked_and_else_nothing_is_published()
 {
    let world = World::new();
    let engine = engine(&world).await;
    let program = world.path().join("library");
    let program = program.to_str().unwrap();
    let never = engine.complete(definition(&world, program)).await;
    assert!(matches!(never, Err(Error::Definition { .. })), "{never:?}");
    std::os::unix::fs::symlink(example_tool("holdpoint-example-library"), program).unwrap();
    let tenant = Principal::LOCAL_TENANT;
    let first = engine
        .publish(tenant, definition(&world, program))
        .await
        .unwrap();
    std::fs::remove_file(program).unwrap();
    let again = engine.complete(definition(&world, program)).await.unwrap();
    assert_eq!(again.definition.tools, first.definition.tools);
    assert!(
        again.warnings[0].contains("`library`"),
        "{:?}",
        again.warnings
    );
    // Another text was never completed.
    let other = Definition {
        system_prompt: Some("Be brief.".to_owned()),
        ..definition(&world, program)
    };
    assert!(engine.complete(other).await.is_err());
}
