//! The pods in memory: a reflector store, and an index, for each informer.

use std::sync::{Arc, RwLock};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    runtime::{
        WatchStreamExt,
        reflector::{self, Store},
        watcher::{self, Event, watcher},
    },
};

use crate::{arguments::Lists, handler::Handler, index::NodeIndex};

/// What one informer keeps.
#[derive(Clone)]
pub struct Cache {
    pub store: Store<Pod>,
    pub index: Arc<RwLock<NodeIndex>>,
}

impl Cache {
    /// The pods on a node, in no order.
    pub fn on_node(&self, node: &str) -> Vec<Arc<Pod>> {
        let index = self.index.read().expect("a panic ends the process");
        let names = index.pods_on(node);
        names.filter_map(|name| self.store.get(name)).collect()
    }

    /// The names of all nodes that have pods, in no order.
    pub fn nodes(&self) -> Vec<String> {
        let index = self.index.read().expect("a panic ends the process");
        index.nodes().map(str::to_owned).collect()
    }
}

/// Start an informer for all pods, or one for each namespace.
pub fn start(
    client: &Client,
    handler: &Arc<Handler>,
    lists: Lists,
    namespaces: usize,
) -> Vec<Cache> {
    let apis = match namespaces {
        0 => vec![Api::all(client.clone())],
        _ => (0..namespaces)
            .map(|number| Api::namespaced(client.clone(), &format!("bench-{number}")))
            .collect(),
    };
    apis.into_iter()
        .map(|api| inform(api, lists.watcher_config(), handler.clone()))
        .collect()
}

/// Keep the pods of one watch in a cache, from now to the end of the process.
///
/// After an error, also after an expired watch, the watch begins again with kube-rs's default
/// backoff: first 0.8 to 1.6 seconds.
fn inform(api: Api<Pod>, config: watcher::Config, handler: Arc<Handler>) -> Cache {
    let (store, writer) = reflector::store();
    let index = Arc::new(RwLock::new(NodeIndex::default()));
    let cache = Cache { store, index };
    let indexed = cache.clone();
    let events = watcher(api, config)
        .default_backoff()
        .inspect(move |event| {
            if let Ok(event) = event {
                let mut index = indexed.index.write().expect("a panic ends the process");
                index.apply(event, &indexed.store);
            }
        })
        .reflect(writer);
    tokio::spawn(async move {
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Apply(pod) | Event::InitApply(pod) | Event::Delete(pod)) => {
                    handler.tell(&pod);
                }
                Ok(Event::InitDone) => handler.tell_listed(),
                Ok(Event::Init) => {}
                Err(error) => eprintln!("kube-rs-peer: {error}"),
            }
        }
    });
    cache
}
