//! Reads YAML that people write, and explains every problem of a file at once.
//!
//! [`parse`] gives a tree in which every value knows where it stood. [`Fields`] and [`Field`] read typed values out of it;
//! whatever does not fit goes to a [`Report`], with place and remedy, and reading goes on. A key may be written in
//! snake_case or in camelCase.
//!
//! ```
//! use holdpoint_yaml::{Field, Fields, Report, parse};
//!
//! let mut report = Report::new("clerk.yaml");
//! let root = parse("nmae: clerk\nage: -1\n", "Agent", &mut report).unwrap();
//! let fields = Fields::open(&Field::root(&root), &["name", "age"], &mut report).unwrap();
//! let name = fields.required("name", "", &mut report);
//! let age = fields.optional("age").and_then(|age| age.count(&mut report));
//! assert!(name.is_none() && age.is_none());
//! let problems = report.finish().unwrap_err();
//! assert_eq!(problems.as_slice().len(), 2);
//! assert_eq!(
//!     problems.as_slice()[0].to_string(),
//!     "clerk.yaml:1:1: unknown key `nmae`\n  help: did you mean `name`?"
//! );
//! ```

mod duration;
mod fields;
mod file;
mod problem;
mod spelling;
mod tree;

pub use fields::{Elsewhere, Field, Fields, Numbers, either, join};
pub use file::read_file;
pub use problem::{Problem, Problems, Report, quoted};
pub use spelling::{nearest, suggest};
pub use tree::{Content, Entry, Node, Position, parse};
