package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// A StatusesConfig configures a Statuses.
type StatusesConfig struct {
	// Client writes the statuses. Required.
	Client kubernetes.Interface

	// Pods has the current pods of the API server, so that they need not be read before
	// they are written. Required.
	Pods *Pods

	// Timeout bounds each request; the caller then retries. Zero: 20s.
	Timeout time.Duration

	// Record is called with events about statuses that the server rejects. May be nil.
	Record func(runtime.Event)

	// Logger receives errors. If nil, nothing is logged.
	Logger *slog.Logger

	// Hooks are called for each request.
	Hooks StatusesHooks
}

// StatusesHooks are called by a [Statuses]. Each may be nil. They must not block.
type StatusesHooks struct {
	// Called is called after each request.
	Called func(StatusCall)
}

// Join returns StatusesHooks that call the functions of h and then those of others, in order.
func (h StatusesHooks) Join(others ...StatusesHooks) StatusesHooks {
	for _, o := range others {
		compose.Add(&h.Called, o.Called)
	}
	return h
}

// A StatusCall is a request of the API server about the status of a pod.
type StatusCall struct {
	Pod  types.NamespacedName
	UID  types.UID // of the API object
	Verb string    // "patch", "delete", or "get" after a conflict
	Took time.Duration
	Err  error
}

// Statuses writes the statuses of pods to the API server. It implements status.Sink.
//
// A status is one request: a patch with the changed fields and the UID of the pod; nothing
// is read before. Fields of other clients are preserved. A pod that was deleted or replaced
// is not an error. The status of a static pod is written to its mirror pod (rule st-65) as
// soon as that exists.
//
// Run writes statuses to mirror pods that are created later. Changes that other clients
// make to a status are reverted by status.Manager with increasing delay, to which the loop
// reports them (podsource.Sink, rule st-71).
type Statuses struct {
	cfg StatusesConfig
	ran atomic.Bool // Run was called

	mu       sync.Mutex // guards the fields below
	pods     map[types.UID]*podStatus
	answered map[types.UID]struct{} // pods, except static ones, with a podStatus.response
	dirty    chan struct{}          // capacity 1; wakes Run
}

// A podStatus is the last status of a pod.
type podStatus struct {
	static bool // never changes

	// lock is a mutex that can be awaited with a context: it contains one token, whose
	// receiver may use the fields below.
	lock chan struct{}

	pod    *v1.Pod      // as passed to the sink: the static pod, not its mirror
	status v1.PodStatus // as last passed to the sink

	// response is the last response of the API server, while it is newer than the pod of the
	// watch. It has metadata and status only.
	response *v1.Pod

	callerRetries bool      // the last write has failed and is retried by its caller
	unanswered    bool      // the last write may have had its effect, which the watch may not have delivered yet
	written       types.UID // of the object that has the status
	failures      int       // consecutive, of Run
	notUntil      time.Time // of the next attempt of Run
	size          size      // that the server accepts
	rejected      string    // message of the last event
	deleted       bool      // the entry is no longer in pods
}

// NewStatuses returns a Statuses, or an error if cfg is invalid. It starts nothing.
func NewStatuses(cfg StatusesConfig) (*Statuses, error) {
	switch {
	case cfg.Client == nil:
		return nil, errors.New("client: StatusesConfig.Client is nil")
	case cfg.Pods == nil:
		return nil, errors.New("client: StatusesConfig.Pods is nil")
	case cfg.Timeout < 0:
		return nil, errors.New("client: StatusesConfig.Timeout is negative")
	}
	cfg.Timeout = or(cfg.Timeout, 20*time.Second)
	cfg.Logger = quiet(cfg.Logger)
	if cfg.Record == nil {
		cfg.Record = func(runtime.Event) {}
	}
	return &Statuses{cfg: cfg, pods: map[types.UID]*podStatus{}, answered: map[types.UID]struct{}{}, dirty: make(chan struct{}, 1)}, nil
}

// UpdatePodStatus implements status.Sink.
func (s *Statuses) UpdatePodStatus(ctx context.Context, pod *v1.Pod, reported v1.PodStatus) error {
	e, err := s.acquire(ctx, pod)
	if err != nil {
		return err
	}
	defer s.release(e)
	e.pod, e.status = pod, reported
	err = s.write(ctx, e)
	e.callerRetries = err != nil
	s.dropResponse(e)
	if e.static {
		s.wake() // the mirror pod may have been created meanwhile
	}
	return err
}

// DeletePod implements status.Sink (rule st-70): it deletes a pod whose deletion was
// requested, without grace period, unless it was replaced. Pods that are no longer in the
// API, and mirror pods, cause no request.
func (s *Statuses) DeletePod(ctx context.Context, pod *v1.Pod) error {
	e, err := s.acquire(ctx, pod)
	if err != nil {
		return err
	}
	defer s.release(e)
	if e.pod == nil {
		e.pod = pod
	}
	object := s.target(e)
	if runtime.IsStatic(pod) || object == nil || object.DeletionTimestamp == nil && pod.DeletionTimestamp == nil {
		s.remove(e)
		return nil
	}
	// The final status must be written before the deletion (rule st-80).
	if !status.Terminal(object.Status.Phase) && status.Terminal(e.status.Phase) {
		if err := s.write(ctx, e); err != nil {
			return err
		}
		if e.deleted {
			return nil
		}
	}
	err = s.call(ctx, object, "delete", func(ctx context.Context) error {
		return s.cfg.Client.CoreV1().Pods(object.Namespace).Delete(ctx, object.Name, deleteNow(object.UID))
	})
	if err != nil && !gone(err) {
		return fmt.Errorf("client: delete pod: %w", err)
	}
	s.remove(e)
	return nil
}

// acquire returns the entry of the pod, locked.
func (s *Statuses) acquire(ctx context.Context, pod *v1.Pod) (*podStatus, error) {
	for {
		s.mu.Lock()
		e := s.pods[pod.UID]
		if e == nil {
			e = &podStatus{static: runtime.IsStatic(pod), lock: make(chan struct{}, 1)}
			e.lock <- struct{}{}
			s.pods[pod.UID] = e
		}
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("client: update status: %w", context.Cause(ctx))
		case <-e.lock:
		}
		if !e.deleted {
			return e, nil
		}
		e.lock <- struct{}{} // deleted meanwhile
	}
}

func (s *Statuses) release(e *podStatus) { e.lock <- struct{}{} }

// remove removes the entry.
func (s *Statuses) remove(e *podStatus) {
	e.deleted = true
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pods[e.pod.UID] == e {
		delete(s.pods, e.pod.UID)
		delete(s.answered, e.pod.UID)
	}
}

// target returns the most recent version of the API object of the pod; nil if there is
// none.
func (s *Statuses) target(e *podStatus) *v1.Pod {
	if runtime.IsStatic(e.pod) { // rule st-65
		mirror := s.cfg.Pods.Mirror(e.pod.Namespace, e.pod.Name)
		if mirror == nil || mirror.Annotations[v1.MirrorPodAnnotationKey] != e.pod.Annotations[runtime.ConfigHashAnnotation] {
			return nil
		}
		if e.response != nil && e.response.UID == mirror.UID && newer(e.response, mirror) {
			return e.response
		}
		return mirror
	}
	current := s.cfg.Pods.Pod(e.pod.UID)
	if current == nil {
		if s.cfg.Pods.Synced() {
			return nil
		}
		current = e.pod
	}
	if e.response != nil && newer(e.response, current) {
		return e.response
	}
	return current
}

// newer reports whether a is a newer version of an object than b. If that is unknown, it is
// true, since a is a response.
func newer(a, b *v1.Pod) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err != nil || order >= 0
}

// write writes the status of the entry to the API object.
func (s *Statuses) write(ctx context.Context, e *podStatus) error {
	object := s.target(e)
	if object == nil {
		if !runtime.IsStatic(e.pod) {
			s.remove(e) // the pod was deleted
		}
		e.written = ""
		return nil // Run writes it when the mirror pod exists
	}
	if e.unanswered {
		// A patch of what was there before would leave what the write has changed.
		fresh, err := s.get(ctx, object)
		if apierrors.IsNotFound(err) || err == nil && fresh.UID != object.UID {
			s.lost(e)
			return nil
		}
		if err != nil {
			return fmt.Errorf("client: read pod after a write without a response: %w", err)
		}
		e.unanswered = false
		object = fresh
		s.keepResponse(e, fresh)
	}
	var err error
	for conflicts := 0; ; {
		reported := e.size.of(&e.status)
		next := merge(&object.Status, &reported, runtime.IsStatic(e.pod), time.Now())
		var data []byte
		if data, err = patch(object.UID, &object.Status, &next); err != nil {
			return fmt.Errorf("client: create status patch: %w", err)
		}
		if data == nil {
			e.written = object.UID
			return nil
		}
		var response *v1.Pod
		err = s.call(ctx, object, "patch", func(ctx context.Context) (err error) {
			response, err = s.cfg.Client.CoreV1().Pods(object.Namespace).
				Patch(ctx, object.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status")
			return err
		})
		switch {
		case err == nil:
			s.keepResponse(e, response)
			e.written = response.UID
			if e.size == full {
				e.rejected = ""
			}
			return nil
		case apierrors.IsNotFound(err):
			s.lost(e)
			return nil
		case isConflict(err) && conflicts < 3:
			conflicts++
			fresh, getErr := s.get(ctx, object)
			if apierrors.IsNotFound(getErr) || getErr == nil && fresh.UID != object.UID { // rule st-66
				s.lost(e)
				return nil
			}
			if getErr != nil {
				return fmt.Errorf("client: read pod after a conflict: %w", getErr)
			}
			object = fresh
			s.keepResponse(e, fresh)
		case tooLarge(err) && e.size < bare:
			e.size++
			s.event(e, fmt.Sprintf("Pod status exceeds the size limit of the API server and is shortened: %v", err))
		default:
			if isPermanent(err) {
				s.event(e, fmt.Sprintf("API server rejects the pod status: %v", err))
			}
			e.unanswered = apierrors.ReasonForError(err) == metav1.StatusReasonUnknown && !utilnet.IsConnectionRefused(err)
			return fmt.Errorf("client: patch status: %w", err)
		}
	}
}

// lost handles a deleted API object. A static pod keeps running, and gets another mirror
// pod.
func (s *Statuses) lost(e *podStatus) {
	e.response, e.written, e.unanswered = nil, "", false
	if !runtime.IsStatic(e.pod) {
		s.remove(e)
	}
}

func (s *Statuses) get(ctx context.Context, object *v1.Pod) (fresh *v1.Pod, err error) {
	err = s.call(ctx, object, "get", func(ctx context.Context) (err error) {
		fresh, err = s.cfg.Client.CoreV1().Pods(object.Namespace).Get(ctx, object.Name, metav1.GetOptions{})
		return err
	})
	return fresh, err
}

// call makes one request, bounded by the timeout.
func (s *Statuses) call(ctx context.Context, object *v1.Pod, verb string, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Timeout, fmt.Errorf("no response within %v", s.cfg.Timeout))
	defer cancel()
	begin := time.Now()
	err := do(ctx)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	if s.cfg.Hooks.Called != nil {
		s.cfg.Hooks.Called(StatusCall{Pod: nameOf(object), UID: object.UID, Verb: verb, Took: time.Since(begin), Err: err})
	}
	return err
}

// event records an event, once per message.
func (s *Statuses) event(e *podStatus, message string) {
	if message == e.rejected {
		return
	}
	e.rejected = message
	s.cfg.Record(runtime.Event{
		Object: runtime.PodRef(e.pod), Type: v1.EventTypeWarning, Reason: "FailedToUpdateStatus", Message: message,
	})
}

// isConflict reports whether a patch was of another version of the object, or of another
// object with its name: an API server with an outdated cache reports a changed UID as
// invalid.
func isConflict(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsInvalid(err) && strings.Contains(err.Error(), "metadata.uid: Invalid value")
}

// isPermanent reports whether a retry would fail, too.
func isPermanent(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err) || tooLarge(err)
}
