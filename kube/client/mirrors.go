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

	"github.com/kubeparts/kubeparts/runtime"
)

// A MirrorsConfig says whose mirror pods to make.
type MirrorsConfig struct {
	// Client makes and deletes them. Required.
	Client kubernetes.Interface

	// Node returns the owner of the mirror pods: the node's object, as
	// podworker.Mirrors has it. It must not block. Required.
	Node func() (owner metav1.OwnerReference, ok bool)
}

// Mirrors keeps the API server's copies of static pods. It is a
// podworker.Mirrors.
//
// A copy that the server refuses (its namespace does not exist, a policy forbids
// it) is not asked for again at each sync of the pod: the same error comes back
// without a call for 1s, and longer with each refusal, up to 5m (L-33). A new
// manifest starts over. That the server cannot be asked is no refusal.
type Mirrors struct {
	cfg MirrorsConfig

	mu      sync.Mutex // guards refused
	refused map[types.NamespacedName]refusal
}

// A refusal is a mirror pod that the server would not take.
type refusal struct {
	hash  string // of the manifest
	err   error
	times int
	until time.Time
}

// How long a refused copy rests.
const (
	firstRefusal = time.Second
	lastRefusal  = 5 * time.Minute
)

// NewMirrors checks cfg and returns a Mirrors.
func NewMirrors(cfg MirrorsConfig) (*Mirrors, error) {
	switch {
	case cfg.Client == nil:
		return nil, errors.New("client: MirrorsConfig.Client is nil")
	case cfg.Node == nil:
		return nil, errors.New("client: MirrorsConfig.Node is nil")
	}
	return &Mirrors{cfg: cfg, refused: map[types.NamespacedName]refusal{}}, nil
}

// Node implements podworker.Mirrors.
func (m *Mirrors) Node() (owner metav1.OwnerReference, ok bool) { return m.cfg.Node() }

// CreateMirror implements podworker.Mirrors.
func (m *Mirrors) CreateMirror(ctx context.Context, mirror *v1.Pod) error {
	hash := mirror.Annotations[runtime.ConfigMirrorAnnotation]
	name := nameOf(mirror)
	m.mu.Lock()
	was := m.refused[name]
	m.mu.Unlock()
	if was.hash != hash {
		was = refusal{hash: hash}
	} else if time.Now().Before(was.until) {
		return fmt.Errorf("%w (not asked again before %s)", was.err, was.until.Format(time.TimeOnly))
	}
	err := m.create(ctx, mirror, hash)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		delete(m.refused, name)
	case ctx.Err() == nil && isRefusal(err):
		was.err, was.times = err, was.times+1
		was.until = time.Now().Add(backoff(firstRefusal, lastRefusal, was.times))
		m.refused[name] = was
	}
	return err
}

func (m *Mirrors) create(ctx context.Context, mirror *v1.Pod, hash string) error {
	mirror = mirror.DeepCopy()
	mirror.UID, mirror.ResourceVersion = "", "" // the server's to give
	pods := m.cfg.Client.CoreV1().Pods(mirror.Namespace)
	_, err := pods.Create(ctx, mirror, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return fmt.Errorf("client: create mirror pod: %w", err)
		}
		return nil
	}
	there, getErr := pods.Get(ctx, mirror.Name, metav1.GetOptions{})
	switch {
	case getErr != nil:
		return fmt.Errorf("client: create mirror pod: it is there already, but: %w", getErr)
	case there.Annotations[runtime.ConfigMirrorAnnotation] == hash: // mir-2
		return nil
	default:
		return fmt.Errorf("client: create mirror pod: %w: of another manifest, or no mirror pod at all", err)
	}
}

// DeleteMirror implements podworker.Mirrors (mir-3).
func (m *Mirrors) DeleteMirror(ctx context.Context, mirror *v1.Pod) error {
	err := m.cfg.Client.CoreV1().Pods(mirror.Namespace).Delete(ctx, mirror.Name, deleteNow(mirror.UID))
	if err != nil && !gone(err) {
		return fmt.Errorf("client: delete mirror pod: %w", err)
	}
	return nil
}

// isRefusal reports whether a server has looked at what was asked for and does not
// want it. One that is away, or has too much to do, may take it the next time.
func isRefusal(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && status.ErrStatus.Code < 500 && !apierrors.IsTooManyRequests(err)
}

// Refused returns why there is no mirror pod of that name; nil if nothing is
// known against it.
func (m *Mirrors) Refused(namespace, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refused[types.NamespacedName{Namespace: namespace, Name: name}].err
}

// deleteNow deletes that very object without grace.
func deleteNow(uid types.UID) metav1.DeleteOptions {
	opts := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	if uid != "" {
		opts.Preconditions = metav1.NewUIDPreconditions(string(uid))
	}
	return opts
}

// gone reports whether a call failed because the object is not there any more,
// or another one is under its name. It is about calls with a UID in them.
func gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }

// backoff returns the wait after that many failures in a row.
func backoff(first, last time.Duration, failures int) time.Duration {
	d := first
	for ; failures > 1 && d < last; failures-- {
		d *= 2
	}
	return min(d, last)
}
