package simcri

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/sim"
)

// observe tells the simulation of a change, in the words of package runtime.
func (m *machine) observe(c fakecri.Change) {
	f := sim.Fact{UID: types.UID(c.Pod), Removed: c.To == fakecri.Absent}
	m.mu.Lock()
	if c.Container == "" {
		m.sandboxes[c.ID] = f.UID
		sb := m.lastSB[c.ID]
		if c.From == fakecri.Absent {
			sb = runtime.SandboxStatus{ID: c.ID, Attempt: c.Attempt, CreatedAt: c.At}
		}
		switch c.To {
		case fakecri.Ready:
			sb.State = runtime.SandboxReady
		case fakecri.NotReady:
			sb.State = runtime.SandboxNotReady
		}
		m.lastSB[c.ID] = sb
		f.Sandbox = &sb
	} else {
		made := m.containers[c.ID]
		v := m.last[c.ID]
		if c.From == fakecri.Absent {
			v = runtime.ContainerStatus{ID: name + "://" + c.ID, Name: c.Container, RestartCount: int32(c.Attempt), CreatedAt: c.At}
		}
		v.SandboxID, v.Image = made.sandbox, made.image
		switch c.To {
		case fakecri.Created:
			v.State = runtime.ContainerCreated
		case fakecri.Running:
			v.State, v.StartedAt = runtime.ContainerRunning, c.At
		case fakecri.Exited:
			v.State, v.FinishedAt, v.ExitCode, v.Reason = runtime.ContainerExited, c.At, c.ExitCode, c.Reason
		}
		m.last[c.ID] = v
		f.Container = &v
	}
	m.mu.Unlock()
	m.setup.Observe(f)
}
