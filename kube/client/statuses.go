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
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// A StatusesConfig says where statuses go.
type StatusesConfig struct {
	// Client writes them. Required.
	Client kubernetes.Interface

	// Pods shows what the API server has, so that nothing is read before it is
	// written (L-37). Required.
	Pods *Pods

	// Timeout ends a call that nobody answers; the caller then tries again. 0
	// means 20s.
	Timeout time.Duration

	// Record takes events about statuses that the server refuses. Nil: none.
	Record func(runtime.Event)

	// Logger gets what goes wrong. Nil discards.
	Logger *slog.Logger

	// Hooks observe; see there.
	Hooks StatusesHooks
}

// StatusesHooks observe a [Statuses]. They must be quick. Any may be nil.
type StatusesHooks struct {
	// Called: a call of the API server has returned.
	Called func(StatusCall)
}

// A StatusCall is one call of the API server about the status of a pod.
type StatusCall struct {
	Pod  types.NamespacedName
	UID  types.UID // of the API's object
	Verb string    // "patch", "delete", or "get" after a conflict
	Took time.Duration
	Err  error
}

// Statuses writes what a node knows of its pods to the API server. It is a
// status.StatusSink.
//
// A status is one call, a patch that holds what has changed and the UID of the
// pod; nothing is read first (L-37). What others wrote stays (section 7.8). A
// pod that is gone, or another one under its name, is no error. The status of a
// static pod goes to its mirror pod (st-65), as soon as there is one.
//
// Run brings mirror pods that come later, or are made anew, their status. A status
// that somebody else has changed is said again by who said it: status.Manager is told
// of such changes by the loop (podsource.Reconciler) and mends them, with growing
// pauses (st-71).
type Statuses struct {
	cfg StatusesConfig
	ran atomic.Bool // Run was called

	mu    sync.Mutex // guards the fields below
	pods  map[types.UID]*saidPod
	dirty chan struct{} // capacity 1: Run has something to look at
}

// A saidPod is what was said of one pod.
type saidPod struct {
	// turn has one token: whoever holds it may use the fields below.
	turn chan struct{}

	pod    *v1.Pod      // as the sink got it: the static pod, not its mirror
	status v1.PodStatus // what was said last

	// there is what the API server answered last: newer than what a watch has
	// brought, for a while. Only its name and status are kept.
	there *v1.Pod

	theirs   bool      // what failed is the caller's to repeat
	told     types.UID // of the object that has been told what is said
	failures int       // of Run, in a row
	notUntil time.Time // Run does not try again before
	cut      size      // how much of a status the server takes
	refused  string    // the last refusal that there was an event about
	over     bool      // nothing more is to be said
}

// NewStatuses checks cfg and returns a Statuses.
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
	return &Statuses{cfg: cfg, pods: map[types.UID]*saidPod{}, dirty: make(chan struct{}, 1)}, nil
}

// UpdatePodStatus implements status.StatusSink.
func (s *Statuses) UpdatePodStatus(ctx context.Context, pod *v1.Pod, said v1.PodStatus) error {
	e, err := s.take(ctx, pod)
	if err != nil {
		return err
	}
	defer s.release(e)
	e.pod, e.status = pod, said
	err = s.write(ctx, e)
	e.theirs = err != nil
	s.wake() // a mirror pod may have come meanwhile
	return err
}

// DeletePod implements status.StatusSink (st-70): it deletes a pod that was
// asked to go, without grace, unless it is another one by now. What the source
// does not have any more needs no call, and a mirror pod is its maker's (st-79).
func (s *Statuses) DeletePod(ctx context.Context, pod *v1.Pod) error {
	e, err := s.take(ctx, pod)
	if err != nil {
		return err
	}
	defer s.release(e)
	if e.pod == nil {
		e.pod = pod
	}
	object := s.target(e)
	if runtime.IsStatic(pod) || object == nil || object.DeletionTimestamp == nil && pod.DeletionTimestamp == nil {
		s.end(e)
		return nil
	}
	// The API is not to lose how the pod ended (st-80).
	if !status.Terminal(object.Status.Phase) && status.Terminal(e.status.Phase) {
		if err := s.write(ctx, e); err != nil {
			return err
		}
		if e.over {
			return nil
		}
	}
	err = s.call(ctx, object, "delete", func(ctx context.Context) error {
		return s.cfg.Client.CoreV1().Pods(object.Namespace).Delete(ctx, object.Name, deleteNow(object.UID))
	})
	if err != nil && !gone(err) {
		return fmt.Errorf("client: delete pod: %w", err)
	}
	s.end(e)
	return nil
}

// take returns the entry of the pod, and with it the right to use it.
func (s *Statuses) take(ctx context.Context, pod *v1.Pod) (*saidPod, error) {
	for {
		s.mu.Lock()
		e := s.pods[pod.UID]
		if e == nil {
			e = &saidPod{turn: make(chan struct{}, 1)}
			e.turn <- struct{}{}
			s.pods[pod.UID] = e
		}
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("client: status: %w", context.Cause(ctx))
		case <-e.turn:
		}
		if !e.over {
			return e, nil
		}
		e.turn <- struct{}{} // it ended while we waited
	}
}

func (s *Statuses) release(e *saidPod) { e.turn <- struct{}{} }

// end forgets the entry.
func (s *Statuses) end(e *saidPod) {
	e.over = true
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pods[e.pod.UID] == e {
		delete(s.pods, e.pod.UID)
	}
}

// target returns the API's object that stands for the entry's pod, as it is
// known best; nil if there is none.
func (s *Statuses) target(e *saidPod) *v1.Pod {
	if runtime.IsStatic(e.pod) { // st-65
		mirror := s.cfg.Pods.Mirror(e.pod.Namespace, e.pod.Name)
		if mirror == nil || mirror.Annotations[runtime.ConfigMirrorAnnotation] != e.pod.Annotations[runtime.ConfigHashAnnotation] {
			return nil
		}
		if e.there != nil && e.there.UID == mirror.UID && newer(e.there, mirror) {
			return e.there
		}
		return mirror
	}
	seen := s.cfg.Pods.Pod(e.pod.UID)
	if seen == nil {
		if s.cfg.Pods.Synced() {
			return nil
		}
		seen = e.pod
	}
	if e.there != nil && newer(e.there, seen) {
		return e.there
	}
	return seen
}

// newer reports whether a is a newer version of an object than b. Where that
// cannot be told, a is: it is the answer to a call.
func newer(a, b *v1.Pod) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err != nil || order >= 0
}

// write makes the API server's object say what the entry says.
func (s *Statuses) write(ctx context.Context, e *saidPod) error {
	object := s.target(e)
	if object == nil {
		if !runtime.IsStatic(e.pod) {
			s.end(e) // deleted: nobody wants to know
		}
		e.told = ""
		return nil // Run writes it when there is a mirror pod
	}
	var err error
	for conflicts := 0; ; {
		said := e.cut.of(&e.status)
		next := merge(&object.Status, &said, runtime.IsStatic(e.pod), time.Now())
		var data []byte
		if data, err = patch(object.UID, &object.Status, &next); err != nil {
			return fmt.Errorf("client: make the patch of a status: %w", err)
		}
		if data == nil {
			e.told = object.UID
			return nil
		}
		var answer *v1.Pod
		err = s.call(ctx, object, "patch", func(ctx context.Context) (err error) {
			answer, err = s.cfg.Client.CoreV1().Pods(object.Namespace).
				Patch(ctx, object.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status")
			return err
		})
		switch {
		case err == nil:
			e.there = &v1.Pod{ObjectMeta: slim(answer).ObjectMeta, Status: answer.Status}
			e.told = answer.UID
			if e.cut == full {
				e.refused = ""
			}
			return nil
		case apierrors.IsNotFound(err):
			s.lost(e)
			return nil
		case isAnother(err) && conflicts < 3:
			conflicts++
			fresh, getErr := s.get(ctx, object)
			if apierrors.IsNotFound(getErr) || getErr == nil && fresh.UID != object.UID { // st-66
				s.lost(e)
				return nil
			}
			if getErr != nil {
				return fmt.Errorf("client: read pod after a conflict: %w", getErr)
			}
			object = fresh
			e.there = &v1.Pod{ObjectMeta: slim(fresh).ObjectMeta, Status: fresh.Status}
		case tooLarge(err) && e.cut < bare:
			e.cut++
			s.tell(e, fmt.Sprintf("The API server does not take all of the pod's status, it is shortened: %v", err))
		default:
			if refuses(err) {
				s.tell(e, fmt.Sprintf("The API server does not take the pod's status: %v", err))
			}
			return fmt.Errorf("client: patch status: %w", err)
		}
	}
}

// lost takes note that the API's object is gone. A static pod goes on, and gets
// another mirror pod.
func (s *Statuses) lost(e *saidPod) {
	e.there, e.told = nil, ""
	if !runtime.IsStatic(e.pod) {
		s.end(e)
	}
}

func (s *Statuses) get(ctx context.Context, object *v1.Pod) (fresh *v1.Pod, err error) {
	err = s.call(ctx, object, "get", func(ctx context.Context) (err error) {
		fresh, err = s.cfg.Client.CoreV1().Pods(object.Namespace).Get(ctx, object.Name, metav1.GetOptions{})
		return err
	})
	return fresh, err
}

// call makes one call, which ends at its time.
func (s *Statuses) call(ctx context.Context, object *v1.Pod, verb string, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Timeout, fmt.Errorf("no answer within %v", s.cfg.Timeout))
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

// tell records an event, once per message.
func (s *Statuses) tell(e *saidPod, message string) {
	if message == e.refused {
		return
	}
	e.refused = message
	s.cfg.Record(runtime.Event{
		Object: runtime.PodRef(e.pod), Type: v1.EventTypeWarning, Reason: "FailedToUpdateStatus", Message: message,
	})
}

// isAnother reports whether a patch was of another version of the object than that
// which is there, or of another object under its name: an API server whose own look at
// it was late takes the UID of a patch for an attempt to change it.
func isAnother(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsInvalid(err) && strings.Contains(err.Error(), "metadata.uid: Invalid value")
}

// refuses reports whether the server will say the same the next time.
func refuses(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err) || tooLarge(err)
}
