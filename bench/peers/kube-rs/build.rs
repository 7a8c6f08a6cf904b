//! Tells the program which compiler and which crates it is made of.

use std::{env, fs, process::Command};

/// The crates whose pinned versions the program reports.
const REPORTED: [&str; 3] = ["kube", "k8s-openapi", "tokio"];

fn main() {
    println!("cargo::rerun-if-changed=Cargo.toml");
    println!("cargo::rustc-env=PEER_VERSIONS={}", versions().join(" "));
}

fn versions() -> Vec<String> {
    let manifest = fs::read_to_string("Cargo.toml").expect("Cargo.toml is beside build.rs");
    let mut found: Vec<String> = REPORTED
        .iter()
        .map(|name| format!("{name}={}", pinned(&manifest, name)))
        .collect();
    found.push(format!("rustc={}", compiler()));
    found
}

/// The version in `name = "=1.2.3"` or `name = { version = "=1.2.3", ... }`.
fn pinned<'a>(manifest: &'a str, name: &str) -> &'a str {
    manifest
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "))
        .and_then(|rest| rest.split_once("\"=")?.1.split_once('"'))
        .map(|(version, _)| version)
        .unwrap_or_else(|| panic!("Cargo.toml does not pin {name} with \"=\""))
}

/// The second word of `rustc 1.95.0 (59807616e 2026-04-14)`.
fn compiler() -> String {
    let rustc = env::var("RUSTC").expect("cargo names the compiler");
    let output = Command::new(rustc)
        .arg("--version")
        .output()
        .expect("the compiler runs");
    let text = String::from_utf8(output.stdout).expect("the compiler writes UTF-8");
    text.split(' ').nth(1).expect("a version").to_owned()
}
