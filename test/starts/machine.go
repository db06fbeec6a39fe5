//go:build unix

package starts

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A machine is a CRI runtime at a socket. It records the calls for each pod.
type machine interface {
	endpoint() string

	// container is the container of a pod. The runtime has its image.
	container() v1.Container

	// count returns the number of all calls.
	count() int

	// callsOf returns the calls for each pod: RunPodSandbox, PodSandboxStatus, CreateContainer, StartContainer.
	callsOf() (map[types.UID][]call, error)
}

// A call is a CRI call for a pod.
type call struct {
	method     string
	begin, end time.Time
}

// newMachine starts a runtime.
func newMachine(ctx context.Context, t testing.TB, o options, dir string) (machine, error) {
	if o.containerd {
		return newRealMachine(t, dir)
	}
	return newFakeMachine(ctx, t, dir, o.latency)
}

// complete sets the calls of pods.
func complete(m machine, pods []milestones) error {
	all, err := m.callsOf()
	for i := range pods {
		p := &pods[i]
		p.calls = all[p.uid]
		p.running = p.find("StartContainer").end
	}
	return err
}
