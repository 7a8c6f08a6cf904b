//! A controller that does nothing: kube-rs's own queue and workers, fed by the handler.

use std::{convert::Infallible, future::ready, sync::Arc};

use futures::{StreamExt, channel::mpsc::UnboundedReceiver};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::{
    applier,
    controller::{Action, Config},
    reflector::{ObjectRef, Store},
};

/// Reconcile what comes out of `names` until it ends and all is done.
///
/// This is what a `Controller` is made of (it debounces, and never works twice on one object at
/// the same time) on the store that is there, rather than on a second one. As any work queue, it
/// takes what is added again before it is worked on as one.
///
/// # Errors
///
/// A reconciliation failed, which this one cannot, except for an object that is gone.
pub async fn run(
    store: Store<Pod>,
    names: UnboundedReceiver<ObjectRef<Pod>>,
) -> Result<(), String> {
    let reconciliations = applier(
        |_pod, _context| ready(Ok::<_, Infallible>(Action::await_change())),
        |_pod, _error, _context| Action::await_change(),
        Arc::new(()),
        store,
        names.map(Ok::<_, Infallible>),
        Config::default(),
    );
    let mut reconciliations = std::pin::pin!(reconciliations);
    while let Some(outcome) = reconciliations.next().await {
        outcome.map_err(|error| format!("no-op controller: {error}"))?;
    }
    Ok(())
}
