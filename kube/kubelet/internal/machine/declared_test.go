package machine

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/kubelet/internal/wingtest"
	"github.com/kubeparts/kubeparts/runtime"
)

func TestDeclaredFeatures(t *testing.T) {
	both := runtime.Features{UserNamespacesHostNetwork: true, MountOptions: true}
	for name, tc := range map[string]struct {
		gates  map[string]bool
		resize bool
		has    runtime.Features
		want   []string
	}{
		// Observed with a kubelet 1.37.2 on containerd 2.4, which has both features.
		"as the kubelet": {nil, true, both, []string{
			"ExtendWebSocketsToKubelet", "InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers", "RestartAllContainersOnContainerExits",
		}},
		"plain processes": {nil, false, runtime.Features{}, []string{"ExtendWebSocketsToKubelet", "RestartAllContainersOnContainerExits"}},
		"gates": {map[string]bool{"UserNamespacesHostNetworkSupport": true, "VolumeBindMountOptions": true}, false, both, []string{
			"ExtendWebSocketsToKubelet", "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport", "VolumeBindMountOptions",
		}},
		"a runtime without the features of the gates": {map[string]bool{"UserNamespacesHostNetworkSupport": true, "VolumeBindMountOptions": true}, false, runtime.Features{},
			[]string{"ExtendWebSocketsToKubelet", "RestartAllContainersOnContainerExits"}},
		"features that do not exist here": {map[string]bool{"DRANodeAllocatableResources": true, "InPlacePodVerticalScalingMemoryBackedVolumes": true}, false, both,
			[]string{"ExtendWebSocketsToKubelet", "RestartAllContainersOnContainerExits"}},
	} {
		assert.Equal(t, tc.want, declareFeatures(enabledIn(tc.gates), tc.resize, tc.has).Names, name)
	}
}

func TestAPodThatRequiresAnotherFeatureIsRejected(t *testing.T) {
	shared := &v1.Pod{Spec: v1.PodSpec{HostNetwork: true, HostUsers: new(false), Containers: []v1.Container{{Name: "main"}}}}
	mounts := &v1.Pod{Spec: v1.PodSpec{InitContainers: []v1.Container{{VolumeMounts: []v1.VolumeMount{{BindMountOptions: []string{"noexec"}}}}}}}
	d := declareFeatures(enabledIn(nil), true, runtime.Features{UserNamespacesHostNetwork: true, MountOptions: true})
	rejects := func(pod *v1.Pod) string {
		r := d.Admit(t.Context(), pod)
		if r == nil {
			return ""
		}
		assert.Equal(t, "PodFeatureUnsupported", r.Reason)
		assert.False(t, r.Deferred)
		return r.Message
	}
	assert.Empty(t, rejects(&v1.Pod{Spec: v1.PodSpec{HostNetwork: true}}))
	assert.Equal(t, "Pod requires node features that are not available: UserNamespacesHostNetworkSupport", rejects(shared))
	assert.Equal(t, "Pod requires node features that are not available: VolumeBindMountOptions", rejects(mounts))
	d = declareFeatures(enabledIn(map[string]bool{"UserNamespacesHostNetworkSupport": true, "VolumeBindMountOptions": true}), true, runtime.Features{UserNamespacesHostNetwork: true})
	assert.Empty(t, rejects(shared))
	assert.Equal(t, "Pod requires node features that are not available: VolumeBindMountOptions", rejects(mounts), "the runtime does not have it")
}

type brokenFeatures struct{}

func (brokenFeatures) Features(context.Context) (runtime.Features, error) {
	return runtime.Features{}, errors.New("unavailable")
}

// A runtime that does not respond has no features until the kubelet restarts.
func TestDeclaredFeaturesWithoutRuntime(t *testing.T) {
	b := wingtest.Base(t, wingtest.Standalone(t, "featureGates: {VolumeBindMountOptions: true}\n"))
	assert.Equal(t, []string{"ExtendWebSocketsToKubelet", "RestartAllContainersOnContainerExits"}, newDeclaredFeatures(t.Context(), b, brokenFeatures{}, false).Names)
}

// enabledIn returns the function that reports whether a gate is set in a map.
func enabledIn(gates map[string]bool) func(string) bool {
	return func(gate string) bool { return gates[gate] }
}
