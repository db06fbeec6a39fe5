package images

import (
	"context"
	"errors"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A pullRequest contains the arguments of a pull.
type pullRequest struct {
	pod     *v1.Pod
	image   string // as in the pod's spec
	spec    *runtimeapi.ImageSpec
	creds   []Credential
	sandbox *runtimeapi.PodSandboxConfig
}

// A pullResult is the outcome of a pull.
type pullResult struct {
	waited, took time.Duration
	image        *runtimeapi.Image
	used         int   // index of the credential that worked; -1 for an anonymous pull
	err          error // of all attempts
	missing      bool  // the pull succeeded, but the image could not be inspected
}

// with returns the credential of creds that worked; nil for an anonymous pull. creds
// must have the fingerprint of the request's credentials.
func (l *pullResult) with(creds []Credential) *Credential {
	if l.used < 0 || creds[l.used].Auth == nil {
		return nil
	}
	return &creds[l.used]
}

// share pulls the image, or waits for a concurrent pull with the same image, handler and
// credentials. The pull is canceled when no caller waits for it. The error is ctx's; that
// of the pull is in the result.
func (m *Manager) share(ctx context.Context, j pullRequest) (pullResult, error) {
	key := j.spec.Image + "\n" + j.spec.RuntimeHandler + "\n" + fingerprint(j.creds)
	return m.pulls.Do(ctx, key, func(ctx context.Context) (pullResult, error) {
		begun := time.Now()
		l := m.pullInTurn(ctx, j)
		l.took = time.Since(begun) - l.waited
		if m.cfg.Hooks.Pulled != nil {
			m.cfg.Hooks.Pulled(PullInfo{Image: j.image, Pod: j.pod, Waited: l.waited, Took: l.took, Size: l.image.GetSize(), Err: l.err})
		}
		return l, nil
	})
}

// pullInTurn pulls when Config.MaxParallel permits it.
func (m *Manager) pullInTurn(ctx context.Context, j pullRequest) (l pullResult) {
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
				return pullResult{err: ctx.Err(), waited: time.Since(begun)}
			}
		}
		defer func() { <-m.turns }()
	}
	l.waited = time.Since(begun)
	if l.err = ctx.Err(); l.err != nil {
		return l
	}
	if m.records == nil {
		m.try(ctx, j, &l)
		return l
	}
	if err := m.records.begin(j.spec.Image); err != nil {
		if m.cfg.Verify != NeverVerify {
			l.err = err // without a record, all pods could use the image after a restart
			return l
		}
		m.log.Warn("Failed to record image pull", "image", j.spec.Image, "err", err)
		m.try(ctx, j, &l)
		return l
	}
	m.records.end(j.spec.Image, m.recorded(ctx, j, &l))
	return l
}

// recorded pulls and records a success.
func (m *Manager) recorded(ctx context.Context, j pullRequest, l *pullResult) outcome {
	unsure := m.try(ctx, j, l)
	switch {
	case unsure || l.missing:
		return pullUnknown
	case l.err != nil:
		return pullFailed
	}
	if err := m.records.add(j.spec.Image, l.image.Id, l.with(j.creds), true); err != nil {
		m.log.Warn("Failed to record image pull, pods must present credentials again", "image", j.spec.Image, "err", err)
		return pullUnknown
	}
	return pullDone
}

// try pulls with each credential in order, or anonymously if there are none. It
// reports whether the image may be present although the pull failed.
func (m *Manager) try(ctx context.Context, j pullRequest, l *pullResult) (unsure bool) {
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
			unsure = unsure || err != nil && (ctx.Err() != nil || mayHaveSucceeded(err))
		}
		if err == nil {
			if l.used = i; len(j.creds) == 0 {
				l.used = -1
			}
			l.image, l.err = m.imageStatus(ctx, j.spec)
			if l.err == nil && l.image == nil {
				l.err = errors.New("image is not present")
			}
			l.missing = l.err != nil
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

// triedErrors contains the error of each credential of a failed pull.
type triedErrors []error

func tried(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return triedErrors(errs)
}

func (e triedErrors) Unwrap() []error { return e }

// Error returns each distinct text once, formatted as in the kubelet.
func (e triedErrors) Error() string {
	var texts []string
	found := map[string]bool{}
	for _, err := range e {
		if text := errorText(err); !found[text] {
			found[text] = true
			texts = append(texts, text)
		}
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, ", ") + "]"
}
