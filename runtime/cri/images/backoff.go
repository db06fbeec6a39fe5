package images

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Backoff configures the delay between failed pulls of an image for a pod: Initial after the
// first failure, then twice the last delay up to Max, and Initial again if the last failure
// is older than Forget. Zero means the kubelet's values: 10 s, 5 min, 10 min.
type Backoff struct {
	Initial, Max, Forget time.Duration
}

// A backoffKey identifies a back-off: one image of one pod.
type backoffKey struct {
	uid   types.UID
	image string
}

// A failure is the last failed pull of an image for a pod.
type failure struct {
	at    time.Time
	delay time.Duration
	with  string // identity of the credentials
	err   *Error
}

type backoffs struct {
	cfg Backoff

	// mu guards the fields below.
	mu       sync.Mutex
	failures map[backoffKey]failure
	swept    time.Time // last removal of old failures
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
		return nil, errors.New("images: Config.Backoff: must satisfy 0 < Initial <= Max and 0 < Forget")
	}
	return &backoffs{cfg: cfg, failures: map[backoffKey]failure{}}, nil
}

// last returns the last failure of key if it is not older than Forget.
func (b *backoffs) last(key backoffKey, now time.Time) (failure, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sweepLocked(now)
	f, ok := b.failures[key]
	return f, ok && now.Sub(f.at) <= b.cfg.Forget
}

// until returns the end of the back-off.
func (f failure) until() time.Time { return f.at.Add(f.delay) }

// failed stores a failed pull and returns the end of its back-off. After a change of
// credentials the delay begins with Initial.
func (b *backoffs) failed(key backoffKey, with string, err *Error, now time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sweepLocked(now)
	f := failure{at: now, delay: b.cfg.Initial, with: with, err: err}
	if last, ok := b.failures[key]; ok && last.with == with && now.Sub(last.at) <= b.cfg.Forget {
		f.delay = min(2*last.delay, b.cfg.Max)
		if now.Before(last.until()) {
			f.delay = last.delay // another container of the pod shared the pull
		}
	}
	b.failures[key] = f
	return f.until()
}

// sweepLocked deletes failures older than Forget, so that failures of pods for which Forget
// was not called do not accumulate.
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

// forget deletes the failures for which picks returns true.
func (b *backoffs) forget(picks func(backoffKey) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key := range b.failures {
		if picks(key) {
			delete(b.failures, key)
		}
	}
}

// ResetBackoff ends the back-off of an image of a pod. An empty image means all images of
// the pod, an empty uid all pods.
func (m *Manager) ResetBackoff(uid types.UID, image string) {
	if name, err := withTag(image); err == nil {
		image = name
	}
	m.backoff.forget(func(key backoffKey) bool {
		return (uid == "" || key.uid == uid) && (image == "" || key.image == image)
	})
}

// Forget deletes the failures of a deleted pod.
func (m *Manager) Forget(uid types.UID) {
	m.backoff.forget(func(key backoffKey) bool { return key.uid == uid })
}
