package cm_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/cgroups"
)

// weightsOfKubelet are CPU requests in milli-CPUs and the weights that kubelet 1.37.2 sets
// for them: 1 + (shares-2)*9999/262142, computed by hand.
var weightsOfKubelet = []struct{ milli, weight int64 }{
	{10, 1}, {50, 2}, {100, 4}, {200, 8}, {250, 10}, {500, 20}, {1000, 39}, {2000, 79}, {4000, 157}, {8000, 313}, {32000, 1250}, {256000, 10000},
}

// Kubepods and reserved cgroups list the CPUs, so that systemd keeps the controller.
func TestTheCPUsOfKubepodsAndReservedCgroups(t *testing.T) { // cm-47
	cfg := cm.Config{
		Reserved: cm.Reserved{System: list("cpu=1 memory=1Gi"), Kube: list("cpu=1")},
		Enforce:  cm.Enforcement{Keys: []string{"pods", "system-reserved", "kube-reserved-compressible"}, SystemReservedCgroup: "/system", KubeReservedCgroup: "/kube"},
	}
	for list, cpus := range map[string]cpuset.CPUSet{"": {}, "0-3,8": cpuset.New(0, 1, 2, 3, 8)} {
		cfg.Enforce.CPUs = cpus
		n := newNode(t, cfg)
		n.tree.Tamper(cgroups.Name{"system"}, cgroups.Resources{})
		n.tree.Tamper(cgroups.Name{"kube"}, cgroups.Resources{})
		require.NoError(t, n.Setup(t.Context()))
		require.NoError(t, n.Ensure(t.Context(), pod("g-1", guaranteed)))
		for path, want := range map[string]string{"/kubepods": list, "/system": list, "/kube": list, "/kubepods/burstable": "", "/kubepods/podg-1": ""} {
			assert.Equal(t, want, n.has(t, path).CPUs, path)
		}
	}
}

// The weights of siblings are in the ratio of their requests, as the kubelet's: a pod with
// 32 CPUs gets as much as 320 pods with 100m together.
func TestWeightsAreProportionalToRequests(t *testing.T) { // cm-3, cm-18, cm-23, cm-25
	for _, tc := range weightsOfKubelet {
		request := fmt.Sprintf("cpu=%dm memory=1Mi", tc.milli)
		n := newNode(t, cm.Config{
			Capacity: list(fmt.Sprintf("cpu=%dm memory=64Gi", 4*tc.milli)), Reserved: cm.Reserved{System: list(request), Kube: list(fmt.Sprintf("cpu=%dm", 2*tc.milli))},
			Enforce: cm.Enforcement{Keys: []string{"pods", "system-reserved"}, SystemReservedCgroup: "/system"},
		})
		n.tree.Tamper(cgroups.Name{"system"}, cgroups.Resources{})
		require.NoError(t, n.Setup(t.Context()))
		for _, p := range []*v1.Pod{pod("g-1", request+" / "+request), pod("b-1", request+" /"), pod("e-1", besteffort)} {
			require.NoError(t, n.Ensure(t.Context(), p))
		}
		for path, want := range map[string]int64{
			"/kubepods": tc.weight, "/kubepods/podg-1": tc.weight, "/kubepods/burstable": tc.weight, "/kubepods/burstable/podb-1": tc.weight,
			"/kubepods/besteffort": 1, "/kubepods/besteffort/pode-1": 1, "/system": tc.weight,
		} {
			assert.Equal(t, want, *n.has(t, path).CPUWeight, "%dm: %s", tc.milli, path)
		}
	}
}
