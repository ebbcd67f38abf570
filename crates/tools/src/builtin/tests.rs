//! What file tools promise, with both ways of following paths.

#![expect(
    clippy::disallowed_methods,
    reason = "tests of threads and of a kernel take the time that it takes"
)]

use std::{
    fs,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use holdpoint_core::{Basis, Digest, Lookup, Preview, PreviewForm};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    reading::{self, MAX_READ},
    search,
    work::Wanted,
    workspace::{Resolver, Workspace},
    writing::{self, Change, NotDone},
};

const RESOLVERS: [Resolver; 2] = [Resolver::Kernel, Resolver::Walk];

/// A workspace with a folder around it that nothing may reach.
struct Bench {
    around: tempfile::TempDir,
    workspace: Workspace,
}

impl Bench {
    fn new(resolver: Resolver) -> Self {
        let around = tempfile::tempdir().unwrap();
        fs::create_dir(around.path().join("work")).unwrap();
        fs::write(around.path().join("secret"), "secret").unwrap();
        fs::create_dir(around.path().join("outside")).unwrap();
        fs::write(around.path().join("outside/a"), "outside").unwrap();
        let path = around.path().join("work");
        let workspace = Workspace::open(path.to_str().unwrap()).unwrap();
        Self {
            workspace: workspace.with(resolver),
            around,
        }
    }

    fn at(&self, path: &str) -> std::path::PathBuf {
        self.around.path().join("work").join(path)
    }

    fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn has(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.at(path)).ok()
    }

    fn read(&self, args: Value) -> Result<String, String> {
        reading::read_file(&self.workspace, &of(args))
    }

    fn ls(&self, path: Option<&str>) -> Result<String, String> {
        reading::ls(&self.workspace, &of(json!({"path": path})))
    }

    fn glob(&self, args: Value) -> Result<String, String> {
        search::glob(&self.workspace, &of(args), &Wanted::for_long())
    }

    fn grep(&self, args: Value) -> Result<String, String> {
        search::grep(&self.workspace, &of(args), &Wanted::for_long())
    }

    fn make(&self, change: &Change, basis: Option<&Basis>) -> Result<String, NotDone> {
        writing::make(&self.workspace, change, basis, "key", &Wanted::for_long())
    }

    fn write(&self, path: &str, content: &str) -> Result<String, NotDone> {
        self.make(&write(path, Some(content)), None)
    }

    fn delete(&self, path: &str) -> Result<String, NotDone> {
        self.make(&write(path, None), None)
    }

    fn preview(&self, change: &Change) -> Result<Preview, String> {
        writing::preview(&self.workspace, change)
    }

    fn find(&self, change: &Change, basis: Option<&Basis>) -> Lookup {
        writing::find(&self.workspace, change, basis, &Wanted::for_long())
    }

    /// Nothing outside was read into a text or changed.
    fn is_untouched(&self) {
        let secret = fs::read_to_string(self.around.path().join("secret")).unwrap();
        assert_eq!(secret, "secret");
        let outside = self.around.path().join("outside");
        assert_eq!(fs::read_to_string(outside.join("a")).unwrap(), "outside");
        assert_eq!(fs::read_dir(outside).unwrap().count(), 1);
        assert_eq!(fs::read_dir(self.around.path()).unwrap().count(), 3);
    }

    fn left_over(&self, folder: &str) -> Vec<String> {
        let names = fs::read_dir(self.at(folder)).unwrap();
        names
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with(".holdpoint-"))
            .collect()
    }
}

fn of<T: DeserializeOwned>(args: Value) -> T {
    serde_json::from_value(args).unwrap()
}

fn write(path: &str, content: Option<&str>) -> Change {
    Change::Write(of(json!({"path": path, "content": content})))
}

fn edit(path: &str, old: &str, new: &str) -> Change {
    Change::Edit(of(
        json!({"path": path, "old_string": old, "new_string": new}),
    ))
}

fn edit_all(path: &str, old: &str, new: &str) -> Change {
    Change::Edit(of(
        json!({"path": path, "old_string": old, "new_string": new, "replace_all": true}),
    ))
}

fn nothing(ended: Result<String, NotDone>) -> String {
    match ended {
        Err(NotDone::Nothing(why)) => why,
        ended => panic!("{ended:?}"),
    }
}

fn on_both(test: impl Fn(&Bench)) {
    for resolver in RESOLVERS {
        test(&Bench::new(resolver));
    }
}

#[test]
fn this_kernel_follows_paths_itself() {
    // Otherwise half of these tests would test the other way twice.
    let dir = tempfile::tempdir().unwrap();
    let opened = format!("{:?}", Workspace::open(dir.path().to_str().unwrap()));
    assert!(opened.contains("Kernel"), "{opened}");
}

#[test]
fn a_workspace_is_a_folder_that_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("file"), "").unwrap();
    for (path, said) in [
        (path("none"), "make it first"),
        (path("file"), "is not a folder"),
        ("relative".to_owned(), "not an absolute path"),
    ] {
        let error = Workspace::open(&path).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn a_file_is_read_with_its_lines_numbered() {
    on_both(|bench| {
        bench.put("a/b.txt", "one\ntwo\r\nthree");
        let read = |args| bench.read(args).unwrap();
        assert_eq!(
            read(json!({"path": "a/b.txt"})),
            "     1\tone\n     2\ttwo\n     3\tthree\n"
        );
        assert_eq!(
            read(json!({"path": "a/b.txt", "offset": 2, "limit": 1})),
            "     2\ttwo\n[lines 2 to 2; go on with offset 3]\n"
        );
        let absolute = bench.at("a/b.txt");
        assert_eq!(
            read(json!({"path": absolute, "offset": 3})),
            "     3\tthree\n"
        );
        let error = bench
            .read(json!({"path": "a/b.txt", "offset": 4}))
            .unwrap_err();
        assert_eq!(error, "`a/b.txt` has only 3 lines");
        bench.put("empty", "");
        assert_eq!(read(json!({"path": "empty"})), "[`empty` is empty]");
        let error = bench.read(json!({"path": "artifact://a/v1"})).unwrap_err();
        assert_eq!(error, "there is no such artifact: `artifact://a/v1`");
    });
}

#[test]
fn a_long_file_is_read_piece_by_piece() {
    let bench = Bench::new(Resolver::Kernel);
    let lines: Vec<_> = (1..=5_001).map(|it| format!("line {it}")).collect();
    bench.put("long", lines.join("\n"));
    let first = bench.read(json!({"path": "long"})).unwrap();
    assert!(first.ends_with("line 2000\n[lines 1 to 2000; go on with offset 2001]\n"));
    let last = bench
        .read(json!({"path": "long", "offset": 4_001}))
        .unwrap();
    assert!(last.ends_with("  5001\tline 5001\n"), "{last}");
    bench.put("wide", format!("{}\nnext\n", "é".repeat(MAX_READ)));
    let wide = bench.read(json!({"path": "wide"})).unwrap();
    assert!(wide.len() < MAX_READ + 200 && wide.ends_with("go on with offset 2]\n"));
    assert_eq!(
        bench.read(json!({"path": "wide", "offset": 2})).unwrap(),
        "     2\tnext\n"
    );
    assert!(wide.len() <= holdpoint_core::MAX_RESULT);
    bench.put("broad", format!("{}\n", "x".repeat(1_000)).repeat(1_000));
    let broad = bench.read(json!({"path": "broad"})).unwrap();
    assert!(broad.len() < MAX_READ + 200 && broad.ends_with("go on with offset 61]\n"));
}

#[test]
fn what_is_no_text_is_not_read_and_its_kind_and_size_are_told() {
    on_both(|bench| {
        for (name, content, said) in [
            (
                "elf",
                &b"\x7fELF\x02\x01"[..],
                "`elf` is no text: a program, 6 bytes",
            ),
            ("png", b"\x89PNG\r\n", "a PNG image, 6 bytes"),
            ("nul", b"a\0b", "binary data, 3 bytes"),
            ("latin", b"ok\ncaf\xe9\n", "line 2 is not UTF-8; 8 bytes"),
        ] {
            bench.put(name, content);
            let error = bench.read(json!({"path": name})).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    });
}

#[test]
fn a_folder_is_listed_in_order_and_up_to_a_number() {
    on_both(|bench| {
        bench.put("b/x", "");
        bench.put("a", "");
        bench.put(".holdpoint-1.part", "");
        symlink("/etc", bench.at("link")).unwrap();
        bench.put("evil\u{202e}\n", "");
        assert_eq!(bench.ls(None).unwrap(), "a\nb/\nevil\\u{202e}\\u{a}\nlink@");
        assert_eq!(bench.ls(Some("b")).unwrap(), "x");
        assert!(bench.ls(Some("a")).unwrap_err().contains("not a folder"));
        fs::create_dir(bench.at("many")).unwrap();
        for number in 0..2_005 {
            bench.put(&format!("many/{number:05}"), "");
        }
        let many = bench.ls(Some("many")).unwrap();
        assert!(many.ends_with("01999\n[and 5 more]"), "{many}");
    });
}

#[test]
fn files_are_found_by_their_names_and_lines_by_a_pattern() {
    on_both(|bench| {
        bench.put("src/a.rs", "fn main() {}\n");
        bench.put("src/deep/b.rs", "// nothing\nfn other() {}\n");
        bench.put("notes.md", "fn is a word\n");
        bench.put(".git/config", "fn hidden");
        bench.put("bin", b"\0fn");
        symlink(bench.around.path().join("outside"), bench.at("out")).unwrap();
        let glob = |args| bench.glob(args).unwrap();
        assert_eq!(
            glob(json!({"pattern": "**/*.rs"})),
            "src/a.rs\nsrc/deep/b.rs"
        );
        assert_eq!(glob(json!({"pattern": "*.rs", "path": "src"})), "src/a.rs");
        assert_eq!(glob(json!({"pattern": "out/*"})), "[no file matches]");
        assert_eq!(glob(json!({"pattern": "./*.md"})), "notes.md");
        let lines = |text: String| {
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(
            lines(bench.grep(json!({"pattern": r"^fn \w+"})).unwrap()),
            [
                "notes.md:1:fn is a word",
                "src/a.rs:1:fn main() {}",
                "src/deep/b.rs:2:fn other() {}"
            ]
        );
        assert_eq!(
            bench
                .grep(json!({"pattern": "fn", "glob": "*.md"}))
                .unwrap(),
            "notes.md:1:fn is a word"
        );
        assert_eq!(
            bench
                .grep(json!({"pattern": "fn", "path": "src/a.rs"}))
                .unwrap(),
            "src/a.rs:1:fn main() {}"
        );
        let one = bench.grep(json!({"pattern": "fn", "max": 1})).unwrap();
        assert!(one.ends_with("[there are more than 1 lines]"), "{one}");
        assert!(bench.grep(json!({"pattern": "("})).is_err());
        assert!(bench.grep(json!({"pattern": "a{1000}{1000}"})).is_err());
        assert!(bench.glob(json!({"pattern": "[", "path": "src"})).is_err());
    });
}

#[test]
fn a_pattern_that_others_would_take_forever_for_takes_no_time() {
    let bench = Bench::new(Resolver::Kernel);
    bench.put("a", "a".repeat(100_000) + "b");
    let began = std::time::Instant::now();
    bench.grep(json!({"pattern": "(a+)+$"})).unwrap();
    assert!(began.elapsed().as_secs() < 5);
}

#[test]
fn deep_trees_are_read_written_and_searched_up_to_a_depth() {
    on_both(|bench| {
        let deep = "d/".repeat(200);
        bench.write(&format!("{deep}leaf"), "text\n").unwrap();
        assert!(bench.read(json!({"path": format!("{deep}leaf")})).is_ok());
        let found = bench.grep(json!({"pattern": "text"})).unwrap();
        assert!(found.contains("nested deeper than 64"), "{found}");
    });
}

#[test]
fn a_file_is_written_replaced_and_deleted_as_a_whole() {
    on_both(|bench| {
        let made = bench.write("new/folder/a.txt", "one\n");
        assert_eq!(made.as_deref(), Ok("wrote 4 bytes to `new/folder/a.txt`"));
        assert_eq!(bench.has("new/folder/a.txt").as_deref(), Some("one\n"));
        fs::set_permissions(
            bench.at("new/folder/a.txt"),
            fs::Permissions::from_mode(0o750),
        )
        .unwrap();
        bench.write("new/folder/a.txt", "two").unwrap();
        assert_eq!(bench.has("new/folder/a.txt").as_deref(), Some("two"));
        let mode = fs::metadata(bench.at("new/folder/a.txt")).unwrap().mode();
        assert_eq!(mode & 0o777, 0o750);
        let deleted = bench.delete("new/folder/a.txt");
        assert_eq!(deleted.as_deref(), Ok("deleted `new/folder/a.txt`"));
        assert_eq!(bench.has("new/folder/a.txt"), None);
        let again = nothing(bench.delete("new/folder/a.txt"));
        assert_eq!(again, "there is no file `new/folder/a.txt` to delete");
        assert_eq!(bench.left_over("new/folder"), [""; 0]);
    });
}

#[test]
fn content_that_is_left_out_deletes_nothing() {
    let parsed: Result<writing::WriteFile, _> = serde_json::from_value(json!({"path": "a"}));
    assert!(
        parsed
            .unwrap_err()
            .to_string()
            .contains("missing field `content`")
    );
}

#[test]
fn text_is_replaced_where_it_is_once_or_everywhere_if_that_is_said() {
    on_both(|bench| {
        bench.put("a", "one two two\n");
        assert_eq!(
            bench.make(&edit("a", "one", "1"), None).as_deref(),
            Ok("edited `a`")
        );
        assert_eq!(bench.has("a").as_deref(), Some("1 two two\n"));
        let twice = nothing(bench.make(&edit("a", "two", "2"), None));
        assert!(twice.contains("is in `a` 2 times"), "{twice}");
        let none = nothing(bench.make(&edit("a", "three", "3"), None));
        assert!(none.contains("is not in `a`"), "{none}");
        nothing(bench.make(&edit("a", "", "3"), None));
        nothing(bench.make(&edit("a", "two", "two"), None));
        nothing(bench.make(&edit("none", "a", "b"), None));
        bench.make(&edit_all("a", "two", "2"), None).unwrap();
        assert_eq!(bench.has("a").as_deref(), Some("1 2 2\n"));
        bench.put("binary", b"\xff\xfea");
        let binary = nothing(bench.make(&edit("binary", "a", "b"), None));
        assert_eq!(binary, "`binary` is no UTF-8 text");
    });
}

#[test]
fn what_is_too_large_is_neither_written_nor_changed() {
    on_both(|bench| {
        let large = "x".repeat((1 << 20) + 1);
        assert!(nothing(bench.write("a", &large)).contains("1048577 bytes"));
        assert_eq!(bench.has("a"), None);
        bench.write("a", &large[1..]).unwrap();
        bench.put("b", &large);
        assert!(nothing(bench.write("b", "")).contains("is larger than"));
        let grows = edit_all("a", "x", &"y".repeat(1_000));
        assert!(nothing(bench.make(&grows, None)).contains("would be longer"));
    });
}

#[test]
fn nothing_leads_out_of_the_workspace() {
    on_both(|bench| {
        let outside = bench.around.path().join("outside");
        let secret = bench.around.path().join("secret");
        symlink(&outside, bench.at("absolute")).unwrap();
        symlink("../outside", bench.at("relative")).unwrap();
        symlink(&secret, bench.at("file")).unwrap();
        symlink("../secret", bench.at("up")).unwrap();
        symlink("/proc/self/root", bench.at("magic")).unwrap();
        symlink("loop", bench.at("loop")).unwrap();
        fs::create_dir(bench.at("in")).unwrap();
        symlink("../../outside", bench.at("in/deep")).unwrap();
        let paths = [
            "../secret",
            "in/../../secret",
            secret.to_str().unwrap(),
            "/etc/passwd",
            "/proc/self/environ",
            "absolute/a",
            "relative/a",
            "in/deep/a",
            "file",
            "up",
            "magic/etc/passwd",
            "loop",
            "a\0b",
        ];
        for path in paths {
            let read = bench.read(json!({"path": path}));
            assert!(read.is_err(), "{path}: {read:?}");
            nothing(bench.write(path, "changed"));
            nothing(bench.delete(path));
            nothing(bench.make(&edit(path, "outside", "changed"), None));
            assert!(bench.preview(&write(path, Some("x"))).is_err(), "{path}");
            assert!(
                bench.grep(json!({"pattern": ".", "path": path})).is_err(),
                "{path}"
            );
        }
        for folder in ["absolute", "relative", "in/deep", "magic", ".."] {
            assert!(bench.ls(Some(folder)).is_err(), "{folder}");
            assert!(bench.glob(json!({"pattern": "*", "path": folder})).is_err());
            nothing(bench.write(&format!("{folder}/new/file"), "x"));
        }
        bench.is_untouched();
    });
}

#[test]
fn links_within_the_workspace_are_followed_by_the_kernel_but_never_written_over() {
    let bench = Bench::new(Resolver::Kernel);
    bench.put("real/a", "text\n");
    symlink("real", bench.at("folder")).unwrap();
    symlink("real/a", bench.at("file")).unwrap();
    assert_eq!(
        bench.read(json!({"path": "folder/a"})).unwrap(),
        "     1\ttext\n"
    );
    assert_eq!(
        bench.read(json!({"path": "file"})).unwrap(),
        "     1\ttext\n"
    );
    bench.write("folder/a", "changed").unwrap();
    assert_eq!(bench.has("real/a").as_deref(), Some("changed"));
    for ended in [bench.write("file", "x"), bench.delete("file")] {
        assert!(nothing(ended).contains("symbolic link"));
    }
    assert!(fs::symlink_metadata(bench.at("file")).unwrap().is_symlink());
}

#[test]
fn a_hard_link_is_replaced_and_what_it_was_linked_to_stays() {
    on_both(|bench| {
        fs::hard_link(bench.around.path().join("secret"), bench.at("linked")).unwrap();
        bench.write("linked", "changed").unwrap();
        bench.is_untouched();
        assert_eq!(bench.has("linked").as_deref(), Some("changed"));
    });
}

#[test]
fn what_is_no_regular_file_is_neither_read_nor_written_and_nobody_waits_for_it() {
    on_both(|bench| {
        let path = bench.at("fifo");
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(bench.at("socket")).unwrap();
        // Only an administrator can make one.
        let device = bench.at("device");
        let null = rustix::fs::makedev(1, 3);
        let mode = Mode::from_raw_mode(0o666);
        let _ = mknodat(CWD, &device, FileType::CharacterDevice, mode, null);
        fs::create_dir(bench.at("folder")).unwrap();
        for name in ["fifo", "socket", "device", "folder"] {
            if !bench.at(name).exists() {
                continue;
            }
            assert!(bench.read(json!({"path": name})).is_err(), "{name}");
            nothing(bench.write(name, "x"));
            nothing(bench.delete(name));
            assert!(bench.preview(&write(name, None)).is_err(), "{name}");
        }
        assert!(fs::metadata(path).unwrap().file_type().is_fifo());
        assert_eq!(
            bench.grep(json!({"pattern": "."})).unwrap(),
            "[no line matches]"
        );
    });
}

#[test]
fn hostile_names_are_shown_as_what_they_are() {
    on_both(|bench| {
        let name = "a\u{202e}txt.exe\u{1b}[2J\n";
        bench.write(name, "x\n").unwrap();
        assert_eq!(bench.has(name).as_deref(), Some("x\n"));
        let preview = bench.preview(&write(name, None)).unwrap();
        assert_eq!(preview.title, "Delete a\\u{202e}txt.exe\\u{1b}[2J\\u{a}");
        assert!(
            !preview.body.contains(['\u{202e}', '\u{1b}']),
            "{}",
            preview.body
        );
        let found = bench.grep(json!({"pattern": "x"})).unwrap();
        assert_eq!(found, "a\\u{202e}txt.exe\\u{1b}[2J\\u{a}:1:x");
        let long = "n".repeat(300);
        assert!(nothing(bench.write(&long, "x")).contains("too long"));
        let longer = "n/".repeat(3_000);
        assert!(
            bench
                .read(json!({"path": longer}))
                .unwrap_err()
                .contains("too long")
        );
    });
}

#[test]
fn a_preview_is_a_diff_and_says_what_it_was_made_from() {
    on_both(|bench| {
        bench.put("a.txt", "one\ntwo\nthree\n");
        let overwrite = bench
            .preview(&write("a.txt", Some("one\n2\nthree\n")))
            .unwrap();
        assert_eq!(overwrite.title, "Overwrite a.txt");
        assert_eq!(overwrite.form, PreviewForm::Diff);
        assert_eq!(
            overwrite.body,
            "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
        );
        assert_eq!(
            overwrite.basis,
            Some(Basis {
                before: Digest::of(b"one\ntwo\nthree\n"),
                after: Digest::of(b"one\n2\nthree\n"),
            })
        );
        let edited = bench.preview(&edit("a.txt", "two", "2")).unwrap();
        assert_eq!(
            (edited.title.as_str(), edited.body),
            ("Edit a.txt", overwrite.body)
        );
        let created = bench.preview(&write("new/b", Some("x"))).unwrap();
        assert_eq!(created.title, "Create new/b");
        assert_eq!(
            created.body,
            "--- /dev/null\n+++ b/new/b\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n"
        );
        assert_eq!(created.basis.unwrap().before, Digest::default());
        let deleted = bench.preview(&write("a.txt", None)).unwrap();
        assert_eq!(
            deleted.body,
            "--- a/a.txt\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\n"
        );
        assert_eq!(deleted.basis.unwrap().after, Digest::default());
        bench.put("image", b"\x89PNG\r\n\0\0");
        let image = bench.preview(&write("image", None)).unwrap();
        assert_eq!(image.form, PreviewForm::Text);
        assert!(
            image.body.contains("a PNG image, 8 bytes, sha256:"),
            "{}",
            image.body
        );
        assert!(bench.preview(&edit("a.txt", "four", "4")).is_err());
        assert!(bench.preview(&write("none", None)).is_err());
        assert!(!bench.at("new").exists(), "a preview has no effect");
    });
}

#[test]
fn what_is_too_large_to_be_shown_is_not_asked_about() {
    let bench = Bench::new(Resolver::Kernel);
    let error = bench
        .preview(&write("a", Some(&"line\n".repeat(60_000))))
        .unwrap_err();
    assert!(error.contains("too large to be shown"), "{error}");
    let lines = |mark: &str| {
        (0..60_000)
            .map(|it| format!("{mark}{it}\n"))
            .collect::<String>()
    };
    bench.put("b", lines(""));
    // What is deleted can be told by its digest.
    let gone = bench.preview(&write("b", None)).unwrap();
    assert!(
        gone.body.contains("is deleted: 348890 bytes, sha256:") && gone.basis.is_some(),
        "{}",
        gone.body
    );
    let began = std::time::Instant::now();
    assert!(bench.preview(&write("b", Some(&lines("x")))).is_err());
    assert!(began.elapsed().as_secs() < 10);
}

#[test]
fn nothing_is_written_where_the_file_is_not_what_was_shown() {
    on_both(|bench| {
        bench.put("a", "one\n");
        let change = write("a", Some("two\n"));
        let basis = bench.preview(&change).unwrap().basis.unwrap();
        assert_eq!(bench.find(&change, Some(&basis)), Lookup::NotFound);
        bench.put("a", "another\n");
        let why = nothing(bench.make(&change, Some(&basis)));
        assert!(
            why.contains("is not what it was when this call was shown"),
            "{why}"
        );
        assert_eq!(bench.has("a").as_deref(), Some("another\n"));
        assert!(matches!(
            bench.find(&change, Some(&basis)),
            Lookup::Unknown { .. }
        ));
        assert!(matches!(bench.find(&change, None), Lookup::Unknown { .. }));
        bench.put("a", "one\n");
        bench.make(&change, Some(&basis)).unwrap();
        let receipt = json!("wrote 4 bytes to `a`");
        assert_eq!(
            bench.find(&change, Some(&basis)),
            Lookup::Committed { receipt }
        );
        nothing(bench.make(&change, Some(&basis)));
        let create = write("new", Some("x"));
        let basis = bench.preview(&create).unwrap().basis.unwrap();
        bench.put("new", "");
        nothing(bench.make(&create, Some(&basis)));
        let delete = write("a", None);
        let basis = bench.preview(&delete).unwrap().basis.unwrap();
        bench.make(&delete, Some(&basis)).unwrap();
        let receipt = json!("deleted `a`");
        assert_eq!(
            bench.find(&delete, Some(&basis)),
            Lookup::Committed { receipt }
        );
    });
}

#[test]
fn what_a_crash_left_half_written_is_removed() {
    on_both(|bench| {
        bench.put("a", "one");
        let change = write("a", Some("two"));
        let basis = bench.preview(&change).unwrap().basis.unwrap();
        bench.put(".holdpoint-0123456789abcdef.part", "tw");
        assert_eq!(bench.find(&change, Some(&basis)), Lookup::NotFound);
        assert_eq!(bench.left_over("."), [""; 0]);
        bench.put(".holdpoint-0123456789abcdef.part", "tw");
        bench.make(&change, Some(&basis)).unwrap();
        assert_eq!(bench.left_over("."), [""; 0]);
    });
}

#[test]
fn edits_of_one_file_at_once_lose_nothing() {
    const THREADS: usize = 8;
    const EDITS: usize = 25;
    let bench = Arc::new(Bench::new(Resolver::Kernel));
    let marks: String = (0..THREADS * EDITS).map(|it| format!("[{it}]\n")).collect();
    bench.put("a", marks);
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let bench = Arc::clone(&bench);
            thread::spawn(move || {
                for number in 0..EDITS {
                    let number = thread * EDITS + number;
                    let change = edit("a", &format!("[{number}]\n"), &format!("({number})\n"));
                    bench.make(&change, None).unwrap();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let expected: String = (0..THREADS * EDITS).map(|it| format!("({it})\n")).collect();
    assert_eq!(bench.has("a"), Some(expected));
}

#[test]
fn of_many_who_create_a_file_at_once_on_the_same_basis_one_does() {
    let bench = Arc::new(Bench::new(Resolver::Kernel));
    let shown: Vec<_> = (0..8)
        .map(|number| {
            let change = write("a", Some(&format!("{number}")));
            let basis = bench.preview(&change).unwrap().basis.unwrap();
            (change, basis)
        })
        .collect();
    let threads: Vec<_> = shown
        .into_iter()
        .map(|(change, basis)| {
            let bench = Arc::clone(&bench);
            thread::spawn(move || bench.make(&change, Some(&basis)).is_ok())
        })
        .collect();
    let made = threads.into_iter().map(|it| it.join().unwrap());
    assert_eq!(made.filter(|made| *made).count(), 1);
}

#[test]
fn whatever_changes_under_a_path_while_it_is_followed_nothing_outside_is_touched() {
    // In full by `cargo xtask torture`.
    let full = std::env::var_os("HOLDPOINT_TORTURE").is_some_and(|it| it == "1");
    let (count, least) = if full { (1_000, 10_000) } else { (150, 1_500) };
    for resolver in RESOLVERS {
        let bench = Arc::new(Bench::new(resolver));
        fs::create_dir(bench.at("real")).unwrap();
        bench.put("real/a", "inside");
        let (stop, swaps) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicUsize::new(0)),
        );
        let swapping = {
            let (bench, stop, swaps) = (Arc::clone(&bench), Arc::clone(&stop), Arc::clone(&swaps));
            thread::spawn(move || swap(&bench, &stop, &swaps))
        };
        let (mut written, mut refused, mut read) = (0, 0, 0);
        while written < count || refused < count || swaps.load(Ordering::Relaxed) < least {
            match bench.write("real/a", &format!("inside {written}")) {
                Ok(_) => written += 1,
                Err(_) => refused += 1,
            }
            let text = bench.read(json!({"path": "real/a"}));
            assert!(
                !text.as_ref().is_ok_and(|it| it.contains("outside")),
                "{text:?}"
            );
            read += usize::from(text.is_ok());
        }
        stop.store(true, Ordering::Relaxed);
        swapping.join().unwrap();
        bench.is_untouched();
        println!("{resolver:?}: {written} written, {refused} refused, {read} read");
    }
}

/// Shows that the test above would see it: by names alone, something outside is soon written.
#[test]
fn without_these_tools_the_same_race_is_lost() {
    let bench = Arc::new(Bench::new(Resolver::Kernel));
    fs::create_dir(bench.at("real")).unwrap();
    let (stop, swaps) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let swapping = {
        let (bench, stop, swaps) = (Arc::clone(&bench), Arc::clone(&stop), Arc::clone(&swaps));
        thread::spawn(move || swap(&bench, &stop, &swaps))
    };
    let outside = bench.around.path().join("outside/a");
    let is_safe = |path: &Path| fs::symlink_metadata(path).is_ok_and(|it| it.is_dir());
    let mut tried = 0;
    while fs::read_to_string(&outside).unwrap() == "outside" {
        // It looks before it writes, as careful programs do.
        if is_safe(&bench.at("real")) {
            let _ = fs::write(bench.at("real/a"), "inside");
        }
        tried += 1;
        assert!(tried < 10_000_000, "nobody lost it");
    }
    stop.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
}

/// Puts a link to the outside in the place of a folder for a moment, and the folder in its place again.
fn swap(bench: &Bench, stop: &AtomicBool, swaps: &AtomicUsize) {
    use rustix::fs::{RenameFlags, renameat_with};
    symlink(bench.around.path().join("outside"), bench.at("link")).unwrap();
    let (real, link): (&Path, &Path) = (&bench.at("real"), &bench.at("link"));
    let exchange = || {
        renameat_with(CWD, real, CWD, link, RenameFlags::EXCHANGE).unwrap();
        swaps.fetch_add(1, Ordering::Relaxed);
    };
    while !stop.load(Ordering::Relaxed) {
        exchange();
        thread::sleep(Duration::from_micros(1));
        exchange();
        thread::sleep(Duration::from_micros(200));
    }
}
