package config

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

func TestAFlagSetsItsField(t *testing.T) {
	cfg, _, err := Read("", "")
	require.NoError(t, err)
	set := func(name, value string) error {
		for _, f := range Fields() {
			if f.Flag == name {
				return f.Set(cfg, value, false)
			}
		}
		t.Fatalf("no flag %s", name)
		return nil
	}
	for name, value := range map[string]string{
		"max-pods": "7", "cpu-cfs-quota-period": "50ms", "cgroups-per-qos": "false", "eviction-hard": "memory.available<100Mi,nodefs.available<10%",
		"eviction-soft": "", "qos-reserved": "memory=50%", "enforce-node-allocatable": "pods,system-reserved", "cluster-dns": "10.0.0.10",
		"manifest-url-header": "a:b,c: d", "feature-gates": "MemoryQoS=true", "image-gc-high-threshold": "70", "register-with-taints": "a=b:NoSchedule", "v": "4",
		"resolv-conf": "", "eviction-pressure-transition-period": "30s", "eviction-max-pod-grace-period": "9", "kube-api-qps": "0",
	} {
		require.NoError(t, set(name, value), name)
	}
	assert.EqualValues(t, 7, cfg.MaxPods)
	assert.Equal(t, 50*time.Millisecond, cfg.CPUCFSQuotaPeriod.Duration)
	assert.False(t, *cfg.CgroupsPerQOS)
	assert.Equal(t, map[string]string{"memory.available": "100Mi", "nodefs.available": "10%"}, cfg.EvictionHard)
	assert.Equal(t, map[string]string{}, cfg.EvictionSoft)
	assert.Equal(t, map[string]string{"memory": "50%"}, cfg.QOSReserved)
	assert.Equal(t, []string{"pods", "system-reserved"}, cfg.EnforceNodeAllocatable)
	assert.Equal(t, []string{"10.0.0.10"}, cfg.ClusterDNS)
	assert.Equal(t, map[string][]string{"a": {"b"}, "c": {"d"}}, cfg.StaticPodURLHeader)
	assert.Equal(t, map[string]bool{"MemoryQoS": true}, cfg.FeatureGates)
	assert.EqualValues(t, 70, *cfg.ImageGCHighThresholdPercent)
	assert.Equal(t, []v1.Taint{{Key: "a", Value: "b", Effect: v1.TaintEffectNoSchedule}}, cfg.RegisterWithTaints)
	assert.EqualValues(t, 4, cfg.Logging.Verbosity)
	assert.Equal(t, "", *cfg.ResolverConfig)
	assert.Zero(t, *cfg.KubeAPIQPS)
	for name, value := range map[string]string{
		"max-pods": "many", "cpu-cfs-quota-period": "50", "cgroups-per-qos": "maybe", "eviction-hard": "memory.available=1", "register-with-taints": "a", "manifest-url-header": "a",
	} {
		assert.Error(t, set(name, value), name)
	}
}

func TestIgnoredFlagsAreReported(t *testing.T) {
	for _, tc := range []struct{ flag, value, warning, err string }{
		{"runtime-cgroups", "/x", "--runtime-cgroups has no effect: the cgroup of the runtime is not reported", ""},
		{"runtime-cgroups", "", "", ""},
		{"log-cadvisor-usage", "false", "", ""},
		{"log-cadvisor-usage", "maybe", "", "want true or false"},
		{"cloud-provider", "external", "", "--cloud-provider: a node is not initialized by a cloud provider"},
		{"exit-on-lock-contention", "false", "", ""},
	} {
		for _, f := range IgnoredFlags() {
			if f.Name != tc.flag {
				continue
			}
			warning, err := f.Check(tc.value)
			assert.Equal(t, tc.warning, warning)
			if tc.err == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, tc.err)
			}
		}
	}
	cfg, _, err := Read("", "")
	require.NoError(t, err)
	for _, f := range Fields() {
		switch f.Flag {
		case "hairpin-mode":
			require.NoError(t, f.Set(cfg, "hairpin-veth", false))
			warning, err := f.CheckFlag(cfg)
			require.NoError(t, err)
			assert.Contains(t, warning, "--hairpin-mode has no effect")
		case "enable-controller-attach-detach":
			require.NoError(t, f.Set(cfg, "false", false))
			_, err := f.CheckFlag(cfg)
			assert.ErrorContains(t, err, "--enable-controller-attach-detach: volumes are attached")
		}
	}
}

func TestArgumentsAreNormalized(t *testing.T) {
	for args, want := range map[string]string{
		"--v 4":                  "--v=4",
		"-v 4 --x":               "--v=4 --x",
		"-v4":                    "--v=4",
		"-v --manifests=/m":      "-v --manifests=/m",
		"--v=2 /m":               "--v=2 /m",
		"-v":                     "-v",
		"--a_b=c_d --e_f":        "--a-b=c_d --e-f",
		"-- --v 4":               "-- --v 4",
		"--manifests a_b --v 10": "--manifests a_b --v=10",
	} {
		assert.Equal(t, strings.Fields(want), NormalizeArgs(strings.Fields(args)), args)
	}
}

func TestReservedMemoryIsParsed(t *testing.T) {
	limit := func(name, amount string) map[v1.ResourceName]resource.Quantity {
		return map[v1.ResourceName]resource.Quantity{v1.ResourceName(name): resource.MustParse(amount)}
	}
	reserved := []kubeletconfig.MemoryReservation{{NumaNode: 9}}
	require.NoError(t, setReservedMemory(&reserved, "0:memory=1Gi;1:hugepages-2Mi=64Mi", false))
	require.NoError(t, setReservedMemory(&reserved, "2:memory=2Gi", true))
	assert.Equal(t, []kubeletconfig.MemoryReservation{
		{NumaNode: 0, Limits: limit("memory", "1Gi")}, {NumaNode: 1, Limits: limit("hugepages-2Mi", "64Mi")}, {NumaNode: 2, Limits: limit("memory", "2Gi")},
	}, reserved)
	for _, bad := range []string{"", "x", "0", "0:", "0:memory", "-1:memory=1Gi", "5:cpu=1", "5:memory=-1", "5:memory=x", "2:memory=1Gi", "5:memory=1Gi;5:memory=1Gi", "99999999999:memory=1Gi"} {
		assert.Error(t, setReservedMemory(&reserved, bad, true), "%q", bad)
	}
}
