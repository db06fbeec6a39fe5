package simcri

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/sim"
)

// observe reports a change to the simulation, converted to the types of package runtime.
func (m *machine) observe(c fakecri.Change) {
	f := sim.Fact{UID: types.UID(c.Pod), Removed: c.To == fakecri.Absent}
	m.mu.Lock()
	m.uids[c.ID] = f.UID
	if c.Container == "" {
		sb := m.sandboxes[c.ID]
		if c.From == fakecri.Absent {
			sb = runtime.SandboxStatus{ID: c.ID, Attempt: c.Attempt, CreatedAt: c.At}
		}
		switch c.To {
		case fakecri.Ready:
			sb.State = runtime.SandboxReady
		case fakecri.NotReady:
			sb.State = runtime.SandboxNotReady
		}
		m.sandboxes[c.ID] = sb
		f.Sandbox = &sb
	} else {
		v := m.containers[c.ID]
		if c.From == fakecri.Absent {
			v = runtime.ContainerStatus{
				ID: name + "://" + c.ID, Name: c.Container, RestartCount: int32(c.Attempt), CreatedAt: c.At,
				SandboxID: c.Sandbox, Image: c.Image,
			}
		}
		switch c.To {
		case fakecri.Created:
			v.State = runtime.ContainerCreated
		case fakecri.Running:
			v.State, v.StartedAt = runtime.ContainerRunning, c.At
		case fakecri.Exited:
			v.State, v.FinishedAt, v.ExitCode, v.Reason = runtime.ContainerExited, c.At, c.ExitCode, c.Reason
		}
		m.containers[c.ID] = v
		f.Container = &v
	}
	m.mu.Unlock()
	m.setup.Observe(f)
}
