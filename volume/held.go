package volume

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A Held is one volume of one pod as a Manager knows it, for people.
type VolumeStatus struct {
	Place   Place
	Names   []string // by which the pod has it, sorted; empty: an earlier agent has left it
	State   State
	Desired bool // false: it is to be torn down
	Path    string

	// Doing is the step that is being taken: "set up", "tear down". Empty: none.
	Operation string

	// Since is when it was first wanted, or not wanted, as it is.
	Since time.Time

	// Err is why the last step failed, empty if it did not; RetryAt is when it is
	// tried again.
	Err     string
	RetryAt time.Time
}

// Held returns the volumes of a pod, by the names of their directories: those that
// are wanted and those that are still there. It does not block.
func (m *Manager) Volumes(uid types.UID) []VolumeStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []VolumeStatus
	for _, v := range m.world.of(uid) {
		h := VolumeStatus{Place: v.place, State: v.state, Desired: v.wanted || v.kept, Operation: string(v.step), Since: v.since}
		h.take(v.failed)
		if v.device != nil && v.device.failed.err != nil && v.state != InPlace {
			h.take(v.device.failed)
		}
		if v.state == InPlace {
			h.Path = v.ready.Path
			if v.ready.Device != "" {
				h.Path = v.ready.Device
			}
		}
		for name := range v.names {
			h.Names = append(h.Names, name)
		}
		slices.Sort(h.Names)
		all = append(all, h)
	}
	return all
}

func (h *VolumeStatus) take(f failure) {
	if f.err != nil {
		h.Err, h.RetryAt = f.err.Error(), f.notBefore
	}
}
