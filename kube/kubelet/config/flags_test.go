package config

import (
	"flag"
	"io"
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
		for f := range fields {
			if f.flag == name {
				return f.set(cfg, value, false)
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
		for _, f := range ignoredFlags() {
			if f.name != tc.flag {
				continue
			}
			warning, err := f.check(tc.value)
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
	for f := range fields {
		switch f.flag {
		case "hairpin-mode":
			require.NoError(t, f.set(cfg, "hairpin-veth", false))
			warning, err := f.checkFlag(cfg)
			require.NoError(t, err)
			assert.Contains(t, warning, "--hairpin-mode has no effect")
		case "enable-controller-attach-detach":
			require.NoError(t, f.set(cfg, "false", false))
			_, err := f.checkFlag(cfg)
			assert.ErrorContains(t, err, "--enable-controller-attach-detach: volumes are attached")
		}
	}
}

// nodeFlags are the flags of kubelet 1.36.3 that are not about its configuration; the
// command declares them.
const nodeFlags = `bootstrap-kubeconfig cert-dir config config-dir hostname-override image-credential-provider-bin-dir
image-credential-provider-config kubeconfig node-ip node-labels root-dir version`

// kubeletFlags are all flags of kubelet 1.36.3 on Linux.
const kubeletFlags = `
address allowed-unsafe-sysctls anonymous-auth application-metrics-count-limit authentication-token-webhook
authentication-token-webhook-cache-ttl authorization-mode authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl boot-id-file
bootstrap-kubeconfig cert-dir cgroup-driver cgroup-root cgroups-per-qos
client-ca-file cloud-provider cluster-dns cluster-domain config
config-dir container-hints container-log-max-files container-log-max-size container-runtime-endpoint
containerd containerd-namespace contention-profiling cpu-cfs-quota cpu-cfs-quota-period
cpu-manager-policy cpu-manager-policy-options cpu-manager-reconcile-period enable-controller-attach-detach enable-debugging-handlers
enable-load-reader enable-server enforce-node-allocatable event-burst event-qps
event-storage-age-limit event-storage-event-limit eviction-hard eviction-max-pod-grace-period eviction-minimum-reclaim
eviction-pressure-transition-period eviction-soft eviction-soft-grace-period exit-on-lock-contention experimental-allocatable-ignore-eviction
experimental-mounter-path fail-cgroupv1 fail-swap-on feature-gates file-check-frequency
global-housekeeping-interval hairpin-mode healthz-bind-address healthz-port hostname-override
housekeeping-interval http-check-frequency image-credential-provider-bin-dir image-credential-provider-config image-gc-high-threshold
image-gc-low-threshold image-service-endpoint kernel-memcg-notification kube-api-burst kube-api-content-type
kube-api-qps kube-reserved kube-reserved-cgroup kubeconfig kubelet-cgroups
local-storage-capacity-isolation lock-file log-cadvisor-usage log-flush-frequency log-json-info-buffer-size
log-json-split-stream log-text-info-buffer-size log-text-split-stream logging-format machine-id-file
make-iptables-util-chains manifest-url manifest-url-header max-open-files max-pods
maximum-dead-containers maximum-dead-containers-per-container memory-manager-policy minimum-container-ttl-duration minimum-image-ttl-duration
node-ip node-labels node-status-max-images node-status-update-frequency oom-score-adj
pod-cidr pod-manifest-path pod-max-pids pods-per-core port
protect-kernel-defaults provider-id qos-reserved read-only-port register-node
register-with-taints registry-burst registry-qps reserved-cpus reserved-memory
resolv-conf root-dir rotate-certificates rotate-server-certificates runonce
runtime-cgroups runtime-request-timeout seccomp-default serialize-image-pulls storage-driver-buffer-duration
storage-driver-db storage-driver-host storage-driver-password storage-driver-secure storage-driver-table
storage-driver-user streaming-connection-idle-timeout sync-frequency system-cgroups system-reserved
system-reserved-cgroup tls-cert-file tls-cipher-suites tls-min-version tls-private-key-file
topology-manager-policy topology-manager-policy-options topology-manager-scope v version
vmodule volume-plugin-dir volume-stats-agg-period
`

func newFlags(t *testing.T, args string) (*kubeletconfig.KubeletConfiguration, []string, error) {
	t.Helper()
	cfg, _, err := Read("", "")
	require.NoError(t, err)
	fs := flag.NewFlagSet("kubelet", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	check := AddFlags(fs, cfg)
	if err := fs.Parse(NormalizeArgs(strings.Fields(args))); err != nil {
		return nil, nil, err
	}
	warnings, err := check()
	return cfg, warnings, err
}

func TestEachFlagOfAKubeletIsDeclared(t *testing.T) {
	fs := flag.NewFlagSet("kubelet", flag.ContinueOnError)
	AddFlags(fs, new(kubeletconfig.KubeletConfiguration))
	for name := range strings.FieldsSeq(kubeletFlags) {
		if !strings.Contains(" "+strings.ReplaceAll(nodeFlags, "\n", " ")+" ", " "+name+" ") {
			assert.NotNil(t, fs.Lookup(name), "--%s", name)
		}
	}
}

func TestACommandLineOfAKubeletIsAccepted(t *testing.T) {
	for name, tc := range map[string]struct {
		args     string
		warnings []string
		fails    string
	}{
		"standalone": {args: "--pod-manifest-path=/m --container-runtime-endpoint=unix:///s"},
		"e2e_node": {args: "--runtime-cgroups=/system.slice/containerd.service --kubelet-cgroups=/kubelet.slice --v 4 --housekeeping-interval=10s", warnings: []string{
			"--runtime-cgroups has no effect: the cgroup of the runtime is not reported",
			"--housekeeping-interval has no effect: there is no cAdvisor; cgroups are read directly",
		}},
		"fields": {args: "--hairpin-mode=hairpin-veth --file-check-frequency=5s --qos-reserved=memory=50% --enable-controller-attach-detach=true --runonce=false --rotate-certificates", warnings: []string{
			"--hairpin-mode has no effect: the CNI plugin decides whether a pod can reach itself through its service (bridge: hairpinMode)",
		}},
		"underscores":             {args: "--max_pods=7"},
		"empty values":            {args: "--cloud-provider= --exit-on-lock-contention=false --log-cadvisor-usage=false --runtime-cgroups="},
		"a field that is refused": {args: "--enable-controller-attach-detach=false", fails: "--enable-controller-attach-detach: volumes are attached by the controller"},
		"a flag that is refused":  {args: "--cloud-provider=external", fails: "--cloud-provider: a node is not initialized by a cloud provider"},
		"a bad boolean":           {args: "--log-cadvisor-usage=maybe", fails: "want true or false"},
		"an unknown flag":         {args: "--no-such-flag", fails: "no-such-flag"},
	} {
		t.Run(name, func(t *testing.T) {
			_, warnings, err := newFlags(t, tc.args)
			if tc.fails != "" {
				require.ErrorContains(t, err, tc.fails)
				return
			}
			require.NoError(t, err)
			assert.ElementsMatch(t, tc.warnings, warnings)
		})
	}
	cfg, _, err := newFlags(t, "--v 4 --max_pods=7 --reserved-memory=0:memory=1Gi --reserved-memory=1:memory=1Gi --manifest-url-header=a:b --manifest-url-header=a:c")
	require.NoError(t, err)
	assert.EqualValues(t, 4, cfg.Logging.Verbosity)
	assert.EqualValues(t, 7, cfg.MaxPods)
	assert.Len(t, cfg.ReservedMemory, 2)
	assert.Equal(t, map[string][]string{"a": {"b", "c"}}, cfg.StaticPodURLHeader)
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
