//! JSON lines: commands in, answers out.

use std::io::{BufRead, Write};

use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// The commands from stdin, read by a thread of their own.
///
/// The end of stdin ends the process at once, whatever it waits for.
pub fn commands() -> UnboundedReceiver<Result<Value, String>> {
    let (sender, receiver) = unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let command = match line {
                Ok(line) => serde_json::from_str(&line)
                    .map_err(|error| format!("not a command: {line:?}: {error}")),
                Err(error) => Err(format!("stdin: {error}")),
            };
            if sender.send(command).is_err() {
                return; // the process is ending
            }
        }
        std::process::exit(0);
    });
    receiver
}

/// # Errors
///
/// Nobody reads any more.
pub fn answer(value: &Value) -> Result<(), String> {
    let mut line = value.to_string();
    line.push('\n');
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(line.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| format!("stdout: {error}"))
}

/// The first answer: all is configured, nothing is sent yet.
pub fn ready() -> Value {
    let versions: serde_json::Map<String, Value> = env!("PEER_VERSIONS")
        .split(' ')
        .filter_map(|word| word.split_once('='))
        .map(|(name, version)| (name.to_owned(), version.into()))
        .collect();
    json!({"ready": true, "versions": versions})
}

pub fn unsupported() -> Value {
    json!({"unsupported": true})
}
