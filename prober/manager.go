package prober

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Manager probes the containers of pods.
type Manager struct {
	cfg Config
}

// New returns a Manager for cfg, which probes nothing before Run.
func New(cfg Config) (*Manager, error) {
	cfg, err := cfg.fill()
	if err != nil {
		return nil, err
	}
	return &Manager{cfg: cfg}, nil
}

// Run probes until ctx ends, and returns nil when the probes that were under way
// have returned. It can be called once.
func (m *Manager) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Add makes the probes of a pod those of its spec: new ones begin, those that
// are gone end, and others go on with what they have found out (F-09). A pod
// that is probed already is nothing special, so it is called at each sync.
func (m *Manager) Add(pod *v1.Pod) {}

// Look says that containers of the pod may have changed, as pleg's events tell.
// Without it that is noticed when a probe is due.
func (m *Manager) Look(uid types.UID) {}

// Trigger runs the readiness probes of the pod at once (prober-8).
func (m *Manager) Trigger(uid types.UID) {}

// StopLiveness ends the liveness and startup probes of the pod, which is to
// terminate; readiness is still probed (prober-74).
func (m *Manager) StopLiveness(pod *v1.Pod) {}

// Remove ends all probes of the pod (prober-75).
func (m *Manager) Remove(uid types.UID) {}

// Results returns what liveness and startup probes of the pod have come to.
func (m *Manager) Results(pod *v1.Pod) *runtime.ProbeResults { return nil }

// Containers returns what the probes say of the pod's containers, by name, for
// its status.
func (m *Manager) Containers(uid types.UID) map[string]Probed { return nil }
