//! The queue of what is to be sent, and the task that sends it.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout, timeout_at},
};

/// How many spans may wait. What comes when so many do is dropped.
const ROOM: usize = 2_048;
/// How many are sent at a time.
const AT_A_TIME: usize = 512;
/// How long one waits for others to be sent with.
const DELAY: Duration = Duration::from_secs(1);

/// How it is said that traces go wrong: in words for whoever runs the process, once for each time that they do.
pub struct Complaint(Box<dyn Fn(&str) + Send + Sync>);

impl Complaint {
    /// Says it so.
    pub fn new(say: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Box::new(say))
    }

    /// Says this.
    pub fn say(&self, text: &str) {
        (self.0)(text);
    }
}

impl fmt::Debug for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Complaint").finish_non_exhaustive()
    }
}

enum Message {
    Span(Box<SpanData>),
    /// Sends what waits, and then says so.
    Flush(oneshot::Sender<()>),
}

/// Where spans are put.
#[derive(Debug)]
pub(crate) struct Queue {
    messages: mpsc::Sender<Message>,
    full: AtomicBool,
    dropped: AtomicU64,
}

impl Queue {
    /// A queue whose spans are sent by this exporter, in a task of its own.
    pub(crate) fn new(exporter: impl SpanExporter + 'static, complaint: Arc<Complaint>) -> Self {
        let (messages, queue) = mpsc::channel(ROOM);
        let sender = Sender {
            exporter,
            complaint,
            failing: false,
        };
        tokio::spawn(sender.work(queue));
        Self {
            messages,
            full: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
        }
    }

    /// Puts a span in. Whether there was no room for it, for the first time since there was.
    pub(crate) fn put(&self, span: SpanData) -> Put {
        match self.messages.try_send(Message::Span(Box::new(span))) {
            Ok(()) => {
                // While it is emptied there is room for one again and again.
                if self.messages.capacity() >= ROOM / 2 {
                    self.full.store(false, Ordering::Relaxed);
                }
                Put::Taken
            }
            Err(_) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                if self.full.swap(true, Ordering::Relaxed) {
                    Put::Dropped
                } else {
                    Put::FirstDropped
                }
            }
        }
    }

    /// How many were dropped, because others waited.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Waits until what was put in was sent, or could not be; but no longer than this. Whether it came to that.
    pub(crate) async fn flush(&self, within: Duration) -> bool {
        let flushed = async {
            let (done, told) = oneshot::channel();
            self.messages.send(Message::Flush(done)).await.ok()?;
            told.await.ok()
        };
        matches!(timeout(within, flushed).await, Ok(Some(())))
    }
}

/// What became of a span that was put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Put {
    Taken,
    FirstDropped,
    Dropped,
}

struct Sender<E> {
    exporter: E,
    complaint: Arc<Complaint>,
    /// Whether the last batch did not arrive.
    failing: bool,
}

impl<E: SpanExporter> Sender<E> {
    async fn work(mut self, mut queue: mpsc::Receiver<Message>) {
        while let Some(first) = queue.recv().await {
            let (batch, waiting) = gather(first, &mut queue).await;
            if !batch.is_empty() {
                self.send(batch).await;
            }
            if let Some(done) = waiting {
                // Whoever waits may have given up.
                let _ = done.send(());
            }
        }
    }

    async fn send(&mut self, batch: Vec<SpanData>) {
        let sent = self.exporter.export(batch).await;
        if let (Err(error), false) = (&sent, self.failing) {
            self.complaint
                .say(&format!("traces do not reach their collector: {error}"));
        }
        self.failing = sent.is_err();
    }
}

/// What is sent together: as much as comes within the delay, and no more than is sent at a time.
async fn gather(
    first: Message,
    queue: &mut mpsc::Receiver<Message>,
) -> (Vec<SpanData>, Option<oneshot::Sender<()>>) {
    let until = Instant::now() + DELAY;
    let mut batch = Vec::new();
    let mut next = Some(first);
    while let Some(message) = next {
        match message {
            Message::Span(span) => batch.push(*span),
            Message::Flush(done) => return (batch, Some(done)),
        }
        if batch.len() >= AT_A_TIME {
            break;
        }
        // Cancel safe: what was not received stays in the queue.
        next = timeout_at(until, queue.recv()).await.ok().flatten();
    }
    (batch, None)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
    use tokio::sync::Semaphore;

    use super::*;
    use crate::span::tests::some_span;

    /// A collector that takes a batch for each permit, or refuses them all.
    #[derive(Debug, Clone)]
    struct Collector {
        open: Arc<Semaphore>,
        refuses: Arc<AtomicBool>,
        batches: Arc<Mutex<Vec<usize>>>,
    }

    impl Collector {
        fn new(permits: usize) -> Self {
            Self {
                open: Arc::new(Semaphore::new(permits)),
                refuses: Arc::default(),
                batches: Arc::default(),
            }
        }

        fn batches(&self) -> Vec<usize> {
            self.batches.lock().unwrap().clone()
        }
    }

    impl SpanExporter for Collector {
        async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
            self.open.acquire().await.unwrap().forget();
            if self.refuses.load(Ordering::Relaxed) {
                return Err(OTelSdkError::InternalFailure("away".to_owned()));
            }
            self.batches.lock().unwrap().push(batch.len());
            Ok(())
        }
    }

    fn complaints() -> (Arc<Complaint>, Arc<Mutex<Vec<String>>>) {
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let hears = Arc::clone(&heard);
        let complaint = Complaint::new(move |text| hears.lock().unwrap().push(text.to_owned()));
        (Arc::new(complaint), heard)
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_together_is_sent_together_and_no_more_than_so_many_at_a_time() {
        let collector = Collector::new(10);
        let queue = Queue::new(collector.clone(), complaints().0);
        for _ in 0..AT_A_TIME + 3 {
            assert_eq!(queue.put(some_span()), Put::Taken);
        }
        assert!(queue.flush(DELAY).await);
        assert_eq!(collector.batches(), [AT_A_TIME, 3]);
        queue.put(some_span());
        tokio::time::sleep(DELAY * 2).await;
        assert_eq!(
            collector.batches(),
            [AT_A_TIME, 3, 1],
            "without being asked"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_collector_that_does_not_answer_costs_spans_and_nobody_waits_for_it() {
        let collector = Collector::new(0);
        let queue = Queue::new(collector.clone(), complaints().0);
        let put: Vec<Put> = (0..ROOM + 5).map(|_| queue.put(some_span())).collect();
        assert_eq!(
            put[ROOM - 1..=ROOM + 1],
            [Put::Taken, Put::FirstDropped, Put::Dropped]
        );
        assert_eq!(queue.dropped(), 5);
        let begun = Instant::now();
        assert!(!queue.flush(Duration::from_secs(2)).await);
        assert_eq!(begun.elapsed(), Duration::from_secs(2));
        collector.open.add_permits(10);
        assert!(queue.flush(DELAY).await, "and it goes on when it is back");
        assert_eq!(collector.batches(), [AT_A_TIME; ROOM / AT_A_TIME]);
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_said_once_each_time_that_a_collector_goes_away() {
        let (collector, (complaint, heard)) = (Collector::new(100), complaints());
        let queue = Queue::new(collector.clone(), complaint);
        for (refuses, said) in [(true, 1), (true, 1), (false, 1), (true, 2), (true, 2)] {
            collector.refuses.store(refuses, Ordering::Relaxed);
            queue.put(some_span());
            assert!(queue.flush(DELAY).await);
            assert_eq!(heard.lock().unwrap().len(), said);
        }
        assert!(heard.lock().unwrap()[0].contains("away"));
    }
}
