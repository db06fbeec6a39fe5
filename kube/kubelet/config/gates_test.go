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

// The list is that of the gates that the code of the kubelet reads; see tools/kubernetes/facts.
func TestEachGateThatAKubeletReadsIsDescribed(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "kubelet-gates.txt"))
	require.NoError(t, err)
	for _, name := range strings.Fields(string(text)) {
		_, described := gates[name]
		assert.True(t, described != slices.Contains(settableGates, name), "%s: want it in gates or settableGates", name)
	}
	for _, name := range append(slices.Collect(maps.Keys(gates)), settableGates...) {
		assert.Contains(t, kubernetesGates, name, "no gate of this release")
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
	assert.Empty(t, gateWarnings(map[string]bool{"ProcMountType": true, "HostnameOverride": false, "JobManagedBy": true, "AllAlpha": false}))
}

func TestGatesOfAStageAreSetTogether(t *testing.T) {
	assert.True(t, enabled(map[string]bool{"AllAlpha": true}, "DefaultPodSysctls"))
	assert.False(t, enabled(map[string]bool{"AllAlpha": true, "DefaultPodSysctls": false}, "DefaultPodSysctls"))
	assert.False(t, enabled(map[string]bool{"AllBeta": false}, "MemoryQoS"))
	assert.True(t, enabled(map[string]bool{"AllBeta": false}, "NodeSwap"), "stable")
}
