//! Taking rights from this process, until little more is left than the program needs.

use std::{fs, io, os::unix::process::CommandExt, path::Path, process::Command};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::{
    fs::Mode,
    process::{Resource, Rlimit, getrlimit, setrlimit, umask},
    thread::{
        CapabilitySet, CapabilitySets, capability_is_in_bounding_set,
        remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
    },
};

use super::{Cell, syscalls};

/// What programs need to run at all.
const PROGRAMS: [&str; 7] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
];

/// Files and folders that may be read: where libraries are, what time it is, whom to trust.
const READABLE: [&str; 7] = [
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/alternatives",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/certs",
    "/etc/ca-certificates",
];

/// Devices that hold nothing.
const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// Versions of Landlock that add something, newest first. Before the third, a file could be emptied that may not be written.
const VERSIONS: [ABI; 5] = [ABI::V9, ABI::V6, ABI::V5, ABI::V4, ABI::V3];

const MOST_MEMORY: u64 = 4 << 30;
const MOST_FILE: u64 = 1 << 30;
const MOST_OPEN: u64 = 1_024;
const MOST_PROCESSES: u64 = 4_096;

/// What Landlock of this kernel can do.
fn version() -> Option<ABI> {
    VERSIONS
        .into_iter()
        .find(|version| ruleset(*version).and_then(Ruleset::create).is_ok())
}

fn ruleset(version: ABI) -> Result<Ruleset, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(version))?;
    if version >= ABI::V4 {
        ruleset = ruleset.handle_access(AccessNet::from_all(version))?;
    }
    if version >= ABI::V6 {
        ruleset = ruleset.scope(Scope::from_all(version))?;
    }
    Ok(ruleset)
}

pub(super) fn is_possible() -> Result<(), String> {
    if version().is_none() {
        return Err(
            "this kernel cannot confine programs: it has no Landlock, or one before Linux 6.2, or it is not switched on \
             (`lsm=landlock,…`); use `shell`, which is not confined, or another machine"
                .to_owned(),
        );
    }
    let actions = fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
    if !["errno", "kill_process"]
        .iter()
        .all(|it| actions.split_whitespace().any(|word| word == *it))
    {
        return Err(
            "this kernel cannot confine programs: it has no seccomp filters; use `shell`, which is not confined, or another \
             machine"
                .to_owned(),
        );
    }
    Ok(())
}

/// Becomes the program, or says why not.
pub(super) fn become_it(cell: &Cell) -> String {
    match confine(cell) {
        Ok(never) => never,
        Err(reason) => format!("it could not be confined: {reason}"),
    }
}

fn confine(cell: &Cell) -> Result<String, String> {
    let failed = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
    let Some((program, arguments)) = cell.argv.split_first() else {
        return Err("the command is empty".to_owned());
    };
    let version = version().ok_or_else(|| is_possible().err().unwrap_or_default())?;
    let filters = syscalls::filters(version >= ABI::V6)?;
    // What this process was given by mistake is not given on.
    close_fds::set_fds_cloexec(3, &[]);
    umask(Mode::from_raw_mode(0o077));
    limit(Resource::Core, 0).map_err(failed("core files"))?;
    limit(Resource::Fsize, MOST_FILE).map_err(failed("the size of files"))?;
    limit(Resource::Nofile, MOST_OPEN).map_err(failed("open files"))?;
    limit(Resource::Nproc, MOST_PROCESSES).map_err(failed("processes"))?;
    limit(Resource::Data, MOST_MEMORY).map_err(failed("memory"))?;
    set_no_new_privs(true).map_err(|error| format!("privileges: {error}"))?;
    give_up_capabilities().map_err(|error| format!("capabilities: {error}"))?;
    std::env::set_current_dir(&cell.folder).map_err(failed("the folder"))?;
    restrict(version, Path::new(&cell.folder)).map_err(|error| format!("Landlock: {error}"))?;
    for filter in &filters {
        seccompiler::apply_filter(filter).map_err(|error| format!("seccomp: {error}"))?;
    }
    // INVARIANT: nothing but becoming the program comes after the filters.
    let error = Command::new(program).args(arguments).exec();
    Ok(format!("`{program}` could not be executed: {error}"))
}

/// Lowers a limit; one that is lower already stays.
fn limit(resource: Resource, most: u64) -> io::Result<()> {
    let now = getrlimit(resource);
    let lower = |now: Option<u64>| Some(now.map_or(most, |now| now.min(most)));
    let new = Rlimit {
        current: lower(now.current),
        maximum: lower(now.maximum),
    };
    setrlimit(resource, new).map_err(io::Error::from)
}

/// Keeps of an administrator's rights only that files of others can be read and written: within the folder, that is as it
/// is outside of it.
fn give_up_capabilities() -> io::Result<()> {
    let kept = CapabilitySet::DAC_OVERRIDE;
    for bit in 0..64 {
        let one = CapabilitySet::from_bits_retain(1 << bit);
        // An error is that the kernel knows no more of them.
        let Ok(is_there) = capability_is_in_bounding_set(one) else {
            break;
        };
        if is_there && one != kept {
            // Who may not do that has no rights that could be given up, nor gets any.
            let _ = remove_capability_from_bounding_set(one);
        }
    }
    let now = rustix::thread::capabilities(None)?;
    let sets = CapabilitySets {
        effective: now.effective & kept,
        permitted: now.permitted & kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets).map_err(io::Error::from)
}

fn restrict(version: ABI, folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let all = AccessFs::from_all(version);
    let read = AccessFs::from_read(version);
    let special = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::MakeSock;
    let mut rules = ruleset(version)?.create()?;
    rules = rules.add_rule(PathBeneath::new(PathFd::new(folder)?, all & !special))?;
    let on_files = AccessFs::from_file(version);
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
    let readable = read & !AccessFs::Execute;
    let given = PROGRAMS.iter().map(|path| (path, read));
    let given = given.chain(READABLE.iter().map(|path| (path, readable)));
    let given = given.chain(DEVICES.iter().map(|path| (path, device)));
    for (path, access) in given {
        // Not every system has all of them.
        let Ok(data) = fs::metadata(path) else {
            continue;
        };
        let access: BitFlags<AccessFs> = if data.is_dir() {
            access
        } else {
            access & on_files
        };
        rules = rules.add_rule(PathBeneath::new(PathFd::new(path)?, access))?;
    }
    rules.restrict_self()?;
    Ok(())
}
