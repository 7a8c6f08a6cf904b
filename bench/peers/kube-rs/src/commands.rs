//! The commands, one after the other.

use std::sync::Arc;

use futures::channel::mpsc;
use kube::{
    Client, Config, ResourceExt,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

use crate::{
    arguments::{Arguments, Server},
    cache::{self, Cache},
    controller,
    handler::{Handler, SENT, Task},
    lookup, wire,
};

/// Answer commands until `quit`.
///
/// # Errors
///
/// Something that the benchmark cannot go on without.
pub async fn serve(arguments: Arguments) -> Result<(), String> {
    let mut peer = Peer {
        client: client(&arguments.server).await?,
        handler: Arc::new(Handler::new(arguments.fields, arguments.timeout)),
        caches: Vec::new(),
        arguments,
    };
    let mut commands = wire::commands();
    wire::answer(&wire::ready())?;
    while let Some(command) = commands.recv().await {
        let command = command?;
        if command["do"] == "quit" {
            break;
        }
        wire::answer(&peer.obey(&command).await?)?;
    }
    Ok(())
}

async fn client(server: &Server) -> Result<Client, String> {
    let config = match server {
        Server::Url(url) => Config::new(url.parse().map_err(|error| format!("{url}: {error}"))?),
        Server::Kubeconfig(path) => {
            let file = Kubeconfig::read_from(path).map_err(|error| format!("{path}: {error}"))?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                .await
                .map_err(|error| format!("{path}: {error}"))?
        }
    };
    Client::try_from(config).map_err(|error| format!("no client: {error}"))
}

struct Peer {
    arguments: Arguments,
    client: Client,
    handler: Arc<Handler>,
    caches: Vec<Cache>,
}

impl Peer {
    /// Carry a command out, and return its last answer.
    async fn obey(&mut self, command: &Value) -> Result<Value, String> {
        match command["do"].as_str().unwrap_or_default() {
            "start" => self.start(number(command, "objects")?).await,
            "expect" => self.expect(number(command, "events")?).await,
            "latency" => self.latency(number(command, "events")?).await,
            "relisted" => self.relisted().await,
            "release" => Ok(release()),
            "lookup" => match self.only_cache() {
                Some(cache) => lookup::measure(cache, number(command, "rounds")? as usize),
                None => Ok(wire::unsupported()),
            },
            "controller" => self.control(number(command, "items")?).await,
            "content" => Ok(self.content()),
            // join: a late subscriber of a store does not receive its existing objects.
            // queue: the queue is inside of the controller.
            _ => Ok(wire::unsupported()),
        }
    }

    async fn start(&mut self, objects: u64) -> Result<Value, String> {
        self.handler.arm(objects, Task::Nothing);
        let Arguments {
            lists, namespaces, ..
        } = self.arguments;
        self.caches = cache::start(&self.client, &self.handler, lists, namespaces);
        self.handler
            .wait(&format!("{objects} objects at the start"), |progress| {
                progress.delivered >= objects
                    && progress.lists >= self.caches.len() as u64
                    && self.objects() == objects
            })
            .await?;
        let delivered = self.handler.delivered();
        Ok(json!({"synced": true, "objects": objects, "delivered": delivered}))
    }

    async fn expect(&self, events: u64) -> Result<Value, String> {
        self.gather(events, Task::Nothing).await?;
        Ok(json!({"delivered": events}))
    }

    async fn latency(&self, events: u64) -> Result<Value, String> {
        let task = Task::Latencies(Vec::with_capacity(events as usize));
        let Task::Latencies(mut latencies) = self.gather(events, task).await? else {
            return Err("the latencies are gone".to_owned());
        };
        latencies.sort_unstable();
        Ok(json!({
            "delivered": events,
            "p50": nearest_rank(&latencies, 500),
            "p99": nearest_rank(&latencies, 990),
            "p999": nearest_rank(&latencies, 999),
            "max": nearest_rank(&latencies, 1000),
        }))
    }

    async fn control(&self, items: u64) -> Result<Value, String> {
        let Some(cache) = self.only_cache() else {
            return Ok(wire::unsupported());
        };
        let (sender, receiver) = mpsc::unbounded();
        let worker = tokio::spawn(controller::run(cache.store.clone(), receiver));
        self.gather(items, Task::Enqueue(sender)).await?;
        worker
            .await
            .map_err(|error| format!("the controller: {error}"))??;
        Ok(json!({"done": items}))
    }

    async fn relisted(&self) -> Result<Value, String> {
        let wanted = self.handler.lists() + self.caches.len() as u64;
        wire::answer(&json!({"expecting": "relist"}))?;
        self.handler
            .wait("the next list", |progress| progress.lists >= wanted)
            .await?;
        Ok(json!({"relisted": true, "objects": self.objects()}))
    }

    /// Say that events are expected, and wait for them.
    async fn gather(&self, events: u64, task: Task) -> Result<Task, String> {
        let wanted = self.handler.arm(events, task) + events;
        wire::answer(&json!({"expecting": events}))?;
        self.handler
            .wait(&format!("{events} events"), |progress| {
                progress.delivered >= wanted
            })
            .await
    }

    /// Version, uid and stamp of each object in the stores. Notifications are not kept:
    /// a watcher's events do not say whether an object is new.
    fn content(&self) -> Value {
        let mut kept = serde_json::Map::new();
        for pod in self.caches.iter().flat_map(|cache| cache.store.state()) {
            let key = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
            let stamp = pod.annotations().get(SENT);
            kept.insert(key, json!([pod.resource_version(), pod.uid(), stamp]));
        }
        json!({"content": kept, "delivered": null, "restarts": 0})
    }

    fn objects(&self) -> u64 {
        let sizes = self.caches.iter().map(|cache| cache.store.len() as u64);
        sizes.sum()
    }

    fn only_cache(&self) -> Option<&Cache> {
        match self.caches.as_slice() {
            [cache] => Some(cache),
            _ => None,
        }
    }
}

/// Give free memory back to the system. What Rust no longer uses is free already.
fn release() -> Value {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: malloc_trim has no preconditions.
    unsafe {
        libc::malloc_trim(0);
    }
    json!({"released": true})
}

fn number(command: &Value, name: &str) -> Result<u64, String> {
    command[name]
        .as_u64()
        .ok_or_else(|| format!("{command} wants a number {name:?}"))
}

/// The percentile, in thousandths, of sorted values.
fn nearest_rank(sorted: &[u64], thousandths: usize) -> u64 {
    let rank = (sorted.len() * thousandths).div_ceil(1000).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0)
}
