package machine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/cm/topology"
)

func TestTheScopeOfPodLevelResources(t *testing.T) {
	for _, tc := range []struct {
		gate          bool
		policy, scope string
		want          topology.Scope
	}{
		{false, "best-effort", "pod", ""},
		{true, "best-effort", "pod", topology.PodScope},
		{true, "restricted", "container", topology.ContainerScope},
		{true, "none", "pod", topology.ContainerScope}, // no alignment, and no scope
	} {
		k := &kubeletconfig.KubeletConfiguration{TopologyManagerPolicy: tc.policy, TopologyManagerScope: tc.scope, FeatureGates: map[string]bool{"PodLevelResourceManagers": tc.gate}}
		assert.Equal(t, tc.want, podLevelScope(k), "%+v", tc)
	}
}
