//! A peer of the comparison benchmark: the pods of a cluster in a kube-rs reflector store.
//!
//! It takes commands as JSON lines on stdin and answers with JSON lines on stdout; `bench/peers`
//! says which. It ends with `quit`, or when stdin ends, so it never outlives who started it.

mod arguments;
mod cache;
mod commands;
mod controller;
mod handler;
mod index;
mod lookup;
mod wire;

use std::process::ExitCode;

use arguments::{Arguments, Form};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kube-rs-peer: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    let mut builder = match arguments.form {
        Form::Json => tokio::runtime::Builder::new_current_thread(),
        Form::Threads => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder
        .enable_all()
        .build()
        .map_err(|error| format!("no runtime: {error}"))?;
    runtime.block_on(commands::serve(arguments))
}
