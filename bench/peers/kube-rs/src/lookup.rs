//! How long reads of the cache take.

use std::{hint::black_box, sync::Arc, time::Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::core::{Expression, Selector};
use serde_json::{Value, json};

use crate::{cache::Cache, index};

/// The quickest of so many turns counts for reads of one thing each.
const TRIES: usize = 3;
/// The median of so many lists counts.
const LISTS: usize = 5;

/// Time `rounds` reads by name and by index, and lists with and without a selector.
///
/// Names and nodes are ready before the clock starts, and in alphabetical order, of which the store
/// knows nothing.
///
/// # Errors
///
/// There is nothing to look up, or a name that was in the cache is not found there.
pub fn measure(cache: &Cache, rounds: usize) -> Result<Value, String> {
    let mut names: Vec<_> = cache
        .store
        .state()
        .iter()
        .map(|pod| index::reference(pod))
        .collect();
    names.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    let mut nodes = cache.nodes();
    nodes.sort();
    if names.is_empty() || nodes.is_empty() || rounds == 0 {
        return Err("there is nothing to look up".to_owned());
    }

    let (names, nodes) = (spread(&names, rounds), spread(&nodes, rounds));
    let (key_ns, found) = quickest(&names, |name| cache.store.get(name).iter().len());
    if found != rounds {
        return Err("a name that was in the cache is not found there".to_owned());
    }
    let (index_ns, on_nodes) = quickest(&nodes, |node| cache.on_node(node).len());
    let (list_ms, _) = median(|| cache.store.state());
    let backend: Selector = Expression::Equal("tier".into(), "backend".into()).into();
    let (selector_ms, matching) = median(|| cache.store.state_filter_selector(&backend));
    Ok(json!({
        "key_ns": key_ns,
        "index_ns": index_ns,
        "index_objects": on_nodes as f64 / rounds as f64,
        "list_ms": list_ms,
        "selector_ms": selector_ms,
        "selector_objects": matching,
    }))
}

/// So many of the values, from all over the place and each as often as any other.
fn spread<T>(values: &[T], rounds: usize) -> Vec<&T> {
    let step = (values.len() / rounds).max(1);
    let some = values.iter().step_by(step);
    some.cycle().take(rounds).collect()
}

/// The nanoseconds that a read took, and how many objects were found in all.
fn quickest<T>(values: &[T], read: impl Fn(&T) -> usize) -> (f64, usize) {
    let (mut best, mut found) = (f64::INFINITY, 0);
    for _ in 0..TRIES {
        let began = Instant::now();
        found = values.iter().map(|value| black_box(read(value))).sum();
        best = best.min(began.elapsed().as_nanos() as f64 / values.len() as f64);
    }
    (best, found)
}

/// The milliseconds that a list took, and how many objects it has.
fn median(list: impl Fn() -> Vec<Arc<Pod>>) -> (f64, usize) {
    let (mut took, mut objects) = (Vec::with_capacity(LISTS), 0);
    for _ in 0..LISTS {
        let began = Instant::now();
        let pods = black_box(list());
        took.push(began.elapsed().as_nanos());
        objects = pods.len();
    }
    took.sort_unstable();
    (took[LISTS / 2] as f64 / 1e6, objects)
}
