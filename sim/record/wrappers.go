package record

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
	"github.com/kubeparts/kubeparts/volume"
)

// Source returns a source that records the sets of next under a name.
func (r *Recorder) Source(name string, next podsource.PodSource) podsource.PodSource {
	return podsource.Func(func(ctx context.Context, set func(pods []*v1.Pod)) error {
		return next.Run(ctx, func(pods []*v1.Pod) {
			// The pods do not change, but the slice may. Unchanged pods are the source's.
			own := append([]*v1.Pod(nil), pods...)
			r.add(8*len(own), func(e *encoder) Frame { return e.pods(name, own) })
			set(pods)
		})
	})
}

// Sink returns a sink that records the calls of next.
func (r *Recorder) Sink(next status.Sink) status.Sink { return sink{next, r} }

type sink struct {
	next status.Sink
	r    *Recorder
}

func (s sink) UpdatePodStatus(ctx context.Context, pod *v1.Pod, status v1.PodStatus) error {
	begun := time.Now()
	err := s.next.UpdatePodStatus(ctx, pod, status)
	s.add(pod, &status, begun, err)
	return err
}

func (s sink) DeletePod(ctx context.Context, pod *v1.Pod) error {
	begun := time.Now()
	err := s.next.DeletePod(ctx, pod)
	s.add(pod, nil, begun, err)
	return err
}

func (s sink) add(pod *v1.Pod, status *v1.PodStatus, begun time.Time, err error) {
	out := Status{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Took: time.Since(begun), Error: newError(err)}
	s.r.add(statusBytes, func(e *encoder) Frame {
		if status != nil {
			out.Status = e.redact.status(status)
		}
		e.scrub(out.Error)
		return Frame{Status: &out}
	})
}

// statusBytes is about the size of a status.
const statusBytes = 4096

// scrub replaces masked values in the message of an error, which may be nil.
func (e *encoder) scrub(err *Error) {
	if err != nil {
		err.Message = e.redact.texts.scrub(err.Message)
	}
}

// Handlers returns handlers that record the tries of those that are not nil.
func (r *Recorder) Handlers(next prober.Handlers) prober.Handlers {
	for _, h := range []*prober.Handler{&next.Exec, &next.HTTPGet, &next.TCPSocket, &next.GRPC} {
		if *h != nil {
			*h = handler{*h, r}
		}
	}
	return next
}

type handler struct {
	next prober.Handler
	r    *Recorder
}

func (h handler) Probe(ctx context.Context, t prober.Target) (prober.Outcome, error) {
	begun := time.Now()
	outcome, err := h.next.Probe(ctx, t)
	p := Probe{
		Pod: t.Pod.UID, Container: t.Container.Name, ContainerID: t.ContainerID, Kind: t.Kind.String(), Took: time.Since(begun),
		Warning: outcome.Warning, Output: outcome.Output, Detail: outcome.Detail, Error: newError(err),
	}
	if outcome.Result != runtime.ProbeUnknown {
		p.Result = outcome.Result.String()
	}
	exec := t.Probe != nil && t.Probe.Exec != nil
	h.r.add(len(p.Output)+len(p.Detail), func(e *encoder) Frame {
		p.Detail = e.redact.mask(p.Detail)
		if exec {
			p.Output = e.redact.mask(p.Output)
		}
		p.Output = e.redact.texts.scrub(p.Output)
		e.scrub(p.Error)
		return Frame{Probe: &p}
	})
	return outcome, err
}

// Volumes records an operation. It is a volume.Hooks.Operated.
func (r *Recorder) Volumes(o volume.OperationInfo) {
	r.operation(Operation{Component: "volume", Name: o.Operation, Took: o.Duration, Pod: o.PodUID, Plugin: o.Plugin, Volume: o.Volume}, o.Err)
}

func (r *Recorder) operation(o Operation, err error) {
	o.Error = newError(err)
	r.add(0, func(e *encoder) Frame {
		e.scrub(o.Error)
		return Frame{Operation: &o}
	})
}

// Cgroups manages the cgroups of pods; cm.Manager implements it. The methods Has and Collect are
// optional interfaces of an agent, and required here.
type Cgroups interface {
	pipeline.Cgroups
	Has(pod *v1.Pod) bool
	podworker.Retainer
}

// Cgroups returns Cgroups that record the operations of next. Ensure, which is called in each sync of a
// pod, is recorded unless it succeeds again; Has, if it returns false; Collect, if it fails.
func (r *Recorder) Cgroups(next Cgroups) Cgroups {
	return &cgroups{Cgroups: next, r: r, ensured: map[types.UID]bool{}}
}

type cgroups struct {
	Cgroups
	r *Recorder

	mu      sync.Mutex
	ensured map[types.UID]bool // the last Ensure succeeded
}

func (c *cgroups) Ensure(ctx context.Context, pod *v1.Pod) error {
	begun := time.Now()
	err := c.Cgroups.Ensure(ctx, pod)
	if c.again(pod.UID, err == nil) {
		return nil
	}
	c.r.operation(Operation{Component: "cgroup", Name: "ensure", Took: time.Since(begun), Pod: pod.UID}, err)
	return err
}

func (c *cgroups) Has(pod *v1.Pod) bool {
	has := c.Cgroups.Has(pod)
	if !has {
		c.r.operation(Operation{Component: "cgroup", Name: "missing", Pod: pod.UID}, nil)
	}
	return has
}

// again sets whether the last Ensure of a pod succeeded, and reports whether it and the one before it
// did.
func (c *cgroups) again(uid types.UID, succeeded bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.ensured[uid]
	if succeeded {
		c.ensured[uid] = true
	} else {
		delete(c.ensured, uid)
	}
	return before && succeeded
}

func (c *cgroups) Remove(ctx context.Context, uid types.UID) error {
	begun := time.Now()
	c.again(uid, false)
	err := c.Cgroups.Remove(ctx, uid)
	c.r.operation(Operation{Component: "cgroup", Name: "remove", Took: time.Since(begun), Pod: uid}, err)
	return err
}

func (c *cgroups) Retain(ctx context.Context, keep func(types.UID) bool) error {
	begun := time.Now()
	err := c.Cgroups.Retain(ctx, keep)
	if err != nil {
		c.r.operation(Operation{Component: "cgroup", Name: "collect", Took: time.Since(begun)}, err)
	}
	return err
}
