//! What a person is told.

use holdpoint_policy::Template;

use crate::Call;

#[test]
fn the_variables_are_filled_in() {
    let call = Call::new(
        r#"{"path": "/tmp/a&b", "content": "一\n二\n三", "n": 2.5, "i": 10.0, "list": ["a", "b", 3], "none": null, "o": {"k": "<v>"}}"#,
    );
    for (template, expected) in [
        (
            "Write {{ args.content | lines }} lines to {{ args.path }}",
            "Write 3 lines to /tmp/a&b",
        ),
        (
            "{{ args.n | lines }}{{ args.list | lines }}{{ args.none | lines }}",
            "???",
        ),
        (
            "{{ '' | lines }} {{ 'a\\n' | lines }} {{ 'a\\n\\nb' | lines }}",
            "0 1 3",
        ),
        ("{{ args.n }} {{ args.i }} {{ args.none }}", "2.5 10 None"),
        ("{{ args.list | join(', ') }}", "a, b, 3"),
        ("{{ args.list | join }}", "ab3"),
        ("{{ args.o | tojson }}", r#"{"k":"<v>"}"#),
        ("{{ args.o.k }}", "<v>"),
        (
            "{{ user.name }} ({{ user.roles | join('/') }}) via {{ agent.path }}",
            "李雷 (clerk/财务) via researcher#1/reader#2",
        ),
        (
            "{{ tool.name }} {{ tool.version }} {{ tool.effect }}",
            "pay 2 write",
        ),
        ("{% if args.n > 2 %}much{% else %}little{% endif %}", "much"),
        (
            "{% for x in args.list %}{{ loop.index }}:{{ x }} {% endfor %}",
            "1:a 2:b 3:3 ",
        ),
        (
            "{% if args.cc is defined %}cc{% elif args.none is none %}none{% endif %}",
            "none",
        ),
        ("{{ args.cc | default('nobody') }}", "nobody"),
        (
            "{{ args.content | length }} {{ args.path | upper }}",
            "5 /TMP/A&B",
        ),
        (
            "{{ args.list[0] }}{# a comment with {{ nothing | here }} #}!",
            "a!",
        ),
        ("{{ {'a': {'b': 1}}.a.b }}{{ \"}}\" }}", "1}}"),
        ("line\n{{ args.n }}\n", "line\n2.5\n"),
        ("{{- args.n -}}", "2.5"),
    ] {
        assert_eq!(
            call.renders(template).as_deref(),
            Ok(expected),
            "{template}"
        );
    }
}

#[test]
fn a_plain_text_is_itself_to_the_byte() {
    let call = Call::new("{}");
    for text in [
        "",
        "Send it?\n",
        "  two  \r\n\r\n",
        "a { b } %} }} {# not a comment #} 金额 \u{0}\t",
        "{ {x} }",
    ] {
        assert_eq!(call.renders(text).as_deref(), Ok(text), "{text:?}");
    }
}

#[test]
fn an_argument_that_is_absent_is_unclear() {
    let call = Call::new(r#"{"a": {"b": 1}}"#);
    for (template, expected) in [
        ("{{ args.to }}", "args.to"),
        ("{{ args.a.c }}", "undefined value"),
        ("{{ args.to.name }}", "undefined value"),
        ("{% if args.to %}x{% endif %}", "undefined value"),
        ("{% for x in args.to %}x{% endfor %}", "undefined value"),
        ("{{ args.a.b() }}", "not callable"),
        ("{{ args.a.upper() }}", "unknown method"),
        ("{{ args.a + 1 }}", "invalid operation"),
    ] {
        let reason = call.renders(template).unwrap_err().to_string();
        assert!(reason.contains(expected), "{template}: {reason}");
    }
}

#[test]
fn what_is_wrong_with_a_template_is_said_with_the_place_and_the_remedy() {
    let long = "x".repeat(4097);
    for (template, message, help) in [
        ("{{ to }}", "`to` is not known", "`args.to`"),
        ("{{ user.role }}", "`user` has no `role`", "`roles`"),
        ("{{ range(3) }}", "`range` is not known", "args"),
        (
            "金 {{ args.a | upcase }}",
            "there is no filter `upcase` at column 15",
            "`upper`",
        ),
        (
            "{% if args.a is nice %}{% endif %}",
            "there is no test `nice` at column 17",
            "`defined`",
        ),
        (
            "{% if args.a is not nice %}{% endif %}",
            "there is no test `nice`",
            "`defined`",
        ),
        (
            "{% set x = 1 %}",
            "there is no statement `set` at column 4",
            "`if`",
        ),
        (
            "{%- include 'x' %}",
            "there is no statement `include`",
            "`if`",
        ),
        (
            "{% extends 'x' %}",
            "there is no statement `extends`",
            "`if`",
        ),
        (
            "{% macro x() %}{% endmacro %}",
            "there is no statement `macro`",
            "`if`",
        ),
        (
            "{{ '\\'}}{% with x = 1 %}' }}",
            "there is no statement `with`",
            "`if`",
        ),
        (
            "{% raw %}{{ x }}{% endraw %}",
            "there is no statement `raw`",
            "`if`",
        ),
        ("a\n{{ args.a", "at line 2", "Jinja"),
        ("{% if args.a %}x", "", "Jinja"),
        ("{{ args.a b }}", "at column", "Jinja"),
        ("{% %}", "there is no statement ``", "`if`"),
        (
            &long,
            "a description of 4097 bytes is longer than 4096",
            "shorten",
        ),
    ] {
        let error = match Template::compile(template) {
            Err(error) => error,
            Ok(template) => panic!("{template:?} was accepted"),
        };
        assert!(error.to_string().contains(message), "{template}: {error}");
        assert!(error.help().contains(help), "{template}: {}", error.help());
        assert!(!error.to_string().contains('\n'), "{template}: {error}");
    }
}

#[test]
fn a_long_text_is_cut_at_a_character() {
    let call = Call::new(&format!(r#"{{"content": "{}"}}"#, "行".repeat(100_000)));
    let text = call.renders("x{{ args.content }}").unwrap();
    assert_eq!(text.len(), 8191);
    assert!(text.ends_with('行'));
    let text = call.renders("{{ args.content }}").unwrap();
    assert_eq!(text.len(), 8190);
    // What comes after the cut is not even looked at.
    assert_eq!(
        call.renders("{{ args.content }}{{ args.absent }}"),
        Ok(text)
    );
}

#[test]
fn exactly_a_page_is_not_cut() {
    let call = Call::new(&format!(r#"{{"content": "{}"}}"#, "x".repeat(8191)));
    assert_eq!(call.renders("{{ args.content }}y").unwrap().len(), 8192);
    assert!(call.renders("{{ args.content }}y").unwrap().ends_with('y'));
    assert!(call.renders("{{ args.content }}yz").unwrap().ends_with('y'));
}

#[test]
fn endless_work_runs_out_of_fuel() {
    let items = vec!["1"; 2000].join(",");
    let call = Call::new(&format!(
        r#"{{"items": [{items}], "sep": "{}"}}"#,
        "s".repeat(500_000)
    ));
    let nested = "{% for a in args.items %}{% for b in args.items %}{% if a > b %}{% endif %}{% endfor %}{% endfor %}";
    assert_eq!(
        call.renders(nested).unwrap_err().to_string(),
        "the description would take too long with these arguments"
    );
    // A thousand megabytes, were they made.
    assert_eq!(
        call.renders("{{ args.items | join(args.sep) }}")
            .unwrap()
            .len(),
        8192
    );
    assert!(call.renders("{{ 'x' * 99999999999 }}").is_err());
    let recursive = "{% for a in args.items recursive %}{{ loop(args.items) }}{% endfor %}";
    assert!(call.renders(recursive).is_err());
}

#[test]
fn deep_nesting_is_refused_or_rendered_but_never_a_crash() {
    let call = Call::new(&format!(
        r#"{{"a": {}1{}}}"#,
        "[".repeat(63),
        "]".repeat(63)
    ));
    assert!(call.renders("{{ args.a }}{{ args.a | tojson }}").is_ok());
    assert!(
        call.renders("{{ args | tojson }}{{ args.a | join }}{{ args.a | sort }}")
            .is_ok()
    );
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("{1:", "}"),
        ("-", ""),
        ("not ", ""),
        ("args[", "]"),
        ("1 if 1 else ", ""),
    ] {
        let n = 2000 / open.len();
        let text = format!("{{{{ {}1{} }}}}", open.repeat(n), close.repeat(n));
        if let Ok(template) = Template::compile(&text) {
            let _ = template.render(&call.facts());
        }
        assert!(Template::compile(&format!("{{{{ {}", open.repeat(n))).is_err());
    }
    for (open, close) in [
        ("{%if 1%}", "{%endif%}"),
        ("{%for a in args%}", "{%endfor%}"),
    ] {
        let n = 4000 / (open.len() + close.len());
        let text = format!("{}{}", open.repeat(n), close.repeat(n));
        if let Ok(template) = Template::compile(&text) {
            let _ = template.render(&call.facts());
        }
    }
}

#[test]
fn a_template_is_its_text_and_may_go_to_other_threads() {
    fn shared<T: Send + Sync + Clone + 'static>(_: &T) {}
    let template = Template::compile("{{ args.a }}").unwrap();
    shared(&template);
    assert_eq!(template, template.clone());
    assert_eq!(format!("{template:?}"), r#"Template("{{ args.a }}")"#);
}

#[test]
fn built_in_tools_say_what_they_would_do() {
    use holdpoint_core::Builtin;
    let cases = [
        (
            Builtin::Shell,
            r#"{"command":"rm -rf {{ args }}"}"#,
            "Execute shell command: rm -rf {{ args }}",
        ),
        (
            Builtin::Execute,
            r#"{"command":"ls"}"#,
            "Execute command in the sandbox: ls",
        ),
        (
            Builtin::WriteFile,
            r#"{"path":"/file.txt","content":null}"#,
            "Delete file: /file.txt",
        ),
        (
            Builtin::WriteFile,
            r#"{"path":"a.txt"}"#,
            "Delete file: a.txt",
        ),
        (
            Builtin::WriteFile,
            r#"{"path":"a.txt","content":"one\ntwo"}"#,
            "Write 2 lines to a.txt",
        ),
        (
            Builtin::WriteFile,
            r#"{"path":"a.txt","content":7}"#,
            "Write ? lines to a.txt",
        ),
        (Builtin::EditFile, r#"{"path":"a.txt"}"#, "Edit file: a.txt"),
        (
            Builtin::EditFile,
            r#"{"path":"a.txt","replace_all":true}"#,
            "Edit file: a.txt (all occurrences)",
        ),
        (
            Builtin::FetchUrl,
            r#"{"url":"https://e/"}"#,
            "Fetch URL: https://e/",
        ),
        (
            Builtin::WebSearch,
            r#"{"query":"tea"}"#,
            "Search the web: tea",
        ),
    ];
    for (builtin, args, expected) in cases {
        let gate = builtin.default_gate().unwrap();
        let words = gate.terms.description.unwrap();
        let told = Call::new(args).renders(&words);
        assert_eq!(told.as_deref(), Ok(expected), "{args}");
    }
    let gate = Builtin::default_task_gate();
    let words = gate.terms.description.unwrap();
    let told = Call::new(r#"{"subagent_type":"auditor","description":"look"}"#).renders(&words);
    assert_eq!(told.as_deref(), Ok("Give a task to auditor: look"));
}
