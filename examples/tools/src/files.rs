//! Files below one folder, and nothing outside of it.

use std::{
    fs::{self, File},
    io::{ErrorKind, Write},
    path::{Component, Path, PathBuf},
};

use anyhow::Context;
use serde_json::{Value, json};

use crate::{Call, Ended};

/// How large a file may be that is read.
const MAX_READ: u64 = 256 * 1024;
/// Where deleted files go, one per key, so that a deletion can be looked up and undone.
const TRASH: &str = ".trash";

/// What can be done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Prints its content.
    Read,
    /// Gives it a content. Doing so twice is doing it once.
    Write,
    /// Moves it into the trash, under the key of the call.
    Delete,
    /// Whether this key deleted something.
    LookUpDelete,
    /// Brings back what this key deleted.
    Restore,
}

/// The files below one folder.
#[derive(Debug, Clone)]
pub struct Files {
    root: PathBuf,
}

fn refuse<T>(message: impl Into<String>) -> Result<T, Ended> {
    Err(Ended::Refused(message.into()))
}

impl Files {
    /// The files below `root`.
    ///
    /// # Errors
    ///
    /// If there is no such folder.
    pub fn below(root: &Path) -> Result<Self, Ended> {
        match root.canonicalize() {
            Ok(root) => Ok(Self { root }),
            Err(error) => refuse(format!(
                "the folder `{}` cannot be used: {error}",
                root.display()
            )),
        }
    }

    /// Does one thing with the file that the call names.
    ///
    /// # Errors
    ///
    /// [`Ended::Refused`] if nothing was changed, [`Ended::Unknown`] if something may have been.
    pub fn perform(&self, operation: Operation, call: &Call) -> Result<Value, Ended> {
        let name = call.text("path")?;
        let path = self.place(name)?;
        let trashed = self.root.join(TRASH).join(file_name(&call.key)?);
        match operation {
            Operation::Read => read(&path, name),
            Operation::Write => write(&path, name, call.text("content")?),
            Operation::Delete => self.delete(&path, name, &trashed),
            Operation::LookUpDelete if trashed.exists() => {
                Ok(json!({"status": "committed", "receipt": deleted(name)}))
            }
            Operation::LookUpDelete => Ok(json!({"status": "not_found"})),
            Operation::Restore => self.restore(&path, name, &trashed),
        }
    }

    /// The path of a file that lies below the root, symbolic links included.
    fn place(&self, name: &str) -> Result<PathBuf, Ended> {
        let relative = Path::new(name);
        let plain = |part: Component<'_>| matches!(part, Component::Normal(part) if !part.as_encoded_bytes().starts_with(b"."));
        if name.is_empty() || name.contains('\0') || !relative.components().all(plain) {
            return refuse(format!(
                "`{name}` must be a path within the workspace, without `..` and hidden names"
            ));
        }
        let path = self.root.join(relative);
        let folder = path.parent().unwrap_or(&self.root);
        match folder.canonicalize() {
            Ok(folder) if folder.starts_with(&self.root) => {}
            Ok(_) => return refuse(format!("`{name}` leads out of the workspace")),
            Err(_) => return refuse(format!("there is no folder for `{name}`")),
        }
        match fs::symlink_metadata(&path) {
            Ok(found) if !found.is_file() => refuse(format!("`{name}` is not a plain file")),
            Ok(_) => Ok(path),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(path),
            Err(error) => refuse(format!("`{name}` cannot be used: {error}")),
        }
    }

    fn delete(&self, path: &Path, name: &str, trashed: &Path) -> Result<Value, Ended> {
        if trashed.exists() {
            return Ok(deleted(name));
        }
        if !path.exists() {
            return refuse(format!("there is no file `{name}`"));
        }
        fs::create_dir_all(self.root.join(TRASH)).context("the trash cannot be made")?;
        // DURABILITY: a rename is the effect and its record in one.
        fs::rename(path, trashed).with_context(|| format!("`{name}` cannot be moved"))?;
        sync_folders(path, trashed)?;
        Ok(deleted(name))
    }

    fn restore(&self, path: &Path, name: &str, trashed: &Path) -> Result<Value, Ended> {
        if trashed.exists() {
            if path.exists() {
                return refuse(format!(
                    "there is a new file `{name}`, which restoring would overwrite"
                ));
            }
            fs::rename(trashed, path).with_context(|| format!("`{name}` cannot be moved"))?;
            sync_folders(trashed, path)?;
        }
        Ok(json!({"restored": name}))
    }
}

fn deleted(name: &str) -> Value {
    json!({"deleted": name})
}

fn read(path: &Path, name: &str) -> Result<Value, Ended> {
    match fs::metadata(path) {
        Err(_) => refuse(format!("there is no file `{name}`")),
        Ok(found) if found.len() > MAX_READ => {
            refuse(format!("`{name}` is larger than {MAX_READ} bytes"))
        }
        Ok(_) => match fs::read_to_string(path) {
            Ok(content) => Ok(json!({"path": name, "content": content})),
            Err(error) => refuse(format!("`{name}` cannot be read: {error}")),
        },
    }
}

fn write(path: &Path, name: &str, content: &str) -> Result<Value, Ended> {
    // Written aside and renamed, so that nobody ever sees half of it.
    let aside = path.with_file_name(format!(
        ".{}.{}",
        std::process::id(),
        name.replace('/', "_")
    ));
    let written = File::create(&aside)
        .and_then(|mut file| {
            file.write_all(content.as_bytes())
                .and_then(|()| file.sync_all())
        })
        .and_then(|()| fs::rename(&aside, path));
    if let Err(error) = written {
        // Only tidying: the file itself is untouched.
        let _ = fs::remove_file(&aside);
        return refuse(format!("`{name}` cannot be written: {error}"));
    }
    sync_folders(path, path)?;
    Ok(json!({"written": name, "bytes": content.len()}))
}

fn sync_folders(a: &Path, b: &Path) -> anyhow::Result<()> {
    for path in [a, b] {
        if let Some(folder) = path.parent() {
            File::open(folder)
                .and_then(|folder| folder.sync_all())
                .context("a folder cannot be synced")?;
        }
    }
    Ok(())
}

/// A key as the name of a file.
fn file_name(key: &str) -> Result<String, Ended> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':');
    if key.is_empty() || key.len() > 200 || !key.bytes().all(fits) {
        return refuse("the idempotency key cannot be the name of a file");
    }
    Ok(key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(key: &str, args: &Value) -> Call {
        Call {
            key: key.to_owned(),
            epoch: 1,
            args: args.as_object().unwrap().clone(),
        }
    }

    fn refused(result: Result<Value, Ended>) -> String {
        match result {
            Err(Ended::Refused(message)) => message,
            other => panic!("not refused: {other:?}"),
        }
    }

    #[test]
    fn nothing_outside_of_the_folder_can_be_reached() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir(&root).unwrap();
        fs::write(dir.path().join("secret"), "x").unwrap();
        std::os::unix::fs::symlink(dir.path(), root.join("out")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("secret"), root.join("link")).unwrap();
        let files = Files::below(&root).unwrap();
        let cases = [
            "../secret",
            "/etc/passwd",
            "a/../../secret",
            "out/secret",
            "link",
            "",
            ".trash/k",
            ".",
            "nowhere/x",
            "out",
        ];
        for path in cases {
            for operation in [Operation::Read, Operation::Write, Operation::Delete] {
                refused(files.perform(
                    operation,
                    &call("k", &json!({"path": path, "content": "y"})),
                ));
            }
        }
        assert_eq!(fs::read_to_string(dir.path().join("secret")).unwrap(), "x");
        refused(files.perform(Operation::Delete, &call("../k", &json!({"path": "a"}))));
    }

    #[test]
    fn a_deletion_can_be_repeated_looked_up_and_undone() {
        let dir = tempfile::tempdir().unwrap();
        let files = Files::below(dir.path()).unwrap();
        let args = json!({"path": "temp.txt", "content": "old"});
        files.perform(Operation::Write, &call("w", &args)).unwrap();
        let delete = call("d", &args);
        let look_up = || files.perform(Operation::LookUpDelete, &delete).unwrap();
        assert_eq!(look_up(), json!({"status": "not_found"}));
        let printed = files.perform(Operation::Delete, &delete).unwrap();
        assert_eq!(files.perform(Operation::Delete, &delete).unwrap(), printed);
        assert_eq!(
            look_up(),
            json!({"status": "committed", "receipt": printed})
        );
        refused(files.perform(Operation::Read, &delete));
        files.perform(Operation::Restore, &delete).unwrap();
        assert_eq!(
            files.perform(Operation::Read, &delete).unwrap(),
            json!({"path": "temp.txt", "content": "old"})
        );
        assert_eq!(look_up(), json!({"status": "not_found"}));
    }
}
