package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/kubelet"
	"github.com/kubeparts/kubeparts/shutdown"
)

// configFile returns the path of a KubeletConfiguration with these lines.
func configFile(t *testing.T, lines string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"+lines), 0o600))
	return path
}

func TestAddressOfTheStatusPage(t *testing.T) {
	for args, want := range map[string]string{
		"--pod-manifest-path=x":    "unix:///r/kubelet.sock",
		"--kubeconfig=x":           "unix:///r/kubelet.sock",
		"--kubeconfig=x --listen=": "",
		"--pod-manifest-path=x --listen=unix:///run/page.sock":         "unix:///run/page.sock",
		"--pod-manifest-path=x --listen=[::1]:1":                       "[::1]:1",
		"--pod-manifest-path=x --listen=0.0.0.0:10258 --root-dir=/any": "0.0.0.0:10258",
	} {
		o, err := parseArgs(append([]string{"--root-dir=/r"}, strings.Fields(args)...))
		require.NoError(t, err, args)
		assert.Equal(t, want, o.listen, args)
		assert.Empty(t, o.warnings, args)
	}
	for _, bad := range []string{":10258", "none", "10258", "unix:kubelet.sock", "unix://x/y", "unix://"} {
		_, err := parseArgs([]string{"--pod-manifest-path=x", "--listen=" + bad})
		assert.ErrorContains(t, err, "--listen: ", bad)
	}
}

func TestFlagsTakePrecedenceOverTheFile(t *testing.T) {
	file := configFile(t, "staticPodURL: http://a/\nstaticPodURLHeader: {X-Key: [one, two]}\nmaxPods: 5\nsyncFrequency: 2m\n")
	o, err := parseArgs([]string{"--config=" + file})
	require.NoError(t, err)
	assert.Equal(t, "http://a/", o.Configuration.StaticPodURL)
	assert.Equal(t, []string{"one", "two"}, o.Configuration.StaticPodURLHeader["X-Key"])
	assert.EqualValues(t, 5, o.Configuration.MaxPods)
	assert.True(t, o.Host.Manage)
	assert.Empty(t, o.Configuration.CgroupRoot)
	assert.Nil(t, o.Configuration.EvictionHard, "the defaults")

	o, err = parseArgs([]string{
		"--manifest-url=http://b/", "--config", file, "--manifest-url-header=A:1,B: 2", "--manifest-url-header=A:3", "--max-pods=7", "-v", "4",
		"--node-ip=10.0.0.1,fd00::1", "--node-labels=a=b", "--hostname-override=n1",
	})
	require.NoError(t, err)
	assert.Equal(t, "http://b/", o.Configuration.StaticPodURL)
	assert.Equal(t, map[string][]string{"A": {"1", "3"}, "B": {"2"}}, o.Configuration.StaticPodURLHeader, "they replace those of the file")
	assert.EqualValues(t, 7, o.Configuration.MaxPods)
	assert.EqualValues(t, 4, o.Configuration.Logging.Verbosity)
	assert.Equal(t, "2m0s", o.Configuration.SyncFrequency.Duration.String())
	assert.Len(t, o.Host.IPs, 2)
	assert.Equal(t, map[string]string{"a": "b"}, o.Cluster.NodeLabels)
	assert.Equal(t, "n1", o.NodeName)
}

// Without a configuration file the kubelet can be tried beside another one.
func TestWithoutAConfigurationFile(t *testing.T) {
	o, err := parseArgs([]string{"--pod-manifest-path=x"})
	require.NoError(t, err)
	assert.False(t, o.Host.Manage)
	assert.Equal(t, "/kubeparts", o.Configuration.CgroupRoot)
	assert.Equal(t, map[string]string{}, o.Configuration.EvictionHard)
	o, err = parseArgs([]string{"--pod-manifest-path=x", "--cgroup-root=/own", "--eviction-hard=memory.available<1Gi"})
	require.NoError(t, err)
	assert.Equal(t, "/own", o.Configuration.CgroupRoot)
	assert.Equal(t, map[string]string{"memory.available": "1Gi"}, o.Configuration.EvictionHard)
}

func TestInvalidArguments(t *testing.T) {
	for args, want := range map[string]string{
		"":                                              "no source of pods",
		"--stop-pods --kubeconfig=x":                    "--stop-pods: the API server terminates the pods of a cluster",
		"--pod-manifest-path=x more":                    `unexpected argument "more"`,
		"--pod-manifest-path=x --node-ip=n":             `"n" is not an IP address`,
		"--pod-manifest-path=x --config=/none":          "/none",
		"--pod-manifest-path=x --cpu-weights=cube":      "cpu-weights",
		"--pod-manifest-path=x --manifest-url-header=A": "manifest-url-header",
		"--pod-manifest-path=x --cloud-provider=aws":    "--cloud-provider",
	} {
		_, err := parseArgs(strings.Fields(args))
		assert.ErrorContains(t, err, want, args)
	}
}

func TestShutdownTriggers(t *testing.T) {
	for _, tc := range []struct {
		on, listen string
		fails      bool
		triggers   int
		signals    []os.Signal
	}{
		{"", "", false, 0, []os.Signal{os.Interrupt, syscall.SIGTERM}},
		{"sigterm", "", false, 1, []os.Signal{os.Interrupt}},
		{"http", "127.0.0.1:10258", false, 1, []os.Signal{os.Interrupt, syscall.SIGTERM}},
		{"http", "unix:///run/s", false, 1, []os.Signal{os.Interrupt, syscall.SIGTERM}},
		{"http", "0.0.0.0:10258", true, 0, nil}, // other machines could terminate the pods
		{"http", "", true, 0, nil},
		{"never", "127.0.0.1:10258", true, 0, nil},
	} {
		o := &options{shutdownOn: tc.on, listen: tc.listen}
		o.RootDir = t.TempDir()
		var cfg kubelet.Config
		signals, err := o.addShutdown(&cfg, http.NewServeMux(), func() {})
		if tc.fails {
			assert.ErrorContains(t, err, "--shutdown-on="+tc.on, "%+v", tc)
			continue
		}
		require.NoError(t, err, "%+v", tc)
		all := shutdown.Config{Triggers: cfg.Host.Shutdown.Triggers}
		if cfg.Adjust.Shutdown != nil {
			require.NoError(t, cfg.Adjust.Shutdown(&all))
			assert.FileExists(t, filepath.Join(o.RootDir, "shutdown-token"))
		}
		assert.Len(t, all.Triggers, tc.triggers)
		assert.Equal(t, tc.signals, signals)
	}
}
