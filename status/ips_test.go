package status_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

func TestAddressesOfDifferentFamiliesAreAnEventOnce(t *testing.T) { // st-44
	var events []string
	host := []string{"10.1.0.1"}
	m, err := status.New(status.Config{
		Sink: new(status.MemorySink), Facts: []func(*status.Facts){func(f *status.Facts) { f.HostIPs = host }},
		Record: func(e runtime.Event) { events = append(events, e.Reason) },
	})
	require.NoError(t, err)
	pod := podOf(v1.RestartPolicyAlways, "a")
	pod.Spec.HostNetwork = true
	report := func() { m.Report(pod, seen(runningC("a", 0)), nil, runtime.Termination{}) }
	report()
	assert.Empty(t, events)
	host = []string{"fd00::1"} // the node is another's now, the pod's address stays
	report()
	report()
	assert.Equal(t, []string{"HostIPsIPFamilyMismatch"}, events)
}
