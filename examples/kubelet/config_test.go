package main

import (
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/eviction"
)

// configFile writes a KubeletConfiguration with these lines.
func configFile(t *testing.T, lines string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubelet.yaml")
	require.NoError(t, os.WriteFile(path, []byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"+lines), 0o600))
	return path
}

func TestFlagsWinOverTheKubeletConfiguration(t *testing.T) {
	file := configFile(t, "containerRuntimeEndpoint: unix:///a.sock\nstaticPodPath: /a\npodLogsDir: /logs\nhairpinMode: hairpin-veth\nmemorySwap: {swapBehavior: NoSwap}\n")
	o, err := parseFlags([]string{"--manifests=/b", "--config=" + file})
	require.NoError(t, err)
	assert.Equal(t, "unix:///a.sock", o.runtime)
	assert.Equal(t, "/b", o.manifests)
	assert.Equal(t, "/logs", o.logs)
	assert.Equal(t, []string{"hairpinMode changes nothing: the CNI plugin decides whether a pod reaches itself by its service (bridge: hairpinMode)"}, o.warnings)
}

func TestWithoutAFileTheKubeletsDefaultsHold(t *testing.T) {
	o, err := parseFlags([]string{"--manifests=/b"})
	require.NoError(t, err)
	assert.Equal(t, "process", o.runtime)
	assert.True(t, *o.kubelet.CgroupsPerQOS)
	assert.Equal(t, []string{"pods"}, o.kubelet.EnforceNodeAllocatable)
	assert.Empty(t, o.warnings)
}

func TestAKubeletConfigurationThatCannotBeRightIsAnError(t *testing.T) {
	for name, tc := range map[string]struct{ lines, says string }{
		"unknown field":  {"cgroupRot: /x\n", `unknown field "cgroupRot"`},
		"wrong case":     {"CgroupRoot: /x\n", `unknown field "CgroupRoot"`},
		"a field twice":  {"port: 1\nport: 2\n", `"port" already set`},
		"not of a type":  {"port: many\n", "cannot unmarshal string"},
		"another object": {"kind: Pod\n", `"kind" already set`},
		"not YAML":       {"\tport: 1\n", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			file := configFile(t, tc.lines)
			_, err := parseFlags([]string{"--manifests=/b", "--config", file})
			require.ErrorContains(t, err, tc.says)
			assert.ErrorContains(t, err, file, "the file is named")
		})
	}
	_, err := decodeConfig([]byte("apiVersion: v1\nkind: ConfigMap\n"))
	assert.ErrorContains(t, err, `want kubelet.config.k8s.io/v1beta1, KubeletConfiguration`)
	_, err = parseFlags([]string{"--config=/none/such"})
	assert.ErrorContains(t, err, "/none/such")
}

func TestImagesGoAsTheKubeletConfigurationSays(t *testing.T) { // ig-1
	file := configFile(t, "imageGCHighThresholdPercent: 70\nimageGCLowThresholdPercent: 60\nimageMinimumGCAge: 5m\nimageMaximumGCAge: 168h\n")
	o, err := parseFlags([]string{"--manifests=/b", "--config=" + file})
	require.NoError(t, err)
	assert.Empty(t, o.warnings)
	p := imagePolicy(&o.kubelet, nil)
	assert.EqualValues(t, 70, *p.HighPercent)
	assert.EqualValues(t, 60, *p.LowPercent)
	assert.Equal(t, 5*time.Minute, p.MinAge)
	assert.Equal(t, 168*time.Hour, p.MaxAge)
}

func TestWhatIsDroppedInWins(t *testing.T) {
	head := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
	dir := t.TempDir()
	for name, text := range map[string]string{
		"20-b.conf": head + "maxPods: 30\nevictionHard: {nodefs.available: 3%}\n",
		"10-a.conf": head + "maxPods: 20\nenforceNodeAllocatable: [none]\n",
		"old.yaml":  "not looked at",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	file := configFile(t, "maxPods: 10\nsyncFrequency: 2m\nenforceNodeAllocatable: [pods, system-reserved]\nevictionHard: {memory.available: 1Gi}\n")
	for _, args := range [][]string{{"--manifests=/b", "--config=" + file, "--config-dir=" + dir}, {"--config-dir", dir, "--manifests=/b", "--config=" + file}} {
		o, err := parseFlags(args)
		require.NoError(t, err)
		assert.EqualValues(t, 30, o.kubelet.MaxPods)
		assert.Equal(t, []string{"none"}, o.kubelet.EnforceNodeAllocatable, "lists are replaced")
		assert.Equal(t, map[string]string{"memory.available": "1Gi", "nodefs.available": "3%"}, o.kubelet.EvictionHard)
		assert.Equal(t, 2*time.Minute, o.kubelet.SyncFrequency.Duration)
	}
	o, err := parseFlags([]string{"--manifests=/b", "--config-dir=" + dir, "--max-pods=5"})
	require.NoError(t, err)
	assert.EqualValues(t, 5, o.kubelet.MaxPods)

	bad := filepath.Join(dir, "30-c.conf")
	require.NoError(t, os.WriteFile(bad, []byte(head+"maxPod: 1\n"), 0o600))
	_, err = parseFlags([]string{"--manifests=/b", "--config-dir=" + dir})
	require.ErrorContains(t, err, `--config-dir: `+bad+`: unknown field "maxPod"`)
	_, err = parseFlags([]string{"--manifests=/b", "--config-dir=/none/such"})
	require.ErrorContains(t, err, "--config-dir: open /none/such")
}

// Such a file kubeadm leaves on a node: nothing of it is warned about, and what is zero
// is as if it were not there.
func TestAFileOfKubeadmIsTakenAsItIs(t *testing.T) {
	file := configFile(t, `authentication:
  anonymous: {enabled: false}
  webhook: {cacheTTL: 0s, enabled: true}
  x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}
authorization:
  mode: Webhook
  webhook: {cacheAuthorizedTTL: 0s, cacheUnauthorizedTTL: 0s}
cgroupDriver: systemd
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cpuManagerReconcilePeriod: 0s
crashLoopBackOff: {}
evictionPressureTransitionPeriod: 0s
fileCheckFrequency: 0s
healthzBindAddress: 127.0.0.1
healthzPort: 10248
httpCheckFrequency: 0s
imageMaximumGCAge: 0s
imageMinimumGCAge: 0s
logging: {flushFrequency: 0, options: {json: {infoBufferSize: "0"}, text: {infoBufferSize: "0"}}, verbosity: 0}
memorySwap: {}
nodeStatusReportFrequency: 0s
nodeStatusUpdateFrequency: 0s
resolvConf: /run/systemd/resolve/resolv.conf
rotateCertificates: true
runtimeRequestTimeout: 0s
shutdownGracePeriod: 0s
shutdownGracePeriodCriticalPods: 0s
staticPodPath: /etc/kubernetes/manifests
streamingConnectionIdleTimeout: 0s
syncFrequency: 0s
volumeStatsAggPeriod: 0s
`)
	o, err := parseFlags([]string{"--kubeconfig=/etc/kubernetes/kubelet.conf", "--config=" + file})
	require.NoError(t, err)
	assert.Empty(t, o.warnings)
	k := o.kubelet
	assert.Equal(t, "/etc/kubernetes/manifests", o.manifests)
	assert.Equal(t, "unix:///run/containerd/containerd.sock", o.runtime)
	assert.Equal(t, "/etc/kubernetes/pki/ca.crt", k.Authentication.X509.ClientCAFile)
	assert.Equal(t, []time.Duration{time.Minute, 20 * time.Second, 10 * time.Second, 2 * time.Minute, 5 * time.Minute, 4 * time.Hour}, []time.Duration{
		k.SyncFrequency.Duration, k.FileCheckFrequency.Duration, k.NodeStatusUpdateFrequency.Duration, k.ImageMinimumGCAge.Duration,
		k.EvictionPressureTransitionPeriod.Duration, k.StreamingConnectionIdleTimeout.Duration,
	})
	assert.Empty(t, k.ShutdownGracePeriod)
}

// A file makes a node: what it does not say of evictions and cgroups is as in a kubelet.
// Who only tries the agent has his pods neither evicted nor where a kubelet has its own.
func TestAFileBringsAKubeletsThresholdsAndCgroups(t *testing.T) { // ev-9
	hard := eviction.DefaultHard(goruntime.GOOS)
	for name, tc := range map[string]struct {
		args []string
		want map[string]string
		root string
	}{
		"no file":                  {nil, map[string]string{}, "/kubeparts"},
		"a file that says nothing": {[]string{"--config=" + configFile(t, "")}, hard, ""},
		"a directory that does":    {[]string{"--config-dir=" + t.TempDir()}, hard, ""},
		"a file that wants none":   {[]string{"--config=" + configFile(t, "evictionHard: {}\n")}, map[string]string{}, ""},
		"a file that wants one":    {[]string{"--config=" + configFile(t, "evictionHard: {pid.available: \"5\"}\n")}, map[string]string{"pid.available": "5"}, ""},
		"a flag":                   {[]string{"--config=" + configFile(t, ""), "--eviction-hard=pid.available<7", "--cgroup-root=/x"}, map[string]string{"pid.available": "7"}, "/x"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parseFlags(append(tc.args, "--manifests=/b"))
			require.NoError(t, err)
			assert.Equal(t, tc.want, eviction.Settings{Hard: o.kubelet.EvictionHard}.WithDefaults(goruntime.GOOS, false).Hard)
			assert.Equal(t, tc.root, o.kubelet.CgroupRoot)
		})
	}
}
