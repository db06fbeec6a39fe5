package podsource

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
)

// CheckpointConfig configures a [Checkpoint].
type CheckpointConfig struct {
	// Source is the source whose sets are written to the file. Required.
	Source PodSource

	// Path is the path of the file, whose directory must exist. Required. The file contains
	// the complete pods except managedFields, including secrets in their specs, and is
	// readable by its owner only. Its maximum size is 256 MiB; a larger set is not written,
	// and the previous file remains.
	Path string

	// Patience is how long Run waits for the first set of Source before it passes the pods of
	// the file instead. Zero means 10 s; a negative value disables the wait. A short value may
	// restart pods that were deleted while the agent did not run; with a long one the node
	// has no pods for longer while Source is unavailable.
	Patience time.Duration

	// StatusEvery is the minimum time between two writes of the file if only statuses have
	// changed. Zero means 10 s.
	StatusEvery time.Duration

	// Logger receives failures and the use of the file. If nil, logs are discarded.
	Logger *slog.Logger
}

// A Checkpoint is a PodSource that writes the sets of another one to a file. If that source is
// unavailable when the agent starts, the Checkpoint passes the set of the file; as soon as the source
// has synced, only its sets are passed.
//
// It is for remote sources: a [URL] or an API server. While an API server cannot be reached, pods that
// it has deleted or replaced since the last write start again.
type Checkpoint struct {
	cfg CheckpointConfig

	mu           sync.Mutex // guards the fields below, and set
	live         bool       // Source has synced
	writtenSpecs []byte     // the pods of the file without statuses
	writtenFull  []byte     // the same with statuses
	pending      []*v1.Pod  // pods whose statuses the file does not contain; nil: none
	at           time.Time  // when the file was written
}

// maxRecord is the maximum size of the file in bytes: 170 pods of the maximum size that the API
// server stores, or thousands of pods of a typical size.
const maxRecord = 256 << 20

// checkpointContent is the content of the file.
type checkpointContent struct {
	At   time.Time       `json:"at"`
	Pods json.RawMessage `json:"pods"`
}

// NewCheckpoint returns a Checkpoint, or an error if cfg is invalid. It does not read the file.
func NewCheckpoint(cfg CheckpointConfig) (*Checkpoint, error) {
	if cfg.Source == nil {
		return nil, errors.New("podsource: CheckpointConfig.Source is nil")
	}
	if cfg.Path == "" {
		return nil, errors.New("podsource: CheckpointConfig.Path is empty")
	}
	if cfg.StatusEvery < 0 {
		return nil, fmt.Errorf("podsource: CheckpointConfig.StatusEvery is %v", cfg.StatusEvery)
	}
	cfg.Patience, cfg.StatusEvery = cmp.Or(cfg.Patience, 10*time.Second), cmp.Or(cfg.StatusEvery, 10*time.Second)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Checkpoint{cfg: cfg}, nil
}

// Run runs the source and passes its sets to set; if it has not synced within Patience, the set of the
// file is passed once. Run returns the result of the source's Run.
func (c *Checkpoint) Run(ctx context.Context, set func(pods []*v1.Pod)) error {
	turn := make(chan struct{}, 1) // a semaphore: set is called by one goroutine at a time
	c.mu.Lock()
	c.live = false
	c.mu.Unlock()

	running, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { c.restore(running, turn, set) })
	defer c.flush()
	return c.cfg.Source.Run(ctx, func(pods []*v1.Pod) {
		c.mu.Lock()
		c.live = true
		c.mu.Unlock()
		turn <- struct{}{}
		defer func() { <-turn }()
		c.store(pods)
		set(pods)
	})
}

// restore passes the pods of the file after Patience, unless the source has synced by then.
func (c *Checkpoint) restore(ctx context.Context, turn chan struct{}, set func(pods []*v1.Pod)) {
	timer := time.NewTimer(max(c.cfg.Patience, 0))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C:
	}
	pods, at, err := c.read()
	if errors.Is(err, fs.ErrNotExist) {
		return // no earlier agent has written the file
	}
	if err != nil {
		c.failed("Failed to read the checkpoint of a pod source; its pods are not restored", err)
		return
	}
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-turn }()
	c.mu.Lock()
	live := c.live
	c.mu.Unlock()
	if live || ctx.Err() != nil {
		return
	}
	c.cfg.Logger.Warn("Pod source has not synced; using its checkpoint", "path", c.cfg.Path, "at", at, "pods", len(pods))
	set(pods)
}

func (c *Checkpoint) read() (pods []*v1.Pod, at time.Time, err error) {
	var r checkpointContent
	if err := checkpoint.ReadMax(c.cfg.Path, &r, maxRecord); err != nil {
		return nil, at, fmt.Errorf("podsource: %w", err)
	}
	if err := json.Unmarshal(r.Pods, &pods); err != nil {
		return nil, at, fmt.Errorf("podsource: %s: %w", c.cfg.Path, err)
	}
	return slices.DeleteFunc(pods, func(p *v1.Pod) bool { return p == nil }), r.At, nil
}

// store writes the file if its content has changed: immediately if a pod has changed, and at most every
// StatusEvery if only statuses have.
func (c *Checkpoint) store(pods []*v1.Pod) {
	specs, whole, err := encode(pods)
	if err != nil {
		c.failed("Failed to encode the pods of a source; its checkpoint is not updated", err)
		return
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.writtenSpecs != nil && bytes.Equal(whole, c.writtenFull):
		c.pending = nil
	case c.writtenSpecs != nil && bytes.Equal(specs, c.writtenSpecs) && now.Sub(c.at) < c.cfg.StatusEvery:
		c.pending = pods
	default:
		c.writeLocked(specs, whole, now)
	}
}

// flush writes the pending statuses.
func (c *Checkpoint) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending == nil {
		return
	}
	if specs, whole, err := encode(c.pending); err == nil {
		c.writeLocked(specs, whole, time.Now())
	}
}

func (c *Checkpoint) writeLocked(specs, whole []byte, now time.Time) {
	if err := checkpoint.WriteMax(c.cfg.Path, checkpointContent{At: now.UTC(), Pods: whole}, maxRecord); err != nil {
		c.failed("Failed to write the checkpoint of a pod source; will retry with its next set", fmt.Errorf("podsource: %w", err))
		return // retried with the next set
	}
	c.writtenSpecs, c.writtenFull, c.pending, c.at = specs, whole, nil, now
}

// encode returns pods as JSON, without and with statuses and resource versions.
func encode(pods []*v1.Pod) (specs, whole []byte, err error) {
	full, bare := make([]*v1.Pod, 0, len(pods)), make([]*v1.Pod, 0, len(pods))
	for _, p := range pods {
		if p == nil {
			continue
		}
		f := *p
		f.ManagedFields = nil // the node does not use them
		full = append(full, &f)
		b := f
		b.Status, b.ResourceVersion = v1.PodStatus{Phase: p.Status.Phase}, ""
		bare = append(bare, &b)
	}
	if whole, err = json.Marshal(full); err != nil {
		return nil, nil, err
	}
	specs, err = json.Marshal(bare)
	return specs, whole, err
}

func (c *Checkpoint) failed(message string, err error) {
	c.cfg.Logger.Error(message, "path", c.cfg.Path, "err", err)
}
