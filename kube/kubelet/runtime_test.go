package kubelet

import (
	"path/filepath"
	goruntime "runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/kube/kubelet/internal/machine"
	"github.com/kubeparts/kubeparts/runtime"
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
			cfg := machine.PullsOf(decode(t, tc.lines), images.Hooks{})
			assert.Equal(t, tc.parallel, cfg.MaxParallel)
			assert.InDelta(t, tc.qps, cfg.QPS, 0)
			assert.Equal(t, 10, cfg.Burst)
			assert.Equal(t, images.NeverVerifyPreloadedImages, cfg.Verify)
		})
	}
	cfg := machine.PullsOf(decode(t, "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\npreloadedImagesVerificationAllowlist: [registry.example/a]\n"), images.Hooks{})
	assert.Equal(t, images.NeverVerifyAllowlistedImages, cfg.Verify)
	assert.Equal(t, []string{"registry.example/a"}, cfg.VerifyAllowlist)
}

func TestDNSOf(t *testing.T) { // dn-4
	assert.Equal(t, cri.DNS{ResolvConf: "/etc/resolv.conf"}, machine.DNSOf(decode(t, "")))
	assert.Equal(t, cri.DNS{NoResolvConf: true}, machine.DNSOf(decode(t, "resolvConf: \"\"\n")))
	assert.Equal(t, cri.DNS{ResolvConf: "/x", ClusterDNS: []string{"10.0.0.10"}, ClusterDomain: "cluster.local"},
		machine.DNSOf(decode(t, "resolvConf: /x\nclusterDNS: [10.0.0.10]\nclusterDomain: cluster.local\n")))
}

func TestBackoffOf(t *testing.T) {
	assert.Zero(t, machine.BackoffOf(decode(t, "").CrashLoopBackOff))
	assert.Equal(t, 20*time.Second, machine.BackoffOf(decode(t, "crashLoopBackOff: {maxContainerRestartPeriod: 20s}\n").CrashLoopBackOff).Max)
}

func TestLogsAreLinkedOnlyOnAManagedMachine(t *testing.T) {
	assert.Equal(t, "/var/log/containers", machine.ContainerLogs(true))
	assert.Empty(t, machine.ContainerLogs(false))
}

func TestUserNamespaces(t *testing.T) {
	ids, err := machine.NewUserNamespaces(t.Context(), newBase(t, standalone(t, "")), true, noSubIDs)
	require.NoError(t, err)
	assert.Nil(t, ids, "plain processes have no user namespaces")
	ids, err = machine.NewUserNamespaces(t.Context(), newBase(t, standalone(t, "")), false, noSubIDs)
	require.NoError(t, err)
	assert.Equal(t, goruntime.GOOS == "linux", ids != nil)
}

func TestConfiguredFacts(t *testing.T) { // cm-32 … cm-42
	facts := machine.ConfiguredFacts(podconfig.Node{CgroupVersion: 2}, decode(t, ""), v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")})
	assert.Equal(t, 2, facts.CgroupVersion)
	assert.EqualValues(t, 1<<30, facts.AllocatableMemory)
	assert.Equal(t, 100*time.Millisecond, facts.CPUPeriod)
	assert.False(t, facts.NoCPUQuota || facts.Swap.Limited || facts.Security.SeccompDefault || facts.SingleProcessOOMKill)
	assert.Equal(t, podconfig.MemoryQoS{Enabled: true}, facts.MemoryQoS, "memory.high, memory.min and memory.low are not set (cm-38, cm-39)")
	assert.False(t, machine.ConfiguredFacts(podconfig.Node{}, decode(t, "featureGates: {MemoryQoS: false}"), nil).MemoryQoS.Enabled)

	facts = machine.ConfiguredFacts(podconfig.Node{}, decode(t, `cpuCFSQuota: false
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

// A size of 0 rotates every log that is not empty, and only a negative one none.
func TestLogRotator(t *testing.T) {
	for lines, want := range map[string]int64{"": 10 << 20, "containerLogMaxSize: '0'\n": 1, "containerLogMaxSize: '-1'\n": -1, "containerLogMaxSize: 1Ki\n": 1024} {
		cfg := standalone(t, lines)
		var size int64
		cfg.Adjust = append(cfg.Adjust, Adjust{Logs: func(c *logrotate.Config) error {
			size = c.MaxSize
			return nil
		}})
		_, err := machine.NewLogRotator(newBase(t, cfg), machine.PodRuntime{})
		require.NoError(t, err)
		assert.Equal(t, want, size, lines)
	}
}

func TestAResolvConfThatPodsCannotHaveIsAnEventOfTheNode(t *testing.T) { // dn-9
	cfg := runnable(t, "resolvConf: "+filepath.Join(t.TempDir(), "none")+"\n")
	var events []runtime.Event
	cfg.Record = func(e runtime.Event) { events = append(events, e) }
	k, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, k.Close())
	i := slices.IndexFunc(events, func(e runtime.Event) bool { return e.Reason == "CheckLimitsForResolvConf" })
	require.GreaterOrEqual(t, i, 0)
	assert.Equal(t, "Node/n1", events[i].Object.Kind+"/"+events[i].Object.Name)
	assert.Contains(t, events[i].Message, "no such file or directory")
}
