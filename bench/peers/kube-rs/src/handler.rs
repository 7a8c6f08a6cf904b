//! The one handler: it counts, and does what a command asked for besides.

use std::{
    hint::black_box,
    sync::{Mutex, MutexGuard},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use futures::channel::mpsc::UnboundedSender;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::reflector::ObjectRef;
use tokio::sync::Notify;

use crate::index;

pub const SENT: &str = "bench.example.com/sent";

/// The action for each object that the handler receives, besides counting it.
pub enum Task {
    Nothing,
    /// Note how long ago the object was sent, in nanoseconds.
    Latencies(Vec<u64>),
    /// Put the object's name into a work queue.
    Enqueue(UnboundedSender<ObjectRef<Pod>>),
}

/// How far things are.
pub struct Progress {
    /// How often the handler was called.
    pub delivered: u64,
    /// How many lists are completely in a store.
    pub lists: u64,
    target: u64,
    task: Task,
}

pub struct Handler {
    fields: bool,
    timeout: Duration,
    progress: Mutex<Progress>,
    changed: Notify,
}

impl Handler {
    pub fn new(fields: bool, timeout: Duration) -> Self {
        let progress = Progress {
            delivered: 0,
            lists: 0,
            target: u64::MAX,
            task: Task::Nothing,
        };
        Self {
            fields,
            timeout,
            progress: Mutex::new(progress),
            changed: Notify::new(),
        }
    }

    /// An object was added, changed or deleted.
    pub fn tell(&self, pod: &Pod) {
        if self.fields {
            read_fields(pod);
        }
        let mut progress = self.lock();
        match &mut progress.task {
            Task::Nothing => {}
            Task::Latencies(latencies) => latencies.push(latency(pod)),
            Task::Enqueue(queue) => {
                // Fails only if the controller has ended; then its command says so.
                let _ = queue.unbounded_send(index::reference(pod));
            }
        }
        progress.delivered += 1;
        if progress.delivered >= progress.target {
            if matches!(progress.task, Task::Enqueue(_)) {
                progress.task = Task::Nothing; // the queue's end, after which the controller drains it
            }
            self.changed.notify_one();
        }
    }

    /// A list is completely in its store.
    pub fn tell_listed(&self) {
        self.lock().lists += 1;
        self.changed.notify_one();
    }

    /// Do this with the next `events` objects, and return how many there were before.
    pub fn arm(&self, events: u64, task: Task) -> u64 {
        let mut progress = self.lock();
        progress.target = progress.delivered + events;
        progress.task = task;
        progress.delivered
    }

    /// Wait until `is_done`, and return the task with what it has gathered.
    ///
    /// Looks again when a list is complete, and at each call of the handler after those that it
    /// was armed for.
    ///
    /// # Errors
    ///
    /// It was not done in time.
    pub async fn wait(
        &self,
        what: &str,
        is_done: impl Fn(&Progress) -> bool,
    ) -> Result<Task, String> {
        let done = async {
            while !is_done(&self.lock()) {
                self.changed.notified().await;
            }
        };
        let outcome = tokio::time::timeout(self.timeout, done).await;
        let mut progress = self.lock();
        progress.target = u64::MAX;
        let task = std::mem::replace(&mut progress.task, Task::Nothing);
        let Progress { delivered, lists, .. } = *progress;
        outcome.map(|()| task).map_err(|_| {
            let waited = self.timeout.as_secs();
            format!("waited {waited} s for {what}; received {delivered} objects, {lists} lists complete")
        })
    }

    pub fn delivered(&self) -> u64 {
        self.lock().delivered
    }

    pub fn lists(&self) -> u64 {
        self.lock().lists
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().expect("a panic ends the process")
    }
}

fn read_fields(pod: &Pod) {
    black_box(index::node_of(pod));
    black_box(pod.status.as_ref().and_then(|it| it.phase.as_deref()));
    for label in pod.metadata.labels.iter().flatten() {
        black_box(label);
    }
}

fn latency(pod: &Pod) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.expect("a clock after 1970").as_nanos() as u64;
    let annotations = pod.metadata.annotations.as_ref();
    let sent = annotations.and_then(|all| all.get(SENT)?.parse().ok());
    now.saturating_sub(sent.unwrap_or(0))
}
