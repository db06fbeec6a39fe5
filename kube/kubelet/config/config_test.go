package config_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/kube/kubelet/config"
)

const header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

// configFile writes a KubeletConfiguration with these lines.
func configFile(t *testing.T, lines string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubelet.yaml")
	require.NoError(t, os.WriteFile(path, []byte(header+lines), 0o600))
	return path
}

func TestWithoutAFileTheDefaultsOfTheKubeletApply(t *testing.T) {
	cfg, warnings, err := config.Read("", "")
	require.NoError(t, err)
	assert.Empty(t, warnings)
	assert.True(t, *cfg.CgroupsPerQOS)
	assert.Equal(t, []string{"pods"}, cfg.EnforceNodeAllocatable)
	assert.EqualValues(t, 110, cfg.MaxPods)
	assert.Nil(t, cfg.EvictionHard, "package eviction has the default thresholds")
}

func TestAnInvalidFileIsNamed(t *testing.T) {
	for name, tc := range map[string]struct{ lines, message string }{
		"not of a type":  {"port: many\n", "cannot unmarshal string"},
		"another object": {"kind: Pod\n", `kind "Pod"`},
		"not YAML":       {"\tport: 1\n", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			file := configFile(t, tc.lines)
			_, _, err := config.Read(file, "")
			require.ErrorContains(t, err, tc.message)
			assert.ErrorContains(t, err, file)
		})
	}
	_, _, err := config.Decode([]byte("apiVersion: v1\nkind: ConfigMap\n"))
	assert.ErrorContains(t, err, `want kubelet.config.k8s.io/v1beta1, KubeletConfiguration`)
	_, _, err = config.Read("/none/such", "")
	assert.ErrorContains(t, err, "/none/such")
	_, _, err = config.Read(t.TempDir(), "")
	assert.ErrorContains(t, err, "not a regular file")
	large := configFile(t, "")
	require.NoError(t, os.Truncate(large, 8<<40))
	_, _, err = config.Read(large, "")
	assert.ErrorContains(t, err, "larger than")
}

// A kubelet decodes v1beta1 leniently, so that a file of a newer release is accepted.
func TestUnknownAndDuplicateFieldsAreIgnoredWithAWarning(t *testing.T) {
	for name, tc := range map[string]struct {
		lines, warning string
		maxPods        int32
	}{
		"unknown field":        {"maxPodz: 5\n", `unknown field "maxPodz" is ignored`, 110},
		"unknown nested field": {"authentication: {oidc: {}}\n", `unknown field "authentication.oidc" is ignored`, 110},
		"wrong case":           {"MaxPods: 5\n", `unknown field "MaxPods" is ignored`, 110},
		"a field twice":        {"maxPods: 5\nmaxPods: 6\n", `key "maxPods" already set in map`, 6},
	} {
		t.Run(name, func(t *testing.T) {
			file := configFile(t, tc.lines)
			k, warnings, err := config.Read(file, "")
			require.NoError(t, err)
			assert.Equal(t, tc.maxPods, k.MaxPods)
			require.Len(t, warnings, 1)
			assert.Contains(t, warnings[0], file+": ")
			assert.Contains(t, warnings[0], tc.warning)
			_, _, err = config.ReadStrict(file, "")
			require.ErrorContains(t, err, file+": ")

			_, warnings, err = config.Read("", filepath.Dir(dropIn(t, tc.lines)))
			require.NoError(t, err)
			require.Len(t, warnings, 1)
			_, _, err = config.ReadStrict("", filepath.Dir(dropIn(t, tc.lines)))
			require.Error(t, err)
		})
	}
}

// dropIn writes a drop-in file with these lines.
func dropIn(t *testing.T, lines string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "10.conf")
	require.NoError(t, os.WriteFile(path, []byte(header+lines), 0o600))
	return path
}

func TestRelativePathsAreBelowTheDirectoryOfTheFile(t *testing.T) {
	file := configFile(t, "staticPodPath: manifests\ntlsCertFile: ../cert\ntlsPrivateKeyFile: /key\nauthentication: {x509: {clientCAFile: ca.crt}}\nresolvConf: \"\"\npodLogsDir: logs\n")
	k, warnings, err := config.Read(file, "")
	require.NoError(t, err)
	assert.Empty(t, warnings)
	dir := filepath.Dir(file)
	assert.Equal(t, filepath.Join(dir, "manifests"), k.StaticPodPath)
	assert.Equal(t, filepath.Join(filepath.Dir(dir), "cert"), k.TLSCertFile)
	assert.Equal(t, "/key", k.TLSPrivateKeyFile)
	assert.Equal(t, filepath.Join(dir, "ca.crt"), k.Authentication.X509.ClientCAFile)
	assert.Empty(t, *k.ResolverConfig, "no name servers")
	assert.Equal(t, filepath.Join(dir, "logs"), k.PodLogsDir)

	k, _, err = config.Read("", filepath.Dir(dropIn(t, "podLogsDir: logs\n")))
	require.NoError(t, err)
	assert.Equal(t, "logs", k.PodLogsDir, "those of drop-in files remain, as in the kubelet, and are refused")
	assert.ErrorContains(t, config.Validate(k), `pod logs path "logs" must be absolute path`)
}

func TestDropInFilesTakePrecedence(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"20-b.conf": header + "maxPods: 30\nevictionHard: {nodefs.available: 3%}\n",
		"10-a.conf": header + "maxPods: 20\nenforceNodeAllocatable: [none]\n",
		"old.yaml":  "not read",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	below := filepath.Join(dir, "15-below")
	require.NoError(t, os.Mkdir(below, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(below, "10.conf"), []byte(header+"maxPods: 25\npodsPerCore: 4\n"), 0o600))
	file := configFile(t, "maxPods: 10\nsyncFrequency: 2m\nenforceNodeAllocatable: [pods, system-reserved]\nevictionHard: {memory.available: 1Gi}\n")
	cfg, _, err := config.Read(file, dir)
	require.NoError(t, err)
	assert.EqualValues(t, 30, cfg.MaxPods)
	assert.EqualValues(t, 4, cfg.PodsPerCore, "directories are read in the order of their names")
	assert.Equal(t, []string{"none"}, cfg.EnforceNodeAllocatable, "lists are replaced")
	assert.Equal(t, map[string]string{"memory.available": "1Gi", "nodefs.available": "3%"}, cfg.EvictionHard)
	assert.Equal(t, 2*time.Minute, cfg.SyncFrequency.Duration)
	cfg, _, err = config.Read("", dir)
	require.NoError(t, err)
	assert.EqualValues(t, 30, cfg.MaxPods)

	bad := filepath.Join(dir, "30-c.conf")
	require.NoError(t, os.WriteFile(bad, []byte(header+"maxPod: 1\n"), 0o600))
	_, _, err = config.ReadStrict(file, dir)
	require.ErrorContains(t, err, bad+`: unknown field "maxPod"`)
	_, _, err = config.Read(file, "/none/such")
	require.ErrorContains(t, err, "/none/such")
}

func TestIgnoredFieldsAreReportedWithTheReason(t *testing.T) {
	file := configFile(t, "hairpinMode: none\nserializeImagePulls: true\ncontentType: \"\"\niptablesDropBit: 0\nfeatureGates: {MemoryQoS: true, ReduceDefaultCrashLoopBackOffDecay: true, KubeletPSI: false, ProcMountType: true}\nlogging: {flushFrequency: 0, verbosity: 0, options: {json: {infoBufferSize: \"0\"}}}\n")
	_, warnings, err := config.Read(file, "")
	require.NoError(t, err)
	assert.Equal(t, []string{
		"hairpinMode has no effect: the CNI plugin decides whether a pod can reach itself through its service (bridge: hairpinMode)",
		"iptablesDropBit has no effect: kube-proxy and CNI plugins create their own chains",
		"featureGates.KubeletPSI has no effect: the feature is always enabled",
		"featureGates.ReduceDefaultCrashLoopBackOffDecay has no effect: the feature is not implemented",
	}, warnings)
}

// A zero value is reported if the file sets it.
func TestFalseIsReportedWhereTrueIsAccepted(t *testing.T) {
	const refusal = "enableControllerAttachDetach: volumes are attached by the controller of the cluster only"
	for lines, want := range map[string]string{
		"":                                      "",
		"enableControllerAttachDetach: true\n":  "",
		"enableControllerAttachDetach: false\n": refusal,
		"enableControllerAttachDetach: null\n":  "",
	} {
		_, warnings, err := config.Read(configFile(t, lines), "")
		assert.Empty(t, warnings, lines)
		if want == "" {
			assert.NoError(t, err, lines)
		} else {
			assert.ErrorContains(t, err, want, lines)
		}
	}
}

func TestARefusedFieldIsAnError(t *testing.T) {
	_, _, err := config.Read(configFile(t, "runOnce: true\nenableControllerAttachDetach: false\n"), "")
	require.ErrorContains(t, err, "runOnce: the kubelet runs until it is stopped")
	require.ErrorContains(t, err, "enableControllerAttachDetach: volumes are attached by the controller of the cluster only")
	_, _, err = config.Read(configFile(t, "runOnce: false\nenableControllerAttachDetach: true\n"), "")
	require.NoError(t, err)
}

// kubeadm writes such a file: it causes no warning, and zero values mean the defaults.
func TestAFileOfKubeadmIsAccepted(t *testing.T) {
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
	k, warnings, err := config.Read(file, "")
	require.NoError(t, err)
	assert.Empty(t, warnings)
	assert.Equal(t, "/etc/kubernetes/manifests", k.StaticPodPath)
	assert.Equal(t, "unix:///run/containerd/containerd.sock", k.ContainerRuntimeEndpoint)
	assert.Equal(t, "/etc/kubernetes/pki/ca.crt", k.Authentication.X509.ClientCAFile)
	assert.Equal(t, []time.Duration{time.Minute, 20 * time.Second, 10 * time.Second, 2 * time.Minute, 5 * time.Minute, 4 * time.Hour}, []time.Duration{
		k.SyncFrequency.Duration, k.FileCheckFrequency.Duration, k.NodeStatusUpdateFrequency.Duration, k.ImageMinimumGCAge.Duration,
		k.EvictionPressureTransitionPeriod.Duration, k.StreamingConnectionIdleTimeout.Duration,
	})
	assert.Empty(t, k.ShutdownGracePeriod)
}

func TestTheReportFrequencyOfTheNodeStatus(t *testing.T) {
	for name, tc := range map[string]struct{ update, report, want time.Duration }{
		"none is set":   {want: 5 * time.Minute},
		"only update":   {update: 20 * time.Second, want: 20 * time.Second},
		"only report":   {report: time.Minute, want: time.Minute},
		"both":          {update: 20 * time.Second, report: time.Minute, want: time.Minute},
		"set to be 10s": {update: 10 * time.Second, want: 10 * time.Second},
	} {
		var k kubeletconfig.KubeletConfiguration
		k.NodeStatusUpdateFrequency.Duration, k.NodeStatusReportFrequency.Duration = tc.update, tc.report
		config.Default(&k)
		assert.Equal(t, tc.want, k.NodeStatusReportFrequency.Duration, name)
		config.Default(&k)
		assert.Equal(t, tc.want, k.NodeStatusReportFrequency.Duration, "%s, twice", name)
	}
}
