package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
}

// Mirrors creates and deletes mirror pods. It implements podworker.Mirrors.
//
// If the server rejects a mirror pod, because its namespace does not exist or a policy
// forbids it, CreateMirror returns the same error without a request for 1 s, doubled with
// each rejection up to 5 m. A changed manifest resets the backoff. Errors other than
// rejections have no backoff.
type Mirrors struct {
	cfg MirrorsConfig

	mu       sync.Mutex // guards rejected
	rejected map[types.NamespacedName]rejection
}

// A rejection is a mirror pod that the server has rejected.
type rejection struct {
	hash  string // of the manifest
	err   error
	times int
	until time.Time
}

// Backoff of rejected mirror pods.
const (
	initialRejectionBackoff = time.Second
	maxRejectionBackoff     = 5 * time.Minute
)

// NewMirrors returns a Mirrors, or an error if cfg is invalid.
func NewMirrors(cfg MirrorsConfig) (*Mirrors, error) {
	switch {
	case cfg.Client == nil:
		return nil, errors.New("client: MirrorsConfig.Client is nil")
	case cfg.Node == nil:
		return nil, errors.New("client: MirrorsConfig.Node is nil")
	}
	return &Mirrors{cfg: cfg, rejected: map[types.NamespacedName]rejection{}}, nil
}

// Node implements podworker.Mirrors.
func (m *Mirrors) Node() (owner metav1.OwnerReference, ok bool) { return m.cfg.Node() }

// CreateMirror implements podworker.Mirrors.
func (m *Mirrors) CreateMirror(ctx context.Context, mirror *v1.Pod) error {
	hash := mirror.Annotations[v1.MirrorPodAnnotationKey]
	name := nameOf(mirror)
	m.mu.Lock()
	was := m.rejected[name]
	m.mu.Unlock()
	if was.hash != hash {
		was = rejection{hash: hash}
	} else if time.Now().Before(was.until) {
		return fmt.Errorf("%w (next attempt after %s)", was.err, was.until.Format(time.TimeOnly))
	}
	err := m.create(ctx, mirror, hash)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		delete(m.rejected, name)
	case ctx.Err() == nil && isRejection(err):
		was.err, was.times = err, was.times+1
		was.until = time.Now().Add(backoff(initialRejectionBackoff, maxRejectionBackoff, was.times))
		m.rejected[name] = was
	}
	return err
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
	return m.rejected[types.NamespacedName{Namespace: namespace, Name: name}].err
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

// backoff returns the delay after a number of consecutive failures.
func backoff(first, last time.Duration, failures int) time.Duration {
	d := first
	for ; failures > 1 && d < last; failures-- {
		d *= 2
	}
	return min(d, last)
}
