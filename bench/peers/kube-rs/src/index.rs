//! The index on `spec.nodeName`, which kube-rs leaves to its users.

use std::collections::{HashMap, HashSet};

use k8s_openapi::api::core::v1::Pod;
use kube::{
    ResourceExt,
    runtime::{
        reflector::{ObjectRef, Store},
        watcher::Event,
    },
};

type Nodes = HashMap<String, HashSet<ObjectRef<Pod>>>;

/// The names of the pods on each node.
///
/// It sees each event *before* the store does, because only then the store still knows on which
/// node a pod was. As the store, it takes over a new list all at once.
#[derive(Default)]
pub struct NodeIndex {
    nodes: Nodes,
    listed: Nodes,
}

impl NodeIndex {
    pub fn apply(&mut self, event: &Event<Pod>, store: &Store<Pod>) {
        match event {
            Event::Init => self.listed = Nodes::new(),
            Event::InitApply(pod) => insert(&mut self.listed, node_of(pod), reference(pod)),
            Event::InitDone => self.nodes = std::mem::take(&mut self.listed),
            Event::Apply(pod) => self.replace(pod, node_of(pod), store),
            Event::Delete(pod) => self.replace(pod, None, store),
        }
    }

    /// The names of the pods on this node, in no order.
    pub fn pods_on(&self, node: &str) -> impl Iterator<Item = &ObjectRef<Pod>> {
        self.nodes.get(node).into_iter().flatten()
    }

    /// All nodes that have pods, in no order.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.nodes.keys().map(String::as_str)
    }

    fn replace(&mut self, pod: &Pod, node: Option<&str>, store: &Store<Pod>) {
        let name = reference(pod);
        let old = store.get(&name);
        let old_node = old.as_deref().and_then(node_of);
        if old_node != node {
            remove(&mut self.nodes, old_node, &name);
            insert(&mut self.nodes, node, name);
        }
    }
}

pub fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

/// The pod's key in the store, without version and uid, which are no part of its identity.
pub fn reference(pod: &Pod) -> ObjectRef<Pod> {
    let name = ObjectRef::new(pod.metadata.name.as_deref().unwrap_or_default());
    match pod.namespace() {
        Some(namespace) => name.within(&namespace),
        None => name,
    }
}

fn insert(nodes: &mut Nodes, node: Option<&str>, name: ObjectRef<Pod>) {
    let Some(node) = node else { return };
    match nodes.get_mut(node) {
        Some(names) => {
            names.insert(name);
        }
        None => {
            nodes.insert(node.to_owned(), HashSet::from([name]));
        }
    }
}

fn remove(nodes: &mut Nodes, node: Option<&str>, name: &ObjectRef<Pod>) {
    let Some(node) = node else { return };
    if let Some(names) = nodes.get_mut(node) {
        names.remove(name);
        if names.is_empty() {
            nodes.remove(node);
        }
    }
}
