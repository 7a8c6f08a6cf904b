//! The command line.

use std::{str::FromStr, time::Duration};

use kube::runtime::watcher;

/// The longest wait of a command for expected events.
const TIMEOUT: Duration = Duration::from_secs(600);

/// On how many threads the client runs. The wire format is JSON in any case: kube-rs has no other.
#[derive(Clone, Copy)]
pub enum Form {
    /// `json`: on one thread, which costs the least CPU.
    Json,
    /// `threads`: on one thread for each core, so that reading and decoding overlap.
    Threads,
}

/// How the pods are fetched at first and after an expired watch.
#[derive(Clone, Copy)]
pub enum Lists {
    Whole,
    Pages,
    Stream,
}

/// Where the API server is.
pub enum Server {
    Url(String),
    Kubeconfig(String),
}

pub struct Arguments {
    pub server: Server,
    pub form: Form,
    pub lists: Lists,
    /// Whether the handler reads fields of each object, rather than only counts.
    pub fields: bool,
    /// 0: one informer for all pods; else one for each of the namespaces `bench-0`, `bench-1`, …
    pub namespaces: usize,
    /// After which a command that still waits ends the process with an error.
    pub timeout: Duration,
}

impl Arguments {
    /// # Errors
    ///
    /// Says which argument is wrong or missing.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut server, mut form, mut lists) = (None, Form::Json, Lists::Pages);
        let (mut fields, mut namespaces, mut timeout) = (false, 0, TIMEOUT);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} wants a value"));
            match word.as_str() {
                "--url" => server = Some(Server::Url(value()?)),
                "--kubeconfig" => server = Some(Server::Kubeconfig(value()?)),
                "--form" => form = Form::parse(&value()?)?,
                "--lists" => lists = Lists::parse(&value()?)?,
                "--fields" => fields = true,
                "--namespaces" => namespaces = number(&word, &value()?)?,
                "--timeout" => timeout = Duration::from_secs(number(&word, &value()?)?),
                _ => return Err(format!("unknown argument {word:?}")),
            }
        }
        Ok(Self {
            server: server.ok_or("--url or --kubeconfig is wanted")?,
            form,
            lists,
            fields,
            namespaces,
            timeout,
        })
    }
}

fn number<T: FromStr>(word: &str, text: &str) -> Result<T, String> {
    let wrong = |_| format!("{word} wants a number, not {text:?}");
    text.parse().map_err(wrong)
}

impl Form {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "json" => Ok(Self::Json),
            "threads" => Ok(Self::Threads),
            _ => Err(format!("--form is json or threads, not {text:?}")),
        }
    }
}

impl Lists {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "whole" => Ok(Self::Whole),
            "pages" => Ok(Self::Pages),
            "stream" => Ok(Self::Stream),
            _ => Err(format!("--lists is whole, pages or stream, not {text:?}")),
        }
    }

    /// The watcher's settings for it; pages have kube-rs's own size, 500.
    pub fn watcher_config(self) -> watcher::Config {
        let config = watcher::Config::default();
        match self {
            Self::Whole => watcher::Config {
                page_size: None,
                ..config
            },
            Self::Pages => config,
            Self::Stream => config.streaming_lists(),
        }
    }
}
