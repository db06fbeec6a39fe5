package record

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/kubeparts/kubeparts/internal/runonce"
)

// A Config configures a [Recorder]. Dir is required.
type Config struct {
	// Dir is the directory of the files. It is created if it does not exist, for this user only.
	Dir string

	// MaxBytes and MaxAge limit a file: another one is started when its size or age reaches them.
	// MaxFiles is the number of files that are kept in Dir, those of earlier recordings included.
	// Zero means 16 MiB, 24 hours and 8 files.
	MaxBytes int64
	MaxAge   time.Duration
	MaxFiles int

	// QueueBytes limits the memory of queued notifications. Further ones are dropped, and a frame
	// with their number is written. Those that are being written may use as much again. Zero
	// means 16 MiB.
	QueueBytes int

	// Node is the name of the node.
	Node string

	// Versions are the versions of the program, the runtime and the kernel, by name.
	Versions map[string]string

	// Configuration is the program's, in JSON. It must not contain secrets. Nil means none.
	Configuration json.RawMessage

	// Logger receives the logs. If nil, they are discarded.
	Logger *slog.Logger
}

// A Recorder writes what crosses the borders of an agent. Its methods return wrappers, which
// notify it; they may be used before and after Run. Safe for concurrent use.
type Recorder struct {
	cfg   Config
	once  runonce.Guard
	start time.Time
	wake  chan struct{} // has capacity 1

	mu      sync.Mutex
	queue   []entry
	queued  int // bytes
	stopped bool
	beats   bool          // beat is running
	ran     time.Duration // of the last notification or beat
}

// An entry is a notification that is not written yet.
type entry struct {
	at    time.Duration
	size  int
	frame func(*encoder) Frame
	lost  int // dropped entries; frame is nil
}

// New returns a Recorder, or an error that names an invalid field. It starts nothing and opens no
// files. The times of frames are relative to the call of New.
func New(cfg Config) (*Recorder, error) {
	switch {
	case cfg.Dir == "":
		return nil, errors.New("record: Config.Dir is empty")
	case cfg.MaxBytes < 0 || cfg.MaxAge < 0 || cfg.MaxFiles < 0 || cfg.QueueBytes < 0:
		return nil, errors.New("record: a limit is negative")
	case cfg.Configuration != nil && !json.Valid(cfg.Configuration):
		return nil, errors.New("record: Config.Configuration is not JSON")
	}
	cfg.MaxBytes, cfg.MaxAge = cmp.Or(cfg.MaxBytes, 16<<20), cmp.Or(cfg.MaxAge, 24*time.Hour)
	cfg.MaxFiles, cfg.QueueBytes = cmp.Or(cfg.MaxFiles, 8), cmp.Or(cfg.QueueBytes, 16<<20)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Recorder{cfg: cfg, start: time.Now(), wake: make(chan struct{}, 1)}, nil
}

// Draw records a random number that the agent drew. It does not block.
func (r *Recorder) Draw(name string, value float64) {
	r.add(drawBytes, func(*encoder) Frame { return Frame{Draw: &Draw{Name: name, Value: value}} })
}

// drawBytes is the size of a Draw.
const drawBytes = 32

// entryBytes is the size of an entry itself, with its closure.
const entryBytes = 200

// add queues a frame of about size bytes, or drops it. It does not block.
func (r *Recorder) add(size int, frame func(*encoder) Frame) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return
	}
	at := time.Since(r.start)
	r.runsLocked(at)
	r.queueLocked(entry{at: at, size: size + entryBytes, frame: frame})
}

// queueLocked appends an entry, or drops it.
func (r *Recorder) queueLocked(e entry) {
	if r.queued+e.size > r.cfg.QueueBytes {
		if last := len(r.queue) - 1; last >= 0 && r.queue[last].frame == nil {
			r.queue[last].lost++
			return
		}
		e = entry{at: e.at, lost: 1}
	}
	r.queue = append(r.queue, e)
	r.queued += e.size
	select {
	case r.wake <- struct{}{}:
	default: // the writer was notified already
	}
}

// take returns the queued entries; stop: and discards later ones.
func (r *Recorder) take(stop bool) []entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	entries := r.queue
	r.queue, r.queued, r.stopped = nil, 0, stop
	return entries
}

// Run writes the recording until ctx is done and all notifications until then are written. It must
// be called once, and stopped after the agent. A file that cannot be written is logged; Run tries
// again every minute, and drops the notifications meanwhile. It returns the error of the last file.
func (r *Recorder) Run(ctx context.Context) error {
	if err := r.once.Enter("record: Recorder"); err != nil {
		return err
	}
	w := &worker{cfg: r.cfg, encoder: newEncoder(), files: rotation{cfg: r.cfg, start: r.start}}
	w.rotate(0) // notifications may precede the call of Run
	ctx, cancel := context.WithCancel(ctx)
	var beats sync.WaitGroup
	defer beats.Wait()
	defer cancel()
	beats.Go(func() { r.beat(ctx) })
	for {
		select {
		case <-r.wake:
			w.writeAll(r.take(false))
		case <-ctx.Done():
			w.writeAll(r.take(true))
			if err := w.files.close(time.Since(r.start), false); err != nil {
				return fmt.Errorf("record: %w", err)
			}
			return w.failure
		}
	}
}

// retryPeriod is the time between two attempts to open a file.
const retryPeriod = time.Minute

// A worker writes entries to files.
type worker struct {
	cfg     Config
	encoder *encoder
	files   rotation
	failure error         // why no file is open
	retry   time.Duration // when to open one
	lost    int           // entries that were not written since
}

func (w *worker) writeAll(entries []entry) {
	for _, e := range entries {
		w.write(e)
	}
}

// write writes one entry, to another file if that is due.
func (w *worker) write(e entry) {
	if w.failure != nil && e.at < w.retry {
		w.lose(e)
		return
	}
	if w.files.due(e.at) && !w.rotate(e.at) {
		w.lose(e)
		return
	}
	f := Frame{Dropped: &Dropped{Count: e.lost, Reason: "queue full"}}
	if e.frame != nil {
		f = e.frame(w.encoder)
	}
	f.At = e.at
	w.frame(f)
}

// lose counts an entry that is not written. Its frame is encoded nevertheless, so that the
// sets of sources and the masked values are those of the agent.
func (w *worker) lose(e entry) {
	if e.frame != nil {
		e.frame(w.encoder)
		e.lost = 1
	}
	w.lost += e.lost
}

// rotate starts a file, and reports whether it could.
func (w *worker) rotate(at time.Duration) bool {
	if err := w.files.close(at, true); err != nil {
		w.fail(at, err)
		return false
	}
	if err := w.files.open(at); err != nil {
		w.fail(at, err)
		return false
	}
	w.failure = nil
	for _, f := range w.encoder.newFile() {
		f.At = at
		w.frame(f)
	}
	if w.lost > 0 {
		w.frame(Frame{At: at, Dropped: &Dropped{Count: w.lost, Reason: "write failed"}})
		w.lost = 0
	}
	return w.failure == nil
}

// frame writes a frame.
func (w *worker) frame(f Frame) {
	if w.failure != nil {
		return
	}
	err := w.files.writer.write(f)
	if errors.Is(err, errTooLarge) || errors.Is(err, errEncoding) {
		err = w.files.writer.write(Frame{At: f.At, Dropped: &Dropped{Count: 1, Reason: err.Error()}})
	}
	if err != nil {
		w.lost++
		w.fail(f.At, err)
	}
}

// fail abandons the file until the next retry.
func (w *worker) fail(at time.Duration, err error) {
	_ = w.files.abandon() // the first error is the reason
	w.failure, w.retry = fmt.Errorf("record: %w", err), at+retryPeriod
	w.cfg.Logger.Warn("Failed to write recording; dropping frames until the next attempt", "dir", w.cfg.Dir, "retryAfter", retryPeriod, "err", err)
}
