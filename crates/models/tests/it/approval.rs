//! What the shipped approval agent's model says, word by word: its documents quote it.

use std::path::Path;

use holdpoint_core::{Confirmation, Message};
use holdpoint_models::Scripted;

use crate::conversation::{ask, assistant, user};

const DELETE: [&str; 3] = [
    "我将要删除",
    "以下过期用户数据:共 1,234 条记录。",
    "\nPlease confirm: 即将删除 1,234 条记录,此操作不可逆。",
];
const DEPLOY: [&str; 3] = [
    "我将要部署",
    "v2.0 版本:共 3 个服务会重新启动。",
    "\nPlease confirm: 即将部署 v2.0 到生产环境,此操作不可逆。",
];
const YES: &str = "User response: Confirm action: true. Please proceed.";
const NO: &str = "User response: Confirm action: false. The user declined. Do not proceed.";

async fn says(messages: &[Message]) -> Vec<String> {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/approval-agent/scenario.yaml");
    let model = Scripted::load(&file).unwrap();
    ask(&model, messages, 1).await.1
}

#[tokio::test]
async fn it_asks_before_it_deletes_or_deploys() {
    let cases = [
        ("请帮我删除 prod 数据库中所有过期用户数据", DELETE),
        ("Delete the expired users", DELETE),
        ("please delete them", DELETE),
        ("部署 v2.0 到生产环境", DEPLOY),
        ("Deploy v2.0", DEPLOY),
        ("please deploy", DEPLOY),
    ];
    for (input, expected) in cases {
        let said = says(&[user(input)]).await;
        assert_eq!(said, expected, "{input}");
        let text = said.concat();
        let from = Confirmation::standard().asked_at(&text).unwrap();
        assert_eq!(&text[from..], expected[2].trim_start(), "{input}");
    }
}

#[tokio::test]
async fn it_does_what_was_confirmed_and_leaves_what_was_not() {
    let cases = [
        (
            DELETE,
            YES,
            [
                "已收到您的确认。正在执行删除操作...",
                "删除完成,共删除 1,234 条过期用户记录。操作日志已记录。",
            ]
            .as_slice(),
        ),
        (
            DEPLOY,
            YES,
            &[
                "已收到您的确认。正在部署 v2.0...",
                "部署完成,v2.0 已在生产环境运行。操作日志已记录。",
            ],
        ),
        (DELETE, NO, &["好的,操作已取消,没有做任何改动。"]),
        (DEPLOY, NO, &["好的,操作已取消,没有做任何改动。"]),
    ];
    for (asked, answer, expected) in cases {
        let messages = [
            user("删除或者部署"),
            assistant(&asked.concat()),
            user(answer),
        ];
        let said = says(&messages).await;
        assert_eq!(said, expected, "{answer}");
        let text = said.concat();
        assert_eq!(Confirmation::standard().asked_at(&text), None, "{text}");
    }
}

#[tokio::test]
async fn anything_else_gets_a_plain_reply() {
    for input in ["你好", YES] {
        let text = says(&[user(input)]).await.concat();
        assert!(text.starts_with("我可以"), "{text}");
        assert_eq!(Confirmation::standard().asked_at(&text), None, "{text}");
    }
}
