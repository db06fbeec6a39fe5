package machine

import (
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/wingtest"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/images"
	"github.com/kubeparts/kubeparts/runtime/cri/logrotate"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

func TestPullsOf(t *testing.T) { // img-13
	for name, tc := range map[string]struct {
		lines    string
		parallel int
		qps      float64
	}{
		"defaults":                    {"", 1, 5},
		"not serialized":              {"serializeImagePulls: false\n", images.Unlimited, 5},
		"limited":                     {"serializeImagePulls: false\nmaxParallelImagePulls: 4\n", 4, 5},
		"limited, serial unspecified": {"maxParallelImagePulls: 2\n", 2, 5},
		"serial":                      {"serializeImagePulls: true\nmaxParallelImagePulls: 1\nregistryPullQPS: 0\n", 1, -1},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := pullsOf(wingtest.Decode(t, tc.lines), images.Hooks{})
			assert.Equal(t, tc.parallel, cfg.MaxParallel)
			assert.InDelta(t, tc.qps, cfg.QPS, 0)
			assert.Equal(t, 10, cfg.Burst)
			assert.Equal(t, images.NeverVerifyPreloadedImages, cfg.Verify)
		})
	}
	cfg := pullsOf(wingtest.Decode(t, "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\npreloadedImagesVerificationAllowlist: [registry.example/a]\n"), images.Hooks{})
	assert.Equal(t, images.NeverVerifyAllowlistedImages, cfg.Verify)
	assert.Equal(t, []string{"registry.example/a"}, cfg.VerifyAllowlist)
}

func TestDNSOf(t *testing.T) { // dn-4
	assert.Equal(t, cri.DNS{ResolvConf: "/etc/resolv.conf"}, dnsOf(wingtest.Decode(t, "")))
	assert.Equal(t, cri.DNS{NoResolvConf: true}, dnsOf(wingtest.Decode(t, "resolvConf: \"\"\n")))
	assert.Equal(t, cri.DNS{ResolvConf: "/x", ClusterDNS: []string{"10.0.0.10"}, ClusterDomain: "cluster.local"},
		dnsOf(wingtest.Decode(t, "resolvConf: /x\nclusterDNS: [10.0.0.10]\nclusterDomain: cluster.local\n")))
}

func TestBackoffOf(t *testing.T) {
	assert.Zero(t, backoffOf(wingtest.Decode(t, "").CrashLoopBackOff))
	assert.Equal(t, 20*time.Second, backoffOf(wingtest.Decode(t, "crashLoopBackOff: {maxContainerRestartPeriod: 20s}\n").CrashLoopBackOff).Max)
}

func TestLogsAreLinkedOnlyOnAManagedMachine(t *testing.T) {
	assert.Equal(t, "/var/log/containers", containerLogs(true))
	assert.Empty(t, containerLogs(false))
}

func TestUserNamespaces(t *testing.T) {
	ids, err := newUserNamespaces(t.Context(), wingtest.Base(t, wingtest.Standalone(t, "")), true, noSubIDs)
	require.NoError(t, err)
	assert.Nil(t, ids, "plain processes have no user namespaces")
	ids, err = newUserNamespaces(t.Context(), wingtest.Base(t, wingtest.Standalone(t, "")), false, noSubIDs)
	require.NoError(t, err)
	assert.Equal(t, goruntime.GOOS == "linux", ids != nil)
}

func TestConfiguredFacts(t *testing.T) { // cm-32 … cm-42
	facts := configuredFacts(podconfig.Node{CgroupVersion: 2}, wingtest.Decode(t, ""), v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")})
	assert.Equal(t, 2, facts.CgroupVersion)
	assert.EqualValues(t, 1<<30, facts.AllocatableMemory)
	assert.Equal(t, 100*time.Millisecond, facts.CPUPeriod)
	assert.False(t, facts.NoCPUQuota || facts.Swap.Limited || facts.Security.SeccompDefault || facts.SingleProcessOOMKill)
	assert.Equal(t, podconfig.MemoryQoS{Enabled: true}, facts.MemoryQoS, "memory.high, memory.min and memory.low are not set (cm-38, cm-39)")
	assert.False(t, configuredFacts(podconfig.Node{}, wingtest.Decode(t, "featureGates: {MemoryQoS: false}"), nil).MemoryQoS.Enabled)

	facts = configuredFacts(podconfig.Node{}, wingtest.Decode(t, `cpuCFSQuota: false
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
	assert.Equal(t, cgroups.ReserveTiered, facts.MemoryQoS.Reserve)
}

// A size of 0 rotates every log that is not empty, and only a negative one none.
func TestLogRotator(t *testing.T) {
	for lines, want := range map[string]int64{"": 10 << 20, "containerLogMaxSize: '0'\n": 1, "containerLogMaxSize: '-1'\n": -1, "containerLogMaxSize: 1Ki\n": 1024} {
		cfg := wingtest.Standalone(t, lines)
		var size int64
		cfg.Adjust = append(cfg.Adjust, compose.Adjust(func(c *logrotate.Config) {
			size = c.MaxSize
		}))
		_, err := newLogRotator(wingtest.Base(t, cfg), PodRuntime{})
		require.NoError(t, err)
		assert.Equal(t, want, size, lines)
	}
}
