//! What nobody should write, and what a model might send. An abort of the process would be seen as a failed test.

use std::fmt::Write as _;

use holdpoint_policy::Condition;
use proptest::prelude::*;

use crate::Call;

/// Compiles, and evaluates if that worked; what matters is that it comes back.
/// Whether it was admitted.
fn survive(text: &str) -> bool {
    let Ok(condition) = Condition::compile(text) else {
        return false;
    };
    for args in [
        "{}",
        r#"{"a": [1, "x", null, {"a": 2.5}], "b": "行", "c": 7}"#,
    ] {
        let _ = condition.evaluate(&Call::new(args).facts());
    }
    true
}

/// One in so many points, and all of them on demand.
fn sample(one_in: usize) -> usize {
    if std::env::var_os("HOLDPOINT_TORTURE").is_some() {
        1
    } else {
        one_in
    }
}

/// Fills a kilobyte with `open`, a core, and as many `close`.
fn fill(open: &str, core: &str, close: &str, most: usize) -> String {
    let n = ((1024 - core.len()) / (open.len() + close.len())).min(most);
    format!("{}{core}{}", open.repeat(n), close.repeat(n))
}

const SHAPES: [(&str, &str, &str); 44] = [
    ("(", "1", ")"),
    ("[", "1", "]"),
    ("{1:", "1", "}"),
    ("[{", "1", "}]"),
    ("[{!", "a", "}]"),
    ("[{-", "1", ":1}]"),
    ("!(", "true", ")"),
    ("-(", "1", ")"),
    ("!", "true", ""),
    ("! ", "true", ""),
    ("-", "1", ""),
    ("!-", "1", ""),
    ("-!", "1", ""),
    ("- //\n", "1", ""),
    ("true?true:", "true", ""),
    ("true?(", "true", "):true"),
    ("(", "true", "?true:true)"),
    ("a?", "b", ":c"),
    ("args.a[", "0", "]"),
    ("args[args", "", "]"),
    ("size(", "args", ")"),
    ("f(", "1", ")"),
    ("a.f(", "1", ")"),
    ("args.a.all(x,", "true", ")"),
    ("args.a.map(x,[", "x", "])"),
    ("args.a.all(x,!", "true", ")"),
    ("args.a.exists(x,x?", "true", ":true)"),
    ("has(args.", "a", ")"),
    ("A{a:", "1", "}"),
    ("a.b.c{a:", "1", "}"),
    ("1+", "1", ""),
    ("1-", "1", ""),
    ("1 - -", "1", ""),
    ("1<", "1", ""),
    ("1*1+", "1", ""),
    ("1 in ", "[1]", ""),
    ("true||", "true", ""),
    ("true&&false||", "true", ""),
    ("args.", "a", ""),
    ("args.a.f().", "a", ""),
    ("args.a[0].", "a", ""),
    ("'a'+", "'a'", ""),
    ("r'\\'+", "'a'", ""),
    ("{'a':[", "(!-1)", "]}.a[0]"),
];

#[test]
fn every_shape_is_survived_at_every_depth_and_broken_off_anywhere() {
    for (open, core, close) in SHAPES {
        for most in [1, 4, 7, 8, 15, 16, 17, 18, 40, 1000] {
            let text = fill(open, core, close, most);
            survive(&text);
        }
        // Broken off: what remains open, what was never opened.
        let text = fill(open, core, close, 15);
        for cut in (0..=text.len()).step_by(sample(5)) {
            survive(&text[..cut]);
            survive(&text[cut..]);
        }
    }
}

#[test]
fn the_deepest_that_the_guard_admits_is_survived() {
    // Pairs of shapes, to the limit: what one of them spends on a level, the other may spend on more.
    let mut admitted = 0;
    let pairs = SHAPES
        .into_iter()
        .flat_map(|outer| SHAPES.map(|inner| (outer, inner)));
    for ((open, _, close), (inner_open, core, inner_close)) in pairs.step_by(sample(7)) {
        for (outer, inner) in [(8, 8), (4, 12), (2, 3)] {
            let text = format!(
                "{}{}{core}{}{}",
                open.repeat(outer),
                inner_open.repeat(inner),
                inner_close.repeat(inner),
                close.repeat(outer)
            );
            admitted += usize::from(survive(&text));
        }
    }
    assert!(admitted > 20, "only {admitted} reached the evaluator");
}

#[test]
fn texts_that_hide_brackets_are_survived() {
    let brackets = "([{!".repeat(40);
    for quote in ["'", "\"", "'''", "\"\"\"", "`", ""] {
        for prefix in [
            "", "r", "R", "b", "br", "rb", "x", "0", "1.5", "0x", "_r", "r r", ".",
        ] {
            for inside in [
                "", "\\", "\\\\", "\\'", "\\\"", "\\q", "\\u12", "\\x", "\n", "'", "\"", "''",
                "\"\"", "//", "行", "\u{2028}",
            ] {
                for end in ["", quote, "'", "\"", "'''", "\"\"\""] {
                    survive(&format!("{prefix}{quote}{inside}{brackets}{end}"));
                    survive(&format!("{prefix}{quote}{inside}{quote}{brackets}{end}"));
                }
            }
        }
    }
}

#[test]
fn an_admitted_expression_of_any_shape_can_be_evaluated_on_a_small_stack() {
    // A worker of an async runtime has 2 MB; this is half of that.
    let small = std::thread::Builder::new().stack_size(1 << 20);
    let thread = small.spawn(|| {
        for (open, core, close) in SHAPES {
            for most in [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 120, 1000] {
                survive(&fill(open, core, close, most));
            }
        }
    });
    thread.unwrap().join().unwrap();
}

#[test]
fn long_chains_are_refused_beyond_their_limit() {
    let chain = |n: usize| format!("1{} > 0", "+1".repeat(n));
    let call = Call::new("{}");
    assert_eq!(call.says(&chain(120)), Ok(true));
    let error = Condition::compile(&chain(400)).unwrap_err().to_string();
    assert!(
        error.contains("more than 128 operations hang on each other"),
        "{error}"
    );
    // Logical chains are balanced, so that a kilobyte of them passes.
    assert_eq!(
        call.says(&format!("false{}", "||false".repeat(120))),
        Ok(false)
    );
    assert_eq!(
        call.says(&format!("true{}", "&&true".repeat(150))),
        Ok(true)
    );
}

fn numbers(n: usize) -> String {
    vec!["1"; n].join(",")
}

#[test]
fn loops_within_loops_over_large_arguments_are_not_begun() {
    let call = Call::new(&format!(
        r#"{{"a": [{}], "s": "{}"}}"#,
        numbers(20_000),
        "x".repeat(100_000)
    ));
    for condition in [
        "args.a.all(x, args.a.all(y, x == y))",
        "args.a.exists(x, args.a.exists(y, x > y))",
        "args.a.all(x, x in args.a)",
        "size(args.a.map(x, args.s)) > 0",
        "size(args.a.map(x, args.a)) > 0",
        "args.a.all(x, args.s.contains('y'))",
        "args.a.all(x, args.s.matches('y+'))",
        "args.a.map(x, args.s + args.s).all(y, true)",
        "args.a.filter(x, args.a.exists(y, y > x)) == []",
        "args.a.all(x, [args.a, args.a] == [])",
        "(args.a + args.a + args.a).all(x, (args.a + args.a).all(y, true))",
        "args.a.map(x, args.a.map(y, args.a.map(z, x))).all(w, true)",
    ] {
        assert_eq!(
            call.says(condition).unwrap_err().to_string(),
            "finding out could take too long with arguments of this size",
            "{condition}"
        );
    }
    // One loop is no harm, and is answered.
    assert_eq!(call.says("args.a.all(x, x == 1)"), Ok(true));
    assert_eq!(call.says("args.a.exists(x, x > 1 || x < 0)"), Ok(false));
    assert_eq!(
        call.says("size(args.a.filter(x, x > 0)) == 20000"),
        Ok(true)
    );
    assert_eq!(call.says("1 in args.a && !(2 in args.a)"), Ok(true));
}

#[test]
fn loops_of_a_usual_size_are_answered() {
    let mut items = String::new();
    for i in 0..300 {
        let comma = if i == 0 { "" } else { "," };
        let _ = write!(
            items,
            r#"{comma}{{"name": "item number {i}", "price": {i}.5, "tags": ["a", "b", "c{i}"]}}"#
        );
    }
    let call = Call::new(&format!(r#"{{"items": [{items}], "allowed": ["a", "b"]}}"#));
    for (condition, expected) in [
        ("args.items.all(i, i.price < 400)", true),
        ("args.items.all(i, i.name.startsWith('item'))", true),
        ("args.items.exists(i, i.tags.exists(t, t == 'c299'))", true),
        (
            "args.items.all(i, i.tags.all(t, t in args.allowed || t.startsWith('c')))",
            true,
        ),
        ("args.items.map(i, i.price).exists(p, p > 299)", true),
        ("size(args.items.filter(i, i.price > 100)) == 200", true),
        (
            "args.items.filter(i, i.price > 100).all(i, i.name != '')",
            true,
        ),
    ] {
        assert_eq!(call.says(condition), Ok(expected), "{condition}");
    }
}

#[test]
fn arguments_that_nest_deeply_are_survived() {
    let call = Call::new(&format!(
        r#"{{"a": {}1{}}}"#,
        "[".repeat(63),
        "]".repeat(63)
    ));
    assert_eq!(call.says("args.a == [1]"), Ok(false));
    assert_eq!(call.says("args.a == args.a && args == args"), Ok(true));
    assert_eq!(call.says("size([args, args].map(x, x.a)) == 2"), Ok(true));
}

/// Pieces that mean something to the lexer or the parser.
fn piece() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "?",
        ":",
        ",",
        ".",
        "!",
        "-",
        "+",
        "*",
        "/",
        "%",
        "<",
        ">",
        "==",
        "!=",
        "&&",
        "||",
        " in ",
        "'",
        "\"",
        "'''",
        "\"\"\"",
        "\\",
        "r'",
        "r\"",
        "b'",
        "//",
        "\n",
        " ",
        "`",
        "a",
        "args",
        "args.a",
        "user",
        ".all(x,",
        ".map(x,",
        ".filter(x,",
        ".exists(x,",
        "has(",
        "size(",
        "x",
        "1",
        "1.5",
        "0x1",
        "1u",
        "1e3",
        "true",
        "null",
        "int(",
        "'a'",
        "[1,2]",
        "{'a':1}",
        "args.a[0]",
        ".f(",
        "A{",
        ".?",
        "[?",
        "@",
        "行",
        "\u{0}",
        "_",
        "$",
    ]);
    prop_oneof![
        12 => words.prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ]
}

/// An expression that is well formed, and often too large.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "args",
        "args.a",
        "args.b",
        "x",
        "1",
        "2.5",
        "'行'",
        "true",
        "null",
        "user.roles",
        "r'\\'",
        "[]",
        "{}",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(10, 64, 3, |inner| {
        let (a, b, c) = (inner.clone(), inner.clone(), inner);
        prop_oneof![
            (
                a.clone(),
                prop::sample::select(vec![
                    "+", "-", "*", "/", "%", "<", ">=", "==", "!=", " in ", "&&", "||"
                ]),
                b.clone()
            )
                .prop_map(|(a, operator, b)| format!("{a}{operator}{b}")),
            (a.clone(), b.clone(), c).prop_map(|(a, b, c)| format!("({a}?{b}:{c})")),
            (
                prop::sample::select(vec!["all", "exists", "exists_one", "map", "filter"]),
                a.clone(),
                b.clone()
            )
                .prop_map(|(name, a, b)| format!("({a}).{name}(x,{b})")),
            (
                prop::sample::select(vec![
                    "size", "int", "string", "type", "double", "!", "-", ""
                ]),
                a.clone()
            )
                .prop_map(|(name, a)| format!("{name}({a})")),
            (a.clone(), b.clone()).prop_map(|(a, b)| format!("[{a},{b}]")),
            (a.clone(), b.clone()).prop_map(|(a, b)| format!("{{{a}:{b}}}")),
            (a, b).prop_map(|(a, b)| format!("({a})[{b}]")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_pieces_compile_or_are_refused(
        pieces in prop_oneof![
            prop::collection::vec(piece(), 0..10),
            prop::collection::vec(piece(), 0..150),
        ],
    ) {
        let text: String = pieces.concat();
        survive(&text);
        // As a truth beside it, so that the parser is reached more often.
        survive(&format!("true || ({text})"));
    }

    #[test]
    fn random_texts_compile_or_are_refused(text in ".{0,300}") {
        survive(&text);
        survive(&format!("args.a == '{text}'"));
    }

    #[test]
    fn random_expressions_compile_or_are_refused(text in expression()) {
        survive(&text);
        survive(&format!("args.a.all(x, ({text}) == 1)"));
    }

    #[test]
    fn a_text_in_quotes_is_compared_as_it_is(text in "[^\\\\'\\r\\n\u{0}]{0,100}") {
        let call = Call::new(&serde_json::json!({"a": text}).to_string());
        prop_assert_eq!(call.says(&format!("args.a == '{text}' && args.a == r'{text}'")), Ok(true));
    }
}
