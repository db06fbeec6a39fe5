package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/images"
)

// of is what a file with these lines says.
func of(t *testing.T, lines string) kubeletconfig.KubeletConfiguration {
	t.Helper()
	o, err := parseFlags([]string{"--manifests=/b", "--config=" + configFile(t, lines)})
	require.NoError(t, err)
	assert.Empty(t, o.warnings)
	return o.kubelet
}

func TestPullsAreTheConfigurations(t *testing.T) { // img-13
	for name, tc := range map[string]struct {
		lines    string
		parallel int
		qps      float64
		fails    string
	}{
		"defaults":             {"", 1, 5, ""},
		"not serialized":       {"serializeImagePulls: false\n", images.Unlimited, 5, ""},
		"so many":              {"serializeImagePulls: false\nmaxParallelImagePulls: 4\n", 4, 5, ""},
		"so many, and no word": {"maxParallelImagePulls: 2\n", 2, 5, ""},
		"one at a time":        {"serializeImagePulls: true\nmaxParallelImagePulls: 1\nregistryPullQPS: 0\n", 1, -1, ""},
		"both":                 {"serializeImagePulls: true\nmaxParallelImagePulls: 4\n", 0, 0, "maxParallelImagePulls is 4, and serializeImagePulls says one after the other"},
		"none":                 {"maxParallelImagePulls: 0\n", 0, 0, "maxParallelImagePulls is 0: want 1 or more"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := pullsOf(of(t, tc.lines), images.Hooks{})
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
	cfg, err := pullsOf(of(t, "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\npreloadedImagesVerificationAllowlist: [registry.example/a]\n"), images.Hooks{})
	require.NoError(t, err)
	assert.Equal(t, images.NeverVerifyAllowlistedImages, cfg.Verify)
	assert.Equal(t, []string{"registry.example/a"}, cfg.VerifyAllowlist)
}

func TestNamesAreResolvedAsTheConfigurationSays(t *testing.T) { // dn-4
	assert.Equal(t, cri.DNS{}, dnsOf(of(t, "")))
	assert.Equal(t, cri.DNS{NoResolvConf: true}, dnsOf(of(t, "resolvConf: \"\"\n")))
	assert.Equal(t, cri.DNS{ResolvConf: "/x", ClusterDNS: []string{"10.0.0.10"}, ClusterDomain: "cluster.local"},
		dnsOf(of(t, "resolvConf: /x\nclusterDNS: [10.0.0.10]\nclusterDomain: cluster.local\n")))
	o, err := parseFlags([]string{"--manifests=/b", "--cluster-dns=10.0.0.10,10.0.0.11", "--resolv-conf=", "--sync-frequency=2m", "--seccomp-default", "--feature-gates=MemoryQoS=true"})
	require.NoError(t, err)
	assert.Equal(t, cri.DNS{NoResolvConf: true, ClusterDNS: []string{"10.0.0.10", "10.0.0.11"}}, dnsOf(o.kubelet))
	assert.Equal(t, 2*time.Minute, o.kubelet.SyncFrequency.Duration)
	assert.True(t, *o.kubelet.SeccompDefault)
	assert.True(t, o.kubelet.FeatureGates["MemoryQoS"])
	for _, bad := range []string{"--sync-frequency=often", "--seccomp-default=maybe", "--registry-qps=many", "--feature-gates=MemoryQoS", "--feature-gates=MemoryQoS=x", "--v=much"} {
		_, err := parseFlags([]string{"--manifests=/b", bad})
		name, _, _ := strings.Cut(bad[1:], "=")
		assert.ErrorContains(t, err, name+": want ", "the flag is named")
	}
}

func TestBackOffAndIDsAreTheConfigurations(t *testing.T) {
	b, err := backoffOf(of(t, "crashLoopBackOff: {maxContainerRestartPeriod: 20s}\n").CrashLoopBackOff)
	require.NoError(t, err)
	assert.Equal(t, 20*time.Second, b.Max)
	_, err = backoffOf(of(t, "crashLoopBackOff: {maxContainerRestartPeriod: 301s}\n").CrashLoopBackOff)
	require.EqualError(t, err, "crashLoopBackOff.maxContainerRestartPeriod is 5m1s: want 1s to 300s")
	a := &assembly{opts: options{runtime: "unix:///x", root: t.TempDir(), kubelet: of(t, "userNamespaces: {idsPerPod: -1}\n")}}
	_, err = a.userNamespaces()
	require.EqualError(t, err, "userNamespaces.idsPerPod is -1: want a multiple of 65536")
	a.opts.runtime, a.opts.kubelet = "process", of(t, "")
	ids, err := a.userNamespaces()
	require.NoError(t, err)
	assert.Nil(t, ids, "plain processes have no namespaces")
}

func TestPodsPerCoreBoundMaxPods(t *testing.T) { // ns-12
	o := options{kubelet: of(t, "podsPerCore: 1000\n")}
	assert.EqualValues(t, 110, o.maxPods())
	o.kubelet.MaxPods, o.kubelet.PodsPerCore = 1_000_000, 1
	assert.Less(t, o.maxPods(), int32(100_000))
}

func TestGatesThatAreSetAgainstWhatIsThereAreNamed(t *testing.T) {
	o, err := parseFlags([]string{"--manifests=/b", "--config=" + configFile(t, "featureGates: {MemoryQoS: true, NodeSwap: true, SidecarContainers: false, KubeletTracing: true, Flux: true}\n")})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"featureGates.Flux changes nothing: nobody here asks for it",
		"featureGates.KubeletTracing changes nothing: what it stands for is not there",
		"featureGates.SidecarContainers changes nothing: what it stands for is always there",
	}, o.warnings)
}
