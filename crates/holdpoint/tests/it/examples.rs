//! Every example does what it tells.

#[path = "../../examples/approval.rs"]
mod approval;
#[path = "../../examples/interrupt_manager.rs"]
mod interrupt_manager;
#[path = "../../examples/stepped_tool.rs"]
mod stepped_tool;
#[path = "../../examples/subagents.rs"]
mod subagents;

#[test]
fn an_approval_outlives_its_process_and_one_answer_wins() {
    approval::main().unwrap();
}

#[test]
fn an_interrupt_outlives_the_workflow_that_asked() {
    interrupt_manager::main().unwrap();
}

#[test]
fn a_stepped_tool_does_nothing_twice() {
    stepped_tool::main().unwrap();
}

#[test]
fn a_question_of_a_subagent_shows_who_asks() {
    subagents::main().unwrap();
}
