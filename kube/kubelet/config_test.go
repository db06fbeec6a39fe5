package kubelet

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/wingtest"
)

var (
	decode     = wingtest.Decode
	standalone = wingtest.Standalone
	newBase    = wingtest.Base
)

// runnable returns a standalone Config without pods that New accepts.
func runnable(t *testing.T, lines string) Config {
	cfg := standalone(t, lines)
	cfg.Configuration.StaticPodPath = t.TempDir()
	cfg.Configuration.EvictionHard = map[string]string{} // the disk of the machine may be full
	return cfg
}

func TestDefaultsOfConfig(t *testing.T) {
	cfg, err := stores.Complete(Config{})
	require.NoError(t, err)
	host, err := os.Hostname()
	require.NoError(t, err)
	assert.Equal(t, strings.ToLower(host), cfg.NodeName)
	assert.Equal(t, "/var/lib/kubelet", filepath.ToSlash(cfg.RootDir))
	assert.Equal(t, "unix:///run/containerd/containerd.sock", cfg.Configuration.ContainerRuntimeEndpoint)
	assert.False(t, cfg.Runtime.Processes)
	assert.Equal(t, "/var/log/pods", cfg.Configuration.PodLogsDir)
	assert.Equal(t, "/var/lib/kubelet/device-plugins", cfg.Host.DevicePluginsDir)
	assert.Equal(t, "/var/lib/kubelet/pod-resources", cfg.Host.PodResourcesDir)
	assert.Equal(t, "/var/lib/kubelet/pki", cfg.Cluster.CertDir)
	assert.EqualValues(t, 110, cfg.Configuration.MaxPods)
	assert.False(t, stores.Clustered(cfg))
	cfg.Notify("")
	cfg.Record(event())

	given := &kubeletconfig.KubeletConfiguration{ContainerRuntimeEndpoint: "process"}
	cfg, err = stores.Complete(Config{Configuration: given, RootDir: "/root-dir"})
	require.NoError(t, err)
	assert.True(t, cfg.Runtime.Processes)
	assert.Equal(t, "/root-dir/log/pods", cfg.Configuration.PodLogsDir, "not shared with a kubelet")
	assert.Equal(t, &kubeletconfig.KubeletConfiguration{ContainerRuntimeEndpoint: "process"}, given, "the caller's is not changed")

	cfg, err = stores.Complete(Config{RootDir: "root"})
	require.NoError(t, err)
	assert.True(t, filepath.IsAbs(cfg.RootDir))

	own := standalone(t, "").Runtime
	own.Processes = false
	cfg, err = stores.Complete(Config{Runtime: own})
	require.NoError(t, err)
	assert.Empty(t, cfg.Configuration.ContainerRuntimeEndpoint, "no socket is claimed")
}

func TestInvalidFieldsOfConfig(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"runtime without name":       {func(c *Config) { c.Runtime.Name = "" }, "Config.Runtime has no Images or no Name"},
		"runtime without images":     {func(c *Config) { c.Runtime.Images = nil }, "Config.Runtime has no Images or no Name"},
		"endpoint":                   {func(c *Config) { c.Runtime, c.Configuration.ContainerRuntimeEndpoint = Runtime{}, "tcp://x" }, `containerRuntimeEndpoint is "tcp://x"`},
		"half of credential plugins": {func(c *Config) { c.Runtime.CredentialProviderBinDir = "/bin" }, "only one of Config.Runtime.CredentialProviderConfig"},
		"cluster twice":              {func(c *Config) { c.Cluster.InCluster, c.Cluster.Kubeconfig = true, "x" }, "InCluster excludes a kubeconfig"},
		"bootstrap in cluster":       {func(c *Config) { c.Cluster.InCluster, c.Cluster.BootstrapKubeconfig = true, "x" }, "InCluster excludes a kubeconfig"},
		"only bootstrap":             {func(c *Config) { c.Cluster.BootstrapKubeconfig = "x" }, "BootstrapKubeconfig requires Kubeconfig"},
		"remember without cluster":   {func(c *Config) { c.Cluster.CheckpointPods = true }, "Config.Cluster.CheckpointPods requires a Kubeconfig"},
		"OOM score":                  {func(c *Config) { c.Configuration.OOMScoreAdj = new(int32(1001)) }, "oomScoreAdj (--oom-score-adj) 1001 must be between -1000 and 1000, inclusive"},
		"open files":                 {func(c *Config) { c.Configuration.MaxOpenFiles = -1 }, "maxOpenFiles (--max-open-files) -1 must not be a negative number"},
		"format of logs":             {func(c *Config) { c.Configuration.Logging.Format = "xml" }, `logging.format: Invalid value: "xml": Unsupported log format`},
	} {
		cfg := standalone(t, "")
		tc.change(&cfg)
		_, err := stores.Complete(cfg)
		require.ErrorContains(t, err, tc.want, name)
		_, err = Open(t.Context(), cfg)
		require.ErrorContains(t, err, tc.want, name)
	}
}

func TestClustered(t *testing.T) {
	assert.True(t, stores.Clustered(Config{Cluster: Cluster{Client: new(client.Connection)}}))
	assert.True(t, stores.Clustered(Config{Cluster: Cluster{Kubeconfig: "x"}}))
	assert.True(t, stores.Clustered(Config{Cluster: Cluster{InCluster: true}}))
}

func TestPodsPerCoreBoundsMaxPods(t *testing.T) { // ns-12
	cores := int32(goruntime.NumCPU())
	for _, tc := range []struct{ maxPods, perCore, want int32 }{
		{110, 0, 110}, {110, 1000, 110}, {1_000_000, 1, cores}, {1_000_000, 1 << 30, 1_000_000},
	} {
		k := &kubeletconfig.KubeletConfiguration{MaxPods: tc.maxPods, PodsPerCore: tc.perCore}
		assert.Equal(t, tc.want, stores.MaxPods(Config{Configuration: k}), "%+v", tc)
	}
}

func TestConfiguredIPs(t *testing.T) {
	found := []string{"10.0.0.1"}
	for name, tc := range map[string]struct {
		given []net.IP
		want  []string
	}{
		"none":        {nil, found},
		"a family":    {[]net.IP{net.IPv4zero}, found},
		"one":         {[]net.IP{net.ParseIP("10.0.0.9")}, []string{"10.0.0.9"}},
		"both":        {[]net.IP{net.ParseIP("10.0.0.9"), net.ParseIP("fd00::9")}, []string{"10.0.0.9", "fd00::9"}},
		"one, family": {[]net.IP{net.ParseIP("10.0.0.9"), net.IPv6zero}, []string{"10.0.0.9"}},
	} {
		assert.Equal(t, tc.want, stores.ConfiguredIPs(tc.given, found), name)
	}
}

func TestTheEffectiveConfigurationIsLogged(t *testing.T) {
	var out strings.Builder
	cfg, err := stores.Complete(Config{NodeName: "n", Logger: slog.New(slog.NewTextHandler(&out, nil)), Configuration: &kubeletconfig.KubeletConfiguration{
		EventBurst: 101, StaticPodURLHeader: map[string][]string{"Key": {"secret"}},
	}})
	require.NoError(t, err)
	stores.LogConfiguration(t.Context(), cfg)
	for _, part := range []string{"Effective KubeletConfiguration", "kind: KubeletConfiguration", "eventBurst: 101", "maxPods: 110"} {
		assert.Contains(t, out.String(), part)
	}
	assert.NotContains(t, out.String(), "secret")
	assert.Equal(t, []string{"secret"}, cfg.Configuration.StaticPodURLHeader["Key"])
}
