package main

import (
	"flag"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

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

func TestEachFlagOfAKubeletIsKnown(t *testing.T) {
	flags := declare(new(defaulted()), "node")
	for name := range strings.FieldsSeq(kubeletFlags) {
		assert.NotNil(t, flags.Lookup(name), "--%s", name)
	}
}

func TestACommandLineOfAKubeletIsAccepted(t *testing.T) {
	for name, tc := range map[string]struct {
		args     string
		warnings []string
		fails    string
	}{
		"standalone": {args: "--pod-manifest-path=/m --container-runtime-endpoint=unix:///s --node-ip=10.0.0.7 --root-dir=/r"},
		"without a cluster": {args: "--manifests=/m --node-labels=a=b --register-with-taints=a=b:NoSchedule", warnings: []string{
			"--node-labels changes nothing: there is no cluster; --kubeconfig or --in-cluster names one",
			"--register-with-taints changes nothing: there is no cluster; --kubeconfig or --in-cluster names one",
		}},
		"e2e_node": {args: "--manifests=/m --runtime=unix:///s --runtime-cgroups=/system.slice/containerd.service --kubelet-cgroups=/kubelet.slice --v 4 --hostname-override=n --housekeeping-interval=10s", warnings: []string{
			"--runtime-cgroups changes nothing: the cgroup of the runtime is not reported",
			"--housekeeping-interval changes nothing: the agent does not run cAdvisor; it reads cgroups itself",
		}},
		"fields": {args: "--manifests=/m --hairpin-mode=hairpin-veth --file-check-frequency=5s --cpu-cfs-quota-period=50ms --qos-reserved=memory=50% --enable-controller-attach-detach=true --runonce=false --rotate-certificates", warnings: []string{
			"--hairpin-mode changes nothing: the CNI plugin decides whether a pod reaches itself by its service (bridge: hairpinMode)",
		}},
		"underscores":              {args: "--manifests=/m --max_pods=7"},
		"values that ask for none": {args: "--manifests=/m --cloud-provider= --exit-on-lock-contention=false --log-cadvisor-usage=false --runtime-cgroups="},
		"a field that is refused":  {args: "--manifests=/m --enable-controller-attach-detach=false", fails: "--enable-controller-attach-detach: volumes are attached by the cluster's controller only"},
		"a flag that is refused":   {args: "--manifests=/m --cloud-provider=external", fails: "--cloud-provider: the agent does not wait for a cloud provider to initialize its node"},
		"a bad address":            {args: "--manifests=/m --node-ip=here", fails: `--node-ip: "here" is no IP address`},
		"a bad boolean":            {args: "--manifests=/m --log-cadvisor-usage=maybe", fails: "want true or false"},
		"an unknown flag":          {args: "--manifests=/m --no-such-flag", fails: "no-such-flag"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parseFlags(strings.Fields(tc.args))
			if tc.fails != "" {
				require.ErrorContains(t, err, tc.fails)
				return
			}
			require.NoError(t, err)
			assert.ElementsMatch(t, tc.warnings, o.warnings)
		})
	}
	o, err := parseFlags(strings.Fields("--manifests=/m --v 4 --max_pods=7 --cpu-cfs-quota-period=50ms"))
	require.NoError(t, err)
	assert.EqualValues(t, 4, o.kubelet.Logging.Verbosity)
	assert.EqualValues(t, 7, o.kubelet.MaxPods)
	assert.Equal(t, "50ms", o.kubelet.CPUCFSQuotaPeriod.Duration.String())
	_, err = parseFlags([]string{"--version"})
	assert.ErrorIs(t, err, flag.ErrHelp)
}

func TestTheNodeIPIsThatOfPodsWithoutACluster(t *testing.T) {
	for given, want := range map[string][]string{
		"":                  {"192.0.2.1"},
		"10.0.0.7":          {"10.0.0.7"},
		"10.0.0.7, fd00::7": {"10.0.0.7", "fd00::7"},
		"0.0.0.0":           {"192.0.2.1"},
		"::":                {"192.0.2.1"},
	} {
		o := clusterOptions{nodeIP: given}
		_, err := o.check()
		require.NoError(t, err)
		assert.Equal(t, want, configuredIPs(o.nodeIPs, []string{"192.0.2.1"}), given)
	}
}

func TestArgumentsAreReadAsAKubeletReadsThem(t *testing.T) {
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
		assert.Equal(t, strings.Fields(want), asKubelet(strings.Fields(args)), args)
	}
}

func TestReservedMemoryIsReadFromAFlag(t *testing.T) {
	limit := func(name, amount string) map[v1.ResourceName]resource.Quantity {
		return map[v1.ResourceName]resource.Quantity{v1.ResourceName(name): resource.MustParse(amount)}
	}
	k := of(t, "reservedMemory: [{numaNode: 9, limits: {memory: 9Gi}}]\n")
	f := &reservedMemoryFlag{into: &k.ReservedMemory}
	require.NoError(t, f.Set("0:memory=1Gi;1:hugepages-2Mi=64Mi"))
	require.NoError(t, f.Set("2:memory=2Gi"))
	want := []kubeletconfig.MemoryReservation{
		{NumaNode: 0, Limits: limit("memory", "1Gi")}, {NumaNode: 1, Limits: limit("hugepages-2Mi", "64Mi")}, {NumaNode: 2, Limits: limit("memory", "2Gi")},
	}
	assert.Equal(t, want, k.ReservedMemory)
	for _, bad := range []string{"", "x", "0", "0:", "0:memory", "-1:memory=1Gi", "5:cpu=1", "5:memory=-1", "5:memory=x", "2:memory=1Gi", "5:memory=1Gi;5:memory=1Gi", "99999999999:memory=1Gi"} {
		assert.Error(t, f.Set(bad), "%q", bad)
	}
}
