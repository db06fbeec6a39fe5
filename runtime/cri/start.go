package cri

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// start starts one container, and reports whether that succeeded.
func (s *podSync) start(ctx context.Context, st *plan.Start) bool {
	begun := time.Now()
	action := runtime.Action{Kind: runtime.StartContainer, Target: st.Name}
	if st.Kind == plan.Init {
		action.Kind = runtime.InitContainer
	}
	if st.InBackoff() {
		action.Reason, action.Message = "CrashLoopBackOff", st.BackoffMessage(s.pod)
		action.Err = errors.New(action.Message)
		s.event(runtime.ContainerRef(s.pod, st.Name), v1.EventTypeWarning, "BackOff", st.BackoffEvent(s.pod))
		s.retryAt(st.NotBefore)
		return s.done(action, begun)
	}
	if err := s.startContainer(ctx, st); err != nil {
		action.Err, action.Reason, action.Message = err, "RunContainerError", errorMessage(err)
		if why, ok := errors.AsType[*startError](err); ok {
			action.Reason, action.Message = why.reason, why.message
			if !why.until.IsZero() {
				s.retryAt(why.until)
			}
		}
		if ctx.Err() != nil {
			action.Err = errors.Join(ctx.Err(), err) // called off, not failed
		}
		s.retryable = true
	}
	return s.done(action, begun)
}

// An instance is what a start works on.
type instance struct {
	id      string
	attempt uint32
	runs    bool // already: there is nothing left to do
}

// bringUp takes a container from its image to running (section 4.10).
func (s *podSync) startContainer(ctx context.Context, st *plan.Start) error {
	inst := &instance{id: bare(st.Resume), attempt: uint32(st.RestartCount)}
	if st.Resume == "" {
		var err error
		if inst, err = s.create(ctx, st); err != nil {
			return err
		}
		if inst.runs {
			return s.unfinishedHook(ctx, st.Container, inst.id)
		}
	} else if s.r.checkpoints.get(s.pod.UID).Actuated[st.Name].ID != inst.id {
		s.checkpointInstance(st, inst) // whose answer was lost, or the agent before it could note it
	}
	if err := ctx.Err(); err != nil {
		return err // made, and found again by the next look; not started any more (inv-2)
	}
	s.trace.begin("StartContainer", st.Name)
	if m := s.r.cfg.Providers.Managers; m != nil {
		if err := m.PreStart(ctx, s.pod, st.Container, s.r.id(inst.id)); err != nil {
			return s.startFailed(ctx, st.Container, "PreStartHookError", "Internal PreStartContainer hook failed: ", err)
		}
	}
	if err := s.run(ctx, inst.id); err != nil {
		return s.startFailed(ctx, st.Container, "RunContainerError", "", replaceIDs(err, inst.id, st.Name))
	}
	s.event(runtime.ContainerRef(s.pod, st.Name), v1.EventTypeNormal, "Started", "Container started")
	s.linkLog(st.Name, inst)
	s.trace.begin("PostStart", st.Name)
	return s.postStart(ctx, st.Container, inst.id)
}

// startFailed records the warning that goes with a failure (rt-78), and returns
// the failure as the container's waiting reason shows it (rt-77). What was
// called off has not failed.
func (s *podSync) startFailed(ctx context.Context, c *v1.Container, reason, prefix string, err error) error {
	message := errorMessage(err)
	if ctx.Err() == nil {
		text := "Error: " + message
		if prefix != "" {
			text = prefix + message
		}
		s.event(runtime.ContainerRef(s.pod, c.Name), v1.EventTypeWarning, "Failed", text)
	}
	return &startError{reason: reason, message: message, err: err}
}

// sayName puts a container's name in the place of IDs in what the runtime says,
// so that events of one failure are one (rt-80). Where making it fails the runtime
// has used an ID that nobody else hears of, a new one each time: whatever looks
// like an ID, and not like the digest of an image, is taken for it.
func replaceIDs(err error, id, name string) error {
	said := errorMessage(err)
	named := said
	if id != "" {
		named = strings.ReplaceAll(named, id, name)
	}
	for at := 0; at < len(named); {
		n := len(named[at:]) - len(strings.TrimLeft(named[at:], "0123456789abcdef"))
		if digest := at > 0 && named[at-1] == ':'; n == idLength && !digest {
			named = named[:at] + name + named[at+n:]
			n = len(name)
		}
		at += max(n, 1)
	}
	if named == said {
		return err
	}
	return &renamedError{said: named, err: err}
}

// idLength is how many hexadecimal digits runtimes make IDs of.
const idLength = 64

// A renamed error says something else than the one it wraps.
type renamedError struct {
	said string
	err  error
}

func (e *renamedError) Error() string { return e.said }
func (e *renamedError) Unwrap() error { return e.err }

// create makes the instance, or finds the one that is there.
//
// The plan was made from an observation, and a call whose answer was lost may
// have taken effect after it. So the runtime is asked once more before anything
// is made, and again if making it failed: a time-out is no proof, and a name
// that is reserved is the opposite of one (lq-12, lq-13). Only a sandbox that is
// fresh can hold nothing: its name was free, so no call for it was lost.
func (s *podSync) create(ctx context.Context, st *plan.Start) (*instance, error) {
	c := st.Container
	s.trace.begin("EnsureImage", c.Name)
	image, user, err := s.ensure(ctx, c)
	if err != nil {
		return nil, s.noImage(ctx, c, err)
	}
	s.trace.begin("ConfigContainer", c.Name)
	config, err := s.containerConfig(ctx, c, s.nextCount(st), image, user)
	if err == nil {
		err = os.MkdirAll(s.r.logDir(s.pod, c.Name), 0o755) // rt-85
	}
	if why, ok := errors.AsType[*startError](err); ok {
		return nil, s.noImage(ctx, c, why) // of a volume (img-16)
	}
	if err != nil {
		return nil, s.startFailed(ctx, c, "CreateContainerConfigError", "", err)
	}
	if m := s.r.cfg.Providers.Managers; m != nil {
		if err := m.PreCreate(ctx, s.pod, c, config); err != nil {
			return nil, s.startFailed(ctx, c, "PreCreateHookError", "Internal PreCreateContainer hook failed: ", err)
		}
		podconfig.MapIDs(config) // of the mounts that it added
	}
	s.trace.begin("CreateContainer", c.Name)
	var inst *instance
	if !s.fresh {
		inst, err = s.findInstance(ctx, c)
	}
	if inst != nil {
		if s.r.checkpoints.get(s.pod.UID).Actuated[c.Name].ID != inst.id {
			s.checkpointInstance(st, inst) // whose answer was lost
		}
		return inst, nil
	}
	var id string
	if err == nil {
		patient, done := finishContext(ctx)
		id, err = s.r.cfg.Runtime.CreateContainer(s.r.quiet(patient), s.sandbox, config, s.config)
		done()
		inst = &instance{id: id, attempt: config.Metadata.Attempt}
	}
	if err != nil && ctx.Err() == nil {
		if found, _ := s.findInstance(ctx, c); found != nil {
			inst, err = found, nil
		}
	}
	if err != nil {
		return nil, s.startFailed(ctx, c, "CreateContainerError", "", replaceIDs(err, "", c.Name))
	}
	s.checkpointInstance(st, inst)
	s.r.backoff.Started(s.pod, *st, time.Now())
	s.event(runtime.ContainerRef(s.pod, c.Name), v1.EventTypeNormal, "Created", "Container created")
	return inst, nil
}

// noImage records the warning that goes with an image that is not there (img-10),
// and returns why it isn't.
func (s *podSync) noImage(ctx context.Context, c *v1.Container, err error) error {
	if why, ok := errors.AsType[*startError](err); ok && ctx.Err() == nil {
		s.event(runtime.ContainerRef(s.pod, c.Name), v1.EventTypeWarning, "Failed", "Error: "+why.reason)
	}
	return err
}

// nextCount returns the restart count of the instance that is about to be made.
// Where neither the runtime nor the journal knows of an instance, logs may have
// been left (rt-75).
func (s *podSync) nextCount(st *plan.Start) int32 {
	if _, ok := s.r.checkpoints.get(s.pod.UID).Restarts[st.Name]; st.NoStatus && !ok {
		return s.r.restartsLogged(s.pod, st.Name)
	}
	return st.RestartCount
}

// made notes of an instance what has to be known when the agent is another one.
func (s *podSync) checkpointInstance(st *plan.Start, inst *instance) {
	c := st.Container
	s.r.checkpoints.update(s.pod, func(rec *podCheckpoint) {
		if st.NoStatus && st.Last == nil && inst.attempt > 0 {
			rec.First[c.Name] = int32(inst.attempt)
		}
		rec.Restarts[c.Name] = max(rec.Restarts[c.Name], int32(inst.attempt))
		rec.Actuated[c.Name] = actuated{ID: inst.id, Resources: allocation.Compute(&c.Resources)}
		delete(rec.PendingPostStart, c.Name)
		if c.Lifecycle != nil && c.Lifecycle.PostStart != nil {
			rec.PendingPostStart[c.Name] = inst.id
		}
	})
}

// standing returns the instance of c that stands in the way of another one: one
// that runs, or one in the sandbox that was made from the same definition and
// never started. Nil if there is none. One that runs in another sandbox is an
// error: the plan should have stopped it. With Compat.ReplaceCreated, one that
// never started counts only if it is of the attempt that is wanted: its answer
// was lost, and its name is taken.
func (s *podSync) findInstance(ctx context.Context, c *v1.Container) (*instance, error) {
	containers, err := s.r.cfg.Runtime.ListContainers(s.r.quiet(ctx), &runtimeapi.ContainerFilter{
		LabelSelector: map[string]string{podconfig.LabelPodUID: string(s.pod.UID), podconfig.LabelContainerName: c.Name},
	})
	if err != nil {
		return nil, fmt.Errorf("cri: list containers: %w", err)
	}
	var created *instance
	for _, o := range containers {
		if o.GetMetadata().GetName() != c.Name || o.GetLabels()[podconfig.LabelPodUID] != string(s.pod.UID) {
			continue // a runtime that does not filter
		}
		inst := &instance{id: o.Id, attempt: o.Metadata.Attempt}
		switch {
		case o.State == runtimeapi.ContainerState_CONTAINER_RUNNING && o.PodSandboxId != s.sandbox:
			return nil, fmt.Errorf("instance %s of container %s still runs in sandbox %s", o.Id, c.Name, o.PodSandboxId)
		case o.State == runtimeapi.ContainerState_CONTAINER_RUNNING:
			inst.runs = true
			return inst, nil
		case o.State == runtimeapi.ContainerState_CONTAINER_CREATED && o.PodSandboxId == s.sandbox &&
			podconfig.HashOf(o.Annotations) == plan.Hash(c) && (created == nil || inst.attempt > created.attempt):
			created = inst
		}
	}
	return created, nil
}

// run starts an instance that was created. If the runtime says that it could
// not, the instance itself is asked: it may run (#139670).
func (s *podSync) run(ctx context.Context, id string) error {
	patient, done := finishContext(ctx)
	defer done()
	err := s.r.cfg.Runtime.StartContainer(s.r.quiet(patient), id)
	if err == nil {
		return nil
	}
	if st, statusErr := s.r.containerStatus(ctx, id); statusErr == nil && st.StartedAt > 0 &&
		st.State == runtimeapi.ContainerState_CONTAINER_RUNNING {
		return nil
	}
	return err
}
