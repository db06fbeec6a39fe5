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
	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// start starts one container and reports whether it succeeded.
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
			action.Err = errors.Join(ctx.Err(), err) // canceled, not failed
		}
		s.retryable = true
	}
	return s.done(action, begun)
}

// An instance is the instance that is started.
type instance struct {
	id      string
	attempt uint32
	runs    bool // it already runs
}

// startContainer pulls the image, and creates and starts an instance.
func (s *podSync) startContainer(ctx context.Context, st *plan.Start) error {
	inst := &instance{id: runtimeID(st.Resume), attempt: uint32(st.RestartCount)}
	if st.Resume == "" {
		var err error
		if inst, err = s.create(ctx, st); err != nil {
			return err
		}
		if inst.runs {
			return s.unfinishedHook(ctx, st.Container, inst.id)
		}
	} else if s.r.checkpoints.get(s.pod.UID).Actuated[st.Name].ID != inst.id {
		s.checkpointInstance(st, inst) // created before a lost response or a restart of the agent
	}
	if err := ctx.Err(); err != nil {
		return err // the next sync finds the created instance
	}
	s.trace.begin("StartContainer", st.Name)
	if m := s.r.cfg.Providers.Managers; m != nil {
		if err := m.PreStart(ctx, s.pod, st.Container, s.r.id(inst.id)); err != nil {
			s.unstarted = notStarted
			return s.startFailed(ctx, st.Container, "PreStartHookError", "Internal PreStartContainer hook failed: ", err)
		}
	}
	if err := s.run(ctx, st.Name, inst.id); err != nil {
		return s.startFailed(ctx, st.Container, "RunContainerError", "", s.unresolved(ctx, st.Container, replaceIDs(err, inst.id, st.Name)))
	}
	s.event(runtime.ContainerRef(s.pod, st.Name), v1.EventTypeNormal, "Started", "Container started")
	s.linkLog(st.Name, inst)
	s.trace.begin("PostStart", st.Name)
	return s.postStart(ctx, st.Container, inst.id)
}

// startFailed records the event of a failure and returns it with the container's waiting
// reason. Without an event if ctx is done.
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

// replaceIDs replaces container IDs in the runtime's message by the container's name, so
// that repeated failures have equal events. A failed creation has a new, unknown ID in
// each attempt, so every string of idLength hexadecimal digits is replaced that is not an
// image digest.
func replaceIDs(err error, id, name string) error {
	text := errorMessage(err)
	named := text
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
	if named == text {
		return err
	}
	return &renamedError{text: named, err: err}
}

// idLength is the length of container IDs, in hexadecimal digits.
const idLength = 64

// A renamedError wraps an error with another text.
type renamedError struct {
	text string
	err  error
}

func (e *renamedError) Error() string { return e.text }
func (e *renamedError) Unwrap() error { return e.err }

// configure pulls the image of a container, and returns the configuration of its new instance.
func (s *podSync) configure(ctx context.Context, st *plan.Start) (*runtimeapi.ContainerConfig, error) {
	c := st.Container
	s.trace.begin("EnsureImage", c.Name)
	image, user, err := s.ensure(ctx, c)
	if err != nil {
		return nil, s.imageFailed(ctx, c, err)
	}
	s.trace.begin("ConfigContainer", c.Name)
	config, err := s.containerConfig(ctx, c, s.nextCount(st), image, user)
	if err == nil {
		err = os.MkdirAll(s.r.logDir(s.pod, c.Name), 0o755)
	}
	if why, ok := errors.AsType[*startError](err); ok {
		return nil, s.imageFailed(ctx, c, why) // of an image volume
	}
	if err != nil {
		return nil, s.startFailed(ctx, c, "CreateContainerConfigError", "", err)
	}
	if m := s.r.cfg.Providers.Managers; m != nil {
		if err := m.PreCreate(ctx, s.pod, c, config); err != nil {
			return nil, s.startFailed(ctx, c, "PreCreateHookError", "Internal PreCreateContainer hook failed: ", err)
		}
		podconfig.AddIDMappings(config) // for the mounts that Managers added
	}
	return config, nil
}

// create creates the instance, or returns an existing one.
//
// A call whose response was lost may have taken effect after the status was observed. So
// the containers are listed before the creation, and again if it failed: after a timeout
// the container may exist, and a reserved name means that it does. A new sandbox is
// empty.
func (s *podSync) create(ctx context.Context, st *plan.Start) (*instance, error) {
	c := st.Container
	config, err := s.configure(ctx, st)
	if err != nil {
		return nil, err
	}
	turn, err := s.awaitTurn(ctx, createContainer, "CreateContainer", c.Name)
	if err != nil {
		return nil, err
	}
	defer turn.end(errNotMade)
	var inst *instance
	if !s.fresh {
		inst, err = s.findInstance(ctx, c)
	}
	if inst != nil {
		if s.r.checkpoints.get(s.pod.UID).Actuated[c.Name].ID != inst.id {
			s.checkpointInstance(st, inst) // its response was lost
		}
		return inst, nil
	}
	var id string
	if err == nil {
		patient, done := finishContext(ctx)
		id, err = s.r.cfg.Runtime.CreateContainer(s.r.quiet(patient), s.sandbox, config, s.config)
		done()
		turn.end(err)
		inst = &instance{id: id, attempt: config.Metadata.Attempt}
	}
	if err != nil && ctx.Err() == nil {
		if found, _ := s.findInstance(ctx, c); found != nil {
			inst, err = found, nil
		}
	}
	if err != nil {
		return nil, s.startFailed(ctx, c, "CreateContainerError", "", s.unresolved(ctx, c, replaceIDs(err, "", c.Name)))
	}
	s.trace.begin("Checkpoint", c.Name)
	s.checkpointInstance(st, inst)
	s.event(runtime.ContainerRef(s.pod, c.Name), v1.EventTypeNormal, "Created", "Container created")
	return inst, nil
}

// imageFailed records the event of a missing image and returns err.
func (s *podSync) imageFailed(ctx context.Context, c *v1.Container, err error) error {
	if why, ok := errors.AsType[*startError](err); ok && ctx.Err() == nil {
		s.event(runtime.ContainerRef(s.pod, c.Name), v1.EventTypeWarning, "Failed", "Error: "+why.reason)
	}
	return err
}

// nextCount returns the restart count of the instance to create. If neither the runtime nor
// the checkpoint has an instance, it is derived from the log directory.
func (s *podSync) nextCount(st *plan.Start) int32 {
	if _, ok := s.r.checkpoints.get(s.pod.UID).Restarts[st.Name]; st.NoStatus && !ok {
		return s.r.restartsLogged(s.pod, st.Name)
	}
	return st.RestartCount
}

// checkpointInstance stores the state of an instance that a restarted agent needs. The delay after its exit
// counts it, also if the response of the call that created it was lost.
func (s *podSync) checkpointInstance(st *plan.Start, inst *instance) {
	c := st.Container
	created := *st
	created.Resume = ""
	s.r.backoff.Started(s.pod, created, time.Now())
	s.r.checkpoints.update(s.pod, func(rec *podCheckpoint) {
		if st.NoStatus && st.Last == nil && inst.attempt > 0 {
			rec.First[c.Name] = int32(inst.attempt)
		}
		rec.countInstance(c.Name, inst.attempt)
		rec.Actuated[c.Name] = actuated{ID: inst.id, Resources: allocation.ComputeResources(&v1.ResourceRequirements{
			Requests: c.Resources.Requests, Limits: podspec.Limits(s.pod, c),
		})}
		if expands(c) {
			if rec.Expanded == nil {
				rec.Expanded = map[string]bool{}
			}
			rec.Expanded[c.Name] = true
		}
		delete(rec.PendingPostStart, c.Name)
		delete(rec.Replaced, c.Name)
		if c.Lifecycle != nil && c.Lifecycle.PostStart != nil {
			rec.PendingPostStart[c.Name] = inst.id
		}
	})
}

// findInstance returns the existing instance of c to use instead of a new one: a running
// one, or one in the sandbox that was created from the same spec and not started. It
// returns nil if there is none, and an error if an instance runs in another sandbox.
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
			continue // the runtime ignored the filter
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

// run starts a created instance. If the call fails, the status of the instance decides: it
// may be running (kubernetes/kubernetes#139670). It sets unstarted.
func (s *podSync) run(ctx context.Context, container, id string) error {
	turn, err := s.awaitTurn(ctx, startContainer, "StartContainer", container)
	if err != nil {
		return err
	}
	patient, done := finishContext(ctx)
	defer done()
	err = s.r.cfg.Runtime.StartContainer(s.r.quiet(patient), id)
	turn.end(err)
	if err == nil {
		return nil
	}
	s.unstarted = maybeStarted
	if st, statusErr := s.r.containerStatus(ctx, id); statusErr == nil {
		switch {
		case st.StartedAt == 0:
			s.unstarted = notStarted
		case st.State == runtimeapi.ContainerState_CONTAINER_RUNNING:
			s.unstarted = 0
			return nil
		}
	}
	return err
}
