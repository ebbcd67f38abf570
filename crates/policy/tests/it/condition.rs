//! What a condition means, and what is not one.

use holdpoint_policy::{Condition, Place};

use crate::Call;

fn check(args: &str, cases: &[(&str, bool)]) {
    let call = Call::new(args);
    for (condition, expected) in cases {
        assert_eq!(call.says(condition), Ok(*expected), "{condition} of {args}");
    }
}

fn check_unclear(args: &str, cases: &[(&str, &str)]) {
    let call = Call::new(args);
    for (condition, expected) in cases {
        let reason = call.says(condition).map_err(|unclear| unclear.to_string());
        assert_eq!(reason, Err((*expected).to_owned()), "{condition} of {args}");
    }
}

#[test]
fn numbers_compare_by_value_whether_they_have_a_fraction_or_not() {
    for (amount, less, more, equal) in [
        ("99", true, false, false),
        ("99.5", true, false, false),
        ("99.99999999", true, false, false),
        ("100", false, false, true),
        ("100.0", false, false, true),
        ("1e2", false, false, true),
        ("100.5", false, true, false),
        ("101", false, true, false),
        ("-1", true, false, false),
        ("9007199254740991", false, true, false),
        ("-9007199254740991", true, false, false),
        ("123456789.5", false, true, false),
    ] {
        check(
            &format!(r#"{{"amount": {amount}}}"#),
            &[
                ("args.amount < 100", less),
                ("args.amount < 100.0", less),
                ("args.amount > 100", more),
                ("args.amount > 100.0", more),
                ("100 < args.amount", more),
                ("args.amount >= 100", !less),
                ("args.amount <= 100", !more),
                ("args.amount == 100", equal),
                ("args.amount == 100.0", equal),
                ("args.amount != 100", !equal),
                ("args.amount in [100]", equal),
                ("double(args.amount) * 2.0 < 200.0", less),
            ],
        );
    }
}

#[test]
fn the_largest_integers_are_told_apart() {
    check(
        r#"{"n": 9007199254740991}"#,
        &[
            ("args.n == 9007199254740991", true),
            ("args.n == 9007199254740990", false),
            ("args.n > 9007199254740990", true),
            ("args.n + 1 == 9007199254740992", true),
        ],
    );
}

#[test]
fn arithmetic_does_not_mix_and_says_so() {
    check_unclear(
        r#"{"price": 9.5, "count": 2, "max": 9007199254740991}"#,
        &[
            (
                "args.price * args.count > 10",
                "`*` does not work on a fraction (double) and a whole number (int); make both `double(…)`",
            ),
            (
                "args.count + 0.5 > 1",
                "`+` does not work on a whole number (int) and a fraction (double); make both `double(…)`",
            ),
            ("args.max * args.max > 0", "a number became too large"),
            (
                "args.count / (args.count - 2) > 0",
                "something is divided by zero",
            ),
            ("args.count % 0 == 0", "something is divided by zero"),
            (
                "-(-9223372036854775807 - 1) > 0",
                "a number became too large",
            ),
        ],
    );
    check(
        r#"{"price": 9.5, "count": 2}"#,
        &[
            ("double(args.price) * double(args.count) > 18.5", true),
            (
                "10 - 3 - 2 == 5 && 2 + 3 * 4 == 14 && 100 / 10 / 2 == 5",
                true,
            ),
        ],
    );
}

#[test]
fn all_four_variables_are_there() {
    check(
        r#"{"to": "王芳", "cc": null, "items": [{"name": "a", "price": 3}, {"name": "b", "price": 4.5}], "m": {"a-b": 1}}"#,
        &[
            (
                "args.to == '王芳' && args.to.startsWith('王') && size(args.to) == 2",
                true,
            ),
            (r#"args.to == "\u738b\u82b3""#, true),
            ("args.to.contains('芳') && args.to.matches('^王.$')", true),
            ("args.cc == null && has(args.cc) && !has(args.bcc)", true),
            (
                "type(args.cc) == null_type && type(args.to) == string && type(args.items) == list",
                true,
            ),
            (
                "'a-b' in args.m && args.m['a-b'] == 1 && !('x' in args.m)",
                true,
            ),
            ("args.items.all(item, item.price < 5)", true),
            ("args.items.exists(item, item.price > 4)", true),
            ("args.items.exists_one(item, item.name == 'a')", true),
            ("size(args.items.filter(item, item.price > 3)) == 1", true),
            ("args.items.map(item, item.name) == ['a', 'b']", true),
            ("args.items[1].name == 'b'", true),
            (
                "tool.name == 'pay' && tool.version == '2' && tool.effect == 'write'",
                true,
            ),
            (
                "agent.name == 'reader' && agent.path.startsWith('researcher#1/')",
                true,
            ),
            ("agent['path'] == ''", false),
            (
                "user.name == '李雷' && user.kind == 'user' && user.tenant == 'acme'",
                true,
            ),
            (
                "'财务' in user.roles && 'pay' in user.permissions && !('admin' in user.roles)",
                true,
            ),
            ("user.roles.exists(role, role in ['clerk', 'admin'])", true),
            ("args.to in ['王芳'] ? tool.effect != 'read' : false", true),
            ("true", true),
            ("!true", false),
            ("// who may\ntrue // never ) ' mind", true),
        ],
    );
}

#[test]
fn what_a_call_does_not_have_is_unclear_and_never_false() {
    check_unclear(
        r#"{"amount": "100", "items": [1, "x"], "flag": 1, "n": null, "s": "x"}"#,
        &[
            ("args.currency == 'EUR'", "there is no `currency`"),
            ("args.currency != 'EUR'", "there is no `currency`"),
            ("!(args.currency == 'EUR')", "there is no `currency`"),
            ("args['cur-rency'] == 'EUR'", "there is no `cur-rency`"),
            ("args.a.b.c", "there is no `a`"),
            (
                "args.amount > 100",
                "`>` does not work on a text and a whole number (int)",
            ),
            (
                "args.n > 100",
                "`>` does not work on null and a whole number (int)",
            ),
            (
                "args.items.all(i, i > 0)",
                "`>` does not work on a text and a whole number (int)",
            ),
            ("args.items[7] == 1", "a list has no element at that index"),
            (
                "args.flag",
                "the condition gave a whole number (int), neither true nor false",
            ),
            (
                "args.s",
                "the condition gave a text, neither true nor false",
            ),
            (
                "args.items",
                "the condition gave a list, neither true nor false",
            ),
            (
                "args.flag && true",
                "`&&` does not work on a whole number (int) and a boolean",
            ),
            ("!args.flag", "`!` does not work on a whole number (int)"),
            (
                "args.flag ? true : true",
                "a whole number (int) stands where a boolean is needed",
            ),
            (
                "args.amount.all(x, true)",
                "a text stands where a list or a map is needed",
            ),
            (
                "int(args.s) > 0",
                "`int` failed: string parse error: invalid digit found in string",
            ),
            ("args.n.x == 1", "`.` does not work on null and a text"),
            (
                "1 in args.amount",
                "`in` does not work on a whole number (int) and a text",
            ),
        ],
    );
}

#[test]
fn a_side_that_settles_the_answer_outweighs_one_that_is_unclear() {
    check(
        r#"{"amount": 5}"#,
        &[
            ("args.none > 1 || true", true),
            ("true || args.none > 1", true),
            ("args.none > 1 && false", false),
        ],
    );
    check_unclear(
        "{}",
        &[
            ("args.none > 1 || false", "there is no `none`"),
            ("args.none > 1 && true", "there is no `none`"),
        ],
    );
}

#[test]
fn what_is_wrong_with_a_condition_is_said_with_the_place_and_the_remedy() {
    for (condition, message, help) in [
        (
            "amount > 100",
            "`amount` is not known at column 1",
            "args.amount",
        ),
        (
            "args.to == EUR",
            "`EUR` is not known at column 12",
            "a text in quotes",
        ),
        (
            "'金额' == args.to || 额度 > 1",
            "`额` does not belong into a condition at column 20",
            "ASCII",
        ),
        (
            "'金额' == args.to || limit > 1",
            "`limit` is not known at column 20",
            "args.limit",
        ),
        (
            "args.a > 1 &&\n  limit > 1",
            "`limit` is not known at line 2, column 3",
            "args.limit",
        ),
        (
            "args.items.all(x, y > x)",
            "`y` is not known at column 19",
            "args.y",
        ),
        (
            "args.items.all(x, x > 1) && x > 1",
            "`x` is not known at column 29",
            "args.x",
        ),
        (
            ".args.a == 1",
            "`.args` is not known at column 2",
            "without its dot",
        ),
        (
            "args.items.all(user, user.x)",
            "`user` already means something here at column 15",
            "another name",
        ),
        (
            "user.role == 'x'",
            "`user` has no `role` at column 5",
            "`roles`",
        ),
        (
            "user['role'] == 'x'",
            "`user` has no `role` at column 5",
            "`roles`",
        ),
        ("has(tool.owner)", "`tool` has no `owner`", "`effect`"),
        (
            "agent.parent.name == ''",
            "`agent` has no `parent` at column 6",
            "`path`",
        ),
        (
            "lower(args.a) == 'x'",
            "there is no function `lower` at column 6",
            "`startsWith`",
        ),
        (
            "args.a.lowerAscii() == 'x'",
            "there is no function `lowerAscii`",
            "`contains`",
        ),
        (
            "optional.of(1).hasValue()",
            "there is no function `hasValue`",
            "`has`",
        ),
        ("args.?a == 1", "", "CEL"),
        (
            "startsWith(args.a, 'x')",
            "`startsWith` is not written like this at column 11",
            "args.path.startsWith(",
        ),
        (
            "args.items.all(x > 0)",
            "`all` is not written like this",
            "all(item, item > 0)",
        ),
        (
            "args.items.all(x.y, true)",
            "the first thing in a loop is the name of its element",
            "all(item",
        ),
        (
            "has(args)",
            "`has` asks about a field at column 5",
            "has(args.name)",
        ),
        (
            "size(args.a)",
            "a condition must say yes or no, and this is a number",
            "size(args.items) > 3",
        ),
        (
            "args",
            "a condition must say yes or no, and this is a map",
            "compare",
        ),
        (
            "'yes'",
            "a condition must say yes or no, and this is a text",
            "compare",
        ),
        (
            "args.a + 1",
            "a condition must say yes or no, and this is a sum",
            "compare",
        ),
        (
            "args.a.map(x, x)",
            "a condition must say yes or no, and this is a list",
            "compare",
        ),
        (
            "args.a ? 1 : 2",
            "a condition must say yes or no, and this is a number",
            "compare",
        ),
        (
            "int",
            "a condition must say yes or no, and this is a type",
            "compare",
        ),
        (
            "args.a.matches('(')",
            "the pattern `(` is wrong: unclosed group at column 15",
            "regular expression",
        ),
        ("args.a.matches('(?=x)')", "look-around", "look-around"),
        (
            r"args.a.matches(r'\w{900}')",
            "is too large when compiled",
            "[a-z]",
        ),
        (
            "args.a.matches(args.b)",
            "the pattern of `matches` must be a text",
            "contains",
        ),
        (
            "args.a ==",
            "the condition ends too early at column 10",
            "CEL",
        ),
        (
            "args.a == == 1",
            "`==` was not expected here at column 11",
            "CEL",
        ),
        (
            "args.a > 1 args.b",
            "`args` was not expected here at column 12",
            "CEL",
        ),
        (
            "x{a: 1} == 1",
            "makes a value of a type that is not known",
            "a map is written",
        ),
        ("99999999999999999999 > 1", "", "CEL"),
        ("if == 1", "", "CEL"),
    ] {
        let error = match Condition::compile(condition) {
            Err(error) => error,
            Ok(condition) => panic!("{condition:?} was accepted"),
        };
        assert!(error.to_string().contains(message), "{condition}: {error}");
        assert!(error.help().contains(help), "{condition}: {}", error.help());
        assert!(!error.to_string().contains('\n'), "{condition}: {error}");
        assert!(error.to_string().len() < 300, "{condition}: {error}");
    }
    let error = Condition::compile("  limit > 1").unwrap_err();
    let place: Option<Place> = error.place();
    assert_eq!(place.map(|place| (place.line, place.column)), Some((1, 3)));
}

#[test]
fn a_condition_is_its_text_and_may_go_to_other_threads() {
    fn shared<T: Send + Sync + Clone + 'static>(_: &T) {}
    let condition = Condition::compile("args.a == 1").unwrap();
    shared(&condition);
    assert_eq!(condition, condition.clone());
    assert_eq!(condition.source(), "args.a == 1");
    assert_eq!(format!("{condition:?}"), r#"Condition("args.a == 1")"#);
}

#[test]
fn a_condition_that_does_not_speak_of_args_is_answered_whatever_they_are() {
    let call = Call::new(&format!(r#"{{"a": "{}"}}"#, "x".repeat(2 << 20)));
    assert_eq!(call.says("'clerk' in user.roles"), Ok(true));
    assert_eq!(
        call.says("args.a == 'x'").unwrap_err().to_string(),
        "the arguments are 2097160 bytes long, and no more than 262144 are looked at"
    );
}

#[test]
fn a_large_text_argument_does_not_stand_in_the_way() {
    let call = Call::new(&format!(
        r#"{{"path": "/tmp/a", "content": "{}"}}"#,
        "行".repeat(80_000)
    ));
    assert_eq!(call.says("args.path.startsWith('/tmp/')"), Ok(true));
    assert_eq!(call.says("size(args.content) > 1000"), Ok(true));
    assert_eq!(call.says("args.content.contains('rm -rf')"), Ok(false));
}

#[test]
fn a_pattern_is_matched_anywhere_and_several_do_not_meddle() {
    check(
        r#"{"mail": "li.lei@example.com", "s": "金额 100", "l": ["a1", "b2"]}"#,
        &[
            (r"args.mail.matches(r'^[\w.+-]+@[\w-]+\.[\w.]+$')", true),
            (
                r"args.mail.matches('example') && !args.mail.matches('^example')",
                true,
            ),
            (
                r"args.s.matches('^金额 [0-9]+$') && args.s.matches(r'\d{3}')",
                true,
            ),
            (
                r"args.l.all(x, x.matches('^[a-z][0-9]$') && x.matches('1|2'))",
                true,
            ),
            (r"args.s.matches('')", true),
            (r"args.s.matches('(?i)DROP\\s+TABLE')", false),
        ],
    );
    check_unclear(
        r#"{"n": 1}"#,
        &[
            (
                "args.n.matches('1')",
                "a whole number (int) stands where a text is needed",
            ),
            ("args.s.matches('1')", "there is no `s`"),
        ],
    );
}
