package volume

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A Status is the status of one volume of one pod, for status pages and other diagnostics.
type Status struct {
	Place   Place
	Names   []string // in the pod's spec, sorted; empty for a volume that an earlier agent mounted
	State   string   // "not mounted", "uncertain" or "mounted"
	Desired bool     // false: it is to be torn down
	Path    string   // directory or device; empty unless State is "mounted"

	// Operation is the operation in progress, such as "set up" or "tear down"; empty if
	// there is none.
	Operation string

	// Since is the time at which Desired changed last.
	Since time.Time

	// Err is the error of the last operation, empty if it succeeded. RetryAt is the time of
	// the next attempt.
	Err     string
	RetryAt time.Time
}

// Volumes returns the status of the volumes of a pod that are desired or still mounted, sorted by
// directory name. The caller owns the result. It does not block. Safe for concurrent use.
func (m *Manager) Volumes(uid types.UID) []Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Status
	for _, v := range m.world.of(uid) {
		s := Status{
			Place: v.place, State: v.state.String(), Desired: v.desired || v.unclaimed, Operation: string(v.step), Since: v.since,
		}
		s.setFailure(v.failed)
		if v.device != nil && v.device.failed.err != nil && v.state != inPlace {
			s.setFailure(v.device.failed)
		}
		if v.state == inPlace {
			s.Path = v.ready.Path
			if v.ready.Device != "" {
				s.Path = v.ready.Device
			}
		}
		for name := range v.names {
			s.Names = append(s.Names, name)
		}
		slices.Sort(s.Names)
		all = append(all, s)
	}
	return all
}

func (s *Status) setFailure(f failure) {
	if f.err != nil {
		s.Err, s.RetryAt = f.err.Error(), f.notBefore
	}
}
