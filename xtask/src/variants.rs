//! The programs that tests start: the binary in several builds, and the tools of the examples.
//!
//! All are built in cargo's own target directory, one after the other, so that the libraries are compiled once; then they
//! are copied to `variants/NAME/` there (`variants-full/NAME/`, if they are to run for long), because the next build overwrites them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context;

use crate::{env, step};

/// A build of the binary: its folder, its features, and the variable that tells tests where it is.
struct Variant {
    name: &'static str,
    features: &'static [&'static str],
    variable: &'static str,
    /// The variable for the program of the safety tests that embeds the engine, where they need it in this build too.
    rivals: Option<&'static str>,
}

const PLAIN: Variant = Variant {
    name: "plain",
    features: &[],
    variable: "HOLDPOINT_BIN",
    rivals: None,
};

const SPECIAL: [Variant; 4] = [
    Variant {
        name: "failpoints",
        features: &["holdpoint-cli/failpoints"],
        variable: "HOLDPOINT_BIN_FAILPOINTS",
        rivals: None,
    },
    Variant {
        name: "weak-version-check",
        features: &[
            "holdpoint-cli/failpoints",
            "holdpoint-cli/weak-version-check",
        ],
        variable: "HOLDPOINT_BIN_WEAK_VERSION_CHECK",
        rivals: Some("HOLDPOINT_RIVALS_WEAK_VERSION_CHECK"),
    },
    Variant {
        name: "weak-no-started",
        features: &["holdpoint-cli/failpoints", "holdpoint-cli/weak-no-started"],
        variable: "HOLDPOINT_BIN_WEAK_NO_STARTED",
        rivals: None,
    },
    Variant {
        name: "previous-format",
        features: &["holdpoint-cli/previous-format"],
        variable: "HOLDPOINT_BIN_PREVIOUS",
        rivals: None,
    },
];

const BINARY: &str = "holdpoint";
const RIVALS: &str = "holdpoint-torture-rivals";
const TOOLS: [&str; 3] = [
    "holdpoint-example-ledger",
    "holdpoint-example-files",
    "holdpoint-example-library",
];
const TOOLS_FOLDER: &str = "tools";
const TOOLS_VARIABLE: &str = "HOLDPOINT_EXAMPLE_TOOLS";

/// How they are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// As soon as possible.
    Dev,
    /// To run for an hour: optimised a little, with all that is checked in the other.
    Full,
}

impl Profile {
    /// As Cargo calls it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Full => "full",
        }
    }

    /// The folder in the target directory.
    const fn folder(self) -> &'static str {
        match self {
            Self::Dev => "debug",
            Self::Full => "full",
        }
    }

    /// Where those of this profile are kept, so that none is taken for one of the other.
    const fn variants(self) -> &'static str {
        match self {
            Self::Dev => "variants",
            Self::Full => "variants-full",
        }
    }
}

/// Where the programs are.
#[derive(Debug)]
pub(crate) struct Programs {
    target: PathBuf,
    profile: Profile,
}

impl Programs {
    /// Builds all of them.
    pub(crate) fn build_all(profile: Profile) -> anyhow::Result<Self> {
        let programs = Self::default_target(profile)?;
        for variant in &SPECIAL {
            programs.build(variant)?;
        }
        // Last, so that the ordinary binary is what stays in cargo's own folder.
        programs.finish()
    }

    /// Builds the ordinary binary and the tools of the examples.
    pub(crate) fn build_plain() -> anyhow::Result<Self> {
        Self::default_target(Profile::Dev)?.finish()
    }

    fn default_target(profile: Profile) -> anyhow::Result<Self> {
        let target = env::target_dir()?;
        Ok(Self { target, profile })
    }

    fn finish(self) -> anyhow::Result<Self> {
        self.build(&PLAIN)?;
        step::run(self.cargo_build().args(["-p", "holdpoint-example-tools"]))?;
        for tool in TOOLS {
            self.keep(tool, &self.folder(TOOLS_FOLDER))?;
        }
        Ok(self)
    }

    fn build(&self, variant: &Variant) -> anyhow::Result<()> {
        let mut command = self.cargo_build();
        command.args(["-p", "holdpoint-cli", "--bin", BINARY]);
        if variant.rivals.is_some() {
            // In one build with the binary, it shares the libraries and what is wrong with them.
            command.args(["-p", "holdpoint-torture", "--bin", RIVALS]);
        }
        for feature in variant.features {
            command.args(["--features", feature]);
        }
        step::run(&mut command)?;
        let folder = self.folder(variant.name);
        if variant.rivals.is_some() {
            self.keep(RIVALS, &folder)?;
        }
        self.keep(BINARY, &folder)
    }

    fn cargo_build(&self) -> Command {
        step::cargo(&["build", "--profile", self.profile.name()])
    }

    /// Copies a program out of the way of the next build.
    fn keep(&self, program: &str, folder: &Path) -> anyhow::Result<()> {
        let built = self.built().join(program);
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let kept = folder.join(program);
        // A program that is running cannot be written to, but its name can be taken.
        let fresh = folder.join(format!(".{program}"));
        fs::copy(&built, &fresh).with_context(|| built.display().to_string())?;
        fs::rename(&fresh, &kept).with_context(|| kept.display().to_string())
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.target.join(self.profile.variants()).join(name)
    }

    /// Cargo's own folder, with the ordinary binary and the tools of the examples.
    pub(crate) fn built(&self) -> PathBuf {
        self.target.join(self.profile.folder())
    }

    /// The target directory.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// Tells a test runner where they are.
    pub(crate) fn announce(&self, command: &mut Command) {
        command.env(TOOLS_VARIABLE, self.folder(TOOLS_FOLDER));
        for variant in SPECIAL.iter().chain([&PLAIN]) {
            let folder = self.folder(variant.name);
            command.env(variant.variable, folder.join(BINARY));
            if let Some(variable) = variant.rivals {
                command.env(variable, folder.join(RIVALS));
            }
        }
    }
}
