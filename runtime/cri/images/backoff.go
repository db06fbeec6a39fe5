package images

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Backoff says how long a failed pull is not tried again: first Initial, then
// twice as long each time up to Max, and Initial again if the last failure is
// longer ago than Forget. Zero values are the kubelet's: 10 s, 5 min, 10 min.
type Backoff struct {
	Initial, Max, Forget time.Duration
}

// A backoffKey is what a back-off is for (img-7).
type backoffKey struct {
	uid   types.UID
	image string
}

// A failure is the last failed pull of an image for a pod.
type failure struct {
	at    time.Time
	delay time.Duration
	with  string // the identity of the credentials
	err   *Error
}

type backoffs struct {
	cfg Backoff

	// mu guards the fields below.
	mu       sync.Mutex
	failures map[backoffKey]failure
	swept    time.Time // when they were last looked through for old ones
}

func newBackoffs(cfg Backoff) (*backoffs, error) {
	if cfg.Initial == 0 {
		cfg.Initial = 10 * time.Second
	}
	if cfg.Max == 0 {
		cfg.Max = max(300*time.Second, cfg.Initial)
	}
	if cfg.Forget == 0 {
		cfg.Forget = 2 * cfg.Max
	}
	if cfg.Initial < 0 || cfg.Max < cfg.Initial || cfg.Forget < 0 {
		return nil, errors.New("images: Config.Backoff: want 0 < Initial <= Max and 0 < Forget")
	}
	return &backoffs{cfg: cfg, failures: map[backoffKey]failure{}}, nil
}

// last returns the last failure of key that is not forgotten yet.
func (b *backoffs) last(key backoffKey, now time.Time) (failure, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sweepLocked(now)
	f, ok := b.failures[key]
	return f, ok && now.Sub(f.at) <= b.cfg.Forget
}

// until is when the pull may be tried again.
func (f failure) until() time.Time { return f.at.Add(f.delay) }

// failed notes a failed pull, and returns when the next may be tried (img-8).
// Other credentials begin with the initial delay.
func (b *backoffs) failed(key backoffKey, with string, err *Error, now time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sweepLocked(now)
	f := failure{at: now, delay: b.cfg.Initial, with: with, err: err}
	if last, ok := b.failures[key]; ok && last.with == with && now.Sub(last.at) <= b.cfg.Forget {
		f.delay = min(2*last.delay, b.cfg.Max)
		if now.Before(last.until()) {
			f.delay = last.delay // another container of the pod, at the same time
		}
	}
	b.failures[key] = f
	return f.until()
}

// sweepLocked drops what is forgotten, so that failures of pods that nobody
// takes leave of do not add up (img-11).
func (b *backoffs) sweepLocked(now time.Time) {
	if now.Sub(b.swept) < b.cfg.Initial {
		return
	}
	b.swept = now
	for key, f := range b.failures {
		if now.Sub(f.at) > b.cfg.Forget {
			delete(b.failures, key)
		}
	}
}

// forget drops the failures that the function picks.
func (b *backoffs) forget(picks func(backoffKey) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key := range b.failures {
		if picks(key) {
			delete(b.failures, key)
		}
	}
}

// ResetBackoff lets images be pulled at once although pulls of them failed:
// one image of one pod, every image of a pod if image is empty, or the
// image for every pod if uid is.
func (m *Manager) ResetBackoff(uid types.UID, image string) {
	if name, err := withTag(image); err == nil {
		image = name
	}
	m.backoff.forget(func(key backoffKey) bool {
		return (uid == "" || key.uid == uid) && (image == "" || key.image == image)
	})
}

// Forget drops what is remembered of a pod that is gone.
func (m *Manager) Forget(uid types.UID) {
	m.backoff.forget(func(key backoffKey) bool { return key.uid == uid })
}
