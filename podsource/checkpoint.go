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

// A CheckpointConfig says which source to remember, and where.
type CheckpointConfig struct {
	// Source whose sets are remembered. Required.
	Source PodSource

	// Path of the record; its directory has to exist. Required. It holds the
	// pods in full, but for their managedFields, with what secrets their specs have,
	// and only its owner may read it. It has at most 256 MiB; a larger set is not
	// recorded, and the last record remains.
	Path string

	// Patience is how long Source is waited for when the agent starts, before
	// what it said last is delivered in its place. 0: 10 s. Negative: not at all.
	// Short values start pods again which Source has stopped wanting while the
	// agent was away; long ones leave the node without pods while Source is.
	Patience time.Duration

	// StatusEvery is how often the record is written when no more than statuses
	// have changed. 0: 10 s.
	StatusEvery time.Duration

	// Logger; nil discards.
	Logger *slog.Logger

	// Restored is called when the pods of the file were passed because Source has not synced.
	// savedAt is when Source passed them. May be nil.
	Restored func(pods int, savedAt time.Time)

	// Failed is called when the file could not be written, or exists and could not be read.
	// May be nil.
	Failed func(err error)
}

// A Checkpoint is a PodSource that remembers what another one said, over restarts
// of the agent: if that source is away when the agent starts, the node goes on
// with what it had. As soon as the source speaks, its word counts alone.
//
// It is for sources that are elsewhere, a [URL] or an API server; a directory is
// as near as the record. Consider, of an API server, that pods it has deleted or
// replaced meanwhile start again for as long as it cannot be reached.
type Checkpoint struct {
	cfg CheckpointConfig

	mu           sync.Mutex // guards the fields below, and set
	live         bool       // Source has spoken
	writtenSpecs []byte     // the pods of the record without statuses, and
	writtenFull  []byte     // with them
	pending      []*v1.Pod  // that the record lacks the statuses of; nil: none
	at           time.Time  // when the record was written
}

// maxRecord is the largest record, in bytes: 170 pods of the size that the API server
// stores at most, and thousands of usual ones.
const maxRecord = 256 << 20

// remembered is what a record holds.
type checkpointContent struct {
	At   time.Time       `json:"at"`
	Pods json.RawMessage `json:"pods"`
}

// NewCheckpoint checks cfg. It reads nothing.
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

// Run runs the source and delivers its sets; if none comes in time, what it said
// last, once. It returns what the source's Run returns.
func (c *Checkpoint) Run(ctx context.Context, set func(pods []*v1.Pod)) error {
	turn := make(chan struct{}, 1) // held by who delivers: one at a time
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

// standIn delivers the record when the time has come, unless the source has
// spoken by then.
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
		return // the first time that there is an agent
	}
	if err != nil {
		c.failed("the record of what a source said cannot be read", err)
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
	c.cfg.Logger.Warn("a pod source has not spoken: what it said last is in force", "path", c.cfg.Path, "at", at, "pods", len(pods))
	if c.cfg.Restored != nil {
		c.cfg.Restored(len(pods), at)
	}
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

// remember writes the record, if it would say anything else: at once if a pod has
// changed, every so often if only statuses have.
func (c *Checkpoint) store(pods []*v1.Pod) {
	specs, whole, err := encode(pods)
	if err != nil {
		c.failed("a source's pods cannot be encoded", err)
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

// flush writes what was put off.
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
		c.failed("what a source says cannot be recorded", fmt.Errorf("podsource: %w", err))
		return // the next set tries again
	}
	c.writtenSpecs, c.writtenFull, c.pending, c.at = specs, whole, nil, now
}

// encode returns pods as JSON without and with what changes all the time.
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
	if c.cfg.Failed != nil {
		c.cfg.Failed(err)
	}
}
