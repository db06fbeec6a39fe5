package replay

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/sim"
)

// exchange makes a call. A recorded call of the same kind determines its duration and its error.
func (m *model) exchange(ctx context.Context, method, key, pace string, request []byte, answer proto.Message) error {
	w := m.w
	f := parse(request)
	w.mu.Lock()
	began := w.now()
	runs := m.isRunning(method, f)
	c := m.recordedCall(method, key, f)
	if c != nil && (c.err != nil || c.hangs) {
		m.note(sim.Entry{Kind: sim.StepTaken, Step: &sim.Step{At: began, Do: sim.Fault, Calls: "runtime", Kind: sim.Error, Percent: 100, For: c.end - c.begin}})
	}
	if method == "StopContainer" && (c == nil || c.err == nil) {
		m.beginStop(f, c, request)
	}
	w.mu.Unlock()
	switch {
	case c == nil:
	case c.hangs:
		<-ctx.Done()
		return contextError(ctx)
	default:
		if err := w.sleepUntil(ctx, pace, aligned(began, c.begin, c.end, w.tolerance)); err != nil {
			return err
		}
	}
	if method == "StopContainer" && (c == nil || c.err == nil) {
		if err := m.awaitExit(ctx, f.ContainerID); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if c != nil && c.err != nil {
		m.lostAnswer(c, method, request, f)
		return newError(c.err)
	}
	if changes[method] {
		action := m.action(method, f)
		err := m.change(c, method, request, f, answer)
		if err == nil && runs {
			m.decide(method, action, began, f)
		}
		return err
	}
	return m.answer(c, method, request, f, answer)
}

// recordedCall returns the recorded call that determines the duration and the error of a call; nil if there
// is none. Errors about things that do not exist are those of the recorded agent. The caller holds mu.
func (m *model) recordedCall(method, key string, f fields) *call {
	now := m.w.now()
	if now > m.w.x.end {
		return nil // everything succeeds from then on
	}
	var c *call
	if changes[method] {
		action := m.action(method, f)
		q := m.recorded[action]
		for len(q) > 1 && (q[1].begin-now).Abs() < (q[0].begin-now).Abs() {
			q = q[1:]
		}
		if len(q) == 0 {
			return nil
		}
		c, m.recorded[action] = q[0], q[1:]
	} else {
		extra := false
		if c, extra = m.w.read(key); c == nil || extra && (c.err != nil || c.hangs) || (c.begin-now).Abs() > m.w.tolerance && (c.err != nil || c.hangs) {
			return nil
		}
		early := m.foreign && c.begin > now // else it would wait for the other program
		if early && (c.err != nil || c.hangs) {
			return nil
		}
		if early || (c.begin-now).Abs() > m.w.tolerance {
			copied := *c
			copied.begin, copied.end = 0, 0 // its answer may be used, without its duration
			return &copied
		}
	}
	if c.err != nil && c.err.Code == codes.NotFound.String() && method != "PullImage" {
		return nil
	}
	return c
}

// beginStop schedules the exit of a container that receives TERM. The caller holds mu.
func (m *model) beginStop(f fields, c *call, request []byte) {
	t := m.items[f.ContainerID]
	if t == nil || t.name == "" {
		return
	}
	var req, recorded runtimeapi.StopContainerRequest
	_ = decode(request, &req)
	m.checkGrace(t, req.Timeout)
	t.stops++
	if t.status.State != runtime.ContainerRunning {
		return
	}
	timeout := time.Duration(min(max(req.Timeout, 0), 1<<30)) * time.Second
	after, code, reason, message := min(50*time.Millisecond, timeout), int32(143), "", ""
	if c != nil {
		_ = decode(c.request, &recorded)
		after = min(c.end-c.begin, timeout)
		if recorded.Timeout > 0 && c.end-c.begin >= time.Duration(min(recorded.Timeout, 1<<30))*time.Second-500*time.Millisecond {
			after = timeout // it ignores TERM
		}
	}
	if after >= timeout {
		code = 137
	}
	if e := t.exited; e != nil && t.stoppedByAgent() {
		code, reason, message = e.ExitCode, e.Reason, e.Message
	}
	m.exitLater(t, m.w.now()+after, code, reason, message, true)
}

// awaitExit blocks until a container does not run.
func (m *model) awaitExit(ctx context.Context, id string) error {
	m.w.mu.Lock()
	t := m.items[id]
	m.w.mu.Unlock()
	if t == nil || t.terminated == nil {
		return nil
	}
	m.w.mu.Lock()
	running := t.status.State == runtime.ContainerRunning
	m.w.mu.Unlock()
	if !running {
		return nil
	}
	select {
	case <-t.terminated:
		return m.w.pace(ctx, "stopped "+id)
	case <-ctx.Done():
		return contextError(ctx)
	}
}

// lostAnswer applies a call whose recorded error was that of the answer only: what it
// creates exists in the recording. The caller holds mu.
func (m *model) lostAnswer(c *call, method string, request []byte, f fields) {
	if method != "RunPodSandbox" && method != "CreateContainer" || f.Config == nil {
		return
	}
	if t := m.w.x.absent(m, m.w.x.podOf(f), containerName(method, f), f.Config.Metadata.Attempt); t != nil && t.create == nil && t.first() < c.end+time.Minute {
		_ = m.create(t, method, request, f)
	}
}

// change applies a changing call that succeeds. The caller holds mu.
func (m *model) change(c *call, method string, request []byte, f fields, answer proto.Message) error {
	t := m.items[f.ContainerID+f.PodSandboxID]
	switch a := answer.(type) {
	case *runtimeapi.RunPodSandboxResponse:
		return m.createNext(c, method, request, f, &a.PodSandboxId)
	case *runtimeapi.CreateContainerResponse:
		return m.createNext(c, method, request, f, &a.ContainerId)
	case *runtimeapi.PullImageResponse:
		if f.Image == nil {
			return errNotRecorded(method)
		}
		m.images[f.Image.Image] = true
		if c != nil {
			_ = decode(c.answer, a) // one without a reference follows
		}
		a.ImageRef = cmp.Or(a.ImageRef, syntheticID(f.Image.Image))
		return nil
	}
	switch method {
	case "RemoveImage":
		if f.Image != nil {
			m.images[f.Image.Image] = false
		}
		return nil
	case "StartContainer":
		return m.start(t, f)
	case "RemoveContainer":
		m.removeContainer(t)
	case "StopPodSandbox":
		if t != nil && t.name == "" {
			m.sandboxDies(t, true)
		}
	case "RemovePodSandbox":
		m.removeSandbox(t)
	}
	return nil
}

// createNext creates the recorded thing that the replayed agent is next to create, or another one.
func (m *model) createNext(c *call, method string, request []byte, f fields, id *string) error {
	if f.Config == nil || method == "CreateContainer" && f.SandboxConfig == nil {
		return status.Error(codes.InvalidArgument, "replay: a request without metadata")
	}
	uid, name := m.w.x.podOf(f), containerName(method, f)
	var t *thing
	if c != nil {
		answered := parse(c.answer)
		if known := m.w.x.things[answered.ContainerID+answered.PodSandboxID]; known != nil && m.free(known) {
			t = known
		}
	}
	if t == nil {
		t = m.w.x.absent(m, uid, name, f.Config.Metadata.Attempt)
	}
	if t == nil {
		m.created++
		t = &thing{id: fmt.Sprintf("unrecorded-%d", m.created), pod: uid, name: name, attempt: f.Config.Metadata.Attempt}
	}
	*id = t.id
	return m.create(t, method, request, f)
}

// start starts a container, which exits when the recorded one did. The caller holds mu.
func (m *model) start(t *item, f fields) error {
	if t == nil || t.name == "" {
		return status.Errorf(codes.NotFound, "replay: container %q not found", f.ContainerID)
	}
	box := m.items[t.sandbox]
	if t.status.State != runtime.ContainerCreated || box == nil || !box.ready {
		return status.Errorf(codes.FailedPrecondition, "replay: container %q is %v, or its sandbox is not ready", t.id, t.status.State)
	}
	t.status.State, t.status.StartedAt = runtime.ContainerRunning, time.Now()
	m.containerChanged(t, sim.Started, false)
	m.scheduleExit(t)
	return nil
}

// scheduleExit schedules the exit of a container that the recorded agent did not stop: at
// its recorded time, or after its recorded duration if it was started at another time.
func (m *model) scheduleExit(t *item) {
	e := t.exited
	if e == nil || t.stoppedByAgent() {
		return
	}
	at := t.thing.exit
	if began := time.Unix(0, e.StartedAt).Sub(m.w.start); e.StartedAt > 0 && (began-m.w.now()).Abs() > m.w.tolerance {
		at = m.w.now() + max(0, min(time.Duration(e.FinishedAt-e.StartedAt), 50*365*24*time.Hour))
	}
	m.exitLater(t, at, e.ExitCode, e.Reason, e.Message, false)
}

func (m *model) removeContainer(t *item) {
	if t == nil || t.name == "" {
		return
	}
	m.exited(t, 137, "", "", true)
	delete(m.items, t.id)
	m.containerChanged(t, sim.Removed, false)
}

func (m *model) removeSandbox(t *item) {
	if t == nil || t.name != "" {
		return
	}
	m.sandboxDies(t, true)
	for _, c := range m.sorted() {
		if c.name != "" && c.sandbox == t.id {
			m.removeContainer(c)
		}
	}
	delete(m.items, t.id)
	m.sandboxChanged(t, sim.SandboxRemoved)
}
