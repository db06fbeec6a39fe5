package images

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A job is a pull that somebody wants.
type job struct {
	pod     *v1.Pod
	image   string // as the pod spells it
	spec    *runtimeapi.ImageSpec
	creds   []Credential
	sandbox *runtimeapi.PodSandboxConfig
}

// A flight is a pull that is under way, or waits for its turn, for everybody who
// wants it (L-50).
type flight struct {
	key    string
	cancel context.CancelFunc
	done   chan struct{} // closed when landed is set
	landed landing

	waiters int // guarded by flights.mu
}

// A landing is how a flight ended.
type landing struct {
	waited, took time.Duration
	image        *runtimeapi.Image
	used         int   // the credential that worked; -1: none was needed
	err          error // of all tries
	gone         bool  // err is that of looking at the image after its pull
}

// with returns the credential that worked, from the same list as that of the
// flight; nil if it was none.
func (l *landing) with(creds []Credential) *Credential {
	if l.used < 0 || creds[l.used].Auth == nil {
		return nil
	}
	return &creds[l.used]
}

type flights struct {
	// mu guards the fields below.
	mu    sync.Mutex
	under map[string]*flight
}

// share pulls the image, or joins a pull that does the same, and returns when it
// has ended, or ctx has. The pull itself ends early when nobody is left who
// waits for it (lq-8, img-17).
func (m *Manager) share(ctx context.Context, j job) (landing, error) {
	key := j.spec.Image + "\n" + j.spec.RuntimeHandler + "\n" + fingerprint(j.creds)
	f := m.flights.join(key, func() *flight {
		flying, cancel := context.WithCancel(context.WithoutCancel(ctx))
		f := &flight{key: key, cancel: cancel, done: make(chan struct{})}
		go m.fly(flying, f, j)
		return f
	})
	select {
	case <-f.done:
		return f.landed, nil
	case <-ctx.Done():
		m.flights.leave(f)
		return landing{}, ctx.Err()
	}
}

// join returns the flight of that key after it began one if there is none.
func (s *flights) join(key string, begin func() *flight) *flight {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.under[key]
	if f == nil {
		f = begin()
		s.under[key] = f
	}
	f.waiters++
	return f
}

// leave calls the flight off if nobody else waits for it. Who asks after that
// begins another one.
func (s *flights) leave(f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.waiters--; f.waiters == 0 {
		s.dropLocked(f)
		f.cancel()
	}
}

func (s *flights) land(f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropLocked(f)
}

func (s *flights) dropLocked(f *flight) {
	if s.under[f.key] == f {
		delete(s.under, f.key)
	}
}

// fly is the goroutine of a flight.
func (m *Manager) fly(ctx context.Context, f *flight, j job) {
	defer f.cancel()
	begun := time.Now()
	l := m.inTurn(ctx, j)
	l.took = time.Since(begun) - l.waited
	if m.cfg.Hooks.Pulled != nil {
		m.cfg.Hooks.Pulled(PullInfo{Image: j.image, Pod: j.pod, Waited: l.waited, Took: l.took, Size: l.image.GetSize(), Err: l.err})
	}
	f.landed = l
	m.flights.land(f)
	close(f.done)
}

// inTurn pulls when it is its turn (img-13).
func (m *Manager) inTurn(ctx context.Context, j job) (l landing) {
	begun := time.Now()
	if m.turns != nil {
		select {
		case m.turns <- struct{}{}:
		default:
			if m.cfg.Hooks.Waiting != nil {
				m.cfg.Hooks.Waiting(WaitInfo{Image: j.image, Pod: j.pod})
			}
			select {
			case m.turns <- struct{}{}:
			case <-ctx.Done():
				return landing{err: ctx.Err(), waited: time.Since(begun)}
			}
		}
		defer func() { <-m.turns }()
	}
	l.waited = time.Since(begun)
	if l.err = ctx.Err(); l.err != nil {
		return l // its turn came too late
	}
	if m.records == nil {
		m.try(ctx, j, &l)
		return l
	}
	if err := m.records.begin(j.spec.Image); err != nil {
		if m.cfg.Verify != NeverVerify {
			l.err = err // unrecorded, it would be everybody's after a restart
			return l
		}
		m.log.Warn("pull is not recorded", "image", j.spec.Image, "err", err)
		m.try(ctx, j, &l)
		return l
	}
	m.records.end(j.spec.Image, m.recorded(ctx, j, &l))
	return l
}

// recorded pulls, and records a success.
func (m *Manager) recorded(ctx context.Context, j job, l *landing) outcome {
	unsure := m.try(ctx, j, l)
	switch {
	case unsure || l.gone:
		return pullUnknown
	case l.err != nil:
		return pullFailed
	}
	if err := m.records.add(j.spec.Image, l.image.Id, l.with(j.creds), true); err != nil {
		m.log.Warn("pull is not recorded, credentials have to be shown again", "image", j.spec.Image, "err", err)
		return pullUnknown
	}
	return pullDone
}

// try tries one credential after the other, or once without (img-14). It
// reports whether the image may be there although it failed.
func (m *Manager) try(ctx context.Context, j job, l *landing) (unsure bool) {
	tries := j.creds
	if len(tries) == 0 {
		tries = []Credential{{}}
	}
	var errs []error
	for i, c := range tries {
		begun := time.Now()
		err := m.limit.wait(ctx)
		l.waited += time.Since(begun)
		if err == nil {
			_, err = m.cfg.Service.PullImage(ctx, j.spec, c.Auth, j.sandbox)
			unsure = unsure || err != nil && (ctx.Err() != nil || lostAnswer(err))
		}
		if err == nil {
			if l.used = i; len(j.creds) == 0 {
				l.used = -1
			}
			l.image, l.err = m.lookUp(ctx, j.spec)
			if l.err == nil && l.image == nil {
				l.err = errors.New("it is not present")
			}
			l.gone = l.err != nil
			return false
		}
		if ctx.Err() != nil {
			l.err = ctx.Err()
			return unsure
		}
		errs = append(errs, err)
	}
	l.err = tried(errs)
	return unsure
}

// triedErrors are those of a pull that failed with each of several credentials.
type triedErrors []error

func tried(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return triedErrors(errs)
}

func (e triedErrors) Unwrap() []error { return e }

// Error has each text once, as the kubelet puts them together.
func (e triedErrors) Error() string {
	var texts []string
	seen := map[string]bool{}
	for _, err := range e {
		if text := words(err); !seen[text] {
			seen[text] = true
			texts = append(texts, text)
		}
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, ", ") + "]"
}
