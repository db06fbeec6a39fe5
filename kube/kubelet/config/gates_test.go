package config

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The list has the gates that the code of the kubelet reads; see tools/kubernetes/facts.
func TestEachGateThatAKubeletReadsIsDescribed(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "kubelet-gates.txt"))
	require.NoError(t, err)
	for _, name := range strings.Fields(string(text)) {
		_, described := gates[name]
		described = described || slices.Contains(laterGates, name)
		assert.True(t, described != slices.Contains(settableGates, name), "%s: want it in gates or settableGates", name)
	}
	for _, name := range append(slices.Collect(maps.Keys(gates)), settableGates...) {
		_, known := specOf(name)
		assert.True(t, known, "%s: no gate of this release", name)
	}
}

// In a release without a gate that it had, the value that the gate was locked to is accepted with a
// warning. The other one is an error, as is a gate that never existed.
func TestRemovedGates(t *testing.T) {
	const name = "NodeSwap"
	if spec, ok := kubernetesGates[name]; ok {
		delete(kubernetesGates, name)
		t.Cleanup(func() { kubernetesGates[name] = spec })
	}
	assert.Empty(t, checkGates(map[string]bool{name: true}))
	assert.Equal(t, []string{"featureGates.NodeSwap has no effect: Kubernetes has removed the gate"}, gateWarnings(map[string]bool{name: true}))
	assert.Len(t, checkGates(map[string]bool{name: false}), 1)
	assert.True(t, enabled(nil, name))
	assert.Len(t, checkGates(map[string]bool{"NoSuchGate": true}), 1)
}

// Where a removed gate still exists, the two tables agree.
func TestTheValuesOfRemovedGates(t *testing.T) {
	for name, value := range removedGates {
		if spec, ok := kubernetesGates[name]; ok {
			assert.Equal(t, value, spec.enabled, name)
		}
	}
}

func TestNoGateOfKubernetesIsUnknown(t *testing.T) {
	for name, spec := range kubernetesGates {
		assert.Empty(t, checkGates(map[string]bool{name: spec.enabled}), name)
	}
	assert.Empty(t, checkGates(nil))
	require.Len(t, checkGates(map[string]bool{"NoSuchGate": true, "NoOtherGate": false}), 2)
}

func TestGatesOfOtherProgramsCauseNoWarning(t *testing.T) {
	assert.Empty(t, gateWarnings(map[string]bool{"ProcMountType": true, "HostnameOverride": false, "StrictIPCIDRValidation": true, "AllAlpha": false}))
}

func TestGatesOfAStageAreSetTogether(t *testing.T) {
	assert.True(t, enabled(map[string]bool{"AllAlpha": true}, "DefaultPodSysctls"))
	assert.False(t, enabled(map[string]bool{"AllAlpha": true, "DefaultPodSysctls": false}, "DefaultPodSysctls"))
	assert.False(t, enabled(map[string]bool{"AllBeta": false}, "MemoryQoS"))
	assert.True(t, enabled(map[string]bool{"AllBeta": false}, "NodeSwap"), "stable")
}
