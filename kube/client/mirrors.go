package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// A MirrorsConfig configures a Mirrors.
type MirrorsConfig struct {
	// Client creates and deletes mirror pods. Required.
	Client kubernetes.Interface

	// Node returns the owner of mirror pods, which is the Node object; see
	// podworker.Mirrors. It must not block. Required.
	Node func() (owner metav1.OwnerReference, ok bool)

	// Retry is called by Run when a mirror pod that could not be created may be created
	// again; it should cause a sync of static pods. It must not block. May be nil.
	Retry func()
}

// Mirrors creates and deletes mirror pods. It implements podworker.Mirrors.
//
// If the server rejects a mirror pod, because its namespace does not exist or a policy
// forbids it, CreateMirror returns the same error without a request for a quarter of the time
// since the first rejection, from 1 s to 5 m: a server that starts lacks its priority classes
// for some seconds. A changed manifest resets the backoff. Errors other than rejections have
// no backoff.
type Mirrors struct {
	cfg MirrorsConfig
	ran atomic.Bool // Run was called

	mu     sync.Mutex // guards the fields below
	failed map[types.NamespacedName]failure
	dirty  chan struct{} // capacity 1; Run must compute the time of the next retry
}

// A failure is a mirror pod that could not be created.
type failure struct {
	hash     string // of the manifest
	err      error
	rejected bool // by the server; otherwise it was unavailable
	first    time.Time
	until    time.Time
	retried  bool // Retry was called
}

// Backoff of mirror pods that could not be created.
const (
	minMirrorBackoff    = time.Second
	maxMirrorBackoff    = 5 * time.Minute
	mirrorBackoffPart   = 4 // of the time since the first failure
	maxUnavailableRetry = 30 * time.Second
)

// NewMirrors returns a Mirrors, or an error if cfg is invalid.
func NewMirrors(cfg MirrorsConfig) (*Mirrors, error) {
	switch {
	case cfg.Client == nil:
		return nil, errors.New("client: MirrorsConfig.Client is nil")
	case cfg.Node == nil:
		return nil, errors.New("client: MirrorsConfig.Node is nil")
	}
	return &Mirrors{cfg: cfg, failed: map[types.NamespacedName]failure{}, dirty: make(chan struct{}, 1)}, nil
}

// Run calls Config.Retry when mirror pods may be created again, until ctx is done; it then
// returns nil. Without it they are created at the next sync of their static pods. It returns
// an error if it was called before.
func (m *Mirrors) Run(ctx context.Context) error {
	if m.ran.Swap(true) {
		return errors.New("client: Mirrors.Run was called before")
	}
	for ctx.Err() == nil {
		due, next := m.due(time.Now())
		if due && m.cfg.Retry != nil {
			m.cfg.Retry()
		}
		var later <-chan time.Time
		if !next.IsZero() {
			later = time.After(time.Until(next))
		}
		select {
		case <-ctx.Done():
		case <-m.dirty:
		case <-later:
		}
	}
	return nil
}

// due reports whether a mirror pod may be created again for which that was not reported yet,
// and returns the time of the next one; zero if there is none.
func (m *Mirrors) due(now time.Time) (due bool, next time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, f := range m.failed {
		switch {
		case f.retried:
		case !now.Before(f.until):
			f.retried, due = true, true
			m.failed[name] = f
		case next.IsZero() || f.until.Before(next):
			next = f.until
		}
	}
	return due, next
}

// Node implements podworker.Mirrors.
func (m *Mirrors) Node() (owner metav1.OwnerReference, ok bool) { return m.cfg.Node() }

// CreateMirror implements podworker.Mirrors.
func (m *Mirrors) CreateMirror(ctx context.Context, mirror *v1.Pod) error {
	hash := mirror.Annotations[v1.MirrorPodAnnotationKey]
	name := nameOf(mirror)
	m.mu.Lock()
	was := m.failed[name]
	m.mu.Unlock()
	if was.hash != hash {
		was = failure{hash: hash, first: time.Now()}
	} else if was.rejected && time.Now().Before(was.until) {
		return fmt.Errorf("%w (next attempt after %s)", was.err, was.until.Format(time.TimeOnly))
	}
	err := m.create(ctx, mirror, hash)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		delete(m.failed, name)
	case ctx.Err() == nil:
		m.failed[name] = was.again(err, time.Now())
		select {
		case m.dirty <- struct{}{}:
		default:
		}
	}
	return err
}

// again returns the failure after another error.
func (f failure) again(err error, now time.Time) failure {
	f.err, f.rejected, f.retried = err, isRejection(err), false
	last := maxUnavailableRetry
	if f.rejected {
		last = maxMirrorBackoff
	}
	f.until = now.Add(min(max(now.Sub(f.first)/mirrorBackoffPart, minMirrorBackoff), last))
	return f
}

func (m *Mirrors) create(ctx context.Context, mirror *v1.Pod, hash string) error {
	mirror = mirror.DeepCopy()
	mirror.UID, mirror.ResourceVersion = "", "" // assigned by the server
	pods := m.cfg.Client.CoreV1().Pods(mirror.Namespace)
	_, err := pods.Create(ctx, mirror, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return fmt.Errorf("client: create mirror pod: %w", err)
		}
		return nil
	}
	existing, getErr := pods.Get(ctx, mirror.Name, metav1.GetOptions{})
	switch {
	case getErr != nil:
		return fmt.Errorf("client: create mirror pod: read existing pod: %w", getErr)
	case existing.Annotations[v1.MirrorPodAnnotationKey] == hash: // rule mir-2
		return nil
	default:
		return fmt.Errorf("client: create mirror pod: %w, with another manifest, or not as a mirror pod", err)
	}
}

// DeleteMirror implements podworker.Mirrors (rule mir-3).
func (m *Mirrors) DeleteMirror(ctx context.Context, mirror *v1.Pod) error {
	err := m.cfg.Client.CoreV1().Pods(mirror.Namespace).Delete(ctx, mirror.Name, deleteNow(mirror.UID))
	if err != nil && !gone(err) {
		return fmt.Errorf("client: delete mirror pod: %w", err)
	}
	return nil
}

// isRejection reports whether the server has rejected the request itself, as opposed to
// being unavailable or overloaded.
func isRejection(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && status.ErrStatus.Code < 500 && !apierrors.IsTooManyRequests(err)
}

// Rejected returns the error with which the server has rejected a mirror pod; nil if it has
// not.
func (m *Mirrors) Rejected(namespace, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.failed[types.NamespacedName{Namespace: namespace, Name: name}]; f.rejected {
		return f.err
	}
	return nil
}

// deleteNow returns options that delete the object with this UID without grace period.
func deleteNow(uid types.UID) metav1.DeleteOptions {
	opts := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	if uid != "" {
		opts.Preconditions = metav1.NewUIDPreconditions(string(uid))
	}
	return opts
}

// gone reports whether a request with a UID failed because the object was deleted or
// replaced.
func gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }
