package kubelet

import (
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/images"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

func TestPullsOf(t *testing.T) { // img-13
	for name, tc := range map[string]struct {
		lines    string
		parallel int
		qps      float64
		fails    string
	}{
		"defaults":                    {"", 1, 5, ""},
		"not serialized":              {"serializeImagePulls: false\n", images.Unlimited, 5, ""},
		"limited":                     {"serializeImagePulls: false\nmaxParallelImagePulls: 4\n", 4, 5, ""},
		"limited, serial unspecified": {"maxParallelImagePulls: 2\n", 2, 5, ""},
		"serial":                      {"serializeImagePulls: true\nmaxParallelImagePulls: 1\nregistryPullQPS: 0\n", 1, -1, ""},
		"serial and parallel":         {"serializeImagePulls: true\nmaxParallelImagePulls: 4\n", 0, 0, "maxParallelImagePulls is 4, but serializeImagePulls is true"},
		"zero":                        {"maxParallelImagePulls: 0\n", 0, 0, "maxParallelImagePulls is 0: want 1 or more"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := pullsOf(decode(t, tc.lines), images.Hooks{})
			if tc.fails != "" {
				require.EqualError(t, err, tc.fails)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.parallel, cfg.MaxParallel)
			assert.InDelta(t, tc.qps, cfg.QPS, 0)
			assert.Equal(t, 10, cfg.Burst)
			assert.Equal(t, images.NeverVerifyPreloadedImages, cfg.Verify)
		})
	}
	cfg, err := pullsOf(decode(t, "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\npreloadedImagesVerificationAllowlist: [registry.example/a]\n"), images.Hooks{})
	require.NoError(t, err)
	assert.Equal(t, images.NeverVerifyAllowlistedImages, cfg.Verify)
	assert.Equal(t, []string{"registry.example/a"}, cfg.VerifyAllowlist)
}

func TestDNSOf(t *testing.T) { // dn-4
	assert.Equal(t, cri.DNS{}, dnsOf(decode(t, "")))
	assert.Equal(t, cri.DNS{NoResolvConf: true}, dnsOf(decode(t, "resolvConf: \"\"\n")))
	assert.Equal(t, cri.DNS{ResolvConf: "/x", ClusterDNS: []string{"10.0.0.10"}, ClusterDomain: "cluster.local"},
		dnsOf(decode(t, "resolvConf: /x\nclusterDNS: [10.0.0.10]\nclusterDomain: cluster.local\n")))
}

func TestBackoffOf(t *testing.T) {
	none, err := backoffOf(decode(t, "").CrashLoopBackOff)
	require.NoError(t, err)
	assert.Zero(t, none)
	b, err := backoffOf(decode(t, "crashLoopBackOff: {maxContainerRestartPeriod: 20s}\n").CrashLoopBackOff)
	require.NoError(t, err)
	assert.Equal(t, 20*time.Second, b.Max)
	for _, period := range []string{"301s", "999ms"} {
		_, err = backoffOf(decode(t, "crashLoopBackOff: {maxContainerRestartPeriod: "+period+"}\n").CrashLoopBackOff)
		assert.ErrorContains(t, err, "want 1s to 300s")
	}
}

func TestLogsAreLinkedOnlyOnAManagedMachine(t *testing.T) {
	assert.Equal(t, "/var/log/containers", containerLogs(true, false))
	assert.Empty(t, containerLogs(false, false))
	assert.Empty(t, containerLogs(true, true))
}

func TestUserNamespaces(t *testing.T) {
	_, err := newUserNamespaces(newBase(t, standalone(t, "userNamespaces: {idsPerPod: -1}\n")), false)
	require.EqualError(t, err, "userNamespaces.idsPerPod is -1: want a multiple of 65536")
	ids, err := newUserNamespaces(newBase(t, standalone(t, "")), true)
	require.NoError(t, err)
	assert.Nil(t, ids, "plain processes have no user namespaces")
	assert.NoError(t, podRuntime{}.releaseIDs(nil))
	ids, err = newUserNamespaces(newBase(t, standalone(t, "")), false)
	require.NoError(t, err)
	assert.Equal(t, goruntime.GOOS == "linux", ids != nil)
}

func TestConfiguredFacts(t *testing.T) { // cm-32 … cm-42
	facts := configuredFacts(podconfig.Node{CgroupVersion: 2}, decode(t, ""), v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")})
	assert.Equal(t, 2, facts.CgroupVersion)
	assert.EqualValues(t, 1<<30, facts.AllocatableMemory)
	assert.Equal(t, 100*time.Millisecond, facts.CPUPeriod)
	assert.False(t, facts.NoCPUQuota || facts.Swap.Limited || facts.Security.SeccompDefault || facts.SingleProcessOOMKill)
	assert.Equal(t, podconfig.MemoryQoS{Enabled: true}, facts.MemoryQoS, "memory.high, memory.min and memory.low are not set (cm-38, cm-39)")
	assert.False(t, configuredFacts(podconfig.Node{}, decode(t, "featureGates: {MemoryQoS: false}"), nil).MemoryQoS.Enabled)

	facts = configuredFacts(podconfig.Node{}, decode(t, `cpuCFSQuota: false
cpuCFSQuotaPeriod: 20ms
memorySwap: {swapBehavior: LimitedSwap}
seccompDefault: true
singleProcessOOMKill: true
memoryThrottlingFactor: 0.5
memoryReservationPolicy: TieredReservation
`), nil)
	assert.True(t, facts.NoCPUQuota && facts.Swap.Limited && facts.Security.SeccompDefault && facts.SingleProcessOOMKill && facts.MemoryQoS.Enabled)
	assert.Equal(t, 20*time.Millisecond, facts.CPUPeriod)
	assert.InDelta(t, 0.5, facts.MemoryQoS.ThrottlingFactor, 0)
	assert.Equal(t, podconfig.ReserveTiered, facts.MemoryQoS.Reserve)
}

func TestLogRotator(t *testing.T) {
	for lines, want := range map[string]string{
		"containerLogMaxSize: much\n": `containerLogMaxSize "much": `,
		"containerLogMaxFiles: 0\n":   "containerLogMaxFiles: invalid MaxFiles 0, must be > 1",
	} {
		_, err := newLogRotator(newBase(t, standalone(t, lines)), podRuntime{})
		assert.ErrorContains(t, err, want)
	}
}
