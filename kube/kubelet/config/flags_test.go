package config

import (
	_ "embed"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
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

// The file has the name and the kind of each flag of a kubelet, as
//
//	kubelet --help | sed -nE 's/^ +(-[a-z], )?--([a-z0-9-]+) ?([^ ]*) .*/\2 \3/p' | sed 's/ $//'
//
// prints them. A boolean has no kind.
//
//go:embed testdata/kubelet-1.37.2.txt
var kubeletFlags string

// foreignKinds are kinds that the help of the kubelet names in another way.
var foreignKinds = map[string]string{"": "bool", "version[=true]": "version", "RuntimeDefault": "bool"}

func TestEachFlagOfAKubeletIsDeclared(t *testing.T) {
	fs := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	AddFlags(fs, new(kubeletconfig.KubeletConfiguration), new(Flags))
	declared := map[string]string{}
	fs.VisitAll(func(f *pflag.Flag) {
		assert.NotEmpty(t, f.Usage, f.Name)
		declared[f.Name] = f.Value.Type()
	})
	for line := range strings.Lines(kubeletFlags) {
		name, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "help" { // package pflag has it
			continue
		}
		if other, ok := foreignKinds[kind]; ok {
			kind = other
		}
		assert.Equal(t, kind, declared[name], "--%s", name)
		delete(declared, name)
	}
	for _, f := range nodeFlags {
		if f.removed != "" {
			assert.Contains(t, declared, f.name, "--%s exists", f.name)
			delete(declared, f.name)
		}
	}
	assert.Equal(t, map[string]string{"pod-logs-dir": "string", "shutdown-grace-period": "duration", "shutdown-grace-period-critical-pods": "duration"},
		declared, "flags of fields that have none in the kubelet")
}

func newFlags(t *testing.T, file, args string) (*kubeletconfig.KubeletConfiguration, Flags, []string, error) {
	t.Helper()
	cfg, _, err := Decode([]byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + file))
	require.NoError(t, err)
	var flags Flags
	fs := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	check := AddFlags(fs, cfg, &flags)
	if err := fs.Parse(strings.Fields(args)); err != nil {
		return nil, flags, nil, err
	}
	warnings, err := check()
	return cfg, flags, warnings, err
}

func TestFlagsWithoutAFieldAreSet(t *testing.T) {
	_, flags, warnings, err := newFlags(t, "", "--config c --config-dir=d --version=raw --root_dir=/r --hostname-override n --node-ip=10.0.0.1,fd00::1 --node-labels=a=b,c=d "+
		"--node-labels=e=f --kubeconfig=k --bootstrap-kubeconfig=b --cert-dir=/p --cloud-provider=external --image-credential-provider-config=i "+
		"--image-credential-provider-bin-dir=/i --pod-infra-container-image=p --runtime-cgroups=/rt --lock-file=/l --exit-on-lock-contention")
	require.NoError(t, err)
	assert.Equal(t, []string{"--pod-infra-container-image was removed from the kubelet in Kubernetes 1.35, but has its effect"}, warnings)
	assert.Equal(t, Flags{
		File: "c", DropIns: "d", Version: "raw", RootDir: "/r", NodeName: "n", NodeIPs: []net.IP{net.ParseIP("10.0.0.1"), net.ParseIP("fd00::1")},
		NodeLabels: map[string]string{"a": "b", "c": "d", "e": "f"}, ExternalCloudProvider: true, Kubeconfig: "k", BootstrapKubeconfig: "b", CertDir: "/p",
		CredentialProviderConfig: "i", CredentialProviderBinDir: "/i", PauseImage: "p", RuntimeCgroup: "/rt", LockFile: "/l", ExitOnLockContention: true,
	}, flags)
	for args, version := range map[string]string{"--version": "true", "--version=true": "true", "--version=false": "", "--version=v1.2.3": "v1.2.3", "": ""} {
		_, flags, _, err := newFlags(t, "", args)
		require.NoError(t, err, args)
		assert.Equal(t, version, flags.Version, args)
	}
	// The last one is used, as of all flags that are no lists.
	_, flags, _, err = newFlags(t, "", "--node-ip=10.0.0.1 --node-ip=10.0.0.2 --cloud-provider=external --cloud-provider= --lock-file=a --lock-file=")
	require.NoError(t, err)
	assert.Equal(t, Flags{NodeIPs: []net.IP{net.ParseIP("10.0.0.2")}}, flags)
}

func TestSpellingOfFlags(t *testing.T) {
	number := func(k *kubeletconfig.KubeletConfiguration) any { return int(k.Logging.Verbosity) }
	webhook := func(k *kubeletconfig.KubeletConfiguration) any { return *k.Authentication.Webhook.Enabled }
	for args, tc := range map[string]struct {
		value func(*kubeletconfig.KubeletConfiguration) any
		want  any
	}{
		"--v 4":                                {number, 4},
		"--v=4":                                {number, 4},
		"-v 4":                                 {number, 4},
		"-v=4":                                 {number, 4},
		"-v4":                                  {number, 4},
		"--v=0x4":                              {number, 4},
		"--v=1 --v=4":                          {number, 4},
		"--authentication-token-webhook":       {webhook, true},
		"--authentication_token_webhook=T":     {webhook, true},
		"--authentication-token-webhook=0":     {webhook, false},
		"--authentication-token-webhook=False": {webhook, false},
		"--cluster-dns=1.1.1.1,2.2.2.2 --cluster-dns 3.3.3.3": {func(k *kubeletconfig.KubeletConfiguration) any { return k.ClusterDNS }, []string{"1.1.1.1", "2.2.2.2", "3.3.3.3"}},
		"--cluster-dns=": {func(k *kubeletconfig.KubeletConfiguration) any { return k.ClusterDNS }, []string{}},
		"--kube-reserved=cpu=1, --kube-reserved=memory=1Gi": {func(k *kubeletconfig.KubeletConfiguration) any { return k.KubeReserved }, map[string]string{"cpu": "1", "memory": "1Gi"}},
		"--feature-gates=B=false --feature-gates C=1":       {func(k *kubeletconfig.KubeletConfiguration) any { return k.FeatureGates }, map[string]bool{"A": true, "B": false, "C": true}},
		"--eviction-soft=memory.available<1Gi":              {func(k *kubeletconfig.KubeletConfiguration) any { return k.EvictionSoft }, map[string]string{"memory.available": "1Gi"}},
		"--eviction-hard=":                                  {func(k *kubeletconfig.KubeletConfiguration) any { return k.EvictionHard }, map[string]string{}},
	} {
		cfg, _, _, err := newFlags(t, "clusterDNS: [9.9.9.9]\nkubeReserved: {pid: '9'}\nfeatureGates: {A: true, B: true}\nevictionHard: {pid.available: '9'}\n", args)
		if assert.NoError(t, err, args) {
			assert.Equal(t, tc.want, tc.value(cfg), args)
		}
	}
	for args, want := range map[string]string{
		"--no-such-flag": "unknown flag: --no-such-flag", "-max-pods=1": "-m", "--v": "flag needs an argument: --v", "-v": "flag needs an argument: 'v'",
		"--v=x": "want a number", "--v=-1": "want a number", "--max-pods=1.5": "want a number", "--max-pods=5000000000": "want a number", "--sync-frequency=5": "want a duration",
		"--authentication-token-webhook=yes": "want true or false", "--address=nowhere": "want an IP address", "--version=1.37": "version", "--node-ip=n": `"n" is not an IP address`,
		"--feature-gates=A": "want key=value", "--feature-gates=A=x": "want key=value", "--cloud-provider=aws": "want external or nothing", "--node-labels=kubernetes.io/x=y": "a node may set only",
		"--register-with-taints=a": "want key=value:effect", "--exit-on-lock-contention=maybe": "exit-on-lock-contention",
	} {
		_, _, _, err := newFlags(t, "", args)
		assert.ErrorContains(t, err, want, args)
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
			"--housekeeping-interval has no effect: there is no cAdvisor; cgroups are read directly",
		}},
		"fields": {args: "--hairpin-mode=hairpin-veth --file-check-frequency=5s --qos-reserved=memory=50% --enable-controller-attach-detach=true --runonce=false --rotate-certificates", warnings: []string{
			"--hairpin-mode has no effect: the CNI plugin decides whether a pod can reach itself through its service (bridge: hairpinMode)",
		}},
		"feature gates": {args: "--feature-gates=MemoryQoS=true,ReduceDefaultCrashLoopBackOffDecay=true --feature-gates=KubeletPSI=true,GracefulNodeShutdown=false", warnings: []string{
			"featureGates.ReduceDefaultCrashLoopBackOffDecay has no effect: the feature is not implemented",
			"featureGates.GracefulNodeShutdown has no effect: the feature is always enabled",
		}},
		"a removed flag": {args: "--containerd=/s", warnings: []string{"--containerd has no effect: there is no cAdvisor; cgroups are read directly"}},
		"defaults and empty values": {args: "--cloud-provider= --exit-on-lock-contention=false --log-cadvisor-usage=false --maximum-dead-containers=-1 " +
			"--maximum-dead-containers-per-container=1 --minimum-container-ttl-duration=0s --vmodule="},
		"logging": {args: "--logging-format=json --vmodule=a=1,b=2 --log-flush-frequency=5s --log-text-split-stream", warnings: []string{
			"--vmodule has no effect: patterns name source files of Kubernetes; --v applies to all packages",
			"--log-flush-frequency has no effect: lines are written immediately",
			"--log-text-split-stream has no effect: logs are written to stderr",
		}},
		"a field that is refused": {args: "--enable-controller-attach-detach=false", fails: "--enable-controller-attach-detach: volumes are attached by the controller"},
		"runonce":                 {args: "--runonce", fails: "--runonce: the kubelet runs until it is stopped"},
		"a flag that is refused":  {args: "--experimental-mounter-path=/m", fails: "--experimental-mounter-path: volumes are mounted by system calls"},
		"a bad boolean":           {args: "--log-cadvisor-usage=maybe", fails: "want true or false"},
		"a bad number":            {args: "--maximum-dead-containers=many", fails: "want a number"},
		"a bad duration":          {args: "--housekeeping-interval=5", fails: "want a duration"},
		"a bad quantity":          {args: "--log-json-info-buffer-size=x", fails: "want a quantity"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, warnings, err := newFlags(t, "", tc.args)
			if tc.fails != "" {
				require.ErrorContains(t, err, tc.fails)
				return
			}
			require.NoError(t, err)
			assert.ElementsMatch(t, tc.warnings, warnings)
		})
	}
	cfg, _, _, err := newFlags(t, "", "--v 4 --max_pods=7 --reserved-memory=0:memory=1Gi --reserved-memory=1:memory=1Gi --manifest-url-header=a:b --manifest-url-header=a:c")
	require.NoError(t, err)
	assert.EqualValues(t, 4, cfg.Logging.Verbosity)
	assert.EqualValues(t, 7, cfg.MaxPods)
	assert.Len(t, cfg.ReservedMemory, 2)
	assert.Equal(t, map[string][]string{"a": {"b", "c"}}, cfg.StaticPodURLHeader)
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
