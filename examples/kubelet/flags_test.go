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

	"github.com/kubeparts/kubeparts/compose"
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

func TestStrictConfigurationFiles(t *testing.T) {
	file := configFile(t, "noSuchField: 1\n")
	o, err := parseArgs([]string{"--kubeconfig=x", "--config=" + file})
	require.NoError(t, err)
	assert.Equal(t, []string{file + `: unknown field "noSuchField" is ignored`}, o.warnings)
	_, err = parseArgs([]string{"--kubeconfig=x", "--config=" + file, "--strict-config"})
	assert.ErrorContains(t, err, file+`: unknown field "noSuchField"`)
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

// The services of Kubernetes' node end-to-end tests start a kubelet so.
func TestTheCommandLineOfTheNodeTests(t *testing.T) {
	file, dropIns := configFile(t, "healthzPort: 10248\nauthentication: {anonymous: {enabled: true}, webhook: {enabled: false}}\nauthorization: {mode: AlwaysAllow}\n"), t.TempDir()
	o, err := parseArgs([]string{
		"--runtime-cgroups=/docker-daemon", "--kubeconfig", "/k", "--root-dir", "/r", "--v", "4", "--feature-gates", "MemoryQoS=true", "--config-dir", dropIns,
		"--hostname-override", "n1", "--container-runtime-endpoint", "unix:///s", "--config", file,
	})
	require.NoError(t, err)
	assert.Empty(t, o.warnings)
	assert.Equal(t, kubelet.Cluster{Kubeconfig: "/k"}, o.Cluster)
	assert.Equal(t, "4", o.Host.Flags["v"], "for /flagz")
	assert.Equal(t, kubelet.Host{Manage: true, RuntimeCgroup: "/docker-daemon", Flags: o.Host.Flags}, o.Host)
	assert.Equal(t, "/r", o.RootDir)
	assert.Equal(t, "n1", o.NodeName)
	assert.Equal(t, "unix:///s", o.Configuration.ContainerRuntimeEndpoint)
	assert.EqualValues(t, 4, o.Configuration.Logging.Verbosity)
	assert.Zero(t, o.Configuration.Port, "package kubelet has the ports of a cluster")
}

func TestPortsOfAStandaloneKubelet(t *testing.T) {
	const open = "authorization: {mode: AlwaysAllow}\n"
	for lines, want := range map[string][2]int32{
		"": {0, 10248},
		open + "authentication: {webhook: {enabled: false}}\n":               {10250, 10248},
		open + "authentication: {webhook: {enabled: true}}\n":                {0, 10248}, // there is no API server
		open + "authentication: {webhook: {enabled: false}}\nport: 1234\n":   {1234, 10248},
		open + "authentication: {webhook: {enabled: false}}\nhealthzPort: 0": {10250, 0},
	} {
		o, err := parseArgs([]string{"--pod-manifest-path=x", "--config=" + configFile(t, lines)})
		require.NoError(t, err, lines)
		assert.Equal(t, want, [2]int32{o.Configuration.Port, *o.Configuration.HealthzPort}, lines)
	}
	o, err := parseArgs([]string{"--pod-manifest-path=x", "--config=" + configFile(t, ""), "--healthz-port=0"})
	require.NoError(t, err)
	assert.Zero(t, *o.Configuration.HealthzPort)
	o, err = parseArgs([]string{"--pod-manifest-path=x"})
	require.NoError(t, err)
	assert.Nil(t, o.Configuration.HealthzPort, "without a configuration it can be tried beside a kubelet")
}

func TestVersions(t *testing.T) {
	o := new(options)
	printed, err := o.setVersion("true")
	require.NoError(t, err)
	assert.Equal(t, "Kubernetes "+kubelet.Version, printed)
	printed, err = o.setVersion("raw")
	require.NoError(t, err)
	assert.Contains(t, printed, `GitVersion:"`+kubelet.Version+`"`)
	assert.Contains(t, printed, `Major:"1"`)
	own, _, _ := strings.Cut(kubelet.Version, "+")
	printed, err = o.setVersion(own + "-distribution.7")
	require.NoError(t, err)
	assert.Empty(t, printed)
	assert.Equal(t, own+"-distribution.7", o.Cluster.Version)
}

func TestInvalidArguments(t *testing.T) {
	for args, want := range map[string]string{
		"":                                     "no source of pods",
		"--stop-pods --kubeconfig=x":           "--stop-pods: the API server terminates the pods of a cluster",
		"--pod-manifest-path=x more":           `unexpected argument "more"`,
		"--pod-manifest-path=x --node-ip=n":    `"n" is not an IP address`,
		"--pod-manifest-path=x --config=/none": "/none",
		"--pod-manifest-path=x --manifest-url-header=A": "manifest-url-header",
		"--pod-manifest-path=x --cloud-provider=aws":    "--cloud-provider",
		"--pod-manifest-path=x --runonce":               "--runonce: the kubelet runs until it is stopped",
		"--pod-manifest-path=x --no-such-flag":          "unknown flag: --no-such-flag; see --help",
		"--pod-manifest-path=x -config=y":               "'c'", // as with a kubelet, long flags have two dashes
		"--exit-on-lock-contention --kubeconfig=x":      "--exit-on-lock-contention: there is no --lock-file",
		"--version=v0.1.2":                              "--version=v0.1.2: want major, minor and patch of v1.",
		"--version=vx":                                  "--version=vx: ",
		"--version=x":                                   `invalid argument "x" for "--version" flag`,
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
		require.NoError(t, compose.Apply(cfg.Adjust, &all))
		if len(cfg.Adjust) > 0 {
			assert.FileExists(t, filepath.Join(o.RootDir, "shutdown-token"))
		}
		assert.Len(t, all.Triggers, tc.triggers)
		assert.Equal(t, tc.signals, signals)
	}
}
